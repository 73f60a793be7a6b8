// Whether the operands of the matmuls of two ranks are alike: one to one, each of the same size, and where
// some overlap in part (slab_overlaps.hpp), their like overlap in the same way. Operands stay in caches by
// rows or columns and range of K.
//
// Ranks are compared matmul by matmul, always in the same order, each with its home (alike_programs.hpp). So
// those of a home get numbers once, and where they are met again no table is asked.
#pragma once

#include <array>
#include <boost/unordered_map.hpp>
#include <cstdint>
#include <vector>

#include "model/schedule/schedule.hpp"
#include "sim/slab_overlaps.hpp"

namespace tritax {

class AlikeOperands {
 public:
  // `buffers` outlive it; `homes`: ranks that others are compared with.
  AlikeOperands(const std::vector<Buffer>& buffers, std::int32_t homes)
      : buffers_(buffers), homes_(static_cast<std::size_t>(homes)) {}

  // From here on a rank whose home this is.
  void begin(std::int32_t home);
  // The next matmul of the home, and of the rank.
  bool same(const Op& like, const Op& own);
  // After the last one: whether they overlap in the same way.
  bool finish();

  // Of all ranks so far: whether what overlaps in part means the same to the homes alone, which is a matter
  // of how many bytes all operands have together.
  bool same_bytes() const;

 private:
  using Place = std::array<std::int32_t, 5>;  // buffer, first row or column, number, range of K
  struct Home {
    std::vector<std::uint32_t> numbers;  // of the operands of its matmuls, two each
    std::vector<Place> places;           // by number
    boost::unordered_map<Place, std::uint32_t> number_of;
    SlabOverlaps overlaps;
    bool finished = false;
  };

  void add(SlabOverlaps& overlaps, const Place& place, std::size_t number) const;
  std::uint32_t next_number(const Place& like);
  bool pair(const Place& like, const Place& own);
  SlabOverlaps overlaps_of(const std::vector<Place>& places) const;

  const std::vector<Buffer>& buffers_;
  std::vector<Home> homes_;
  bool overlap_ = false;
  std::vector<Place> all_;  // of ranks that are no homes

  Home* home_ = nullptr;              // of the rank at hand
  std::size_t next_ = 0;              // in its numbers
  std::vector<Place> own_;            // of the rank, by number of its like
  std::vector<std::uint8_t> paired_;  // by that number
  boost::unordered_map<Place, std::uint32_t> like_of_;
};

}  // namespace tritax
