#include "cli/gpu.hpp"

#include <fmt/format.h>

#include "model/core/error.hpp"

namespace tritax::cli {

void refuse_without_gpu(std::string_view command) {
  throw UserError(fmt::format(
      "{}: this build has no GPU backend; build with 'cmake -S . -B build -DTRITAX_GPU=amd' (ROCm 6 or "
      "newer) or '-DTRITAX_GPU=nvidia' (CUDA 12.4 or newer)",
      command));
}

}  // namespace tritax::cli
