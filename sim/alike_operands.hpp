// Whether the matmul operands of two ranks are alike: they pair one to one, paired operands have the same
// size, and operands that overlap in part (slab_overlaps.hpp) overlap in the same way on both ranks. Caches
// hold operands by rows or columns and range of K.
//
// Each rank is compared with its home rank (alike_programs.hpp), matmul by matmul, always in the same order.
// The operands of a home are numbered once; later comparisons read the numbers in order, without a table
// lookup.
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
  // `buffers` must outlive the object. `homes`: number of ranks that other ranks are compared with.
  AlikeOperands(const std::vector<Buffer>& buffers, std::int32_t homes)
      : buffers_(buffers), homes_(static_cast<std::size_t>(homes)) {}

  // Begins the comparison of a rank with its home.
  void begin(std::int32_t home);
  // Compares the next matmul of the home with the next matmul of the rank.
  bool same(const Op& like, const Op& own);
  // After the last matmul: whether the operands of both ranks overlap in the same way.
  bool finish();

  // After all ranks: whether partial overlaps have the same effect if the homes run alone. This depends on
  // the total bytes of all operands.
  bool same_bytes() const;

 private:
  using Place = std::array<std::int32_t, 5>;  // buffer, first row or column, size, range of K
  struct Home {
    std::vector<std::uint32_t> numbers;  // of the matmul operands, two per matmul
    std::vector<Place> places;           // by number of the operand
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
  std::vector<Place> all_;  // operands of ranks that are not homes

  Home* home_ = nullptr;              // home of the current rank
  std::size_t next_ = 0;              // position in Home::numbers
  std::vector<Place> own_;            // operands of the rank, by number of the home's operand
  std::vector<std::uint8_t> paired_;  // by the same number
  boost::unordered_map<Place, std::uint32_t> like_of_;
};

}  // namespace tritax
