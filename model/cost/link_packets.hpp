// Computes the additional bytes on a link for stored rows that are not aligned to memory lines.
//
// A store goes over a link as packets. Each packet carries one memory line of 128 bytes with its own header,
// and marks the valid bytes of sectors of 32 bytes that are not full. Copies of tiles of 128x128 and 128x256
// 16-bit elements that fill the link between two H200 (`ragged` in scenarios/measured/h200-4-microbench.csv)
// show the cost. Rows that begin 32 bytes into a line, and so touch one line more, take as long as rows with
// 12 and 13 bytes more; at 77 % of the raw rate, which stores reach, this is a header flit of 16 bytes
// (flits: Foley and Danskin, Ultra-Performance Pascal GPU and NVLink Interconnect, IEEE Micro 37(2), 2017);
// Rows that begin 16 bytes into a line take as long as rows with 41 and 42 bytes more.
//
// Threads write a row from end to end. The copy engine writes boxes with rows of 128 bytes; a box that begins
// inside a line splits one line in each of its rows.
#pragma once

#include <cstdint>

#include "model/machine/machine.hpp"

namespace tritax {

// Packets of one row, or of all rows of its boxes.
struct RowPackets {
  std::int64_t lines = 0;        // packets
  std::int32_t sector_ends = 0;  // aligned to 16 bytes but not to 32
  std::int32_t ragged_ends = 0;  // not aligned to 16 bytes
};

inline constexpr std::int64_t kLineBytes = 128;
inline constexpr std::int64_t kSectorBytes = 32;
inline constexpr std::int64_t kAccessBytes = 16;
inline constexpr std::int64_t kBoxBytes = 128;

// Packets of `bytes` > 0 that begin `begin_bytes` into a row that is aligned to lines.
RowPackets packets_of_row(std::int64_t begin_bytes, std::int64_t bytes, bool in_boxes);

// Bytes on a link per stored byte; 1 for whole lines.
double stored_row_cost(const KernelCosts& costs, std::int64_t begin_bytes, std::int64_t bytes, bool in_boxes);

}  // namespace tritax
