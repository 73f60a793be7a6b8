#include "model/cost/lane_steps.hpp"
#include "model/schedule/op_views.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace tritax {

namespace {

// Instructions that the backend's kernels (backend_hip/sparse_rows.hpp) issue besides steps, counted in their
// source. Per batch of a group: its end, whether rows begin. Per step of a batch in which rows begin: the
// begin of the own row and the distance to it, the last element of the row and the sum; per round of the scan
// a shuffle, a comparison and an addition. Per end of a row: compare, choose, store, count, load.
constexpr double kBatchInstructions = 8;
constexpr double kSegmentInstructions = 16;
constexpr double kScanInstructions = 3;
constexpr double kJoinInstructions = 2;  // per round of a sum over lanes
constexpr double kRowEndInstructions = 12;
constexpr double kRowEndsOfLine = 32;  // per 128 bytes
// A sum passed from wave to wave: one write, and one read after the barrier.
constexpr double kCarryWaits = 2;

double log2_of(double things) { return std::ceil(std::log2(std::max(things, 1.0))); }

// Adds the lookups of L1 and its requests to L2 for lanes that each walk along `length` elements.
void add_walks(double walks, double length, double element, LaneSteps& found) {
  const double batches = std::ceil(length / kStepsUnderWay);
  for (const double bytes : {element, kIndexBytes}) {
    found.lookups += walks * length * std::min(1.0, length * bytes / kMemoryLineBytes);
    found.asked += walks * std::max(length * bytes, batches * std::min(kMemorySectorBytes, length * bytes));
  }
}

// Visits the number of nonzeros of every row of an operation.
template <typename Visit>
void for_each_length(const SparseMatrix& matrix, const Op& op, Visit visit) {
  for (std::int32_t i = 0; i < op.rect.rows; ++i) {
    const std::int32_t begin = std::max(matrix.begin(op.rect.row + i), op.k_begin);
    const std::int32_t end = std::min(matrix.end(op.rect.row + i), op.k_end);
    visit(i, std::max(0, end - begin));
  }
}

// Steps of the waves of a workgroup. Tasks go in turn to its groups of lanes.
class Waves {
 public:
  Waves(std::int32_t threads, std::int32_t lanes_per_wave, std::int32_t lanes)
      : groups_(std::max(1, threads / lanes)),
        lanes_(lanes),
        per_wave_(lanes_per_wave),
        steps_(static_cast<std::size_t>((threads + lanes_per_wave - 1) / lanes_per_wave), 0.0),
        work_(steps_),
        round_(steps_) {}

  void add(std::int32_t task, double steps, double atoms) {
    const std::int32_t group = task % groups_;
    if (group == 0) end_round();
    const std::int32_t first = group * lanes_ / per_wave_;
    const std::int32_t last =
        std::min((group * lanes_ + lanes_ - 1) / per_wave_, static_cast<std::int32_t>(steps_.size()) - 1);
    for (std::int32_t wave = first; wave <= last; ++wave) {
      double& longest = round_[static_cast<std::size_t>(wave)];
      longest = std::max(longest, steps);
      work_[static_cast<std::size_t>(wave)] += atoms / (last - first + 1);
    }
  }

  void finish(LaneSteps& found) {
    end_round();
    const auto longest = std::max_element(steps_.begin(), steps_.end());
    found.longest = *longest;
    const double work = work_[static_cast<std::size_t>(longest - steps_.begin())];
    found.active = std::clamp(*longest > 0 ? work / *longest : 1, 1.0, static_cast<double>(per_wave_));
    for (const double steps : steps_) found.all += steps;
  }

 private:
  void end_round() {
    for (std::size_t wave = 0; wave < steps_.size(); ++wave) steps_[wave] += std::exchange(round_[wave], 0);
  }

  std::int32_t groups_, lanes_, per_wave_;
  std::vector<double> steps_, work_, round_;
};

// Groups of L lanes that process L rows together; counts the batches of each wave.
class GroupWaves {
 public:
  GroupWaves(const SparseMatrix& matrix, const Op& op, std::int32_t threads, std::int32_t lanes_per_wave)
      : matrix_(matrix),
        op_(op),
        threads_(threads),
        per_wave_(lanes_per_wave),
        group_(SparseView(op).lanes()),
        lanes_(std::min(group_, lanes_per_wave)),
        waves_(static_cast<std::size_t>((threads + lanes_per_wave - 1) / lanes_per_wave)) {}

  void walk() {
    if (group_ > per_wave_) return walk_wide();
    for (std::int32_t row = 0; row < op_.rect.rows; row += per_wave_) {
      add(waves_[static_cast<std::size_t>(row / per_wave_) % waves_.size()], row,
          std::min(row + per_wave_, op_.rect.rows), op_.k_begin, op_.k_end);
    }
  }

  void finish(LaneSteps& found) const {
    const double rounds = std::log2(lanes_);
    const bool reduces = per_wave_ <= 32;  // one instruction over the wave, at half the rate of shuffles
    const double marks = reduces ? 2 : 2 * std::log2(per_wave_);
    const auto more_of = [&](const Wave& wave) {
      return kBatchInstructions * wave.batches + kJoinInstructions * rounds * wave.joins +
             kStepsUnderWay * (kSegmentInstructions + kScanInstructions * rounds) * wave.scans;
    };
    const Wave* longest = &waves_.front();
    for (const Wave& wave : waves_) {
      if (wave.batches > longest->batches) longest = &wave;
      found.all += kStepsUnderWay * wave.batches;
      found.more_all += more_of(wave);
      found.exchanges += kStepsUnderWay * (marks + rounds + 1) * wave.scans + rounds * wave.joins;
    }
    found.longest = kStepsUnderWay * longest->batches;
    found.active = std::clamp(found.longest > 0 ? longest->nonzeros / found.longest : 1, 1.0,
                              static_cast<double>(per_wave_));
    found.more_longest = more_of(*longest);
    found.waits =
        ((reduces ? 1 : std::log2(per_wave_)) + rounds + 1) * longest->scans + rounds * longest->joins;
    if (group_ > per_wave_)
      found.waits += kCarryWaits * std::ceil(op_.rect.rows / static_cast<double>(threads_));
  }

 private:
  struct Wave {
    double batches = 0, scans = 0, joins = 0, nonzeros = 0;
  };

  std::int32_t begin_of(std::int32_t row, std::int32_t from, std::int32_t to) const {
    return std::clamp(matrix_.begin(op_.rect.row + row), from, to);
  }

  // Groups of several waves. The waves have even shares of the group's nonzeros.
  void walk_wide() {
    const std::int32_t waves_of_group = group_ / per_wave_;
    const std::int32_t groups = std::max(1, threads_ / group_);
    for (std::int32_t first = 0, group = 0; first < op_.rect.rows; first += group_, ++group) {
      const std::int32_t end_row = std::min(first + group_, op_.rect.rows);
      const std::int32_t begin = begin_of(first, op_.k_begin, op_.k_end);
      const std::int32_t end = begin_of(end_row, op_.k_begin, op_.k_end);
      const std::int32_t share = (end - begin + waves_of_group - 1) / waves_of_group;
      for (std::int32_t nth = 0; nth < waves_of_group; ++nth) {
        Wave& wave = waves_[static_cast<std::size_t>(group % groups * waves_of_group + nth) % waves_.size()];
        const std::int32_t from = std::min(begin + nth * share, end), to = std::min(from + share, end);
        for (std::int32_t row = first; row < end_row; row += per_wave_) {
          add(wave, row, std::min(row + per_wave_, end_row), from, to);
        }
      }
    }
  }

  // Adds rows [first, end) side by side on a wave, with their nonzeros in [from, to).
  void add(Wave& wave, std::int32_t first, std::int32_t end, std::int32_t from, std::int32_t to) {
    const double batch = kStepsUnderWay * lanes_;
    double batches = 0;
    for (std::int32_t row = first; row < end; row += lanes_) {
      const double nonzeros = begin_of(std::min(row + lanes_, end), from, to) - begin_of(row, from, to);
      batches = std::max(batches, std::ceil(nonzeros / batch));
      wave.nonzeros += nonzeros;
    }
    if (batches == 0) return;
    begins_.assign(static_cast<std::size_t>(batches), 0);
    for (std::int32_t row = first, of_group = 0; row < end; ++row) {
      if ((row - first) % lanes_ == 0) of_group = begin_of(row, from, to);
      const std::int32_t begin = begin_of(row, from, to);
      if (begin < begin_of(row + 1, from, to))
        begins_[static_cast<std::size_t>((begin - of_group) / batch)] = 1;
    }
    wave.batches += batches;
    for (std::size_t i = 0; i < begins_.size(); ++i) {
      wave.scans += begins_[i];
      wave.joins += begins_[i] == 0 && begins_[i - 1] != 0 ? 1 : 0;  // begins_[0] is 1, so i > 0 here
    }
  }

  const SparseMatrix& matrix_;
  const Op& op_;
  std::int32_t threads_, per_wave_, group_, lanes_;
  std::vector<Wave> waves_;
  std::vector<char> begins_;  // by batch: whether a row begins in it
};

// Adds the work besides steps: the search, the ends of rows, and the rest of the row in which each lane
// stops.
void add_even_share(const Op& op, std::int32_t threads, std::int32_t lanes_per_wave, bool staged,
                    LaneSteps& found) {
  const double rows = op.rect.rows, atoms = op.k_end - op.k_begin;
  const double waves = std::ceil(threads / static_cast<double>(lanes_per_wave));
  const double ends_of_lane = rows / threads;
  const double ends_here = std::min(1.0, rows / std::max(atoms, 1.0));  // after a nonzero, on one lane
  const double ends = std::max(ends_of_lane, atoms / threads * (1 - std::pow(1 - ends_here, lanes_per_wave)));
  const double search = 2 * log2_of(rows + atoms), scan = std::log2(lanes_per_wave);
  found.waits = search + ends + scan + 1 + kCarryWaits;
  found.cold = staged ? 0 : 1 + log2_of(rows / kRowEndsOfLine);
  found.more_longest = kRowEndInstructions * (ends - ends_of_lane);
  found.more_all = waves * found.more_longest;
  found.exchanges = waves * (2 * scan + 1 + (staged ? search + ends : 0));
}

}  // namespace

LaneSteps lane_steps(const SparseMatrix& matrix, const Op& op, std::int32_t threads,
                     std::int32_t lanes_per_wave, double element, bool staged) {
  LaneSteps found;
  found.instructions = kStepInstructions;
  const LaneSharing sharing = SparseView(op).sharing();
  const auto lanes = static_cast<double>(SparseView(op).lanes());
  const double atoms = op.k_end - op.k_begin;
  found.asked = atoms * (element + kIndexBytes);
  found.lookups = found.asked / std::min(kMemoryLineBytes, lanes_per_wave * kIndexBytes);
  Waves waves(threads, lanes_per_wave, sharing == LaneSharing::vector ? SparseView(op).lanes() : 1);
  switch (sharing) {
    case LaneSharing::row:
      found.asked = found.lookups = 0;
      for_each_length(matrix, op, [&](std::int32_t row, std::int32_t length) {
        waves.add(row, std::max(1, length), length);
        add_walks(1, length, element, found);
      });
      break;
    case LaneSharing::vector: {
      const double sums = std::log2(std::min(lanes, static_cast<double>(lanes_per_wave)));
      const double rounds = std::ceil(op.rect.rows / std::max(1.0, threads / lanes));
      for_each_length(matrix, op, [&](std::int32_t row, std::int32_t length) {
        waves.add(row, std::max(1.0, std::ceil(length / lanes)) + log2_of(lanes) / kStepInstructions, length);
      });
      found.waits = rounds * (sums + (lanes > lanes_per_wave ? kCarryWaits : 0));
      found.exchanges = rounds * sums * std::ceil(threads / static_cast<double>(lanes_per_wave));
      break;
    }
    case LaneSharing::group: {
      GroupWaves groups(matrix, op, threads, lanes_per_wave);
      groups.walk();
      groups.finish(found);
      return found;
    }
    case LaneSharing::even: {
      const double things = op.rect.rows + atoms;
      for (std::int32_t lane = 0; lane < threads; ++lane) {
        waves.add(lane, std::ceil(things / threads), atoms / threads);
      }
      found.asked = found.lookups = 0;
      add_walks(threads, atoms / threads, element, found);
      found.instructions += kStepInstructions / 2;  // a step is a nonzero or the end of a row
      add_even_share(op, threads, lanes_per_wave, staged, found);
      break;
    }
  }
  waves.finish(found);
  return found;
}

}  // namespace tritax
