#include "model/timeline/overlap.hpp"

#include <algorithm>
#include <utility>

#include "model/schedule/op_traits.hpp"

namespace tritax {

namespace {

using Spans = std::vector<std::pair<double, double>>;  // begin and end

// The same times, in order and apart from each other.
Spans joined(Spans spans) {
  std::sort(spans.begin(), spans.end());
  Spans apart;
  for (const auto& [begin, end] : spans) {
    if (!apart.empty() && begin <= apart.back().second) {
      apart.back().second = std::max(apart.back().second, end);
    } else if (end > begin) {
      apart.emplace_back(begin, end);
    }
  }
  return apart;
}

double length_of(const Spans& apart) {
  double length = 0;
  for (const auto& [begin, end] : apart) length += end - begin;
  return length;
}

// Of two lists as `joined` gives them.
double common_length(const Spans& a, const Spans& b) {
  double length = 0;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    length += std::max(0.0, std::min(a[i].second, b[j].second) - std::max(a[i].first, b[j].first));
    if (a[i].second < b[j].second) {
      ++i;
    } else {
      ++j;
    }
  }
  return length;
}

}  // namespace

std::vector<Overlap> overlaps_of(const Timeline& timeline, const Schedule& schedule, double run_ns) {
  const auto ranks = static_cast<std::size_t>(schedule.ranks);
  std::vector<Spans> computing(ranks), communicating(ranks);
  for (const OpInterval& interval : timeline.ops) {
    const OpPlace& place = interval.place;
    const Op& op = op_of(schedule, place);
    const auto rank = static_cast<std::size_t>(place.rank);
    if (multiplies(op.kind) || op.kind == OpKind::sparse_product) {
      computing[rank].emplace_back(interval.begin_ns, interval.end_ns);
    } else if (moves_data(op.kind) && peer_of(op, place.rank) != place.rank) {
      communicating[rank].emplace_back(interval.begin_ns, interval.end_ns);
    }
  }
  for (const CopyInterval& copy : timeline.copies) {
    const HostOp& op = schedule.host[static_cast<std::size_t>(copy.rank)][copy.host_op];
    const Op& transfer = schedule.transfers[static_cast<std::size_t>(op.transfer)];
    if (transfer.rank == transfer.src_rank) continue;
    communicating[static_cast<std::size_t>(copy.rank)].emplace_back(copy.begin_ns, copy.end_ns);
  }
  std::vector<Overlap> overlaps;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const Spans a = joined(std::move(computing[rank]));
    const Spans b = joined(std::move(communicating[rank]));
    Overlap& one = overlaps.emplace_back();
    one.computing_ns = length_of(a);
    one.communicating_ns = length_of(b);
    one.both_ns = common_length(a, b);
    one.idle_ns = run_ns - (one.computing_ns + one.communicating_ns - one.both_ns);
  }
  return overlaps;
}

}  // namespace tritax
