#include "model/cost/power_bound.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/cost/attend_backward_cost.hpp"
#include "model/cost/matmul_power.hpp"
#include "model/schedule/op_traits.hpp"

namespace tritax {

MatmulWork MatmulTimes::operator()(const Op& op) {
  const std::int32_t k = op.k_end - op.k_begin;
  if (k != k_ || op.kind != kind_ || op.src_buffer != buffer_ || op.rect.rows != rows_ ||
      op.rect.cols != cols_) {
    k_ = k;
    kind_ = op.kind;
    rows_ = op.rect.rows;
    cols_ = op.rect.cols;
    buffer_ = op.src_buffer;
    find_work(schedule_.buffers[static_cast<std::size_t>(op.src_buffer)].dtype, op);
  }
  return work_;
}

void MatmulTimes::find_work(DType dtype, const Op& op) {
  MatmulCost cost;
  if (attends(op.kind)) {
    const AttendCost attend = attend_cost_of(gpu_, costs_, dtype, tile_, resources_, op, false);
    cost = attend.cost;
    gain_ = std::max(gain_, attend.shared_speedup);
  } else {
    cost = matmul_cost(gpu_, costs_, dtype, tile_, op.rect.rows, op.rect.cols, k_);
    MatmulTile overlapped = tile_;
    overlapped.pipeline = Pipeline::overlapped;
    gain_ = std::max(
        gain_, cost.compute_ns /
                   matmul_cost(gpu_, costs_, dtype, overlapped, op.rect.rows, op.rect.cols, k_).compute_ns);
  }
  const double load_ghz = gpu_.rate(dtype).load_clock_ghz;
  const double highest_ghz = gpu_.knows_energies() ? light_clock_ghz(gpu_, dtype) : gpu_.boost_clock_ghz;
  highest_ghz_ = std::max(highest_ghz_, highest_ghz);
  boost_ = std::max(boost_, highest_ghz / load_ghz);
  const double draw = factor_ * matmul_draw(gpu_, dtype, cost);
  draw_per_clk_ = std::max(draw_per_clk_, draw * share_ / (load_ghz * cost.compute_ns));
  const double fastest = std::max(most_luck(gpu_, costs_), attends(op.kind) ? 1 + gpu_.attend_spread : 1.0);
  work_ = {cost.compute_ns / (share_ * fastest), draw / fastest};
}

int residents_at_most(const Gpu& gpu, const Resources& resources) {
  const int waves = (resources.threads + gpu.lanes_per_wave - 1) / gpu.lanes_per_wave;
  double residents = static_cast<double>(gpu.simds_per_cu * gpu.waves_per_simd) / std::max(1, waves);
  const double registers = static_cast<double>(waves * gpu.lanes_per_wave) * resources.registers_per_thread;
  if (registers > 0) residents = std::min(residents, gpu.registers_per_cu / registers);
  if (resources.lds_bytes > 0) residents = std::min(residents, gpu.lds_bytes_per_cu / resources.lds_bytes);
  return std::max(1, static_cast<int>(residents));
}

double shared_gain(double gain, int residents) {
  double sum = 0;
  for (int i = 1; i <= residents; ++i) sum += std::min<double>(i, gain) / i;
  return sum;
}

namespace {

// ∫ cost(N(s)) ds, N(s) = number of `works` above s.
template <typename Cost>
double nested_ns(std::vector<double> works, const Cost& cost) {
  std::sort(works.begin(), works.end());
  double total = 0;
  double done = 0;
  for (std::size_t i = 0; i < works.size(); ++i) {
    if (works[i] <= done) continue;
    total += cost(static_cast<double>(works.size() - i)) * (works[i] - done);
    done = works[i];
  }
  return total;
}

std::vector<double> values_of(const std::vector<MatmulWork>& works, double MatmulWork::*member) {
  std::vector<double> values;
  values.reserve(works.size());
  for (const MatmulWork& work : works) values.push_back(work.*member);
  return values;
}

double sum_of(const std::vector<MatmulWork>& works, double MatmulWork::*member) {
  double sum = 0;
  for (const MatmulWork& work : works) sum += work.*member;
  return sum;
}

}  // namespace

double power_bound_ns(const Gpu& gpu, const Kernel& kernel, const std::vector<MatmulWork>& works,
                      const MatmulTimes& times, bool may_share) {
  const int cus = gpu.cu_count();
  const int residents = may_share ? residents_at_most(gpu, kernel.resources) : 1;
  const bool each_alone = residents == 1 && works.size() <= static_cast<std::size_t>(cus);
  const double all = shared_gain(times.gain(), residents) * cus;
  if (!gpu.knows_energies()) {
    const double ns_of_load = each_alone ? nested_ns(values_of(works, &MatmulWork::ns),
                                                     [cus](double busy) { return std::cbrt(busy / cus); })
                                         : sum_of(works, &MatmulWork::ns) / all;
    const double ns = ns_of_load / std::cbrt(power_budget(gpu));
    // Waiting matrix cores draw too little to limit the clock.
    return times.at_full_rate() ? ns : ns_of_load / times.boost();
  }
  const double per_clk = times.draw_per_clk();
  const double limit = (1 + kClockStep) * times.highest_ghz() * power_budget(gpu);
  const auto ns_per_clk = [=](double busy) { return std::sqrt(std::sqrt(busy * per_clk / limit)); };
  if (each_alone) {
    std::vector<double> clks = values_of(works, &MatmulWork::draw);
    for (double& clk : clks) clk /= per_clk;
    return nested_ns(std::move(clks), ns_per_clk);
  }
  const double clk = sum_of(works, &MatmulWork::draw) / per_clk;
  return std::max(clk * ns_per_clk(all), sum_of(works, &MatmulWork::ns) / times.boost()) / all;
}

}  // namespace tritax
