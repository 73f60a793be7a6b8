#include "model/core/base64.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tritax {
namespace {

std::string base64_of(const std::string& text) {
  const std::vector<unsigned char> bytes(text.begin(), text.end());
  return base64(bytes);
}

// RFC 4648, section 10.
TEST(Base64, GivesTheVectorsOfTheStandard) {
  EXPECT_EQ(base64_of(""), "");
  EXPECT_EQ(base64_of("f"), "Zg==");
  EXPECT_EQ(base64_of("fo"), "Zm8=");
  EXPECT_EQ(base64_of("foo"), "Zm9v");
  EXPECT_EQ(base64_of("foob"), "Zm9vYg==");
  EXPECT_EQ(base64_of("fooba"), "Zm9vYmE=");
  EXPECT_EQ(base64_of("foobar"), "Zm9vYmFy");
}

TEST(Base64, TakesBytesAboveSeven) {
  EXPECT_EQ(base64(std::vector<unsigned char>{0xff, 0xef, 0xbe}), "/+++");
}

}  // namespace
}  // namespace tritax
