// Input of the interpreter kernel: a lowered schedule, as plain records that host and device share.
//
// Lowering (lower.hpp) resolves everything that a workgroup would otherwise compute again for every tile:
// addresses on peers, row pitches, access widths, tensor maps, and the state of the accumulator before each
// operation. So device code knows operations, not patterns.
#pragma once

#include <cstdint>

namespace tritax::gpu {

// Bits of DeviceOp::bits.
enum OpBits : std::uint8_t {
  kFresh = 1,        // matmul, reduce: the accumulator starts from zero
  kStaged = 2,       // store: the tile is already converted in shared memory, by an earlier store of the tile
  kTensor = 4,       // store: the copy engine may write the tile (it clips at the end of its tensor map)
  kJoin = 8,         // the workgroup accessed the same memory before: all its waves must meet first
  kAlone = 16,       // signal: it sets the counter, or is the only access, so that setting equals adding
  kKeep = 32,        // store: another store of the same staged tile follows
  kTeamWrites = 64,  // signal: covers stores by computing threads, not only staged tiles
  kRemote = 128,     // store: to another rank
};

// Bits of DeviceOp::partial of a sparse_product: it adds onto rows of which other ranges have parts.
enum SparseSums : std::uint8_t { kAddsFirstRow = 1, kAddsLastRow = 2 };

// A sparse_product writes its rows itself, by the stores and additions that follow it (lower_sparse.cpp). Its
// fields are: `address` and `pitch` of its first row in y; `source`, the values of nonzero 0; `values` and
// `values_pitch` of x; `value`, the LaneSharing; `group`, its lanes; `row`, the number of row ends in its
// LDS; `skip`, the number of operations that it carries out. In a kernel of sparse products, a load of one
// element is followed by `skip` loads at address + probes[row + i], in bytes, and each waits for the load
// before it.

// Bytes in LDS of such a kernel before its row ends: a row and a sum for each of up to 32 waves.
inline constexpr int kSparseCarryBytes = 256;

// One tile operation, 128 bytes, which a wave fetches with one coalesced access. Addresses are global;
// `width` is the largest power of two (at most 16) that divides every address, pitch and row length of the
// operation, in bytes.
struct alignas(128) DeviceOp {
  std::uint8_t kind = 0;      // tritax::OpKind
  std::uint8_t scope = 0;     // tritax::Scope
  std::uint8_t protocol = 0;  // tritax::LockProtocol
  std::uint8_t bits = 0;
  std::uint8_t dtype = 0;  // tritax::DType of the data at `address`
  std::uint8_t width = 0;
  std::uint8_t ends_run = 0;  // store, copy, atomic_add: the next operation is of another kind; see OpStamp
  std::uint8_t relaxed = 0;   // signal: no earlier access of the workgroup need be visible first
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
  std::int32_t value = 0;    // for flags; attend: as Op::value
  std::int32_t skip = 0;     // claim: operations to skip when the queue is empty
  std::int32_t number = 0;   // index into Schedule::ops, for messages and stamps; see lower_items.hpp
  std::int32_t group = 0;    // attend: as Op::index
  std::uint64_t values = 0;  // attend
  std::int32_t values_pitch = 0;
  std::int32_t partial = 0;   // store: the last column holds log-sum-exps; sparse_product: SparseSums
  std::uint64_t offsets = 0;  // sparse_product: offsets of the first row, in the structure
  std::uint64_t columns = 0;  // sparse_product: columns from nonzero 0 on, in the structure
  std::int32_t together = 0;  // first of a group: the operations of the group behind it, which it carries out
  std::int32_t multimem = 0;  // first of a group that the switch carries out, at a multicast address
};
static_assert(sizeof(DeviceOp) == 128);

// Operations of a workgroup, or of an item, which ends with a claim of the next item.
struct DeviceWorkgroup {
  std::uint32_t first_op = 0;
  std::uint32_t op_count = 0;
};

// A CUtensorMap on NVIDIA; unused on AMD.
struct alignas(128) TensorMap {
  unsigned char bytes[128] = {};
};

// First and last instant of a kernel, in ticks of the device's clock. The first instant is stored inverted,
// so that both are maxima and zero means "never". The first workgroup also counts the cycles of its compute
// unit, which give the clock under this load.
struct KernelSpan {
  unsigned long long inverted_begin = 0;
  unsigned long long end = 0;
  unsigned long long cycles = 0;  // of the first workgroup's compute unit
  unsigned long long ticks = 0;   // during these cycles
};

// Instants of an operation, defined in model/timeline/op_times.hpp. A run of asynchronous operations is
// drained only at its last operation, so that stamps do not prevent overlap.
struct Instant {
  unsigned long long ticks = 0;   // of the device's clock; 0: never
  unsigned long long cycles = 0;  // of the compute unit
};
struct OpStamp {
  Instant begin;
  Instant end;
};

// Reason why a rank gave up a run; `raised` is written last.
struct Failure {
  std::uint32_t raised = 0;  // 0: none
  std::int32_t number = 0;   // of the operation, index into Schedule::ops
  std::uint32_t cause = 0;   // kFlagTimeout or kTileTimeout
  std::uint32_t seen = 0;    // value of the flag at the timeout
};
inline constexpr std::uint32_t kFlagTimeout = 1;  // a wait ran out of time
inline constexpr std::uint32_t kTileTimeout = 2;  // the copy engine did not deliver a tile

inline constexpr int kMaxRanks = 16;

// In host memory that every GPU maps: the first wait that times out sets `stop`, and all ranks leave.
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
  const std::int32_t* probes = nullptr;      // for sequential loads, see DeviceOp
  OpStamp* stamps = nullptr;                 // by operation number; null: no stamps
  std::uint32_t* compute_units = nullptr;    // with stamps: compute unit of each workgroup
  std::uint32_t* item_workgroups = nullptr;  // with stamps: workgroup of each item
  KernelSpan* span = nullptr;
  FailureBoard* board = nullptr;
  std::uint32_t* failure_lock = nullptr;  // in the rank's own memory: guards its entry of the board
  unsigned long long spin_limit_ticks = 0;
  std::uint32_t remote_box_ticks = 0;  // least time between boxes of a workgroup to peers; 0: no pacing
  std::int32_t rank = 0;
  std::int32_t box_rows_of_a = 0;  // rows per box of A
};

}  // namespace tritax::gpu
