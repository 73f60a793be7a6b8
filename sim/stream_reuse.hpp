// The share of a stream of keys and values of attention that a cache holds because of other readers.
//
// A *stream* is a long row of bytes, the keys and values of a head. Many readers go through it from one end
// to the other, each at its own pace, for far longer than a cache holds the bytes. The state of a line
// follows from the times at which readers pass it: if two readers pass a line at u and t, the second finds it
// if no more distinct bytes have been used between u and t than the cache holds, which is LRU. The time in
// which that many bytes are used, the *window* T, is nearly the same for all lines of a cache (the
// approximation of Che et al., IEEE JSAC 20(7), 2002). With readers i that take s_i ns per byte, and are g_i
// bytes behind the next reader of their stream,
//
//     capacity = Σ_i min(g_i, T / s_i)        a stream counts at most its own bytes
//
// because within T a reader uses new bytes until it comes to the place where the next reader was. So a line
// is found if any reader has passed it within T. The first reader to pass fetches the line; of two readers
// that began a piece together, the earlier one counts as the first, even if the other is faster. T follows
// from the present places of all readers and is found anew after some readers have begun another piece; if
// all streams fit, T is infinite.
//
// Readers ask for one piece at a time, which is evaluated at kSamples places. tests/sim/stream_reuse_test
// follows every line of small caches through exact LRU; both agree within a few percent of the lines.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace tritax {

class StreamReuse {
 public:
  static constexpr int kSamples = 8;

  explicit StreamReuse(double capacity_bytes) : capacity_bytes_(capacity_bytes) {}

  // A piece [begin, end) of a stream, read from `start_ns` on. `run_begin`: where the reader entered the
  // stream. `weight`: the random share of the lines that the reader brings into this cache.
  struct Piece {
    std::uint32_t stream = 0;
    double begin = 0, end = 0;  // bytes
    double run_begin = 0;
    double start_ns = 0;
    double ns_per_byte = 0;  // as expected
    double weight = 1;
    double missed = 1;  // share of the bytes that the reader fetches itself, for others to find

    double passes_ns(double place) const { return start_ns + (place - begin) * ns_per_byte; }
  };

  struct Found {
    double share = 0;         // of the bytes of the piece
    double no_sooner_ns = 0;  // end of the piece of the reader that is ahead and fetches the found lines
  };
  Found found(const Piece& piece);

  // The piece begins; the returned number is valid until end().
  std::uint32_t begin(const Piece& piece);
  void end(std::uint32_t reader, double now_ns);

  // The window as of the last piece; infinite if all streams fit.
  double window_ns() const { return window_ns_; }

 private:
  static constexpr std::uint32_t kNobody = 0xffffffffu;

  // Pieces that begin at one place of a stream; most readers cut a stream alike.
  struct Segment {
    double begin = 0, end = 0;
    std::vector<std::uint32_t> readers;  // readers in the segment
    Piece last;                          // of the pieces that have ended; weight 0 if there is none
  };
  struct Stream {
    double begin = 0, end = 0;
    std::vector<Segment> segments;  // sorted by begin
    double longest = 0;             // longest piece
    std::uint32_t readers = 0;
  };
  struct Reader {
    Piece piece;
    bool active = false;
  };

  Segment& segment_of(Stream& stream, const Piece& piece);
  void note(const Piece& other, const Piece& piece, double* missed) const;
  void find_window(double now_ns);
  double used_within(double window_ns) const;

  double capacity_bytes_ = 0;
  double window_ns_ = 0;
  std::uint32_t until_anew_ = 0;  // pieces that may begin before the window is found anew
  std::uint32_t active_ = 0;
  std::unordered_map<std::uint32_t, Stream> streams_;
  std::vector<Reader> readers_;
  std::vector<std::uint32_t> free_;

  struct Place {
    std::uint32_t stream = 0;
    double at = 0, run_begin = 0, gap = 0, ns_per_byte = 0, weight = 1, stream_bytes = 0;
  };
  std::vector<Place> places_;  // of the readers, by stream and place; scratch of find_window()
};

}  // namespace tritax
