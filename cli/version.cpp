#include "cli/version.hpp"

namespace tritax::cli {

std::string_view version() { return TRITAX_VERSION; }

}  // namespace tritax::cli
