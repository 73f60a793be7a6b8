#include "model/workloads/ring_attention/draft.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/core/error.hpp"
#include "model/parts/attend_tiles.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kOpsOfTile = 8;  // at least, where a schedule can hold as many

std::int32_t narrow(std::int64_t value) { return static_cast<std::int32_t>(value); }

std::int64_t rows_of_widest(const SequenceAttention& problem, bool zigzag) {
  std::int64_t widest = 0;
  for (int rank = 0; rank < problem.gpus; ++rank) {
    std::int64_t rows = 0;
    for (const Chunk& chunk : chunks_of(problem, zigzag, rank)) rows += chunk.tokens.size();
    widest = std::max(widest, rows);
  }
  return widest;
}

void check_size(const SequenceAttention& problem, const RingKnobs& knobs, const Machine& machine) {
  check_dtype(problem.dtype, machine);
  const auto own = static_cast<double>(rows_of_widest(problem, knobs.zigzag));
  const auto depth = static_cast<double>(problem.depth);
  const double elements = 2.0 * own * static_cast<double>(problem.heads) * depth +
                          2.0 * static_cast<double>(problem.context * problem.kv_heads) * depth;
  check_memory("this problem", elements * bytes_of(problem.dtype), machine.gpu);
  const double tiles = own / knobs.tile.m * static_cast<double>(problem.heads) * problem.gpus;
  if (tiles * (problem.gpus + 1) * 3 <= kMaxOperations) return;
  throw UserError(
      fmt::format("tile: {:.0f} query tiles that each attend to {} blocks are too many to schedule (over "
                  "{:.0f} tile operations); use larger tiles",
                  tiles, problem.gpus, kMaxOperations));
}

}  // namespace

RingKnobs ring_knobs_of(const Values& values, const SequenceAttention& problem) {
  RingKnobs knobs{gemm_knobs_of(values), attend_tile_of(values, problem.depth), attend_profile_of(values)};
  knobs.zigzag = problem.causal && values["zigzag"] != 0 && problem.context >= 2 * problem.gpus;
  knobs.route = static_cast<Route>(values["route"]);
  knobs.pull = values["transport"] != 0;
  return knobs;
}

std::vector<Chunk> chunks_of(const SequenceAttention& problem, bool zigzag, int rank) {
  const int count = zigzag ? 2 * problem.gpus : problem.gpus;
  std::vector<Chunk> chunks{{share_of(problem.context, rank, count), 0}};
  if (zigzag) {
    const std::int32_t at = narrow(chunks.front().tokens.size());
    chunks.push_back({share_of(problem.context, count - 1 - rank, count), at});
  }
  return chunks;
}

double ring_bound_ns(const SequenceAttention& problem, const RingKnobs& knobs, const Machine& machine) {
  double longest = 0, most = 0;  // blocks of keys
  for (int rank = 0; rank < problem.gpus; ++rank) {
    double all = 0;
    for (const Chunk& chunk : chunks_of(problem, knobs.zigzag, rank)) {
      for (std::int64_t row = chunk.tokens.begin; row < chunk.tokens.end; row += knobs.tile.m) {
        const std::int64_t seen =
            problem.causal ? std::min(chunk.tokens.end, row + knobs.tile.m) : problem.context;
        const double blocks = static_cast<double>(seen) / knobs.tile.n;
        longest = std::max(longest, blocks);
        all += blocks * static_cast<double>(problem.heads);
      }
    }
    most = std::max(most, all);
  }
  return attend_bound_ns(machine, problem.dtype, knobs.tile, knobs.profile, longest, most);
}

RingDraft::RingDraft(std::string_view pattern, const SequenceAttention& problem_, const Machine& machine_,
                     const RingKnobs& knobs_)
    : problem(problem_), machine(machine_), knobs(knobs_), builder(std::string(pattern), problem_.gpus) {
  check_size(problem, knobs, machine);
  const std::int32_t own = narrow(rows_of_widest(problem, knobs.zigzag));
  const std::int32_t all = narrow(problem.context), depth = narrow(problem.depth);
  const auto add = [&](const char* name, std::int32_t rows, std::int64_t heads, std::int32_t tile_rows) {
    return builder.buffer({name, problem.dtype, rows, narrow(heads) * depth, tile_rows, depth});
  };
  q = add("Q", own, problem.heads, knobs.tile.m);
  k = add("K", all, problem.kv_heads, knobs.tile.n);
  v = add("V", all, problem.kv_heads, knobs.tile.n);
  o = add("O", own, problem.heads, knobs.tile.m);
  builder.result(o);
  builder.input(builder.whole(q));
  for (int rank = 0; rank < ranks(); ++rank) {
    for (const Rect& rect : block(rank)) {
      builder.input({k, rank, rect});
      builder.input({v, rank, rect});
    }
  }
  expect_results();
  const double tiles = std::max(
      1.0, static_cast<double>(own) / knobs.tile.m * static_cast<double>(problem.heads) * problem.gpus);
  const auto room = static_cast<std::int64_t>(kMaxOperations / 3 / tiles);
  const std::int64_t ops = std::clamp<std::int64_t>(room, 1, kOpsOfTile);
  keys_of_op_ = std::max<std::int64_t>(1, (problem.context + ops * knobs.tile.n - 1) / (ops * knobs.tile.n)) *
                knobs.tile.n;
}

// At the end every rank has all keys and values, and the results of its tokens.
void RingDraft::expect_results() {
  for (int rank = 0; rank < ranks(); ++rank) {
    for (int to = 0; to < ranks(); ++to) {
      if (to == rank) continue;
      for (const Rect& rect : block(rank)) {
        builder.expect_copy({k, to, rect}, {k, rank, rect});
        builder.expect_copy({v, to, rect}, {v, rank, rect});
      }
    }
  }
  const std::int32_t depth = narrow(problem.depth);
  for (int rank = 0; rank < ranks(); ++rank) {
    for (const Chunk& chunk : chunks_of(problem, knobs.zigzag, rank)) {
      for (std::int32_t head = 0; head < problem.heads; ++head) {
        const Rect rows{chunk.at, head * depth, narrow(chunk.tokens.size()), depth};
        const Rect keys{0, narrow(head / problem.group()) * depth, narrow(problem.context), depth};
        builder.expect_attention({o, rank, rows}, {q, rank, rows}, {k, rank, keys}, {v, rank, keys},
                                 problem.causal ? narrow(chunk.tokens.begin) + 1 : 0);
      }
    }
  }
}

std::vector<Rect> RingDraft::block(int rank) const {
  std::vector<Rect> rects;
  for (const Chunk& chunk : chunks_of(problem, knobs.zigzag, rank)) {
    rects.push_back({narrow(chunk.tokens.begin), 0, narrow(chunk.tokens.size()),
                     narrow(problem.kv_heads * problem.depth)});
  }
  return rects;
}

double RingDraft::widest_bytes() const {
  return 2.0 * static_cast<double>(rows_of_widest(problem, knobs.zigzag) * problem.kv_heads * problem.depth) *
         bytes_of(problem.dtype);
}

std::vector<QueryTile> RingDraft::tiles(int rank) const {
  std::vector<QueryTile> all;
  const std::int32_t depth = narrow(problem.depth);
  for (const Chunk& chunk : chunks_of(problem, knobs.zigzag, rank)) {
    const std::int32_t size = narrow(chunk.tokens.size());
    for (std::int32_t row = 0; row < size; row += knobs.tile.m) {
      for (std::int32_t head = 0; head < problem.heads; ++head) {
        const Rect rect{chunk.at + row, head * depth, std::min(knobs.tile.m, size - row), depth};
        all.push_back({rect, chunk.tokens.begin + row, head});
      }
    }
  }
  if (problem.causal) {
    std::stable_sort(all.begin(), all.end(),
                     [](const QueryTile& a, const QueryTile& b) { return a.token > b.token; });
  }
  return all;
}

Share RingDraft::seen_of(const QueryTile& tile, const Chunk& chunk) const {
  Share seen = chunk.tokens;
  if (problem.causal) seen.end = std::clamp(tile.token + tile.rect.rows, seen.begin, seen.end);
  return seen;
}

bool RingDraft::sees(const QueryTile& tile, int rank) const {
  const std::vector<Chunk> chunks = chunks_of(problem, knobs.zigzag, rank);
  return std::any_of(chunks.begin(), chunks.end(),
                     [&](const Chunk& chunk) { return seen_of(tile, chunk).size() > 0; });
}

void RingDraft::attend(const QueryTile& tile, int rank) {
  const std::int32_t column = narrow(tile.head / problem.group() * problem.depth);
  ScheduleBuilder::Mask mask;
  if (problem.causal) mask.limit = narrow(tile.token) + 1;
  for (const Chunk& chunk : chunks_of(problem, knobs.zigzag, rank)) {
    const Share seen = seen_of(tile, chunk);
    for (std::int64_t key = seen.begin; key < seen.end; key += keys_of_op_) {
      builder.attend(q, tile.rect, k, v, column, narrow(key), narrow(std::min(seen.end, key + keys_of_op_)),
                     mask);
    }
  }
}

Kernel RingDraft::attend_kernel(int rank, std::string_view name) const {
  return attend_tile_kernel(machine.gpu, problem.dtype, knobs.tile, knobs.profile, rank, name);
}

// fp32: a 16-bit log-sum-exp loses the third digit of every weight.
void RingDraft::add_partials() {
  if (!sends()) return;
  const std::int32_t own = narrow(rows_of_widest(problem, knobs.zigzag));
  const std::int32_t width = narrow(problem.depth) + 1;
  partials_ =
      builder.buffer({"partials", DType::fp32, own, narrow(problem.heads) * width, knobs.tile.m, width});
}

Rect RingDraft::partial(const QueryTile& tile) const {
  const std::int32_t width = narrow(problem.depth) + 1;
  return {tile.rect.row, tile.head * width, tile.rect.rows, width};
}

int RingDraft::last_step_of(const QueryTile& tile, int rank) const {
  int last = ranks() - 1;
  while (last > 0 && !sees(tile, source(rank, last))) --last;
  return last;
}

std::int32_t RingDraft::add_step(int rank, int step) {
  const int from = source(rank, step);
  std::int32_t id = -1;
  for (const QueryTile& tile : tiles(rank)) {
    if (!sees(tile, from)) continue;
    const bool begins = id < 0;
    if (begins) id = builder.kernel(attend_kernel(rank, fmt::format("attend-{}", step)));
    builder.workgroup(id);
    if (begins && step == 0) open(rank);
    if (step > 0) builder.combine(partials_, partial(tile), rank);
    attend(tile, from);
    if (step == last_step_of(tile, rank)) {
      builder.store(o, tile.rect, rank);
    } else {
      builder.store(partials_, partial(tile), rank);
    }
  }
  return id;
}

void RingDraft::add_opened() {
  if (sends() && !knobs.host_barriers) opened_ = builder.flags("opened", ranks());
}

void RingDraft::open(int rank) {
  if (opened_ < 0) return;
  const std::vector<int> all = peers_of(PeerOrder::rotated, ranks(), rank, 0);
  const std::vector<int> peers = knobs.route == Route::ring ? std::vector<int>{source(rank, 1)} : all;
  for (const int peer : peers) builder.signal(opened_, rank, 1, peer, Scope::system, knobs.lock);
}

void RingDraft::await_opened(int peer) {
  if (opened_ >= 0) builder.wait(opened_, peer, 1, Scope::system, knobs.lock);
}

void RingDraft::begin(int rank) {
  if (knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
}

void RingDraft::end(int rank) {
  builder.host(rank, HostOpKind::device_synchronize);
  if (knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
}

}  // namespace tritax
