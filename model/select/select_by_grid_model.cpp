#include "model/select/select_by_grid_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "model/core/error.hpp"
#include "model/schedule/json_reader.hpp"
#include "model/select/select_by_tree.hpp"
#include "model/select/selectors.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kMostGridRuns = std::int64_t{1} << 40;

std::int64_t steps_in(std::int64_t depth, std::int64_t step) { return (depth + step - 1) / step; }

// The operands of all matmuls, and the shares of the earlier workgroups.
struct SharedSteps {
  const Op* first = nullptr;
  std::int64_t depth = 0;  // K
  std::int64_t step = 0;   // per iteration
  std::set<std::pair<std::int32_t, std::int32_t>> tiles;
  std::vector<std::int64_t> shares;
};

// False if the workgroup has another product, or a range with a gap.
bool add_share_of(const Schedule& schedule, const Workgroup& workgroup, SharedSteps& steps) {
  std::int64_t share = 0;
  const Op* before = nullptr;
  for (std::uint32_t i = 0; i < workgroup.op_count; ++i) {
    const Op& op = schedule.ops[workgroup.first_op + i];
    if (op.kind != OpKind::matmul) continue;
    if (steps.first == nullptr) {
      steps.first = &op;
      steps.depth = schedule.buffers[static_cast<std::size_t>(op.src_buffer)].cols;
    }
    if (op.src_buffer != steps.first->src_buffer || op.b_buffer != steps.first->b_buffer) return false;
    if (op.k_begin % steps.step != 0 || (op.k_end % steps.step != 0 && op.k_end != steps.depth)) return false;
    if (before != nullptr && (op.k_begin != 0 || before->k_end != steps.depth)) return false;
    share += steps_in(op.k_end - op.k_begin, steps.step);
    steps.tiles.emplace(op.rect.row, op.rect.col);
    before = &op;
  }
  if (share > 0) steps.shares.push_back(share);
  return true;
}

void require_models_of(const GridModels& models, const Problem& problem, const std::string& origin) {
  if (is_called(*problem.workload, models.workload)) return;
  throw UserError(fmt::format("{}: it has grid models of {}, and the problem is of {}", origin,
                              models.workload, problem.workload->name));
}

// Nothing if the option cannot be built, or has another dtype.
std::optional<GridPick> grid_pick(const FittedGridModel& model, const Choices& choices,
                                  const std::string& origin) {
  const Problem& problem = *choices.problem;
  const PatternOption option = parse_pattern_option(*problem.workload, model.option, origin + ": ");
  const auto row = std::find_if(choices.patterns.begin(), choices.patterns.end(),
                                [&](const PatternChoices& one) { return one.pattern == option.pattern; });
  if (row == choices.patterns.end() || !row->space || !option.pattern->uses(kGridKnob)) return std::nullopt;
  for (std::size_t c = 0; c < option.knobs.columns(); ++c) {  // the constants hold for no other kernel
    const bool both = option.knobs.given_at(c) && row->space->base.given_at(c);
    if (both && option.knobs.at(c) != row->space->base.at(c)) return std::nullopt;
  }
  const Values wanted = Values(problem.workload->knobs).with(option.knobs).with(row->space->base);
  try {
    Values knobs = resolved_knobs(problem, *choices.machine, wanted);
    const std::optional<GridShares> shares =
        grid_shares_of(build_schedule(*option.pattern, problem, *choices.machine, knobs));
    if (!shares || shares->dtype != model.dtype) return std::nullopt;
    std::int64_t grid = shares->grid;
    if (!wanted.given(kGridKnob)) {
      const std::int64_t most =
          std::min<std::int64_t>(choices.machine->gpu.cu_count(), shares->tiles * shares->iterations);
      grid = best_grid(model.fit.model, shares->tiles, shares->iterations, most);
      knobs.assume(kGridKnob, grid);
    }
    const double time_ns = model.fit.model.time_ns(shares->tiles, shares->iterations, grid);
    return GridPick{{static_cast<std::size_t>(row - choices.patterns.begin()), std::move(knobs)}, time_ns};
  } catch (const UserError&) {  // the tile does not fit this machine or problem
    return std::nullopt;
  }
}

void select_by_grid_model(const GridModels& models, const std::string& origin, const Choices& choices,
                          Trials& trials) {
  std::vector<GridPick> picks = grid_picks(models, origin, choices);
  std::vector<Proposal> proposals;
  for (GridPick& pick : picks) proposals.push_back(std::move(pick.proposal));
  for (std::size_t p = 0; p < choices.patterns.size(); ++p) {
    const PatternChoices& row = choices.patterns[p];
    if (!row.space || row.pattern->name != choices.problem->workload->baseline) continue;
    proposals.push_back({p, resolved_knobs(*choices.problem, *choices.machine, row.space->base)});
  }
  const std::vector<Trial> outcomes = trials.evaluate(proposals);
  const auto built =
      std::count_if(outcomes.begin(), outcomes.begin() + static_cast<std::ptrdiff_t>(picks.size()),
                    [](const Trial& one) { return one.outcome != Outcome::refused; });
  if (built > 0) {
    trials.report(0, 0);
  } else {
    select_defaults(choices, trials);
  }
}

std::string why_of_grid_models(const GridModels& models, const std::string& origin, const Problem& problem) {
  require_models_of(models, problem, origin);
  std::int64_t runs = 0;
  for (const FittedGridModel& model : models.models) runs += model.runs;
  return fmt::format(
      "Grids are the fastest by {}: time(g) = a + b [peers > 1] + c iterations + d (peers - 1), fitted to {} "
      "runs on {}.",
      origin, runs, models.machine);
}

FittedGridModel read_fitted(const JsonValue& value) {
  static constexpr std::array<std::string_view, 9> keys{
      "option", "dtype", "runs", "a_ns", "b_ns", "c_ns", "d_ns", "median_error", "worst_error"};
  value.expect_object(keys);
  const auto any = [&](const char* key) {
    return value.at(key).number(std::numeric_limits<double>::lowest());
  };
  FittedGridModel fitted;
  fitted.option = value.at("option").string();
  fitted.dtype = static_cast<DType>(value.at("dtype").one_of(kDTypeNames));
  fitted.runs = value.at("runs").integer(1, kMostGridRuns);
  fitted.fit.model = {any("a_ns"), any("b_ns"), any("c_ns"), any("d_ns")};
  fitted.fit.median_error = value.at("median_error").number(0);
  fitted.fit.worst_error = value.at("worst_error").number(0);
  return fitted;
}

}  // namespace

std::optional<GridShares> grid_shares_of(const Schedule& schedule) {
  if (schedule.ranks != 1 || schedule.kernels.size() != 1) return std::nullopt;
  const Kernel& kernel = schedule.kernels.front();
  if (kernel.tile.k == 0 || !kernel.items.empty() || !all_resident(kernel.placement)) return std::nullopt;
  SharedSteps steps;
  steps.step = kernel.tile.k;
  for (const Workgroup& workgroup : kernel.workgroups) {
    if (!add_share_of(schedule, workgroup, steps)) return std::nullopt;
  }
  if (steps.shares.empty()) return std::nullopt;
  GridShares shares;
  shares.dtype = schedule.buffers[static_cast<std::size_t>(steps.first->src_buffer)].dtype;
  shares.tiles = static_cast<std::int64_t>(steps.tiles.size());
  shares.iterations = steps_in(steps.depth, steps.step);
  shares.grid = static_cast<std::int64_t>(steps.shares.size());
  std::int64_t all = 0;
  for (const std::int64_t share : steps.shares) all += share;
  const auto [least, most] = std::minmax_element(steps.shares.begin(), steps.shares.end());
  const bool even = *most - *least <= 1 && all == shares.tiles * shares.iterations;
  return even ? std::optional(shares) : std::nullopt;
}

std::string GridModels::to_json() const {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const FittedGridModel& one : models) {
    rows.push_back({{"option", one.option},
                    {"dtype", name_of(one.dtype)},
                    {"runs", one.runs},
                    {"a_ns", one.fit.model.a},
                    {"b_ns", one.fit.model.b},
                    {"c_ns", one.fit.model.c},
                    {"d_ns", one.fit.model.d},
                    {"median_error", one.fit.median_error},
                    {"worst_error", one.fit.worst_error}});
  }
  const nlohmann::ordered_json tree{
      {"schema", kGridModelSchema}, {"workload", workload}, {"machine", machine}, {"models", rows}};
  return tree.dump(1) + '\n';
}

GridModels GridModels::from_json(std::string_view text, const std::string& origin) {
  static constexpr std::array<std::string_view, 4> keys{"schema", "workload", "machine", "models"};
  static constexpr std::array<std::string_view, 1> schemas{kGridModelSchema};
  const nlohmann::json tree = parse_json(text, origin);
  const JsonValue root(tree, origin);
  root.expect_object(keys);
  root.at("schema").one_of(schemas);
  GridModels models;
  models.workload = root.at("workload").string();
  models.machine = root.at("machine").string();
  const JsonValue rows = root.at("models");
  rows.expect_array();
  if (rows.size() == 0) rows.refuse("give at least one model");
  for (std::size_t i = 0; i < rows.size(); ++i) models.models.push_back(read_fitted(rows.item(i)));
  return models;
}

std::vector<GridPick> grid_picks(const GridModels& models, const std::string& origin,
                                 const Choices& choices) {
  require_models_of(models, *choices.problem, origin);
  std::vector<GridPick> picks;
  for (const FittedGridModel& model : models.models) {
    if (std::optional<GridPick> pick = grid_pick(model, choices, origin)) picks.push_back(std::move(*pick));
  }
  std::stable_sort(picks.begin(), picks.end(),
                   [](const GridPick& a, const GridPick& b) { return a.model_ns < b.model_ns; });
  return picks;
}

Selector grid_model_selector(const GridModels& models, const std::string& origin) {
  return {"grid-model", "the grids that grid models find fastest, and the baseline",
          [&models, origin](const Choices& choices, Trials& trials) {
            select_by_grid_model(models, origin, choices, trials);
          },
          [&models, origin](const Problem& problem) { return why_of_grid_models(models, origin, problem); }};
}

}  // namespace tritax
