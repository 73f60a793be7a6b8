// Encodes bytes as base64 text: RFC 4648, section 4, with padding.
#pragma once

#include <span>
#include <string>

namespace tritax {

std::string base64(std::span<const unsigned char> bytes);

}  // namespace tritax
