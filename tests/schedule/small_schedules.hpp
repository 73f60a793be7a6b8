// Small schedules that tests damage: two ranks, a 512×512 matrix C in tiles of 256×256.
#pragma once

#include <string>

#include "model/schedule/builder.hpp"

namespace tritax {

inline constexpr LockProtocol kPlain = LockProtocol::load_store;

struct SmallSchedule {
  ScheduleBuilder builder;
  std::int16_t a;
  std::int16_t b;
  std::int16_t c;
  std::int16_t ready;

  explicit SmallSchedule(int ranks = 2)
      : builder("small", ranks),
        a(builder.buffer({"A", DType::fp16, 512, 512, 256, 64})),
        b(builder.buffer({"B", DType::fp16, 512, 512, 64, 256})),
        c(builder.buffer({"C", DType::fp16, 512, 512, 256, 256})),
        ready(builder.flags("ready", 16)) {}

  std::int32_t kernel(const std::string& name, int rank, Placement placement = Placement::dispatch) {
    Kernel kernel;
    kernel.name = name;
    kernel.rank = rank;
    kernel.tile = {256, 256, 64, 8, Pipeline::serial};
    kernel.placement = placement;
    return builder.kernel(std::move(kernel));
  }

  static Rect tile(int i) { return {i / 2 * 256, i % 2 * 256, 256, 256}; }

  void compute(int i) { builder.matmul(a, b, tile(i), 0, 512); }
  void store(int i, int rank) { builder.store(c, tile(i), rank); }
  void send(int i, int from, int to) { builder.copy(c, tile(i), to, c, tile(i).row, tile(i).col, from); }
  void signal(int index, int rank, int value = 1, Scope scope = Scope::gpu) {
    builder.signal(ready, index, value, rank, scope, kPlain);
  }
  void wait(int index, int value = 1, Scope scope = Scope::gpu) {
    builder.wait(ready, index, value, scope, kPlain);
  }
};

// One workgroup of one kernel on rank 0 of 2, launched; `add` gives it its operations.
template <typename Add>
Schedule one_workgroup(Add add) {
  SmallSchedule s;
  const auto k = s.kernel("k", 0);
  s.builder.workgroup(k);
  add(s);
  s.builder.launch(0, k);
  return s.builder.finish();
}

// Rank 0 computes four tiles in "gemm", one a workgroup, and "scatter" copies each to rank 1 after its flag.
inline Schedule producer_consumer(bool with_signal = true, bool with_wait = true) {
  SmallSchedule s;
  const auto gemm = s.kernel("gemm", 0);
  for (int i = 0; i < 4; ++i) {
    s.builder.workgroup(gemm);
    s.compute(i);
    s.store(i, 0);
    if (with_signal) {
      s.signal(i, 0);
    }
  }
  const auto scatter = s.kernel("scatter", 0, Placement::persistent);
  for (int i = 0; i < 4; ++i) {
    s.builder.workgroup(scatter);
    if (with_wait) {
      s.wait(i);
    }
    s.send(i, 0, 1);
  }
  s.builder.launch(0, gemm, 0);
  s.builder.launch(0, scatter, 1);
  for (int rank = 0; rank < 2; ++rank) {
    s.builder.host(rank, HostOpKind::device_synchronize);
    s.builder.host(rank, HostOpKind::barrier);
  }
  return s.builder.finish();
}

// Both ranks: "gemm" computes half of the tiles, "scatter" in the same stream sends them to the other rank;
// after a host barrier "read" loads all of C.
inline Schedule bulk_synchronous() {
  SmallSchedule s;
  const auto sum = s.builder.buffer({"S", DType::fp16, 512, 512, 256, 256});
  for (int rank = 0; rank < 2; ++rank) {
    const auto gemm = s.kernel("gemm", rank);
    for (int i = 2 * rank; i < 2 * rank + 2; ++i) {
      s.builder.workgroup(gemm);
      s.compute(i);
      s.store(i, rank);
    }
    const auto scatter = s.kernel("scatter", rank);
    for (int i = 2 * rank; i < 2 * rank + 2; ++i) {
      s.builder.workgroup(scatter);
      s.send(i, rank, 1 - rank);
    }
    const auto read = s.kernel("read", rank);
    for (int i = 0; i < 4; ++i) {
      s.builder.workgroup(read);
      s.builder.load(s.c, SmallSchedule::tile(i), rank);
      s.builder.store(sum, SmallSchedule::tile(i), rank);
    }
    s.builder.host(rank, HostOpKind::barrier);
    s.builder.launch(rank, gemm);
    s.builder.launch(rank, scatter);
    s.builder.host(rank, HostOpKind::stream_synchronize);
    s.builder.host(rank, HostOpKind::barrier);
    s.builder.launch(rank, read);
    s.builder.host(rank, HostOpKind::device_synchronize);
    s.builder.host(rank, HostOpKind::barrier);
  }
  return s.builder.finish();
}

// Four workgroups add 1 to ready[0] after their tile; a fifth waits for `value` and reads all tiles.
inline Schedule counted(int value) {
  SmallSchedule s(1);
  const auto k = s.kernel("k", 0);
  for (int i = 0; i < 4; ++i) {
    s.builder.workgroup(k);
    s.compute(i);
    s.store(i, 0);
    s.signal(0, 0);
  }
  s.builder.workgroup(k);
  s.wait(0, value);
  for (int i = 0; i < 4; ++i) {
    s.builder.load(s.c, SmallSchedule::tile(i), 0);
  }
  s.builder.launch(0, k);
  return s.builder.finish();
}

}  // namespace tritax
