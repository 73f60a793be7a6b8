// How deep a JSON text is nested, before anyone builds its tree: what walks or writes a tree recurses once a
// level, and readers of what is written refuse what is deeper than they expect.
#pragma once

#include <cstddef>
#include <string_view>

namespace tritax {

// The byte that opens the first array or object inside of `depth` others; npos if nothing is nested so deep.
// The text need not be valid JSON.
std::size_t find_json_deeper_than(std::string_view text, std::size_t depth);

}  // namespace tritax
