// Decides which times are equal. Equal times that are computed as sums of rounded durations differ in their
// last digits. This rounding must not decide which event comes first: otherwise a result would depend on the
// unit of time and on the compiler.
#pragma once

namespace tritax {

// Times [ns] whose relative difference is at most this are equal. Rounding left 1e-16 to 6e-12 in 80,000
// random runs scaled by a factor (ScalingLaw). In a run of 10 ms this is 0.1 ps, a thousandth of a clock.
constexpr double kSameTime = 1e-11;

// The latest time that is equal to `time_ns`.
constexpr double same_time_until(double time_ns) { return time_ns * (1 + kSameTime); }

constexpr bool later(double time_ns, double than_ns) { return time_ns > same_time_until(than_ns); }

}  // namespace tritax
