// Tile sets from files: a matrix in Matrix Market form, or the sizes of tiles alone.
//
//   Matrix Market   coordinate form (math.nist.gov/MatrixMarket/formats.html): real, integer, complex or
//                   pattern; general, symmetric, skew-symmetric or Hermitian, which are mirrored. Values are
//                   left out, since only where they are decides how long anything takes; entries that are
//                   there twice count once
//   sizes           a whole number a line, the atoms of a tile: tokens that a router has sent to each expert
//
// Lines that begin with % or # are comments. Row offsets and columns are as in schedule/sparse.hpp.
#pragma once

#include <string>

#include "model/schedule/sparse.hpp"

namespace tritax {

// Throws UserError "path:line: …" for what is neither.
SparseMatrix read_tile_set(const std::string& path);

// The same of the text of a file; `origin` names it in messages.
SparseMatrix parse_tile_set(const std::string& text, const std::string& origin);

}  // namespace tritax
