// Feeder and senders of a matmul workgroup; see wgmma_shape.hpp.
#pragma once

#include "backend_hip/wgmma_shape.hpp"

namespace tritax::gpu {

// Every box of a stage has a separate lane: one thread needs about 100 cycles per box, which delays small
// tiles. Rows of A and panels of B behind the last of the tile are left out, because their results are never
// stored.
template <class Shape>
__device__ void feed_matmul(const LaunchParams& params, const DeviceOp& op, WgmmaShared<Shape>& shared,
                            unsigned char* stages, RingPosition<Shape::kStages>& ring) {
  const int boxes_of_b = Shape::dtype == DType::fp8 ? 1 : (op.cols + 63) / 64;
  const int stage_bytes =
      params.box_rows_of_a * 128 + (Shape::dtype == DType::fp8 ? Shape::kBytesB : boxes_of_b * 8192);
  const int lane = threadIdx.x;
  const bool of_a = lane == 0;
  const int panel = lane - 1;
  const TensorMap* map = params.tensor_maps + (of_a ? op.tensor_map : op.tensor_map_b);
  const int offset = of_a ? 0 : Shape::kBytesA + panel * 8192;
  const std::int32_t k_begin = op.k_begin;
  const std::int32_t fixed = of_a ? op.row : op.col + (Shape::dtype == DType::fp8 ? 0 : panel * 64);
  const bool k_first = of_a || Shape::dtype == DType::fp8;  // K runs along the rows of the tensor
  const std::int32_t number = op.number;
  const int steps = steps_of<Shape>(op);
  for (int step = 0; step < steps; ++step) {
    await_arrival(&shared.empty[ring.stage], ring.phase ^ 1, params, number);
    if (of_a) arrive_and_expect(&shared.full[ring.stage], stage_bytes);
    wave_barrier();
    const std::int32_t k = k_begin + step * Shape::kPanelCols;
    if (lane <= boxes_of_b) {
      load_box(stages + ring.stage * Shape::kStageBytes + offset, map, k_first ? k : fixed,
               k_first ? fixed : k, &shared.full[ring.stage]);
    }
    ring.advance();
  }
}

template <class Shape>
__device__ void feed(const LaunchParams& params, OpReader& reader, WgmmaShared<Shape>& shared,
                     unsigned char* stages) {
  RingPosition<Shape::kStages> ring;
  int turn = 0;
  while (!reader.done()) {
    const DeviceOp& op = reader.current();
    const auto kind = static_cast<OpKind>(op.kind);
    std::uint32_t skip = 0;
    if (joins(op)) {
      workgroup_barrier();
      proxy_fence();
    }
    if (kind == OpKind::wait || kind == OpKind::claim) {
      skip = shared.mailbox.get()->skip[turn];
      if (shared.mailbox.get()->stop[turn] != 0) return;
      turn ^= 1;
    }
    if (kind == OpKind::matmul) feed_matmul(params, op, shared, stages, ring);
    wave_barrier();
    go_on(reader, op, *shared.mailbox.get(), turn, skip);
  }
}

// Carries staged tiles away while the team continues: whole tiles through the copy engine, others by threads.
//
// Stores of a workgroup to peers can be paced. Remote stores that find their link full stay in the
// multiprocessor's request queue, and the operand loads behind them wait: on 4 H200, 8192³, a matmul beside
// unpaced stores took 131 us instead of 89. Boxes at the rate of the workgroup's share of the link leave the
// queue free.
// leave the queue free.
template <class Shape>
class WgmmaSender {
 public:
  __device__ WgmmaSender(const LaunchParams& params, WgmmaShared<Shape>& shared, unsigned char* staging)
      : params_(params), shared_(shared), staging_(staging) {}

  __device__ void run(OpReader& reader) {
    int turn = 0;
    while (!reader.done()) {
      const DeviceOp& op = reader.current();
      const auto kind = static_cast<OpKind>(op.kind);
      std::uint32_t skip = 0;
      if (joins(op)) {
        if (kind == OpKind::barrier || (op.bits & kJoin) != 0) drain();
        workgroup_barrier();
      }
      if (kind == OpKind::wait || kind == OpKind::claim) {
        skip = shared_.mailbox.get()->skip[turn];
        if (shared_.mailbox.get()->stop[turn] != 0) break;
        turn ^= 1;
      }
      if (is_sent<Shape>(op)) send(op);
      if (kind == OpKind::signal) signal(op);
      go_on(reader, op, *shared_.mailbox.get(), turn, skip);
    }
    drain();
    named_barrier(kSenderBarrier, kSendingThreads);
    if (leader()) atomicMax(&params_.span->end, ticks());
  }

 private:
  __device__ int thread() const { return static_cast<int>(threadIdx.x) - kWaveLanes; }
  __device__ bool leader() const { return thread() == 0; }

  // Waits until the calling thread's requests to the copy engine are performed; plain stores need only the
  // fence of a signal.
  __device__ void drain() const {
    if (leader()) await_stores_done();
    proxy_fence();
  }

  __device__ void send(const DeviceOp& op) {
    if ((op.bits & kStaged) == 0) {
      await_arrival(&shared_.staged, staged_phase_, params_, op.number);
      staged_phase_ ^= 1;
    }
    stamp(op, &OpStamp::begin);
    if ((op.bits & kTensor) != 0) {
      if (leader()) send_boxes(op);
    } else {
      send_rows(op);
    }
    if ((op.bits & kKeep) == 0) {
      if (leader()) await_stores_read();
      wave_barrier();
      if (threadIdx.x % kWaveLanes == 0) arrive(&shared_.sent);
    }
    if (params_.stamps != nullptr) stamp_ends(op);
  }

  // Stores by the copy engine end when they are performed, which is known, in order, at the end of their run.
  // Stores by threads end when they are issued, or, at the end of a run, when they are performed.
  __device__ void stamp_ends(const DeviceOp& op) {
    const bool boxes = (op.bits & kTensor) != 0;
    if (boxes) {
      ++stamps_due_;
    } else {
      stamp_performed(op.number - 1);
      if (op.ends_run != 0) {
        release_fence(Scope::system);
        named_barrier(kSenderBarrier, kSendingThreads);
      }
      stamp(op, &OpStamp::end);
    }
    if (boxes && op.ends_run != 0) stamp_performed(op.number);
  }

  // Stamps the ends of earlier stores by the copy engine; the latest is operation `last`.
  __device__ void stamp_performed(std::int32_t last) {
    for (; stamps_due_ > 0; --stamps_due_) {
      if (!leader()) continue;
      await_stores_but(stamps_due_ - 1);
      note(params_.stamps[last - (stamps_due_ - 1)].end);
    }
  }

  __device__ void signal(const DeviceOp& op) {
    stamp(op, &OpStamp::begin);
    if (op.relaxed != 0) {
      if (leader()) set_flag(op);
      stamp(op, &OpStamp::end);
      return;
    }
    drain();
    if ((op.bits & kTeamWrites) != 0) {
      named_barrier(kReleaseBarrier, kSendingThreads + 128 * Shape::kTeams);
    } else {
      named_barrier(kSenderBarrier, kSendingThreads);
    }
    if (leader()) {
      release_fence(static_cast<Scope>(op.scope));
      set_flag(op);
    }
    stamp(op, &OpStamp::end);
  }

  __device__ void stamp(const DeviceOp& op, Instant OpStamp::*when) const {
    if (leader() && params_.stamps != nullptr) note(params_.stamps[op.number].*when);
  }

  __device__ void send_boxes(const DeviceOp& op) {
    const std::uint32_t box_ticks = (op.bits & kRemote) != 0 ? params_.remote_box_ticks : 0;
    const TensorMap* map = params_.tensor_maps + op.tensor_map;
    for (int team = 0; team < Shape::kTeams; team += Shape::kSharers) {
      const int row = op.row + (Shape::kSplitRows ? team * Shape::kBlocks * 64 : 0);
      const int col = op.col + (Shape::kSplitRows ? 0 : team * Shape::kCols);
      for (int block = 0; block < Shape::kBlocks; ++block) {
        for (int panel = 0; panel < Shape::kPanels; ++panel) {
          pace(box_ticks);
          const int number = (team * Shape::kBlocks + block) * Shape::kPanels + panel;
          store_box(staging_ + number * 8192, map, col + panel * Shape::kPanelCols, row + block * 64);
        }
      }
    }
    commit_stores();
  }

  __device__ void pace(std::uint32_t box_ticks) {
    if (box_ticks == 0) return;
    unsigned long long now = ticks();
    while (now < next_box_) now = ticks();
    next_box_ = now + box_ticks;
  }

  // Place of 16-byte chunk `chunk` of tile row `row` in the staging area.
  __device__ const unsigned char* staged_chunk(int row, int chunk) const {
    constexpr int kTeamRows = Shape::kBlocks * 64;
    const int team = Shape::kSplitRows ? row / kTeamRows : chunk / (Shape::kPanels * 8);
    const int block = Shape::kSplitRows ? row % kTeamRows / 64 : 0;
    const int panel = chunk / 8 % Shape::kPanels;
    return staging_ + ((team * Shape::kBlocks + block) * Shape::kPanels + panel) * 8192 +
           swizzled(row % 64, chunk % 8);
  }

  // Rows that the copy engine cannot write: they begin off multiples of 16 bytes, or end off them beside
  // other data.
  __device__ void send_rows(const DeviceOp& op) const {
    if ((op.pitch & 15) == 0) {
      send_shifted(op);
      send_edges(op);
    } else {
      send_chunks(op);
    }
  }

  // Whole words of the target, each assembled from two chunks of the tile. A thread stays in its column and
  // moves down in steps of 8 rows, so that neither swizzle nor shift changes: there are only three sending
  // waves, and every instruction per word counts.
  __device__ void send_shifted(const DeviceOp& op) const {
    constexpr int kRowChunks = Shape::kN * Shape::kElement / 16;
    constexpr int kRowsAtOnce = kWaveLanes / kRowChunks;  // of a wave
    static_assert(kRowsAtOnce >= 1);
    const int begin = static_cast<int>(op.address & 15);
    const int end = begin + op.cols * Shape::kElement;
    const int lane = thread() % kWaveLanes;
    const int chunk = lane % kRowChunks;
    if (lane >= kRowsAtOnce * kRowChunks || chunk * 16 < begin || chunk * 16 + 16 > end) return;
    auto* base = reinterpret_cast<unsigned char*>(op.address - static_cast<unsigned>(begin)) + chunk * 16;
    const std::int64_t pitch = op.pitch;
    const int rows = op.rows;
    for (int first = thread() / kWaveLanes * kRowsAtOnce + lane / kRowChunks; first < 8;
         first += kSendingWaves * kRowsAtOnce) {
      std::uint32_t low = shared_address(staged_chunk(first, chunk > 0 ? chunk - 1 : 0));
      std::uint32_t high = shared_address(staged_chunk(first, chunk));
      unsigned char* to = base + first * pitch;
      for (int block = 0; block < Shape::kM; block += 64) {
#pragma unroll 2
        for (int row = 0; row < 64; row += 8) {
          if (block + row + first < rows) {
            store_16(to,
                     joined(load_shared_16(low + row * 128), load_shared_16(high + row * 128), 16 - begin));
          }
          to += 8 * pitch;
        }
        low += Shape::kPanels * 8192;
        high += Shape::kPanels * 8192;
      }
    }
  }

  // The elements of every row in words that the row does not fill, one by one.
  __device__ void send_edges(const DeviceOp& op) const {
    constexpr int kElement = Shape::kElement;
    const RowEdges edges(static_cast<int>(op.address & 15) / kElement, op.cols, 16 / kElement);
    if (edges.count() == 0) return;
    auto* base = reinterpret_cast<unsigned char*>(op.address);
    const std::int64_t pitch = op.pitch;
    const int rows = op.rows;
    const int row_step = kSendingThreads / edges.count();
    WordCursor at{thread() / edges.count(), thread() % edges.count()};
    while (at.row < rows) {
      const int byte = edges.unit(at.col) * kElement;
      store_element<Shape::dtype>(base + at.row * pitch + byte,
                                  load_element<Shape::dtype>(staged_chunk(at.row, byte / 16) + byte % 16));
      at.advance(row_step, kSendingThreads - row_step * edges.count(), edges.count());
    }
  }

  // 16 of the 32 bytes of two chunks, from byte `skipped` on, 1 to 16.
  __device__ static uint4 joined(const uint4& low, const uint4& high, int skipped) {
    std::uint32_t parts[9] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w, 0};
    if ((skipped & 16) != 0) return high;
#pragma unroll
    for (int i = 0; i < 7; ++i) parts[i] = (skipped & 8) != 0 ? parts[i < 6 ? i + 2 : 8] : parts[i];
#pragma unroll
    for (int i = 0; i < 6; ++i) parts[i] = (skipped & 4) != 0 ? parts[i + 1] : parts[i];
    const int bits = (skipped & 3) * 8;
    return {__funnelshift_r(parts[0], parts[1], bits), __funnelshift_r(parts[1], parts[2], bits),
            __funnelshift_r(parts[2], parts[3], bits), __funnelshift_r(parts[3], parts[4], bits)};
  }

  __device__ void send_chunks(const DeviceOp& op) const {
    constexpr int kChunkCols = 16 / Shape::kElement;
    constexpr int kRowChunks = Shape::kN / kChunkCols;
    const bool wide = op.width == 16;
    auto* base = reinterpret_cast<unsigned char*>(op.address);
    const std::int64_t pitch = op.pitch;
    const int cols = op.cols;
    const int chunks = op.rows * kRowChunks;
#pragma unroll 4
    for (int i = thread(); i < chunks; i += kSendingThreads) {
      const int row = i / kRowChunks;
      const int chunk = i % kRowChunks;
      const int left = cols - chunk * kChunkCols;
      if (left <= 0) continue;
      const unsigned char* from = staged_chunk(row, chunk);
      unsigned char* to = base + row * pitch + chunk * 16;
      if (wide && left >= kChunkCols) {
        store_16(to, *reinterpret_cast<const uint4*>(from));
      } else {
        send_elements(from, to, min(left, kChunkCols));
      }
    }
  }

  __device__ static void send_elements(const unsigned char* from, unsigned char* to, int count) {
    for (int i = 0; i < count; ++i) {
      store_element<Shape::dtype>(to + i * Shape::kElement,
                                  load_element<Shape::dtype>(from + i * Shape::kElement));
    }
  }

  const LaunchParams& params_;
  WgmmaShared<Shape>& shared_;
  unsigned char* staging_;
  std::uint32_t staged_phase_ = 0;
  int stamps_due_ = 0;               // stores whose end is not stamped yet
  unsigned long long next_box_ = 0;  // when the link can take another box
};

}  // namespace tritax::gpu
