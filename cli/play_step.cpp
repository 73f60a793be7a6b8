#include "cli/play_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/record.hpp"
#include "cli/terminal.hpp"
#include "model/core/error.hpp"
#include "sim/study/play_step.hpp"

namespace tritax::cli {

namespace {

constexpr std::size_t kShownInstructionMoves = 12;

std::string step_heading(const KernelLevels& kernel) {
  return fmt::format("{}: {}x{}x{} of {} by {} waves, {}", kernel.kernel, kernel.tile.m, kernel.tile.n,
                     kernel.tile.k, name_of(kernel.dtype), kernel.tile.waves,
                     kPipelineNames[static_cast<std::size_t>(kernel.tile.pipeline)]);
}

Table step_moves_table(const StepPlay& play, std::size_t most) {
  Table table{{{"move", "move"},
               {"text", "what"},
               {"cycles", "a turn", "cycles"},
               {"saved_percent", "saved", "%", 2}},
              {}};
  double before = play.start_cycles;
  for (std::size_t i = 0; i < std::min(most, play.moves.size()); ++i) {
    const PlayedInstruction& played = play.moves[i];
    table.add({static_cast<std::int64_t>(i + 1), played.text, played.cycles,
               100 * (before - played.cycles) / play.start_cycles});
    before = played.cycles;
  }
  return table;
}

void print_step(const Outputs& outputs, const StepPlay& play, std::string_view player) {
  outputs.print(styled(step_heading(play.kernel), Style::bold) + "\n");
  if (!play.refusal.empty()) {
    outputs.print(wrapped("No game: " + play.refusal) + "\n");
    return;
  }
  outputs.print(
      fmt::format("{} evaluated {} moves in {:.1f} s ({:.0f} per second); the mask refused {} others\n",
                  player, play.evaluated, play.seconds,
                  static_cast<double>(play.evaluated) / std::max(1e-9, play.seconds), play.masked));
  outputs.print(fmt::format(
      "as written {:.1f} cycles per turn, list schedule {:.1f}, found {:.1f}: {:.2f} % less; no order takes "
      "less than {:.1f}\n",
      play.written_cycles, play.start_cycles, play.found_cycles, 100 * play.gain(), play.least_cycles));
  if (play.moves.empty()) {
    outputs.print(wrapped("No faster order was found. It is bound by " + play.start_bound + ".") + "\n");
    return;
  }
  outputs.print(
      wrapped("At first it was bound by " + play.start_bound + "; now by " + play.found_bound + ".") + "\n");
  outputs.print(step_moves_table(play, kShownInstructionMoves));
  if (play.moves.size() > kShownInstructionMoves) {
    outputs.print(fmt::format("… and {} more moves; --csv and --json have all\n",
                              play.moves.size() - kShownInstructionMoves));
  }
  outputs.print("\n");
}

nlohmann::ordered_json json_of_step(const StepPlay& play) {
  nlohmann::ordered_json row{{"kernel", play.kernel.kernel},
                             {"dtype", name_of(play.kernel.dtype)},
                             {"tile", {play.kernel.tile.m, play.kernel.tile.n, play.kernel.tile.k}},
                             {"waves", play.kernel.tile.waves}};
  if (!play.refusal.empty()) {
    row["refused"] = play.refusal;
    return row;
  }
  row["evaluated"] = play.evaluated;
  row["masked"] = play.masked;
  row["seconds"] = play.seconds;
  row["written_cycles"] = play.written_cycles;
  row["start_cycles"] = play.start_cycles;
  row["found_cycles"] = play.found_cycles;
  row["least_cycles"] = play.least_cycles;
  row["gain_percent"] = 100 * play.gain();
  row["bound"] = play.found_bound;
  row["moves"] = nlohmann::ordered_json::array();
  for (const PlayedInstruction& played : play.moves) {
    row["moves"].push_back({{"track", "step"},
                            {"place", played.move.place},
                            {"grain", kGrainNames[static_cast<std::size_t>(played.move.grain)]},
                            {"steps", played.move.steps},
                            {"text", played.text},
                            {"cycles", played.cycles}});
  }
  row["order"] = play.order;
  return row;
}

}  // namespace

void play_instructions(const RunInput& run_input, const Player& player, const GameOptions& game,
                       bool as_machine_code, Outputs& outputs) {
  const std::vector<StepPlay> plays =
      play_on_steps(run_input.schedule, run_input.machine, player, game, as_machine_code);
  if (plays.empty()) throw UserError("--level: no kernel multiplies, so there is no K step to play on");
  outputs.print(styled(run_input.title, Style::bold) + "\n\n");
  RecordTable rows;
  const Record record = record_of(run_input, game.seed);
  nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
  for (const StepPlay& play : plays) {
    print_step(outputs, play, player.name);
    rows.add(step_moves_table(play, play.moves.size()), record);
    kernels.push_back(json_of_step(play));
  }
  outputs.csv(rows.table());
  nlohmann::ordered_json tree{
      {"schema", "tritax.play-step/1"}, {"player", player.name}, {"kernels", std::move(kernels)}};
  add_record(tree, record);
  outputs.json(tree);
}

}  // namespace tritax::cli
