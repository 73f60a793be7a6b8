// Rectangles of matrices, in elements.
#pragma once

#include <cstdint>
#include <vector>

namespace tritax {

struct Rect {
  std::int32_t row = 0;
  std::int32_t col = 0;
  std::int32_t rows = 0;
  std::int32_t cols = 0;

  bool operator==(const Rect&) const = default;
};

// Rectangles in these functions lie inside a buffer, so sums do not overflow.
inline bool overlap(const Rect& a, const Rect& b) {
  return a.row < b.row + b.rows && b.row < a.row + a.rows && a.col < b.col + b.cols && b.col < a.col + a.cols;
}

inline bool contains(const Rect& outer, const Rect& inner) {
  return outer.row <= inner.row && outer.col <= inner.col &&
         inner.row + inner.rows <= outer.row + outer.rows && inner.col + inner.cols <= outer.col + outer.cols;
}

// The intersection of two overlapping rectangles.
Rect common_part(const Rect& a, const Rect& b);

// Removes `rect` from `rests`, which are disjoint and stay disjoint.
void subtract(std::vector<Rect>& rests, const Rect& rect);

}  // namespace tritax
