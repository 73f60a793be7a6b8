// tritax play: better orders for the operations of a schedule, found by a game of legal moves.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "cli/commands.hpp"
#include "cli/interrupt.hpp"
#include "cli/levels.hpp"
#include "cli/operation_limit.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/play_step.hpp"
#include "cli/record.hpp"
#include "cli/run_input.hpp"
#include "cli/terminal.hpp"
#include "model/core/error.hpp"
#include "model/core/with_place.hpp"
#include "model/schedule/json.hpp"
#include "sim/study/assessment.hpp"
#include "sim/study/play.hpp"

namespace tritax::cli {

namespace {

constexpr std::int64_t kMostMoves = 100'000'000;
constexpr std::int64_t kUsualMoves = 1000;
constexpr int kMostDraws = 1000;
constexpr std::size_t kShownMoves = 12;
constexpr std::string_view kLearner = "ppo";

struct PlayArguments {
  OutputOptions output;
  RunInputOptions run_input;
  std::string player;
  std::string replay;  // a file of moves
  std::string save;    // the schedule
  std::string level;   // "": the level of tiles
  bool machine_code = false;
  std::optional<std::int64_t> moves;
  std::optional<std::int64_t> seed;
  std::optional<std::int32_t> draws;
  std::optional<std::int64_t> max_operations;
  std::optional<int> threads;
  bool executes = false;
};

double mean_us(const std::vector<double>& times_ns) {
  return std::accumulate(times_ns.begin(), times_ns.end(), 0.0) / static_cast<double>(times_ns.size()) / 1e3;
}

Table moves_table(const PlayResult& result, std::size_t most) {
  Table table{
      {{"move", "move"}, {"text", "what"}, {"time_us", "time", "us", 2}, {"saved_percent", "saved", "%", 2}},
      {}};
  double before = result.start_ns;
  for (std::size_t i = 0; i < result.moves.size(); ++i) {
    const PlayedMove& played = result.moves[i];
    Cell time, saved;
    if (played.time_ns) {
      time = *played.time_ns / 1e3;
      saved = 100 * (before - *played.time_ns) / result.start_ns;
      before = *played.time_ns;
    }
    if (i < most) table.add({static_cast<std::int64_t>(i + 1), played.text, time, saved});
  }
  return table;
}

nlohmann::ordered_json play_json(const PlayArguments& arguments, const PlayResult& result,
                                 const Answered& answered, const Record& record) {
  auto tree = nlohmann::ordered_json::parse(play_to_json(result, arguments.player));
  tree["verdict"] = answered.sentence;
  tree["decision"] = name_of(answered.verdict);
  add_record(tree, record);
  return tree;
}

// The verdict on the found pattern against the library; none for a schedule file.
Answered verdict_of(const RunInput& run_input, const PlayResult& result, std::uint64_t seed) {
  if (!run_input.scenario) return {};
  const Scenario& scenario = *run_input.scenario;
  return verdict_beside_library(scenario.problem, run_input.machine, pattern_of(scenario), scenario.knobs,
                                result.found_ns, seed);
}

void print_play(const Outputs& outputs, const PlayArguments& arguments, const RunInput& run_input,
                const PlayResult& result, const Answered& answered) {
  outputs.print(styled(run_input.title, Style::bold) + "\n\n");
  if (arguments.replay.empty()) {
    outputs.print(fmt::format(
        "{} evaluated {} moves in {:.1f} s ({:.0f} per second); the mask refused {} others, {} of them by "
        "the checker\n",
        arguments.player, result.evaluated, result.seconds,
        static_cast<double>(result.evaluated) / std::max(1e-9, result.seconds), result.masked,
        result.refused_by_law));
  }
  outputs.print(
      fmt::format("start {:.2f} us, found {:.2f} us: {:.2f} % less, with equal shares of full links\n",
                  result.start_ns / 1e3, result.found_ns / 1e3, 100 * result.gain()));
  if (!result.start_draws_ns.empty()) {
    outputs.print(fmt::format(
        "with random shares, {} seeds that the game did not use: {:.2f} us and {:.2f} us: {:.2f} ± {:.2f} % "
        "less\n",
        result.start_draws_ns.size(), mean_us(result.start_draws_ns), mean_us(result.found_draws_ns),
        100 * result.gain_with_random_shares(), 100 * result.error_of_gain()));
  }
  if (!answered.sentence.empty()) outputs.print(wrapped(answered.sentence) + "\n");
  if (result.moves.empty()) {
    outputs.print("\nNo faster order was found.\n");
    return;
  }
  outputs.print("\n");
  outputs.print(moves_table(result, kShownMoves));
  if (result.moves.size() > kShownMoves) {
    outputs.print(
        fmt::format("… and {} more moves; --csv and --json have all\n", result.moves.size() - kShownMoves));
  }
  outputs.print("\nMoved operations, by place in the workgroup's program:\n");
  for (const std::string& line : result.order) outputs.print("  " + printable(line) + "\n");
}

// Calls `play(player, options)` with the options of the command line; Ctrl-C ends the game with the best
// result so far.
template <typename Play>
auto with_game(const PlayArguments& arguments, const Play& play) {
  const InterruptibleWork work;
  Progress progress("playing, moves");
  GameOptions game;
  game.moves = arguments.moves.value_or(kUsualMoves);
  game.seed = static_cast<std::uint64_t>(arguments.seed.value_or(1));
  game.stop = &work.flag();
  game.progress = [&](std::int64_t evaluated) {
    progress.update(static_cast<std::size_t>(evaluated), static_cast<std::size_t>(game.moves));
  };
  if (arguments.player == kLearner) {
    throw UserError(
        "--player: ppo learns in Python: tritax.play(schedule, machine, player=\"ppo\"), or "
        "python/examples/play_ppo.py; --replay makes its saved moves (docs/play.md)");
  }
  return play(find_player(arguments.player, "--player"), game);
}

// Below the tile level there is one machine-readable answer and no schedule.
void require_tiles_for(const PlayArguments& arguments) {
  const auto refuse = [](bool given, const char* flag) {
    if (given) throw UserError(fmt::format("{}: it is for schedules of tiles; leave out --level", flag));
  };
  refuse(!arguments.save.empty(), "--save");
  refuse(!arguments.replay.empty(), "--replay");
  refuse(arguments.executes, "--execute");
  refuse(arguments.draws.has_value(), "--draws");
}

int run_below_tiles(const PlayArguments& arguments) {
  if (parse_level(arguments.level) != Level::instruction) {
    throw UserError("--level: below the tile, only level 'instruction' can be played");
  }
  require_tiles_for(arguments);
  Outputs outputs(arguments.output);
  const RunInput run_input = load_run_input(single_source(arguments.run_input));
  with_place(run_input.place, [&] {
    with_game(arguments, [&](const Player& player, const GameOptions& game) {
      play_instructions(run_input, player, game, arguments.machine_code, outputs);
    });
  });
  return 0;
}

PlayResult play_run_input(const PlayArguments& arguments, const RunInput& run_input) {
  PlayClock clock;
  clock.seed = static_cast<std::uint64_t>(arguments.seed.value_or(1));
  clock.draws = arguments.draws.value_or(clock.draws);
  clock.executes = arguments.executes;
  if (!arguments.replay.empty()) {
    const TileBoard board(run_input.schedule, run_input.machine, {});
    const std::vector<Move> moves = read_moves(arguments.replay, board);
    return with_place(arguments.replay + ": ",
                      [&] { return replay_on_tiles(run_input.schedule, run_input.machine, moves, clock); });
  }
  return with_game(arguments, [&](const Player& player, const GameOptions& game) {
    return play_on_tiles(run_input.schedule, run_input.machine, player, game, clock);
  });
}

int run_play(PlayArguments arguments) {
  if (!arguments.replay.empty() && (!arguments.player.empty() || arguments.moves)) {
    throw UserError(
        "--replay: it makes the moves of a file, without a player; leave out --player and --moves");
  }
  if (arguments.player.empty() && arguments.replay.empty()) arguments.player = players().front().name;
  if (!arguments.level.empty()) return run_below_tiles(arguments);
  if (arguments.machine_code) throw UserError("--machine-code: needs --level instruction");
  const auto threads = limit_threads(arguments.threads);
  Outputs outputs(arguments.output);
  std::optional<OutputFile> save;
  if (!arguments.save.empty()) save.emplace(arguments.save, "--save");
  const RunInput run_input = load_run_input(single_source(arguments.run_input));
  const PlayResult result = with_place(run_input.place, [&] {
    require_few_operations(run_input.schedule, 1, arguments.max_operations, "take larger tiles, ");
    return play_run_input(arguments, run_input);
  });
  const Record record = record_of(run_input, static_cast<std::uint64_t>(arguments.seed.value_or(1)));
  const Answered answered = verdict_of(run_input, result, *record.seed);
  print_play(outputs, arguments, run_input, result, answered);
  outputs.csv(with_record(moves_table(result, result.moves.size()), record));
  if (arguments.output.json) outputs.json(play_json(arguments, result, answered, record));
  if (save) save->commit(schedule_to_json(result.found) + '\n');
  return 0;
}

}  // namespace

Run add_play(CLI::App& program, const Workload& workload) {
  auto options = std::make_shared<PlayArguments>();
  CLI::App& command = *program.add_subcommand(
      "play", "Search for a faster order of a schedule's operations, by a game of legal moves");
  add_run_input_options(command, workload, options->run_input);
  std::string names;
  for (const Player& player : players()) {
    names += fmt::format("{}{}: {}", names.empty() ? "" : "; ", player.name, player.summary);
  }
  command
      .add_option("--player", options->player,
                  fmt::format("Player (default: {}). {}; {}: learns, only in Python", players().front().name,
                              names, kLearner))
      ->type_name("NAME");
  add_integer(command, "--moves", options->moves, "Moves to evaluate (default: 1000)", 1, kMostMoves);
  command
      .add_option("--replay", options->replay, "Make the moves of this file instead, from an earlier --json")
      ->type_name("FILE.json");
  add_integer(command, "--draws", options->draws,
              "Pairs of runs with random shares of full links that judge the result (default: 16)", 0,
              kMostDraws);
  command.add_flag("--execute", options->executes,
                   "Also check every position, and execute it on random numbers; for small problems");
  command
      .add_option("--level", options->level,
                  "Play on the K steps of kernels instead of tiles: instruction (docs/levels.md)")
      ->type_name("NAME");
  command.add_flag("--machine-code", options->machine_code,
                   "Play the K steps by rules of machine code: no move past a barrier, stall windows");
  add_seed_option(command, options->seed);
  add_threads_option(command, options->threads);
  add_max_operations_option(command, options->max_operations);
  add_output_options(command, options->output);
  command.add_option("--save", options->save, "Write the schedule that was found")
      ->type_name("FILE.json")
      ->group(kOutputGroup);
  command.footer(
      "docs/play.md explains moves, masks and gains. Ctrl-C ends the game with the best so far.\n\n"
      "Examples:\n"
      "  tritax play --pattern fused-sequential -M 4096 -N 8192 -K 8192 --machine h100-4 --gpus 2 --moves "
      "10000\n"
      "  tritax play scenarios/handwritten.json --machine mi300x-8 --player greedy --save found.json\n"
      "  tritax play --workload gemm -M 4096 -N 4096 -K 4096 --machine mi300x-8 --level instruction\n");
  return [options] { return run_play(*options); };
}

}  // namespace tritax::cli
