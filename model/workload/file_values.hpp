// Files that users name as values (ValueKind::file): every value is a number, so a path is one too, its place
// in a list of this process. Paths are compared as they were written, and what stands in the files: a file
// that has changed since gets another number. Any thread may call these.
#pragma once

#include <cstdint>
#include <string>

namespace tritax {

// From 1 on; the same for the same path with the same content.
std::int64_t number_of_file(const std::string& path);

// The path of a file that `by`, a file itself, names: a relative one is from the folder of that.
std::string path_beside(const std::string& path, const std::string& by);

// "" of 0, which is no file.
std::string file_of(std::int64_t number);

// Path and content (64 bits of its FNV-1a hash) as text, for keys; "" of 0. What is no regular file, a pipe
// for example, goes by its path.
std::string key_of_file(std::int64_t number);

}  // namespace tritax
