// Predictions in the terms of published tables: times, rates and bandwidths of a scenario, on the clock of
// the source.
//
// The "time" of a table depends on its clock:
//
//   host         the host program from start to end: launches, synchronisation and barriers count. The
//                harness of ROCm/iris times GEMM + all-scatter in this way: its timed function has two host
//                barriers (iris/util.py).
//   kernel       first workgroup start to last kernel end, over all ranks.
//   busy-stream  between two events around the launch, recorded while the stream still works on earlier
//                calls: the launch is hidden, the gap between two kernels is not. Back-to-back loops,
//                iris.do_bench. A moment counts once, for all kernels in several streams and copies by copy
//                engines that run in it. An idle moment counts if the host has waited for the stream, which
//                is then idle; a delay by host calls alone does not count.
//   idle-stream  between two events around the launch on an idle stream: the call and the launch latency
//                count. Benchmarks that synchronise before every repetition (HipKittens, the Iris notebooks).
//
// For every rank: the time in which its kernels run <= busy-stream <= host. The kernel clock is outside of
// that order: it begins with the first rank's kernel and ends with the last rank's. It counts launches of
// ranks one after another and host work between two kernels, which the events of one stream do not see.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/scenario/scenario.hpp"

namespace tritax {

enum class Metric : std::uint8_t {
  time,             // ns
  throughput,       // FLOP/ns of the whole problem over all GPUs: 2MNK / time
  bandwidth,        // bytes/ns that one GPU moves (Work::bytes_per_gpu / its time), mean over the active GPUs
  link_bandwidth,   // bandwidth / peers
  gemm_time,        // ns, of kernels that compute, slowest rank
  comm_time,        // ns, of other kernels, slowest rank
  speedup,          // time of the reference / time
  best_speedup,     // time of the baseline / time of the fastest other pattern, knobs as given
  time_difference,  // ns, time - time of the reference
  l2_hit,           // share of the bytes asked of L2s, all GPUs together; sim/cache_traffic.hpp
  llc_hit,          // share of last-level cache hits in the bytes that missed an L2
  hbm_bytes,        // bytes that the memories of all GPUs read and wrote
};
inline constexpr std::array<std::string_view, 12> kMetricNames{
    "time",    "throughput",   "bandwidth",       "link-bandwidth", "gemm-time", "comm-time",
    "speedup", "best-speedup", "time-difference", "l2-hit",         "llc-hit",   "hbm-bytes"};

enum class Clock : std::uint8_t { host, kernel, busy_stream, idle_stream };
inline constexpr std::array<std::string_view, 4> kClockNames{"host", "kernel", "busy-stream", "idle-stream"};

// The usual clock of a workload's measurements: host or busy-stream.
Clock usual_clock(const Scenario& scenario);

// A published unit in ns, bytes/ns, FLOP/ns or bytes, or in 1. Throws UserError for units that do not fit the
// metric.
double scale_of_unit(Metric metric, std::string_view unit, const std::string& where);

// Times of the kernels and copies of a rank. Two kernels of 10 us side by side are busy for 10 us, one after
// another for 20 us and the gap between them.
struct KernelSpan {
  double kernels_ns = 0;      // a kernel runs; a moment counts once for all kernels
  double busy_stream_ns = 0;  // a kernel, the gap before it or a copy runs
  double idle_stream_ns = 0;  // first launch call to last end, host work between kernels included
};

struct RankTimes {
  KernelSpan all;
  KernelSpan gemm;  // kernels with a matrix tile
  KernelSpan comm;  // other kernels and copies, from the call into the collective library on
};

// The results of one simulation of a scenario.
struct Prediction {
  double makespan_ns = 0;  // host clock
  double kernels_ns = 0;   // kernel clock
  double flops = 0;
  double bytes_per_gpu = 0;
  int peers = 0;      // peers that each active GPU moves data to or from
  double l2_hit = 0;  // share; llc_hit too
  double llc_hit = 0;
  double hbm_bytes = 0;
  std::vector<RankTimes> ranks;  // of the ranks that run kernels or copies

  double time_ns(Clock clock) const;
  // In ns, bytes/ns, FLOP/ns, bytes or 1, for the metrics that need no second scenario.
  double value(Metric metric, Clock clock) const;
};

// Whether a time on that clock is one of many equal calls in a row: a library's GEMM in a busy stream. Then
// the caches hold the data of the previous call, and the power limit of long load applies.
bool runs_back_to_back(const Scenario& scenario, Clock clock);

// Simulates one scenario. Throws UserError like build_scenario and simulate.
Prediction predict(const Scenario& scenario, const Machine& machine, bool back_to_back = false);

}  // namespace tritax
