// Maps paths that users give as values (ValueKind::file) to numbers. Every value is a number, so the value of
// a path is its place in a list of this process. Two paths are equal if their texts and the contents of the
// files are equal: a changed file gets a new number. Any thread may call these functions.
#pragma once

#include <cstdint>
#include <string>

namespace tritax {

// The number of a path, from 1 on; equal for the same path with the same content.
std::int64_t number_of_file(const std::string& path);

// The path of a file that the file `by` names: a relative path starts at the folder of `by`.
std::string path_beside(const std::string& path, const std::string& by);

// The path of a number; "" for 0, which means no file.
std::string file_of(std::int64_t number);

// Path and content (64 bits of its FNV-1a hash) as text, for keys; "" for 0. A path that is not a regular
// file, for example a pipe, is represented by the path alone.
std::string key_of_file(std::int64_t number);

}  // namespace tritax
