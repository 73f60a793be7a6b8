// Comparisons of predictions with measurements, as data: scenarios/compared.csv, one line per set of
// comparisons. sim/study/trust.hpp derives the bands of new predictions from them. scripts/make-accuracy
// writes the file from the "compared" output of `validate` and `reproduce`.
//
//   set        measurements of one session on one node, or published numbers of one group
//   gpu        of the machine
//   workload
//   of         own: times of own kernels; library: of a vendor's; own/library: speedups over a vendor's
//   blind      measured after model and machine were finished, and used for nothing since
//   count      of comparisons
//   off        errors, max(predicted / measured, measured / predicted) - 1: if there are many, 20 of them,
//              evenly by rank, so that a large set counts no more than a set of 20
//   problems   ranges of their fields: "m=512..8192 n=256..4096 dtype=fp16"
//
// Comparisons of one set that differ in a name among their fields (dtype, routing, …) are several lines; bf16
// counts as fp16. No prediction changes by this file.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/machine/doubt.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

enum class Compared : std::uint8_t { own, library, own_over_library };
inline constexpr std::array<std::string_view, 3> kComparedNames{"own", "library", "own/library"};
inline std::string_view name_of(Compared of) { return kComparedNames[static_cast<std::size_t>(of)]; }

// Kind of the time of a pattern, or of the ratio of the times of two patterns.
Compared compared_of(const Pattern& pattern);
Compared compared_of(const Pattern& a, const Pattern& b);

struct ComparedSet {
  std::string set;
  std::string gpu;
  std::string workload;
  Compared of = Compared::own;
  bool blind = false;
  std::int64_t count = 0;
  std::vector<double> off;  // in rising order
  std::vector<FieldRange> ranges;
};

// Throws UserError with file:line, column, value and the allowed values.
std::vector<ComparedSet> parse_compared(std::string_view csv, const std::string& origin);

// The comparisons that come with Tritax.
const std::vector<ComparedSet>& shipped_comparisons();

// One comparison.
struct Comparison {
  std::string set;
  std::string gpu;
  Problem problem;
  Compared of = Compared::own;
  double error = 0;  // predicted / measured - 1, for times, rates, ratios and differences
};

// Groups comparisons into the lines of the file, in order of appearance; `blind` is false.
std::vector<ComparedSet> compared_sets(const std::vector<Comparison>& comparisons);

// The set of a file of measurements is its name without folder and ending: "folder/file.csv:12" gives "file".
std::string set_of_place(const std::string& where);

// The text of the column "problems".
std::string problems_text(const std::vector<FieldRange>& ranges);

// The ranges that the problem lies outside of. A number within a factor of two of the range counts as inside,
// but one GPU only matches one GPU.
std::vector<const FieldRange*> outside_of(const ComparedSet& set, const Problem& problem);

}  // namespace tritax
