// The problems of a trace (trace.hpp): each product, or collective, with what stands right beside it.
//
// A product and the collective behind it are one problem if the collective gives as many elements, of the
// same type, as the product has results; a collective and the product behind it if what it brings is the left
// matrix of the product. Of three in a row the first two are taken. Whatever is left is a problem alone. What
// stands between two calls, such as a sum or a norm, is no call of a trace and parts nothing.
//
// Sizes in a trace are those of one GPU; fields of workloads that mean all GPUs together get them times the
// GPUs. For example, on eight GPUs aten::mm [16, 3584] x [3584, 8192], then an all-reduce of 131072 elements:
// GEMM + all-reduce with M 16, N 8192, K 28672. Of a collective alone a trace knows no shape: it gets rows of
// up to 8192 elements. What its workload refuses, such as the sum of one number, is counted as left out.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/imports/trace.hpp"
#include "model/scenario/scenario.hpp"

namespace tritax {

struct TracedProblem {
  Scenario scenario;       // with a pattern only if its workload has a usual one
  std::int64_t count = 0;  // how often it stands in the trace
  std::string first;       // the place of the first
};

struct TracedProblems {
  std::vector<TracedProblem> problems;  // in the order of the first of each
  std::map<std::string, std::int64_t> left_out;
};

// `machine` is what scenarios name; `gpus`: in groups of collectives that say none, 0: refuse these. Throws
// UserError with the place in the trace.
TracedProblems problems_of(const Trace& trace, const std::string& machine, int gpus);

// All of them as a scenario file; `head` becomes comment lines above.
std::string write_problems(const TracedProblems& found, const std::string& head);

}  // namespace tritax
