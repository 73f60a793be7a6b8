// One question, one verdict: does it pay to build an own kernel, or is the library enough? Every command,
// page and binding with an answer asks this question.
//
//   unknown    the time of the library is doubted; or own patterns have knobs that were not searched, and do
//              not win
//
//   tie        the difference is smaller than the error of predictions: max <= (1 + band) min
//
//   leave it   the library is faster
//
//   pays       an own pattern is faster by more than the band, and comparable measurements exist
//
//   may pay    an own pattern is faster, but no comparable measurement exists, so that the band is unknown,
//              or its time is doubted
//
// For example own 80 us, library 100 us, band 5 %: pays. At a band of 30 %: a tie. Own 80 us with default
// knobs and library 70 us: unknown, because a search might find 60.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tritax {

enum class Verdict : std::uint8_t { alone, pays, may_pay, tie, leave_it, unknown };
inline constexpr std::array<std::string_view, 6> kVerdictNames{"nothing to fuse", "pays",   "may pay", "tie",
                                                               "leave it",        "unknown"};
inline std::string_view name_of(Verdict verdict) { return kVerdictNames[static_cast<std::size_t>(verdict)]; }

// The two times of a question and their quality.
struct Contest {
  double own_ns = 0;
  double there_ns = 0;           // time of the library
  double band = 0;               // relative, of both sides; 0: unknown
  bool compared = true;          // a comparable measurement exists
  bool own_doubted = false;      // the own time is known to be wrong …
  bool library_doubted = false;  // … or the library's time
  bool searched = true;          // the own knobs were searched
};

Verdict verdict_on(const Contest& contest);

}  // namespace tritax
