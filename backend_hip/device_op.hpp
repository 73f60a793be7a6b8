// What the interpreter kernel reads: a schedule after lowering, as plain records shared by host and device.
//
// Lowering (lower.hpp) resolves everything that a workgroup would otherwise compute again for every tile:
// addresses on peers, row pitches, access widths, tensor maps, and the state of the accumulator before each
// operation. The device code therefore knows operations, never patterns.
#pragma once

#include <cstdint>

namespace tritax::gpu {

// Bits of DeviceOp::bits.
enum OpBits : std::uint8_t {
  kFresh = 1,        // matmul, reduce: the accumulator starts from zero
  kStaged = 2,       // store: the tile lies converted in shared memory, from an earlier store of it
  kTensor = 4,       // store: the copy engine may write it (it clips where its tensor map ends)
  kJoin = 8,         // the workgroup touched the same memory before: all its waves must meet first
  kAlone = 16,       // signal: it sets the counter, or no other touches it, so that setting equals adding
  kKeep = 32,        // store: another store of the same staged tile follows
  kTeamWrites = 64,  // signal: it covers stores by the threads that compute, not only staged tiles
  kRemote = 128,     // store: to another rank
};

// Bits of DeviceOp::partial of a sparse_product: rows of which others have parts, onto which it adds.
enum SparseSums : std::uint8_t { kAddsFirstRow = 1, kAddsLastRow = 2 };

// A sparse_product writes its rows itself, by the stores and additions that follow it (lower_sparse.cpp):
// `address` and `pitch` are those of its first row in y, `source` the values of nonzero 0, `values` and
// `values_pitch` x, `value` the LaneSharing, `group` its lanes, `row` how many row ends its LDS holds, `skip`
// the operations that it does. A load of one element in a kernel of sparse products: the `skip` loads behind
// it are at address + probes[row + i], in bytes, and each waits for the one before.

// What such a kernel has in LDS before its row ends: a row and a sum of each of up to 32 waves.
inline constexpr int kSparseCarryBytes = 256;

// One tile operation, 128 bytes: a wave fetches it with one coalesced access. Addresses are global; `width`
// is the widest power of two (at most 16) that divides every address, pitch and row length of the operation,
// in bytes.
struct alignas(128) DeviceOp {
  std::uint8_t kind = 0;      // tritax::OpKind
  std::uint8_t scope = 0;     // tritax::Scope
  std::uint8_t protocol = 0;  // tritax::LockProtocol
  std::uint8_t bits = 0;
  std::uint8_t dtype = 0;  // tritax::DType of the data at `address`
  std::uint8_t width = 0;
  std::uint8_t ends_run = 0;  // store, copy, atomic_add: the next operation is of another kind; see OpStamp
  std::uint8_t relaxed = 0;   // signal: nothing that the workgroup did before need be visible first
  std::int32_t rows = 0;
  std::int32_t cols = 0;
  std::uint64_t address = 0;  // destination tile, source tile of load and reduce, A of matmul, queries of
                              // attend, or the flag
  std::uint64_t source = 0;   // copy: source tile; matmul: B; attend: keys
  std::int32_t pitch = 0;     // bytes between rows at `address`
  std::int32_t source_pitch = 0;
  std::int32_t k_begin =
      0;  // matmul, attend; claim: items [k_begin, k_end) of the kernel, none if k_end is 0
  std::int32_t k_end = 0;
  std::int32_t tensor_map = -1;  // matmul: of A; store: of the destination
  std::int32_t tensor_map_b = -1;
  std::int32_t row =
      0;  // coordinates of the tile in its tensor map; claim of items: where the workgroup goes
  std::int32_t col = 0;      // on when there are no more, and where it ends; -1: as with its last such claim
  std::int32_t value = 0;    // of a flag; attend: as Op::value
  std::int32_t skip = 0;     // claim: operations to skip when the queue is empty
  std::int32_t number = 0;   // index into Schedule::ops, for messages and stamps; see lower_items.hpp
  std::int32_t group = 0;    // attend: as Op::index
  std::uint64_t values = 0;  // attend
  std::int32_t values_pitch = 0;
  std::int32_t partial = 0;  // store: the last column is that of the log-sum-exps; sparse_product: SparseSums
  std::uint64_t offsets = 0;  // sparse_product: of the first row and of its nonzeros, in the structure
  std::uint64_t columns = 0;  // likewise, of nonzero 0
  std::int32_t reserved[2] = {};
};
static_assert(sizeof(DeviceOp) == 128);

// Or an item, which ends with a claim of the next.
struct DeviceWorkgroup {
  std::uint32_t first_op = 0;
  std::uint32_t op_count = 0;
};

// A CUtensorMap on NVIDIA; unused on AMD.
struct alignas(128) TensorMap {
  unsigned char bytes[128] = {};
};

// First and last instant at which a kernel was alive, in ticks of the device's clock. The first is kept
// inverted, so that both are maxima and zero means "never". The first workgroup also counts the cycles of its
// compute unit, for the clock under this load.
struct KernelSpan {
  unsigned long long inverted_begin = 0;
  unsigned long long end = 0;
  unsigned long long cycles = 0;  // of the first workgroup's compute unit
  unsigned long long ticks = 0;   // that these cycles took
};

// What the instants mean stands in model/timeline/op_times.hpp. A run of asynchronous operations is drained
// at its last one only, so that stamping does not keep them from overlapping.
struct Instant {
  unsigned long long ticks = 0;   // of the device's clock; 0: never
  unsigned long long cycles = 0;  // of the compute unit's own
};
struct OpStamp {
  Instant begin;
  Instant end;
};

// Why a rank gave a run up; `raised` is written last.
struct Failure {
  std::uint32_t raised = 0;  // 0: none
  std::int32_t number = 0;   // of the operation, index into Schedule::ops
  std::uint32_t cause = 0;   // kFlagTimeout or kTileTimeout
  std::uint32_t seen = 0;    // value of the flag at expiry
};
inline constexpr std::uint32_t kFlagTimeout = 1;  // a wait ran out of time
inline constexpr std::uint32_t kTileTimeout = 2;  // the copy engine did not deliver a tile

inline constexpr int kMaxRanks = 16;

// Lives in host memory that every GPU maps: the first spin that runs out of time sets `stop`, and all ranks
// leave.
struct FailureBoard {
  std::uint32_t stop = 0;
  std::uint32_t spare[31] = {};
  Failure of_rank[kMaxRanks];
};

// Parameters of every interpreter kernel.
struct LaunchParams {
  const DeviceOp* ops = nullptr;
  const DeviceWorkgroup* workgroups = nullptr;
  const DeviceWorkgroup* items = nullptr;
  const TensorMap* tensor_maps = nullptr;
  const std::int32_t* probes = nullptr;      // of loads one after the other, see DeviceOp
  OpStamp* stamps = nullptr;                 // by operation number; null: no stamps
  std::uint32_t* compute_units = nullptr;    // with stamps: where each workgroup runs
  std::uint32_t* item_workgroups = nullptr;  // likewise: who runs each item
  KernelSpan* span = nullptr;
  FailureBoard* board = nullptr;
  std::uint32_t* failure_lock = nullptr;  // in the rank's own memory: who may write its entry of the board
  unsigned long long spin_limit_ticks = 0;
  std::uint32_t remote_box_ticks =
      0;  // least time between boxes that a workgroup sends to peers; 0: no pacing
  std::int32_t rank = 0;
  std::int32_t box_rows_of_a = 0;  // rows that a box of A brings
};

}  // namespace tritax::gpu
