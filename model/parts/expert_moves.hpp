// Moves of rows of tokens to experts and back, by kernels of the workload or by a vendor's library.
// expert_routing.hpp says how rows lie.
#pragma once

#include <cstdint>
#include <string_view>

#include "model/parts/expert_routing.hpp"
#include "model/parts/gemm_knobs.hpp"
#include "model/schedule/builder.hpp"

namespace tritax {

// Buffers of the way there and back, all of `cols` columns; -1: not needed.
struct ExpertBuffers {
  std::int16_t tokens = -1;     // at a source, by token
  std::int16_t sorted = -1;     // at a source, by target: sent by a collective
  std::int16_t received = -1;   // at an owner, by source: received from a collective
  std::int16_t at_owner = -1;   // at an owner, by target
  std::int16_t results = -1;    // at an owner, by target: the results of the experts
  std::int16_t to_return = -1;  // at an owner, by source: sent back by a collective
  std::int16_t back = -1;       // at a source, by target
  std::int16_t sums = -1;       // at a source, by token
  std::int32_t cols = 0;
};

// Workgroup p of `count` copies its part of a source's tokens to their targets. An owner that pulls copies
// its part of the tokens of all sources.
void push_tokens(ScheduleBuilder& builder, const Routes& routes, const ExpertBuffers& buffers, int source,
                 std::int32_t p, std::int32_t count);
void pull_tokens(ScheduleBuilder& builder, const Routes& routes, const ExpertBuffers& buffers, int owner,
                 std::int32_t p, std::int32_t count);

// Workgroup p copies its part of an owner's results to `back` of their sources.
void push_results(ScheduleBuilder& builder, const Routes& routes, const ExpertBuffers& buffers, int owner,
                  std::int32_t p, std::int32_t count);

// The largest piece of rows that is added up at a time; 0: as much as a kernel without matrix tiles holds.
struct SumPiece {
  std::int32_t rows = 0;
  std::int32_t cols = 0;
};

// Workgroup p adds up its part of a source's tokens, from the returned results, or from results that it reads
// at the owners. `serves`: whether it has the loads of all rows of a token in flight together.
void sum_results(ScheduleBuilder& builder, const Routes& routes, const ExpertBuffers& buffers, int source,
                 bool from_owners, std::int32_t p, std::int32_t count, SumPiece most = {},
                 ServesPeers serves = ServesPeers::in_turn);

// Launches the kernels of one way with the library, in order; results are not added up. `arrived`: flags
// (channel, rank). Copies into another order are a framework's. A single GPU sorts its tokens to the place
// where experts use them (`sorted` is `at_owner`), and adds results where they lie (`back` is `results`).
void launch_library_dispatch(ScheduleBuilder& builder, const Machine& machine, const Routes& routes,
                             const ExpertBuffers& buffers, int rank, double bytes_of_element,
                             std::int16_t arrived);
void launch_library_return(ScheduleBuilder& builder, const Machine& machine, const Routes& routes,
                           const ExpertBuffers& buffers, int rank, double bytes_of_element,
                           std::int16_t arrived);

// Launches a kernel that adds up the returned results; its workgroups share the blocks of tokens.
void launch_sums(ScheduleBuilder& builder, const Routes& routes, const ExpertBuffers& buffers,
                 const Machine& machine, int rank);

// A kernel of workgroups that copy or add, without its workgroups. A kernel that is not `persistent` may have
// more workgroups than a GPU holds.
std::int32_t row_kernel(ScheduleBuilder& builder, int rank, std::string_view name, bool persistent);

// Expected results: tokens at their targets; sums of `results` of the targets.
void expect_dispatched(ScheduleBuilder& builder, const Routes& routes, const ExpertBuffers& buffers);
void expect_summed(ScheduleBuilder& builder, const Routes& routes, const ExpertBuffers& buffers);

}  // namespace tritax
