// Lowering: from a tile schedule to the input of the interpreter kernel. Pure host code, tested without a
// GPU.
//
// The symmetric heap holds every buffer and every flag array at the same offset on every rank. Rows are
// padded to a multiple of 128 bytes, so that tiles may start anywhere and the copy engines still find aligned
// rows. The columns x and y of sparse products are not padded; their elements are contiguous. The structure
// of sparse matrices lies behind the buffers.
//
// fp8 operands B exist twice: as the schedule sees them (K×N) and transposed (N×K), because the fp8 matrix
// instructions of NVIDIA read both operands along K. The copy is made when data are filled in; therefore
// lowering refuses a schedule that writes an fp8 buffer used as B.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "backend_hip/device_op.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax::gpu {

constexpr std::int32_t kPanelBytes = 128;  // a row of a swizzled panel in shared memory: of K, in an operand

// Kernels of a device for matmul and attend: one entry per (tile, dtype).
struct TileTraits {
  DType dtype = DType::bf16;
  std::int32_t m = 0;
  std::int32_t n = 0;
  std::int32_t threads = 0;
  std::int32_t shared_bytes = 0;
  std::int32_t store_cols = 0;  // columns per box of a store by the copy engine; 0: no copy engine
  std::int32_t store_rows = 0;
  std::int32_t depth = 0;  // attend: columns of a head, with m queries and n keys at a time; 0: matmul
};

struct DeviceTraits {
  std::string name;               // "NVIDIA H200", "gfx942"
  std::vector<TileTraits> tiles;  // tiles with matmul kernels
  bool tensor_maps = false;       // operands and whole-tile stores use the bulk copy engine
  bool fp8_b_transposed = false;  // fp8 matmul reads B from its transposed copy
};

struct BufferPlace {
  std::size_t offset = 0;
  std::int32_t pitch = 0;             // bytes
  std::size_t transposed_offset = 0;  // of the N×K copy, if there is one
  std::int32_t transposed_pitch = 0;  // 0: no copy
};

// Offset of an element from the start of the heap, and in the transposed copy.
inline std::size_t place_of(const BufferPlace& place, DType dtype, const Rect& rect) {
  return place.offset + static_cast<std::size_t>(rect.row) * static_cast<std::size_t>(place.pitch) +
         static_cast<std::size_t>(rect.col) * static_cast<std::size_t>(bytes_of(dtype));
}
inline std::size_t transposed_place_of(const BufferPlace& place, DType dtype, const Rect& rect) {
  return place.transposed_offset +
         static_cast<std::size_t>(rect.col) * static_cast<std::size_t>(place.transposed_pitch) +
         static_cast<std::size_t>(rect.row) * static_cast<std::size_t>(bytes_of(dtype));
}

// Offsets of the structure of a sparse matrix from the start of the heap.
struct SparsePlace {
  std::size_t offsets = 0;
  std::size_t columns = 0;
};

struct HeapLayout {
  std::vector<BufferPlace> buffers;       // as Schedule::buffers
  std::vector<SparsePlace> sparse;        // as Schedule::sparse
  std::vector<std::size_t> flag_offsets;  // as Schedule::flags
  std::size_t flags_begin = 0;            // all flags lie in [flags_begin, flags_end)
  std::size_t flags_end = 0;
  std::size_t bytes = 0;
};

// A tensor map to encode: a matrix for the copy engine, clipped at cols × rows, moved in boxes.
struct TensorMapSpec {
  DType dtype = DType::bf16;
  std::uint64_t address = 0;
  std::int32_t cols = 0;
  std::int32_t rows = 0;
  std::int32_t pitch = 0;
  std::int32_t box_cols = 0;
  std::int32_t box_rows = 0;
  friend auto operator<=>(const TensorMapSpec&, const TensorMapSpec&) = default;
};

struct LoweredKernel {
  std::uint32_t first_workgroup = 0;  // into RankProgram::workgroups
  std::uint32_t workgroup_count = 0;
  std::uint32_t first_item = 0;      // into RankProgram::items; as many as the schedule's kernel has
  const TileTraits* tile = nullptr;  // null: a kernel without matmul
  std::int32_t threads = 0;
  std::int32_t shared_bytes = 0;
  std::int32_t box_rows_of_a = 0;  // rows per box of A: those of the schedule's tiles, no more
  bool lean = false;               // combines partials so small that every thread holds at most 8 numbers
  bool sparse = false;             // a kernel of sparse products, and of searches of one element at a time
};

struct RankProgram {
  std::vector<DeviceOp> ops;
  std::vector<DeviceWorkgroup> workgroups;
  std::vector<DeviceWorkgroup> items;
  std::vector<TensorMapSpec> tensor_maps;
  std::vector<std::int32_t> probes;    // see DeviceOp
  std::vector<LoweredKernel> kernels;  // as Schedule::kernels; empty entries for kernels of other ranks
};

// Throws UserError where the workgroups of a kernel need more LDS, in bytes, than the device allows per
// workgroup.
void require_shared_room(const std::string& kernel, std::int64_t asked, std::int64_t most,
                         const std::string& device);

// Lays out all buffers and flags. Throws UserError for rows longer than a 32-bit pitch, and
// for buffers with a codec.
HeapLayout lay_out_heap(const Schedule& schedule, const DeviceTraits& device);

// The kernel for the tiles of `kernel`, null if it neither multiplies nor attends: the smallest kernel with
// tiles of this size or larger; a part of a larger tile stays unused. For attention, the queries and the
// columns of a head must fit. Throws UserError that lists the existing kernels if none fits.
const TileTraits* find_tile(const Schedule& schedule, const Kernel& kernel, const DeviceTraits& device);

// Program of one rank: every workgroup and item of its kernels, with each operation as one DeviceOp. Host
// programs are not part of it; the executor runs them from the schedule. `heap_base[r]` is the address of
// rank r's heap as this rank sees it. Throws UserError, which names the operation, for cases that the device
// does not support:
//
//   tiles             without a kernel, or with a pipeline that is only simulated (see find_tile);
//                     larger than the accumulator of a kernel without matmul
//   operands          that start off the copy engine's 16-byte grid; writes to an fp8 operand B
//   dtypes            a copy that converts; atomic_add of fp8; fp64 beside another dtype in a kernel that
//                     multiplies, and anything but copied in one that does not
//   an accumulator    written while it is empty, or carried over a claim that skips
//   attend, combine   off the 16-byte grid; attend beside matmul, load, reduce or atomic_add; combine beside
//                     matmul or sparse products; partials that are not fp32
//   rms_norm          of more than a row at once, or in a kernel that multiplies, attends or has sparse
//                     products
//   sparse products   that are not written out at once (see lower_sparse.cpp)
//   multimem          with `multicast`, the address of all heaps: other types than fp32, fp16 and bf16, rows
//                     that are not whole 16 bytes, or a kernel that multiplies
RankProgram lower(const Schedule& schedule, const HeapLayout& heap, const DeviceTraits& device, int rank,
                  const std::vector<std::uint64_t>& heap_base, std::uint64_t multicast = 0);

// Kernel, workgroup and operation of an index into Schedule::ops, in words: "kernel 'gemm' rank 0 workgroup 3
// operation 2 (wait), flag 'ready'[17] >= 1".
std::string describe_operation(const Schedule& schedule, std::int32_t number);

}  // namespace tritax::gpu
