// Tensor maps of NVIDIA's bulk copy engine.
#pragma once

#include "backend_hip/device_op.hpp"
#include "backend_hip/lower.hpp"

namespace tritax::gpu {

// Encodes a map with the 128-byte swizzle of the tiles in shared memory. Returns zeros on AMD, which has no
// maps. Throws UserError when the driver refuses the map.
TensorMap encode_tensor_map(const TensorMapSpec& spec);

}  // namespace tritax::gpu
