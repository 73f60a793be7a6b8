// Copies of tiles by all threads of a team: words of 16 bytes where both sides allow it, smaller units
// elsewhere.
#pragma once

#include "backend_hip/device.hpp"
#include "backend_hip/device_op.hpp"

namespace tritax::gpu {

// Deals the words of a tile out to the threads, row after row. A thread has `in_flight` words on their way
// before it stores the first. `load` takes row and column and returns a word; `store` also takes the word.
template <int in_flight, class Load, class Store>
__device__ inline void deal_words(int rows, int row_words, int thread, int threads, Load load, Store store) {
  const int row_step = threads / row_words;
  const int col_step = threads - row_step * row_words;
  WordCursor from{thread / row_words, thread % row_words};
  WordCursor to = from;
  while (to.row < rows) {
    decltype(load(0, 0)) words[in_flight];
#pragma unroll
    for (int i = 0; i < in_flight; ++i) {
      if (from.row < rows) words[i] = load(from.row, from.col);
      from.advance(row_step, col_step, row_words);
    }
#pragma unroll
    for (int i = 0; i < in_flight; ++i) {
      if (to.row < rows) store(to.row, to.col, words[i]);
      to.advance(row_step, col_step, row_words);
    }
  }
}

// Moves a tile between any two ranks, from `skipped` bytes behind the begin of each row. Fields of the
// operation are copied out before the loop: the accesses are opaque to the compiler, which would read the
// fields from shared memory again for every word.
template <class Word, int in_flight>
__device__ inline void copy_words(const DeviceOp& op, int skipped, int row_words, int thread, int threads) {
  const auto* source = reinterpret_cast<const unsigned char*>(op.source) + skipped;
  auto* target = reinterpret_cast<unsigned char*>(op.address) + skipped;
  const std::int64_t source_pitch = op.source_pitch;
  const std::int64_t target_pitch = op.pitch;
  const auto load = [=](int row, int col) -> Word {
    const unsigned char* address = source + row * source_pitch + col * sizeof(Word);
    if constexpr (sizeof(Word) == 16)
      return load_16(address);
    else
      return *reinterpret_cast<const volatile Word*>(address);
  };
  const auto store = [=](int row, int col, const Word& word) {
    unsigned char* address = target + row * target_pitch + col * sizeof(Word);
    if constexpr (sizeof(Word) == 16)
      store_16(address, word);
    else
      *reinterpret_cast<Word*>(address) = word;
  };
  deal_words<in_flight>(op.rows, row_words, thread, threads, load, store);
}

// Copies rows that begin and end anywhere, but at the same offset within 16 bytes on both sides: whole words,
// and the parts before and behind them in units. Loads of units are on their way while words move.
template <class Unit, int in_flight>
__device__ inline void copy_ragged(const DeviceOp& op, int row_bytes, int thread, int threads) {
  constexpr int kUnit = sizeof(Unit);
  constexpr int kHeld = 4;
  const RowEdges edges(static_cast<int>(op.address & 15) / kUnit, row_bytes / kUnit, 16 / kUnit);
  const int units = op.rows * edges.count();
  for (int first = thread; first == thread || first < units; first += kHeld * threads) {
    Unit held[kHeld];
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
      const int unit = first + i * threads;
      if (unit >= units) break;
      const int row = unit / edges.count();
      held[i] = *reinterpret_cast<const volatile Unit*>(op.source + row * std::int64_t{op.source_pitch} +
                                                        edges.unit(unit - row * edges.count()) * kUnit);
    }
    if (first == thread && edges.tail > edges.head)
      copy_words<uint4, in_flight>(op, edges.head * kUnit, edges.whole_words(16 / kUnit), thread, threads);
#pragma unroll
    for (int i = 0; i < kHeld; ++i) {
      const int unit = first + i * threads;
      if (unit >= units) break;
      const int row = unit / edges.count();
      *reinterpret_cast<Unit*>(op.address + row * std::int64_t{op.pitch} +
                               edges.unit(unit - row * edges.count()) * kUnit) = held[i];
    }
  }
}

// Uses 16 bytes per access where both sides allow it, and no more words in flight than the tile has, because
// skipped words still cost a thread instructions.
template <int in_flight>
__device__ inline void copy_tile(const DeviceOp& op, int thread, int threads) {
  const int row_bytes = op.cols * bytes_of(static_cast<DType>(op.dtype));
  const bool alike = ((op.address ^ op.source) & 15) == 0 && ((op.pitch | op.source_pitch) & 15) == 0;
  constexpr int kEight = in_flight < 8 ? in_flight : 8;
  constexpr int kRagged = in_flight < 16 ? 4 : 16;
  if (op.width == 16 && row_bytes % 16 == 0) {
    const int row_words = row_bytes / 16;
    const int words = op.rows * row_words;
    if (words <= 4 * threads) {
      copy_words<uint4, 4>(op, 0, row_words, thread, threads);
    } else if (words <= 8 * threads || in_flight <= 8) {
      copy_words<uint4, kEight>(op, 0, row_words, thread, threads);
    } else {
      copy_words<uint4, in_flight>(op, 0, row_words, thread, threads);
    }
  } else if (alike && op.width >= 4 && row_bytes % 4 == 0) {
    copy_ragged<std::uint32_t, kRagged>(op, row_bytes, thread, threads);
  } else if (alike && op.width >= 2 && row_bytes % 2 == 0) {
    copy_ragged<unsigned short, kRagged>(op, row_bytes, thread, threads);
  } else if (alike) {
    copy_ragged<unsigned char, kRagged>(op, row_bytes, thread, threads);
  } else if (op.width >= 4 && row_bytes % 4 == 0) {
    copy_words<std::uint32_t, 4>(op, 0, row_bytes / 4, thread, threads);
  } else if (op.width >= 2 && row_bytes % 2 == 0) {
    copy_words<unsigned short, 4>(op, 0, row_bytes / 2, thread, threads);
  } else {
    copy_words<unsigned char, 4>(op, 0, row_bytes, thread, threads);
  }
}

}  // namespace tritax::gpu
