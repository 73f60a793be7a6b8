// Shared by tests of workloads with partial sums: knobs, soundness over three runs, bytes on links.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "model/schedule/check.hpp"
#include "model/schedule/items.hpp"
#include "model/workload/workload.hpp"
#include "sim/functional.hpp"
#include "tests/workloads/draw.hpp"
#include "tests/workloads/repeated.hpp"

namespace tritax::partial_sums_test {

inline Values small_tiles(const Workload& workload) {
  Values knobs(workload.knobs);
  for (const char* side : {"tile_m", "tile_n", "tile_k"}) knobs.give(side, 32);
  return knobs;
}

inline Schedule built(const Pattern& pattern, const Problem& asked, const Machine& machine,
                      const Values& knobs) {
  return build_schedule(pattern, asked, machine, resolved_knobs(asked, machine, knobs));
}

// Random values of all knobs of the table.
inline Values some_knobs(const Workload& workload, const Machine& machine) {
  Values knobs(workload.knobs);
  knobs.give("tile_m", 16 * between(1, 4));
  knobs.give("tile_n", 16 * between(1, 4));
  knobs.give("tile_k", 16 * between(1, 2));
  if (coin()) {
    knobs.give("comm_tile_m", 16 * between(1, 4));
    knobs.give("comm_tile_n", 16 * between(1, 4));
  }
  const int cus = machine.gpu.cu_count();
  if (coin()) knobs.give("gemm_cus", between(1, cus - 1));
  if (coin()) {
    const int computing = std::max(1, static_cast<int>(knobs["gemm_cus"]));
    knobs.give("comm_cus", between(1, std::max(1, cus - computing)));
  }
  const auto give_any = [&](const char* knob, int low, int high) {
    const int value = between(low, high);
    if (knobs.has(knob)) knobs.give(knob, value);
  };
  give_any("transport", 0, 1);
  give_any("owners", 0, 1);
  give_any("chunks", 1, 5);
  give_any("rings", 1, 4);
  give_any("wire_dtype", 0, kCommonDTypeCount);
  give_any("result_dtype", 0, kCommonDTypeCount);
  give_any("sharing", 0, 3);
  give_any("k_split", 1, 5);
  give_any("group_m", 1, 4);
  give_any("xcd_remap", 0, 1);
  if (knobs.get_or("xcd_remap", 0) != 0) give_any("xcd_chunk", 1, 40);
  give_any("peer_order", 0, 2);
  give_any("launch", 0, 1);
  give_any("host_barriers", 0, 1);
  return knobs;
}

// What a user relies on, three times in a row: no finding, nothing stale, the right sum on every rank. Says
// what is wrong, or nothing.
inline std::string what_is_wrong(const Pattern& pattern, const Problem& asked, const Machine& machine,
                                 const Values& knobs) {
  const Schedule schedule = repeated(built(pattern, asked, machine, knobs), 3);
  const std::string name = std::string(pattern.name) + ": ";
  const std::vector<Finding> findings = check_schedule(schedule);
  if (!findings.empty()) return name + findings.front().where + ": " + findings.front().message;
  const FunctionalResult result = execute_functionally(schedule, machine, 7);
  if (!result.stale_reads.empty()) return name + result.stale_reads.front();
  if (!(result.max_relative_error <= result.right_within)) {
    return name + "relative error " + std::to_string(result.max_relative_error);
  }
  return {};
}

// Bytes that each rank sends to others or that others fetch from it.
inline std::map<int, double> sent_bytes(const Schedule& schedule) {
  std::map<int, double> bytes;
  const auto bytes_of_op = [&](const Op& op) {
    return bytes_of(schedule.buffers[static_cast<std::size_t>(op.buffer)], op.rect);
  };
  for (const Kernel& kernel : schedule.kernels) {
    for (std::size_t p = 0; p < program_count(kernel); ++p) {
      const Workgroup& workgroup = program_of(kernel, p);
      for (std::uint32_t i = 0; i < workgroup.op_count; ++i) {
        const Op& op = schedule.ops[workgroup.first_op + i];
        const bool puts =
            op.kind == OpKind::store || op.kind == OpKind::copy || op.kind == OpKind::atomic_add;
        if (puts && op.rank != kernel.rank) bytes[kernel.rank] += bytes_of_op(op);
        if (op.kind == OpKind::reduce && op.rank != kernel.rank) bytes[op.rank] += bytes_of_op(op);
        if (op.kind == OpKind::copy && op.src_rank != kernel.rank) bytes[op.src_rank] += bytes_of_op(op);
      }
    }
  }
  for (const Op& op : schedule.transfers) {
    if (op.rank != op.src_rank) bytes[op.src_rank] += bytes_of_op(op);
  }
  return bytes;
}

}  // namespace tritax::partial_sums_test
