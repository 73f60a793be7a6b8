// matmul tiles on sm_90a: the bulk copy engine feeds shared memory, warpgroup instructions multiply.
//
// A workgroup is one feeding wave and two warpgroups of 128 threads that compute (the team). The feeding wave
// walks the same operation list and fills a ring of stages, ahead of the team and across operations: while
// the team converts and stores a tile, the operands of the next one arrive. It meets the team only at joins.
//
//   stage   A panel kM × 128 bytes, then B as kN/64 panels of 64 k × 128 bytes (16-bit) or kN × 128 bytes
//   (fp8, from
//           the transposed copy); all with the 128-byte swizzle that the matrix unit reads without bank
//           conflicts
//   staging the converted tile on its way out, as panels of 64 rows × 128 bytes
//
// A tile is kept converted in the staging area between stores, so that storing it to several ranks costs one
// conversion; the copy engine writes local and remote tiles alike and drains behind the next matmul.
#pragma once

#include "backend_hip/copy_engine.hpp"
#include "backend_hip/interpreter.hpp"
#include "backend_hip/wgmma.hpp"

namespace tritax::gpu {

// ---- Shapes ----

template <DType dtype_, int m_, int n_>
struct WgmmaShape {
  static constexpr DType dtype = dtype_;
  static constexpr int kM = m_;
  static constexpr int kN = n_;
  static constexpr int kElement = bytes_of(dtype_);
  static constexpr int kPanelCols = 128 / kElement;  // elements of a swizzled row; the K step of a stage
  static constexpr int kTeams = 2;                   // warpgroups that compute
  static constexpr bool kSplitRows = m_ >= 128;      // else they share the rows and split the columns
  static constexpr int kBlocks = kSplitRows ? m_ / (64 * kTeams) : 1;  // 64-row blocks of a warpgroup
  static constexpr int kCols = kSplitRows ? n_ : n_ / kTeams;          // columns of a warpgroup
  static constexpr int kPanels = kCols / kPanelCols;
  static constexpr int kThreads = 128 * (kTeams + 1);

  static constexpr int kBytesA = m_ * 128;
  static constexpr int kBytesB = n_ * 128;
  static constexpr int kStageBytes = kBytesA + kBytesB;
  static constexpr int kStagingBytes = m_ * n_ * kElement;
  static constexpr int kSharedLimit = 227 * 1024 - 1024 - 8192;  // alignment; operations, barriers, mailbox
  static constexpr int kStagesThatFit = (kSharedLimit - kStagingBytes) / kStageBytes;
  static constexpr int kStages = kStagesThatFit < 8 ? kStagesThatFit : 8;
  static constexpr int kSharedBytes = 1024 + kStages * kStageBytes + kStagingBytes;
  static constexpr int kStoreCols = kPanelCols;  // a box of the copy engine
  static constexpr int kStoreRows = 64;
  static_assert(kStages >= 2 && kPanels >= 1);
};

template <class Shape>
struct WgmmaShared {
  SharedRoom<DeviceOp, 2 * Shape::kThreads / kWaveLanes>
      slots;  // of every wave: the current operation and the next
  std::uint64_t full[Shape::kStages];
  std::uint64_t empty[Shape::kStages];
  SharedRoom<Mailbox> mailbox;
};

// Position in the ring of stages.
template <int stages>
struct RingPosition {
  int stage = 0;
  std::uint32_t phase = 0;
  __device__ void advance() {
    if (++stage == stages) {
      stage = 0;
      phase ^= 1;
    }
  }
};

// Joins are of the feeding wave and the team; the other waves of its warpgroup have left.
inline constexpr int kJoinBarrier = 1;
inline constexpr int kTeamBarrier = 2;
inline constexpr int kWarpgroupBarrier = 3;  // and 4

template <class Shape>
__device__ inline int steps_of(const DeviceOp& op) {
  return (op.k_end - op.k_begin + Shape::kPanelCols - 1) / Shape::kPanelCols;
}

// ---- The feeding wave ----

template <class Shape>
__device__ void feed_matmul(const LaunchParams& params, const DeviceOp& op, WgmmaShared<Shape>& shared,
                            unsigned char* stages, RingPosition<Shape::kStages>& ring) {
  const TensorMap* map_a = params.tensor_maps + op.tensor_map;
  const TensorMap* map_b = params.tensor_maps + op.tensor_map_b;
  const int steps = steps_of<Shape>(op);
  for (int step = 0; step < steps; ++step) {
    await_arrival(&shared.empty[ring.stage], ring.phase ^ 1, params, op.number);
    arrive_and_expect(&shared.full[ring.stage], Shape::kStageBytes);
    unsigned char* a = stages + ring.stage * Shape::kStageBytes;
    unsigned char* b = a + Shape::kBytesA;
    const std::int32_t k = op.k_begin + step * Shape::kPanelCols;
    load_box(a, map_a, k, op.row, &shared.full[ring.stage]);
    if constexpr (Shape::dtype == DType::fp8) {
      load_box(b, map_b, k, op.col, &shared.full[ring.stage]);
    } else {
#pragma unroll
      for (int panel = 0; panel < Shape::kN / 64; ++panel) {
        load_box(b + panel * 8192, map_b, op.col + panel * 64, k, &shared.full[ring.stage]);
      }
    }
    ring.advance();
  }
}

template <class Shape>
__device__ void feed(const LaunchParams& params, OpReader& reader, WgmmaShared<Shape>& shared,
                     unsigned char* stages) {
  constexpr int kJoinThreads = 128 * Shape::kTeams + kWaveLanes;
  const bool feeder = threadIdx.x == 0;
  RingPosition<Shape::kStages> ring;
  int turn = 0;
  while (!reader.done()) {
    const DeviceOp& op = reader.current();
    const auto kind = static_cast<OpKind>(op.kind);
    std::uint32_t skip = 0;
    const bool joins = kind == OpKind::wait || kind == OpKind::claim || kind == OpKind::barrier ||
                       (kind == OpKind::matmul && (op.bits & kJoin) != 0);
    if (joins) {
      named_barrier(kJoinBarrier, kJoinThreads);
      proxy_fence();
    }
    if (kind == OpKind::wait || kind == OpKind::claim) {
      skip = shared.mailbox.get()->skip[turn];
      if (shared.mailbox.get()->stop[turn] != 0) return;
      turn ^= 1;
    }
    if (kind == OpKind::matmul && feeder) feed_matmul(params, op, shared, stages, ring);
    wave_barrier();
    reader.advance(skip);
  }
}

// ---- The team ----

template <class Shape>
class WgmmaEngine {
 public:
  __device__ WgmmaEngine(const LaunchParams& params, WgmmaShared<Shape>& shared, unsigned char* stages)
      : params_(params), shared_(shared), stages_(stages) {
    const int team = thread() / 128;
    lane_ = threadIdx.x % kWaveLanes;
    wave_ = thread() % 128 / kWaveLanes;
    team_ = team;
    row_ = Shape::kSplitRows ? team * Shape::kBlocks * 64 : 0;
    col_ = Shape::kSplitRows ? 0 : team * Shape::kCols;
    staging_ = stages + Shape::kStages * Shape::kStageBytes + team * (Shape::kStagingBytes / Shape::kTeams);
  }

  static constexpr int kCopiesInFlight = 8;

  __device__ int thread() const { return static_cast<int>(threadIdx.x) - 128; }
  __device__ int threads() const { return 128 * Shape::kTeams; }
  __device__ void team_barrier() const { named_barrier(kTeamBarrier, 128 * Shape::kTeams); }

  __device__ void join() const {
    proxy_fence();  // what the team has stored or acquired comes before what the feeding wave loads next
    named_barrier(kJoinBarrier, 128 * Shape::kTeams + kWaveLanes);
  }

  __device__ void drain() {
    if (sends()) await_stores_done();
    proxy_fence();
  }

  // Lets the team read in memory what it stored through the copy engine.
  __device__ void settle() {
    drain();
    team_barrier();
  }

  __device__ void finish() {
    if (sends()) await_stores_done();
  }

  __device__ void matmul(const DeviceOp& op) {
    if ((op.bits & kJoin) != 0) {
      drain();
      join();
    }
    const int steps = steps_of<Shape>(op);
    if (steps < 1) return;
    // The first step stands apart: only then does every instruction of the loop find accumulators that matrix
    // instructions wrote, and the compiler need not wait for them between steps.
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
    if ((op.bits & kStaged) == 0) {
      if (sends()) await_stores_read();
      warpgroup_barrier();  // nobody reads the staging area any more
      stage_tile();
      asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      warpgroup_barrier();
    }
    if ((op.bits & kTensor) != 0) {
      if (sends()) send_panels(op);
    } else {
      copy_staged(op);
    }
  }

  __device__ void atomic_add(const DeviceOp& op) {
    if (static_cast<DType>(op.dtype) == DType::fp32) {
      atomic_add_as<DType::fp32>(op);
    } else if constexpr (Shape::dtype != DType::fp8) {
      atomic_add_as<Shape::dtype>(op);
    }
  }

 private:
  __device__ bool sends() const { return thread() % 128 == 0; }
  __device__ void warpgroup_barrier() const { named_barrier(kWarpgroupBarrier + team_, 128); }

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

  // Multiplies the current stage of the ring, once it has arrived; the result is on its way when this
  // returns.
  __device__ void multiply_stage(const DeviceOp& op, int scale) {
    const std::uint32_t stage = shared_address(stages_) + ring_.stage * Shape::kStageBytes;
    const std::uint32_t a = stage + row_ * 128;
    const std::uint32_t b = stage + Shape::kBytesA + col_ * 128;
    await_arrival(&shared_.full[ring_.stage], ring_.phase, params_, op.number);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < 4; ++k) {  // 32 bytes of K an instruction
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

  // Calls visit(row, col, value) for every element this thread holds, in the tile's coordinates.
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
    for_each_element([&](int row, int col, float& value) {
      value = keep != 0.0F ? value : 0.0F;
      if (row >= op.rows || col >= op.cols) return;
      value +=
          to_float<dtype>(load_element<dtype>(from + std::int64_t{row} * op.pitch + col * bytes_of(dtype)));
    });
  }

  template <DType dtype>
  __device__ void atomic_add_as(const DeviceOp& op) {
    auto* to = reinterpret_cast<unsigned char*>(op.address);
    for_each_element([&](int row, int col, float& value) {
      if (row >= op.rows || col >= op.cols) return;
      atomic_add_element<dtype>(to + std::int64_t{row} * op.pitch + col * bytes_of(dtype), value);
    });
  }

  __device__ void store_fp32(const DeviceOp& op) {
    auto* to = reinterpret_cast<unsigned char*>(op.address);
    for_each_element([&](int row, int col, float& value) {
      if (row >= op.rows || col >= op.cols) return;
      *reinterpret_cast<float*>(to + std::int64_t{row} * op.pitch + col * 4) = value;
    });
  }

  // Address of 16-byte chunk `chunk` of a row in a swizzled panel of 64 rows × 128 bytes.
  __device__ static std::uint32_t swizzled(int row, int chunk) {
    return row * 128 + ((chunk ^ (row % 8)) * 16);
  }

  __device__ void stage_tile() {
    const std::uint32_t staging = shared_address(staging_);
#pragma unroll
    for (int block = 0; block < Shape::kBlocks; ++block) {
      const std::uint32_t rows = staging + block * Shape::kPanels * 8192;
      if constexpr (Shape::dtype == DType::fp8) {
#pragma unroll
        for (int j = 0; j < Shape::kCols / 2; j += 2) {
          const int row = wave_ * 16 + lane_ / 4 + 8 * (j / 2 % 2);
          const int col = 8 * (j / 4) + 2 * (lane_ % 4);
          const std::uint32_t at = rows + col / 128 * 8192 + swizzled(row, col % 128 / 16) + col % 16;
          const auto pair =
              static_cast<unsigned short>(pack_pair<Shape::dtype>(acc_[block][j], acc_[block][j + 1]));
          asm volatile("st.shared.u16 [%0], %1;" ::"r"(at), "h"(pair) : "memory");
        }
      } else {
        const int row = wave_ * 16 + lane_ % 16;
#pragma unroll
        for (int j = 0; j < Shape::kCols / 2; j += 8) {  // 16 columns
          const float* v = acc_[block] + j;
          const int chunk = j / 4 + lane_ / 16;
          store_matrices(rows + chunk / 8 * 8192 + swizzled(row, chunk % 8),
                         pack_pair<Shape::dtype>(v[0], v[1]), pack_pair<Shape::dtype>(v[2], v[3]),
                         pack_pair<Shape::dtype>(v[4], v[5]), pack_pair<Shape::dtype>(v[6], v[7]));
        }
      }
    }
  }

  __device__ void send_panels(const DeviceOp& op) {
    const TensorMap* map = params_.tensor_maps + op.tensor_map;
#pragma unroll
    for (int block = 0; block < Shape::kBlocks; ++block) {
#pragma unroll
      for (int panel = 0; panel < Shape::kPanels; ++panel) {
        store_box(staging_ + (block * Shape::kPanels + panel) * 8192, map,
                  op.col + col_ + panel * Shape::kPanelCols, op.row + row_ + block * 64);
      }
    }
    commit_stores();
  }

  // A tile whose edge lies inside the buffer: threads copy what belongs to it, 16 bytes an access where that
  // is whole.
  __device__ void copy_staged(const DeviceOp& op) {
    constexpr int kChunkCols = 16 / Shape::kElement;
    constexpr int kRowChunks = Shape::kCols / kChunkCols;
    for (int i = thread() % 128; i < Shape::kBlocks * 64 * kRowChunks; i += 128) {
      const int row = i / kRowChunks;
      const int chunk = i % kRowChunks;
      const int col = col_ + chunk * kChunkCols;
      if (row_ + row >= op.rows || col >= op.cols) continue;
      const unsigned char* from =
          staging_ + (row / 64 * Shape::kPanels + chunk / 8) * 8192 + swizzled(row % 64, chunk % 8);
      auto* to = reinterpret_cast<unsigned char*>(op.address) + std::int64_t{row_ + row} * op.pitch +
                 col * Shape::kElement;
      if (op.width == 16 && col + kChunkCols <= op.cols) {
        store_16(to, *reinterpret_cast<const uint4*>(from));
      } else {
        const int count = min(kChunkCols, op.cols - col) * Shape::kElement;
        for (int byte = 0; byte < count; byte += Shape::kElement) {
          if constexpr (Shape::kElement == 2) {
            *reinterpret_cast<unsigned short*>(to + byte) =
                *reinterpret_cast<const unsigned short*>(from + byte);
          } else {
            to[byte] = from[byte];
          }
        }
      }
    }
  }

  const LaunchParams& params_;
  WgmmaShared<Shape>& shared_;
  unsigned char* stages_;
  unsigned char* staging_ = nullptr;
  int lane_ = 0;
  int wave_ = 0;
  int team_ = 0;
  int row_ = 0;  // of the tile: the first row and column of this warpgroup
  int col_ = 0;
  RingPosition<Shape::kStages> ring_;
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
      arrival_init(&shared.empty[i], 4 * Shape::kTeams);  // one arrival a wave of the team
    }
    proxy_fence();
  }
  workgroup_barrier();

  DeviceOp* slots = shared.slots.get() + 2 * (threadIdx.x / kWaveLanes);
  if (threadIdx.x < 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x >= kWaveLanes) return;
    OpReader reader(params, slots);
    feed(params, reader, shared, stages);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    OpReader reader(params, slots);
    WgmmaEngine<Shape> engine(params, shared, stages);
    interpret(params, engine, reader, *shared.mailbox.get());
  }
}

}  // namespace tritax::gpu
