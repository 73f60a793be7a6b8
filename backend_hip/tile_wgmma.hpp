// matmul tiles on sm_90a: the team of a workgroup and the kernel around it; see wgmma_shape.hpp.
//
// The team keeps its accumulators in registers from a matmul to the last store of the tile. The first store
// converts the tile once into the staging area, for all target ranks; the senders take it from there.
#pragma once

#include <algorithm>

#include "backend_hip/wgmma.hpp"
#include "backend_hip/wgmma_feeder.hpp"
#include "backend_hip/wgmma_shape.hpp"

namespace tritax::gpu {

template <class Shape>
class WgmmaEngine {
 public:
  __device__ WgmmaEngine(const LaunchParams& params, WgmmaShared<Shape>& shared, unsigned char* stages)
      : params_(params), shared_(shared), stages_(shared_address(stages)) {
    const int team = thread() / 128;
    lane_ = threadIdx.x % kWaveLanes;
    wave_ = thread() % 128 / kWaveLanes;
    row_ = Shape::kSplitRows ? team * Shape::kBlocks * 64 : 0;
    col_ = Shape::kSplitRows ? 0 : team * Shape::kCols;
  }

  // As many as the accumulators leave registers for.
  static constexpr int kCopiesInFlight = Shape::kBlocks * Shape::kCols <= 128 ? 16 : 8;

  __device__ int thread() const { return static_cast<int>(threadIdx.x) - 128; }
  __device__ int threads() const { return 128 * Shape::kTeams; }
  __device__ void team_barrier() const { named_barrier(kTeamBarrier, 128 * Shape::kTeams); }

  __device__ void meet() const { workgroup_barrier(); }

  __device__ void join() const {
    proxy_fence();  // orders stores of the team before the feeder's next loads; waits for remote stores
    workgroup_barrier();
  }

  __device__ bool stamps(const DeviceOp& op) const {  // the senders stamp their own stores
    return !is_sent<Shape>(op) && static_cast<OpKind>(op.kind) != OpKind::signal;
  }
  __device__ void finish() const {}

  // The senders raise flags; they only need to know that the team's own stores are complete.
  __device__ void signal(const DeviceOp& op) const {
    if ((op.bits & kTeamWrites) != 0) named_barrier(kReleaseBarrier, kSendingThreads + 128 * Shape::kTeams);
  }

  __device__ void matmul(const DeviceOp& op) {
    const int steps = steps_of<Shape>(op);
    if (steps < 1) return;
    // The first step is separate: only then does every instruction of the loop find accumulators written by
    // matrix instructions, and the compiler need not wait for them between steps.
    multiply_stage(op, (op.bits & kFresh) != 0 ? 0 : 1);
    for (int step = 1; step < steps; ++step) {
      const int previous = ring_.stage;
      ring_.advance();
      multiply_stage(op, 1);
      wgmma_wait<1>();
      release_stage(previous);
    }
    wgmma_wait<0>();
    release_stage(ring_.stage);
    ring_.advance();
  }

  __device__ void accumulate(const DeviceOp& op) {
    if (static_cast<DType>(op.dtype) == DType::fp32) {
      accumulate_as<DType::fp32>(op);
    } else {
      accumulate_as<Shape::dtype>(op);
    }
  }

  __device__ void store(const DeviceOp& op) {
    if (static_cast<DType>(op.dtype) == DType::fp32) {
      store_fp32(op);
      return;
    }
    if ((op.bits & kStaged) != 0) return;  // the senders already have the tile
    await_arrival(&shared_.sent, sent_phase_ ^ 1, params_, op.number);
    sent_phase_ ^= 1;
    stage_tile();
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    wave_barrier();
    if (lane_ == 0) arrive(&shared_.staged);
  }

  __device__ void atomic_add(const DeviceOp& op) {
    if (static_cast<DType>(op.dtype) == DType::fp32) {
      atomic_add_as<DType::fp32>(op);
    } else if constexpr (Shape::dtype != DType::fp8) {
      atomic_add_as<Shape::dtype>(op);
    }
  }

 private:
  __device__ void release_stage(int stage) {
    if (lane_ == 0) arrive(&shared_.empty[stage]);
  }

  // Shared memory matrix descriptor with the 128-byte swizzle; offsets in bytes.
  __device__ static std::uint64_t descriptor(std::uint32_t address, std::uint32_t leading,
                                             std::uint32_t stride) {
    return (static_cast<std::uint64_t>((address & 0x3ffff) >> 4)) |
           (static_cast<std::uint64_t>(leading >> 4) << 16) |
           (static_cast<std::uint64_t>(stride >> 4) << 32) | (1ULL << 62);
  }

  // Begin of this warpgroup's columns in B: rows for fp8, else columns of a panel of 64.
  __device__ std::uint32_t first_of_b() const {
    return Shape::dtype == DType::fp8 ? col_ * 128 : col_ / 64 * 8192 + col_ % 64 * 2;
  }

  // Multiplies the current stage of the ring, once it has arrived; the result is still on its way at return.
  __device__ void multiply_stage(const DeviceOp& op, int scale) {
    const std::uint32_t stage = stages_ + ring_.stage * Shape::kStageBytes;
    const std::uint32_t a = stage + row_ * 128;
    const std::uint32_t b = stage + Shape::kBytesA + first_of_b();
    await_arrival(&shared_.full[ring_.stage], ring_.phase, params_, op.number);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < 4; ++k) {  // 32 bytes of K per instruction
      // 16-bit B: 8 k rows of a panel are 1024 bytes apart, 64-column panels 8192; fp8 B lies like A.
      const std::uint64_t b_matrix = Shape::dtype == DType::fp8 ? descriptor(b + k * 32, 16, 1024)
                                                                : descriptor(b + k * 2048, 8192, 1024);
#pragma unroll
      for (int block = 0; block < Shape::kBlocks; ++block) {
        wgmma<Shape::dtype, Shape::kCols>(acc_[block], descriptor(a + block * 8192 + k * 32, 16, 1024),
                                          b_matrix, k == 0 ? scale : 1);
      }
    }
    wgmma_commit();
  }

  // Calls visit(row, col, pair) for every two neighbours of this thread, in the tile's coordinates.
  template <class Visit>
  __device__ void for_each_pair(Visit visit) {
#pragma unroll
    for (int block = 0; block < Shape::kBlocks; ++block) {
#pragma unroll
      for (int j = 0; j < Shape::kCols / 2; j += 2) {
        visit(row_of(block, j / 2 % 2), col_ + 2 * (lane_ % 4) + 8 * (j / 4),
              make_float2(acc_[block][j], acc_[block][j + 1]));
      }
    }
  }

  // Calls visit(row, col, value) for every element of this thread, in the tile's coordinates.
  template <class Visit>
  __device__ void for_each_element(Visit visit) {
    const int row = row_ + wave_ * 16 + lane_ / 4;
    const int col = col_ + 2 * (lane_ % 4);
#pragma unroll
    for (int block = 0; block < Shape::kBlocks; ++block) {
#pragma unroll
      for (int j = 0; j < Shape::kCols / 2; ++j) {
        visit(row + block * 64 + 8 * (j / 2 % 2), col + 8 * (j / 4) + j % 2, acc_[block][j]);
      }
    }
  }

  template <DType dtype>
  __device__ void accumulate_as(const DeviceOp& op) {
    const float keep = (op.bits & kFresh) != 0 ? 0.0F : 1.0F;
    const auto* from = reinterpret_cast<const unsigned char*>(op.address);
    if constexpr (Shape::kCols % 32 == 0) {
      if (op.width == 16) {
        add_rows<dtype>(op, from, keep);
        return;
      }
    }
    for_each_element([&](int row, int col, float& value) {
      value = keep != 0.0F ? value : 0.0F;
      if (row >= op.rows || col >= op.cols) return;
      value +=
          to_float<dtype>(load_element<dtype>(from + std::int64_t{row} * op.pitch + col * bytes_of(dtype)));
    });
  }

  __device__ int row_of(int block, int half) const {
    return row_ + wave_ * 16 + lane_ / 4 + block * 64 + half * 8;
  }

  // Eight elements of a row, two per word; fp32 one per word.
  template <DType dtype>
  struct Eight {
    static constexpr int kBits = 8 * bytes_of(dtype);
    static constexpr int kEach = dtype == DType::fp32 ? 1 : 2;
    std::uint32_t words[8 / kEach];

    __device__ float value(int i) const {
      return to_float<dtype>(kEach == 1 ? words[i]
                                        : words[i / 2] >> (i % 2 * kBits) & ((1U << kBits % 32) - 1));
    }
  };

  // Each lane loads eight neighbours of 32 columns (for fp32 the two that it needs of every eight), and
  // several such loads before it adds the first: with one load at a time, every element would wait for
  // memory.
  template <DType dtype>
  __device__ void add_rows(const DeviceOp& op, const unsigned char* from, float keep) {
    constexpr int kChunks = Shape::kCols / 32;
    constexpr int kWords =
        Shape::kBlocks * Shape::kCols <= 128 ? 32 : 16;  // registers beside the accumulators
    constexpr int kTogether = std::min<int>(kChunks, kWords / (dtype == DType::fp32 ? 8 : 4));
    static_assert(kChunks % kTogether == 0);
#pragma unroll
    for (int block = 0; block < Shape::kBlocks; ++block) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = row_of(block, half);
        const unsigned char* line = from + std::int64_t{row} * op.pitch;
        const int cols = row < op.rows ? op.cols : 0;
#pragma unroll
        for (int first = 0; first < kChunks; first += kTogether) {
          Eight<dtype> parts[kTogether];
#pragma unroll
          for (int i = 0; i < kTogether; ++i) {
            load_eight<dtype>(line, col_ + (first + i) * 32, cols, parts[i]);
          }
#pragma unroll
          for (int i = 0; i < kTogether; ++i) add_eight<dtype>(parts[i], block, half, first + i, keep);
        }
      }
    }
  }

  template <DType dtype>
  __device__ void add_eight(Eight<dtype>& part, int block, int half, int chunk, float keep) {
    if constexpr (dtype != DType::fp32) transpose(part.words);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      float& value = acc_[block][(chunk * 4 + i / 2) * 4 + half * 2 + i % 2];
      value = (keep != 0.0F ? value : 0.0F) + part.value(i);
    }
  }

  // Loads from the 32 columns from `col` on; columns from `cols` on are zero.
  template <DType dtype>
  __device__ void load_eight(const unsigned char* line, int col, int cols, Eight<dtype>& to) const {
    if constexpr (dtype == DType::fp32) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int at = col + i * 8 + lane_ % 4 * 2;
        const auto* from = reinterpret_cast<const std::uint32_t*>(line) + at;
        uint2 pair = {0, 0};
        if (at + 2 <= cols) {
          pair = *reinterpret_cast<const uint2*>(from);
        } else if (at < cols) {
          pair.x = *from;
        }
        to.words[2 * i] = pair.x;
        to.words[2 * i + 1] = pair.y;
      }
    } else {
      const int at = col + lane_ % 4 * 8;
      const unsigned char* from = line + at * bytes_of(dtype);
      uint4 all = {0, 0, 0, 0};
      if (at + 8 <= cols) {
        if constexpr (dtype == DType::fp8) {
          const uint2 bytes = *reinterpret_cast<const uint2*>(from);
          all = {bytes.x & 0xffffU, bytes.x >> 16, bytes.y & 0xffffU, bytes.y >> 16};
        } else {
          all = *reinterpret_cast<const uint4*>(from);
        }
      } else {
#pragma unroll
        for (int i = 0; i < 8; ++i) {  // beyond a ragged edge
          if (at + i >= cols) continue;
          const std::uint32_t bits = load_element<dtype>(from + i * bytes_of(dtype))
                                     << (i % 2 * Eight<dtype>::kBits);
          (i < 2 ? all.x : i < 4 ? all.y : i < 6 ? all.z : all.w) |= bits;
        }
      }
      to.words[0] = all.x;
      to.words[1] = all.y;
      to.words[2] = all.z;
      to.words[3] = all.w;
    }
  }

  template <DType dtype>
  __device__ void atomic_add_as(const DeviceOp& op) {
    auto* to = reinterpret_cast<unsigned char*>(op.address);
    if constexpr (bytes_of(dtype) == 2 && Shape::kCols % 32 == 0) {
      if (op.width == 16) {
        atomic_add_rows<dtype>(op, to);
        return;
      }
    }
    for_each_element([&](int row, int col, float& value) {
      if (row >= op.rows || col >= op.cols) return;
      atomic_add_element<dtype>(to + std::int64_t{row} * op.pitch + col * bytes_of(dtype), value);
    });
  }

  // Of 32 columns of a row, four lanes each have two neighbours in every eight columns. The lanes exchange
  // them so that each lane has eight neighbours, which are one addition on the way to memory instead of
  // eight.
  template <DType dtype>
  __device__ void atomic_add_rows(const DeviceOp& op, unsigned char* to) {
    const int col = col_ + lane_ % 4 * 8;
#pragma unroll
    for (int block = 0; block < Shape::kBlocks; ++block) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int row = row_of(block, half);
#pragma unroll
        for (int chunk = 0; chunk < Shape::kCols / 32; ++chunk) {
          std::uint32_t pairs[4];
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const float* v = acc_[block] + (chunk * 4 + i) * 4 + half * 2;
            pairs[i] = pack_pair<dtype>(v[0], v[1]);
          }
          transpose(pairs);
          if (row < op.rows) add_pairs<dtype>(op, to + std::int64_t{row} * op.pitch, col + chunk * 32, pairs);
        }
      }
    }
  }

  // Word i of lane l (of four neighbouring lanes) becomes word l of lane i.
  __device__ void transpose(std::uint32_t (&words)[4]) const {
    const bool odd = lane_ % 2 != 0;
    const bool upper = lane_ % 4 >= 2;
    exchange(words[0], words[1], odd, 1);
    exchange(words[2], words[3], odd, 1);
    exchange(words[0], words[2], upper, 2);
    exchange(words[1], words[3], upper, 2);
  }

  // The lane `mask` away gets the second word, or the first where `takes_first`, and sends the other.
  __device__ static void exchange(std::uint32_t& first, std::uint32_t& second, bool takes_first, int mask) {
    const std::uint32_t got = __shfl_xor_sync(0xffffffffU, takes_first ? first : second, mask);
    (takes_first ? first : second) = got;
  }

  template <DType dtype>
  __device__ static void add_pairs(const DeviceOp& op, unsigned char* row, int col,
                                   const std::uint32_t (&pairs)[4]) {
    if (col + 8 <= op.cols) {
      atomic_add_eight<dtype>(row + col * 2, pairs);
      return;
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {  // beyond a ragged edge
      const std::uint32_t bits = pairs[i / 2] >> (i % 2 * 16) & 0xffffU;
      if (col + i < op.cols) atomic_add_element<dtype>(row + (col + i) * 2, to_float<dtype>(bits));
    }
  }

  __device__ void store_fp32(const DeviceOp& op) {
    auto* to = reinterpret_cast<unsigned char*>(op.address);
    const bool in_pairs = op.width >= 8 && op.cols % 2 == 0;
    for_each_pair([&](int row, int col, float2 pair) {
      if (row >= op.rows || col >= op.cols) return;
      auto* at = reinterpret_cast<float*>(to + std::int64_t{row} * op.pitch + col * 4);
      if (in_pairs) {
        *reinterpret_cast<float2*>(at) = pair;
        return;
      }
      at[0] = pair.x;
      if (col + 1 < op.cols) at[1] = pair.y;
    });
  }

  // One block of fp8 elements, of which a thread has two neighbours in every eight columns: of 16 columns it
  // exchanges two elements with the adjacent lane, and stores four.
  __device__ void stage_bytes(std::uint32_t rows, const float (&acc)[Shape::kCols / 2]) const {
    const bool odd = lane_ % 2 != 0;
    std::uint32_t address =
        rows + swizzled(wave_ * 16 + lane_ / 4, first_chunk()) + (odd ? 8 : 0) + lane_ % 4 / 2 * 4;
    // Computed here, not before the matmul: the addresses of all words have no room beside the accumulators.
    asm volatile("mov.b32 %0, %0;" : "+r"(address));
#pragma unroll
    for (int chunk = 0; chunk < Shape::kCols / 16; ++chunk) {
      const std::uint32_t at = (address ^ (chunk % 8 * 16)) + chunk / 8 * 8192;
#pragma unroll
      for (int half = 0; half < 2; ++half) {  // eight rows below
        const float* v = acc + chunk * 8 + half * 2;
        const std::uint32_t left = pack_pair<Shape::dtype>(v[0], v[1]);
        const std::uint32_t right = pack_pair<Shape::dtype>(v[4], v[5]);
        const std::uint32_t own = odd ? right : left;
        const std::uint32_t other = __shfl_xor_sync(0xffffffffU, odd ? left : right, 1);
        const std::uint32_t word = __byte_perm(odd ? other : own, odd ? own : other, 0x5410);
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(at + half * 1024), "r"(word) : "memory");
      }
    }
  }

  // First column of this warpgroup in a shared panel, in chunks of 16 bytes.
  __device__ int first_chunk() const {
    return thread() / 128 % Shape::kSharers * (Shape::kCols * Shape::kElement / 16);
  }

  __device__ void stage_tile() {
    const int panels = thread() / 128 / Shape::kSharers;  // index of the panels of this warpgroup
    const std::uint32_t staging = stages_ + Shape::kStages * Shape::kStageBytes +
                                  panels * (Shape::kStagingBytes * Shape::kSharers / Shape::kTeams);
#pragma unroll
    for (int block = 0; block < Shape::kBlocks; ++block) {
      const std::uint32_t rows = staging + block * Shape::kPanels * 8192;
      if constexpr (Shape::dtype == DType::fp8) {
        stage_bytes(rows, acc_[block]);
      } else {
        const int row = wave_ * 16 + lane_ % 16;
#pragma unroll
        for (int j = 0; j < Shape::kCols / 2; j += 8) {  // 16 columns
          const float* v = acc_[block] + j;
          const int chunk = first_chunk() + j / 4 + lane_ / 16;
          store_matrices(rows + chunk / 8 * 8192 + swizzled(row, chunk % 8),
                         pack_pair<Shape::dtype>(v[0], v[1]), pack_pair<Shape::dtype>(v[2], v[3]),
                         pack_pair<Shape::dtype>(v[4], v[5]), pack_pair<Shape::dtype>(v[6], v[7]));
        }
      }
    }
  }

  const LaunchParams& params_;
  WgmmaShared<Shape>& shared_;
  std::uint32_t stages_;  // in shared memory
  int lane_ = 0;
  int wave_ = 0;
  int row_ = 0;  // first row and column of this warpgroup in the tile
  int col_ = 0;
  RingPosition<Shape::kStages> ring_;
  std::uint32_t sent_phase_ = 0;
  float acc_[Shape::kBlocks][Shape::kCols / 2];
};

template <class Shape>
__global__ void __launch_bounds__(Shape::kThreads, 1)
    matmul_kernel(const __grid_constant__ LaunchParams params) {
  extern __shared__ unsigned char dynamic_shared[];
  __shared__ WgmmaShared<Shape> shared;
  const std::uint32_t misaligned = shared_address(dynamic_shared) % 1024;
  unsigned char* stages = dynamic_shared + (misaligned == 0 ? 0 : 1024 - misaligned);

  if (threadIdx.x == 0) {
    for (int i = 0; i < Shape::kStages; ++i) {
      arrival_init(&shared.full[i], 1);
      arrival_init(&shared.empty[i], 4 * Shape::kTeams);  // one arrival per wave
    }
    arrival_init(&shared.staged, 4 * Shape::kTeams);
    arrival_init(&shared.sent, kSendingWaves);
    proxy_fence();
  }
  workgroup_barrier();

  // The team needs the registers for its accumulators; these two numbers set the registers of the compiler.
  OpReader reader(params, shared.slots.get() + 2 * (threadIdx.x / kWaveLanes));
  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x < kWaveLanes) {
      feed(params, reader, shared, stages);
    } else {
      WgmmaSender<Shape> sender(params, shared, stages + Shape::kStages * Shape::kStageBytes);
      sender.run(reader);
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    WgmmaEngine<Shape> engine(params, shared, stages);
    interpret(params, engine, reader, *shared.mailbox.get());
  }
}

}  // namespace tritax::gpu
