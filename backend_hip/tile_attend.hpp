// Kernels with attention: a tile of queries goes through blocks of keys and values (FlashAttention-2,
// arXiv:2307.08691, algorithm 1).
//
// A workgroup is four waves (eight for 128 rows where tiles are copied asynchronously), all of them the team.
// With 64 or 128 rows of queries the waves share the rows. With 16 rows, the decode of one token, the waves
// share the keys of every block, and their results are merged when the operation ends. For every row a wave
// keeps the undivided weighted sum of the values, the largest score so far and the sum of the weights; scores
// are kept as powers of two.
//
// Where the hardware copies asynchronously, the next keys and values arrive in a second stage while the waves
// compute.
#pragma once

#include "backend_hip/interpreter.hpp"

#if defined(TRITAX_GPU_NVIDIA)
#include "backend_hip/attend_fragments_nvidia.hpp"
#else
#include "backend_hip/attend_fragments_amd.hpp"
#endif

namespace tritax::gpu {

template <DType dtype_, int rows_, int depth_>
struct AttendShape {
  static constexpr DType dtype = dtype_;
  static constexpr int kRows = rows_;
  static constexpr int kDepth = depth_;  // columns of a head, at most
  static constexpr int kWaves = rows_ == 128 && kAsyncTiles ? 8 : 4;
  static constexpr int kThreads = kWaves * kWaveLanes;
  static constexpr int kKeyWaves = rows_ == 16 ? kWaves : 1;  // waves that share the keys of a block
  static constexpr int kRowBlocks = rows_ / 16 / (kWaves / kKeyWaves);
  static constexpr int kStages = kAsyncTiles ? 2 : 1;
  // Keys per block. The LDS of AMD holds no more beside 128 queries.
  static constexpr int kKeys = rows_ < 128 || kAsyncTiles ? 64 : 32;
  // Workgroups that share a compute unit; the registers must allow them.
  static constexpr int kResidents = !kAsyncTiles || kWaves == 8 ? 1 : 2;
  static constexpr int kWaveKeys = kKeys / kKeyWaves;
  static constexpr int kRowBytes = depth_ * 2;
  static constexpr int kQueryBytes = rows_ * kRowBytes;
  static constexpr int kBlockBytes = kKeys * kRowBytes;
  static constexpr int kTileBytes = kQueryBytes + 2 * kStages * kBlockBytes;
  static constexpr int kMergeBytes = kKeyWaves > 1 ? kKeyWaves * 16 * (depth_ + 2) * 4 : 0;
  static constexpr int kSharedBytes = kTileBytes > kMergeBytes ? kTileBytes : kMergeBytes;
  static constexpr int kScores = kWaveKeys / kFragmentCols;  // fragments
  static constexpr int kOuts = depth_ / kFragmentCols;
  static_assert(bytes_of(dtype_) == 2 && kRowBlocks >= 1 && kScores >= 1);
};

inline constexpr float kNoScore = -__builtin_huge_valf();

// Everything that uses the accumulators is force-inlined: a call would move them to memory.
template <class Shape>
class AttendEngine {
 public:
  static constexpr int kCopiesInFlight = 8;

  __device__ explicit AttendEngine(unsigned char* shared) : shared_(shared) {
    const int wave = static_cast<int>(threadIdx.x) / kWaveLanes;
    first_row_ = Shape::kKeyWaves > 1 ? 0 : wave * Shape::kRowBlocks * 16;
    first_key_ = Shape::kKeyWaves > 1 ? wave * Shape::kWaveKeys : 0;
    clear();
  }

  __device__ static int thread() { return static_cast<int>(threadIdx.x); }
  __device__ static int threads() { return Shape::kThreads; }
  __device__ void team_barrier() const { workgroup_barrier(); }
  __device__ void meet() const { workgroup_barrier(); }
  __device__ void join() const { workgroup_barrier(); }
  __device__ bool stamps(const DeviceOp&) const { return true; }
  __device__ void signal(const DeviceOp& op) const { raise_signal(*this, op); }
  __device__ void finish() const {}
  // Lowering refuses these operations beside attention.
  __device__ __forceinline__ void matmul(const DeviceOp&) const {}
  __device__ __forceinline__ void accumulate(const DeviceOp&) const {}
  __device__ __forceinline__ void atomic_add(const DeviceOp&) const {}

  __device__ __forceinline__ void attend(const DeviceOp& op) {
    if ((op.bits & kFresh) != 0) clear();
    const Block block(op);
    workgroup_barrier();  // the waves may still read tiles of an earlier operation
    bring(op.address, op.pitch, op.rows, Shape::kRows, block.cols, 0);
    bring_keys(op, block, 0);
    bring_values(op, block, 0);
    const float scale = kLog2E * inverse_root(static_cast<float>(block.cols));
    for (int step = 0; step < block.steps; ++step) {
      await_all_but_one();
      workgroup_barrier();
      if (Shape::kStages == 2) bring_keys(op, block, step + 1);
      float scores[Shape::kRowBlocks][Shape::kScores][4] = {};
      multiply_scores<Shape::dtype, Shape::kRowBytes>(scores, place(0), first_row_, keys_place(step),
                                                      first_key_);
      await_all_but_one();
      workgroup_barrier();
      if (Shape::kStages == 2)
        bring_values(op, block, step + 1);
      else
        bring_keys(op, block, step + 1);
      if (!block.is_seen_whole(step)) hide(block, step, scores);
      weigh(scores, scale);
      multiply_values<Shape::dtype, Shape::kRowBytes>(out_, scores, values_place(step), first_key_);
      if (Shape::kStages == 1) {
        workgroup_barrier();
        bring_values(op, block, step + 1);
      }
    }
    if (Shape::kKeyWaves > 1) gather_waves();
  }

  // A partial is merged as one key: its log-sum-exp is the score, its values are the values of the key.
  __device__ __forceinline__ void combine(const DeviceOp& op) {
    if ((op.bits & kFresh) != 0) clear();
    if (!owns_rows()) return;
    const int cols = op.cols - 1;
    const int rows = op.rows;
    const auto* base = reinterpret_cast<const unsigned char*>(op.address);
    const std::int64_t pitch = op.pitch;
#pragma unroll
    for (int block = 0; block < Shape::kRowBlocks; ++block) {
#pragma unroll
      for (int of = 0; of < kLaneRows; ++of) {
        const int row = first_row_ + block * 16 + fragment_row(of * 2);
        if (row >= rows) continue;
        const unsigned char* from = base + row * pitch;
        const float score = number_at(from + cols * 4) * kLog2E;
        const float before = rescale(block, of, score);
        const float weight = score == kNoScore ? 0.0F : power_of_two(score - before);
        if (fragment_col(0) == 0) sum_[block][of] += weight;
#pragma unroll
        for (int c = 0; c < Shape::kOuts; ++c) {
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            const int col = c * kFragmentCols + fragment_col(e);
            if (lane_row(e) != of || col >= cols) continue;
            out_[block][c][e] += weight * number_at(from + col * 4);
          }
        }
      }
    }
  }

  __device__ __forceinline__ void store(const DeviceOp& op) {
    if (!owns_rows()) return;
    if (static_cast<DType>(op.dtype) == DType::fp32)
      store_as<DType::fp32>(op);
    else
      store_as<Shape::dtype>(op);
  }

 private:
  // The keys of an operation: only keys that some row of the operation sees.
  struct Block {
    int cols;
    int begin;  // rows of K
    int end;
    int steps;
    int limit;  // the first row of K that the first rows do not see; 0: they see all
    int group;

    __device__ explicit Block(const DeviceOp& op)
        : cols(op.cols), begin(op.k_begin), end(op.k_end), limit(op.value), group(op.group) {
      if (limit > 0) end = min(end, limit + (op.rows - 1) / group);
      steps = end > begin ? (end - begin + Shape::kKeys - 1) / Shape::kKeys : 0;
    }
    // Whether every row sees every key of the step.
    __device__ bool is_seen_whole(int step) const {
      const int last = begin + (step + 1) * Shape::kKeys;
      return last <= end && (limit == 0 || last <= limit);
    }
    __device__ int seen_of_row(int row) const { return limit == 0 ? end : min(end, limit + row / group); }
  };

  __device__ static float number_at(const unsigned char* from) {
    return to_float<DType::fp32>(*reinterpret_cast<const volatile std::uint32_t*>(from));
  }
  __device__ bool owns_rows() const { return Shape::kKeyWaves == 1 || first_key_ == 0; }

  __device__ TilePlace place(int offset) const { return tile_place(shared_ + offset); }
  __device__ TilePlace keys_place(int step) const {
    return place(Shape::kQueryBytes + step % Shape::kStages * 2 * Shape::kBlockBytes);
  }
  __device__ TilePlace values_place(int step) const {
    return place(Shape::kQueryBytes + (step % Shape::kStages * 2 + 1) * Shape::kBlockBytes);
  }

  // Copies rows to shared memory, with zeros behind the last row and the last column.
  __device__ __forceinline__ void bring(std::uint64_t address, std::int32_t pitch, int rows, int all_rows,
                                        int cols, int offset) const {
    constexpr int kChunks = Shape::kRowBytes / 16;
    const auto* base = reinterpret_cast<const unsigned char*>(address);
    const int col_chunks = cols / 8;
    for (int i = thread(); i < all_rows * kChunks; i += Shape::kThreads) {
      const int row = i / kChunks;
      const int chunk = i % kChunks;
      const bool wanted = row < rows && chunk < col_chunks;
      begin_chunk(chunk_place<Shape::kRowBytes>(place(offset), row, chunk),
                  wanted ? base + std::int64_t{pitch} * row + chunk * 16 : base, wanted);
    }
  }
  __device__ __forceinline__ void bring_block(std::uint64_t address, std::int32_t pitch, const Block& block,
                                              int step, int offset) const {
    if (step < block.steps) {
      const int from = step * Shape::kKeys;
      bring(address + static_cast<std::uint64_t>(std::int64_t{pitch} * from), pitch,
            block.end - block.begin - from, Shape::kKeys, block.cols, offset);
    }
    end_group();  // an empty group too, because waits count groups
  }
  __device__ __forceinline__ void bring_keys(const DeviceOp& op, const Block& block, int step) const {
    bring_block(op.source, op.source_pitch, block, step,
                Shape::kQueryBytes + step % Shape::kStages * 2 * Shape::kBlockBytes);
  }
  __device__ __forceinline__ void bring_values(const DeviceOp& op, const Block& block, int step) const {
    bring_block(op.values, op.values_pitch, block, step,
                Shape::kQueryBytes + (step % Shape::kStages * 2 + 1) * Shape::kBlockBytes);
  }

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int block = 0; block < Shape::kRowBlocks; ++block) {
#pragma unroll
      for (int of = 0; of < kLaneRows; ++of) {
        most_[block][of] = kNoScore;
        sum_[block][of] = 0;
      }
#pragma unroll
      for (int c = 0; c < Shape::kOuts; ++c) {
#pragma unroll
        for (int e = 0; e < 4; ++e) out_[block][c][e] = 0;
      }
    }
  }

  __device__ __forceinline__ void hide(const Block& block, int step,
                                       float (&scores)[Shape::kRowBlocks][Shape::kScores][4]) const {
#pragma unroll
    for (int b = 0; b < Shape::kRowBlocks; ++b) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int seen = block.seen_of_row(first_row_ + b * 16 + fragment_row(e));
        const int key = block.begin + step * Shape::kKeys + first_key_ + fragment_col(e);
#pragma unroll
        for (int j = 0; j < Shape::kScores; ++j)
          if (key + j * kFragmentCols >= seen) scores[b][j][e] = kNoScore;
      }
    }
  }

  // Takes a larger largest score into account; returns the base of the weights from now on.
  __device__ __forceinline__ float rescale(int block, int of, float score) {
    const float most = fmaxf(most_[block][of], score);
    const float base = most == kNoScore ? 0.0F : most;
    const float factor = power_of_two(most_[block][of] - base);
    most_[block][of] = most;
    sum_[block][of] *= factor;
#pragma unroll
    for (int c = 0; c < Shape::kOuts; ++c) {
#pragma unroll
      for (int e = 0; e < 4; ++e)
        if (lane_row(e) == of) out_[block][c][e] *= factor;
    }
    return base;
  }

  // Turns scores into weights.
  __device__ __forceinline__ void weigh(float (&scores)[Shape::kRowBlocks][Shape::kScores][4], float scale) {
#pragma unroll
    for (int block = 0; block < Shape::kRowBlocks; ++block) {
#pragma unroll
      for (int of = 0; of < kLaneRows; ++of) {
        float most = kNoScore;
#pragma unroll
        for (int j = 0; j < Shape::kScores; ++j) {
#pragma unroll
          for (int e = 0; e < 4; ++e)
            if (lane_row(e) == of) most = fmaxf(most, scores[block][j][e]);
        }
        const float base = rescale(block, of, row_max(most) * scale);
        float sum = 0;
#pragma unroll
        for (int j = 0; j < Shape::kScores; ++j) {
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            if (lane_row(e) != of) continue;
            const float weight = power_of_two(fmaf(scores[block][j][e], scale, -base));
            scores[block][j][e] = weight;
            sum += weight;
          }
        }
        sum_[block][of] += sum;
      }
    }
  }

  // Merges the results of the waves over their keys; the first wave then has the sum, and the others start
  // empty.
  __device__ __forceinline__ void gather_waves() {
    constexpr int kRowWords = Shape::kDepth + 2;
    auto* const words = reinterpret_cast<float*>(shared_);
    const int wave = thread() / kWaveLanes;
    float* const own = words + wave * 16 * kRowWords;
    float sums[kLaneRows];
#pragma unroll
    for (int of = 0; of < kLaneRows; ++of) sums[of] = row_sum(sum_[0][of]);
    workgroup_barrier();  // the last block is still being read
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      float* const row = own + fragment_row(e) * kRowWords;
#pragma unroll
      for (int c = 0; c < Shape::kOuts; ++c) row[c * kFragmentCols + fragment_col(e)] = out_[0][c][e];
      if (fragment_col(e) != 0) continue;
      row[Shape::kDepth] = most_[0][lane_row(e)];
      row[Shape::kDepth + 1] = sums[lane_row(e)];
    }
    workgroup_barrier();
    if (wave > 0) {
      clear();
      return;
    }
    for (int other = 1; other < Shape::kKeyWaves; ++other) {
      const float* const theirs = words + other * 16 * kRowWords;
#pragma unroll
      for (int of = 0; of < kLaneRows; ++of) {
        const float* const row = theirs + fragment_row(of * 2) * kRowWords;
        const float score = row[Shape::kDepth];
        const float base = rescale(0, of, score);
        const float factor = power_of_two(score - base);
        if (fragment_col(0) == 0) sum_[0][of] += factor * row[Shape::kDepth + 1];
#pragma unroll
        for (int c = 0; c < Shape::kOuts; ++c) {
#pragma unroll
          for (int e = 0; e < 4; ++e)
            if (lane_row(e) == of) out_[0][c][e] += factor * row[c * kFragmentCols + fragment_col(e)];
        }
      }
    }
  }

  template <DType dtype>
  __device__ __forceinline__ void store_as(const DeviceOp& op) const {
    const bool partial = op.partial != 0;
    const int cols = partial ? op.cols - 1 : op.cols;
    const int rows = op.rows;
    auto* const base = reinterpret_cast<unsigned char*>(op.address);
    const std::int64_t pitch = op.pitch;
#pragma unroll
    for (int block = 0; block < Shape::kRowBlocks; ++block) {
#pragma unroll
      for (int of = 0; of < kLaneRows; ++of) {
        const float sum = row_sum(sum_[block][of]);
        const int row = first_row_ + block * 16 + fragment_row(of * 2);
        if (row >= rows) continue;
        const float share = sum > 0 ? 1 / sum : 0.0F;
        unsigned char* const to = base + row * pitch;
#pragma unroll
        for (int c = 0; c < Shape::kOuts; ++c) {
#pragma unroll
          for (int e = 0; e < 4; e += 2) {
            if (lane_row(e) != of) continue;
            const int col = c * kFragmentCols + fragment_col(e);  // even, as `cols` is: two at once
            if (col >= cols) continue;
            const float low = out_[block][c][e] * share;
            const float high = out_[block][c][e + 1] * share;
            if constexpr (dtype == DType::fp32) {
              store_element<dtype>(to + col * 4, from_float<dtype>(low));
              store_element<dtype>(to + col * 4 + 4, from_float<dtype>(high));
            } else {
              *reinterpret_cast<std::uint32_t*>(to + col * 2) = pack_pair<dtype>(low, high);
            }
          }
        }
        if (!partial || fragment_col(0) != 0) continue;
        const float score = sum > 0 ? (most_[block][of] + log_of_two(sum)) / kLog2E : kNoScore;
        store_element<DType::fp32>(to + cols * 4, from_float<DType::fp32>(score));
      }
    }
  }

  unsigned char* shared_;
  int first_row_;  // first row of the tile that the wave owns
  int first_key_;  // first key of a block for the wave
  float out_[Shape::kRowBlocks][Shape::kOuts][4];
  float most_[Shape::kRowBlocks][kLaneRows];  // the largest score, as a power of two
  float sum_[Shape::kRowBlocks][kLaneRows];   // of the weights of this lane
};

template <class Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kResidents)
    attend_kernel(const LaunchParams params) {
  extern __shared__ __align__(128) unsigned char attend_shared[];
  __shared__ SharedRoom<DeviceOp, 2 * Shape::kWaves> slots;
  __shared__ SharedRoom<Mailbox> mailbox;
  OpReader reader(params, slots.get() + 2 * (threadIdx.x / kWaveLanes));
  AttendEngine<Shape> engine(attend_shared);
  interpret(params, engine, reader, *mailbox.get());
}

}  // namespace tritax::gpu
