// How rows of tokens go to experts and come back, for workloads that do it with kernels of their own or with
// a vendor's library. Rows lie as expert_routing.hpp says.
#pragma once

#include <cstdint>
#include <string_view>

#include "model/parts/expert_routing.hpp"
#include "model/schedule/builder.hpp"

namespace tritax {

// Buffers of a way there and back, all of `cols` columns; -1: not needed.
struct ExpertBuffers {
  std::int16_t tokens = -1;     // of a source, by token
  std::int16_t sorted = -1;     // of a source, by target: what a collective sends
  std::int16_t received = -1;   // of an owner, by source: what it gets
  std::int16_t at_owner = -1;   // of an owner, by target
  std::int16_t results = -1;    // of an owner, by target: what goes back
  std::int16_t to_return = -1;  // of an owner, by source: what a collective sends
  std::int16_t back = -1;       // of a source, by target
  std::int16_t sums = -1;       // of a source, by token
  std::int32_t cols = 0;
};

// Workgroup p of `count` copies its part of a source's tokens to where their targets are; of an owner that
// pulls, its part of the tokens of all sources.
void push_tokens(ScheduleBuilder& builder, const Routes& routes, const ExpertBuffers& buffers, int source,
                 std::int32_t p, std::int32_t count);
void pull_tokens(ScheduleBuilder& builder, const Routes& routes, const ExpertBuffers& buffers, int owner,
                 std::int32_t p, std::int32_t count);

// … copies its part of an owner's results to `back` of their sources.
void push_results(ScheduleBuilder& builder, const Routes& routes, const ExpertBuffers& buffers, int owner,
                  std::int32_t p, std::int32_t count);

// The largest piece of rows that is added up at a time; 0: what a kernel without matrix tiles holds.
struct SumPiece {
  std::int32_t rows = 0;
  std::int32_t cols = 0;
};

// … adds up, for its part of a source's tokens, what has come back; or what it reads at the owners.
void sum_results(ScheduleBuilder& builder, const Routes& routes, const ExpertBuffers& buffers, int source,
                 bool from_owners, std::int32_t p, std::int32_t count, SumPiece most = {});

// Kernels of a way with the library, in the order in which they are launched. Results without sums.
// `arrived`: flags (channel, rank). Copies into another order are a framework's. A GPU alone sorts its tokens
// to where they are used (`sorted` is `at_owner`) and adds results where they lie (`back` is `results`).
void launch_library_dispatch(ScheduleBuilder& builder, const Machine& machine, const Routes& routes,
                             const ExpertBuffers& buffers, int rank, double bytes_of_element,
                             std::int16_t arrived);
void launch_library_return(ScheduleBuilder& builder, const Machine& machine, const Routes& routes,
                           const ExpertBuffers& buffers, int rank, double bytes_of_element,
                           std::int16_t arrived);

// A kernel that adds up what has come back, of a workgroup per block of tokens.
void launch_sums(ScheduleBuilder& builder, const Routes& routes, const ExpertBuffers& buffers,
                 const Machine& machine, int rank);

// A kernel of workgroups that copy or add, without its workgroups. Those that are not `persistent` may be
// more than a GPU holds.
std::int32_t row_kernel(ScheduleBuilder& builder, int rank, std::string_view name, bool persistent);

// What must come out: tokens where their targets are; sums of `results` of the targets.
void expect_dispatched(ScheduleBuilder& builder, const Routes& routes, const ExpertBuffers& buffers);
void expect_summed(ScheduleBuilder& builder, const Routes& routes, const ExpertBuffers& buffers);

}  // namespace tritax
