// The tile schedule: the one description that simulator, functional executor and GPU backend all run.
//
// A schedule is plain data and complete: symmetric buffers and flags (on every rank at the same offset), one
// host program a rank, kernels, and a list of tile operations for every workgroup. It means the same on every
// machine.
//
// Memory model (arXiv:2511.12500 §2.1.3, §3.3.2; ROCm/iris examples): data operations are relaxed. `signal`
// is a release unless it says otherwise: all earlier stores of the workgroup are drained and visible in its
// scope before the flag changes. A relaxed one waits for nothing and publishes nothing. `wait` is an acquire:
// later reads of the workgroup see what was released. The end of a kernel releases everything it wrote at gpu
// scope, a host barrier at system scope; so does the end of a copy by a copy engine, which takes its turn in
// a stream as a kernel does. What follows in the stream, or waits for an event recorded behind it, sees what
// it wrote. A workgroup has one store in flight: the next operation that is not a store starts while it
// drains, the next store waits for it.
//
// A workgroup has one accumulator: `matmul` adds into it, `load` replaces it, `reduce` adds a tile to it,
// `store` and `atomic_add` write it out. `store` keeps it, so that it can be stored to several ranks; a
// `matmul` after a store starts from zero. In a kernel with `registers_filled` whatever the registers hold
// may be written before anything fills the accumulator, as microbenchmarks of stores do; a `matmul` or
// `reduce` then still starts from zero.
//
// Attention. `attend` computes a tile of softmax(Q·Kᵀ/√d)·V over a range of keys, d = rect.cols, and leaves
// in the accumulator the weighted mean of the values and, beside it, one log-sum-exp of the scores a row:
// what it takes to go on with other keys. Row i of the tile sees the keys [k_begin, k_end); with `value` = L
// > 0 only those below row L + i div `index` of K, so that L = 1 + own place is the causal mask, and `index`
// rows of Q that lie below each other belong to one token. A row that sees nothing has the result 0 and the
// log-sum-exp -infinity. Heads are column blocks or row blocks of Q, K and V: those of K and V begin at
// `src_col`, whichever head of Q it is, which is grouped-query attention; batches are row blocks. Where keys
// are split over workgroups or GPUs (flash decode), each stores its *partial*: a `store` of rows × (d + 1)
// writes the result and, as the last column, the log-sum-exps (the layout of SGLang's decode kernel); use a
// buffer of fp32. `combine` merges such a partial into the accumulator as if its keys had been attended to; a
// `store` of rows × d writes the result. All operations merge in any order and split of the keys:
//
//     z = log(exp(z_1) + exp(z_2)),   o = exp(z_1 - z) o_1 + exp(z_2 - z) o_2
//
// `attend` after a store starts anew, as `matmul` does; `combine` does not, so that a workgroup stores its
// partial to others and then merges theirs into its own. A `matmul` or `reduce` adds to no such accumulator.
//
// Normalisation. `rms_norm` divides every row of the accumulator by the root of the mean of its squares and
// multiplies it, element by element, with a tile of weights of the same shape (arXiv:1910.07467). What it
// normalises is the accumulator as it is, in fp32, also behind a store: whole rows must be in it.
//
// Sparse matrices. `sparse_product` leaves rows of A·x in the accumulator, a column: row r of A is summed
// over those of its nonzeros that lie in [k_begin, k_end), so that a row may be split over workgroups, its
// parts added up by `atomic_add`. Such an accumulator knows which rows it holds: a `store` or `atomic_add`
// behind it may write any part of them, each to its own row. How the lanes of the workgroup share the
// nonzeros
// (`LaneSharing`) decides how long it takes, not what comes out.
//
// Work queues: a `claim` that names items draws one after the other and runs what was drawn, until there are
// no more; items.hpp.
//
// What the buffers hold before the run, and what they must hold after it, is data too: reference.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/core/dtype.hpp"
#include "model/core/kernel_profile.hpp"
#include "model/schedule/library_kernel.hpp"
#include "model/schedule/rect.hpp"
#include "model/schedule/reference.hpp"
#include "model/schedule/sparse.hpp"

namespace tritax {

// A matrix that exists on every rank at the same offset, row-major. The tile shape is what flags usually
// refer to; the operations name rectangles, so ragged edges need no special form.
struct Buffer {
  std::string name;
  DType dtype = DType::fp16;
  std::int32_t rows = 0;
  std::int32_t cols = 0;
  std::int32_t tile_rows = 0;
  std::int32_t tile_cols = 0;
};

// `count` 32-bit counters on every rank, zero at the start.
struct FlagArray {
  std::string name;
  std::int32_t count = 0;
};

// What else is known of each is in op_traits.hpp.
enum class OpKind : std::uint8_t {
  matmul,      // accumulator += A[rect.row.., k] · B[k, rect.col..], k in [k_begin, k_end), on the own rank
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
};

// Added to the mean of squares, so that a row of zeros stays one (rms_norm_eps of Llama 3 and Qwen3).
inline constexpr double kNormEpsilon = 1e-6;

enum class Scope : std::uint8_t { workgroup, gpu, system };
inline constexpr std::array<std::string_view, 3> kScopeNames{"workgroup", "gpu", "system"};

// How a flag is set and polled; see overlap taxonomy of ROCm/iris PR 215.
enum class LockProtocol : std::uint8_t { load_store, exchange, compare_and_swap };
inline constexpr std::array<std::string_view, 3> kLockProtocolNames{"load-store", "exchange",
                                                                    "compare-and-swap"};

// What a signal does with the counter, and whether it publishes what its workgroup did before.
enum class FlagChange : std::uint8_t { add, set };
inline constexpr std::array<std::string_view, 2> kFlagChangeNames{"add", "set"};
// How the lanes of a workgroup share the rows and nonzeros of a sparse_product (arXiv:2301.04792 §5): a lane
// a row (thread-mapped); `lanes` lanes on a row, which they sum up at its end (CSR vector); `lanes` lanes on
// as many rows, whose nonzeros they take in turn and add up by row (group-mapped); or an even share
// of rows and nonzeros to every lane (merge-path, work-oriented).
enum class LaneSharing : std::uint8_t { row, vector, group, even };
inline constexpr std::array<std::string_view, 4> kLaneSharingNames{"row", "vector", "group", "even"};
enum class MemoryOrder : std::uint8_t { release, relaxed };
inline constexpr std::array<std::string_view, 2> kMemoryOrderNames{"release", "relaxed"};

// One tile operation. Which fields count depends on `kind` (see OpKind); the others stay at their defaults. A
// simulator looks them up at random: aligned, none takes two cache lines.
struct alignas(64) Op {
  OpKind kind = OpKind::barrier;
  Scope scope = Scope::gpu;
  LockProtocol protocol = LockProtocol::load_store;
  FlagChange change = FlagChange::add;       // signal
  MemoryOrder order = MemoryOrder::release;  // signal
  std::int16_t rank = 0;                     // the other side; the own rank for local operations
  std::int16_t src_rank = 0;                 // copy
  std::int16_t buffer = -1;
  std::int16_t src_buffer = -1;  // copy: source; matmul: A; attend: K
  std::int16_t b_buffer = -1;    // matmul: B; attend: V
  std::int16_t flag = -1;
  Rect rect;
  std::int32_t src_row = 0;  // sparse_product: its LaneSharing
  std::int32_t src_col = 0;  // sparse_product: rows of x
  std::int32_t k_begin = 0;
  std::int32_t k_end = 0;
  std::int32_t index = 0;  // of the flag, of the sparse matrix; attend: rows of Q that see the same keys
  std::int32_t value = 0;  // attend: the first row of K that its first rows do not see; 0: no mask;
                           // sparse_product: lanes on a row, or on a group of rows
};
static_assert(sizeof(Op) == 64);

// What one workgroup takes from its compute unit.
struct Resources {
  std::int32_t threads = 256;
  std::int32_t registers_per_thread = 64;  // 32-bit
  std::int32_t lds_bytes = 0;

  bool operator==(const Resources&) const = default;
};

// How a matmul inside a kernel feeds its matrix cores; it decides what overlaps inside one workgroup.
enum class Pipeline : std::uint8_t {
  serial,      // one wave group: LDS writes, LDS reads, matrix instructions in turn (Triton, 2 stages)
  overlapped,  // two wave groups or asynchronous copies: data movement hides behind matrix instructions
  // Overlapped, by a given schedule of waves that fill the LDS themselves (model/schedule/wave_schedule.hpp):
  ping_pong,          // two waves a SIMD: one computes while the other moves data
  interleaved,        // one wave a SIMD, whose instructions alternate
  producer_consumer,  // some waves only fill the LDS
};
inline constexpr std::array<std::string_view, 5> kPipelineNames{"serial", "overlapped", "ping-pong",
                                                                "interleaved", "specialised"};

// Shape of the matrix tiles of a kernel; all zero in a kernel without `matmul` and `attend`. Of `attend`: m
// rows of queries, and n keys at a time, of heads of k columns.
struct MatmulTile {
  std::int32_t m = 0;
  std::int32_t n = 0;
  std::int32_t k = 0;
  std::int32_t waves = 0;
  Pipeline pipeline = Pipeline::serial;
  std::int32_t producers = 0;  // waves beside those, of producer_consumer; 0: one a SIMD

  bool operator==(const MatmulTile&) const = default;
};

// How a grid is mapped to compute units.
enum class Placement : std::uint8_t {
  dispatch,    // the hardware sends workgroups in order, round robin over dies, as slots become free
  persistent,  // same, but all workgroups must be resident at once (they may wait for each other)
  gang,        // none starts before there is room for all, then all do, as after a cooperative launch
};
inline constexpr std::array<std::string_view, 3> kPlacementNames{"dispatch", "persistent", "gang"};

// Whether all workgroups are resident at once.
constexpr bool all_resident(Placement placement) { return placement != Placement::dispatch; }

struct Workgroup {
  std::uint32_t first_op = 0;  // into Schedule::ops
  std::uint32_t op_count = 0;
};

// What a workgroup does that draws it from a queue.
using Item = Workgroup;

struct Kernel {
  std::string name;
  std::int32_t rank = 0;
  Resources resources;
  MatmulTile tile;
  Placement placement = Placement::dispatch;
  KernelProfile profile = KernelProfile::interpreter;  // how it is written, which decides its costs
  std::int32_t cu_begin = 0;  // only compute units [cu_begin, cu_end) of every GPU may run it; cu_end 0: all
  std::int32_t cu_end = 0;
  LibraryKernel library;  // what it stands for, from which its rates follow where it runs
  // Of the bytes that it stores to peers, those that are data. Below 1 the others are flags that travel in
  // the same words (of NCCL LL 4 of 8 bytes, LL128 120 of 128: arXiv:2507.04786 §II): links carry both, its
  // signals to peers, which such words stand for, wait for no release, and its waits of system scope take no
  // poll, for the load that finds a flag is that of the data. Of a library's collective it follows from the
  // protocol that the library takes.
  double payload_share = 1;
  double start_ns = 0;  // before the first operation of what starts with it, where somebody says how long
  bool registers_filled = false;  // stores may write unspecified values before anything fills the accumulator
  std::vector<Workgroup> workgroups;  // in dispatch order
  std::vector<Item> items;            // that its claims draw; their operations lie behind its workgroups'
};

enum class HostOpKind : std::uint8_t {
  launch,              // `kernel` on `stream`
  graph_launch,        // all kernels of `graph`, each on its stream, with one host call
  stream_synchronize,  // until `stream` is empty
  device_synchronize,  // until all streams are empty
  barrier,             // until every rank's host has arrived
  event_record,  // `event` happens once all that is in `stream` by now has ended; recording again starts it
                 // anew
  event_wait,    // what comes in `stream` from now on waits for the last record of `event`; the host goes on
  copy,          // `transfer` by a copy engine of the rank, in its turn in `stream`; the host goes on
  host_work,     // the host is busy for `duration_ns` with what `label` says; it orders nothing
};

// Labels of host work that have a meaning: a call into the collective library, work of a framework around a
// synchronised step, and of its gather into slices beyond the collective call.
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
  double duration_ns = -1;     // of host_work, if somebody says; negative: what the machine says of the label

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

// Bytes of a rectangle of `buffer`.
inline double bytes_of(const Buffer& buffer, const Rect& rect) {
  return static_cast<double>(rect.rows) * static_cast<double>(rect.cols) * bytes_of(buffer.dtype);
}

}  // namespace tritax
