// Tile sizes on the command line.
#pragma once

#include <cstdint>
#include <string>

namespace tritax::gpu {

struct TileSize {
  std::int32_t m = 0;
  std::int32_t n = 0;
};

// Parses "128x256". Throws UserError that names `where` for other texts.
TileSize parse_tile(const std::string& text, const std::string& where);

}  // namespace tritax::gpu
