// Table of the kernels with attention of one dtype, for the kernels_attend_*.hip files.
#pragma once

#include <vector>

#include "backend_hip/kernels.hpp"
#include "backend_hip/tile_attend.hpp"

namespace tritax::gpu {

template <class Shape>
TileKernel attend_entry() {
  TileKernel kernel;
  kernel.traits = {Shape::dtype, Shape::kRows, Shape::kKeys, Shape::kThreads, Shape::kSharedBytes, 0, 0,
                   Shape::kDepth};
  kernel.function = reinterpret_cast<const void*>(&attend_kernel<Shape>);
  return kernel;
}

template <DType dtype>
std::vector<TileKernel> attend_kernels() {
  return {attend_entry<AttendShape<dtype, 16, 64>>(),  attend_entry<AttendShape<dtype, 64, 64>>(),
          attend_entry<AttendShape<dtype, 128, 64>>(), attend_entry<AttendShape<dtype, 16, 128>>(),
          attend_entry<AttendShape<dtype, 64, 128>>(), attend_entry<AttendShape<dtype, 128, 128>>()};
}

}  // namespace tritax::gpu
