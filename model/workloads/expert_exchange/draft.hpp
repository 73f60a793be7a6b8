// A schedule of dispatch or combine under construction: buffers, inputs and expected results.
#pragma once

#include <string_view>
#include <vector>

#include "model/parts/expert_moves.hpp"
#include "model/workloads/expert_exchange/patterns.hpp"

namespace tritax {

struct ExpertDraft {
  // Throws UserError for exchanges that do not fit, or are too many blocks to schedule.
  ExpertDraft(std::string_view pattern, const ExpertExchange& problem, const Machine& machine,
              const ExpertKnobs& knobs);

  bool dispatches() const { return problem.step == ExpertStep::dispatch; }
  int ranks() const { return problem.routing.gpus; }
  std::int16_t add(const char* name, std::int32_t rows) {
    return builder.buffer({name, problem.dtype, rows, buffers.cols, 1, buffers.cols});
  }

  ExpertExchange problem;
  const Machine& machine;
  ExpertKnobs knobs;
  Routes routes;
  ScheduleBuilder builder;
  ExpertBuffers buffers;
};

// An exchange over nodes in which a token, or the sum of its results in a node, crosses between nodes once,
// by the own rail: between GPUs with the same place in their nodes (by_node.cpp).
class NodeRoutes {
 public:
  // Adds buffers and flags for kernels of `workgroups` workgroups; call it before any kernel. Throws
  // UserError unless the ranks fill their nodes.
  NodeRoutes(ExpertDraft& draft, std::int32_t workgroups);

  // The ranks to which a rank writes, or that write to it.
  std::vector<int> partners(int rank) const;
  // Adds the part of workgroup p on a rank.
  void dispatch(int rank, std::int32_t p);
  void combine(int rank, std::int32_t p);

 private:
  // The choices of a block of tokens, which follow each other in Routes::of(source).
  struct Block {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  int nodes() const { return draft_.ranks() / per_node_; }
  int node_of(int rank) const { return rank / per_node_; }
  // The GPU of a node with the place of `rank` in its own node.
  int rail(int node, int rank) const { return node * per_node_ + rank % per_node_; }
  std::vector<const Routed*> targets(int source, std::size_t block, int node) const;
  // Rows of a block in transit to or from a node.
  Rect slot(int source, std::size_t block, int node) const;
  // The blocks of a source that workgroup p handles, in chunks that one flag announces. visit(blocks, number
  // of the flag of a sender in this node).
  template <typename Visit>
  void for_chunks(int source, std::int32_t p, const Visit& visit) const;
  std::int32_t flag(int node, std::int32_t chunk) const { return node * chunks_ + chunk; }
  std::vector<Rect> pieces(std::int32_t rows) const;

  ExpertDraft& draft_;
  int per_node_ = 1;
  std::vector<std::vector<Block>> blocks_;            // by source
  std::vector<std::vector<std::int32_t>> slot_rows_;  // by source: (block, node); -1: nothing goes there
  std::int32_t workgroups_ = 1;
  std::int32_t chunks_of_workgroup_ = 0;
  std::int32_t chunks_ = 0;  // of a source
  std::int16_t rows_ = -1;
  std::int16_t sent_ = -1;
};

}  // namespace tritax
