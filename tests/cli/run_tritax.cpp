#include "tests/cli/run_tritax.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace tritax::test {

ScratchDirectory::ScratchDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "tritax-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    throw std::runtime_error("cannot make a scratch directory");
  }
  root_ = name;
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(root_, ignored);
}

std::string ScratchDirectory::write(const std::string& name, const std::string& text) const {
  std::ofstream(root_ / name) << text;
  return path(name);
}

std::size_t ScratchDirectory::file_count() const {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(root_), std::filesystem::directory_iterator()));
}

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

Outcome run_tritax(const std::string& arguments, const std::string& wrapper) {
  const ScratchDirectory scratch;
  const std::string err_file = scratch.path("stderr");
  const std::string command = wrapper + " '" TRITAX_PROGRAM "' " + arguments + " 2>'" + err_file + "'";
  Outcome outcome;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) {
    throw std::runtime_error("cannot run " + command);
  }
  std::array<char, 65536> buffer{};
  for (std::size_t count = 0; (count = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    outcome.out.append(buffer.data(), count);
  }
  const int status = pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  outcome.err = read_file(err_file);
  return outcome;
}

}  // namespace tritax::test
