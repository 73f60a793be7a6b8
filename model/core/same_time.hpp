// Which times are the same. Sums of rounded durations differ in their last digits where those of the
// durations do not, and the rounding must not decide who was first: that would make a result depend on the
// unit of time and on the compiler.
#pragma once

namespace tritax {

// Times [ns] that are relatively this close are one time. Rounding left 1e-16 to 6e-12 in 80,000 random runs
// scaled by a factor (ScalingLaw); of a run of 10 ms this is 0.1 ps, a thousandth of a clock.
constexpr double kSameTime = 1e-11;

// The last time that is the same as `time_ns`.
constexpr double same_time_until(double time_ns) { return time_ns * (1 + kSameTime); }

constexpr bool later(double time_ns, double than_ns) { return time_ns > same_time_until(than_ns); }

}  // namespace tritax
