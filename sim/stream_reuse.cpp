#include "sim/stream_reuse.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace tritax {

// Reduces the missed share of each sample of `piece` by the share that `other` has.
void StreamReuse::note(const Piece& other, const Piece& piece, double* missed) const {
  if (other.weight <= 0 || other.begin >= piece.end || other.end <= piece.begin) return;
  const double step = (piece.end - piece.begin) / kSamples;
  for (int i = 0; i < kSamples; ++i) {
    const double place = piece.begin + (i + 0.5) * step;
    if (place < other.begin || place >= other.end) continue;
    if (std::abs(piece.passes_ns(place) - other.passes_ns(place)) <= window_ns_)
      missed[i] *= 1 - other.weight;
  }
}

StreamReuse::Found StreamReuse::found(const Piece& piece) {
  if (until_anew_ == 0) find_window(piece.start_ns);
  const auto at = streams_.find(piece.stream);
  if (at == streams_.end()) return {};
  Found found;
  const Stream& stream = at->second;
  std::array<double, kSamples> missed;
  missed.fill(1);
  const auto first =
      std::upper_bound(stream.segments.begin(), stream.segments.end(), piece.begin - stream.longest,
                       [](double place, const Segment& segment) { return place < segment.begin; });
  for (auto segment = first == stream.segments.begin() ? first : first - 1;
       segment != stream.segments.end() && segment->begin < piece.end; ++segment) {
    if (segment->end <= piece.begin) continue;
    note(segment->last, piece, missed.data());
    for (const std::uint32_t reader : segment->readers) {
      const Piece& other = readers_[reader].piece;
      note(other, piece, missed.data());
      const bool leads = other.missed > 0.5 && other.begin <= piece.begin && other.end > piece.begin &&
                         piece.start_ns - other.passes_ns(piece.begin) <= window_ns_;
      if (leads)
        found.no_sooner_ns = std::max(found.no_sooner_ns, other.passes_ns(std::min(piece.end, other.end)));
    }
  }
  double sum = 0;
  for (const double share : missed) sum += share;
  found.share = 1 - sum / kSamples;
  return found;
}

StreamReuse::Segment& StreamReuse::segment_of(Stream& stream, const Piece& piece) {
  const auto at =
      std::lower_bound(stream.segments.begin(), stream.segments.end(), piece.begin,
                       [](const Segment& segment, double place) { return segment.begin < place; });
  if (at != stream.segments.end() && at->begin == piece.begin) return *at;
  Segment segment;
  segment.begin = segment.end = piece.begin;
  segment.last.weight = 0;
  return *stream.segments.insert(at, std::move(segment));
}

std::uint32_t StreamReuse::begin(const Piece& piece) {
  std::uint32_t number = static_cast<std::uint32_t>(readers_.size());
  if (free_.empty()) {
    readers_.emplace_back();
  } else {
    number = free_.back();
    free_.pop_back();
  }
  readers_[number] = {piece, true};
  Stream& stream = streams_[piece.stream];
  if (stream.segments.empty()) stream.begin = piece.begin;
  stream.begin = std::min(stream.begin, piece.begin);
  stream.end = std::max(stream.end, piece.end);
  stream.longest = std::max(stream.longest, piece.end - piece.begin);
  Segment& segment = segment_of(stream, piece);
  segment.end = std::max(segment.end, piece.end);
  segment.readers.push_back(number);
  ++stream.readers;
  ++active_;
  if (until_anew_ > 0) --until_anew_;
  return number;
}

void StreamReuse::end(std::uint32_t number, double now_ns) {
  Reader& reader = readers_[number];
  reader.active = false;
  Piece piece = reader.piece;
  piece.ns_per_byte = (now_ns - piece.start_ns) / std::max(1.0, piece.end - piece.begin);
  Stream& stream = streams_[piece.stream];
  Segment& segment = segment_of(stream, piece);
  std::erase(segment.readers, number);
  // Of two pieces that have ended, the later one passed every place later, up to its end.
  if (segment.last.weight <= piece.weight || segment.last.end <= piece.end) segment.last = piece;
  free_.push_back(number);
  --active_;
  if (--stream.readers == 0 && !std::isinf(window_ns_)) {
    // A piece that ended longer ago than a window is no longer in the cache.
    std::erase_if(stream.segments, [&](const Segment& old) {
      return old.readers.empty() && old.last.passes_ns(old.last.end) < now_ns - window_ns_;
    });
  }
}

// Distinct bytes used within `window_ns`.
double StreamReuse::used_within(double window_ns) const {
  double used = 0;
  for (std::size_t i = 0; i < places_.size();) {
    double of_stream = 0;
    const Place& first = places_[i];
    for (; i < places_.size() && places_[i].stream == first.stream; ++i) {
      const Place& place = places_[i];
      of_stream += place.weight * std::min(place.gap, window_ns / place.ns_per_byte);
    }
    used += std::min(of_stream, first.stream_bytes);
  }
  return used;
}

void StreamReuse::find_window(double now_ns) {
  places_.clear();
  for (const Reader& reader : readers_) {
    if (!reader.active) continue;
    const Piece& piece = reader.piece;
    const double read = (now_ns - piece.start_ns) / piece.ns_per_byte;
    const Stream& stream = streams_.at(piece.stream);
    places_.push_back({piece.stream, std::min(piece.end, piece.begin + read), piece.run_begin, 0,
                       piece.ns_per_byte, piece.weight, stream.end - stream.begin});
  }
  std::sort(places_.begin(), places_.end(), [](const Place& a, const Place& b) {
    return a.stream != b.stream ? a.stream < b.stream : a.at < b.at;
  });
  constexpr double kNoNext = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const bool follows = i + 1 < places_.size() && places_[i + 1].stream == places_[i].stream &&
                         places_[i + 1].run_begin <= places_[i].at;
    places_[i].gap = follows ? places_[i + 1].at - places_[i].at : kNoNext;
  }
  until_anew_ = std::max(1u, active_ / 2);
  window_ns_ = kNoNext;
  if (places_.empty() || used_within(1e300) <= capacity_bytes_) return;
  double low = 0, high = 1;
  while (used_within(high) < capacity_bytes_) high *= 2;
  constexpr int kSteps = 30;
  for (int i = 0; i < kSteps; ++i) {
    const double middle = (low + high) / 2;
    (used_within(middle) < capacity_bytes_ ? low : high) = middle;
  }
  window_ns_ = high;
}

}  // namespace tritax
