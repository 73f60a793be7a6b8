#include "model/schedule/rect.hpp"

#include <algorithm>
#include <utility>

namespace tritax {

Rect common_part(const Rect& a, const Rect& b) {
  const std::int32_t top = std::max(a.row, b.row);
  const std::int32_t left = std::max(a.col, b.col);
  return {top, left, std::min(a.row + a.rows, b.row + b.rows) - top,
          std::min(a.col + a.cols, b.col + b.cols) - left};
}

void subtract(std::vector<Rect>& rests, const Rect& rect) {
  std::vector<Rect> left;
  for (const Rect& rest : rests) {
    if (!overlap(rest, rect)) {
      left.push_back(rest);
      continue;
    }
    const Rect hole = common_part(rest, rect);
    const auto keep = [&left](std::int32_t row, std::int32_t col, std::int32_t rows, std::int32_t cols) {
      if (rows > 0 && cols > 0) {
        left.push_back({row, col, rows, cols});
      }
    };
    const std::int32_t bottom = hole.row + hole.rows;
    const std::int32_t right = hole.col + hole.cols;
    keep(rest.row, rest.col, hole.row - rest.row, rest.cols);
    keep(bottom, rest.col, rest.row + rest.rows - bottom, rest.cols);
    keep(hole.row, rest.col, hole.rows, hole.col - rest.col);
    keep(hole.row, right, hole.rows, rest.col + rest.cols - right);
  }
  rests = std::move(left);
}

}  // namespace tritax
