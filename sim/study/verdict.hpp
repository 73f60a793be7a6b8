// One question, one verdict: does it pay to build an own kernel, or is it left to what is there? Every
// command, page and binding that answers asks this.
//
//   unknown    the time of the library is doubted; or own patterns have knobs that nobody searched, and do
//              not win
//
//   tie        the two are closer than predictions are off: max <= (1 + band) min
//
//   leave it   the library is faster
//
//   pays       an own pattern is faster by more than the band, and something like it was compared with a
//              measurement
//
//   may pay    it is faster, but nothing comparable was measured, so that the band is unknown, or its time is
//              doubted
//
// For example own 80 us, library 100 us, band 5 %: pays. At a band of 30 %: a tie. Own 80 us of default knobs
// and library 70 us: unknown, for a search might find 60.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tritax {

enum class Verdict : std::uint8_t { alone, pays, may_pay, tie, leave_it, unknown };
inline constexpr std::array<std::string_view, 6> kVerdictNames{"nothing to fuse", "pays",   "may pay", "tie",
                                                               "leave it",        "unknown"};
inline std::string_view name_of(Verdict verdict) { return kVerdictNames[static_cast<std::size_t>(verdict)]; }

// The two times of a question and what is known of them.
struct Contest {
  double own_ns = 0;
  double there_ns = 0;           // of the library
  double band = 0;               // relative, of both sides; 0: unknown
  bool compared = true;          // anything like it was, with a measurement
  bool own_doubted = false;      // its time is known to be wrong …
  bool library_doubted = false;  // … or that of the library
  bool searched = true;          // the knobs of the own one
};

Verdict verdict_on(const Contest& contest);

}  // namespace tritax
