// Machines for tests: round numbers in the style of two real parts, independent of the shipped machine files,
// so that expected values can be worked out by hand.
#pragma once

#include "model/machine/machine.hpp"

namespace tritax::example {

inline MatrixRate& rate_of(Gpu& gpu, DType dtype) { return gpu.matrix[static_cast<std::size_t>(dtype)]; }

// Like an MI300X: 8 dies of 38 compute units, matrix operands through registers.
inline Machine amd_node() {
  Machine machine;
  machine.name = "amd-8";
  machine.gpus_per_node = 8;
  Gpu& gpu = machine.gpu;
  gpu.name = "MI300X";
  gpu.arch = "gfx942";
  gpu.xcds = 8;
  gpu.cus_per_xcd = 38;
  gpu.registers_per_cu = 131072;
  gpu.registers_per_thread_max = 512;
  gpu.lds_bytes_per_cu = 65536;
  gpu.lds_bytes_per_workgroup_max = 65536;
  gpu.lds_bytes_per_clk = 128;
  gpu.cu_l2_bytes_per_clk = 64;
  gpu.boost_clock_ghz = 2;
  rate_of(gpu, DType::fp32) = {256, 0.5, 1};
  rate_of(gpu, DType::fp16) = {2048, 0.5, 1};
  rate_of(gpu, DType::bf16) = {2048, 0.5, 1.25};
  rate_of(gpu, DType::fp8) = {4096, 0.5, 1};
  gpu.l2_gb_per_s = 1e4;
  gpu.hbm_gb_per_s = 5e3;
  gpu.hbm_bytes = 192e9;
  gpu.hbm_latency_ns = 400;
  gpu.cu_store_gb_per_s = 100;
  machine.host.kernel_gap_ns = 2e3;
  machine.copy_engine = {4, 50, 1500};
  machine.library.channels = 16;
  machine.library.channel_gb_per_s = 10;
  return machine;
}

// Like an H200: one die of 132 compute units, asynchronous tile copies, matrix operands straight out of LDS.
inline Machine nvidia_node() {
  Machine machine = amd_node();
  machine.name = "nvidia-8";
  Gpu& gpu = machine.gpu;
  gpu.name = "H200";
  gpu.arch = "sm_90a";
  gpu.xcds = 1;
  gpu.cus_per_xcd = 132;
  gpu.waves_per_simd = 16;
  gpu.lanes_per_wave = 32;
  gpu.registers_per_cu = 65536;
  gpu.registers_per_thread_max = 255;
  gpu.lds_bytes_per_cu = 233472;
  gpu.lds_bytes_per_workgroup_max = 232448;
  gpu.async_tile_copy = true;
  gpu.cu_l2_bytes_per_clk = 1024;  // wide, so that tests see the matrix cores
  rate_of(gpu, DType::fp16) = {4096, 1, 1};
  rate_of(gpu, DType::fp32) = {0, 1, 1};
  gpu.hbm_bytes = 141e9;
  return machine;
}

}  // namespace tritax::example
