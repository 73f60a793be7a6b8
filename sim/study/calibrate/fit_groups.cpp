#include "sim/study/calibrate/fit_groups.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "model/machine/check_machine.hpp"
#include "sim/study/calibrate/watch.hpp"

namespace tritax {

namespace {

// Numbers of workgroups that fill no shared resource, and that fill it.
constexpr std::int64_t kFew = 4;
constexpr std::int64_t kMany = 32;
constexpr double kBelow = 0.8;
constexpr double kNoLimit = 1e9;            // GB/s
constexpr std::int64_t kDataThreads = 256;  // of a data kernel of the patterns

bool is_copy(const MicrobenchRow& row) { return row.name == "copy-out" || row.name == "copy-in"; }

// Rows that move tiles as the patterns do.
bool in_matrix(const MicrobenchRow& row) { return row.group == "matrix" || row.group == "stores"; }

bool is_one_pair(const MicrobenchRow& row) {
  return (row.group == "remote" || row.group == "stores") && row.text("traffic") == "one-pair";
}

// Traffic between all GPUs of the node at once, in an order that spreads the load. Stores count in the layout
// of a matrix, as patterns move tiles; long contiguous streams to several peers get up to 12 % more.
bool is_everybody(const MicrobenchRow& row, const Machine& machine) {
  const bool loads = row.name == "load" || row.name == "copy-in";
  return (loads ? row.group == "remote" : in_matrix(row)) && row.text("traffic") == "all-rotated" &&
         row.number("gpus") == machine.gpus_per_node;
}

// Moves as the patterns do, by enough workgroups to fill a link. Adjacent tiles do not count: the rate of a
// link for them depends on how far apart the workgroups write.
bool saturates(const MicrobenchRow& row) {
  return fills_links(row) && (in_matrix(row) || row.name != "tile-store");
}

// The terms of the cost law of a tile (model/cost/matmul_cost.hpp) for one row.
struct TileTime {
  double flop = 0;   // of one K step
  double bytes = 0;  // per K step, of operands
  double clk = 0;    // per K step, measured
};

double light_clock_ghz(const Machine& machine) {
  const double light = machine.gpu.rate(DType::bf16).light_clock_ghz;
  return light > 0 ? light : machine.gpu.boost_clock_ghz;
}

TileTime tile_time(const Observation& row, const Machine& machine) {
  constexpr double kStepBytes = 128;  // depth of a K step, in bytes of an element
  const auto [m, n] = tile_of(row.row->name);
  constexpr double kElement = bytes_of(DType::bf16);
  const double depth = kStepBytes / kElement;
  const double steps = static_cast<double>(row.row->number("k")) / depth;
  return {2 * m * n * depth, (m + n) * kStepBytes, row.value * 1e3 / steps * light_clock_ghz(machine)};
}

// Least squares line through (bytes, clk): clk = overhead + bytes / port.
struct OperandLine {
  double overhead = 0;
  double port = 0;
};

OperandLine operand_line(const std::vector<TileTime>& tiles) {
  double x = 0, y = 0, xx = 0, xy = 0;
  const auto n = static_cast<double>(tiles.size());
  for (const TileTime& tile : tiles) {
    x += tile.bytes / n;
    y += tile.clk / n;
    xx += tile.bytes * tile.bytes / n;
    xy += tile.bytes * tile.clk / n;
  }
  const double slope = (xy - x * y) / (xx - x * x);
  return {y - slope * x, 1 / slope};
}

// The law is a maximum, so an unknown that does not bind at the start would never move. The tile nearest to
// the matrix cores' bound gives the efficiency; the operands of the tiles well above the bound give the other
// two.
void start_matmul(Machine& machine, const std::vector<Observation>& rows) {
  constexpr double kWellAbove = 1.04;
  machine.gpu.l2_gb_per_s = kNoLimit;
  MatrixRate& rate = machine.gpu.matrix[static_cast<std::size_t>(DType::bf16)];
  std::int64_t deepest = 0;
  for (const Observation& row : rows) {
    if (row.row->group == "matmul") deepest = std::max(deepest, row.row->number("k"));
  }
  std::vector<TileTime> tiles;
  for (const Observation& row : rows) {
    if (row.row->group == "matmul" && row.row->number("k") == deepest) {
      tiles.push_back(tile_time(row, machine));
    }
  }
  if (tiles.empty()) return;
  double flop_per_clk = 0;
  for (const TileTime& tile : tiles) flop_per_clk = std::max(flop_per_clk, tile.flop / tile.clk);
  rate.issue_efficiency = std::min(flop_per_clk / rate.flop_per_clk_per_cu, 1.0);
  std::erase_if(tiles,
                [&](const TileTime& tile) { return tile.clk < kWellAbove * tile.flop / flop_per_clk; });
  if (tiles.size() < 2) return;
  const OperandLine line = operand_line(tiles);
  if (line.overhead <= 0 || !(line.port > 0)) return;
  machine.gpu.cu_l2_bytes_per_clk = line.port;
  machine.interpreter.matmul_step_clk = line.overhead;
}

// Tiles of 64 columns: the least step, which step_group() fits, paces their steps; for 256×64, an effect
// without a parameter does.
bool has_least_steps(const std::string& tile) { return tile_of(tile).second <= 64; }

// Tiles and their stores. Fitted together, because a store follows every matmul of these rows.
FitGroup tile_group(const Machine& machine) {
  FitGroup group;
  Unknown efficiency{{}, 0, "one share for all dtypes", ""};
  for (const DType dtype : {DType::bf16, DType::fp16, DType::fp8}) {
    if (machine.gpu.rate(dtype).flop_per_clk_per_cu <= 0) continue;
    efficiency.keys.push_back(fmt::format("gpu.matrix.{}.issue_efficiency", name_of(dtype)));
  }
  if (!efficiency.keys.empty()) group.unknowns.push_back(efficiency);
  group.unknowns.push_back({{"gpu.cu_l2_bandwidth"}, 0, "", ""});
  group.unknowns.push_back({{"gpu.matmul_step_overhead"}, 100, "", ""});
  group.unknowns.push_back({{"gpu.matmul_op_time"}, 500, "", ""});
  group.unknowns.push_back({{"gpu.cu_store_bandwidth"}, 0, "", ""});
  if (machine.gpus_per_node > 1) group.unknowns.push_back({{"gpu.cu_remote_store_bandwidth"}, 0, "", ""});
  group.unknowns.push_back({{"gpu.store_op_time"}, 300, "", ""});
  if (machine.gpu.async_tile_store) {
    group.unknowns.push_back({{"gpu.stage_op_time"}, 500, "", "staging"});
    group.unknowns.push_back({{"gpu.stage_bandwidth"}, 100, "", "staging"});
  }
  group.uses = [](const MicrobenchRow& row, const Machine& node) {
    const std::int64_t workgroups = row.number("workgroups");
    const bool alone_or_all = workgroups == 1 || workgroups == node.gpu.cu_count();
    if (row.group == "matmul") return row.text("dtype") == "bf16" && alone_or_all;
    if (row.group == "staging") return workgroups == 1 && !has_least_steps(row.name);
    const bool one_way = row.group == "local" || is_one_pair(row);
    return row.name == "tile-store" && row.group != "stores" && one_way && workgroups <= kFew;
  };
  group.prepare = start_matmul;
  return group;
}

// The path of fp8 results through the staging area: four of them make a word, and lanes have two.
FitGroup fp8_staging_group() {
  FitGroup group;
  group.unknowns = {{{"gpu.matrix.fp8.stage_bandwidth"}, 20, "", "fp8-staging"}};
  group.uses = [](const MicrobenchRow& row, const Machine&) {
    return row.group == "fp8-staging" && row.number("workgroups") == 1;
  };
  return group;
}

// Copies behind a wait by too few workgroups to fill a link.
bool is_guarded_alone(const MicrobenchRow& row) {
  return row.group == "guarded" && row.number("workgroups") <= kFew;
}

// Loads and copies behind each other by a data kernel.
FitGroup copy_group() {
  FitGroup group;
  group.unknowns = {{{"gpu.copy_op_time"}, 500, "", ""},
                    {{"gpu.cu_load_bandwidth"}, 0, "", ""},
                    {{"gpu.accumulate_bandwidth"}, 100, "", ""},
                    {{"gpu.cu_remote_load_bandwidth"}, 0, "", ""},
                    {{"fabric.load_round_trip"}, 0, "", ""}};
  group.uses = [](const MicrobenchRow& row, const Machine&) {
    if (row.group == "tile-size") {
      const bool copies = row.name == "copy-out" && row.text("kernel") == "data";
      return row.name == "load" || (copies && row.text("traffic") == "one-pair");
    }
    const bool loads = row.name == "load" || (row.name == "copy-in" && is_one_pair(row));
    return loads && (row.group == "local" || is_one_pair(row)) && row.number("threads") == kDataThreads &&
           row.number("workgroups") <= kFew;
  };
  return group;
}

// Below so many rows of 128 elements of 2 bytes, 16 KB, the time of a copy behind a wait hardly falls.
constexpr std::int64_t kLeastCopyRows = 64;

// Copies that each follow a wait. Tiles of 16 KB are faster, tiles of 64 KB slower than copies behind each
// other.
FitGroup guarded_group() {
  FitGroup group;
  group.unknowns = {{{"gpu.guarded_copy_time"}, 500, "", "guarded"},
                    {{"gpu.guarded_copy_bandwidth"}, 40, "", "guarded"}};
  group.uses = [](const MicrobenchRow& row, const Machine&) {
    return is_guarded_alone(row) && row.text("kernel") == "data" && row.number("rows") >= kLeastCopyRows;
  };
  return group;
}

// Smaller copies behind a wait.
FitGroup least_copy_group() {
  FitGroup group;
  group.unknowns = {{{"gpu.guarded_copy_least_time"}, 1200, "", "guarded"}};
  group.uses = [](const MicrobenchRow& row, const Machine&) {
    return is_guarded_alone(row) && row.text("kernel") == "data" && row.number("rows") < kLeastCopyRows;
  };
  return group;
}

// Copies behind a wait by workgroups of a matmul kernel.
FitGroup specialised_group() {
  FitGroup group;
  group.unknowns = {{{"gpu.specialised_copy_efficiency"}, 0.9, "", ""}};
  group.uses = [](const MicrobenchRow& row, const Machine&) {
    return is_guarded_alone(row) && row.text("kernel") == "matmul";
  };
  return group;
}

// Copies behind a wait beside products.
FitGroup beside_group() {
  FitGroup group;
  group.unknowns = {{{"gpu.busy_copy_time"}, 300, "", "beside"}};
  group.uses = [](const MicrobenchRow& row, const Machine&) {
    return row.group == "beside" && row.text("kernel") == "data";
  };
  return group;
}

FitGroup atomic_group() {
  FitGroup group;
  group.unknowns = {{{"gpu.cu_remote_atomic_bandwidth"}, 0, "", ""}};
  group.uses = [](const MicrobenchRow& row, const Machine&) {
    return row.name == "atomic-add" && is_one_pair(row) && row.number("threads") == kDataThreads &&
           row.number("workgroups") <= kFew;
  };
  return group;
}

// Tiles whose operands come from memory, on all compute units.
bool is_stream(const MicrobenchRow& row, const Machine& machine) {
  return row.group == "stream" && row.number("workgroups") == machine.gpu.cu_count();
}

FitGroup memory_group() {
  FitGroup group;
  group.unknowns = {{{"gpu.hbm_bandwidth"}, 0, "", ""}, {{"gpu.hbm_write_bandwidth"}, 3000, "", ""}};
  group.uses = [](const MicrobenchRow& row, const Machine& machine) {
    if (is_stream(row, machine)) return row.number("flush") == 0;
    const bool moves = row.name == "tile-store" || (is_copy(row) && row.number("threads") == kDataThreads);
    return row.group == "local" && moves && row.number("workgroups") * 2 > machine.gpu.cu_count();
  };
  // The start is below the seen rates, so that the parameter binds.
  group.prepare = [](Machine& machine, const std::vector<Observation>& rows) {
    double seen = 0;
    for (const Observation& row : rows) {
      if (row.row->group == "local") seen = std::max(seen, row.value * (is_copy(*row.row) ? 2 : 1));
    }
    if (seen > 0) machine.gpu.hbm_gb_per_s = machine.gpu.hbm_write_gb_per_s = kBelow * seen;
  };
  return group;
}

// Tiles whose operands come from memory, with too few workgroups to fill the memory.
FitGroup stage_group() {
  FitGroup group;
  group.unknowns = {{{"gpu.stage_latency"}, 3000, "", ""}};
  group.uses = [](const MicrobenchRow& row, const Machine& machine) {
    return row.group == "stream" && row.number("flush") == 0 &&
           row.number("workgroups") * 2 < machine.gpu.cu_count();
  };
  return group;
}

// Steps that need few bytes, of kernels with a copy engine.
FitGroup step_group() {
  FitGroup group;
  group.unknowns = {{{"gpu.matmul_least_step"}, 0, "", ""}};
  group.uses = [](const MicrobenchRow& row, const Machine&) {
    return row.group == "step" && row.name == "64x64";
  };
  group.prepare = [](Machine& machine, const std::vector<Observation>& rows) {
    for (const Observation& row : rows) {
      machine.interpreter.matmul_least_step_clk =
          std::max(machine.interpreter.matmul_least_step_clk, tile_time(row, machine).clk);
    }
  };
  return group;
}

void set_ports(Fabric& fabric, double gb_per_s) {
  fabric.store_egress_gb_per_s = fabric.store_ingress_gb_per_s = gb_per_s;
  fabric.load_egress_gb_per_s = fabric.load_ingress_gb_per_s = gb_per_s;
}

// On a switch, a GPU's ports and its links limit the same traffic: each is fitted with the other lifted,
// except for stores, whose links also give the rate of few workgroups.
void lift_ports(Machine& machine, const std::vector<Observation>&) {
  set_ports(machine.fabric, raw_gpu_gb_per_s(machine));
}

double mean_gb_per_s(const std::vector<Observation>& rows) {
  double sum = 0;
  for (const Observation& row : rows) sum += row.value;
  return sum / static_cast<double>(rows.size());
}

// Ports start at the mean rate of their rows, near the end of the fit.
void lift_links(Machine& machine, const std::vector<Observation>& rows) {
  machine.fabric.load_efficiency = 1;
  if (!rows.empty()) set_ports(machine.fabric, std::min(mean_gb_per_s(rows), raw_gpu_gb_per_s(machine)));
}

double squared_errors(const Machine& machine, const std::vector<Observation>& rows) {
  std::vector<double> squares(rows.size());
  tbb::parallel_for(std::size_t{0}, rows.size(), [&](std::size_t r) {
    const double error =
        std::log(simulated_time_us(rows[r].bench->schedule(), rows[r], machine) / rows[r].time_us);
    squares[r] = error * error;
  });
  return std::accumulate(squares.begin(), squares.end(), 0.0);
}

// Links keep their fitted values: few workgroups do not fill a link that is the limit, but reach the port's
// rate if that is lower (sim/crowding.hpp). So from ports below the links the fit does not find ports above
// them.
void start_store_ports(Machine& machine, const std::vector<Observation>& rows) {
  if (rows.empty()) return;
  Machine open = machine;
  lift_ports(open, rows);
  set_ports(machine.fabric, std::min(mean_gb_per_s(rows), raw_gpu_gb_per_s(machine)));
  if (squared_errors(open, rows) < squared_errors(machine, rows)) machine = open;
}

// One pair of GPUs; `names` are the operations.
FitGroup link_group(const std::string& key, std::vector<std::string> names) {
  FitGroup group;
  group.unknowns = {{{key}, 0, "", ""}};
  group.uses = [names = std::move(names)](const MicrobenchRow& row, const Machine&) {
    return is_one_pair(row) && saturates(row) &&
           std::find(names.begin(), names.end(), row.name) != names.end();
  };
  group.prepare = lift_ports;
  return group;
}

// More workgroups fill the link better; if the rows do not show this, the share is 0.
FitGroup store_link_group() {
  FitGroup group = link_group("fabric.store_efficiency", {"store", "copy-out", "tile-store"});
  group.unknowns.push_back({{"fabric.store_idle_share"}, 0, "", "", true});  // of K lanes; fits K - 1
  group.prepare = [](Machine& machine, const std::vector<Observation>& rows) {
    lift_ports(machine, rows);
    machine.fabric.store_idle_share = 0.5;
  };
  return group;
}

FitGroup port_group(std::vector<std::string> keys, std::vector<std::string> names,
                    decltype(FitGroup::prepare) prepare) {
  FitGroup group;
  group.unknowns = {{std::move(keys), 0,
                     "every GPU sends as much as it receives: egress and ingress cannot be told apart", ""}};
  group.uses = [names = std::move(names)](const MicrobenchRow& row, const Machine& machine) {
    return is_everybody(row, machine) && saturates(row) &&
           std::find(names.begin(), names.end(), row.name) != names.end();
  };
  group.prepare = std::move(prepare);
  return group;
}

// One parameter: the time of a signal or a wait alone, for a flag of one GPU or of a peer.
FitGroup flag_cost_group(const std::string& key, const std::string& name, std::vector<std::string> protocols,
                         std::vector<int> gpus, double start_ns = 100) {
  FitGroup group;
  group.unknowns = {{{key}, start_ns, "", ""}};
  group.uses = [=](const MicrobenchRow& row, const Machine&) {
    return row.group == "flag-cost" && row.name == name &&
           std::find(gpus.begin(), gpus.end(), row.number("gpus")) != gpus.end() &&
           std::find(protocols.begin(), protocols.end(), row.text("protocol")) != protocols.end();
  };
  return group;
}

}  // namespace

bool fills_links(const MicrobenchRow& row) {
  if (row.number("workgroups") < kMany) return false;
  return in_matrix(row) ||
         (row.group == "remote" && (row.name == "tile-store" || row.number("threads") == kDataThreads));
}

FitGroup l2_group() {
  FitGroup group;
  group.unknowns = {{{"gpu.l2_bandwidth"}, 0, "", ""}};
  group.uses = [](const MicrobenchRow& row, const Machine& machine) {
    return row.group == "matmul" && row.text("dtype") == "bf16" &&
           row.number("workgroups") == machine.gpu.cu_count();
  };
  group.prepare = [](Machine& machine, const std::vector<Observation>& rows) {
    double seen = 0;
    for (const Observation& row : rows) {
      const TileTime time = tile_time(row, machine);
      const double workgroups = static_cast<double>(row.row->number("workgroups"));
      seen = std::max(seen, time.bytes / time.clk * light_clock_ghz(machine) * workgroups);
    }
    if (seen > 0) machine.gpu.l2_gb_per_s = kBelow * seen / machine.gpu.xcds;
  };
  return group;
}

std::vector<FitGroup> device_groups(const Machine& machine) {
  // Flags come first, because some rows of copies have waits. A release at system scope, and one with an
  // atomic, takes time without a parameter.
  std::vector<FitGroup> groups{
      flag_cost_group("gpu.release_time", "signal alone", {"load-store"}, {1}),
      flag_cost_group("gpu.poll_load_time", "wait for a set flag", {"load-store", "exchange"}, {1, 2}),
      flag_cost_group("gpu.poll_atomic_time", "wait for a set flag", {"compare-and-swap"}, {1, 2}),
      tile_group(machine),
      guarded_group(),
      copy_group(),
      least_copy_group(),
      specialised_group(),
      atomic_group(),
      memory_group(),
      stage_group(),
      l2_group()};
  if (machine.gpu.async_tile_copy) groups.push_back(step_group());
  if (machine.gpu.async_tile_store && machine.gpu.rate(DType::fp8).flop_per_clk_per_cu > 0) {
    groups.push_back(fp8_staging_group());
  }
  if (machine.gpus_per_node > 1) {
    // Starts where the round trip decides the rows: a round trip shorter than a release has no effect.
    constexpr double kLongerThanARelease = 5000;  // ns
    groups.push_back(flag_cost_group("fabric.signal_round_trip", "signal alone", {"load-store"}, {2},
                                     kLongerThanARelease));
    groups.push_back(store_link_group());
    groups.push_back(link_group("fabric.load_efficiency", {"load", "copy-in"}));
    groups.push_back(link_group("fabric.atomic_efficiency", {"atomic-add"}));
    groups.push_back(port_group({"fabric.store_egress", "fabric.store_ingress"}, {"copy-out", "tile-store"},
                                start_store_ports));
    groups.push_back(
        port_group({"fabric.load_ingress", "fabric.load_egress"}, {"load", "copy-in"}, lift_links));
    groups.push_back(beside_group());
  }
  return groups;
}

}  // namespace tritax
