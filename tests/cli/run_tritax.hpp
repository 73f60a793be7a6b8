// Runs the built `tritax` as a user does and keeps what it prints.
#pragma once

#include <filesystem>
#include <string>

namespace tritax::test {

struct Outcome {
  int exit_code = -1;
  std::string out;  // standard output
  std::string err;  // standard error
};

// A directory of its own for one test, removed at the end.
class ScratchDirectory {
 public:
  ScratchDirectory();
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  std::string path(const std::string& name) const { return (root_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const;  // returns the path
  std::size_t file_count() const;

 private:
  std::filesystem::path root_;
};

std::string read_file(const std::string& path);

// `arguments` goes through the shell. `wrapper` is put in front of the program ("timeout 1").
Outcome run_tritax(const std::string& arguments, const std::string& wrapper = "");

}  // namespace tritax::test
