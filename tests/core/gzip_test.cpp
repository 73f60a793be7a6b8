#include "model/core/gzip.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "model/core/error.hpp"
#include "model/core/read_file.hpp"

namespace tritax {
namespace {

constexpr std::size_t kAny = std::size_t{1} << 30;

RC_GTEST_PROP(Gzip, AnyTextComesBack, (const std::string& text, std::uint8_t times)) {
  std::string whole;
  for (int i = 0; i < times; ++i) whole += text;
  const std::string packed = gzip(whole);
  RC_ASSERT(is_gzip(packed));
  RC_ASSERT(gunzip(packed, kAny) == whole);
}

TEST(Gzip, TextLongerThanOneBlockComesBackAndIsSmaller) {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += std::to_string(i) + ',';
  const std::string packed = gzip(text);
  EXPECT_LT(packed.size(), text.size() / 2);
  EXPECT_EQ(gunzip(packed, kAny), text);
  EXPECT_EQ(gzip(text), packed);  // no date
}

TEST(Gzip, DamagedAndTooLargeDataIsRefused) {
  const std::string packed = gzip(std::string(1'000'000, 'x'));
  const auto refused = [](const std::string& bytes, std::size_t largest) {
    try {
      gunzip(bytes, largest);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refused(packed.substr(0, packed.size() / 2), kAny), "it ends too early for a gzip file");
  EXPECT_EQ(refused(packed + "more", kAny), "something follows its gzip data");
  EXPECT_EQ(refused("\x1f\x8b nonsense", kAny), "it is not a whole gzip file");
  EXPECT_EQ(refused(packed, 1 << 19), "it holds more than 0 MB");
  EXPECT_EQ(refused(packed, 1'000'000), "");
}

TEST(Gzip, FilesAreReadAsWhatTheyHold) {
  const std::string path = testing::TempDir() + "gzip_test.txt.gz";
  std::ofstream(path, std::ios::binary) << gzip("one\ntwo\n");
  EXPECT_EQ(read_file(path, "a file", kAny), "one\ntwo\n");
  std::ofstream(path, std::ios::binary) << gzip(std::string("a\0b", 3));
  EXPECT_THROW(read_file(path, "a file", kAny), UserError);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace tritax
