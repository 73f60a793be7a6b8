#include "model/workloads/ulysses_attention/draft.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/core/error.hpp"
#include "model/parts/attend_tiles.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kOpsOfTile = 8;  // where a schedule can hold as many

std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

// Number of tiles of all ranks.
double count_tiles(const SequenceAttention& problem, const UlyssesKnobs& knobs) {
  const auto tokens = static_cast<double>(problem.context);
  return (tokens / knobs.tile.m + problem.gpus) * static_cast<double>(problem.heads);
}

void check_size(const SequenceAttention& problem, const UlyssesKnobs& knobs, const Machine& machine) {
  check_dtype(problem.dtype, machine);
  if (problem.kv_heads < problem.gpus) {
    throw UserError(
        fmt::format("kv_heads: {} heads of keys are less than there are GPUs ({}); every GPU must have one",
                    problem.kv_heads, problem.gpus));
  }
  const double elements =
      4.0 * static_cast<double>(problem.context * (problem.heads + problem.kv_heads) * problem.depth);
  check_memory("this problem", elements * bytes_of(problem.dtype) / problem.gpus, machine.gpu);
  const double tiles = count_tiles(problem, knobs);
  if (tiles * (problem.gpus + 1) * 2 <= kMaxOperations) return;
  throw UserError(fmt::format(
      "tile: {:.0f} query tiles are too many to schedule (over {:.0f} tile operations); use larger tiles",
      tiles, kMaxOperations));
}

}  // namespace

UlyssesKnobs ulysses_knobs_of(const Values& values, const SequenceAttention& problem) {
  UlyssesKnobs knobs{gemm_knobs_of(values), attend_tile_of(values, problem.depth), attend_profile_of(values)};
  knobs.pull = values["transport"] != 0;
  return knobs;
}

double ulysses_bound_ns(const SequenceAttention& problem, const UlyssesKnobs& knobs, const Machine& machine) {
  double longest = 0, of_head = 0;  // blocks of keys
  for (std::int64_t row = 0; row < problem.context; row += knobs.tile.m) {
    const std::int64_t seen =
        problem.causal ? std::min(problem.context, row + knobs.tile.m) : problem.context;
    // Keys of a tile are taken in ranges, and each range rounds up.
    longest = static_cast<double>(seen) / knobs.tile.n;
    of_head += longest;
  }
  const auto heads = static_cast<double>(problem.key_heads(0).size() * problem.group());
  return attend_bound_ns(machine, problem.dtype, knobs.tile, knobs.profile, longest, of_head * heads);
}

HeadsDraft::HeadsDraft(std::string_view pattern, const SequenceAttention& problem_, const Machine& machine_,
                       const UlyssesKnobs& knobs_, bool stages_results)
    : problem(problem_), machine(machine_), knobs(knobs_), builder(std::string(pattern), problem_.gpus) {
  check_size(problem, knobs, machine);
  const std::int32_t depth = narrow(problem.depth), all = narrow(problem.context);
  const auto add = [&](const std::string& name, std::int32_t rows, std::int64_t heads,
                       std::int32_t tile_rows) {
    return builder.buffer({name, problem.dtype, rows, narrow(heads) * depth, tile_rows, depth});
  };
  const auto tensor = [&](const char* name, std::int64_t heads_of_key, std::int32_t tile_rows, bool moves) {
    HeadTensor made;
    made.heads_of_key = heads_of_key;
    made.own = add(name, own_rows(), problem.kv_heads * heads_of_key, tile_rows);
    made.by_heads = made.own;
    if (sends() && moves) {
      made.by_heads =
          add(std::string(name) + " by heads", all, problem.key_heads(0).size() * heads_of_key, tile_rows);
    }
    return made;
  };
  inputs = {tensor("Q", problem.group(), knobs.tile.m, true), tensor("K", 1, knobs.tile.n, true),
            tensor("V", 1, knobs.tile.n, true)};
  results = tensor("O", problem.group(), knobs.tile.m, stages_results);
  builder.result(results.own);
  for (const HeadTensor& input : inputs) builder.input(builder.whole(input.own));
  expect_results();
  const auto room = static_cast<std::int64_t>(kMaxOperations / 2 / count_tiles(problem, knobs)) - 2;
  const std::int64_t parts = std::clamp<std::int64_t>(room, 1, kOpsOfTile) * knobs.tile.n;
  keys_of_op_ = (problem.context + parts - 1) / parts * knobs.tile.n;
}

// Every rank ends with its tokens' results, computed from the tensors by heads of the owners of the heads.
void HeadsDraft::expect_results() {
  for (const HeadTensor& input : inputs) {
    for (int from = 0; sends() && from < ranks(); ++from) {
      for (int to = 0; to < ranks(); ++to) {
        builder.expect_copy({input.by_heads, to, by_heads(input, from, to)},
                            {input.own, from, by_tokens(input, from, to)});
      }
    }
  }
  const std::int32_t depth = narrow(problem.depth);
  for (int rank = 0; rank < ranks(); ++rank) {
    const Share heads = problem.key_heads(rank);
    for (std::int64_t head = heads.begin * problem.group(); head < heads.end * problem.group(); ++head) {
      const std::int32_t local = narrow(head / problem.group() - heads.begin) * depth;
      const Rect keys{0, local, narrow(problem.context), depth};
      for (int owner = 0; owner < ranks(); ++owner) {
        const Share tokens = problem.tokens(owner);
        const Rect rows{0, narrow(head) * depth, narrow(tokens.size()), depth};
        const Rect queries{narrow(tokens.begin), narrow(head - heads.begin * problem.group()) * depth,
                           rows.rows, depth};
        builder.expect_attention({results.own, owner, rows}, {inputs[0].by_heads, rank, queries},
                                 {inputs[1].by_heads, rank, keys}, {inputs[2].by_heads, rank, keys},
                                 problem.causal ? narrow(tokens.begin) + 1 : 0);
      }
    }
  }
}

std::int32_t HeadsDraft::own_rows() const { return narrow(problem.tokens(0).size()); }

Share HeadsDraft::columns(const HeadTensor& tensor, int rank) const {
  const Share heads = problem.key_heads(rank);
  const std::int64_t width = tensor.heads_of_key * problem.depth;
  return {heads.begin * width, heads.end * width};
}

Rect HeadsDraft::by_tokens(const HeadTensor& tensor, int tokens_of, int heads_of) const {
  const Share cols = columns(tensor, heads_of);
  return {0, narrow(cols.begin), narrow(problem.tokens(tokens_of).size()), narrow(cols.size())};
}

Rect HeadsDraft::by_heads(const HeadTensor& tensor, int tokens_of, int heads_of) const {
  const Share tokens = problem.tokens(tokens_of);
  return {narrow(tokens.begin), 0, narrow(tokens.size()), narrow(columns(tensor, heads_of).size())};
}

// Tiles by owner, in the order in which queries arrive, own tiles first. Under a mask, tiles of an owner that
// see more keys come first.
std::vector<HeadTile> HeadsDraft::tiles(int rank) const {
  std::vector<HeadTile> all;
  const std::int32_t depth = narrow(problem.depth);
  const std::int32_t heads = narrow(problem.key_heads(rank).size() * problem.group());
  for (int step = 0; step < ranks(); ++step) {
    const int owner = (rank - step + ranks()) % ranks();
    const Share tokens = problem.tokens(owner);
    const std::int32_t count = ceil_div(narrow(tokens.size()), knobs.tile.m);
    for (std::int32_t i = 0; i < count; ++i) {
      const std::int32_t row = (problem.causal ? count - 1 - i : i) * knobs.tile.m;
      const std::int32_t rows = std::min(knobs.tile.m, narrow(tokens.size()) - row);
      for (std::int32_t head = 0; head < heads; ++head) {
        all.push_back(
            {{narrow(tokens.begin) + row, head * depth, rows, depth}, tokens.begin + row, head, owner});
      }
    }
  }
  return all;
}

bool HeadsDraft::sees(const HeadTile& tile, int tokens_of) const {
  return !problem.causal || problem.tokens(tokens_of).begin < tile.token + tile.rect.rows;
}

void HeadsDraft::attend_range(const HeadTile& tile, Share keys) {
  const std::int32_t column = narrow(tile.head / problem.group() * problem.depth);
  ScheduleBuilder::Mask mask;
  if (problem.causal) {
    mask.limit = narrow(tile.token) + 1;
    keys.end = std::min(keys.end, tile.token + tile.rect.rows);
  }
  for (std::int64_t key = keys.begin; key < keys.end; key += keys_of_op_) {
    builder.attend(inputs[0].by_heads, tile.rect, inputs[1].by_heads, inputs[2].by_heads, column, narrow(key),
                   narrow(std::min(keys.end, key + keys_of_op_)), mask);
  }
}

void HeadsDraft::attend(const HeadTile& tile) { attend_range(tile, {0, problem.context}); }

void HeadsDraft::attend(const HeadTile& tile, int tokens_of) {
  attend_range(tile, problem.tokens(tokens_of));
}

void HeadsDraft::store(const HeadTile& tile, int rank, bool to_owner) {
  if (!to_owner) {
    builder.store(results.by_heads, tile.rect, rank);
    return;
  }
  Rect rect = tile.rect;
  rect.row -= narrow(problem.tokens(tile.owner).begin);
  rect.col += narrow(columns(results, rank).begin);
  builder.store(results.own, rect, tile.owner);
}

Kernel HeadsDraft::attend_kernel(int rank, std::string_view name) const {
  return attend_tile_kernel(machine.gpu, problem.dtype, knobs.tile, knobs.profile, rank, name);
}

}  // namespace tritax
