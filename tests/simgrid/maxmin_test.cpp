// The fluid network against SimGrid's max-min solver (simgrid.org, Debian's libsimgrid-dev; model CM02).
//
// Random transfers over random links, some of which start when another one ends, run in both; every
// completion time must agree. What corresponds to what:
//
//   a resource                     a shared link without latency
//   a resource used with n         the same link n times in the route
//   the cap of an activity         a link of its own with that bandwidth
//   an activity of weight 1/L      a flow of latency L: CM02 shares a link inversely to the latency. The flow
//                                  starts to move bytes after L.
//
// SimGrid has one engine a process that runs once, so all cases are independent zones of one platform.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <simgrid/s4u.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "sim/fluid.hpp"

namespace tritax {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kTolerance = 1e-6;  // relative

struct Transfer {
  std::vector<int> route;  // links, possibly one several times
  double bytes = 0;
  double cap = kInfinity;
  double latency = 0;
  int after = -1;  // starts when that transfer ends; -1: at once
};

struct Case {
  std::vector<double> capacities;
  std::vector<Transfer> transfers;
};

struct CaseOptions {
  bool caps = false;
  bool repeated_links = false;
  bool weights = false;
  bool chains = false;
};

// Transfers of a few kinds, so that classes hold several activities.
Case random_case(std::mt19937_64& random, const CaseOptions& options) {
  const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
  Case out;
  const int links = 1 + below(8);
  for (int link = 0; link < links; ++link) out.capacities.push_back(1e6 * (1 + below(100)));
  std::vector<Transfer> kinds(static_cast<std::size_t>(1 + below(10)));
  for (Transfer& kind : kinds) {
    for (int link = 0; link < links; ++link) {
      if (below(3) == 0) kind.route.push_back(link);
    }
    if (kind.route.empty()) kind.route.push_back(below(links));
    if (options.repeated_links && below(4) == 0) kind.route.push_back(kind.route.front());
    if (options.caps && below(2) == 0) kind.cap = 1e6 * (1 + below(30));
    if (options.weights) kind.latency = 1 + below(5);
  }
  const int transfers = 1 + below(24);
  for (int i = 0; i < transfers; ++i) {
    Transfer transfer = kinds[static_cast<std::size_t>(below(static_cast<int>(kinds.size())))];
    transfer.bytes = 1e6 * (1 + below(2000));
    if (options.chains && i > 0 && below(2) == 0) transfer.after = below(i);
    out.transfers.push_back(std::move(transfer));
  }
  return out;
}

// Completion times from the fluid network.
std::vector<double> run_fluid(const Case& spec) {
  FluidNetwork network;
  for (const double capacity : spec.capacities) network.add_resource(capacity);
  std::map<std::tuple<std::vector<int>, double, double>, std::int32_t> classes;
  std::vector<std::int32_t> class_of;
  std::vector<double> weights;
  std::multimap<double, std::size_t> starts;
  for (std::size_t i = 0; i < spec.transfers.size(); ++i) {
    const Transfer& transfer = spec.transfers[i];
    weights.push_back(transfer.latency > 0 ? 1 / transfer.latency : 1);
    const auto key = std::make_tuple(transfer.route, transfer.cap, weights.back());
    if (!classes.contains(key)) {
      std::vector<FluidNetwork::Use> uses;
      for (const int link : transfer.route) uses.push_back({link, 1.0});
      classes[key] = network.add_class(uses, transfer.cap / weights.back());
    }
    class_of.push_back(classes[key]);
    if (transfer.after < 0) starts.emplace(transfer.latency, i);
  }
  std::vector<double> done(spec.transfers.size(), -1);
  for (;;) {
    const double now =
        std::min(starts.empty() ? kInfinity : starts.begin()->first, network.next_completion_ns());
    if (now == kInfinity) return done;
    while (network.next_completion_ns() <= now) {
      const std::size_t ended = network.complete(now).token;
      done[ended] = now;
      for (std::size_t i = 0; i < spec.transfers.size(); ++i) {
        if (spec.transfers[i].after == static_cast<int>(ended)) {
          starts.emplace(now + spec.transfers[i].latency, i);
        }
      }
    }
    while (!starts.empty() && starts.begin()->first <= now) {
      const std::size_t i = starts.begin()->second;
      starts.erase(starts.begin());
      network.start(class_of[i], spec.transfers[i].bytes, weights[i], static_cast<std::uint32_t>(i), now);
    }
    network.settle(now);
  }
}

namespace sg = simgrid::s4u;

// Adds a case to SimGrid's platform; the transfers start when the engine runs.
std::vector<sg::CommPtr> add_to_platform(sg::NetZone* root, const Case& spec, const std::string& name) {
  sg::NetZone* zone = sg::create_full_zone(name);
  zone->set_parent(root);
  std::vector<const sg::Link*> links;
  for (std::size_t i = 0; i < spec.capacities.size(); ++i) {
    links.push_back(zone->create_link(name + ".link" + std::to_string(i), spec.capacities[i])->seal());
  }
  sg::Host* source = zone->create_host(name + ".source", 1e9);
  std::vector<sg::Host*> destinations;
  for (std::size_t i = 0; i < spec.transfers.size(); ++i) {
    const Transfer& transfer = spec.transfers[i];
    const std::string own = name + ".own" + std::to_string(i);
    sg::Link* link = zone->create_link(own, transfer.cap < kInfinity ? transfer.cap : 1e15);
    if (transfer.latency > 0) link->set_latency(transfer.latency);
    std::vector<sg::LinkInRoute> route{sg::LinkInRoute(link->seal())};
    for (const int used : transfer.route) route.emplace_back(links[static_cast<std::size_t>(used)]);
    destinations.push_back(zone->create_host(name + ".destination" + std::to_string(i), 1e9));
    zone->add_route(source->get_netpoint(), destinations.back()->get_netpoint(), nullptr, nullptr, route,
                    false);
  }
  zone->seal();
  std::vector<sg::CommPtr> transfers;
  for (const Transfer& transfer : spec.transfers) {
    transfers.push_back(sg::Comm::sendto_init());
    transfers.back()->set_payload_size(static_cast<std::uint64_t>(transfer.bytes));
    if (transfer.after >= 0) {
      transfers[static_cast<std::size_t>(transfer.after)]->add_successor(transfers.back());
    }
  }
  // A transfer that waits for nobody starts as soon as both ends are known.
  for (std::size_t i = 0; i < transfers.size(); ++i) {
    transfers[i]->set_source(source);
    transfers[i]->set_destination(destinations[i]);
  }
  return transfers;
}

struct Compared {
  Case spec;
  std::vector<double> done;  // according to SimGrid
};

struct Group {
  std::string name;
  std::vector<Compared> cases;
};

constexpr int kCasesPerGroup = 150;

// Runs SimGrid once for all groups.
std::vector<Group> run_simgrid() {
  int argc = 1;
  std::string program = "test_simgrid";
  char* argv[] = {program.data(), nullptr};
  sg::Engine engine(&argc, argv);
  for (const char* option : {"network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:0",
                             "network/weight-S:0", "network/latency-factor:1", "network/bandwidth-factor:1",
                             "maxmin/precision:1e-9", "surf/precision:1e-9"}) {
    sg::Engine::set_config(option);
  }
  const std::vector<std::pair<std::string, CaseOptions>> kinds{
      {"plain", {}},
      {"caps", {.caps = true}},
      {"repeated", {.repeated_links = true}},
      {"weights", {.caps = true, .weights = true}},
      {"chains", {.caps = true, .repeated_links = true, .chains = true}},
      {"weighted chains", {.caps = true, .repeated_links = true, .weights = true, .chains = true}}};
  std::mt19937_64 random(20240229);
  sg::NetZone* root = sg::create_full_zone("root");
  std::vector<Group> groups;
  std::vector<std::vector<sg::CommPtr>> running;
  for (const auto& [name, options] : kinds) {
    Group group{name, {}};
    for (int i = 0; i < kCasesPerGroup; ++i) {
      group.cases.push_back({random_case(random, options), {}});
      running.push_back(add_to_platform(root, group.cases.back().spec, name + std::to_string(i)));
    }
    groups.push_back(std::move(group));
  }
  root->seal();
  engine.run();
  auto transfers = running.begin();
  for (Group& group : groups) {
    for (Compared& compared : group.cases) {
      for (const sg::CommPtr& transfer : *transfers) compared.done.push_back(transfer->get_finish_time());
      ++transfers;
    }
  }
  return groups;
}

void expect_equal_times(const std::string& group_name) {
  static const std::vector<Group> groups = run_simgrid();
  std::size_t compared_transfers = 0;
  for (const Group& group : groups) {
    if (group.name != group_name) continue;
    for (std::size_t c = 0; c < group.cases.size(); ++c) {
      const std::vector<double> ours = run_fluid(group.cases[c].spec);
      const std::vector<double>& theirs = group.cases[c].done;
      ASSERT_EQ(ours.size(), theirs.size());
      for (std::size_t i = 0; i < ours.size(); ++i) {
        ASSERT_GT(theirs[i], 0) << "SimGrid did not finish transfer " << i << " of case " << c;
        EXPECT_NEAR(ours[i], theirs[i], kTolerance * theirs[i]) << "transfer " << i << " of case " << c;
        ++compared_transfers;
      }
    }
  }
  EXPECT_GT(compared_transfers, 1000U);
}

TEST(FluidEqualsSimGrid, ForRandomTransfersOverRandomLinks) { expect_equal_times("plain"); }

TEST(FluidEqualsSimGrid, ForTransfersWithCaps) { expect_equal_times("caps"); }

TEST(FluidEqualsSimGrid, ForTransfersThatUseALinkTwice) { expect_equal_times("repeated"); }

TEST(FluidEqualsSimGrid, ForTransfersOfDifferentWeightThatStartAtDifferentTimes) {
  expect_equal_times("weights");
}

TEST(FluidEqualsSimGrid, ForTransfersThatStartWhenAnotherEnds) { expect_equal_times("chains"); }

TEST(FluidEqualsSimGrid, ForChainsOfTransfersWithCapsAndWeights) { expect_equal_times("weighted chains"); }

}  // namespace
}  // namespace tritax
