// The exception for failures of the GPU runtime.
#pragma once

#include "model/core/error.hpp"

namespace tritax::gpu {

// Has the runtime's message, the call and the place. After it, most further calls fail.
class GpuRuntimeError : public UserError {
 public:
  using UserError::UserError;
};

}  // namespace tritax::gpu
