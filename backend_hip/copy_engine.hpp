// The bulk copy engine of sm_90, the barriers that count its arrivals, and the matrix unit's fences (PTX ISA,
// "Data Movement and Conversion Instructions", "mbarrier", "wgmma").
#pragma once

#include "backend_hip/interpreter.hpp"

namespace tritax::gpu {

__device__ inline std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ inline uint4 load_shared_16(std::uint32_t address) {
  uint4 word;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(word.x), "=r"(word.y), "=r"(word.z), "=r"(word.w)
               : "r"(address)
               : "memory");
  return word;
}

__device__ inline void arrival_init(std::uint64_t* barrier, std::uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count)
               : "memory");
}

__device__ inline void arrive(std::uint64_t* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

__device__ inline void arrive_and_expect(std::uint64_t* barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(bytes)
               : "memory");
}

__device__ inline bool arrived(std::uint64_t* barrier, std::uint32_t phase) {
  std::uint32_t done;
  asm volatile(
      "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}\n"
      : "=r"(done)
      : "r"(shared_address(barrier)), "r"(phase)
      : "memory");
  return done != 0;
}

// Tiles always arrive unless the hardware is broken; the wait is bounded even so. Half of a workgroup cannot
// leave alone, so the kernel traps after it has recorded the reason.
__device__ inline void await_arrival_slowly(std::uint64_t* barrier, std::uint32_t phase,
                                            const LaunchParams& params, std::int32_t number) {
  const unsigned long long begin = ticks();
  while (!arrived(barrier, phase)) {
    // The feeding wave may legitimately wait as long as the team waits for a flag; hence twice the bound.
    if (ticks() - begin > 2 * params.spin_limit_ticks) {
      raise_failure(params, number, kTileTimeout, 0);
      __trap();
    }
  }
}

__device__ inline void await_arrival(std::uint64_t* barrier, std::uint32_t phase, const LaunchParams& params,
                                     std::int32_t number) {
  if (!arrived(barrier, phase)) await_arrival_slowly(barrier, phase, params, number);
}

__device__ inline void load_box(void* to, const TensorMap* map, std::int32_t col, std::int32_t row,
                                std::uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
      "[%4];" ::"r"(shared_address(to)),
      "l"(map), "r"(col), "r"(row), "r"(shared_address(barrier))
      : "memory");
}

__device__ inline void store_box(const void* from, const TensorMap* map, std::int32_t col, std::int32_t row) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map),
               "r"(col), "r"(row), "r"(shared_address(from))
               : "memory");
}

__device__ inline void commit_stores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
__device__ inline void await_stores_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
template <int pending>
__device__ inline void await_stores_but() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(pending) : "memory");
}

// Waits until at most `pending` of the calling thread's latest groups of stores are incomplete. A count above
// eight is treated as eight, which is stricter.
__device__ inline void await_stores_but(int pending) {
  switch (pending) {
    case 0:
      return await_stores_but<0>();
    case 1:
      return await_stores_but<1>();
    case 2:
      return await_stores_but<2>();
    case 3:
      return await_stores_but<3>();
    case 4:
      return await_stores_but<4>();
    case 5:
      return await_stores_but<5>();
    case 6:
      return await_stores_but<6>();
    case 7:
      return await_stores_but<7>();
    default:
      return await_stores_but<8>();
  }
}

__device__ inline void await_stores_done() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

// Orders accesses of threads and accesses of the copy engine or the matrix unit to the same memory.
__device__ inline void proxy_fence() { asm volatile("fence.proxy.async;" ::: "memory"); }

__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int pending>
__device__ inline void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}

// Stores four 8×8 matrices of 16-bit elements from the registers of a wave to shared memory.
__device__ inline void store_matrices(std::uint32_t to, std::uint32_t a, std::uint32_t b, std::uint32_t c,
                                      std::uint32_t d) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(a), "r"(b),
               "r"(c), "r"(d)
               : "memory");
}

}  // namespace tritax::gpu
