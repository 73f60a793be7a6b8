#include "sim/calibrate/direct.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>

#include "model/core/quantile.hpp"
#include "model/machine/parameters.hpp"

namespace tritax {

namespace {

double mean_of(const std::vector<double>& values) {  // of none, 0
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// One estimate a row; an error of 1 in it is an error of `weights` of what the row measured.
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
  if (found.standard_error > kLargestStandardError) return found;
  found.value = value;
  for (const std::string& key : found.unknown.keys) set_parameter_value(machine, key, value);
  return found;
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

std::vector<FittedUnknown> estimate_spread_and_start(const std::vector<Observation>& table,
                                                     Machine& machine) {
  Estimates matmuls, copies, start;
  for (const Observation& row : table) {
    if (row.row->group == "spread") matmuls.add(row.number, row.value, 0);
    if (row.row->group == "arbitration") copies.add(row.number, row.value, 0);
    if (row.row->group != "cold" || row.row->number("flush") == 0) continue;
    for (const Observation& warm : table) {
      const bool same = warm.row->group == "cold" && warm.row->name == row.row->name;
      if (!same || warm.row->number("flush") > 0) continue;
      start.add(row.number, (row.time_us - warm.time_us) * 1e3, 1e-3 / row.time_us);
    }
  }
  std::vector<FittedUnknown> all;
  all.push_back(settle({{"gpu.matmul_spread"}, 0, "", ""}, matmuls, mean_of(matmuls.values), machine));
  all.push_back(settle({{"fabric.arbitration_spread"}, 0, "", ""}, copies, mean_of(copies.values), machine));
  all.push_back(settle({{"gpu.cold_start_time"}, 0, "", ""}, start, mean_of(start.values), machine));
  return all;
}

std::vector<FittedUnknown> estimate_ragged_rows(const std::vector<Observation>& table, Machine& machine) {
  constexpr std::int64_t kAccess = 16 / bytes_of(DType::bf16);  // columns
  constexpr int kEnds = 2;
  Estimates times, ends;
  for (const Observation& row : table) {
    if (row.row->group != "ragged" || row.row->number("first column") % kAccess == 0) continue;
    const bool fills_link = row.row->number("workgroups") == machine.gpu.cu_count();
    const std::string_view tile = row.row->text("tile");
    int rows = 0, columns = 0;
    std::from_chars(tile.data(), tile.data() + tile.find('x'), rows);
    std::from_chars(tile.data() + tile.find('x') + 1, tile.data() + tile.size(), columns);
    const double row_bytes = columns * bytes_of(DType::bf16);
    const double tiles = static_cast<double>(row.row->number("bytes")) / (rows * row_bytes) /
                         static_cast<double>(row.row->number("workgroups"));
    for (const Observation& whole : table) {
      if (whole.row->group != "ragged" || whole.row->text("tile") != tile ||
          whole.row->number("workgroups") != row.row->number("workgroups") ||
          whole.row->number("first column") != 0)
        continue;
      if (fills_link) {
        const double cost = row.time_us / whole.time_us;
        ends.add(row.number, (cost - 1) * row_bytes / kEnds, kEnds / row_bytes / cost);
      } else {
        times.add(row.number, (row.time_us - whole.time_us) * 1e3 / tiles, tiles * 1e-3 / row.time_us);
      }
    }
  }
  std::vector<FittedUnknown> all;
  all.push_back(settle({{"gpu.ragged_copy_time"}, 0, "", ""}, times, mean_of(times.values), machine));
  all.push_back(settle({{"fabric.ragged_end_bytes"}, 0, "", ""}, ends, mean_of(ends.values), machine));
  return all;
}

std::vector<FittedUnknown> estimate_dirty_share(const std::vector<Observation>& table, Machine& machine) {
  const Gpu& gpu = machine.gpu;
  const double cache_bytes = std::max(gpu.l2_bytes * gpu.xcds, gpu.llc_bytes);
  const double write_gb_per_s = gpu.hbm_write_gb_per_s > 0 ? gpu.hbm_write_gb_per_s : gpu.hbm_gb_per_s;
  Estimates shares;
  for (const Observation& row : table) {
    const auto is_wanted = [&](const Observation& other) {
      return other.row->group == "stream" && other.row->name == row.row->name &&
             other.row->number("workgroups") == gpu.cu_count();
    };
    if (!is_wanted(row) || row.row->number("flush") == 0) continue;
    for (const Observation& clean : table) {
      if (!is_wanted(clean) || clean.row->number("flush") > 0) continue;
      const double longer_ns = (row.time_us - clean.time_us) * 1e3 - gpu.cold_start_ns;
      shares.add(row.number, longer_ns * write_gb_per_s / cache_bytes,
                 cache_bytes / write_gb_per_s * 1e-3 / row.time_us);
    }
  }
  return {settle({{"gpu.dirty_share"}, 0, "", ""}, shares, mean_of(shares.values), machine)};
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
