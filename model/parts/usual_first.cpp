#include "model/parts/usual_first.hpp"

#include <vector>

namespace tritax {

Axis usual_first(const Pattern& pattern, const Values& base, std::string_view knob,
                 std::initializer_list<std::int64_t> others) {
  std::vector<std::int64_t> values{base[knob]};
  for (const std::int64_t other : others) {
    if (pattern.uses(knob) && !base.given(knob) && other != values.front()) values.push_back(other);
  }
  return column_axis(knob, values);
}

}  // namespace tritax
