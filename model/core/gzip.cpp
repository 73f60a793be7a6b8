#include "model/core/gzip.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "model/core/error.hpp"

namespace tritax {

namespace {

constexpr int kGzipWindow = 15 + 16;  // the largest window, in a gzip wrapper: zlib.h, deflateInit2
constexpr std::size_t kBlock = 1 << 16;

// zlib counts in 32 bits.
uInt piece(std::size_t left) {
  return static_cast<uInt>(std::min<std::size_t>(left, std::numeric_limits<uInt>::max()));
}

// zlib does not write to its input.
Bytef* input(std::string_view bytes) {
  return const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));  // NOLINT
}

}  // namespace

bool is_gzip_name(std::string_view path) { return path.ends_with(".gz"); }

bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

std::string gzip(std::string_view text) {
  z_stream stream{};
  TRITAX_ASSERT(
      deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) == Z_OK,
      "zlib starts");
  std::string packed;
  std::vector<Bytef> block(kBlock);
  int state = Z_OK;
  while (state != Z_STREAM_END) {
    stream.next_in = input(text);
    stream.avail_in = piece(text.size());
    const std::size_t given = stream.avail_in;
    stream.next_out = block.data();
    stream.avail_out = static_cast<uInt>(block.size());
    state = deflate(&stream, given == text.size() ? Z_FINISH : Z_NO_FLUSH);
    TRITAX_ASSERT(state == Z_OK || state == Z_STREAM_END || state == Z_BUF_ERROR, "zlib compresses anything");
    text.remove_prefix(given - stream.avail_in);
    packed.append(reinterpret_cast<const char*>(block.data()), block.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  return packed;
}

std::string gunzip(std::string_view bytes, std::size_t largest) {
  z_stream stream{};
  TRITAX_ASSERT(inflateInit2(&stream, kGzipWindow) == Z_OK, "zlib starts");
  std::string text;
  std::string problem;
  std::vector<Bytef> block(kBlock);
  int state = Z_OK;
  while (state != Z_STREAM_END && problem.empty()) {
    stream.next_in = input(bytes);
    stream.avail_in = piece(bytes.size());
    const std::size_t given = stream.avail_in;
    stream.next_out = block.data();
    stream.avail_out = static_cast<uInt>(block.size());
    state = inflate(&stream, Z_NO_FLUSH);
    bytes.remove_prefix(given - stream.avail_in);
    text.append(reinterpret_cast<const char*>(block.data()), block.size() - stream.avail_out);
    if (text.size() > largest) problem = fmt::format("it holds more than {} MB", largest >> 20);
    if (state == Z_BUF_ERROR) problem = "it ends too early for a gzip file";
    if (state != Z_OK && state != Z_STREAM_END && state != Z_BUF_ERROR)
      problem = "it is not a whole gzip file";
  }
  inflateEnd(&stream);
  if (problem.empty() && !bytes.empty()) problem = "something follows its gzip data";
  if (!problem.empty()) throw UserError(problem);
  return text;
}

}  // namespace tritax
