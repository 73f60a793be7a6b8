#include "model/core/read_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
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
  void put(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }

  const std::string path_ =
      (std::filesystem::temp_directory_path() / ("tritax_read_file_" + std::to_string(getpid()))).string();
};

TEST_F(ReadFile, GivesTheBytesOfFilesUpToTheLimit) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{5}, kLargest}) {
    const std::string text(size, 'x');
    put(text);
    EXPECT_EQ(read_file(path_, "a list", kLargest), text);
  }
}

TEST_F(ReadFile, RefusesWhatIsLargerThanTheLimitBeforeReadingIt) {
  put("x");
  std::filesystem::resize_file(path_, std::uintmax_t{1} << 32);  // takes no room on the disk
  EXPECT_EQ(message_of(path_), path_ + ": cannot be read: it is larger than 1 MB; give a list");
}

TEST_F(ReadFile, RefusesWhatNeverEndsAndIsNoText) {
  for (const std::string device : {"/dev/zero", "/dev/urandom"}) {
    EXPECT_EQ(message_of(device),
              device + ": cannot be read: it is not a text: it has a zero byte; give a list");
  }
}

TEST_F(ReadFile, RefusesANamedPipeWhichNobodyMayEverWriteTo) {
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(message_of(path_), path_ + ": cannot be read: it is a named pipe; give a list");
}

TEST_F(ReadFile, GivesThePipeOfAProcessSubstitutionAgain) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "text", 4), 4);
  close(ends[1]);
  const std::string name = "/dev/fd/" + std::to_string(ends[0]);
  EXPECT_EQ(read_file(name, "a list", kLargest), "text");
  EXPECT_EQ(read_file(name, "a list", kLargest), "text");
  close(ends[0]);
}

TEST_F(ReadFile, RemembersWhatItHasReadUnderAnyName) {
  put("x");
  EXPECT_FALSE(was_read(path_));
  read_file(path_, "a list", kLargest);
  EXPECT_TRUE(was_read(path_));
  std::filesystem::create_symlink(path_, path_ + ".link");
  EXPECT_TRUE(was_read(path_ + ".link"));
  std::filesystem::remove(path_ + ".link");
}

}  // namespace
}  // namespace tritax
