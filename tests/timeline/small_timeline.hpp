// A schedule of two ranks small enough to add up by hand, and timelines of it.
#pragma once

#include "model/schedule/builder.hpp"
#include "model/timeline/timeline.hpp"

namespace tritax::test {

inline constexpr Rect kTile{4, 8, 4, 4};  // tile [1,2] of C

// A kernel a rank, one workgroup each: wait (rank 1 only), matmul, store to both ranks, signal.
inline Schedule tile_to_both() {
  ScheduleBuilder b("tile to both", 2);
  const auto a_buffer = b.buffer({"A", DType::fp16, 8, 16, 4, 4});
  const auto b_buffer = b.buffer({"B", DType::fp16, 16, 16, 4, 4});
  const auto c = b.buffer({"C", DType::fp16, 8, 16, 4, 4});
  const auto ready = b.flags("ready", 4);
  for (const int rank : {0, 1}) {
    Kernel gemm;
    gemm.name = "gemm";
    gemm.rank = rank;
    gemm.tile = {4, 4, 4, 1, Pipeline::serial};
    const auto g = b.kernel(gemm);
    b.workgroup(g);
    if (rank == 1) b.wait(ready, 3, 1, Scope::system, LockProtocol::load_store);
    b.matmul(a_buffer, b_buffer, kTile, 0, 16);
    b.store(c, kTile, rank);
    b.store(c, kTile, 1 - rank);
    b.signal(ready, 3, 1, 1 - rank, Scope::system, LockProtocol::load_store);
    b.launch(rank, g, 0);
    b.host(rank, HostOpKind::device_synchronize);
  }
  return b.finish();
}

// As a GPU reports it: both stores under way at once; rank 1 waits. Times in ns from the first begin.
inline Timeline measured_tiles() {
  Timeline timeline;
  const auto add = [&timeline](std::uint32_t kernel, std::uint32_t op, OpKind kind, double begin,
                               double end) {
    timeline.ops.push_back({{kernel, 0, op, static_cast<std::int32_t>(kernel), 7}, kind, 0, begin, end});
  };
  add(0, 0, OpKind::matmul, 0, 4000);
  add(1, 0, OpKind::wait, 500, 7600);
  add(0, 1, OpKind::store, 4100, 5000);
  add(0, 2, OpKind::store, 4200, 7000);
  add(0, 3, OpKind::signal, 7000, 7500);
  add(1, 1, OpKind::matmul, 7600, 11600);
  add(1, 2, OpKind::store, 11700, 12500);
  add(1, 3, OpKind::store, 11800, 15000);
  add(1, 4, OpKind::signal, 15000, 15700);
  timeline.kernels = {{0, 0, 0, 7500}, {1, 0, 500, 15700}};
  return timeline;
}

}  // namespace tritax::test
