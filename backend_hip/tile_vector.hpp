// Kernels without matmul: all threads are the team, and the accumulator is spread over them in groups of 8
// elements.
#pragma once

#include "backend_hip/interpreter.hpp"

namespace tritax::gpu {

inline constexpr int kGroupCols = 8;

// Groups of 8 accumulators per thread, all of which stay in registers.
constexpr int groups_of_thread(int threads) { return threads > 512 ? 2 : threads > 256 ? 4 : 8; }

// For a workgroup with small tiles: one group per thread, so that as many workgroups are resident as its 64
// registers per thread allow.
inline constexpr int kLeanThreads = 256;
inline constexpr int kLeanResidents = 4;

// Everything that uses the accumulators is force-inlined: a call would move them to memory.
template <int max_threads, int groups>
class VectorEngine {
 public:
  // As many as the registers allow beside the accumulators.
  static constexpr int kCopiesInFlight = groups == 1 || max_threads > 512 ? 4 : max_threads > 256 ? 8 : 16;

  __device__ int thread() const { return static_cast<int>(threadIdx.x); }
  __device__ int threads() const { return static_cast<int>(blockDim.x); }
  __device__ void team_barrier() const { workgroup_barrier(); }
  __device__ void meet() const { workgroup_barrier(); }
  __device__ void join() const { workgroup_barrier(); }
  __device__ bool stamps(const DeviceOp&) const { return true; }
  __device__ void signal(const DeviceOp& op) const { raise_signal(*this, op); }
  __device__ void finish() const {}
  __device__ __forceinline__ void matmul(const DeviceOp&) const {}  // lowering gives matmul to other kernels

  __device__ __forceinline__ void accumulate(const DeviceOp& op) {
    switch (static_cast<DType>(op.dtype)) {
      case DType::fp32:
        return accumulate_as<DType::fp32>(op);
      case DType::fp16:
        return accumulate_as<DType::fp16>(op);
      case DType::bf16:
        return accumulate_as<DType::bf16>(op);
      case DType::fp8:
        return accumulate_as<DType::fp8>(op);
      case DType::fp64:
        return;  // refused by lowering
    }
  }

  // The tiles of a group, added in order; where a thread has one group of elements of each, it has several
  // loads on their way.
  __device__ __forceinline__ void accumulate_together(const DeviceOp* group, int count) {
    const DeviceOp first = group[0];
    const int words = first.rows * (first.cols / kGroupCols);
    bool alike = words <= threads();
    for (int i = 0; i < count; ++i) {
      const DeviceOp& op = group[i];
      alike = alike && op.dtype == first.dtype && op.width == 16 && op.cols % kGroupCols == 0;
    }
    if (alike && static_cast<DType>(first.dtype) == DType::bf16)
      return add_together<DType::bf16>(group, count);
    if (alike && static_cast<DType>(first.dtype) == DType::fp16)
      return add_together<DType::fp16>(group, count);
    for (int i = 0; i < count; ++i) accumulate(group[i]);
  }

  // A group of the switch: adds the sum over all GPUs, or stores to all.
  __device__ __forceinline__ void through_switch(const DeviceOp& op) {
    switch (static_cast<DType>(op.dtype)) {
      case DType::fp32:
        return through_switch_as<DType::fp32>(op);
      case DType::fp16:
        return through_switch_as<DType::fp16>(op);
      case DType::bf16:
        return through_switch_as<DType::bf16>(op);
      case DType::fp8:
      case DType::fp64:
        return;  // refused by lowering
    }
  }

  __device__ __forceinline__ void store(const DeviceOp& op) {
    switch (static_cast<DType>(op.dtype)) {
      case DType::fp32:
        return store_as<DType::fp32>(op);
      case DType::fp16:
        return store_as<DType::fp16>(op);
      case DType::bf16:
        return store_as<DType::bf16>(op);
      case DType::fp8:
        return store_as<DType::fp8>(op);
      case DType::fp64:
        return;  // refused by lowering
    }
  }

  // One log-sum-exp per row, which every group of the row keeps.
  __device__ __forceinline__ void combine(const DeviceOp& op) {
    const bool fresh = (op.bits & kFresh) != 0;
    const bool wide = op.width == 16;
    const int cols = op.cols - 1;
    const auto* base = reinterpret_cast<const unsigned char*>(op.address);
    const std::int64_t pitch = op.pitch;
    const int row_groups = (cols + kGroupCols - 1) / kGroupCols;
    const int total = row_groups * op.rows;
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
      const int index = i * threads() + thread();
      if (index >= total) continue;
      const int row = index / row_groups;
      const int col = (index - row * row_groups) * kGroupCols;
      const unsigned char* const from = base + row * pitch;
      const float score = number_at(from + cols * 4);
      float more[kGroupCols];
      load_numbers(from + col * 4, min(kGroupCols, cols - col), wide, more);
      const float before = fresh ? -__builtin_huge_valf() : scores_[i];
      const float most = fmaxf(before, score);
      const bool nothing = most == -__builtin_huge_valf();  // neither has seen a key
      const float of_before = nothing ? 0.0F : power_of_two((before - most) * kLog2E);
      const float of_more = nothing ? 0.0F : power_of_two((score - most) * kLog2E);
      const float share = nothing ? 0.0F : 1 / (of_before + of_more);
#pragma unroll
      for (int j = 0; j < kGroupCols; ++j)
        values_[i][j] = (fresh ? 0.0F : values_[i][j] * (of_before * share)) + more[j] * (of_more * share);
      scores_[i] = nothing ? most : most + log_of_two(of_before + of_more) / kLog2E;
    }
  }

  // For an accumulator of one row.
  __device__ __forceinline__ void rms_norm(const DeviceOp& op) {
    const float scale =
        inverse_root(sum_of_squares(op) / static_cast<float>(op.cols) + static_cast<float>(kNormEpsilon));
    switch (static_cast<DType>(op.dtype)) {
      case DType::fp64:
        return;  // refused by lowering
      case DType::fp32:
        return scale_as<DType::fp32>(op, scale);
      case DType::fp16:
        return scale_as<DType::fp16>(op, scale);
      case DType::bf16:
        return scale_as<DType::bf16>(op, scale);
      case DType::fp8:
        return scale_as<DType::fp8>(op, scale);
    }
  }

  __device__ __forceinline__ void atomic_add(const DeviceOp& op) {
    switch (static_cast<DType>(op.dtype)) {
      case DType::fp32:
        return atomic_add_as<DType::fp32>(op);
      case DType::fp16:
        return atomic_add_as<DType::fp16>(op);
      case DType::bf16:
        return atomic_add_as<DType::bf16>(op);
      case DType::fp8:
      case DType::fp64:
        return;  // refused by lowering
    }
  }

 private:
  static constexpr int kGroups = groups;

  __device__ static float number_at(const unsigned char* from) {
    return to_float<DType::fp32>(*reinterpret_cast<const volatile std::uint32_t*>(from));
  }
  __device__ __forceinline__ static void load_numbers(const unsigned char* from, int count, bool wide,
                                                      float (&numbers)[kGroupCols]) {
    if (wide && count == kGroupCols) {
      const uint4 low = load_16(from), high = load_16(from + 16);
      const std::uint32_t words[kGroupCols] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
      for (int j = 0; j < kGroupCols; ++j) numbers[j] = to_float<DType::fp32>(words[j]);
      return;
    }
#pragma unroll
    for (int j = 0; j < kGroupCols; ++j) numbers[j] = j < count ? number_at(from + j * 4) : 0.0F;
  }

  // The sum over all elements of the row in all threads.
  __device__ __forceinline__ float sum_of_squares(const DeviceOp& op) {
    __shared__ float sums[max_threads / kWaveLanes];
    const int total = (op.cols + kGroupCols - 1) / kGroupCols;
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
      if (i * threads() + thread() >= total) continue;
#pragma unroll
      for (int j = 0; j < kGroupCols; ++j) sum += values_[i][j] * values_[i][j];  // 0 behind the end
    }
    for (int distance = kWaveLanes / 2; distance > 0; distance /= 2) sum += lane_above(sum, distance);
    workgroup_barrier();  // the sums of an earlier row have been read
    if (thread() % kWaveLanes == 0) sums[thread() / kWaveLanes] = sum;
    workgroup_barrier();
    float all = 0;
    for (int wave = 0; wave < threads() / kWaveLanes; ++wave) all += sums[wave];
    return all;
  }

  // Multiplies by a number and by a tile of weights.
  template <DType dtype>
  __device__ __forceinline__ void scale_as(const DeviceOp& op, float scale) {
    for_each_group<dtype>(op, [&](float(&values)[kGroupCols], const unsigned char* from, int count) {
#pragma unroll
      for (int j = 0; j < kGroupCols; ++j) {
        if (j < count) values[j] *= scale * to_float<dtype>(load_element<dtype>(from + j * bytes_of(dtype)));
      }
    });
  }

  // Calls visit(values, address, count) for every group of this thread that lies in the tile; `count`
  // elements of the group belong to the tile.
  template <DType dtype, class Visit>
  __device__ __forceinline__ void for_each_group(const DeviceOp& op, Visit visit) {
    // Copied from shared memory: the accesses are opaque to the compiler, which would read the field again
    // for each group.
    const int cols = op.partial != 0 ? op.cols - 1 : op.cols;
    const std::int64_t pitch = op.pitch;
    const std::uint64_t base = op.address;
    const int row_groups = (cols + kGroupCols - 1) / kGroupCols;
    const int total = row_groups * op.rows;
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
      const int index = i * threads() + thread();
      if (index >= total) continue;
      const int row = index / row_groups;
      const int col = (index - row * row_groups) * kGroupCols;
      const std::uint64_t address =
          base + static_cast<std::uint64_t>(row * pitch) + static_cast<std::uint64_t>(col) * bytes_of(dtype);
      visit(values_[i], reinterpret_cast<unsigned char*>(address), min(kGroupCols, cols - col));
    }
  }

  template <DType dtype>
  __device__ __forceinline__ void accumulate_as(const DeviceOp& op) {
    if (bytes_of(dtype) == 2 && op.width == 16 && op.cols % kGroupCols == 0) {
      accumulate_wide<dtype>(op);
      return;
    }
    const bool fresh = (op.bits & kFresh) != 0;
    for_each_group<dtype>(op, [&](float(&values)[kGroupCols], const unsigned char* from, int count) {
#pragma unroll
      for (int j = 0; j < kGroupCols; ++j) {
        const float value =
            j < count ? to_float<dtype>(load_element<dtype>(from + j * bytes_of(dtype))) : 0.0F;
        values[j] = (fresh ? 0.0F : values[j]) + value;
      }
    });
  }

  // All loads come before the first use, so that a tile takes one latency instead of one per group.
  template <DType dtype>
  __device__ __forceinline__ void accumulate_wide(const DeviceOp& op) {
    const bool fresh = (op.bits & kFresh) != 0;
    uint4 words[kGroups];
#pragma unroll
    for (int i = 0; i < kGroups; ++i) words[i] = uint4{0, 0, 0, 0};
    const auto* base = reinterpret_cast<const unsigned char*>(op.address);
    const std::int64_t pitch = op.pitch;
    const int row_groups = op.cols / kGroupCols;
    const int total = row_groups * op.rows;
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
      const int index = i * threads() + thread();
      if (index >= total) continue;
      const int row = index / row_groups;
      words[i] = load_16(base + row * pitch + (index - row * row_groups) * 16);
    }
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
      const std::uint32_t word[4] = {words[i].x, words[i].y, words[i].z, words[i].w};
#pragma unroll
      for (int j = 0; j < kGroupCols; ++j) {
        const float value = to_float<dtype>((word[j / 2] >> (16 * (j % 2))) & 0xffffU);
        values_[i][j] = (fresh ? 0.0F : values_[i][j]) + value;
      }
    }
  }

  template <DType dtype>
  __device__ __forceinline__ void add_together(const DeviceOp* group, int count) {
    constexpr int kLoads = 8;  // of peers, on their way at once
    const int row_groups = group[0].cols / kGroupCols;
    const int total = row_groups * group[0].rows;
    if (thread() >= total) return;
    const int row = thread() / row_groups;
    const int byte = (thread() - row * row_groups) * 16;
    for (int begin = 0; begin < count; begin += kLoads) {
      uint4 words[kLoads];
#pragma unroll
      for (int i = 0; i < kLoads; ++i) {
        if (begin + i >= count) break;
        const DeviceOp& op = group[begin + i];
        words[i] = load_16(reinterpret_cast<const unsigned char*>(op.address) +
                           static_cast<std::int64_t>(row) * op.pitch + byte);
      }
#pragma unroll
      for (int i = 0; i < kLoads; ++i) {
        if (begin + i >= count) break;
        const bool fresh = (group[begin + i].bits & kFresh) != 0;
        const std::uint32_t word[4] = {words[i].x, words[i].y, words[i].z, words[i].w};
#pragma unroll
        for (int j = 0; j < kGroupCols; ++j) {
          const float value = to_float<dtype>((word[j / 2] >> (16 * (j % 2))) & 0xffffU);
          values_[0][j] = (fresh ? 0.0F : values_[0][j]) + value;
        }
      }
    }
  }

  // Groups are whole and lie at multiples of 16 bytes.
  template <DType dtype>
  __device__ __forceinline__ void through_switch_as(const DeviceOp& op) {
    constexpr int kInWord = 16 / bytes_of(dtype);  // elements
    const bool stores = static_cast<OpKind>(op.kind) == OpKind::store;
    const bool fresh = (op.bits & kFresh) != 0;
    for_each_group<dtype>(op, [&](float(&values)[kGroupCols], unsigned char* at, int) {
#pragma unroll
      for (int w = 0; w < kGroupCols / kInWord; ++w) {
        std::uint32_t word[4];
        if (stores) {
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            if constexpr (dtype == DType::fp32)
              word[i] = from_float<dtype>(values[w * kInWord + i]);
            else
              word[i] = pack_pair<dtype>(values[2 * i], values[2 * i + 1]);
          }
          store_to_all_16(at + 16 * w, {word[0], word[1], word[2], word[3]});
          continue;
        }
        const uint4 sum = load_sum_16<dtype>(at + 16 * w);
        word[0] = sum.x, word[1] = sum.y, word[2] = sum.z, word[3] = sum.w;
#pragma unroll
        for (int j = 0; j < kInWord; ++j) {
          const std::uint32_t bits = kInWord == 4 ? word[j] : (word[j / 2] >> (16 * (j % 2))) & 0xffffU;
          float& value = values[w * kInWord + j];
          value = (fresh ? 0.0F : value) + to_float<dtype>(bits);
        }
      }
    });
  }

  template <DType dtype>
  __device__ __forceinline__ void store_as(const DeviceOp& op) {
    const bool wide = op.width == 16;
    if (dtype == DType::fp32 && op.partial != 0) store_scores(op);
    for_each_group<dtype>(op, [&](float(&values)[kGroupCols], unsigned char* to, int count) {
      if constexpr (dtype == DType::fp32) {
        if (wide && count == kGroupCols) {
          const auto word = [&](int j) { return from_float<dtype>(values[j]); };
          store_16(to, {word(0), word(1), word(2), word(3)});
          store_16(to + 16, {word(4), word(5), word(6), word(7)});
          return;
        }
      }
      if constexpr (bytes_of(dtype) == 2) {
        if (wide && count == kGroupCols) {
          store_16(to, {pack_pair<dtype>(values[0], values[1]), pack_pair<dtype>(values[2], values[3]),
                        pack_pair<dtype>(values[4], values[5]), pack_pair<dtype>(values[6], values[7])});
          return;
        }
      }
#pragma unroll
      for (int j = 0; j < kGroupCols; ++j) {
        if (j < count) store_element<dtype>(to + j * bytes_of(dtype), from_float<dtype>(values[j]));
      }
    });
  }

  // Stores the last column of a partial.
  __device__ __forceinline__ void store_scores(const DeviceOp& op) {
    const int cols = op.cols - 1;
    const int row_groups = (cols + kGroupCols - 1) / kGroupCols;
#pragma unroll
    for (int i = 0; i < kGroups; ++i) {
      const int index = i * threads() + thread();
      if (index >= row_groups * op.rows || index % row_groups != 0) continue;
      const std::uint64_t row =
          op.address + static_cast<std::uint64_t>(index / row_groups) * static_cast<std::uint64_t>(op.pitch);
      store_element<DType::fp32>(reinterpret_cast<unsigned char*>(row) + cols * 4,
                                 from_float<DType::fp32>(scores_[i]));
    }
  }

  template <DType dtype>
  __device__ __forceinline__ void atomic_add_as(const DeviceOp& op) {
    for_each_group<dtype>(op, [&](float(&values)[kGroupCols], unsigned char* to, int count) {
      if constexpr (bytes_of(dtype) == 2) {
        if (op.width == 16 && count == kGroupCols) {
          atomic_add_eight<dtype>(to, values);
          return;
        }
      }
#pragma unroll
      for (int j = 0; j < kGroupCols; ++j) {
        if (j < count) atomic_add_element<dtype>(to + j * bytes_of(dtype), values[j]);
      }
    });
  }

  float values_[kGroups][kGroupCols];
  float scores_[kGroups];  // log-sum-exp of the group's row, where partials were combined
};

template <int max_threads, int groups = groups_of_thread(max_threads)>
__global__ void __launch_bounds__(max_threads, groups == 1 ? kLeanResidents : 1)
    vector_kernel(const LaunchParams params) {
  __shared__ SharedRoom<DeviceOp, 2 * max_threads / kWaveLanes> slots;
  __shared__ SharedRoom<Mailbox> mailbox;
  OpReader reader(params, slots.get() + 2 * (threadIdx.x / kWaveLanes));
  VectorEngine<max_threads, groups> engine;
  interpret(params, engine, reader, *mailbox.get());
}

}  // namespace tritax::gpu
