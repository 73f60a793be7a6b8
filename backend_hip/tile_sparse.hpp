// Kernels of sparse products: all threads are the team. There is no accumulator: rows are written as they are
// finished (lower_sparse.cpp ensures that they may be). For other operations, single elements wait in a
// register of the first wave.
#pragma once

#include "backend_hip/interpreter.hpp"
#include "backend_hip/sparse_rows.hpp"

namespace tritax::gpu {

// Resident threads per multiprocessor: all 2048, with 32 registers per thread.
inline constexpr int kSparseThreadsOfUnit = 2048;

class DeviceTeam {
 public:
  static constexpr int kLanes = kWaveLanes;
  __device__ int thread() const { return static_cast<int>(threadIdx.x); }
  __device__ int threads() const { return static_cast<int>(blockDim.x); }
  __device__ void barrier() const { workgroup_barrier(); }
  template <class T>
  __device__ T below(T value, int distance) const {
    return lane_below(value, distance);
  }
  template <class T>
  __device__ T above(T value, int distance) const {
    return lane_above(value, distance);
  }
  template <class T>
  __device__ T from(T value, int lane) const {
    return of_lane(value, lane);
  }
  __device__ int last_mark(int lane) const { return last_marked_lane(lane); }
  __device__ bool any(bool holds) const { return any_lane(holds); }
  template <DType dtype>
  __device__ float element(const unsigned char* address) const {
    return to_float<dtype>(load_element<dtype>(address));
  }
  __device__ void store(float* y, float value) const { *y = value; }
  __device__ void add(float* y, float value) const { atomic_add_element<DType::fp32>(y, value); }
  __device__ std::int32_t* row_carry() const { return numbers(); }
  __device__ float* sum_carry() const { return reinterpret_cast<float*>(numbers() + kMostWaves); }
  __device__ std::int32_t* room() const { return numbers() + 2 * kMostWaves; }

 private:
  static constexpr int kMostWaves = kSparseCarryBytes / 8;
  __device__ static std::int32_t* numbers() {
    extern __shared__ __attribute__((aligned(16))) unsigned char sparse_room[];
    return reinterpret_cast<std::int32_t*>(sparse_room);
  }
};

// Called, not inlined, where calls are cheap for the vendor, so that the state of the interpreter between two
// operations does not take registers from the loops. For the same reason, groups of several waves are
// separate from groups of one wave.
template <DType dtype, LaneSharing sharing, bool wide = false>
__device__ TRITAX_CALLED void sparse_rows_of(const DeviceOp& op) {
  DeviceTeam team;
  const SparseWork work{reinterpret_cast<const std::int32_t*>(op.offsets),
                        reinterpret_cast<const std::int32_t*>(op.columns),
                        reinterpret_cast<const unsigned char*>(op.source),
                        reinterpret_cast<const unsigned char*>(op.values),
                        reinterpret_cast<unsigned char*>(op.address),
                        op.values_pitch,
                        op.pitch,
                        op.rows,
                        op.k_begin,
                        op.k_end,
                        op.partial};
  if constexpr (sharing == LaneSharing::group) {
    SparseRows<DeviceTeam, dtype> rows(team, work);
    if constexpr (wide) {
      rows.by_wide_group(op.group);
    } else {
      rows.by_group(op.group);
    }
  } else {
    sparse_rows<DeviceTeam, dtype>(team, work, sharing, op.group, op.rows <= op.row);
  }
}

class SparseEngine {
 public:
  static constexpr int kCopiesInFlight = 4;

  __device__ int thread() const { return static_cast<int>(threadIdx.x); }
  __device__ int threads() const { return static_cast<int>(blockDim.x); }
  __device__ void team_barrier() const { workgroup_barrier(); }
  __device__ void meet() const { workgroup_barrier(); }
  __device__ void join() const { workgroup_barrier(); }
  __device__ bool stamps(const DeviceOp&) const { return true; }
  __device__ void signal(const DeviceOp& op) const { raise_signal(*this, op); }
  // The last lane has finished, not only the lane that records the time.
  __device__ void finish() const { workgroup_barrier(); }
  __device__ void matmul(const DeviceOp&) const {}  // lowering gives matmul to other kernels

  // One element. Every lane of the first wave loads it, which costs no more than one lane.
  __device__ void accumulate(const DeviceOp& op) {
    if (thread() >= kWaveLanes) return;
    const float more = to_float<DType::fp32>(load_element<DType::fp32>(reinterpret_cast<void*>(op.address)));
    value_ = ((op.bits & kFresh) != 0 ? 0.0F : value_) + more;
  }

  // The loads behind it, each of which waits for the one before: no bit of the loaded value changes the
  // address, because op.partial is 0 here, but the compiler does not know this.
  __device__ void search(const LaunchParams& params, const DeviceOp& op) {
    if (op.skip == 0) return;
    if (thread() < kWaveLanes) {
      const std::int32_t count = op.skip;
      const auto mask = static_cast<std::uint32_t>(op.partial);
      const auto* const base = reinterpret_cast<const unsigned char*>(op.address);
      const std::int32_t own = thread() < count ? params.probes[op.row + thread()] : 0;
      for (int i = 0; i < count; ++i) {
        const std::uint32_t nothing = from_float<DType::fp32>(value_) & mask;
        value_ = to_float<DType::fp32>(load_element<DType::fp32>(base + of_lane(own, i) + nothing));
      }
    }
    workgroup_barrier();
  }

  __device__ void store(const DeviceOp& op) const {
    if (thread() == 0)
      store_element<DType::fp32>(reinterpret_cast<void*>(op.address), from_float<DType::fp32>(value_));
  }
  __device__ void atomic_add(const DeviceOp& op) const {
    if (thread() == 0) atomic_add_element<DType::fp32>(reinterpret_cast<void*>(op.address), value_);
  }

  __device__ __forceinline__ void sparse_product(const DeviceOp& op) {
    switch (static_cast<DType>(op.dtype)) {
      case DType::fp32:
        return product_as<DType::fp32>(op);
      case DType::fp16:
        return product_as<DType::fp16>(op);
      case DType::bf16:
        return product_as<DType::bf16>(op);
      case DType::fp8:
        return product_as<DType::fp8>(op);
      case DType::fp64:
        return;  // refused by lowering
    }
  }

 private:
  template <DType dtype>
  __device__ __forceinline__ void product_as(const DeviceOp& op) {
    switch (static_cast<LaneSharing>(op.value)) {
      case LaneSharing::row:
        return sparse_rows_of<dtype, LaneSharing::row>(op);
      case LaneSharing::vector:
        return sparse_rows_of<dtype, LaneSharing::vector>(op);
      case LaneSharing::group:
        if (op.group > kWaveLanes) return sparse_rows_of<dtype, LaneSharing::group, true>(op);
        return sparse_rows_of<dtype, LaneSharing::group>(op);
      case LaneSharing::even:
        return sparse_rows_of<dtype, LaneSharing::even>(op);
    }
  }

  float value_ = 0;
};

template <int max_threads>
__global__ void __launch_bounds__(max_threads, kSparseThreadsOfUnit / max_threads)
    sparse_kernel(const LaunchParams params) {
  __shared__ SharedRoom<DeviceOp, 2 * max_threads / kWaveLanes> slots;
  __shared__ SharedRoom<Mailbox> mailbox;
  OpReader reader(params, slots.get() + 2 * (threadIdx.x / kWaveLanes));
  SparseEngine engine;
  interpret(params, engine, reader, *mailbox.get());
}

}  // namespace tritax::gpu
