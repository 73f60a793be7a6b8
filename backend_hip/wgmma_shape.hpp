// Shapes of the matmul kernels on sm_90a, the shared state of their waves, and their barriers.
//
// A workgroup is three warpgroups of 128 threads. The first feeds and sends, the other two compute (the
// team):
//
//   feeder (wave 0)       fills a ring of stages with operands, ahead of the team and across operations
//   senders (waves 1-3)   carry converted tiles from shared memory to their ranks and raise the flags behind
//                         them
//   team                  multiplies, converts, and does everything else
//
// All of them walk the same operation list. They meet at *joins*: waits, claims, barriers, and operations on
// memory that the workgroup accessed before.
//
//   stage    A panel kM × 128 bytes, then B as kN/64 panels of 64 k × 128 bytes (16-bit), or kN × 128 bytes
//            (fp8, from the transposed copy); all with the 128-byte swizzle that the matrix unit reads
//            without bank conflicts
//   staging  one converted tile, as panels of 64 rows × 128 bytes with the same swizzle
#pragma once

#include "backend_hip/copy_engine.hpp"
#include "backend_hip/interpreter.hpp"

namespace tritax::gpu {

template <DType dtype_, int m_, int n_>
struct WgmmaShape {
  static constexpr DType dtype = dtype_;
  static constexpr int kM = m_;
  static constexpr int kN = n_;
  static constexpr int kElement = bytes_of(dtype_);
  static constexpr int kPanelCols = 128 / kElement;  // elements of a swizzled row; the K step of a stage
  static constexpr int kTeams = 2;                   // warpgroups that compute
  static constexpr bool kSplitRows = m_ >= 128;      // else warpgroups share the rows and split the columns
  static constexpr int kBlocks = kSplitRows ? m_ / (64 * kTeams) : 1;  // 64-row blocks of a warpgroup
  static constexpr int kCols = kSplitRows ? n_ : n_ / kTeams;          // columns of a warpgroup
  static constexpr int kSharers = kCols < kPanelCols ? kPanelCols / kCols : 1;  // warpgroups of one panel
  static constexpr int kPanels = kSharers * kCols / kPanelCols;  // of these warpgroups, in the staging area
  static constexpr int kThreads = 128 * (kTeams + 1);

  static constexpr int kBytesA = m_ * 128;
  static constexpr int kBytesB = n_ * 128;
  static constexpr int kStageBytes = kBytesA + kBytesB;
  static constexpr int kStagingBytes = m_ * n_ * kElement;
  static constexpr int kSharedLimit = 227 * 1024 - 1024 - 8192;  // alignment; operations, barriers, mailbox
  static constexpr int kStagesThatFit = (kSharedLimit - kStagingBytes) / kStageBytes;
  static constexpr int kStages = kStagesThatFit < 8 ? kStagesThatFit : 8;
  static constexpr int kSharedBytes = 1024 + kStages * kStageBytes + kStagingBytes;
  static constexpr int kStoreCols = kPanelCols;  // columns of a box of the copy engine
  static constexpr int kStoreRows = 64;
  static_assert(kStages >= 2 && kPanels >= 1);
};

template <class Shape>
struct WgmmaShared {
  // For every wave: the current operation and the next.
  SharedRoom<DeviceOp, 2 * Shape::kThreads / kWaveLanes> slots;
  std::uint64_t full[Shape::kStages];   // a stage has arrived
  std::uint64_t empty[Shape::kStages];  // the team has read it
  std::uint64_t staged;                 // a converted tile lies in the staging area
  std::uint64_t sent;                   // the staged tile has been read and may be overwritten
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

inline constexpr int kSendingWaves = 3;
inline constexpr int kSendingThreads = kSendingWaves * kWaveLanes;

// Named barriers; 0 is the barrier of the whole workgroup, for joins.
inline constexpr int kTeamBarrier = 1;
inline constexpr int kSenderBarrier = 2;
inline constexpr int kReleaseBarrier = 3;  // team and senders, before a signal that covers stores of the team

// Address of 16-byte chunk `chunk` of a row in a swizzled panel of 64 rows × 128 bytes.
__device__ inline std::uint32_t swizzled(int row, int chunk) {
  return row * 128 + ((chunk ^ (row % 8)) * 16);
}

template <class Shape>
__device__ inline int steps_of(const DeviceOp& op) {
  return (op.k_end - op.k_begin + Shape::kPanelCols - 1) / Shape::kPanelCols;
}

// Whether all waves of the workgroup meet at this operation.
__device__ inline bool joins(const DeviceOp& op) {
  const auto kind = static_cast<OpKind>(op.kind);
  return kind == OpKind::wait || kind == OpKind::claim || kind == OpKind::barrier || (op.bits & kJoin) != 0;
}

// Whether the senders carry this operation out.
template <class Shape>
__device__ inline bool is_sent(const DeviceOp& op) {
  return static_cast<OpKind>(op.kind) == OpKind::store && static_cast<DType>(op.dtype) == Shape::dtype;
}

}  // namespace tritax::gpu
