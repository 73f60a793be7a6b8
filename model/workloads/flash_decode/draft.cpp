#include "model/workloads/flash_decode/draft.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "model/core/error.hpp"
#include "model/parts/attend.hpp"
#include "model/parts/kernels.hpp"
#include "model/parts/library_collectives.hpp"

namespace tritax {

namespace {

void check_size(const FlashDecode& problem, const DecodeKnobs& knobs, const Machine& machine) {
  check_dtype(problem.dtype, machine);
  const auto heads = static_cast<double>(problem.batch * problem.heads);
  const double cache = 2.0 * static_cast<double>(problem.batch * problem.keys) *
                       static_cast<double>(problem.kv_heads * problem.depth) * bytes_of(problem.dtype);
  const double of_heads =
      4.0 * heads * static_cast<double>(problem.depth + 1) * (knobs.splits + problem.gpus + 1);
  check_memory("this problem", cache + of_heads, machine.gpu);
  const double operations =
      heads * (3.0 * knobs.splits + 6.0 * problem.gpus + 8) * problem.gpus * knobs.steps;
  if (operations <= kMaxOperations) return;
  throw UserError(
      fmt::format("batch, q_heads: {:.0f} heads in {} splits and {} steps on {} GPUs are too many to "
                  "schedule (over {:.0f} "
                  "tile operations); use fewer splits or steps",
                  heads, knobs.splits, knobs.steps, problem.gpus, kMaxOperations));
}

}  // namespace

FlashDecode flash_decode_of(const Problem& problem) {
  return {problem["batch"],    problem["q_heads"],   problem["kv_heads"],
          problem["head_dim"], problem["kv_length"], static_cast<DType>(problem["dtype"]),
          problem.gpus()};
}

DecodeKnobs decode_knobs_of(const Values& values, const FlashDecode& problem) {
  DecodeKnobs knobs;
  // Every split has at least one key.
  knobs.splits = static_cast<std::int32_t>(std::min(values["splits"], problem.keys));
  knobs.tile = {kDecodeRows, static_cast<std::int32_t>(values["block"]),
                static_cast<std::int32_t>(problem.depth), static_cast<std::int32_t>(values["waves"]),
                static_cast<Pipeline>(values["pipeline"])};
  knobs.lock = static_cast<LockProtocol>(values["lock"]);
  knobs.graph = static_cast<LaunchMode>(values["launch"]) == LaunchMode::graph;
  knobs.host_barriers = values["host_barriers"] != 0;
  knobs.sync = static_cast<GatherSync>(values["sync"]);
  knobs.flags = static_cast<DecodeFlags>(values["flags"]);
  knobs.staged = values["staged"] != 0 && problem.gpus > 1;
  knobs.call_ns = 1e3 * static_cast<double>(values["call_us"]);
  knobs.steps = static_cast<std::int32_t>(values["steps"]);
  return knobs;
}

Resources decode_resources(const Gpu& gpu, DType dtype, const MatmulTile& tile) {
  return attend_resources(gpu, dtype, tile, false, "block");
}

DecodeDraft::DecodeDraft(std::string_view pattern, const FlashDecode& problem_, const Machine& machine_,
                         const DecodeKnobs& knobs_)
    : problem(problem_), machine(machine_), knobs(knobs_), builder(std::string(pattern), problem_.gpus) {
  check_size(problem, knobs, machine);
  add_buffers();
  expect_results();
}

void DecodeDraft::add_buffers() {
  const auto depth = static_cast<std::int32_t>(problem.depth);
  const auto keys = static_cast<std::int32_t>(problem.batch * problem.keys);
  const auto columns = static_cast<std::int32_t>(problem.kv_heads * problem.depth);
  q_ = builder.buffer({"Q", problem.dtype, tokens(), depth, kDecodeRows, depth});
  k_ = builder.buffer({"K", problem.dtype, keys, columns, knobs.tile.n, depth});
  v_ = builder.buffer({"V", problem.dtype, keys, columns, knobs.tile.n, depth});
  o_ = builder.buffer({"O", problem.dtype, tokens(), depth, 1, depth});
  const auto add_partials = [&](const char* name, std::int32_t rows) {
    return builder.buffer({name, DType::fp32, rows, depth + 1, 1, depth + 1});
  };
  partials = add_partials("partials", tokens() * knobs.splits);
  local = add_partials("local", tokens());
  gathered = sends() ? add_partials("gathered", tokens() * ranks()) : local;
  sent = local;
  merged = gathered;
  builder.result(o_);
  builder.input(builder.whole(q_), InputValues::same);
  builder.input(builder.whole(k_));
  builder.input(builder.whole(v_));
}

// For every sequence and KV head: its query heads against the keys of all GPUs.
void DecodeDraft::expect_results() {
  const auto depth = static_cast<std::int32_t>(problem.depth);
  const auto group = static_cast<std::int32_t>(problem.heads / problem.kv_heads);
  const auto keys = static_cast<std::int32_t>(problem.keys);
  for (std::int32_t z = 0; z < problem.batch; ++z) {
    for (std::int32_t head = 0; head < problem.kv_heads; ++head) {
      const Rect rows{z * static_cast<std::int32_t>(problem.heads) + head * group, 0, group, depth};
      const Rect cache{z * keys, head * depth, keys, depth};
      builder.expect_attention({o_, kEveryRank, rows}, {q_, 0, rows}, {k_, kEveryRank, cache},
                               {v_, kEveryRank, cache});
    }
  }
}

void DecodeDraft::begin_step(bool opens) {
  const bool met = knobs.host_barriers && !begun_;
  begun_ = true;
  opened_ = opens && sends() && !met ? builder.flags("opened", 1) : std::int16_t{-1};
}

void DecodeDraft::stage() {
  const std::int32_t width = static_cast<std::int32_t>(problem.depth) + 1;
  const auto add = [&](const char* name, std::int32_t rows) {
    return builder.buffer({name, DType::fp32, rows, width, 1, width});
  };
  sent = add("symmetric", tokens());
  merged = add("copied_out", tokens() * ranks());
}

std::int32_t DecodeDraft::add_copy_in(int rank) {
  const std::vector<Rect> whole{shard(0)};
  return add_block_copy(builder, machine, {rank, local, sent, whole, whole, true});
}

std::int32_t DecodeDraft::add_copy_out(int rank) {
  std::vector<Rect> shards;
  for (int source = 0; source < ranks(); ++source) shards.push_back(shard(source));
  return add_block_copy(builder, machine, {rank, gathered, merged, shards, shards, true});
}

void DecodeDraft::await_opened() {
  if (opened_ >= 0) builder.wait(opened_, 0, ranks() - 1, Scope::system, knobs.lock);
}

std::int32_t DecodeDraft::add_split(int rank) {
  Kernel kernel;
  kernel.name = "split_attend";
  kernel.rank = rank;
  kernel.resources = decode_resources(machine.gpu, problem.dtype, knobs.tile);
  kernel.tile = knobs.tile;
  const std::int32_t id = builder.kernel(std::move(kernel));
  const auto depth = static_cast<std::int32_t>(problem.depth);
  const auto group = static_cast<std::int32_t>(problem.heads / problem.kv_heads);
  const std::int32_t tiles = ceil_div(group, kDecodeRows);
  bool first = true;
  for (std::int32_t split = 0; split < knobs.splits; ++split) {
    const Share keys = share_of(problem.keys, split, knobs.splits);
    for (std::int32_t tile = 0; tile < problem.kv_heads * tiles; ++tile) {
      const std::int32_t head = tile / tiles;
      const std::int32_t row = tile % tiles * kDecodeRows;
      const std::int32_t rows = std::min(kDecodeRows, group - row);
      for (std::int32_t z = 0; z < problem.batch; ++z) {
        builder.workgroup(id);
        for (int peer = 0; first && opened_ >= 0 && peer < ranks(); ++peer) {
          if (peer != rank) builder.signal(opened_, 0, 1, peer, Scope::system, knobs.lock);
        }
        first = false;
        const std::int32_t of = z * static_cast<std::int32_t>(problem.heads) + head * group + row;
        const std::int64_t cache = z * problem.keys;
        builder.attend(q_, {of, 0, rows, depth}, k_, v_, head * depth,
                       static_cast<std::int32_t>(cache + keys.begin),
                       static_cast<std::int32_t>(cache + keys.end));
        Rect to = partial(split, of);
        to.rows = rows;
        builder.store(partials, to, rank);
      }
    }
  }
  return id;
}

std::int32_t DecodeDraft::add_small_kernel(int rank, std::string_view name) {
  Kernel kernel;
  kernel.name = std::string(name);
  kernel.rank = rank;
  kernel.resources = copy_resources();
  return builder.kernel(std::move(kernel));
}

void DecodeDraft::launch(int rank, std::int32_t kernel, bool collective) {
  if (collective) {
    builder.host_work(rank, kCollectiveCall);
  } else if (knobs.call_ns > 0) {
    builder.host_work(rank, "call", knobs.call_ns);
  }
  builder.launch(rank, kernel);
}

void DecodeDraft::synchronize_all(int rank) {
  builder.host(rank, HostOpKind::device_synchronize);
  builder.host(rank, HostOpKind::barrier);
}

void DecodeDraft::finish_step(int rank, const std::vector<std::int32_t>& kernels) {
  if (!knobs.graph) {
    for (const std::int32_t kernel : kernels) launch(rank, kernel);
    return;
  }
  Graph graph;
  for (const std::int32_t kernel : kernels) graph.push_back({kernel, 0});
  builder.graph_launch(rank, std::move(graph));
}

}  // namespace tritax
