// Tensor maps of NVIDIA's bulk copy engine.
#pragma once

#include "backend_hip/device_op.hpp"
#include "backend_hip/lower.hpp"

namespace tritax::gpu {

// Encodes a map with the 128-byte swizzle that the tiles in shared memory use. On AMD there is none: returns
// zeros. Throws UserError when the driver refuses it.
TensorMap encode_tensor_map(const TensorMapSpec& spec);

}  // namespace tritax::gpu
