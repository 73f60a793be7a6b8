#include "cli/levels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/record.hpp"
#include "cli/terminal.hpp"
#include "model/core/error.hpp"
#include "model/cost/kernel_costs.hpp"
#include "model/parts/levels/k_step_of_tile.hpp"
#include "model/parts/levels/schedule_levels.hpp"

namespace tritax::cli {

namespace {

using LevelJson = nlohmann::ordered_json;

std::string tile_name(const KernelLevels& kernel) {
  return fmt::format("{}x{}x{}", kernel.tile.m, kernel.tile.n, kernel.tile.k);
}

std::string kernel_heading(const KernelLevels& kernel) {
  return fmt::format("{}: {} of {} by {} waves, {}, {}", kernel.kernel, tile_name(kernel),
                     name_of(kernel.dtype), kernel.tile.waves,
                     kPipelineNames[static_cast<std::size_t>(kernel.tile.pipeline)],
                     kKernelProfileNames[static_cast<std::size_t>(kernel.profile)]);
}

// Cycles of a K step, level by level.
struct Costs {
  LevelCost tile;
  LevelCost wave;
};

Costs costs_of(const Machine& machine, const KernelLevels& kernel) {
  const KernelCosts profile = costs(machine, kernel.profile);
  return {tile_cost(machine.gpu, profile, *kernel.levels), wave_cost(machine.gpu, profile, *kernel.levels)};
}

Table wave_table(const Levels& levels) {
  Table table{{{"product", "product"},
               {"waves", "waves"},
               {"wave_tile", "tile of a wave"},
               {"instruction", "instruction"},
               {"instructions", "instructions per step"},
               {"useful_percent", "useful", "%"}},
              {}};
  for (const WaveProduct& product : levels.products) {
    const std::string groups =
        levels.waves_in_group > 1 ? fmt::format(" groups of {}", levels.waves_in_group) : "";
    table.add({std::string(product.name),
               fmt::format("{} x {}{}", levels.waves.waves_m, levels.waves.waves_n, groups),
               fmt::format("{}x{}x{}", product.m, product.n, product.k),
               fmt::format("{} {}x{}x{}", product.instruction.name, product.instruction.m,
                           product.instruction.n, product.instruction.k),
               static_cast<std::int64_t>(product.instructions()), 100 * product.flops_share()});
  }
  return table;
}

std::string use_text(const Gpu& gpu, const Levels& levels) {
  const RegisterUse& use = levels.registers;
  const double registers =
      std::min(gpu.registers_per_thread_max,
               std::floor(gpu.registers_per_cu / (levels.tile.waves * gpu.lanes_per_wave)));
  std::string text = fmt::format(
      "Operands come {}, requested {} {} ahead. A thread uses {} of {:.0f} registers: {} accumulators, {} "
      "fragments, {} in flight to LDS, {} others. ",
      kFeedNames[static_cast<std::size_t>(levels.feed)], levels.prefetch_distance,
      levels.prefetch_distance == 1 ? "stage" : "stages", use.total(), registers, use.accumulators,
      use.fragments, use.in_flight, use.others);
  if (levels.lds_bytes == 0) return text + "Nothing is in LDS.";
  return text + fmt::format("LDS holds {} {} of operands and uses {} of {:.0f} bytes.", levels.stages,
                            levels.stages == 1 ? "stage" : "stages", levels.lds_bytes,
                            gpu.lds_bytes_per_workgroup_max);
}

Table cost_table(const Levels& levels, const Costs& costs, const StepTime* listed) {
  Table table{{{"level", "level"},
               {"clk", "a K step takes", "cycles"},
               {"flop_per_clk", "useful", "flop/clk"},
               {"bound", "what takes longest"}},
              {}};
  table.add({std::string("tile"), costs.tile.clk, levels.flops() / costs.tile.clk, costs.tile.bound});
  table.add({std::string("wave"), costs.wave.clk, levels.flops() / costs.wave.clk, costs.wave.bound});
  if (listed != nullptr) {
    table.add({std::string("instruction"), listed->cycles, levels.flops() / listed->cycles, listed->bound});
  }
  return table;
}

Table instruction_table(const KStep& step, const StepTime& time) {
  Table table{{{"kind", "instructions"},
               {"count", "a wave"},
               {"unit", "unit"},
               {"unit_clk", "unit is busy", "cycles"},
               {"share_percent", "of the step", "%"}},
              {}};
  for (std::size_t kind = 0; kind < kStepKindNames.size(); ++kind) {
    std::int64_t count = 0, busy = 0;
    StepUnit unit = StepUnit::none;
    for (const StepInstruction& one : step.instructions) {
      if (one.kind != static_cast<InstructionKind>(kind)) continue;
      ++count;
      busy += std::int64_t{one.busy} * step.waves_per_simd;
      unit = one.unit;
    }
    if (count == 0) continue;
    table.add({std::string(kStepKindNames[kind]), count,
               std::string(kStepUnitNames[static_cast<std::size_t>(unit)]), static_cast<double>(busy),
               100 * static_cast<double>(busy) / time.cycles});
  }
  return table;
}

LevelJson json_of_levels(const KernelLevels& kernel) {
  LevelJson row{{"kernel", kernel.kernel},
                {"profile", kKernelProfileNames[static_cast<std::size_t>(kernel.profile)]},
                {"dtype", name_of(kernel.dtype)},
                {"tile", {kernel.tile.m, kernel.tile.n, kernel.tile.k}},
                {"waves", kernel.tile.waves},
                {"pipeline", kPipelineNames[static_cast<std::size_t>(kernel.tile.pipeline)]}};
  if (!kernel.levels) {
    row["refused"] = kernel.refusal;
    return row;
  }
  const Levels& levels = *kernel.levels;
  row["wave_grid"] = {levels.waves.waves_m, levels.waves.waves_n};
  row["waves_in_group"] = levels.waves_in_group;
  row["feed"] = kFeedNames[static_cast<std::size_t>(levels.feed)];
  row["prefetch_distance"] = levels.prefetch_distance;
  row["stages"] = levels.stages;
  row["lds_bytes"] = levels.lds_bytes;
  row["registers"] = {{"accumulators", levels.registers.accumulators},
                      {"fragments", levels.registers.fragments},
                      {"in_flight", levels.registers.in_flight},
                      {"others", levels.registers.others}};
  for (const WaveProduct& product : levels.products) {
    const MatrixInstruction& instruction = product.instruction;
    row["products"].push_back({{"product", product.name},
                               {"wave_tile", {product.m, product.n, product.k}},
                               {"instruction", instruction.name},
                               {"shape", {instruction.m, instruction.n, instruction.k}},
                               {"instructions", product.instructions()},
                               {"interval_clk", product.clk_each},
                               {"useful", product.flops_share()}});
  }
  return row;
}

void add_step_json(const KStep& step, const StepOrder& order, const StepTime& time, double written_clk,
                   LevelJson& row) {
  LevelJson names = LevelJson::array(), critical = LevelJson::array();
  for (const std::int32_t index : order)
    names.push_back(step.instructions[static_cast<std::size_t>(index)].name);
  for (const std::int32_t index : time.critical) {
    critical.push_back(step.instructions[static_cast<std::size_t>(index)].name);
  }
  row["k_step"] = {{"cycles", time.cycles},
                   {"written_cycles", written_clk},
                   {"bound", time.bound},
                   {"critical", std::move(critical)},
                   {"order", std::move(names)}};
}

// The list schedule of a step that begins the next turn early: a matmul with its first reads, attention with
// its scores.
struct Ahead {
  std::string text;
  std::string key;
  std::optional<double> cycles;
};

Ahead ahead_of(const Machine& machine, const Levels& levels) {
  const bool attends = levels.waves.loop == TileLoop::attention;
  Ahead ahead;
  ahead.key = attends ? "scores_ahead_cycles" : "reads_ahead_cycles";
  KStepOptions options;
  (attends ? options.scores_ahead : options.reads_ahead) = true;
  try {
    const KStep step = k_step_of(machine.gpu, levels, options);
    ahead.cycles = StepBoard(step).cycles(listed_order(step));
  } catch (const UserError& error) {
    ahead.text = fmt::format("this turn cannot multiply the scores of the next turn: {}", error.what());
    return ahead;
  }
  ahead.text = fmt::format("{:.1f} if each turn {} of the next", *ahead.cycles,
                           attends ? "multiplies the scores" : "reads the first fragments");
  return ahead;
}

void show_kernel(const Machine& machine, const KernelLevels& kernel, Level level, Outputs& outputs,
                 Table& rows, LevelJson& all) {
  outputs.print(styled(kernel_heading(kernel), Style::bold) + "\n");
  LevelJson row = json_of_levels(kernel);
  if (!kernel.levels) {
    outputs.print(wrapped("No levels: " + kernel.refusal) + "\n");
    all.push_back(std::move(row));
    return;
  }
  const Levels& levels = *kernel.levels;
  const Costs costs = costs_of(machine, kernel);
  row["tile_clk"] = costs.tile.clk;
  row["wave_clk"] = costs.wave.clk;
  outputs.print(wave_table(levels));
  outputs.print("\n" + wrapped(use_text(machine.gpu, levels)) + "\n");
  const bool scheduled = level == Level::instruction;
  StepTime time;
  if (scheduled) {
    const KStep step = k_step_of(machine.gpu, levels);
    const StepOrder order = listed_order(step);
    time = StepBoard(step).evaluate(order);
    const double written = StepBoard(step).cycles(written_order(step));
    const Ahead ahead = ahead_of(machine, levels);
    outputs.print(instruction_table(step, time));
    outputs.print("\n" +
                  wrapped(fmt::format("A K step takes {:.1f} cycles in list-schedule order in the steady "
                                      "state, {:.1f} as written, and {}. It is bound by {}.",
                                      time.cycles, written, ahead.text, time.bound)) +
                  "\n");
    add_step_json(step, order, time, written, row);
    if (ahead.cycles) row["k_step"][ahead.key] = *ahead.cycles;
  }
  const Table table = cost_table(levels, costs, scheduled ? &time : nullptr);
  outputs.print(table);
  outputs.print("\n");
  for (std::vector<Cell> cells : table.rows) {
    cells.insert(cells.begin(), {kernel.kernel, tile_name(kernel)});
    rows.add(std::move(cells));
  }
  all.push_back(std::move(row));
}

}  // namespace

Level parse_level(std::string_view name) {
  if (name == "wave") return Level::wave;
  if (name == "instruction") return Level::instruction;
  throw UserError(fmt::format("--level: '{}' is not a level below the tile; give wave or instruction", name));
}

void show_levels(const RunInput& run_input, Level level, Outputs& outputs) {
  const std::vector<KernelLevels> kernels = levels_of(run_input.schedule, run_input.machine);
  if (kernels.empty()) {
    throw UserError(run_input.place + "--level: no kernel multiplies, so there is no level below the tiles");
  }
  outputs.print(styled(run_input.title, Style::bold) + "\n\n");
  Table rows{{{"kernel", "kernel"},
              {"tile", "tile"},
              {"level", "level"},
              {"clk", "a K step takes", "cycles"},
              {"flop_per_clk", "useful", "flop/clk"},
              {"bound", "what takes longest"}},
             {}};
  LevelJson all = LevelJson::array();
  for (const KernelLevels& kernel : kernels)
    show_kernel(run_input.machine, kernel, level, outputs, rows, all);
  const Record record = record_of(run_input);
  outputs.csv(with_record(rows, record));
  LevelJson result{{"schema", "tritax.levels/1"}, {"id", run_input.id}, {"kernels", std::move(all)}};
  add_record(result, record);
  outputs.json(result);
}

}  // namespace tritax::cli
