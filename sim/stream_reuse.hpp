// Which share of what a workgroup streams through, keys and values of attention, a cache has from others.
//
// A *stream* is a long row of bytes, the keys and values of a head, that many readers go through from one end
// to the other, each at its own pace, for far longer than a cache holds. Lines are looked at through the
// times at which readers pass them: with u and t the times at which two readers pass a line, the second finds
// it if no more distinct bytes have been used between u and t than the cache holds, which is LRU. The time in
// which that many are used, the *window* T, is nearly the same for all lines of a cache (the approximation of
// Che et al., IEEE JSAC 20(7), 2002): with readers i that take s_i ns a byte, and are g_i bytes behind the
// next reader of their stream,
//
//     capacity = Σ_i min(g_i, T / s_i)        a stream counts with no more bytes than it has
//
// for within T a reader uses new bytes until it comes to where the next one was. So a line is found if
// anybody has passed it within T. Who passes first fetches it; of two readers that began a piece together,
// the one that was there first is taken to, whoever is faster. T follows from where all are at the time and
// is found anew after some of them have begun another piece; where all streams fit, it is infinite.
//
// Readers are asked for a piece at a time and looked at in kSamples places of it. tests/sim/stream_reuse_test
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

  // A piece [begin, end) of a stream, read from `start_ns` on. `run_begin`: where its reader came into the
  // stream. `weight`: the share of the lines that it brings into this cache, by chance.
  struct Piece {
    std::uint32_t stream = 0;
    double begin = 0, end = 0;  // bytes
    double run_begin = 0;
    double start_ns = 0;
    double ns_per_byte = 0;  // as expected
    double weight = 1;
    double missed = 1;  // share of its bytes that it fetches itself, for others to find

    double passes_ns(double place) const { return start_ns + (place - begin) * ns_per_byte; }
  };

  struct Found {
    double share = 0;         // of its bytes
    double no_sooner_ns = 0;  // who fetches what it finds, and is ahead of it now, comes to its end then
  };
  Found found(const Piece& piece);

  // It begins; the number is good until end().
  std::uint32_t begin(const Piece& piece);
  void end(std::uint32_t reader, double now_ns);

  // The window as of the last piece; infinite if everything fits.
  double window_ns() const { return window_ns_; }

 private:
  static constexpr std::uint32_t kNobody = 0xffffffffu;

  // Pieces that begin at one place of a stream, which most readers cut alike.
  struct Segment {
    double begin = 0, end = 0;
    std::vector<std::uint32_t> readers;  // that are in it
    Piece last;                          // of those that have left it; its weight is 0 if there is none
  };
  struct Stream {
    double begin = 0, end = 0;
    std::vector<Segment> segments;  // by begin
    double longest = 0;             // of them
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
