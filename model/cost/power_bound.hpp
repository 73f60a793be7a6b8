// What the matmuls of a kernel take at least on all compute units together.
//
// Let u_w be the time of the matmuls of workgroup w at the clock under full load if they wait for nothing,
// and C the compute units of a GPU. b busy units run at most f(b) times faster than that clock, so a piece ds
// of progress of all of them takes at least ds / f(b).
//
// Where no energies are known f(b) = (C/b)^(1/3). That cost, (b/C)^(1/3), is concave in b and 0 at b = 0,
// hence least when the busy times of the workgroups are nested, all starting together:
//
//   time >= ∫ (N(s) / C)^(1/3) ds,   N(s) = number of workgroups with u_w > s
//
// Where workgroups may share compute units, or there are more of them than units, a unit does at most `gain`
// times the work of one workgroup alone, and the cost is least with all units busy: Σ u_w / (gain · C).
//
// Where they are known (model/cost/matmul_power.hpp) the law is that of the draw, with clocks f in GHz of at
// most L, the light clock:
//
//   q     the most that a workgroup draws per f^3, with a matmul that waits for nothing
//   v_w   the draw of all its matmuls over q, in clk: no more than the cycles that they take
//
// While workgroups make progress at x_w f, in clk of v_w, x_w <= 1, X = Σ x_w, the power counts for each
// matmul the cycles that it was to take at the clock at which it began. Waits for memory are cycles too, and
// as many more as that clock was higher, at most by L/f; whoever waits for what another fetches is taken to
// make its progress evenly. So the power is at least f^3 · q X · f/L, and it stays below the limit of 1 but
// for the step of 2 % in which the clock follows it. Hence f^4 <= 1.02 L / (q X), and
//
//   time >= ∫ (N(s) q / 1.02 L)^(1/4) ds,   N(s) = number of workgroups with v_w > s
//
// and where units are shared Σ v_w (gain · C q / 1.02 L)^(1/4) / (gain · C). Narrow and shallow tiles draw
// little, and there Σ u_w / (gain · C) at the light clock is more.
//
// Another power limit is another budget B (model/cost/matmul_power.hpp): f(b) is B^(1/3) times as high, and B
// L stands in place of L. A voltage that no longer falls only makes clocks lower.
#pragma once

#include <cstdint>
#include <vector>

#include "model/cost/kernel_rates.hpp"
#include "model/cost/matmul_cost.hpp"
#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

// Workgroups of a kernel that fit one compute unit together.
int residents_at_most(const Gpu& gpu, const Resources& resources);

// Most matmul work that one compute unit does per unit of time, relative to one workgroup alone on it, where
// several together are `gain` times as fast as one. A matmul keeps the share that it started with: the i-th
// resident starts with min(i, gain) / i.
double shared_gain(double gain, int residents);

struct MatmulWork {
  double ns = 0;    // shortest time at the clock under full load
  double draw = 0;  // least draw, in clk / GHz^3; 0 where energies are not known
};

// Of the matmuls of a kernel; nearly all of them are alike, so the last one is kept.
class MatmulTimes {
 public:
  // `costs`: of the profile of the kernel.
  MatmulTimes(const Schedule& schedule, const Gpu& gpu, const KernelCosts& costs, const Kernel& kernel,
              const KernelRates& rates)
      : schedule_(schedule),
        gpu_(gpu),
        costs_(costs),
        tile_(kernel.tile),
        resources_(kernel.resources),
        share_(rates.matmul_share),
        factor_(rates.time_factor) {}

  MatmulWork operator()(const Op& op);

  // The largest seen:
  double gain() const { return gain_; }    // of several workgroups on one compute unit over one
  double boost() const { return boost_; }  // highest clock over the clock under full load
  double highest_ghz() const { return highest_ghz_; }
  double draw_per_clk() const { return draw_per_clk_; }  // of a matmul that waits for nothing

  bool at_full_rate() const { return share_ == 1; }

 private:
  void find_work(DType dtype, const Op& op);

  const Schedule& schedule_;
  const Gpu& gpu_;
  const KernelCosts& costs_;
  MatmulTile tile_;
  Resources resources_;
  double share_;   // of the rate of the matrix cores that it reaches
  double factor_;  // KernelRates::time_factor: it draws what the law says, for as many times as long
  OpKind kind_ = OpKind::matmul;
  std::int32_t k_ = -1, rows_ = -1, cols_ = -1;
  std::int16_t buffer_ = -1;
  MatmulWork work_;
  double gain_ = 1;
  double boost_ = 1;
  double highest_ghz_ = 0;
  double draw_per_clk_ = 0;
};

// `works`: of the workgroups that compute, as `times` gave them. `may_share`: several of them may get one
// unit.
double power_bound_ns(const Gpu& gpu, const Kernel& kernel, const std::vector<MatmulWork>& works,
                      const MatmulTimes& times, bool may_share);

}  // namespace tritax
