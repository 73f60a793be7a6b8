// Common part of commands that need GPUs. Every build of the program has these commands, so that help and
// scripts are the same; TRITAX_WITH_GPU is defined when the backend is linked in (cmake -DTRITAX_GPU=amd or
// nvidia).
#pragma once

#include <string_view>

namespace tritax::cli {

// Throws the UserError that says how to build the program with a GPU backend.
[[noreturn]] void refuse_without_gpu(std::string_view command);

}  // namespace tritax::cli
