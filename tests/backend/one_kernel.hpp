// What the tests of lowering share: devices with and without a copy engine, and a schedule of one kernel.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "backend_hip/lower.hpp"
#include "model/core/error.hpp"
#include "model/schedule/builder.hpp"

namespace tritax::gpu {

inline DeviceTraits device_with_copy_engine() {
  DeviceTraits device;
  device.name = "test device";
  device.tensor_maps = true;
  device.fp8_b_transposed = true;
  for (const DType dtype : {DType::bf16, DType::fp8}) {
    device.tiles.push_back({dtype, 128, 256, 384, 200000, 128 / bytes_of(dtype), 64});
    device.tiles.push_back({dtype, 128, 128, 384, 200000, 128 / bytes_of(dtype), 64});
  }
  device.tiles.push_back({DType::fp64, 128, 128, 256, 150000, 0, 0});
  for (const std::int32_t queries : {16, 128})
    device.tiles.push_back({DType::bf16, queries, 64, 128, 100000, 0, 0, 128});
  return device;
}

inline DeviceTraits plain_device() {
  DeviceTraits device = device_with_copy_engine();
  device.tensor_maps = false;
  device.fp8_b_transposed = false;
  return device;
}

// As rank 0 sees them.
constexpr std::uint64_t kHeapOfRank0 = 0x10000000;
constexpr std::uint64_t kHeapOfRank1 = 0x90000000;
// Behind which both are.
constexpr std::uint64_t kMulticast = 0x200000000;

// Two ranks, of which rank 0 has a kernel with 128×128 tiles, for C = A·B of 256×256×256; a test says which
// operations its one workgroup has.
struct OneKernel {
  ScheduleBuilder builder{"test", 2};
  DType dtype;
  std::int16_t a;
  std::int16_t b;
  std::int16_t c;
  std::int16_t flag;
  std::int32_t kernel;

  explicit OneKernel(DType dtype_ = DType::bf16) : dtype(dtype_) {
    a = builder.buffer({"A", dtype, 256, 256, 128, 64});
    b = builder.buffer({"B", dtype, 256, 256, 64, 128});
    c = builder.buffer({"C", dtype, 256, 256, 128, 128});
    flag = builder.flags("ready", 4);
    Kernel k;
    k.name = "gemm";
    k.tile = {128, 128, 128 / bytes_of(dtype), 8, Pipeline::overlapped};
    kernel = builder.kernel(std::move(k));
    builder.workgroup(kernel);
    builder.launch(0, kernel);
  }

  RankProgram lowered(const DeviceTraits& device, int rank = 0, std::uint64_t multicast = 0) {
    schedule = builder.finish();
    const HeapLayout heap = lay_out_heap(schedule, device);
    return lower(schedule, heap, device, rank, {kHeapOfRank0, kHeapOfRank1}, multicast);
  }

  std::string refusal(const DeviceTraits& device, std::uint64_t multicast = 0) {
    try {
      lowered(device, 0, multicast);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }

  Schedule schedule;
};

constexpr Rect kTile{0, 0, 128, 128};

inline bool has(const DeviceOp& op, OpBits bit) { return (op.bits & bit) != 0; }

}  // namespace tritax::gpu
