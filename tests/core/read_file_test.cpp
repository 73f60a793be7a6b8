#include "model/core/read_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "model/core/error.hpp"

namespace tritax {
namespace {

constexpr std::size_t kLargest = std::size_t{1} << 20;

// The message of the UserError that reading causes; empty if there is none.
std::string message_of(const std::string& path) {
  try {
    read_file(path, "a list", kLargest);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

class ReadFile : public testing::Test {
 protected:
  ~ReadFile() override { std::filesystem::remove(path_); }
  void write(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }

  const std::string path_ =
      (std::filesystem::temp_directory_path() / ("tritax_read_file_" + std::to_string(getpid()))).string();
};

TEST_F(ReadFile, GivesTheBytesOfFilesUpToTheLimit) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{5}, kLargest}) {
    const std::string text(size, 'x');
    write(text);
    EXPECT_EQ(read_file(path_, "a list", kLargest), text);
  }
}

TEST_F(ReadFile, RefusesWhatIsLargerThanTheLimitBeforeReadingIt) {
  write("x");
  std::filesystem::resize_file(path_, std::uintmax_t{1} << 32);  // takes no room on the disk
  EXPECT_EQ(message_of(path_), path_ + ": cannot be read: it is larger than 1 MB; give a list");
}

TEST_F(ReadFile, RefusesWhatNeverEndsAndIsNoText) {
  for (const std::string device : {"/dev/zero", "/dev/urandom"}) {
    EXPECT_EQ(message_of(device),
              device + ": cannot be read: it is no text, it has a zero byte; give a list");
  }
}

}  // namespace
}  // namespace tritax
