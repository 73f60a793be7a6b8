#include "model/core/base64.hpp"

#include <cstddef>
#include <cstdint>

namespace tritax {

std::string base64(std::span<const unsigned char> bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = bytes.size() - i < 3 ? bytes.size() - i : 3;
    std::uint32_t word = 0;
    for (std::size_t b = 0; b < 3; ++b) word = word << 8 | (b < count ? bytes[i + b] : 0u);
    for (std::size_t digit = 0; digit < 4; ++digit) {
      text += digit <= count ? kDigits[word >> (18 - 6 * digit) & 63] : '=';
    }
  }
  return text;
}

}  // namespace tritax
