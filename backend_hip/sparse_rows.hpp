// Rows of a sparse product by the lanes of one workgroup, in the four ways of LaneSharing; y is written as
// rows are finished. The code is written for a Team: the interpreter kernels implement one (tile_sparse.hpp),
// and tests emulate one on a CPU, lane by lane. A Team offers
//
//   kLanes                          lanes per wave
//   thread(), threads()             place in the workgroup, and its size, a multiple of kLanes
//   barrier()                       barrier of the workgroup
//   below(v, d), above(v, d)        v of the lane d before or behind; called by all lanes of a wave together
//   from(v, l)                      v of lane l of the wave
//   last_mark(l)                    the last lane up to this one that any lane of the wave names; -1: none.
//                                   l below 0 names none
//   any(b)                          whether b holds on any lane of the wave
//   element<dtype>(address)         a number in memory
//   store(y, v), add(y, v)          to y; add is atomic
//   room()                          storage of the workgroup for row ends
//   row_carry(), sum_carry()        one entry of each per wave
#pragma once

#include <cstdint>

#include "backend_hip/device_op.hpp"
#include "model/core/dtype.hpp"
#include "model/schedule/schedule.hpp"

#if defined(__CUDACC__) || defined(__HIP__)
#define TRITAX_ON_DEVICE __device__ __forceinline__
#define TRITAX_UNROLL _Pragma("unroll")
#else
#define TRITAX_ON_DEVICE inline
#define TRITAX_UNROLL
#endif

namespace tritax::gpu {

// Fields of the operation for the loops, copied from shared memory, which the compiler would read again.
struct SparseWork {
  const std::int32_t* offsets;  // of the first row
  const std::int32_t* columns;
  const unsigned char* values;
  const unsigned char* x;
  unsigned char* y;  // of the first row
  std::int32_t x_pitch, y_pitch;
  std::int32_t rows, k_begin, k_end;
  std::int32_t sums;  // SparseSums
};

template <class Team, DType dtype>
class SparseRows {
 public:
  TRITAX_ON_DEVICE SparseRows(Team& team, const SparseWork& work) : team_(team), work_(work) {}

  // One lane per row.
  TRITAX_ON_DEVICE void by_row() {
    for (int row = team_.thread(); row < work_.rows; row += team_.threads()) {
      put(row, sum_of(begin_of(row), end_of(row), 1));
    }
  }

  // `lanes` lanes per row: a power of two, at most the workgroup's threads.
  TRITAX_ON_DEVICE void by_vector(int lanes) {
    const int lane = team_.thread() & (lanes - 1);
    const int groups = team_.threads() / lanes;
    const int group = team_.thread() / lanes;
    for (int first = 0; first < work_.rows; first += groups) {
      const int row = first + group;
      const bool has_row = group < groups && row < work_.rows;
      float sum = has_row ? sum_of(begin_of(row) + lane, end_of(row), lanes) : 0.0F;
      const int within = lanes < Team::kLanes ? lanes : Team::kLanes;
      for (int distance = within / 2; distance > 0; distance /= 2) sum += team_.above(sum, distance);
      if (lanes > Team::kLanes) sum = sum_over_waves(sum, lanes);
      if (lane == 0 && has_row) put(row, sum);
    }
  }

  // `lanes` lanes on as many rows: a power of two, at most a wave. Sums stay in registers: each lane has the
  // sum of its own row.
  TRITAX_ON_DEVICE void by_group(int lanes) {
    for (int first = 0; first < work_.rows; first += team_.threads()) {
      const int row = first + team_.thread();
      const bool has_row = row < work_.rows;
      const float sum =
          sum_rows(has_row ? begin_of(row) : work_.k_end, has_row ? end_of(row) : work_.k_end, lanes);
      if (has_row) put(row, sum);
    }
  }

  // Groups of several waves: each wave has an even share of the group's nonzeros and finds their rows among
  // the rows of the group. The wave with the last nonzero of a row writes the row, including the sums of
  // earlier waves.
  TRITAX_ON_DEVICE void by_wide_group(int lanes) {
    const int lane = team_.thread() % Team::kLanes;
    const int wave = team_.thread() / Team::kLanes;
    const int waves = lanes / Team::kLanes;
    const int groups = team_.threads() / lanes;
    const int first_wave = wave / waves * waves;
    for (int first = 0; first < work_.rows; first += groups * lanes) {
      const int first_row = least(first + first_wave * Team::kLanes, work_.rows);
      const int end_row = wave / waves < groups ? least(first_row + lanes, work_.rows) : first_row;
      const std::int32_t begin = first_row < end_row ? begin_of(first_row) : work_.k_end;
      const std::int32_t end = first_row < end_row ? end_of(end_row - 1) : work_.k_end;
      const std::int32_t share = (end - begin + waves - 1) / waves;
      const std::int32_t share_begin = least(begin + (wave - first_wave) * share, end);
      const std::int32_t share_end = least(share_begin + share, end);
      Part ends, stops;  // the row that earlier waves have begun, and the row that later waves continue
      for (int block = first_row; block < end_row; block += Team::kLanes) {
        const int row = block + lane;
        const std::int32_t row_begin = row < end_row ? begin_of(row) : end;
        const std::int32_t row_end = row < end_row ? end_of(row) : end;
        const std::int32_t from = least(most(row_begin, share_begin), share_end);
        const std::int32_t to = least(most(row_end, share_begin), share_end);
        const float sum = team_.any(from < to) ? sum_rows(from, to, Team::kLanes) : 0.0F;
        if (from < to) {
          if (to < row_end) {
            stops = {row, sum};
          } else if (row_begin < from) {
            ends = {row, sum};
          } else {
            put(row, sum);
          }
        } else if (row < end_row && row_begin == row_end &&
                   block - first_row == (wave - first_wave) * Team::kLanes) {
          put(row, 0);
        }
      }
      add_parts(ends, stops, first_wave);
    }
  }

  // Each lane has an even share of rows and nonzeros: steps of the merge path (model/parts/load_balance.hpp)
  // within the operation. A lane's partial sum of its last row goes to the lane that ends this row. `staged`:
  // row ends lie in the room.
  TRITAX_ON_DEVICE void by_even_share(bool staged) {
    team_.barrier();  // protects the room and the carries of an earlier operation
    if (staged) {
      for (int row = team_.thread(); row < work_.rows; row += team_.threads())
        team_.room()[row] = end_of(row);
      team_.barrier();
    }
    const std::int32_t steps = work_.rows + (work_.k_end - work_.k_begin);
    const std::int32_t share = (steps + team_.threads() - 1) / team_.threads();
    const std::int32_t begin = least(team_.thread() * share, steps);
    const std::int32_t end = least(begin + share, steps);
    const std::int32_t first_row = row_at(begin, staged);
    const std::int32_t last_row = row_at(end, staged);
    const Walked walked =
        walk(first_row, last_row, work_.k_begin + begin - first_row, work_.k_begin + end - last_row, staged);
    end_first_row(first_row, last_row, walked);
  }

 private:
  static constexpr int kAtOnce = 4;  // steps under way, as the cost law has it (model/cost/sparse_cost.hpp)

  struct Walked {
    float of_first_row = 0;  // of the row in which the lane began, if it ended there
    float rest = 0;          // of the row in which the lane stopped
  };

  TRITAX_ON_DEVICE static std::int32_t least(std::int32_t a, std::int32_t b) { return a < b ? a : b; }
  TRITAX_ON_DEVICE static std::int32_t most(std::int32_t a, std::int32_t b) { return a > b ? a : b; }

  // Nonzeros of a row that belong to the operation.
  TRITAX_ON_DEVICE std::int32_t begin_of(int row) const {
    return least(most(work_.offsets[row], work_.k_begin), work_.k_end);
  }
  TRITAX_ON_DEVICE std::int32_t end_of(int row) const { return begin_of(row + 1); }
  TRITAX_ON_DEVICE std::int32_t end_of(int row, bool staged) const {
    return staged ? team_.room()[row] : end_of(row);
  }

  TRITAX_ON_DEVICE float product(std::int32_t k) const {
    const float value =
        team_.template element<dtype>(work_.values + static_cast<std::int64_t>(k) * bytes_of(dtype));
    return value * team_.template element<dtype>(work_.x +
                                                 static_cast<std::int64_t>(work_.columns[k]) * work_.x_pitch);
  }

  TRITAX_ON_DEVICE float sum_of(std::int32_t k, std::int32_t end, int step) const {
    float sum = 0;
    for (; k + (kAtOnce - 1) * step < end; k += kAtOnce * step) {
      float products[kAtOnce];
      TRITAX_UNROLL
      for (int i = 0; i < kAtOnce; ++i) products[i] = product(k + i * step);
      TRITAX_UNROLL
      for (int i = 0; i < kAtOnce; ++i) sum += products[i];
    }
    for (; k < end; k += step) sum += product(k);
    return sum;
  }

  TRITAX_ON_DEVICE void put(int row, float sum) {
    auto* const y = reinterpret_cast<float*>(work_.y + static_cast<std::int64_t>(row) * work_.y_pitch);
    const bool adds = (row == 0 && (work_.sums & kAddsFirstRow) != 0) ||
                      (row == work_.rows - 1 && (work_.sums & kAddsLastRow) != 0);
    if (adds) {
      team_.add(y, sum);
    } else {
      team_.store(y, sum);
    }
  }

  // Sums over lanes of several waves; each wave has its sum on its first lane.
  TRITAX_ON_DEVICE float sum_over_waves(float sum, int lanes) {
    const int wave = team_.thread() / Team::kLanes;
    team_.barrier();
    if (team_.thread() % Team::kLanes == 0) team_.sum_carry()[wave] = sum;
    team_.barrier();
    for (int other = 1; other < lanes / Team::kLanes; ++other) {
      if (team_.thread() % lanes == 0) sum += team_.sum_carry()[wave + other];
    }
    return sum;
  }

  // A row, and a wave's partial sum of it; no row: -1.
  struct Part {
    std::int32_t row = -1;
    float sum = 0;
  };

  TRITAX_ON_DEVICE void add_parts(Part ends, const Part& stops, int first_wave) {
    const int wave = team_.thread() / Team::kLanes;
    const bool none = !team_.any(stops.row >= 0);
    team_.barrier();  // earlier carries have been read
    if (stops.row >= 0 || (none && team_.thread() % Team::kLanes == 0)) {
      team_.row_carry()[wave] = stops.row;
      team_.sum_carry()[wave] = stops.sum;
    }
    team_.barrier();
    if (ends.row < 0) return;
    for (int other = wave - 1; other >= first_wave && team_.row_carry()[other] == ends.row; --other) {
      ends.sum += team_.sum_carry()[other];
    }
    put(ends.row, ends.sum);
  }

  // Sums of adjacent rows, one per lane; [begin, end): nonzeros of the lane's row. `lanes` lanes of the wave
  // go through the nonzeros of their rows together, and each lane gets the sum of its row. Within one row
  // each lane adds up its products; where rows begin, products are summed by segments.
  TRITAX_ON_DEVICE float sum_rows(std::int32_t begin, std::int32_t end, int lanes) {
    const int lane = team_.thread() % Team::kLanes;
    const int base = lane & ~(lanes - 1);  // the first of these lanes
    const std::int32_t last = team_.from(end, base + lanes - 1);
    float sum = 0;
    float rest = 0;  // of the row that continues
    bool goes_on = false;
    std::int32_t k = team_.from(begin, base);
    for (; team_.any(k < last); k += kAtOnce * lanes) {
      float products[kAtOnce];
      TRITAX_UNROLL
      for (int i = 0; i < kAtOnce; ++i) {
        const std::int32_t at = k + i * lanes + lane - base;
        const float one = product(least(at, work_.k_end - 1));
        products[i] = at < last ? one : 0.0F;
      }
      if (!team_.any(begin < end && begin >= k && begin < k + kAtOnce * lanes)) {
        TRITAX_UNROLL
        for (int i = 0; i < kAtOnce; ++i) rest += products[i];
        goes_on = true;
        continue;
      }
      if (goes_on) sum += of_own_row(rest, begin, end, least(k, last), lanes);
      goes_on = false;
      rest = 0;
      add_segments(products, begin, end, k, lanes, sum);
    }
    return goes_on ? sum + of_own_row(rest, begin, end, least(k, last), lanes) : sum;
  }

  // The sum over all lanes for the row that continues until `stop`, on the lane of this row; else 0.
  TRITAX_ON_DEVICE float of_own_row(float rest, std::int32_t begin, std::int32_t end, std::int32_t stop,
                                    int lanes) {
    const int lane = team_.thread() % Team::kLanes;
    for (int distance = lanes / 2; distance > 0; distance /= 2) rest += team_.from(rest, lane ^ distance);
    return begin < stop && stop <= end ? rest : 0.0F;
  }

  // Products of kAtOnce times `lanes` nonzeros from k on: sums within each row, by a scan back to the begin
  // of the row; the last sum of each row then goes to the lane of the row.
  TRITAX_ON_DEVICE void add_segments(float (&products)[kAtOnce], std::int32_t begin, std::int32_t end,
                                     std::int32_t k, int lanes, float& sum) {
    const int lane = team_.thread() % Team::kLanes;
    const int base = lane & ~(lanes - 1);
    int reach[kAtOnce];  // earlier lanes with the same row
    TRITAX_UNROLL
    for (int i = 0; i < kAtOnce; ++i) {
      const std::int32_t place = begin - (k + i * lanes);
      const bool begins = begin < end && place >= 0 && place < lanes;
      reach[i] = lane - most(base, team_.last_mark(begins ? base + place : -1));
    }
    for (int distance = 1; distance < lanes; distance *= 2) {
      TRITAX_UNROLL
      for (int i = 0; i < kAtOnce; ++i) {
        const float more = team_.below(products[i], distance);
        if (distance <= reach[i]) products[i] += more;
      }
    }
    TRITAX_UNROLL
    for (int i = 0; i < kAtOnce; ++i) {
      const std::int32_t first = k + i * lanes;
      const std::int32_t stop = least(end, first + lanes);
      const bool has_some = begin < stop && first < end;
      const float of_row = team_.from(products[i], has_some ? base + (stop - 1 - first) : lane);
      if (has_some) sum += of_row;
    }
  }

  // The row of a step of the merge path.
  TRITAX_ON_DEVICE std::int32_t row_at(std::int32_t step, bool staged) const {
    std::int32_t low = most(0, step - (work_.k_end - work_.k_begin));
    std::int32_t high = least(step, work_.rows);
    while (low < high) {
      const std::int32_t middle = low + (high - low) / 2;
      if (end_of(middle, staged) - work_.k_begin <= step - middle - 1) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  // Walks nonzeros [k, k_end), and the ends of rows [row, last); writes all rows but the first.
  TRITAX_ON_DEVICE Walked walk(std::int32_t row, std::int32_t last, std::int32_t k, std::int32_t k_end,
                               bool staged) {
    Walked walked;
    const std::int32_t first = row;
    std::int32_t row_end = row < last ? end_of(row, staged) : k_end;
    const auto end_rows_before = [&](std::int32_t at) {
      while (row < last && row_end <= at) {
        if (row == first) {
          walked.of_first_row = walked.rest;
        } else {
          put(row, walked.rest);
        }
        walked.rest = 0;
        ++row;
        if (row < last) row_end = end_of(row, staged);
      }
    };
    for (; k < k_end; k += kAtOnce) {
      float products[kAtOnce];
      TRITAX_UNROLL
      for (int i = 0; i < kAtOnce; ++i) products[i] = k + i < k_end ? product(k + i) : 0.0F;
      TRITAX_UNROLL
      for (int i = 0; i < kAtOnce; ++i) {
        if (k + i < k_end) end_rows_before(k + i);
        walked.rest += products[i];
      }
    }
    end_rows_before(k_end);
    return walked;
  }

  // Adds up the rests of all lanes that stopped in the same row, for the lane that ends the row, by a scan
  // over the wave and then over earlier waves.
  TRITAX_ON_DEVICE void end_first_row(std::int32_t first_row, std::int32_t last_row, const Walked& walked) {
    const int lane = team_.thread() % Team::kLanes;
    const int wave = team_.thread() / Team::kLanes;
    float rest = walked.rest;
    for (int distance = 1; distance < Team::kLanes; distance *= 2) {
      const std::int32_t other = team_.below(last_row, distance);
      const float more = team_.below(rest, distance);
      if (lane >= distance && other == last_row) rest += more;
    }
    const float before = team_.below(rest, 1);
    if (lane == Team::kLanes - 1) {
      team_.row_carry()[wave] = last_row;
      team_.sum_carry()[wave] = rest;
    }
    team_.barrier();
    if (first_row == last_row) return;  // ends no row
    float sum = walked.of_first_row;
    if (lane > 0) sum += before;
    for (int other = wave - 1; other >= 0 && team_.row_carry()[other] == first_row; --other) {
      sum += team_.sum_carry()[other];
    }
    put(first_row, sum);
  }

  Team& team_;
  const SparseWork& work_;
};

// `sharing`, `lanes` and `staged` as in DeviceOp.
template <class Team, DType dtype>
TRITAX_ON_DEVICE void sparse_rows(Team& team, const SparseWork& work, LaneSharing sharing, int lanes,
                                  bool staged) {
  SparseRows<Team, dtype> rows(team, work);
  switch (sharing) {
    case LaneSharing::row:
      return rows.by_row();
    case LaneSharing::vector:
      return rows.by_vector(lanes);
    case LaneSharing::group:
      return lanes > Team::kLanes ? rows.by_wide_group(lanes) : rows.by_group(lanes);
    case LaneSharing::even:
      return rows.by_even_share(staged);
  }
}

}  // namespace tritax::gpu
