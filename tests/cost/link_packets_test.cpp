// Packets of stored rows, counted by hand.
#include "model/cost/link_packets.hpp"

#include <gtest/gtest.h>

namespace tritax {
namespace {

struct Case {
  std::int64_t begin = 0, bytes = 0;
  bool in_boxes = false;
  std::int64_t lines = 0;
  std::int32_t sector_ends = 0, ragged_ends = 0;
};

TEST(LinkPackets, AreOneALineOfARowOrOfABox) {
  for (const Case& c : {
           Case{0, 256, false, 2},
           Case{0, 256, true, 2},
           Case{64, 256, false, 3},  // 64 + 128 + 64
           Case{64, 256, true, 4},   // (64 + 64) twice
           Case{64, 192, true, 3},   // 64 + 64, and a box of 64
           Case{96, 32, false, 1},
           Case{16, 256, false, 3, 2},  // both ends in the middle of a sector
           Case{16, 256, true, 4, 4},   // and so is what is between the boxes
           Case{2, 256, false, 3, 0, 2},
           Case{2, 256, true, 3, 0, 2},  // no boxes begin there
           Case{0, 240, false, 2, 1},
           Case{128, 126, true, 1, 0, 1},
       }) {
    const RowPackets packets = packets_of_row(c.begin, c.bytes, c.in_boxes);
    EXPECT_EQ(packets.lines, c.lines) << c.begin << " " << c.bytes << " " << c.in_boxes;
    EXPECT_EQ(packets.sector_ends, c.sector_ends) << c.begin << " " << c.bytes << " " << c.in_boxes;
    EXPECT_EQ(packets.ragged_ends, c.ragged_ends) << c.begin << " " << c.bytes << " " << c.in_boxes;
  }
}

TEST(LinkPackets, CostWhatTheFabricSaysForThem) {
  KernelCosts costs;
  EXPECT_EQ(stored_row_cost(costs, 2, 254, false), 1);
  costs.split_line_bytes = 12;
  costs.sector_end_bytes = 15;
  costs.ragged_end_bytes = 50;
  EXPECT_EQ(stored_row_cost(costs, 128, 512, true), 1);
  EXPECT_DOUBLE_EQ(stored_row_cost(costs, 64, 256, false), 1 + 12.0 / 256);
  EXPECT_DOUBLE_EQ(stored_row_cost(costs, 64, 256, true), 1 + 24.0 / 256);
  EXPECT_DOUBLE_EQ(stored_row_cost(costs, 16, 256, false), 1 + (12.0 + 2 * 15) / 256);
  EXPECT_DOUBLE_EQ(stored_row_cost(costs, 2, 256, false), 1 + (12.0 + 2 * 50) / 256);
  EXPECT_DOUBLE_EQ(stored_row_cost(costs, 0, 96, false), 1 + 0.25 * 12 / 96);  // a line that is not full
}

}  // namespace
}  // namespace tritax
