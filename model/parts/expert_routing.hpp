// Routing of tokens to experts: the choices of each token, and the places of rows on the way there and back.
//
// Every one of W GPUs has `tokens` tokens. Each token goes to `top_k` different experts of `experts`. GPU r
// has the r-th share of the experts. The choices are drawn at random (deterministic in `seed`):
//
//   balanced  in turn, so that experts have as equal numbers of tokens as possible
//   uniform   every expert with the same weight
//   zipf      expert number i of a random order with weight 1/(i+1)^(skew/100)
//
// Draws are without replacement: the choices of a token are the k smallest of -ln(u_e)/w_e (Efraimidis and
// Spirakis, Inf. Process. Lett. 97, 2006). With a capacity, an expert takes at most capacity/100 times its
// even share of all choices, and at least one block, by GPU and then by token; later choices are dropped.
//
// Instead of a draw, a histogram may say how many choices fall on each expert, for all GPUs together or for
// each GPU (model/parts/expert_histogram.hpp). The numbers are scaled to tokens · top_k choices per GPU; with
// one row per GPU, to this number on the GPU with the most choices. Numbers that add up to it stay as they
// are, up to blocks. The tokens are dealt as follows: the choices of one expert after the other, in a random
// order of experts, fall on all tokens in turn, so that no token has an expert twice (McNaughton's
// wrap-around rule, Manage. Sci. 6, 1959).
//
// Tokens are routed in blocks of `block` tokens that go the same way; with 1 every token goes its own way.
// Large numbers of tokens need larger blocks, because every block is an operation of a schedule.
//
// A *target* is an expert. Where a token goes only once to each GPU, whatever experts it goes to there, a
// target is a GPU. Order of rows:
//
//   at a source   by target, then by token      (sorted before tokens leave; results come back to this order)
//   at an owner   by its targets, then by source, then by token     (contiguous for the product of an expert)
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "model/parts/expert_histogram.hpp"
#include "model/parts/kernels.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

enum class RoutingKind : std::uint8_t { balanced, uniform, zipf };
inline constexpr std::array<std::string_view, 3> kRoutingNames{"balanced", "uniform", "zipf"};

struct ExpertRouting {
  std::int64_t tokens = 1;  // per GPU
  std::int64_t experts = 1;
  std::int64_t top_k = 1;
  RoutingKind kind = RoutingKind::uniform;
  std::int64_t skew = 100;
  std::int64_t seed = 1;
  std::int64_t capacity = 0;  // in percent; 0: nothing is dropped
  std::int64_t block = 1;
  int gpus = 1;
  bool once_per_gpu = false;
  std::shared_ptr<const ExpertHistogram> histogram = nullptr;  // instead of a draw
};

// Rows for tables of fields: tokens, experts, top_k, routing, skew, histogram, routing_seed, capacity, block.
Spec routing_field(std::string_view name);
// Sets `block` where the problem gives none, to the least power of two that gives few enough blocks; and
// `experts` where a histogram says it. Throws UserError for more choices than experts, fewer experts than
// GPUs, or a histogram that contradicts the other fields.
void complete_routing(Problem& problem, const FieldPlace& place);
ExpertRouting routing_of(const Problem& problem, bool once_per_gpu);

// A block of tokens on its way to a target.
struct Routed {
  std::int32_t token = 0;  // first token, at its source
  std::int32_t rows = 0;
  int target = 0;
  std::int32_t at_source = 0;  // first row among the rows of the source
  std::int32_t at_owner = 0;   // first row among the rows of the target's GPU
};

class Routes {
 public:
  explicit Routes(const ExpertRouting& routing);

  int targets() const { return static_cast<int>(owner_.size()); }
  int owner(int target) const { return owner_[static_cast<std::size_t>(target)]; }
  Share targets_of(int rank) const;
  // Blocks of a source, in the order of its tokens; the choices of one block follow each other.
  const std::vector<Routed>& of(int source) const { return routed_[static_cast<std::size_t>(source)]; }

  std::int32_t rows(int source, int target) const { return rows_[at(source, target)]; }
  std::int32_t source_begin(int source, int target) const { return source_begin_[at(source, target)]; }
  std::int32_t owner_begin(int source, int target) const { return owner_begin_[at(source, target)]; }
  std::int32_t target_begin(int target) const { return owner_begin(0, target); }
  std::int32_t target_rows(int target) const;
  // All rows that leave a source, or that arrive at an owner.
  std::int32_t rows_of_source(int source) const;
  std::int32_t rows_of_owner(int rank) const;
  // Rows from a source to an owner; contiguous at the source.
  std::int32_t rows_between(int source, int rank) const;
  std::int32_t most_rows_of_source() const;
  std::int32_t most_rows_of_owner() const;
  std::int32_t most_rows_between() const;

  int ranks() const { return ranks_; }

 private:
  std::size_t at(int source, int target) const {
    return static_cast<std::size_t>(source) * owner_.size() + static_cast<std::size_t>(target);
  }
  void place();

  int ranks_ = 1;
  bool once_per_gpu_ = false;
  std::int64_t experts_ = 1;
  std::vector<int> owner_;
  std::vector<std::vector<Routed>> routed_;
  std::vector<std::int32_t> rows_, source_begin_, owner_begin_;  // (source, target)
};

}  // namespace tritax
