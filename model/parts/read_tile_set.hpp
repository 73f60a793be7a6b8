// Tile sets from files: a matrix in Matrix Market form, or a list of tile sizes.
//
//   Matrix Market   coordinate form (math.nist.gov/MatrixMarket/formats.html): real, integer, complex or
//                   pattern; general, symmetric, skew-symmetric or Hermitian (these 3 are mirrored). Values
//                   are left out, because only their places decide the time; repeated entries count once
//   sizes           one whole number per line, the atoms of a tile: tokens per expert
//
// Lines that begin with % or # are comments. Row offsets and columns are as in schedule/sparse.hpp.
#pragma once

#include <string>

#include "model/schedule/sparse.hpp"

namespace tritax {

// Throws UserError "path:line: …" for a file that is neither.
SparseMatrix read_tile_set(const std::string& path);

// The same for the text of a file; `origin` names the file in messages.
SparseMatrix parse_tile_set(const std::string& text, const std::string& origin);

}  // namespace tritax
