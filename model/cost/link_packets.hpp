// What stored rows that do not begin and end with memory lines take more of a link.
//
// A store goes over a link as packets, each of one memory line of 128 bytes with a header of its own, and
// says of a sector of 32 bytes that it does not fill which bytes count. Copies of tiles of 128x128 and
// 128x256 16-bit elements that fill the link between two H200 (`ragged` in
// scenarios/measured/h200-4-microbench.csv) show what that costs: rows that begin 32 bytes into a line, and
// so lie in one line more, take as long as with 12 and 13 bytes more, which at the 77 % of the raw rate that
// stores reach is a header flit of 16 bytes (flits: Foley and Danskin, Ultra-Performance Pascal GPU and
// NVLink Interconnect, IEEE Micro 37(2), 2017); rows that begin 16 bytes in as with 41 and 42.
//
// Threads write a row from end to end. The copy engine writes boxes whose rows are 128 bytes, and a box that
// begins within a line splits one in each of its rows.
#pragma once

#include <cstdint>

#include "model/machine/machine.hpp"

namespace tritax {

// Of one row, or one row of a box after the other.
struct RowPackets {
  std::int64_t lines = 0;        // packets
  std::int32_t sector_ends = 0;  // off the multiples of 32 bytes, but on those of 16
  std::int32_t ragged_ends = 0;  // off the multiples of 16 bytes
};

inline constexpr std::int64_t kLineBytes = 128;
inline constexpr std::int64_t kSectorBytes = 32;
inline constexpr std::int64_t kAccessBytes = 16;
inline constexpr std::int64_t kBoxBytes = 128;

// Of `bytes` > 0 that begin `begin_bytes` into a row that begins with a line.
RowPackets packets_of_row(std::int64_t begin_bytes, std::int64_t bytes, bool in_boxes);

// Bytes on a link by byte stored, 1 for whole lines.
double stored_row_cost(const KernelCosts& costs, std::int64_t begin_bytes, std::int64_t bytes, bool in_boxes);

}  // namespace tritax
