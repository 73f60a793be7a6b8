// Whether the programs of ranks are alike under a shift of all ranks; symmetry.hpp states the law.
#pragma once

#include <array>
#include <boost/unordered_map.hpp>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"
#include "sim/alike_operands.hpp"
#include "sim/region_cells.hpp"

namespace tritax {

// A one-to-one map that grows with each new pair.
template <typename Key>
class GrowingBijection {
 public:
  // False if `a` or `b` already has another partner.
  bool pair(const Key& a, const Key& b) {
    const auto [entry, added] = there_.emplace(a, b);
    if (!added) return entry->second == b;
    return back_.emplace(b, a).second;
  }
  std::size_t size() const { return there_.size(); }

 private:
  boost::unordered_map<Key, Key> there_, back_;
};

// A one-to-one map of numbers below `tiles`: dense tables with `in_tables`, else hash maps.
class TilePairs {
 public:
  TilePairs(std::size_t tiles, bool in_tables)
      : dense_(in_tables), there_(dense_ ? tiles : 0), back_(dense_ ? tiles : 0) {}
  bool pair(std::uint64_t a, std::uint64_t b) {
    if (!dense_) return pairs_.pair(a, b);
    std::uint32_t& there = there_[a];
    std::uint32_t& back = back_[b];
    const auto name_of_a = static_cast<std::uint32_t>(a) + 1, name_of_b = static_cast<std::uint32_t>(b) + 1;
    if (there == 0 && back == 0) {
      there = name_of_b;
      back = name_of_a;
    }
    return there == name_of_b && back == name_of_a;
  }

 private:
  bool dense_;
  std::vector<std::uint32_t> there_, back_;  // partner + 1; 0: no partner yet
  GrowingBijection<std::uint64_t> pairs_;
};

class AlikePrograms {
 public:
  // `schedule` must outlive the object; `shift` divides the number of ranks.
  AlikePrograms(const Schedule& schedule, const Machine& machine, std::int32_t shift);

  // Whether the shift is a symmetry of all programs.
  bool hold();

  // The rank below `shift` that behaves like `rank`.
  std::int32_t home(std::int32_t rank) const { return rank % shift_; }
  const std::vector<std::uint32_t>& kernels_of(std::int32_t rank) const {
    return kernels_of_[static_cast<std::size_t>(rank)];
  }
  // An operation of `rank` acts on `owner`. Returns the same operation of the alike rank that acts on
  // home(owner).
  const Op& towards_home(std::int32_t rank, std::int32_t owner, std::uint32_t kernel, std::size_t program,
                         std::uint32_t op) const;
  const Op& transfer_towards_home(std::int32_t rank, std::int32_t owner, std::size_t host_op) const;
  // Whether a schedule of the ranks below `shift` alone has cells (region_cells.hpp) of the same buffers as
  // the whole schedule. Call it after hold() returned true.
  bool same_cells(const Schedule& folded) const;
  const AlikeOperands& operands() const { return operands_; }

 private:
  using Cell = std::uint64_t;  // number of a tile among the tiles of all buffers; or buffer and cell
  struct HostNames {
    GrowingBijection<std::int32_t> streams, events;
  };

  std::int32_t moved(std::int32_t rank, std::int32_t by) const {
    return (rank + by + schedule_.ranks) % schedule_.ranks;
  }
  bool same_hosts(std::int32_t rank) const;
  bool same_host_op(std::int32_t rank, const HostOp& a, const HostOp& b, HostNames& names) const;
  bool same_launch(std::int32_t rank, std::int32_t a, std::int32_t b) const;
  bool same_kernels(std::int32_t rank);
  bool same_programs(const Kernel& a, const Kernel& b);
  bool same_op(const Op& a, const Op& b, std::int32_t by) const;
  bool same_tiles(const Op& a, const Op& b, std::int32_t rank);
  bool same_counters(std::int32_t rank);
  bool same_targets(std::int32_t rank);
  bool same_alignment(std::int16_t buffer, std::int32_t a_col, std::int32_t b_col) const;
  Cell cell_of(std::int32_t buffer, std::int32_t row, std::int32_t col) const;
  bool pair_tiles(std::int32_t rank, std::int32_t buffer, std::int32_t a_row, std::int32_t a_col,
                  std::int32_t b_row, std::int32_t b_col);
  bool same_overlaps();
  bool same_regions(std::int32_t rank);
  bool same_copied_regions(std::int32_t rank);
  bool pair_regions(const Region& a, const Region& b);

  const Schedule& schedule_;
  const std::int32_t shift_;
  const bool needs_alignment_;                          // rows that are not aligned to memory lines cost more
  std::vector<std::vector<std::uint32_t>> kernels_of_;  // by rank
  std::vector<std::int32_t> place_of_kernel_;           // position in kernels_of_
  std::vector<std::size_t> first_flag_;                 // by array
  std::size_t flags_ = 0;                               // per rank
  std::vector<std::int32_t> home_flag_, flag_of_home_;  // by rank and flag
  std::vector<Cell> first_tile_;                        // by buffer
  std::vector<TilePairs> tiles_;  // by rank: tiles of the home, paired with tiles of the rank
  std::array<Cell, 2> last_cells_{};
  AlikeOperands operands_;
  RegionCells regions_;                               // of all ranks
  std::vector<GrowingBijection<Cell>> paired_cells_;  // by rank: pairs of cells of regions_
  std::vector<std::pair<std::size_t, double>> first_cells_;
};

}  // namespace tritax
