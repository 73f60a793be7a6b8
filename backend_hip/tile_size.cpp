#include "backend_hip/tile_size.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "model/core/error.hpp"

namespace tritax::gpu {

TileSize parse_tile(const std::string& text, const std::string& where) {
  TileSize tile;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%dx%d%c", &tile.m, &tile.n, &rest) != 2 || tile.m < 1 || tile.n < 1) {
    throw UserError(fmt::format("{}: '{}' is not a tile; write rows x columns, as 128x256", where, text));
  }
  return tile;
}

}  // namespace tritax::gpu
