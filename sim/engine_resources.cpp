// The resources of GPUs and links.
#include "sim/engine_resources.hpp"

#include <algorithm>

namespace tritax::engine {

SharedResources::SharedResources(Run& run)
    : run_(run),
      sent_bytes_(
          static_cast<std::size_t>(run.simulated_ranks) * static_cast<std::size_t>(run.schedule.ranks), 0.0),
      switch_out_bytes_(static_cast<std::size_t>(run.simulated_ranks), 0.0),
      switch_in_bytes_(switch_out_bytes_) {
  find_shares();
  add_links();
  add_gpus();
}

// A resource whose rate depends on the profile of a kernel has the highest of these rates; a byte of a slower
// profile counts for more.
void SharedResources::find_shares() {
  const auto stores = [&](KernelProfile profile) -> const LinkRates& {
    return run_.moves.links(profile, Traffic::stores);
  };
  double egress_gb_per_s = 0, ingress_gb_per_s = 0;
  for (const KernelProfile profile : run_.profiles) {
    egress_gb_per_s = std::max(egress_gb_per_s, stores(profile).egress_gb_per_s);
    ingress_gb_per_s = std::max(ingress_gb_per_s, stores(profile).ingress_gb_per_s);
    l2_gb_per_s_ = std::max(l2_gb_per_s_, l2_gb_per_s(run_.machine.gpu, run_.costs[profile]));
  }
  const auto share = [](double most, double own) { return own > 0 ? most / own : 1; };
  constexpr auto port = static_cast<std::size_t>(Ports::store);
  for (const KernelProfile profile : run_.profiles) {
    Shares& shares = shares_[static_cast<std::size_t>(profile)];
    shares.l2 = share(l2_gb_per_s_, l2_gb_per_s(run_.machine.gpu, run_.costs[profile]));
    shares.egress[port] = share(egress_gb_per_s, stores(profile).egress_gb_per_s);
    shares.ingress[port] = share(ingress_gb_per_s, stores(profile).ingress_gb_per_s);
  }
}

// Alike links share the first of them, with the share of its rate that the simulated ranks have.
void SharedResources::add_links() {
  for (const TopologyEdge& edge : run_.topology.edges) {
    AlikeLink like{edge.index, 1};
    if (run_.alike.links != nullptr) like = (*run_.alike.links)[static_cast<std::size_t>(edge.index)];
    links_.push_back(like.first < edge.index ? links_[static_cast<std::size_t>(like.first)]
                                             : run_.fluid.add_resource(like.share * edge.raw_gb_per_s, true));
  }
}

void SharedResources::add_gpus() {
  const Gpu& gpu = run_.machine.gpu;
  const auto wire = [&](double capacity) { return run_.fluid.add_resource(capacity, true); };
  const auto memory = [&](double capacity) { return run_.fluid.add_resource(capacity); };
  const auto raw_sum = [&](auto edges) {
    double sum = 0;
    for (auto [edge, end] = edges; edge != end; ++edge) sum += run_.topology.graph[*edge].raw_gb_per_s;
    return sum;
  };
  // A port that its links cannot fill limits nothing.
  const auto port = [&](Ports ports, double LinkRates::*rate, double raw_gb_per_s) {
    bool limits = false;
    double most = 0;
    for (const KernelProfile profile : run_.profiles) {
      for (const LinkRates& links : run_.moves.links(profile)) {
        if (links.ports != ports) continue;
        limits |= raw_gb_per_s * links.efficiency > links.*rate;
        most = std::max(most, links.*rate);
      }
    }
    return limits ? wire(most) : FluidNetwork::kNone;
  };
  const bool vector_work = std::any_of(run_.schedule.kernels.begin(), run_.schedule.kernels.end(),
                                       [](const Kernel& kernel) { return kernel.clk_per_stored_byte > 0; });
  for (std::int32_t rank = 0; rank < run_.simulated_ranks; ++rank) {
    GpuState state(gpu);
    state.hbm = memory(gpu.hbm_gb_per_s);
    state.llc_port = gpu.llc_bytes > 0 ? memory(gpu.llc_gb_per_s) : FluidNetwork::kNone;
    if (gpu.atomic_gb_per_s > 0) state.atomic_units = memory(gpu.atomic_gb_per_s);
    if (vector_work) state.vector_units = memory(gpu.cu_count() * gpu.boost_clock_ghz);
    for (int die = 0; die < gpu.xcds; ++die) state.l2_port.push_back(memory(l2_gb_per_s_));
    const auto vertex = static_cast<std::size_t>(rank);
    const double out = raw_sum(boost::out_edges(vertex, run_.topology.graph));
    const double in = raw_sum(boost::in_edges(vertex, run_.topology.graph));
    state.egress.fill(FluidNetwork::kNone);
    state.ingress.fill(FluidNetwork::kNone);
    for (const Ports ports : {Ports::store, Ports::load}) {
      state.egress[static_cast<std::size_t>(ports)] = port(ports, &LinkRates::egress_gb_per_s, out);
      state.ingress[static_cast<std::size_t>(ports)] = port(ports, &LinkRates::ingress_gb_per_s, in);
    }
    run_.gpus.push_back(std::move(state));
  }
}

std::vector<double> SharedResources::link_bytes() const {
  std::vector<double> bytes(run_.topology.edges.size(), 0.0);
  for (std::int32_t from = 0; from < run_.schedule.ranks; ++from) {
    const auto home = static_cast<std::size_t>(run_.home(from));
    if (switch_out_bytes_[home] > 0)
      bytes[static_cast<std::size_t>(edge_to_switch(run_.topology, from))] += switch_out_bytes_[home];
    if (switch_in_bytes_[home] > 0)
      bytes[static_cast<std::size_t>(edge_from_switch(run_.topology, from))] += switch_in_bytes_[home];
    for (std::int32_t to = 0; to < run_.schedule.ranks; ++to) {
      for (const int edge :
           run_.topology.routes[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)]) {
        bytes[static_cast<std::size_t>(edge)] += sent_bytes_[pair_of(from, to)];
      }
    }
  }
  return bytes;
}

void SharedResources::report_link_rates(double now) {
  reported_rate_.resize(links_.size(), 0.0);
  for (std::size_t edge = 0; edge < links_.size(); ++edge) {
    const double rate = run_.fluid.load(links_[edge]);
    if (rate == reported_rate_[edge]) continue;
    reported_rate_[edge] = rate;
    run_.options.observer->link_rate(static_cast<int>(edge), now, rate);
  }
}

}  // namespace tritax::engine
