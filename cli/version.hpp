// The version of Tritax.
#pragma once

#include <string_view>

namespace tritax::cli {

// "0.1.0"
std::string_view version();

}  // namespace tritax::cli
