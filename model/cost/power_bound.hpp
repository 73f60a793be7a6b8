// Computes a lower bound of the time of a kernel's matmuls on all compute units together.
//
// Let u_w be the time of the matmuls of workgroup w without waits at the clock under full load, and C the
// number of compute units of a GPU. The clock of b busy units is at most f(b) times that clock, so a step ds
// of progress of all busy units takes at least ds / f(b).
//
// If energies are unknown, f(b) = (C/b)^(1/3). The cost (b/C)^(1/3) is concave in b and 0 at b = 0, so it is
// least if the busy times of the workgroups are nested and all start together:
//
//   time >= ∫ (N(s) / C)^(1/3) ds,   N(s) = number of workgroups with u_w > s
//
// If workgroups may share compute units, or there are more workgroups than units, a unit does at most `gain`
// times the work of one workgroup alone, and the cost is least with all units busy: Σ u_w / (gain · C).
//
// If energies are known, the law of the draw holds (model/cost/matmul_power.hpp), with clocks f in GHz, at
// most the light clock L:
//
//   q     the most that a workgroup draws per f^3, with a matmul that waits for nothing
//   v_w   the draw of all its matmuls over q, in clk: no more than the cycles that they take
//
// Workgroup w progresses at x_w f, in clk of v_w, with x_w <= 1 and X = Σ x_w. The power counts for each
// matmul its expected cycles at the clock of its begin. Waits for memory are cycles too; a higher clock at
// the begin gives more such cycles, at most by the factor L/f. A workgroup that waits for a fetch of another
// workgroup progresses evenly. So the power is at least f^3 · q X · f/L, and stays below the limit of 1
// except for the step of 2 % with which the clock follows. Hence f^4 <= 1.02 L / (q X), and
//
//   time >= ∫ (N(s) q / 1.02 L)^(1/4) ds,   N(s) = number of workgroups with v_w > s
//
// and for shared units Σ v_w (gain · C q / 1.02 L)^(1/4) / (gain · C). Narrow and shallow tiles draw little;
// for them Σ u_w / (gain · C) at the light clock is larger.
//
// Another power limit means another budget B (model/cost/matmul_power.hpp): f(b) is B^(1/3) times as high,
// and B L replaces L. A voltage that no longer falls only lowers clocks.
#pragma once

#include <cstdint>
#include <vector>

#include "model/cost/kernel_rates.hpp"
#include "model/cost/matmul_cost.hpp"
#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax {

// Most workgroups of a kernel that fit on one compute unit.
int residents_at_most(const Gpu& gpu, const Resources& resources);

// Highest matmul rate of one compute unit relative to one workgroup alone on the unit, if several workgroups
// together are `gain` times as fast as one. A matmul keeps the share with which it started: the i-th resident
// starts with min(i, gain) / i.
double shared_gain(double gain, int residents);

struct MatmulWork {
  double ns = 0;    // shortest time at the clock under full load
  double draw = 0;  // least draw, in clk / GHz^3; 0 if energies are unknown
};

// Computes the work of a kernel's matmuls; keeps the last result, because nearly all matmuls are alike.
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

  // Largest values so far:
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
  double share_;   // share of the matrix rate that the kernel reaches
  double factor_;  // KernelRates::time_factor: power as in the law, for a time longer by this factor
  OpKind kind_ = OpKind::matmul;
  std::int32_t k_ = -1, rows_ = -1, cols_ = -1;
  std::int16_t buffer_ = -1;
  MatmulWork work_;
  double gain_ = 1;
  double boost_ = 1;
  double highest_ghz_ = 0;
  double draw_per_clk_ = 0;
};

// `works`: of the workgroups that compute, from `times`. `may_share`: several workgroups may share one unit.
double power_bound_ns(const Gpu& gpu, const Kernel& kernel, const std::vector<MatmulWork>& works,
                      const MatmulTimes& times, bool may_share);

}  // namespace tritax
