// Files that users name as values (ValueKind::file): every value is a number, so a path is one too, its place
// in a list of this process. Paths are compared as they were written. Any thread may call these.
#pragma once

#include <cstdint>
#include <string>

namespace tritax {

// From 1 on; the same for the same path.
std::int64_t number_of_file(const std::string& path);

// "" of 0, which is no file.
std::string file_of(std::int64_t number);

}  // namespace tritax
