#include "sim/study/calibrate/power.hpp"

#include <fmt/format.h>

#include <Eigen/Cholesky>
#include <Eigen/QR>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "model/core/error.hpp"
#include "model/cost/matmul_power.hpp"
#include "model/machine/parameters.hpp"
#include "sim/simulate.hpp"

namespace tritax {

namespace {

constexpr std::array kCalibrated{DType::bf16, DType::fp16, DType::fp8};

// Activity of a product per cycle.
struct Activity {
  std::size_t number = 0;  // of the row
  DType dtype = DType::bf16;
  double clock_ghz = 0;
  double share = 0;    // of the matrix cores' peak
  double a_bytes = 0;  // A tiles into LDS
  double missed_bytes = 0;
};

DType dtype_in(const MicrobenchRow& row) { return parse_dtype(row.text("dtype"), row.group); }

Activity activity_of(const Observation& row, const Machine& machine) {
  const auto size = [&](std::string_view name) {
    return static_cast<double>(row.row->number(row.row->number("size") > 0 ? "size" : name));
  };
  const double m = size("m"), n = size("n"), k = size("k");
  const auto [tile_m, tile_n] = tile_of(row.row->name);
  Activity activity{.number = row.number, .dtype = dtype_in(*row.row), .clock_ghz = row.value};
  const double clk = row.value * row.time_us * 1e3;
  const double peak = machine.gpu.cu_count() * machine.gpu.rate(activity.dtype).flop_per_clk_per_cu;
  const double element = bytes_of(activity.dtype);
  activity.share = 2 * m * n * k / (peak * clk);
  activity.a_bytes = element * m * n * k / tile_n / clk;
  const double operand_bytes = activity.a_bytes + element * m * n * k / tile_m / clk;
  const SimulationResult result = simulate(row.bench->schedule(), machine);
  activity.missed_bytes = (1 - result.l2_hit_fraction) * (1 - result.llc_hit_fraction) * operand_bytes;
  return activity;
}

// The law of sim/engine_clock.cpp with linear unknowns: load_clock^-3 of every dtype, then the power per byte
// and clk of A tiles and of misses.
class PowerLaw {
 public:
  explicit PowerLaw(std::vector<Activity> rows) : rows_(std::move(rows)) {
    for (const Activity& row : rows_) columns_.emplace(row.dtype, columns_.size());
    const auto count = static_cast<Eigen::Index>(rows_.size());
    Eigen::MatrixXd terms(count, unknowns());
    for (Eigen::Index i = 0; i < count; ++i) terms.row(i) = terms_of(rows_[static_cast<std::size_t>(i)]);
    values_ = terms.colPivHouseholderQr().solve(Eigen::VectorXd::Ones(count));
    const Eigen::VectorXd residuals = terms * values_ - Eigen::VectorXd::Ones(count);
    const double freedom = static_cast<double>(std::max<Eigen::Index>(1, count - unknowns()));
    const Eigen::MatrixXd covariance =
        residuals.squaredNorm() / freedom *
        (terms.transpose() * terms).ldlt().solve(Eigen::MatrixXd::Identity(unknowns(), unknowns()));
    deviations_ = covariance.diagonal().cwiseSqrt();
    for (Eigen::Index i = 0; i < count; ++i) errors_.push_back(-std::log1p(residuals(i)) / 3);
  }

  // The terms can replace each other, so the law is known better than each term.
  bool sound(double boost_ghz) const {
    constexpr double kLargestError = 0.5;
    if (static_cast<Eigen::Index>(rows_.size()) <= unknowns()) return false;
    if ((values_.array() <= 0).any()) return false;
    for (const auto& [dtype, column] : columns_) {
      if (load_clock_ghz(dtype) > boost_ghz) return false;
    }
    return (deviations_.array() <= kLargestError * values_.array()).all();
  }

  // Draw of a product, as a share of the power limit.
  double power_of(const Activity& row) const { return terms_of(row).dot(values_); }
  const std::vector<double>& errors() const { return errors_; }

  double load_clock_ghz(DType dtype) const { return std::cbrt(1 / values_(column_of(dtype))); }
  double load_clock_error(DType dtype) const {
    return deviations_(column_of(dtype)) / values_(column_of(dtype)) / 3;
  }
  bool knows(DType dtype) const { return columns_.contains(dtype); }
  double operand() const { return values_(unknowns() - 2); }
  double operand_error() const { return deviations_(unknowns() - 2) / operand(); }
  double miss() const { return values_(unknowns() - 1); }
  double miss_error() const { return deviations_(unknowns() - 1) / miss(); }

 private:
  Eigen::Index unknowns() const { return static_cast<Eigen::Index>(columns_.size()) + 2; }
  Eigen::Index column_of(DType dtype) const { return static_cast<Eigen::Index>(columns_.at(dtype)); }
  Eigen::RowVectorXd terms_of(const Activity& row) const {
    Eigen::RowVectorXd terms = Eigen::RowVectorXd::Zero(unknowns());
    terms(column_of(row.dtype)) = row.share;
    terms(unknowns() - 2) = row.a_bytes;
    terms(unknowns() - 1) = row.missed_bytes;
    return terms * row.clock_ghz * row.clock_ghz * row.clock_ghz;
  }

  std::vector<Activity> rows_;
  std::map<DType, std::size_t> columns_;
  Eigen::VectorXd values_;
  Eigen::VectorXd deviations_;
  std::vector<double> errors_;
};

}  // namespace

std::vector<FittedUnknown> estimate_power(const std::vector<Observation>& table, Machine& machine) {
  if (machine.gpu.power_limit_w <= 0) return {};
  std::vector<Activity> brief, sustained;
  bool varied = false;
  for (const Observation& row : table) {
    const bool power = row.row->group == "power";
    const bool product = power || (row.row->group == "clock" && !row.row->text("sustained").empty());
    if (!product || machine.gpu.rate(dtype_in(*row.row)).flop_per_clk_per_cu <= 0) continue;
    varied |= power;
    (row.row->text("sustained") == "yes" ? sustained : brief).push_back(activity_of(row, machine));
  }
  if (!varied) return {};
  const PowerLaw law(brief);
  if (!law.sound(machine.gpu.boost_clock_ghz)) return {};
  for (const DType dtype : kCalibrated) {
    if (machine.gpu.rate(dtype).flop_per_clk_per_cu > 0 && !law.knows(dtype)) return {};
  }
  std::vector<FittedUnknown> all;
  const auto take = [&](const std::string& key, double value, double error) {
    FittedUnknown found{{{key}, 0, "", ""}, std::nullopt, {}, law.errors(), error};
    for (const Activity& row : brief) found.rows.push_back(row.number);
    found.value = value;
    set_parameter_value(machine, key, value);
    all.push_back(std::move(found));
  };
  const double boost = machine.gpu.boost_clock_ghz;
  const double pj = 1e3 * boost * boost * load_budget_w(machine.gpu);
  take("gpu.operand_energy", law.operand() * pj, law.operand_error());
  take("gpu.miss_energy", law.miss() * pj, law.miss_error());
  for (const DType dtype : kCalibrated) {
    if (!law.knows(dtype)) continue;
    const std::string table_key = fmt::format("gpu.matrix.{}.", name_of(dtype));
    take(table_key + "load_clock", law.load_clock_ghz(dtype), law.load_clock_error(dtype));
    // After long load a share of the power is left: the share of the mean product.
    std::vector<double> shares;
    for (const Activity& row : sustained) {
      if (row.dtype == dtype) shares.push_back(law.power_of(row));
    }
    if (shares.empty()) continue;
    FittedUnknown found{{{table_key + "sustained_clock"}, 0, "", ""}, std::nullopt, {}, {}, 0};
    double mean = 0;
    for (const double share : shares) mean += share / static_cast<double>(shares.size());
    found.value = std::min(law.load_clock_ghz(dtype), law.load_clock_ghz(dtype) * std::cbrt(mean));
    std::size_t i = 0;
    for (const Activity& row : sustained) {
      if (row.dtype != dtype) continue;
      found.rows.push_back(row.number);
      found.row_errors.push_back(std::log(mean / shares[i++]) / 3);
    }
    found.standard_error = std::max(kMeasurementError, root_mean_square(found.row_errors));
    set_parameter_value(machine, found.unknown.keys.front(), *found.value);
    all.push_back(std::move(found));
  }
  return all;
}

}  // namespace tritax
