// What predictions were compared with, as data: scenarios/compared.csv, one line a set of comparisons.
// sim/study/standing.hpp makes the bands of new predictions of it. scripts/make-accuracy writes the file from
// what `validate` and `reproduce` say under "compared".
//
//   set        measurements of one session on one node, or published numbers of one group
//   gpu        of the machine
//   workload
//   of         own: times of own kernels; library: of a vendor's; own/library: speedups over a vendor's
//   blind      measured once model and machine were finished, and used for nothing since
//   count      of comparisons
//   off        how far they were off, max(predicted / measured, measured / predicted) - 1: of many 20, evenly
//              by rank, so that a large set counts for no more than one of 20
//   problems   what their fields range over: "m=512..8192 n=256..4096 dtype=fp16"
//
// Comparisons of one set that differ in a name among their fields (dtype, routing, …) are several lines; bf16
// counts as fp16. Nothing here changes a prediction.
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

// Of a time of a pattern, or of the ratio of the times of two.
Compared compared_of(const Pattern& pattern);
Compared compared_of(const Pattern& a, const Pattern& b);

struct ComparedSet {
  std::string set;
  std::string gpu;
  std::string workload;
  Compared of = Compared::own;
  bool blind = false;
  std::int64_t count = 0;
  std::vector<double> off;  // rising
  std::vector<FieldRange> ranges;
};

// Throws UserError with file:line, column, value and what is allowed.
std::vector<ComparedSet> parse_compared(std::string_view csv, const std::string& origin);

// Those that come with Tritax.
const std::vector<ComparedSet>& shipped_comparisons();

// One comparison.
struct Comparison {
  std::string set;
  std::string gpu;
  Problem problem;
  Compared of = Compared::own;
  double error = 0;  // predicted / measured - 1, of times, rates, ratios and differences alike
};

// By all that makes lines, in order of appearance; not blind.
std::vector<ComparedSet> compared_sets(const std::vector<Comparison>& comparisons);

// The set of a file of measurements is its name without folder and ending: of "folder/file.csv:12" "file".
std::string set_of_place(const std::string& where);

// As the column "problems".
std::string problems_text(const std::vector<FieldRange>& ranges);

// The ranges that the problem lies outside of. Of numbers, what is within a factor of two of the range
// counts as inside, but one GPU is like one GPU only.
std::vector<const FieldRange*> outside_of(const ComparedSet& set, const Problem& problem);

}  // namespace tritax
