// Defines the tile schedule, the one description that simulator, functional executor and GPU backend run.
//
// A schedule is complete plain data: symmetric buffers and flags (at the same offset on every rank), one host
// program per rank, kernels, and a list of tile operations per workgroup. A schedule means the same on every
// machine.
//
// Memory model (arXiv:2511.12500 §2.1.3, §3.3.2; ROCm/iris examples): data operations are relaxed. `signal`
// is a release by default: all earlier stores of the workgroup are drained and visible in its scope before
// the flag changes. A relaxed signal waits for nothing and publishes nothing. `wait` is an acquire: later
// reads of the workgroup see the released data. The end of a kernel releases all its writes at gpu scope, a
// host barrier at system scope. The end of a copy by a copy engine, which runs in stream order like a kernel,
// releases too. Later work in the stream, or work that waits for an event recorded after the copy, sees the
// written data. A workgroup has one store in flight: the next operation that is not a store starts while the
// store drains; the next store waits for it.
//
// A workgroup has one accumulator: `matmul` adds into it, `load` replaces it, `reduce` adds a tile to it,
// `store` and `atomic_add` write it out. `store` keeps the accumulator, so that it can be stored to several
// ranks; a `matmul` after a store starts from zero. A kernel with `registers_filled` may write the
// unspecified contents of registers before an operation fills the accumulator, as microbenchmarks of stores
// do; a `matmul` or `reduce` then still starts from zero.
//
// A `matmul` may read A from the memory of a peer, straight into registers and LDS, stage by stage, as tiles
// of a remote operand are loaded in Triton kernels (ROCm/iris
// examples/14_all_gather_gemm/all_gather_gemm_pull.py).
//
// Attention. `attend` computes a tile of softmax(Q·Kᵀ/√d)·V over a range of keys, d = rect.cols, and leaves
// in the accumulator the weighted mean of the values and one log-sum-exp of the scores per row, which are
// needed to continue with other keys. Row i of the tile sees the keys [k_begin, k_end); with `value` = L > 0
// only keys below row L + i div `index` of K. So L = 1 + own position is the causal mask, and `index`
// adjacent rows of Q belong to one token. A row that sees no keys has the result 0 and the log-sum-exp
// -infinity. Heads are column blocks or row blocks of Q, K and V. Heads of K and V begin at `src_col`,
// independent of the head of Q, which allows grouped-query attention; batches are row blocks. If keys are
// split over workgroups or GPUs (flash decode), each stores its *partial*: a `store` of rows × (d + 1) writes
// the result and, as the last column, the log-sum-exps (the layout of SGLang's decode kernel); use a buffer
// of fp32. `combine` merges such a partial into the accumulator as if its keys were attended to; a `store` of
// rows × d writes the result. All operations merge in any order and split of the keys:
//
//     z = log(exp(z_1) + exp(z_2)),   o = exp(z_1 - z) o_1 + exp(z_2 - z) o_2
//
// `attend` after a store starts anew, like `matmul`; `combine` does not, so that a workgroup stores its
// partial to others and then merges their partials into its own. A `matmul` or `reduce` cannot add to such an
// accumulator.
//
// Attention backward. `attend_backward` goes with the rows [k_begin, k_end) of Q through a tile of n keys and
// values, d = rect.cols / 2, whose keys and values lie side by side in `buffer`: K in the first d columns of
// the rectangle, V in the others. With the scores S = Q·Kᵀ/√d, the log-sum-exps z and the row products
// δ = Σ dO∘O of the forward pass, P = exp(S - z) and T = P∘(dO·Vᵀ - δ), it adds (FlashAttention-2,
// arXiv:2307.08691, algorithm 2)
//
//     Tᵀ·Q/√d | Pᵀ·dO   to the accumulator, the gradients of K and V side by side,
//     T·K/√d            to the rows of dQ, in memory, element by element as `atomic_add` does
//
// Row r of Q sees all keys or, with `value` = L > 0, the rows below L + r of `buffer`. z and δ are columns 2h
// and 2h + 1 of the statistics, h = src_col / d. `attend_backward` after a store starts anew, like `matmul`.
// `row_dot` leaves in the accumulator, as a column, the products of its rows with the rows of a tile of the
// same shape, which gives δ.
//
// Normalisation. `rms_norm` divides every row of the accumulator by the root of the mean of its squares and
// multiplies it, element by element, with a tile of weights of the same shape (arXiv:1910.07467). It
// normalises the current accumulator, in fp32, also after a store: the accumulator must hold whole rows.
//
// Sparse matrices. `sparse_product` leaves rows of A·x in the accumulator, as a column. Row r of A is summed
// over its nonzeros in [k_begin, k_end), so a row may be split over workgroups, with its parts added up by
// `atomic_add`. Such an accumulator knows its rows: a later `store` or `atomic_add` may write any part of
// them, each to its own row. How the lanes of the workgroup share the nonzeros (`LaneSharing`) decides the
// time, not the result.
//
// Groups: an operation `with_previous` starts together with the operation before it, as different waves of a
// workgroup, or loads that one wave has in flight at once, work at the same time. The next operation that
// does not starts when all of the group have ended, their stores included. A group is of one kind: signals,
// waits, stores, copies, atomic additions, combines, or reductions, of which the first may be a load. What it
// leaves in the accumulator is as if its operations followed each other (group.hpp).
//
// A group of stores, or of a load and reduces, whose operations are all `multimem` is one operation of the
// switch between the GPUs (NVLink SHARP; PTX ISA, multimem.st and multimem.ld_reduce): the same rectangle of
// several ranks, the own one among them. The switch copies what the workgroup stores to all of them, or adds
// up what it loads from all of them, so that the bytes cross the link of the workgroup's GPU once.
//
// Posted copies: a `copy` that is `by_engine` is carried out by a copy engine of the workgroup's GPU, to
// which the workgroup posts it, without a host (ROCm/mori writes SDMA packets from kernels). It begins when
// an engine is free. For all else it is a copy: a later signal waits for its end.
//
// Work queues: a `claim` that names items draws items one after the other and runs them until no item is
// left; items.hpp.
//
// The contents of the buffers before the run, and the required contents after it, are data too:
// reference.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/core/codec.hpp"
#include "model/core/dtype.hpp"
#include "model/core/kernel_profile.hpp"
#include "model/schedule/library_kernel.hpp"
#include "model/schedule/rect.hpp"
#include "model/schedule/reference.hpp"
#include "model/schedule/sparse.hpp"

namespace tritax {

// A row-major matrix that exists on every rank at the same offset. Flags usually refer to tiles of the tile
// shape; operations name rectangles, so ragged edges need no special form.
//
// With a codec, memory holds the elements of a row in groups (model/core/codec.hpp): a store codes, a load or
// reduce decodes; they name whole groups.
struct Buffer {
  std::string name;
  DType dtype = DType::fp16;
  std::int32_t rows = 0;
  std::int32_t cols = 0;
  std::int32_t tile_rows = 0;
  std::int32_t tile_cols = 0;
  Codec codec = Codec::same;
};

// `count` 32-bit counters on every rank, zero at the start.
struct FlagArray {
  std::string name;
  std::int32_t count = 0;
};

// op_traits.hpp has further properties of each kind.
enum class OpKind : std::uint8_t {
  matmul,      // accumulator += A[rect.row.., k] · B[k, rect.col..], k in [k_begin, k_end); B is of the own
               // rank, A too unless `value` names a peer
  load,        // accumulator = `buffer`[rect] of `rank`
  store,       // `buffer`[rect] of `rank` = accumulator
  copy,        // `buffer`[rect] of `rank` = `src_buffer`[src_row, src_col, same size] of `src_rank`
  reduce,      // accumulator += `buffer`[rect] of `rank`
  atomic_add,  // `buffer`[rect] of `rank` += accumulator
  attend,  // accumulator, merged with softmax(Q·Kᵀ/√d)·V: Q = `buffer`[rect], K and V = `src_buffer` and
           // `b_buffer`[k_begin.., src_col.., same columns], masked by `value` and `index`; own rank
  combine,  // accumulator, merged with the partial `buffer`[rect] of `rank`: results | log-sum-exps
  signal,   // `flag`[index] of `rank` += value, or = value, after a release in `scope`
  wait,     // until `flag`[index] of the own rank >= value, then an acquire in `scope`
  barrier,  // all waves of the workgroup
  claim,    // n = `flag`[index]++ of the own rank; k_begin + n < k_end: run that item, then claim again.
            // Without items (k_end 0): from `value` on skip the next `rect.rows` operations
  sparse_product,  // accumulator = rows `rect` of `sparse`[index] times x = `b_buffer`[0.., 0], with the
                   // values `src_buffer`[0, k], k in [k_begin, k_end); `value`, `src_row`: LaneSharing
  rms_norm,  // accumulator = its rows / √(mean of their squares + kNormEpsilon) · `buffer`[rect] of `rank`
  row_dot,   // accumulator = per row, the sum of its products with the elements of `buffer`[rect] of `rank`
  attend_backward,  // accumulator += gradients of the tile K | V = `buffer`[rect] from the rows [k_begin,
                    // k_end) of Q = `src_buffer`, dO = `b_buffer` and statistics `index`; dQ = buffer
                    // `src_row` += theirs; Q, dO and dQ from column `src_col`, masked by `value`; own rank
};

// Added to the mean of squares, so that a row of zeros stays zero (rms_norm_eps of Llama 3 and Qwen3).
inline constexpr double kNormEpsilon = 1e-6;

enum class Scope : std::uint8_t { workgroup, gpu, system };
inline constexpr std::array<std::string_view, 3> kScopeNames{"workgroup", "gpu", "system"};

// How a flag is set and polled; see overlap taxonomy of ROCm/iris PR 215.
enum class LockProtocol : std::uint8_t { load_store, exchange, compare_and_swap };
inline constexpr std::array<std::string_view, 3> kLockProtocolNames{"load-store", "exchange",
                                                                    "compare-and-swap"};

// Whether a signal adds to the counter or sets it.
enum class FlagChange : std::uint8_t { add, set };
inline constexpr std::array<std::string_view, 2> kFlagChangeNames{"add", "set"};
// How the lanes of a workgroup share the rows and nonzeros of a sparse_product (arXiv:2301.04792 §5): one
// lane per row (thread-mapped); `lanes` lanes per row, which sum up at the end of the row (CSR vector);
// `lanes` lanes on as many rows, which take the nonzeros of these rows in turn and add up by row
// (group-mapped); or an even share of rows and nonzeros per lane (merge-path, work-oriented).
enum class LaneSharing : std::uint8_t { row, vector, group, even };
inline constexpr std::array<std::string_view, 4> kLaneSharingNames{"row", "vector", "group", "even"};
enum class MemoryOrder : std::uint8_t { release, relaxed };
inline constexpr std::array<std::string_view, 2> kMemoryOrderNames{"release", "relaxed"};

// One tile operation. `kind` decides which fields are used (see OpKind); the others keep their defaults. A
// simulator accesses operations at random: with the alignment no operation spans two cache lines.
struct alignas(64) Op {
  OpKind kind = OpKind::barrier;
  Scope scope = Scope::gpu;
  LockProtocol protocol = LockProtocol::load_store;
  FlagChange change = FlagChange::add;       // signal
  MemoryOrder order = MemoryOrder::release;  // signal
  bool with_previous = false;                // starts together with the operation before it
  bool multimem = false;                     // the switch carries out its group
  bool by_engine = false;                    // copy: a copy engine of the GPU carries it out
  std::int16_t rank = 0;                     // the other side; the own rank for local operations
  std::int16_t src_rank = 0;                 // copy
  std::int16_t buffer = -1;
  std::int16_t src_buffer = -1;  // copy: source; matmul: A; attend: K
  std::int16_t b_buffer = -1;    // matmul: B; attend: V
  std::int16_t flag = -1;
  Rect rect;
  std::int32_t src_row = 0;  // sparse_product: its LaneSharing; attend_backward: buffer of dQ
  std::int32_t src_col = 0;  // sparse_product: rows of x
  std::int32_t k_begin = 0;
  std::int32_t k_end = 0;
  std::int32_t index = 0;  // of the flag or the sparse matrix; attend: rows of Q that see the same keys;
                           // attend_backward: buffer of the statistics
  std::int32_t value = 0;  // attend: the first row of K that its first rows do not see; 0: no mask;
                           // sparse_product: lanes on a row, or on a group of rows;
                           // matmul: 1 + the rank whose A it reads; 0: the own rank
};
static_assert(sizeof(Op) == 64);

// Resources of a compute unit that one workgroup uses.
struct Resources {
  std::int32_t threads = 256;
  std::int32_t registers_per_thread = 64;  // 32-bit
  std::int32_t lds_bytes = 0;

  bool operator==(const Resources&) const = default;
};

// How a matmul inside a kernel feeds its matrix cores; this decides which work overlaps inside one workgroup.
enum class Pipeline : std::uint8_t {
  serial,      // one wave group: LDS writes, LDS reads, matrix instructions in turn (Triton, 2 stages)
  overlapped,  // two wave groups or asynchronous copies: data movement hides behind matrix instructions
  // Overlapped, by a given schedule of waves that fill LDS themselves (model/schedule/wave_schedule.hpp):
  ping_pong,          // two waves per SIMD: one computes while the other moves data
  interleaved,        // one wave per SIMD, with alternating instructions
  producer_consumer,  // some waves only fill LDS
};
inline constexpr std::array<std::string_view, 5> kPipelineNames{"serial", "overlapped", "ping-pong",
                                                                "interleaved", "specialised"};

// Shape of the matrix tiles of a kernel; all zero in a kernel without `matmul` and `attend`. For `attend`: m
// rows of queries, n keys at a time, heads of k columns. For `attend_backward`: n keys, m queries at a time.
struct MatmulTile {
  std::int32_t m = 0;
  std::int32_t n = 0;
  std::int32_t k = 0;
  std::int32_t waves = 0;
  Pipeline pipeline = Pipeline::serial;
  std::int32_t producers = 0;  // additional waves with producer_consumer; 0: one per SIMD

  bool operator==(const MatmulTile&) const = default;
};

// How a grid is mapped to compute units.
enum class Placement : std::uint8_t {
  dispatch,    // the hardware sends workgroups in order, round robin over dies, as slots become free
  persistent,  // same, but all workgroups must be resident at once (they may wait for each other)
  gang,        // all start together once there is room for all, as after a cooperative launch
};
inline constexpr std::array<std::string_view, 3> kPlacementNames{"dispatch", "persistent", "gang"};

// Whether all workgroups are resident at once.
constexpr bool all_resident(Placement placement) { return placement != Placement::dispatch; }

struct Workgroup {
  std::uint32_t first_op = 0;  // into Schedule::ops
  std::uint32_t op_count = 0;
};

// The operations of a workgroup that draws the item from a queue.
using Item = Workgroup;

struct Kernel {
  std::string name;
  std::int32_t rank = 0;
  Resources resources;
  MatmulTile tile;
  Placement placement = Placement::dispatch;
  KernelProfile profile = KernelProfile::interpreter;  // how the kernel is written, which decides its costs
  std::int32_t cu_begin = 0;  // only compute units [cu_begin, cu_end) of every GPU may run it; cu_end 0: all
  std::int32_t cu_end = 0;
  LibraryKernel library;  // library kernel that it stands for, which decides its rates on a machine
  // Share of data in the bytes that the kernel stores to peers. Below 1 the other bytes are flags in the same
  // words (data are 4 of 8 bytes in NCCL LL, 120 of 128 in LL128: arXiv:2507.04786 §II). Links carry both;
  // signals to peers, which such words replace, wait for no release; and waits of system scope need no poll,
  // because the load that finds the flag also loads the data. For a library's collective the share follows
  // from the protocol that the library chooses.
  double payload_share = 1;
  double start_ns = 0;  // time before the first operation, if given
  // Vector work of the kernel besides its moves: cycles of one compute unit per byte that it stores to the
  // own memory. The unit's workgroups share them, and other workgroups' moves hide them.
  double clk_per_stored_byte = 0;
  bool registers_filled = false;      // stores may write unspecified values of an unfilled accumulator
  std::vector<Workgroup> workgroups;  // in dispatch order
  std::vector<Item> items;            // drawn by its claims; their operations follow those of its workgroups
};

enum class HostOpKind : std::uint8_t {
  launch,              // `kernel` on `stream`
  graph_launch,        // all kernels of `graph`, each on its stream, with one host call
  stream_synchronize,  // until `stream` is empty
  device_synchronize,  // until all streams are empty
  barrier,             // until every rank's host has arrived
  event_record,  // `event` happens when all earlier work in `stream` has ended; recording again restarts it
  event_wait,    // later work in `stream` waits for the last record of `event`; the host continues
  copy,          // `transfer` by a copy engine of the rank, in stream order; the host continues
  host_work,     // the host is busy for `duration_ns` with work named `label`; orders nothing
};

// Labels of host work with a meaning: the call of an own kernel before its launch, a call into the collective
// library, work of a framework around a synchronised step, and work of its gather into slices beyond the
// collective call.
inline constexpr std::string_view kKernelCall = "call";
inline constexpr std::string_view kCollectiveCall = "collective_call";
inline constexpr std::string_view kFrameworkSync = "framework_sync";
inline constexpr std::string_view kFrameworkGather = "framework_gather";

struct HostOp {
  HostOpKind kind = HostOpKind::device_synchronize;
  std::int32_t kernel = -1;
  std::int32_t stream = 0;
  std::int32_t graph = -1;
  std::int32_t event = -1;     // of the rank
  std::int32_t transfer = -1;  // of copy: into Schedule::transfers
  std::string label{};         // of host_work
  double duration_ns = -1;     // of host_work; negative: the machine's time for the label

  bool is_work(std::string_view of) const { return kind == HostOpKind::host_work && label == of; }
};

struct GraphNode {
  std::int32_t kernel = -1;
  std::int32_t stream = 0;  // nodes of one stream follow each other, streams are independent
};
using Graph = std::vector<GraphNode>;

struct Schedule {
  std::string name;
  std::int32_t ranks = 1;
  std::vector<Buffer> buffers;
  std::vector<FlagArray> flags;
  std::vector<std::shared_ptr<const SparseMatrix>>
      sparse;                   // shared, as copies of a schedule differ elsewhere
  std::vector<Kernel> kernels;  // of all ranks
  std::vector<Graph> graphs;
  std::vector<std::vector<HostOp>> host;  // host[rank]
  std::vector<Op> ops;                    // of all workgroups and items, kernel by kernel
  std::vector<Op> transfers;              // copies by copy engines, which host operations name
  // Who launches: a process per GPU, or one process with a thread per GPU, whose launches take turns
  // (HostCosts::launch_turn_ns).
  bool one_process = false;
  std::int32_t result_buffer = -1;     // for whoever asks what the run is for; -1: none
  std::vector<Input> inputs;           // none: buffers into which nobody writes
  std::vector<ReferenceOp> reference;  // what the buffers must hold at the end; none: nobody says
};

// Bytes of the first `cols` elements of a row of `buffer`.
inline double row_bytes(const Buffer& buffer, std::int64_t cols) {
  if (buffer.codec != Codec::same) return coded_bytes(buffer.codec, cols);
  return static_cast<double>(cols * bytes_of(buffer.dtype));
}

// Bytes of a rectangle of `buffer`.
inline double bytes_of(const Buffer& buffer, const Rect& rect) {
  if (buffer.codec != Codec::same) return rect.rows * coded_bytes(buffer.codec, rect.cols);
  return static_cast<double>(rect.rows) * static_cast<double>(rect.cols) * bytes_of(buffer.dtype);
}

}  // namespace tritax
