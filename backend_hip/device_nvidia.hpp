// Device primitives on NVIDIA: clocks, flags with scopes, conversions, barriers. The names are those of
// device_amd.hpp.
#pragma once

#include <cstdint>

#include "backend_hip/gpu_api.hpp"
#include "model/core/dtype.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax::gpu {

inline constexpr int kWaveLanes = 32;
#define TRITAX_CALLED __noinline__

// Nanoseconds of a clock common to all SMs of the GPU.
__device__ inline unsigned long long ticks() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// Number of the multiprocessor that runs this workgroup.
__device__ inline std::uint32_t compute_unit() {
  std::uint32_t number;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(number));
  return number;
}

// Cycles of this SM's clock, which follows the load.
__device__ inline unsigned long long core_cycles() { return static_cast<unsigned long long>(clock64()); }

__device__ inline void wave_barrier() { __syncwarp(); }

// Barrier of the first `threads` threads that name the same `id`; 0 is the barrier of the whole workgroup.
__device__ inline void named_barrier(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

__device__ inline void workgroup_barrier() { __syncthreads(); }

// Orders earlier accesses before later ones in the scope. Release and acquire are the same instruction on
// NVIDIA.
__device__ inline void fence(Scope scope) {
  if (scope == Scope::system) {
    asm volatile("fence.acq_rel.sys;" ::: "memory");
  } else {
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
  }
}
__device__ inline void release_fence(Scope scope) { fence(scope); }
__device__ inline void acquire_fence(Scope scope) { fence(scope); }

// Every wave calls these around a flag that one thread sets or polls. They do nothing, because that thread's
// fence covers all accesses of the other threads before the workgroup's barrier.
__device__ inline void release_by_wave(Scope) {}
__device__ inline void acquire_by_wave(Scope) {}

// For all lanes of a wave together: the value of the lane `distance` before or behind, if it exists; the
// value of lane `lane`; whether a condition holds on any lane.
template <class T>
__device__ inline T lane_below(T value, int distance) {
  return __shfl_up_sync(0xffffffffU, value, static_cast<unsigned int>(distance));
}
template <class T>
__device__ inline T lane_above(T value, int distance) {
  return __shfl_down_sync(0xffffffffU, value, static_cast<unsigned int>(distance));
}
template <class T>
__device__ inline T of_lane(T value, int lane) {
  return __shfl_sync(0xffffffffU, value, lane);
}
__device__ inline bool any_lane(bool holds) { return __any_sync(0xffffffffU, holds ? 1 : 0) != 0; }

// The last lane, up to this one, that any lane of the wave names; -1: none. A negative number names no lane.
__device__ inline int last_marked_lane(int named) {
  const std::uint32_t marks = __reduce_or_sync(0xffffffffU, named < 0 ? 0U : 1U << named);
  const std::uint32_t up_to_this =
      0xffffffffU >> (kWaveLanes - 1 - static_cast<int>(threadIdx.x) % kWaveLanes);
  return kWaveLanes - 1 - __clz(static_cast<int>(marks & up_to_this));
}

// Relaxed accesses to counters; the fences above order them.
__device__ inline std::uint32_t flag_load(const std::uint32_t* flag, Scope scope) {
  std::uint32_t value;
  if (scope == Scope::system) {
    asm volatile("ld.relaxed.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  } else {
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  }
  return value;
}

// A load that also acquires: polling with it saves the later fence, which would cost as much as a release.
inline constexpr bool kPollAcquires = true;
__device__ inline std::uint32_t flag_poll(const std::uint32_t* flag, Scope scope) {
  std::uint32_t value;
  if (scope == Scope::system) {
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  } else {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  }
  return value;
}

__device__ inline void flag_store(std::uint32_t* flag, std::uint32_t value, Scope scope) {
  if (scope == Scope::system) {
    asm volatile("st.relaxed.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
  } else {
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
  }
}

__device__ inline std::uint32_t flag_add(std::uint32_t* flag, std::uint32_t value, Scope scope) {
  std::uint32_t before;
  if (scope == Scope::system) {
    asm volatile("atom.relaxed.sys.global.add.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(flag), "r"(value)
                 : "memory");
  } else {
    asm volatile("atom.relaxed.gpu.global.add.u32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(flag), "r"(value)
                 : "memory");
  }
  return before;
}

__device__ inline std::uint32_t flag_exchange(std::uint32_t* flag, std::uint32_t value, Scope scope) {
  std::uint32_t before;
  if (scope == Scope::system) {
    asm volatile("atom.relaxed.sys.global.exch.b32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(flag), "r"(value)
                 : "memory");
  } else {
    asm volatile("atom.relaxed.gpu.global.exch.b32 %0, [%1], %2;"
                 : "=r"(before)
                 : "l"(flag), "r"(value)
                 : "memory");
  }
  return before;
}

__device__ inline std::uint32_t flag_compare_and_swap(std::uint32_t* flag, std::uint32_t expected,
                                                      std::uint32_t value, Scope scope) {
  std::uint32_t before;
  if (scope == Scope::system) {
    asm volatile("atom.relaxed.sys.global.cas.b32 %0, [%1], %2, %3;"
                 : "=r"(before)
                 : "l"(flag), "r"(expected), "r"(value)
                 : "memory");
  } else {
    asm volatile("atom.relaxed.gpu.global.cas.b32 %0, [%1], %2, %3;"
                 : "=r"(before)
                 : "l"(flag), "r"(expected), "r"(value)
                 : "memory");
  }
  return before;
}

// Requests a line, without waiting for it.
__device__ inline void prefetch_to_l2(const void* address) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
}

// A word on its way from global to shared memory that occupies no register (PTX ISA, "cp.async").
class ArrivingWord {
 public:
  __device__ void begin(std::uint32_t* to, const std::uint32_t* from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(
                     static_cast<std::uint32_t>(__cvta_generic_to_shared(to))),
                 "l"(from)
                 : "memory");
  }
  __device__ void end(std::uint32_t*) { asm volatile("cp.async.wait_all;" ::: "memory"); }
};

// 16 bytes, past the first-level cache, because tiles are used once.
__device__ inline uint4 load_16(const void* address) {
  uint4 value;
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(address)
               : "memory");
  return value;
}

__device__ inline void store_16(void* address, uint4 value) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(value.x), "r"(value.y),
               "r"(value.z), "r"(value.w)
               : "memory");
}

// 16 bytes at a multicast address (PTX ISA, "multimem"): the sums over all GPUs, added in fp32, or a store to
// all GPUs.
template <DType dtype>
__device__ inline uint4 load_sum_16(const void* address) {
  uint4 value{};
  if constexpr (dtype == DType::bf16) {
    asm volatile("multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.bf16x2 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "l"(address)
                 : "memory");
  } else if constexpr (dtype == DType::fp16) {
    asm volatile("multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.f16x2 {%0, %1, %2, %3}, [%4];"
                 : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
                 : "l"(address)
                 : "memory");
  } else {
    static_assert(dtype == DType::fp32);
    float sums[4];
    asm volatile("multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(sums[0]), "=f"(sums[1]), "=f"(sums[2]), "=f"(sums[3])
                 : "l"(address)
                 : "memory");
    value = {__float_as_uint(sums[0]), __float_as_uint(sums[1]), __float_as_uint(sums[2]),
             __float_as_uint(sums[3])};
  }
  return value;
}
__device__ inline void store_to_all_16(void* address, uint4 value) {
  asm volatile("multimem.st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(address),
               "f"(__uint_as_float(value.x)), "f"(__uint_as_float(value.y)), "f"(__uint_as_float(value.z)),
               "f"(__uint_as_float(value.w))
               : "memory");
}

// The hardware's functions, exact up to some units in the last place; 2^-infinity is 0.
__device__ inline float power_of_two(float exponent) {
  float value;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(value) : "f"(exponent));
  return value;
}
__device__ inline float log_of_two(float value) {
  float exponent;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(exponent) : "f"(value));
  return exponent;
}
__device__ inline float inverse_root(float value) {
  float root;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(value));
  return root;
}

// Converts one element between its bits and fp32, with rounding to nearest even; fp8 (e4m3) saturates.
template <DType dtype>
__device__ inline float to_float(std::uint32_t bits) {
  if constexpr (dtype == DType::fp32) return __uint_as_float(bits);
  if constexpr (dtype == DType::bf16) return __uint_as_float(bits << 16);
  float value = 0;
  if constexpr (dtype == DType::fp16) {
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(static_cast<unsigned short>(bits)));
  }
  if constexpr (dtype == DType::fp8) {
    std::uint32_t pair;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(static_cast<unsigned short>(bits & 0xff)));
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(static_cast<unsigned short>(pair & 0xffff)));
  }
  return value;
}

// Two neighbouring elements, the lower one in the lower bits; 16-bit types fill 32 bits, fp8 16.
template <DType dtype>
__device__ inline std::uint32_t pack_pair(float low, float high) {
  static_assert(dtype != DType::fp32);
  std::uint32_t pair = 0;
  if constexpr (dtype == DType::bf16) asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  if constexpr (dtype == DType::fp16) asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  if constexpr (dtype == DType::fp8) {
    unsigned short half;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(half) : "f"(high), "f"(low));
    pair = half;
  }
  return pair;
}

template <DType dtype>
__device__ inline std::uint32_t from_float(float value) {
  if constexpr (dtype == DType::fp32)
    return __float_as_uint(value);
  else
    return pack_pair<dtype>(value, 0.0F) & (dtype == DType::fp8 ? 0xffU : 0xffffU);
}

// Relaxed additions of eight neighbouring 16-bit elements, given in pairs, at system scope; `address` is a
// multiple of 16.
template <DType dtype>
__device__ inline void atomic_add_eight(void* address, const std::uint32_t (&pairs)[4]) {
  if constexpr (dtype == DType::bf16) {
    asm volatile("red.relaxed.sys.global.v4.bf16x2.add.noftz [%0], {%1, %2, %3, %4};" ::"l"(address),
                 "r"(pairs[0]), "r"(pairs[1]), "r"(pairs[2]), "r"(pairs[3])
                 : "memory");
  } else {
    asm volatile("red.relaxed.sys.global.v4.f16x2.add.noftz [%0], {%1, %2, %3, %4};" ::"l"(address),
                 "r"(pairs[0]), "r"(pairs[1]), "r"(pairs[2]), "r"(pairs[3])
                 : "memory");
  }
}

template <DType dtype>
__device__ inline void atomic_add_eight(void* address, const float (&values)[8]) {
  const std::uint32_t pairs[4] = {
      pack_pair<dtype>(values[0], values[1]), pack_pair<dtype>(values[2], values[3]),
      pack_pair<dtype>(values[4], values[5]), pack_pair<dtype>(values[6], values[7])};
  atomic_add_eight<dtype>(address, pairs);
}

// Relaxed addition at system scope.
template <DType dtype>
__device__ inline void atomic_add_element(void* address, float value) {
  static_assert(dtype != DType::fp8, "GPUs have no atomic addition of fp8 values");
  if constexpr (dtype == DType::fp32) {
    asm volatile("red.relaxed.sys.global.add.f32 [%0], %1;" ::"l"(address), "f"(value) : "memory");
  } else if constexpr (dtype == DType::bf16) {
    asm volatile("red.relaxed.sys.global.add.noftz.bf16 [%0], %1;" ::"l"(address),
                 "h"(static_cast<unsigned short>(from_float<dtype>(value)))
                 : "memory");
  } else {
    asm volatile("red.relaxed.sys.global.add.noftz.f16 [%0], %1;" ::"l"(address),
                 "h"(static_cast<unsigned short>(from_float<dtype>(value)))
                 : "memory");
  }
}

__device__ inline void add_to_double(void* address, double value) {
  asm volatile("red.relaxed.sys.global.add.f64 [%0], %1;" ::"l"(address), "d"(value) : "memory");
}

}  // namespace tritax::gpu
