// Common parts of the patterns of flash decode: buffers, the kernels of one decode step, and the host
// program.
//
// Every sequence has one new token, with `heads` query heads of d columns. Each of the `kv_heads` heads of
// keys and values serves heads/kv_heads query heads (grouped-query attention). A GPU holds `keys` keys and
// values of every sequence, and all query heads. The kernels of a step (ROCm/iris examples/13_flash_decode):
//
//   SPLIT     a workgroup per (sequence, up to 16 query heads of one KV head, split): attend to 1/splits of
//             the own keys; store the partial: results | log-sum-exps
//   COMBINE   a workgroup per (sequence, head): combine the partials of all splits; store one
//   exchange  differs between patterns: partials of all GPUs -> `gathered`
//   MERGE     a workgroup per (sequence, head): combine the partials of all GPUs; store the result
//
// Partials are fp32: a 16-bit log-sum-exp loses the third digit of every weight.
//
// Several steps run one after the other, with their own flags and without a barrier in between. SPLIT of
// every GPU *opens* the GPU's buffer to its peers, and peers wait for that before they store. So no GPU
// writes where a peer may still read the data of the step before. The first step behind a barrier of hosts
// needs no opening.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/schedule/builder.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

struct FlashDecode {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;
  std::int64_t depth = 128;
  std::int64_t keys = 1;  // per GPU and sequence
  DType dtype = DType::fp16;
  int gpus = 1;
};
FlashDecode flash_decode_of(const Problem& problem);

// What separates the own all-gather of `unfused` from the kernels before and behind it.
enum class GatherSync : std::uint8_t { flags, hosts };

// What the waiting workgroup of a head of `fully-fused` waits for.
enum class DecodeFlags : std::uint8_t {
  per_head,    // the flag of its own head, for every source
  per_source,  // one counter for every source, to which all heads of the source add
};

struct DecodeKnobs {
  std::int32_t splits = 32;
  MatmulTile tile;  // of SPLIT: queries × keys of a block × columns of a head
  LockProtocol lock = LockProtocol::load_store;
  bool graph = false;
  bool host_barriers = false;
  GatherSync sync = GatherSync::flags;
  DecodeFlags flags = DecodeFlags::per_head;
  bool staged = false;
  double call_ns = 0;  // host time of a launch beyond the machine's
  std::int32_t steps = 1;
};
DecodeKnobs decode_knobs_of(const Values& values, const FlashDecode& problem);

// Query rows per tile: the rows of the smallest matrix instruction.
inline constexpr std::int32_t kDecodeRows = 16;

// Resources of SPLIT, with queries in registers. Throws UserError that names the knob if the tile does not
// fit a compute unit.
Resources decode_resources(const Gpu& gpu, DType dtype, const MatmulTile& tile);

class DecodeDraft {
 public:
  // Adds buffers, inputs and expected results. Throws UserError for too large problems.
  DecodeDraft(std::string_view pattern, const FlashDecode& problem, const Machine& machine,
              const DecodeKnobs& knobs);

  int ranks() const { return problem.gpus; }
  bool sends() const { return problem.gpus > 1; }
  std::int32_t tokens() const { return static_cast<std::int32_t>(problem.batch * problem.heads); }
  // One partial: row `of` (sequence × heads + head) of GPU `source`.
  Rect partial(int source, std::int32_t of) const {
    return {source * tokens() + of, 0, 1, static_cast<std::int32_t>(problem.depth) + 1};
  }
  Rect shard(int source) const {
    Rect rect = partial(source, 0);
    rect.rows = tokens();
    return rect;
  }

  // Each adds a kernel of a rank and returns its number.
  std::int32_t add_split(int rank);
  // `end`: adds the use of the partial that the workgroup of row `of` has in its accumulator.
  template <typename End>
  std::int32_t add_combine(int rank, std::string_view name, End end);
  // `begin`: adds the operations of the workgroup of row `of` before it combines the partial of `source`.
  template <typename Begin>
  std::int32_t add_merge(int rank, std::string_view name, Begin begin);
  // One workgroup per destination copies the whole shard to the destination, and ends with `end`.
  template <typename End>
  std::int32_t add_push(int rank, End end);

  // A workgroup of a later kernel of the stream waits until all peers have begun the step. Adds nothing where
  // hosts separate steps.
  void await_opened();
  // Adds the flags of a step; call it before adding the step's kernels. `opens`: unless a barrier of hosts
  // does the same.
  void begin_step(bool opens);
  // From now on a framework's kernels copy the own partials to a symmetric buffer, from which PUSH sends, and
  // what has arrived to an own tensor, from which MERGE reads.
  void stage();
  std::int32_t add_copy_in(int rank);
  std::int32_t add_copy_out(int rank);

  // Host program of a step.
  void launch(int rank, std::int32_t kernel, bool collective = false);
  void synchronize_all(int rank);
  void finish_step(int rank, const std::vector<std::int32_t>& kernels);

  FlashDecode problem;
  const Machine& machine;
  DecodeKnobs knobs;
  ScheduleBuilder builder;
  std::int16_t partials = -1;  // of all splits
  std::int16_t local = -1;     // of this GPU
  std::int16_t gathered = -1;  // of all GPUs; with one GPU `local`
  std::int16_t sent = -1;      // what PUSH sends: `local`, or a symmetric copy of it
  std::int16_t merged = -1;    // what MERGE reads: `gathered`, or a copy of it

 private:
  void add_buffers();
  void expect_results();
  std::int32_t add_small_kernel(int rank, std::string_view name);

  std::int16_t q_ = -1, k_ = -1, v_ = -1, o_ = -1;
  std::int16_t opened_ = -1;
  bool begun_ = false;  // a step
};

template <typename End>
std::int32_t DecodeDraft::add_combine(int rank, std::string_view name, End end) {
  const std::int32_t kernel = add_small_kernel(rank, name);
  for (std::int32_t of = 0; of < tokens(); ++of) {
    builder.workgroup(kernel);
    for (std::int32_t split = 0; split < knobs.splits; ++split) {
      builder.combine(partials, partial(split, of), rank);
    }
    end(of);
  }
  return kernel;
}

template <typename Begin>
std::int32_t DecodeDraft::add_merge(int rank, std::string_view name, Begin begin) {
  const std::int32_t kernel = add_small_kernel(rank, name);
  const auto depth = static_cast<std::int32_t>(problem.depth);
  for (std::int32_t of = 0; of < tokens(); ++of) {
    builder.workgroup(kernel);
    for (int source = 0; source < ranks(); ++source) {
      begin(source, of);
      builder.combine(merged, partial(source, of), rank);
    }
    builder.store(o_, {of, 0, 1, depth}, rank);
  }
  return kernel;
}

template <typename End>
std::int32_t DecodeDraft::add_push(int rank, End end) {
  const std::int32_t kernel = add_small_kernel(rank, "push");
  for (int to = 0; to < ranks(); ++to) {
    builder.workgroup(kernel);
    builder.copy(gathered, shard(rank), to, sent, 0, 0, rank);
    end(to);
  }
  return kernel;
}

}  // namespace tritax
