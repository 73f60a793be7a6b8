#include "sim/study/calibrate/direct.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "model/core/quantile.hpp"
#include "model/cost/link_packets.hpp"
#include "model/machine/parameters.hpp"
#include "sim/study/calibrate/watch.hpp"

namespace tritax {

namespace {

double mean_of(const std::vector<double>& values) {  // 0 without values
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// One estimate per row; an error of 1 in the estimate is an error of `weights` of the row's measured value.
struct Estimates {
  std::vector<std::size_t> rows;
  std::vector<double> values;
  std::vector<double> weights;

  void add(std::size_t row, double value, double weight) {
    rows.push_back(row);
    values.push_back(value);
    weights.push_back(weight);
  }
};

FittedUnknown settle(Unknown unknown, const Estimates& estimates, double value, Machine& machine) {
  FittedUnknown found;
  found.unknown = std::move(unknown);
  found.rows = estimates.rows;
  found.standard_error = std::numeric_limits<double>::infinity();
  if (estimates.values.empty() || value <= 0) return found;
  double squares = 0;
  for (std::size_t i = 0; i < estimates.values.size(); ++i) {
    const double error = value - estimates.values[i];
    found.row_errors.push_back(error * estimates.weights[i]);
    squares += error * error / (value * value);
  }
  const auto count = static_cast<double>(estimates.values.size());
  const double deviation = std::max(kMeasurementError, count > 1 ? std::sqrt(squares / (count - 1)) : 0.0);
  found.standard_error = deviation / std::sqrt(count);
  // A value that the machine leaves out counts as 0: like a refining share, it only has to differ from zero.
  const bool has_one = parameter_value(machine, found.unknown.keys.front()) > 0;
  if (found.standard_error > (has_one ? kLargestStandardError : kLargestRefiningError)) return found;
  found.value = value;
  for (const std::string& key : found.unknown.keys) set_parameter_value(machine, key, value);
  return found;
}

double simulated_us(const Observation& row, const Machine& machine) {
  return simulated_time_us(row.bench->schedule(), row, machine);
}

// A row with overwritten caches, and the same with caches as the last run left them.
struct Flushed {
  const Observation* cold = nullptr;
  const Observation* warm = nullptr;

  double longer_ns() const { return (cold->time_us - warm->time_us) * 1e3; }
  double simulated_longer_ns(const Machine& machine) const {
    return (simulated_us(*cold, machine) - simulated_us(*warm, machine)) * 1e3;
  }
};

std::vector<Flushed> flushed_rows(const std::vector<Observation>& table, std::string_view group,
                                  const std::function<bool(const MicrobenchRow&)>& wanted) {
  std::vector<Flushed> all;
  for (const Observation& row : table) {
    if (row.row->group != group || !wanted(*row.row) || row.row->number("flush") == 0) continue;
    for (const Observation& warm : table) {
      const bool same = warm.row->group == group && warm.row->name == row.row->name && wanted(*warm.row) &&
                        warm.row->text("traffic") == row.row->text("traffic");
      if (same && warm.row->number("flush") == 0) all.push_back({&row, &warm});
    }
  }
  return all;
}

// Cold start time, without the time of writing back.
FittedUnknown estimate_cold_start(const std::vector<Flushed>& rows, const Machine& base, Machine& machine) {
  Machine without = machine;
  without.interpreter.cold_start_ns = 0;
  Estimates starts;
  for (const Flushed& row : rows) {
    starts.add(row.cold->number, row.longer_ns() - row.simulated_longer_ns(without),
               1e-3 / row.cold->time_us);
  }
  machine.interpreter.cold_start_ns = base.interpreter.cold_start_ns;
  return settle({{"gpu.cold_start_time"}, 0, "", ""}, starts, mean_of(starts.values), machine);
}

// Behind a matmul, which is other code, both kernels take longer than alone, when each repeats its own code.
FittedUnknown estimate_cold_code(const std::vector<Flushed>& matmuls, const std::vector<Flushed>& copies,
                                 Machine& machine) {
  constexpr std::string_view kBehind = " behind a matmul";
  constexpr std::string_view kFirst = "128x256";  // the matmul
  Estimates codes;
  for (const Flushed& both : copies) {
    const std::string& name = both.cold->row->name;
    if (!name.ends_with(kBehind)) continue;
    for (const Flushed& copy : copies) {
      if (name != copy.cold->row->name + std::string(kBehind)) continue;
      if (both.cold->row->text("traffic") != copy.cold->row->text("traffic")) continue;
      for (const Flushed& matmul : matmuls) {
        if (matmul.cold->row->name != kFirst) continue;
        const double of_two = both.longer_ns() - copy.longer_ns() - matmul.longer_ns();
        codes.add(both.cold->number, of_two / 2, 2e-3 / both.cold->time_us);
      }
    }
  }
  return settle({{"gpu.cold_code_time"}, 0, "", ""}, codes, mean_of(codes.values), machine);
}

// The time of writing back is proportional to the dirty share.
FittedUnknown estimate_dirty_share(const std::vector<Flushed>& rows, const Machine& base, Machine& machine) {
  constexpr double kStart = 0.5;  // for a machine without a share
  Machine with = machine;
  if (with.gpu.dirty_share <= 0) with.gpu.dirty_share = kStart;
  Estimates shares;
  for (const Flushed& row : rows) {
    const double written_ns = row.simulated_longer_ns(with) - with.interpreter.cold_start_ns;
    if (written_ns <= 0) continue;
    const double share_per_ns = with.gpu.dirty_share / written_ns;
    shares.add(row.cold->number, share_per_ns * (row.longer_ns() - with.interpreter.cold_start_ns),
               1e-3 / row.cold->time_us / share_per_ns);
  }
  machine.gpu.dirty_share = base.gpu.dirty_share;
  return settle({{"gpu.dirty_share"}, 0, "", ""}, shares, mean_of(shares.values), machine);
}

}  // namespace

std::vector<FittedUnknown> estimate_clocks(const std::vector<Observation>& table, bool only_light,
                                           Machine& machine) {
  const auto clocks_where = [&](DType dtype, std::string_view parameter, std::string_view setting) {
    Estimates found;
    for (const Observation& row : table) {
      const bool wanted = row.row->group == "clock" && row.row->text("dtype") == name_of(dtype) &&
                          row.row->text(parameter) == setting;
      if (wanted) found.add(row.number, row.value, 1 / row.value);
    }
    return found;
  };
  std::vector<FittedUnknown> all;
  const Estimates lone = clocks_where(DType::bf16, "workgroups", "1");
  Unknown light{{}, 0, "one clock for all dtypes", ""};
  for (const DType dtype : {DType::bf16, DType::fp16, DType::fp8}) {
    if (machine.gpu.rate(dtype).flop_per_clk_per_cu <= 0) continue;
    light.keys.push_back(fmt::format("gpu.matrix.{}.light_clock", name_of(dtype)));
  }
  if (!light.keys.empty()) {
    all.push_back(settle(light, lone, quantile(lone.values, 0.5), machine));
  }
  if (only_light) return all;
  for (const DType dtype : {DType::bf16, DType::fp16, DType::fp8}) {
    if (machine.gpu.rate(dtype).flop_per_clk_per_cu <= 0) continue;
    const Estimates busy = clocks_where(dtype, "sustained", "no");
    all.push_back(settle({{fmt::format("gpu.matrix.{}.load_clock", name_of(dtype))}, 0, "", ""}, busy,
                         mean_of(busy.values), machine));
    const Estimates hot = clocks_where(dtype, "sustained", "yes");
    all.push_back(settle({{fmt::format("gpu.matrix.{}.sustained_clock", name_of(dtype))}, 0, "", ""}, hot,
                         mean_of(hot.values), machine));
  }
  return all;
}

std::vector<FittedUnknown> estimate_spreads(const std::vector<Observation>& table, Machine& machine) {
  Estimates matmuls, copies;
  for (const Observation& row : table) {
    if (row.row->group == "spread") matmuls.add(row.number, row.value, 0);
    if (row.row->group == "arbitration" && row.row->number("gpus") > 1) copies.add(row.number, row.value, 0);
  }
  std::vector<FittedUnknown> all;
  all.push_back(settle({{"gpu.matmul_spread"}, 0, "", ""}, matmuls, mean_of(matmuls.values), machine));
  all.push_back(settle({{"fabric.arbitration_spread"}, 0, "", ""}, copies, mean_of(copies.values), machine));
  return all;
}

namespace {

// A copy of rows that begin within a memory line, and the time of an aligned copy.
struct RaggedRow {
  std::size_t number = 0;
  bool fills_link = false;
  double time_us = 0, whole_us = 0;
  double row_bytes = 0;
  double tiles = 0;  // per workgroup
  RowPackets packets;

  double cost() const { return time_us / whole_us; }
  double more_bytes() const { return (cost() - 1) * row_bytes; }
  double split_lines() const {
    return static_cast<double>(packets.lines) - row_bytes / static_cast<double>(kLineBytes);
  }
};

RaggedRow ragged_row(const Observation& row, const Observation& whole, const Machine& machine) {
  const auto [rows, columns] = tile_of(row.row->text("tile"));
  constexpr std::int64_t kElement = bytes_of(DType::bf16);
  RaggedRow ragged;
  ragged.number = row.number;
  ragged.time_us = row.time_us;
  ragged.whole_us = whole.time_us;
  ragged.fills_link = row.row->number("workgroups") == machine.gpu.cu_count();
  ragged.row_bytes = static_cast<double>(columns * kElement);
  ragged.tiles = static_cast<double>(row.row->number("bytes")) / (rows * ragged.row_bytes) /
                 static_cast<double>(row.row->number("workgroups"));
  ragged.packets = packets_of_row(row.row->number("first column") * kElement, columns * kElement, false);
  return ragged;
}

std::vector<RaggedRow> ragged_rows(const std::vector<Observation>& table, const Machine& machine) {
  std::vector<RaggedRow> rows;
  for (const Observation& row : table) {
    if (row.row->group != "ragged" || row.row->number("first column") == 0) continue;
    for (const Observation& whole : table) {
      const bool same = whole.row->group == "ragged" && whole.row->text("tile") == row.row->text("tile") &&
                        whole.row->number("workgroups") == row.row->number("workgroups");
      if (same && whole.row->number("first column") == 0) rows.push_back(ragged_row(row, whole, machine));
    }
  }
  return rows;
}

}  // namespace

std::vector<FittedUnknown> estimate_ragged_rows(const std::vector<Observation>& table, Machine& machine) {
  std::vector<FittedUnknown> all;
  const auto estimate = [&](const char* key, const Estimates& estimates) {
    all.push_back(settle({{key}, 0, "", ""}, estimates, mean_of(estimates.values), machine));
  };
  const std::vector<RaggedRow> rows = ragged_rows(table, machine);
  Estimates times, lines, sectors, ends;
  for (const RaggedRow& row : rows) {
    if (!row.fills_link && row.packets.ragged_ends > 0) {
      times.add(row.number, (row.time_us - row.whole_us) * 1e3 / row.tiles, row.tiles * 1e-3 / row.time_us);
    } else if (row.fills_link && row.packets.ragged_ends + row.packets.sector_ends == 0) {
      lines.add(row.number, row.more_bytes() / row.split_lines(),
                row.split_lines() / row.row_bytes / row.cost());
    }
  }
  estimate("gpu.ragged_copy_time", times);
  estimate("fabric.split_line_bytes", lines);
  for (const RaggedRow& row : rows) {
    const int count = row.packets.ragged_ends + row.packets.sector_ends;
    if (!row.fills_link || count == 0) continue;
    const double of_ends = row.more_bytes() - row.split_lines() * machine.interpreter.split_line_bytes;
    (row.packets.ragged_ends > 0 ? ends : sectors)
        .add(row.number, of_ends / count, count / row.row_bytes / row.cost());
  }
  estimate("fabric.sector_end_bytes", sectors);
  estimate("fabric.ragged_end_bytes", ends);
  return all;
}

FittedUnknown estimate_passed_ops(const std::vector<Observation>& table, Machine& machine) {
  Machine without = machine;
  without.interpreter.passed_op_ns = 0;
  Estimates times;
  for (const Observation& row : table) {
    const auto count = static_cast<double>(row.row->number("count"));
    if (row.row->group != "passed" || count == 0) continue;
    for (const Observation& bare : table) {
      const bool alike = bare.row->group == "passed" && bare.row->name == row.row->name &&
                         bare.row->text("operation") == row.row->text("operation");
      if (!alike || bare.row->number("count") != 0) continue;
      const double tiles = 1 / row.row->per_us - 1;  // nothing waits behind the last tile
      const double longer_us =
          row.time_us - bare.time_us - simulated_us(row, without) + simulated_us(bare, without);
      times.add(row.number, longer_us * 1e3 / (tiles * count), tiles * count * 1e-3 / row.time_us);
    }
  }
  return settle({{"gpu.passed_op_time"}, 0, "", ""}, times, mean_of(times.values), machine);
}

namespace {

// Two rows of `chain` with equal numbers of workgroups.
struct ChainStep {
  const Observation* row = nullptr;
  const Observation* before = nullptr;

  double longer_ns() const { return (row->time_us - before->time_us) * 1e3; }
};

struct ChainKind {
  std::string_view name;
  std::int64_t tiles = 1;
};

// Rows of one kind, each with its row of the other kind.
std::vector<ChainStep> chain_steps(const std::vector<Observation>& table, const ChainKind& kind,
                                   const ChainKind& before) {
  std::vector<ChainStep> steps;
  const auto is = [](const Observation& row, const ChainKind& wanted) {
    return row.row->group == "chain" && row.row->name == wanted.name &&
           row.row->number("tiles") == wanted.tiles;
  };
  for (const Observation& row : table) {
    if (!is(row, kind)) continue;
    for (const Observation& other : table) {
      const bool alike =
          is(other, before) && other.row->number("workgroups") == row.row->number("workgroups");
      if (alike) steps.push_back({&row, &other});
    }
  }
  return steps;
}

}  // namespace

std::vector<FittedUnknown> estimate_chains(const std::vector<Observation>& table, Machine& machine) {
  const Gpu& gpu = machine.gpu;
  Estimates signals, meetings;
  const auto add = [](Estimates& to, const ChainStep& step, double known_ns) {
    to.add(step.row->number, step.longer_ns() - known_ns, 1e-3 / step.row->time_us);
  };
  for (const ChainStep& step : chain_steps(table, {"signal"}, {"store"})) add(signals, step, gpu.release_ns);
  for (const ChainStep& step : chain_steps(table, {"wait"}, {"signal"})) {
    add(meetings, step, gpu.flag_cross_die_ns + gpu.poll_load_ns / 2);
  }
  for (const ChainStep& step : chain_steps(table, {"barrier"}, {"wait"})) add(meetings, step, 0);
  std::vector<FittedUnknown> all;
  const auto estimate = [&](const char* key, const Estimates& estimates) {
    all.push_back(settle({{key}, 0, "", ""}, estimates, mean_of(estimates.values), machine));
  };
  estimate("gpu.sent_signal_time", signals);
  estimate("gpu.meet_time", meetings);
  return all;
}

FittedUnknown estimate_kernel_gap(const std::vector<Observation>& table, Machine& machine) {
  Estimates gaps;
  for (const Observation& four : table) {
    if (four.row->name != "step" || four.row->number("kernels") != 4) continue;
    for (const Observation& two : table) {
      const bool alike = two.row->name == "step" && two.row->number("kernels") == 2 &&
                         two.row->number("gpus") == four.row->number("gpus") &&
                         two.row->number("workgroups") == four.row->number("workgroups");
      if (!alike) continue;
      const double longer_us =
          four.time_us - two.time_us - simulated_us(four, machine) + simulated_us(two, machine);
      gaps.add(four.number, machine.host.kernel_gap_ns + longer_us * 1e3 / 2, 2e-3 / four.time_us);
    }
  }
  return settle({{"host.kernel_gap"}, 0, "", ""}, gaps, mean_of(gaps.values), machine);
}

std::vector<FittedUnknown> estimate_cold_caches(const std::vector<Observation>& table, Machine& machine) {
  // Each value depends a little on the other: short kernels displace dirty data, too.
  constexpr int kRounds = 4;
  const auto all_work = [&](const MicrobenchRow& row) {
    return row.number("workgroups") == machine.gpu.cu_count();
  };
  const auto matmuls = [&](const MicrobenchRow& row) { return all_work(row) && row.text("traffic").empty(); };
  const auto copies = [&](const MicrobenchRow& row) { return all_work(row) && !row.text("traffic").empty(); };
  const std::vector<Flushed> short_ones = flushed_rows(table, "cold", matmuls);
  const std::vector<Flushed> streams = flushed_rows(table, "stream", all_work);
  Machine tried = machine;
  std::vector<FittedUnknown> found;
  for (int round = 0; round < kRounds; ++round) {
    found.clear();
    found.push_back(estimate_cold_start(short_ones, machine, tried));
    found.push_back(estimate_dirty_share(streams, machine, tried));
  }
  found.push_back(estimate_cold_code(short_ones, flushed_rows(table, "cold", copies), tried));
  machine = tried;
  return found;
}

std::vector<FittedUnknown> estimate_flag_latencies(const std::vector<Observation>& table, Machine& machine) {
  const Gpu& gpu = machine.gpu;
  const auto latencies = [&](std::string_view name) {
    Estimates found;
    for (const Observation& row : table) {
      if (row.row->group != "flag" || row.row->name != name || row.row->text("protocol") != "load-store")
        continue;
      found.add(row.number, row.value / 2 - gpu.release_ns - gpu.poll_load_ns / 2, 2 / row.value);
    }
    return found;
  };
  const Estimates local = latencies("round trip on one GPU");
  const Estimates remote = latencies("round trip between two GPUs");
  std::vector<FittedUnknown> all;
  Unknown on_gpu{{"gpu.flag_cross_die_latency"}, 0, "", ""};
  if (gpu.xcds == 1) {
    on_gpu.keys.insert(on_gpu.keys.begin(), "gpu.flag_same_die_latency");
    on_gpu.remark = "one die: both flag latencies are the same";
  }
  all.push_back(settle(on_gpu, local, mean_of(local.values), machine));
  all.push_back(settle({{"fabric.flag_latency"}, 0, "", ""}, remote, mean_of(remote.values), machine));
  return all;
}

}  // namespace tritax
