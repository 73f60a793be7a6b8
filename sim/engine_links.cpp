// What an operation takes of the links: its place among those that copy, and its share of a full link.
#include "sim/engine_links.hpp"

namespace tritax::engine {

// Whether an operation stores over links that carry less the fewer do so. What the copy engine stores is left
// out: it fills a link with fewer workgroups (tiles stored by 32 come to 350 GB/s on 2 H200, copies to 318),
// though by 16 it comes to no more than 300 either (scenarios/measured/h200-2-filling.csv). Another node lies
// behind a network, whose links are no GPU's. Nor do kernels count that fill a link however few they are.
bool Links::crowds(const WorkgroupState& wg, const DataPath& path) const {
  if (!crowding_.any() || !run_.costs_of(wg).leaves_lanes_idle) return false;
  const std::int32_t per_node = run_.machine.gpus_per_node;
  return path.peer / per_node == path.rank / per_node &&
         (path.kind == MoveKind::remote_copy || (path.kind == MoveKind::remote_store && !wg.has_sender));
}

// One more on the links of the sender and the receiver.
void Links::join(DataPath& path) {
  const auto& edges =
      run_.topology.routes[static_cast<std::size_t>(path.rank)][static_cast<std::size_t>(path.peer)];
  const auto step = [&](int edge) -> std::uint8_t {
    const std::int32_t copies = ++copies_on_link_[static_cast<std::size_t>(edge)];
    // A link that is not full has time for all lanes.
    const bool full = run_.fluid.saturated(link_resource_[static_cast<std::size_t>(edge)]);
    return full ? Crowding::step_of(copies) : 0;
  };
  path.crowd_out = step(edges.front());
  if (edges.size() > 1) path.crowd_in = step(edges.back());
}

void Links::leave(const WorkgroupState& wg) {
  const auto& edges =
      run_.topology.routes[static_cast<std::size_t>(wg.rank)][static_cast<std::size_t>(wg.store_rank)];
  --copies_on_link_[static_cast<std::size_t>(edges.front())];
  if (edges.size() > 1) --copies_on_link_[static_cast<std::size_t>(edges.back())];
}

// Of links that carry the same, the first, with what of it is there for those that are simulated.
void Links::add() {
  for (const TopologyEdge& edge : run_.topology.edges) {
    AlikeLink like{edge.index, 1};
    if (run_.alike.links != nullptr) like = (*run_.alike.links)[static_cast<std::size_t>(edge.index)];
    link_resource_.push_back(like.first < edge.index
                                 ? link_resource_[static_cast<std::size_t>(like.first)]
                                 : run_.fluid.add_resource(like.share * edge.raw_gb_per_s, true));
  }
  sent_bytes_.assign(
      static_cast<std::size_t>(run_.simulated_ranks) * static_cast<std::size_t>(run_.schedule.ranks), 0.0);
  copies_on_link_.assign(run_.topology.edges.size(), 0);
}

void Links::tell_rates(double now) {
  reported_rate_.resize(link_resource_.size(), 0.0);
  for (std::size_t edge = 0; edge < link_resource_.size(); ++edge) {
    const double rate = run_.fluid.load(link_resource_[edge]);
    if (rate == reported_rate_[edge]) continue;
    reported_rate_[edge] = rate;
    run_.options.observer->link_rate(static_cast<int>(edge), now, rate);
  }
}

std::vector<double> Links::carried_bytes() const {
  std::vector<double> carried(run_.topology.edges.size(), 0.0);
  for (std::int32_t from = 0; from < run_.schedule.ranks; ++from) {
    for (std::int32_t to = 0; to < run_.schedule.ranks; ++to) {
      for (const int edge :
           run_.topology.routes[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)]) {
        carried[static_cast<std::size_t>(edge)] += sent_bytes_[pair_of(from, to)];
      }
    }
  }
  return carried;
}

}  // namespace tritax::engine
