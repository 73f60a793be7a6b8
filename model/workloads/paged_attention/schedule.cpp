#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "model/core/error.hpp"
#include "model/parts/attend_tiles.hpp"
#include "model/parts/kernels.hpp"
#include "model/parts/library_attention.hpp"
#include "model/workloads/paged_attention/problem.hpp"

namespace tritax {

namespace {

// Keys per operation, in tiles; small enough that cache contents can change in between.
constexpr std::int64_t kKeysOfPagedOp = 2048;
constexpr std::int64_t kMostPagedOps = 8;  // per range of keys

std::int32_t to_int(std::int64_t value) { return static_cast<std::int32_t>(value); }

std::int64_t up_to_multiple(std::int64_t value, std::int64_t of) { return (value + of - 1) / of * of; }

class PagedDraft {
 public:
  PagedDraft(std::string_view name, const PagedProblem& problem, const PagedKnobs& knobs,
             const Machine& machine)
      : problem_(problem),
        knobs_(knobs),
        machine_(machine),
        builder_(std::string(name), 1),
        cu_(first_tokens(problem.sequences)),
        block_q_(knobs.by_head ? 1 : knobs.tile.m / problem.group()) {
    std::int64_t rows = 0;
    for (const PagedSequence& sequence : problem.sequences) {
      first_key_.push_back(rows);
      rows += up_to_multiple(sequence.keys, problem.page);
    }
    first_key_.push_back(rows);
    check_size();
    if (knobs.prepares) {
      const auto columns = to_int(std::ssize(problem.sequences));
      lengths_ = builder_.buffer({"lengths", DType::fp32, 2, columns, 1, columns});
      builder_.input(builder_.whole(lengths_));
    }
    if (split()) {
      const std::int32_t columns = to_int(problem.depth) + 1;
      partials_ = builder_.buffer(
          {"partials", DType::fp32, to_int(knobs.segments * rows_of_queries()), columns, 1, columns});
    }
  }

  Schedule build() {
    Graph graph;
    for (std::int64_t layer = 0; layer < knobs_.layers; ++layer) {
      add_buffers(layer);
      expect_results();
      if (knobs_.prepares) add_kernel(add_prepare_kernel(), true, graph);
      add_kernel(add_attend_kernel(), true, graph);
      if (split()) add_kernel(add_merge_kernel(), true, graph);
      if (knobs_.rest_ns > 0) add_kernel(add_rest(), false, graph);
    }
    if (knobs_.graph) builder_.graph_launch(0, std::move(graph));
    builder_.host(0, HostOpKind::device_synchronize);
    return builder_.finish();
  }

 private:
  bool split() const { return knobs_.segments > 1; }
  std::int64_t tokens() const { return cu_.back(); }
  std::int64_t rows_of_queries() const { return tokens() * problem_.heads; }
  std::int64_t launched_tokens() const {
    return knobs_.graph ? std::max(knobs_.captured, tokens()) : tokens();
  }
  std::int64_t query_row(std::int64_t kv, std::int64_t token) const {
    return (kv * tokens() + token) * problem_.group();
  }
  std::size_t sequence_of(std::int64_t token) const {
    return static_cast<std::size_t>(std::upper_bound(cu_.begin(), cu_.end(), token) - cu_.begin()) - 1;
  }
  std::int64_t blocks() const {
    return query_programs(launched_tokens(), problem_.sequences.size(), block_q_);
  }
  Rect queries(std::int64_t row, std::int64_t rows) const {
    return {to_int(row), 0, to_int(rows), to_int(problem_.depth)};
  }
  Rect partial(std::int64_t segment, std::int64_t row, std::int64_t rows) const {
    return {to_int(segment * rows_of_queries() + row), 0, to_int(rows), to_int(problem_.depth) + 1};
  }

  void check_size() const;
  void add_buffers(std::int64_t layer);
  void expect_results();
  std::int32_t begin_kernel(std::string_view name, const Resources& resources, const MatmulTile& tile);
  std::int32_t add_attend_kernel();
  std::int32_t add_merge_kernel();
  std::int32_t add_prepare_kernel();
  std::int32_t add_rest();
  void add_kernel(std::int32_t kernel, bool called, Graph& graph);

  void attend(std::size_t sequence, std::int64_t kv, Rect rect, std::int64_t first_query, KeyRange keys);
  bool add_block(std::int64_t block, std::int64_t kv, std::int64_t segment);
  bool add_head(std::int64_t token, std::int64_t head);
  bool add_program(std::int64_t w);

  const PagedProblem& problem_;
  const PagedKnobs& knobs_;
  const Machine& machine_;
  ScheduleBuilder builder_;
  std::vector<std::int64_t> cu_;
  std::vector<std::int64_t> first_key_;  // row of the cache, by sequence; at the end the total
  std::int64_t block_q_ = 1;             // tokens
  std::int16_t q_ = -1, k_ = -1, v_ = -1, o_ = -1, partials_ = -1, lengths_ = -1;
};

void PagedDraft::check_size() const {
  check_dtype(problem_.dtype, machine_);
  if (knobs_.graph && knobs_.captured > 0 && knobs_.captured < tokens()) {
    throw UserError(
        fmt::format("captured = {}: the batch has {} tokens, and a graph runs no more than it was "
                    "captured for; give at least {}",
                    knobs_.captured, tokens(), tokens()));
  }
  if (block_q_ < 1) {
    throw UserError(fmt::format("block_m = {} rows cannot hold the {} query heads that share a head of keys",
                                knobs_.tile.m, problem_.group()));
  }
  const double e = bytes_of(problem_.dtype);
  const auto depth = static_cast<double>(problem_.depth), rows = static_cast<double>(rows_of_queries());
  const auto layers = static_cast<double>(knobs_.layers), segments = static_cast<double>(knobs_.segments);
  const double cache = 2 * static_cast<double>(first_key_.back() * problem_.kv_heads) * depth * e;
  const double partials = split() ? segments * rows * (depth + 1) * 4 : 0;
  check_memory("this batch", layers * (cache + 2 * rows * depth * e) + partials, machine_.gpu);
  const double programs = knobs_.by_head ? static_cast<double>(launched_tokens() * problem_.heads)
                                         : static_cast<double>(blocks() * problem_.kv_heads) * segments;
  const double merged =
      split() ? static_cast<double>(launched_tokens() * problem_.heads) * (segments + 1) : 0;
  const double operations = layers * (3 * programs + merged);
  if (operations <= kMaxOperations && segments * rows < 2e9) return;
  throw UserError(
      fmt::format("sequences: {} tokens of {} heads in {} segments and {} layers are too many to "
                  "schedule (over {:.0f} tile operations); use fewer segments or layers, or a "
                  "smaller batch",
                  tokens(), problem_.heads, knobs_.segments, knobs_.layers, kMaxOperations));
}

// Each layer has a separate cache, which no earlier layer has left in a cache of the GPU.
void PagedDraft::add_buffers(std::int64_t layer) {
  const std::int32_t depth = to_int(problem_.depth), rows = to_int(rows_of_queries());
  const std::int32_t columns = to_int(problem_.kv_heads) * depth;
  const auto add = [&](const char* name, std::int32_t height, std::int32_t width, std::int32_t tile) {
    const std::string full = knobs_.layers == 1 ? name : fmt::format("{}{}", name, layer);
    return builder_.buffer({full, problem_.dtype, height, width, tile, depth});
  };
  q_ = add("Q", rows, depth, knobs_.tile.m);
  k_ = add("K", to_int(first_key_.back()), columns, to_int(problem_.page));
  v_ = add("V", to_int(first_key_.back()), columns, to_int(problem_.page));
  o_ = add("O", rows, depth, 1);
  builder_.result(o_);
  for (const std::int16_t buffer : {q_, k_, v_}) builder_.input(builder_.whole(buffer));
}

void PagedDraft::expect_results() {
  for (std::size_t s = 0; s < problem_.sequences.size(); ++s) {
    const PagedSequence& sequence = problem_.sequences[s];
    for (std::int64_t kv = 0; kv < problem_.kv_heads; ++kv) {
      const Rect rows = queries(query_row(kv, cu_[s]), sequence.queries * problem_.group());
      const Rect keys{to_int(first_key_[s]), to_int(kv * problem_.depth), to_int(sequence.keys),
                      to_int(problem_.depth)};
      const std::int32_t limit = sequence.queries > 1 ? to_int(sequence.history()) + 1 : 0;
      builder_.expect_attention({o_, 0, rows}, {q_, 0, rows}, {k_, 0, keys}, {v_, 0, keys}, limit,
                                to_int(problem_.group()));
    }
  }
}

std::int32_t PagedDraft::begin_kernel(std::string_view name, const Resources& resources,
                                      const MatmulTile& tile) {
  Kernel kernel;
  kernel.name = std::string(name);
  kernel.resources = resources;
  kernel.tile = tile;
  if (knobs_.vendor) {
    const bool merges = tile.m == 0;
    kernel.profile = KernelProfile::vendor;
    kernel.library = library_kernel_of(merges ? LibraryRoutine::plain : LibraryRoutine::attention,
                                       problem_.dtype, knobs_.call);
    return builder_.kernel(std::move(kernel));
  }
  // Accesses of a program before it knows its keys: problem.hpp.
  const auto accesses = static_cast<std::int32_t>(std::bit_width(problem_.sequences.size() - 1) + 2);
  kernel.library = {.routine = LibraryRoutine::lookup, .accesses = accesses};
  return builder_.kernel(std::move(kernel));
}

// Attends with queries from `first_query` on to a range of keys of their sequence.
void PagedDraft::attend(std::size_t sequence, std::int64_t kv, Rect rect, std::int64_t first_query,
                        KeyRange keys) {
  ScheduleBuilder::Mask mask;
  if (rect.rows > problem_.group()) {  // of more than one token
    mask.limit = to_int(first_key_[sequence] + problem_.sequences[sequence].history() + first_query + 1);
    mask.group = to_int(problem_.group());
  }
  const std::int64_t size = keys.end - keys.begin;
  const std::int64_t ops = std::clamp<std::int64_t>(size / kKeysOfPagedOp, 1, kMostPagedOps);
  const std::int64_t piece = up_to_multiple((size + ops - 1) / ops, knobs_.tile.n);
  for (std::int64_t key = keys.begin; key < keys.end; key += piece) {
    builder_.attend(q_, rect, k_, v_, to_int(kv * problem_.depth), to_int(first_key_[sequence] + key),
                    to_int(first_key_[sequence] + std::min(keys.end, key + piece)), mask);
  }
}

// Returns false if there is nothing to do.
bool PagedDraft::add_block(std::int64_t p, std::int64_t kv, std::int64_t segment) {
  const QueryBlock block = block_of_program(cu_, block_q_, p);
  if (block.tokens == 0) return false;
  const PagedSequence& sequence = problem_.sequences[block.sequence];
  const std::int64_t seen = sequence.history() + block.first + block.tokens;
  const KeyRange keys = segment_keys(sequence.keys, seen, knobs_.segments, knobs_.tile.n, segment);
  if (keys.empty()) return false;
  const std::int64_t row = query_row(kv, cu_[block.sequence] + block.first);
  const std::int64_t rows = block.tokens * problem_.group();
  attend(block.sequence, kv, queries(row, rows), block.first, keys);
  if (split()) {
    builder_.store(partials_, partial(segment, row, rows), 0);
  } else {
    builder_.store(o_, queries(row, rows), 0);
  }
  return true;
}

bool PagedDraft::add_head(std::int64_t token, std::int64_t head) {
  if (token >= tokens()) return false;
  const std::size_t s = sequence_of(token);
  const std::int64_t kv = head / problem_.group();
  const std::int64_t row = query_row(kv, token) + head % problem_.group();
  const std::int64_t query = token - cu_[s];
  attend(s, kv, queries(row, 1), query, {0, problem_.sequences[s].history() + query + 1});
  builder_.store(o_, queries(row, 1), 0);
  return true;
}

// The first index of a grid varies fastest.
bool PagedDraft::add_program(std::int64_t w) {
  if (knobs_.by_head) return add_head(w % launched_tokens(), w / launched_tokens());
  const std::int64_t kv = w / blocks() % problem_.kv_heads;
  // A library begins with the last queries, which see the most keys.
  const std::int64_t block = knobs_.vendor ? blocks() - 1 - w % blocks() : w % blocks();
  return add_block(block, kv, w / blocks() / problem_.kv_heads);
}

std::int32_t PagedDraft::add_attend_kernel() {
  const Resources resources =
      knobs_.vendor ? attend_tile_resources(machine_.gpu, problem_.dtype, knobs_.tile)
                    : paged_resources(machine_.gpu, problem_.dtype, knobs_.tile, knobs_.tile_is);
  const std::int32_t kernel = begin_kernel("attend", resources, knobs_.tile);
  const std::int64_t programs =
      knobs_.by_head ? launched_tokens() * problem_.heads : blocks() * problem_.kv_heads * knobs_.segments;
  const std::int64_t workgroups = knobs_.programs > 0 ? std::min(knobs_.programs, programs) : programs;
  for (std::int64_t p = 0; p < workgroups; ++p) {
    builder_.workgroup(kernel);
    bool works = false;
    for (std::int64_t w = p; w < programs; w += workgroups) works = add_program(w) || works;
    if (!works) builder_.barrier();  // searches for its sequence and ends
  }
  return kernel;
}

// The library's kernel that counts the blocks of each sequence.
std::int32_t PagedDraft::add_prepare_kernel() {
  const std::int32_t kernel = begin_kernel("prepare", copy_resources(), {});
  builder_.workgroup(kernel);
  builder_.load(lengths_, {0, 0, 1, to_int(std::ssize(problem_.sequences))}, 0);
  builder_.store(lengths_, {1, 0, 1, to_int(std::ssize(problem_.sequences))}, 0);
  return kernel;
}

// A kernel with one workgroup per token and head, which merges the results of the segments.
std::int32_t PagedDraft::add_merge_kernel() {
  const std::int32_t kernel = begin_kernel("merge", copy_resources(), {});
  for (std::int64_t head = 0; head < problem_.heads; ++head) {
    for (std::int64_t token = 0; token < launched_tokens(); ++token) {
      builder_.workgroup(kernel);
      if (token >= tokens()) {
        builder_.barrier();
        continue;
      }
      const std::size_t s = sequence_of(token);
      const PagedSequence& sequence = problem_.sequences[s];
      const std::int64_t query = token - cu_[s];
      const std::int64_t seen =
          sequence.history() + std::min(sequence.queries, query / block_q_ * block_q_ + block_q_);
      const std::int64_t row = query_row(head / problem_.group(), token) + head % problem_.group();
      for (std::int64_t segment = 0; segment < knobs_.segments; ++segment) {
        const KeyRange keys = segment_keys(sequence.keys, seen, knobs_.segments, knobs_.tile.n, segment);
        if (!keys.empty()) builder_.combine(partials_, partial(segment, row, 1), 0);
      }
      builder_.store(o_, queries(row, 1), 0);
    }
  }
  return kernel;
}

// Stands for the other kernels of a layer: it takes their time, and no other kernel runs meanwhile.
std::int32_t PagedDraft::add_rest() {
  Kernel kernel;
  kernel.name = "rest";
  kernel.resources = copy_resources();
  kernel.start_ns = knobs_.rest_ns;
  const std::int32_t id = builder_.kernel(std::move(kernel));
  builder_.workgroup(id);
  builder_.barrier();
  return id;
}

void PagedDraft::add_kernel(std::int32_t kernel, bool called, Graph& graph) {
  if (knobs_.graph) {
    graph.push_back({kernel, 0});
    return;
  }
  if (called && knobs_.call_ns > 0) builder_.host_work(0, "call", knobs_.call_ns);
  builder_.launch(0, kernel);
}

}  // namespace

AttentionCall attention_call_of(const PagedProblem& problem) {
  AttentionCall call;
  call.sequences = static_cast<std::int64_t>(problem.sequences.size());
  std::int64_t queries = 0, keys = 0;
  for (const PagedSequence& sequence : problem.sequences) {
    queries += sequence.queries;
    keys += sequence.keys;
  }
  const auto mean = [&](std::int64_t sum) { return std::max<std::int64_t>(1, sum / call.sequences); };
  call.queries = mean(queries);
  call.keys = mean(keys);
  call.heads = problem.heads;
  call.kv_heads = problem.kv_heads;
  call.depth = problem.depth;
  return call;
}

Resources paged_resources(const Gpu& gpu, DType dtype, const MatmulTile& tile, std::string_view knob) {
  return attend_resources(gpu, dtype, tile, false, knob);
}

Schedule paged_schedule(std::string_view name, const PagedProblem& problem, const PagedKnobs& knobs,
                        const Machine& machine) {
  return PagedDraft(name, problem, knobs, machine).build();
}

double paged_bound_ns(const PagedProblem& problem, const PagedKnobs& knobs, const Machine& machine) {
  paged_resources(machine.gpu, problem.dtype, knobs.tile,
                  knobs.tile_is);  // throws where the tile does not fit
  double keys = 0;
  for (const PagedSequence& sequence : problem.sequences) keys += static_cast<double>(sequence.keys);
  const double bytes =
      2 * keys * static_cast<double>(problem.kv_heads * problem.depth) * bytes_of(problem.dtype);
  return machine.host.launch_latency_ns +
         static_cast<double>(knobs.layers) * (bytes / machine.gpu.hbm_gb_per_s + knobs.rest_ns);
}

}  // namespace tritax
