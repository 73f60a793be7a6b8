// Finds out how deep a JSON text is nested, before the tree is built. Functions that walk or write a tree
// recurse once per level, and readers refuse JSON that is deeper than they expect.
#pragma once

#include <cstddef>
#include <string_view>

namespace tritax {

// Position of the byte that opens the first array or object inside `depth` others; npos if the text is not
// nested so deep. The text need not be valid JSON.
std::size_t find_json_deeper_than(std::string_view text, std::size_t depth);

}  // namespace tritax
