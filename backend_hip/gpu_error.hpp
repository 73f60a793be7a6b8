// What a failure of the GPU runtime is thrown as.
#pragma once

#include "model/core/error.hpp"

namespace tritax::gpu {

// The runtime's own words, the call and the place. Mostly everything fails from then on.
class GpuRuntimeError : public UserError {
 public:
  using UserError::UserError;
};

}  // namespace tritax::gpu
