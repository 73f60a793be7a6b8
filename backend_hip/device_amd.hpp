// Device primitives on AMD: clocks, flags with scopes, conversions, barriers. The names are those of
// device_nvidia.hpp.
#pragma once

#include <cstdint>

#include "backend_hip/gpu_api.hpp"
#include "model/core/dtype.hpp"
#include "model/schedule/schedule.hpp"

namespace tritax::gpu {

inline constexpr int kWaveLanes = 64;
#define TRITAX_CALLED __forceinline__

// Ticks of 10 ns of a clock common to all dies of the GPU.
__device__ inline unsigned long long ticks() { return __builtin_amdgcn_s_memrealtime(); }

// Number of the compute unit that runs this workgroup: die, shader engine, shader array and unit within it,
// as the hardware counts them (HW_ID and, on gfx940 and newer, XCC_ID; LLVM, AMDGPUUsage). Disabled units
// leave gaps.
__device__ inline std::uint32_t compute_unit() {
  constexpr int kHwId = 4;
  constexpr int kXccId = 20;
  constexpr int kWholeRegister = 31 << 11;
  const std::uint32_t place = __builtin_amdgcn_s_getreg(kHwId | kWholeRegister) >> 8 & 0xff;
#if defined(__gfx90a__)
  return place;
#else
  return (__builtin_amdgcn_s_getreg(kXccId | kWholeRegister) & 0xf) << 8 | place;
#endif
}

// Cycles of the shader clock, which follows the load.
__device__ inline unsigned long long core_cycles() { return __builtin_readcyclecounter(); }

__device__ inline void wave_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "wavefront");
  __builtin_amdgcn_wave_barrier();
}

// HIP 5.2's barrier calls a device function that newer bitcode lacks, hence the builtins.
__device__ inline void workgroup_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

// A release drains the outstanding stores of the calling wave and writes dirty lines back; every wave must
// execute it before the flag is set (ROCm/iris docs/conceptual/triggered-sdma.md).
__device__ inline void release_fence(Scope scope) {
  if (scope == Scope::system) {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "");
  } else {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
  }
}

__device__ inline void acquire_fence(Scope scope) {
  if (scope == Scope::system) {
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "");
  } else {
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
  }
}

// Every wave calls these around a flag that one thread sets or polls.
__device__ inline void release_by_wave(Scope scope) { release_fence(scope); }
__device__ inline void acquire_by_wave(Scope scope) { acquire_fence(scope); }

// For all lanes of a wave together: the value of the lane `distance` before or behind, if it exists; the
// value of lane `lane`; whether a condition holds on any lane.
template <class T>
__device__ inline T lane_below(T value, int distance) {
  return __shfl_up(value, static_cast<unsigned int>(distance));
}
template <class T>
__device__ inline T lane_above(T value, int distance) {
  return __shfl_down(value, static_cast<unsigned int>(distance));
}
template <class T>
__device__ inline T of_lane(T value, int lane) {
  return __shfl(value, lane);
}
__device__ inline bool any_lane(bool holds) { return __builtin_amdgcn_ballot_w64(holds) != 0; }

// The last lane, up to this one, that any lane of the wave names; -1: none. A negative number names no lane.
__device__ inline int last_marked_lane(int named) {
  unsigned int low = named >= 0 && named < 32 ? 1U << named : 0U;
  unsigned int high = named >= 32 ? 1U << (named - 32) : 0U;
  const int lane = static_cast<int>(threadIdx.x) % kWaveLanes;
  for (int distance = 1; distance < kWaveLanes; distance *= 2) {
    low |= __shfl(low, lane ^ distance);
    high |= __shfl(high, lane ^ distance);
  }
  const unsigned long long marks =
      (static_cast<unsigned long long>(high) << 32 | low) & ~0ULL >> (kWaveLanes - 1 - lane);
  return marks == 0 ? -1 : kWaveLanes - 1 - __builtin_clzll(marks);
}

// Relaxed accesses to counters; the fences above order them.
__device__ inline std::uint32_t flag_load(const std::uint32_t* flag, Scope scope) {
  return scope == Scope::system ? __hip_atomic_load(flag, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM)
                                : __hip_atomic_load(flag, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// Polls are relaxed; a separate acquire follows once the value is reached, because an acquire invalidates
// caches.
inline constexpr bool kPollAcquires = false;
__device__ inline std::uint32_t flag_poll(const std::uint32_t* flag, Scope scope) {
  return flag_load(flag, scope);
}

__device__ inline void flag_store(std::uint32_t* flag, std::uint32_t value, Scope scope) {
  if (scope == Scope::system) {
    __hip_atomic_store(flag, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
  } else {
    __hip_atomic_store(flag, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  }
}

__device__ inline std::uint32_t flag_add(std::uint32_t* flag, std::uint32_t value, Scope scope) {
  return scope == Scope::system
             ? __hip_atomic_fetch_add(flag, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM)
             : __hip_atomic_fetch_add(flag, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

__device__ inline std::uint32_t flag_exchange(std::uint32_t* flag, std::uint32_t value, Scope scope) {
  return scope == Scope::system
             ? __hip_atomic_exchange(flag, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM)
             : __hip_atomic_exchange(flag, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

__device__ inline std::uint32_t flag_compare_and_swap(std::uint32_t* flag, std::uint32_t expected,
                                                      std::uint32_t value, Scope scope) {
  if (scope == Scope::system) {
    __hip_atomic_compare_exchange_strong(flag, &expected, value, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                         __HIP_MEMORY_SCOPE_SYSTEM);
  } else {
    __hip_atomic_compare_exchange_strong(flag, &expected, value, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                         __HIP_MEMORY_SCOPE_AGENT);
  }
  return expected;
}

using RawVec16 = std::uint32_t __attribute__((ext_vector_type(4)));

// CDNA has no such instruction; only one operation is read ahead.
__device__ inline void prefetch_to_l2(const void*) {}

// A word on its way from global memory to LDS.
class ArrivingWord {
 public:
  __device__ void begin(std::uint32_t*, const std::uint32_t* from) { word_ = *from; }
  __device__ void end(std::uint32_t* to) { *to = word_; }

 private:
  std::uint32_t word_ = 0;
};

// Loads 16 bytes, marked as streaming because tiles are used once.
__device__ inline uint4 load_16(const void* address) {
  const RawVec16 value = __builtin_nontemporal_load(static_cast<const RawVec16*>(address));
  return {value.x, value.y, value.z, value.w};
}

__device__ inline void store_16(void* address, uint4 value) {
  const RawVec16 raw = {value.x, value.y, value.z, value.w};
  __builtin_nontemporal_store(raw, static_cast<RawVec16*>(address));
}

// No switch between these GPUs adds up or stores to all: the executor refuses to make a multicast address.
template <DType dtype>
__device__ inline uint4 load_sum_16(const void*) {
  __builtin_trap();
}
__device__ inline void store_to_all_16(void*, uint4) { __builtin_trap(); }

// The hardware's functions, exact up to some units in the last place; 2^-infinity is 0.
__device__ inline float power_of_two(float exponent) { return __builtin_amdgcn_exp2f(exponent); }
__device__ inline float log_of_two(float value) { return __builtin_amdgcn_logf(value); }
__device__ inline float inverse_root(float value) { return __builtin_amdgcn_rsqf(value); }

// Converts one element between its bits and fp32, with rounding to nearest even. fp8 is the e4m3 form of the
// GPU's matrix cores: FNUZ on gfx942, OCP on gfx950.
template <DType dtype>
__device__ inline float to_float(std::uint32_t bits) {
  if constexpr (dtype == DType::fp32) return __builtin_bit_cast(float, bits);
  if constexpr (dtype == DType::bf16) return __builtin_bit_cast(float, bits << 16);
  if constexpr (dtype == DType::fp16) {
    return static_cast<float>(__builtin_bit_cast(_Float16, static_cast<unsigned short>(bits)));
  }
#if defined(__gfx942__) || defined(__gfx950__)
  if constexpr (dtype == DType::fp8) return __builtin_amdgcn_cvt_f32_fp8(static_cast<int>(bits), 0);
#endif
  return 0;
}

template <DType dtype>
__device__ inline std::uint32_t from_float(float value) {
  const auto bits = __builtin_bit_cast(std::uint32_t, value);
  if constexpr (dtype == DType::fp32) return bits;
  if constexpr (dtype == DType::bf16) {
    if ((bits & 0x7fffffffU) > 0x7f800000U) return 0x7fc0;  // a NaN must not round to infinity
    return (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  }
  if constexpr (dtype == DType::fp16) {
    return __builtin_bit_cast(unsigned short, static_cast<_Float16>(value));
  }
#if defined(__gfx942__) || defined(__gfx950__)
  if constexpr (dtype == DType::fp8) {
    return static_cast<std::uint32_t>(__builtin_amdgcn_cvt_pk_fp8_f32(value, value, 0, false)) & 0xffU;
  }
#endif
  return 0;
}

template <DType dtype>
__device__ inline std::uint32_t pack_pair(float low, float high) {
  return from_float<dtype>(low) | (from_float<dtype>(high) << (8 * bytes_of(dtype)));
}

// Adds to one 16-bit element through the word that holds it; if this thread must retry, another thread has
// succeeded. Not inlined, because unrolled over a tile it would push the accumulators out of registers.
template <DType dtype>
__device__ __attribute__((noinline)) void add_to_half_word(std::uint32_t* word, unsigned shift, float value) {
  std::uint32_t before = flag_load(word, Scope::system);
  while (true) {
    const float sum = to_float<dtype>((before >> shift) & 0xffffU) + value;
    const std::uint32_t after = (before & ~(0xffffU << shift)) | (from_float<dtype>(sum) << shift);
    const std::uint32_t seen = flag_compare_and_swap(word, before, after, Scope::system);
    if (seen == before) return;
    before = seen;
  }
}

__device__ __attribute__((noinline)) inline void add_to_float(float* address, float value) {
  __hip_atomic_fetch_add(address, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}

__device__ __attribute__((noinline)) inline void add_to_double(void* address, double value) {
  __hip_atomic_fetch_add(static_cast<double*>(address), value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}

// Relaxed addition at system scope.
template <DType dtype>
__device__ inline void atomic_add_element(void* address, float value) {
  static_assert(dtype != DType::fp8, "GPUs have no atomic addition of fp8 values");
  if constexpr (dtype == DType::fp32) {
    add_to_float(static_cast<float*>(address), value);
  } else {
    const auto raw = reinterpret_cast<std::uintptr_t>(address);
    add_to_half_word<dtype>(reinterpret_cast<std::uint32_t*>(raw & ~std::uintptr_t{3}),
                            (raw & 2U) != 0 ? 16 : 0, value);
  }
}

// Relaxed additions of eight neighbouring 16-bit elements at system scope; `address` is a multiple of 16.
template <DType dtype>
__device__ inline void atomic_add_eight(void* address, const float (&values)[8]) {
#pragma unroll
  for (int i = 0; i < 8; ++i)
    atomic_add_element<dtype>(static_cast<unsigned char*>(address) + 2 * i, values[i]);
}

}  // namespace tritax::gpu
