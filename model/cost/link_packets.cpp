#include "model/cost/link_packets.hpp"

#include <algorithm>

#include "model/core/error.hpp"

namespace tritax {

namespace {
void add_piece(RowPackets& packets, std::int64_t begin, std::int64_t end) {
  packets.lines += (end + kLineBytes - 1) / kLineBytes - begin / kLineBytes;
  for (const std::int64_t at : {begin, end}) {
    if (at % kAccessBytes != 0) {
      ++packets.ragged_ends;
    } else if (at % kSectorBytes != 0) {
      ++packets.sector_ends;
    }
  }
}
}  // namespace

RowPackets packets_of_row(std::int64_t begin_bytes, std::int64_t bytes, bool in_boxes) {
  TRITAX_ASSERT(begin_bytes >= 0 && bytes > 0, "a stored row has bytes");
  const std::int64_t end = begin_bytes + bytes;
  // The copy engine writes rows that begin at a multiple of an access; threads write other rows.
  const std::int64_t piece = in_boxes && begin_bytes % kAccessBytes == 0 ? kBoxBytes : bytes;
  RowPackets packets;
  for (std::int64_t at = begin_bytes; at < end; at += piece) {
    add_piece(packets, at, std::min(at + piece, end));
  }
  return packets;
}

double stored_row_cost(const KernelCosts& costs, std::int64_t begin_bytes, std::int64_t bytes,
                       bool in_boxes) {
  const RowPackets packets = packets_of_row(begin_bytes, bytes, in_boxes);
  const auto row_bytes = static_cast<double>(bytes);
  const double split_lines = static_cast<double>(packets.lines) - row_bytes / static_cast<double>(kLineBytes);
  return 1 + (split_lines * costs.split_line_bytes + packets.sector_ends * costs.sector_end_bytes +
              packets.ragged_ends * costs.ragged_end_bytes) /
                 row_bytes;
}

}  // namespace tritax
