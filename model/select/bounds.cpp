#include "model/select/bounds.hpp"

#include <algorithm>
#include <array>
#include <boost/unordered_map.hpp>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>
#include <tuple>
#include <vector>

#include "model/cost/kernel_costs.hpp"
#include "model/cost/lane_steps.hpp"
#include "model/cost/move_cost.hpp"
#include "model/cost/power_bound.hpp"
#include "model/cost/service_weights.hpp"
#include "model/schedule/items.hpp"
#include "model/schedule/op_traits.hpp"
#include "model/select/host_walk.hpp"

namespace tritax {

namespace {

struct Chain {
  MatmulWork matmuls;
  double total_ns = 0;  // matmuls at the highest clock, with the workgroup's data movement
};

Chain chain_of(const Schedule& schedule, const Machine& machine, const MoveCosts& moves, std::size_t number,
               const Workgroup& workgroup, bool has_sender, MatmulTimes& matmul_times) {
  const Kernel& kernel = schedule.kernels[number];
  Chain chain;
  const double highest_weight = ServiceWeights::highest(machine.fabric.arbitration_spread);
  double now = 0;
  double store_done = 0;
  for (const Op& op : ops_of(schedule, workgroup)) {
    if (op.kind == OpKind::claim) break;
    if (op.multimem && op.with_previous) continue;  // one operation of the switch
    if (has_sender && is_sent(op)) continue;        // sending waves execute it during the next matmul
    if (drains(op)) now = std::max(now, store_done);
    if (multiplies(op.kind)) {
      const MatmulWork work = matmul_times(op);
      chain.matmuls.ns += work.ns;
      chain.matmuls.draw += work.draw;
      now += work.ns / matmul_times.boost();
    } else if (moves_data(op.kind)) {
      if (op.by_engine) {
        const double gb_per_s = machine.copy_engine.gb_per_s;
        store_done = now + (gb_per_s > 0 ? tile_bytes(schedule, op) / gb_per_s : 0);
        continue;
      }
      DataMoveKind kind = move_of(op, kernel.rank).kind;
      // A copy counts only as stores here, at the store rate of a unit: a looser and simpler bound.
      if (kind == DataMoveKind::local_copy) kind = DataMoveKind::local_store;
      if (kind == DataMoveKind::remote_copy) kind = DataMoveKind::remote_store;
      // A full link serves the move at most with that weight.
      const double rate = moves.workgroup_gb_per_s(number, kind) * highest_weight;
      const double ns = tile_bytes(schedule, op) / rate;
      (is_asynchronous(op.kind) ? store_done : now) = now + ns;
    } else if (op.kind == OpKind::signal && !op.with_previous && !is_relaxed(op) &&
               moves.rates(number).payload_share == 1) {
      now += std::min(1.0, moves.rates(number).time_factor) * machine.gpu.release_ns;
    }
  }
  chain.total_ns = std::max(now, store_done);
  return chain;
}

struct KernelBound {
  double compute_ns = 0;
  double total_ns = 0;
};

KernelBound compute_bound(const Schedule& schedule, const Machine& machine, const CostTable& costs,
                          const MoveCosts& moves, std::size_t number, bool may_share) {
  const Kernel& kernel = schedule.kernels[number];
  MatmulTimes matmul_times(schedule, machine.gpu, costs.of(kernel), kernel, moves.rates(number));
  const bool sends = has_sender(schedule, kernel, machine.gpu);
  std::vector<MatmulWork> works;
  double longest_matmuls = 0;
  KernelBound bound;
  for (std::size_t p = 0; p < program_count(kernel); ++p) {
    const Chain chain =
        chain_of(schedule, machine, moves, number, program_of(kernel, p), sends, matmul_times);
    if (chain.matmuls.ns > 0) works.push_back(chain.matmuls);
    longest_matmuls = std::max(longest_matmuls, chain.matmuls.ns);
    bound.total_ns = std::max(bound.total_ns, chain.total_ns);
  }
  if (!works.empty()) {
    const double power_ns = power_bound_ns(machine.gpu, kernel, works, matmul_times, may_share);
    bound.compute_ns = std::max(power_ns, longest_matmuls / matmul_times.boost());
  }
  bound.total_ns = std::max(bound.total_ns, bound.compute_ns);
  return bound;
}

// Least time of each link and port for its bytes, in ns.
class Wires {
 public:
  Wires(const Schedule& schedule, const Machine& machine, const Topology& topology, const MoveCosts& moves)
      : schedule_(schedule),
        topology_(topology),
        moves_(moves),
        l2_keeps_peers_(machine.gpu.l2_keeps_peers),
        edge_ns_(topology.edges.size(), 0.0) {
    const std::vector<double> idle(static_cast<std::size_t>(schedule.ranks), 0.0);
    egress_ns_.fill(idle);
    ingress_ns_.fill(idle);
  }

  // `time_factor`: of its rates.
  void add(const Kernel& kernel, double time_factor) {
    // Bytes by peer and traffic first: there are far more operations than pairs.
    std::vector<std::array<double, kTrafficCount>> bytes(static_cast<std::size_t>(schedule_.ranks));
    constexpr auto kLoads = static_cast<std::size_t>(Traffic::loads);
    for (std::size_t p = 0; p < program_count(kernel); ++p) {
      for (const Op& op : ops_of(schedule_, program_of(kernel, p))) {
        if (op.kind == OpKind::claim) break;
        if (fetches_a(op) && !l2_keeps_peers_) {
          const double fetched = tile_bytes(schedule_, load_of_a(op, kernel.rank));
          bytes[static_cast<std::size_t>(peer_of(op, kernel.rank))][kLoads] +=
              std::min(1.0, time_factor) * fetched;
        }
        if (!moves_data(op.kind)) continue;
        if (op.by_engine) {
          const DataMove move = move_of(op, kernel.rank);
          if (move.peer != move.rank)
            send(move.from(), move.to(), tile_bytes(schedule_, op),
                 moves_.links(kernel.profile, move.traffic()));
          continue;
        }
        if (op.multimem) {
          add_in_switch(kernel, op, std::min(1.0, time_factor) * tile_bytes(schedule_, op));
          continue;
        }
        const DataMove move = move_of(op, kernel.rank);
        bytes[static_cast<std::size_t>(move.peer)][static_cast<std::size_t>(move.traffic())] +=
            std::min(1.0, time_factor) * tile_bytes(schedule_, op);
      }
    }
    for (int peer = 0; peer < schedule_.ranks; ++peer) {
      for (const Traffic traffic : {Traffic::stores, Traffic::atomics, Traffic::loads}) {
        const bool pulls = traffic == Traffic::loads;
        send(pulls ? peer : kernel.rank, pulls ? kernel.rank : peer,
             bytes[static_cast<std::size_t>(peer)][static_cast<std::size_t>(traffic)],
             moves_.links(kernel.profile, traffic));
      }
    }
  }

  void add(const Wires& other) {
    const auto add_to = [](std::vector<double>& sum, const std::vector<double>& more) {
      std::transform(sum.begin(), sum.end(), more.begin(), sum.begin(), std::plus<>());
    };
    add_to(edge_ns_, other.edge_ns_);
    for (std::size_t port = 0; port < kPortsCount; ++port) {
      add_to(egress_ns_[port], other.egress_ns_[port]);
      add_to(ingress_ns_[port], other.ingress_ns_[port]);
    }
  }

  // Adds the transfers of the copy engines of the first `ranks` ranks.
  void add_transfers(std::size_t ranks) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      for (const HostOp& host : schedule_.host[rank]) {
        if (host.kind != HostOpKind::copy) continue;
        const Op& op = schedule_.transfers[static_cast<std::size_t>(host.transfer)];
        const DataMove move = move_by_engine(op, static_cast<std::int32_t>(rank));
        send(move.from(), move.to(), tile_bytes(schedule_, op),
             moves_.links(KernelProfile::interpreter, move.traffic()));
      }
    }
  }

  double busiest_ns() const {
    double busiest = edge_ns_.empty() ? 0 : *std::max_element(edge_ns_.begin(), edge_ns_.end());
    for (const auto* ports : {&egress_ns_, &ingress_ns_}) {
      for (const auto& port : *ports)
        busiest = std::max(busiest, *std::max_element(port.begin(), port.end()));
    }
    return busiest;
  }

 private:
  void over(int edge, double bytes, const LinkRates& links) {
    const TopologyEdge& on = topology_.edges[static_cast<std::size_t>(edge)];
    edge_ns_[static_cast<std::size_t>(edge)] += bytes / (links.efficiency_on(on) * on.raw_gb_per_s);
  }
  void out_of(int rank, double bytes, const LinkRates& links) {
    egress_ns_[static_cast<std::size_t>(links.ports)][static_cast<std::size_t>(rank)] +=
        bytes / links.egress_gb_per_s;
  }
  void into(int rank, double bytes, const LinkRates& links) {
    ingress_ns_[static_cast<std::size_t>(links.ports)][static_cast<std::size_t>(rank)] +=
        bytes / links.ingress_gb_per_s;
  }

  void send(int from, int to, double bytes, const LinkRates& links) {
    if (bytes == 0) return;
    for (const auto edge : topology_.routes[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)])
      over(edge, bytes, links);
    out_of(from, bytes, links);
    into(to, bytes, links);
  }

  // What the switch carries out crosses the own link once, and the link of every rank of its group.
  void add_in_switch(const Kernel& kernel, const Op& op, double bytes) {
    const DataMove move = move_of(op, kernel.rank);
    const LinkRates& links = moves_.links(kernel.profile, move.traffic());
    const auto cross = [&](int rank, bool out) {
      over(out ? edge_to_switch(topology_, rank) : edge_from_switch(topology_, rank), bytes, links);
      out ? out_of(rank, bytes, links) : into(rank, bytes, links);
    };
    cross(op.rank, move.pulls());
    if (!op.with_previous) cross(kernel.rank, !move.pulls());
  }

  const Schedule& schedule_;
  const Topology& topology_;
  const MoveCosts& moves_;
  const bool l2_keeps_peers_;  // then operands of peers may cross the links once for many products
  std::vector<double> edge_ns_;
  std::array<std::vector<double>, kPortsCount> egress_ns_, ingress_ns_;
};

// Bytes of one column block, with regions sorted by row: overlapping rows count once.
double bytes_of_block(const Buffer& buffer, std::span<const Region> regions) {
  double bytes = 0;
  std::int32_t end = 0;
  for (const Region& region : regions) {
    Rect rest = region.rect;
    const std::int32_t begin = std::max(rest.row, end);
    end = std::max(end, rest.row + rest.rows);
    rest.rows = std::max(0, end - begin);
    bytes += bytes_of(buffer, rest);
  }
  return bytes;
}

// Bytes of row ranges of column blocks: overlapping rows count once; of partly overlapping blocks only the
// largest counts.
double bytes_of_columns(const Schedule& schedule, std::vector<Region> regions) {
  const auto block = [](const Region& r) { return std::tuple(r.buffer, r.rect.col, r.rect.cols); };
  std::sort(regions.begin(), regions.end(), [&](const Region& a, const Region& b) {
    return std::tuple(block(a), a.rect.row) < std::tuple(block(b), b.rect.row);
  });
  double bytes = 0, together = 0;
  std::int32_t buffer = -1, end_col = 0;
  for (std::size_t i = 0, next = 0; i < regions.size(); i = next) {
    while (next < regions.size() && block(regions[next]) == block(regions[i])) ++next;
    const Region& first = regions[i];
    if (first.buffer != buffer || first.rect.col >= end_col) {
      bytes += together;
      together = 0;
      end_col = 0;
    }
    buffer = first.buffer;
    end_col = std::max(end_col, first.rect.col + first.rect.cols);
    together = std::max(together, bytes_of_block(schedule.buffers[static_cast<std::size_t>(buffer)],
                                                 std::span(regions).subspan(i, next - i)));
  }
  return bytes + together;
}

using Slab = std::array<std::int32_t, 5>;  // buffer, first row or column, their number, first k, end of k

// Bytes that slabs fetch into cold caches. Of slabs with overlapping ranges of K only the smallest counts;
// the others may already be in the cache.
double fetched_bytes(std::vector<std::pair<Slab, double>> slabs) {
  std::sort(slabs.begin(), slabs.end());
  double bytes = 0;
  for (std::size_t i = 0; i < slabs.size();) {
    const auto& [first, first_bytes] = slabs[i];
    double least = first_bytes;
    std::int32_t reached = first[4];
    for (++i; i < slabs.size() && std::equal(first.begin(), first.begin() + 3, slabs[i].first.begin()) &&
              slabs[i].first[3] < reached;
         ++i) {
      least = std::min(least, slabs[i].second);
      reached = std::max(reached, slabs[i].first[4]);
    }
    bytes += least;
  }
  return bytes;
}

// Least HBM bytes of rank 0: each slab of operands and each unwritten tile once, because caches start cold,
// and stored bytes except results that stay in the caches.
class MemoryBytes {
 public:
  MemoryBytes(const Schedule& schedule, const Machine& machine, const CostTable& costs)
      : schedule_(schedule), machine_(machine), costs_(costs), written_(schedule.buffers.size(), 0) {
    const auto note = [&](const Op& op) {
      if (writes_tile(op.kind)) written_[static_cast<std::size_t>(op.buffer)] = 1;
    };
    std::for_each(schedule.ops.begin(), schedule.ops.end(), note);
    std::for_each(schedule.transfers.begin(), schedule.transfers.end(), note);
  }

  // `time_factor`: of its rates.
  void add(const Kernel& kernel, double time_factor) {
    double stored_bytes = 0;
    bool computes = false;
    least_factor_ = std::min(least_factor_, time_factor);
    for (std::size_t p = 0; p < program_count(kernel); ++p) {
      for (const Op& op : ops_of(schedule_, program_of(kernel, p))) {
        if (op.kind == OpKind::claim) break;
        if (kernel.rank == 0) {
          computes = computes || multiplies(op.kind) || op.kind == OpKind::sparse_product;
          add_read(op);
        }
        if (op.kind == OpKind::store && op.rank == 0 && !costs_.of(kernel).tuned) {
          stored_bytes += tile_bytes(schedule_, op);
        }
      }
    }
    stored_bytes_ += stored_bytes;
    if (computes) computed_bytes_ += stored_bytes;
  }

  // Least time of all bytes, and of the bytes of computing kernels, which are part of all.
  std::pair<double, double> least_ns() const {
    const double operands = sparse_bytes_ + fetched_bytes({slabs_.begin(), slabs_.end()}) +
                            bytes_of_columns(schedule_, attended_);
    const double all = operands + bytes_of_columns(schedule_, moved_) + stored_bytes_;
    const double gb_per_s = machine_.gpu.hbm_gb_per_s / least_factor_;
    return {all / gb_per_s, (operands + computed_bytes_) / gb_per_s};
  }

 private:
  static bool writes_tile(OpKind kind) { return traits_of(kind).writes != Writes::nothing; }

  double bytes_of_element(std::int32_t buffer) const {
    return bytes_of(schedule_.buffers[static_cast<std::size_t>(buffer)].dtype);
  }

  void add_read(const Op& op) {
    const double depth = op.k_end - op.k_begin;
    if (op.kind == OpKind::attend) {
      attended_.push_back(keys_of(op, 0));
      attended_.push_back(values_of(op, 0));
    } else if (op.kind == OpKind::attend_backward) {
      attended_.push_back(queries_of_backward(op, 0, op.src_buffer));
      attended_.push_back(queries_of_backward(op, 0, op.b_buffer));
    } else if (op.kind == OpKind::matmul) {
      if (!fetches_a(op)) {
        slabs_.try_emplace({op.src_buffer, op.rect.row, op.rect.rows, op.k_begin, op.k_end},
                           op.rect.rows * depth * bytes_of_element(op.src_buffer));
      }
      slabs_.try_emplace({op.b_buffer, op.rect.col, op.rect.cols, op.k_begin, op.k_end},
                         op.rect.cols * depth * bytes_of_element(op.b_buffer));
    } else if (op.kind == OpKind::sparse_product) {
      // Values and columns always come from memory, also after earlier reads.
      sparse_bytes_ += depth * (bytes_of_element(op.src_buffer) + kIndexBytes);
    } else if (moves_data(op.kind) && move_of(op, 0).reads_own()) {
      const bool copies = op.kind == OpKind::copy;
      const std::int16_t buffer = copies ? op.src_buffer : op.buffer;
      if (written_[static_cast<std::size_t>(buffer)] != 0) return;
      const Rect from{op.src_row, op.src_col, op.rect.rows, op.rect.cols};
      moved_.push_back({buffer, 0, copies ? from : op.rect});
    }
  }

  const Schedule& schedule_;
  const Machine& machine_;
  const CostTable& costs_;
  std::vector<std::uint8_t> written_;  // buffers with any writes
  boost::unordered_map<Slab, double> slabs_;
  std::vector<Region> attended_, moved_;
  double sparse_bytes_ = 0;
  double stored_bytes_ = 0;
  double computed_bytes_ = 0;  // stored by computing kernels of rank 0
  double least_factor_ = 1;    // least factor on memory requests of products, from measured library calls
};

// Sums over the launching streams of one rank the most workgroups that a kernel of the stream sends to a die.
// If the sum fits with one workgroup per compute unit, no two workgroups share a unit, because the dispatcher
// takes empty units first.
bool may_share_units(const Schedule& schedule, const Machine& machine, std::size_t rank) {
  std::vector<std::int64_t> most(1, 0);
  const auto dies = static_cast<std::int64_t>(machine.gpu.xcds);
  for_each_launch(schedule, schedule.host[rank], [&](const GraphNode& node) {
    const auto index = static_cast<std::size_t>(node.stream);
    if (index >= most.size()) most.resize(index + 1, 0);
    const Kernel& launched = schedule.kernels[static_cast<std::size_t>(node.kernel)];
    const auto workgroups = static_cast<std::int64_t>(launched.workgroups.size());
    const bool restricted = launched.cu_end > 0;  // its units may be fewer than its workgroups
    most[index] =
        std::max(most[index], restricted ? machine.gpu.cus_per_xcd + 1 : (workgroups + dies - 1) / dies);
  });
  return std::accumulate(most.begin(), most.end(), std::int64_t{0}) > machine.gpu.cus_per_xcd;
}

}  // namespace

TimeBound time_bound(const Schedule& schedule, const Machine& machine, const Topology& topology,
                     std::int32_t ranks) {
  const CostTable costs(machine);
  const MoveCosts moves(schedule, machine, costs, topology);
  std::vector<std::uint8_t> may_share;
  std::vector<std::uint8_t> launched(schedule.kernels.size(), 0);
  const auto asked = static_cast<std::size_t>(std::min(ranks, schedule.ranks));
  for (std::size_t rank = 0; rank < asked; ++rank) {
    may_share.push_back(may_share_units(schedule, machine, rank));
    for_each_launch(schedule, schedule.host[rank],
                    [&](const GraphNode& node) { launched[static_cast<std::size_t>(node.kernel)] = 1; });
  }
  TimeBound bound;
  std::vector<double> kernel_ns(schedule.kernels.size(), 0.0);
  Wires all(schedule, machine, topology, moves);
  MemoryBytes memory(schedule, machine, costs);
  for (std::size_t k = 0; k < schedule.kernels.size(); ++k) {
    if (!launched[k]) continue;
    const Kernel& kernel = schedule.kernels[k];
    const bool share = may_share[static_cast<std::size_t>(kernel.rank)] != 0;
    const KernelBound compute = compute_bound(schedule, machine, costs, moves, k, share);
    Wires one(schedule, machine, topology, moves);
    one.add(kernel, moves.rates(k).time_factor);
    all.add(one);
    memory.add(kernel, moves.rates(k).time_factor);
    kernel_ns[k] = std::max(compute.total_ns, one.busiest_ns());
    bound.compute_ns = std::max(bound.compute_ns, compute.compute_ns);
  }
  all.add_transfers(asked);
  bound.wire_ns = all.busiest_ns();
  std::tie(bound.memory_ns, bound.operands_ns) = memory.least_ns();
  HostWalk walk(schedule, machine, costs, kernel_ns);
  const double end_ns = walk.run();
  const double traffic_ns = walk.first_start_ns() + std::max(bound.wire_ns, bound.memory_ns);
  bound.total_ns = std::isfinite(traffic_ns) ? std::max(end_ns, traffic_ns) : end_ns;
  return bound;
}

namespace {

// The work of one workgroup.
struct Share {
  std::int64_t products = 0;
  std::int64_t tiles = 0;  // products that begin at the first element of K
  double product_ns = 0;   // the longest
  double sent_bytes = 0;
  double fetched_bytes = 0;
};

Share share_of(const Schedule& schedule, const Kernel& kernel, const Workgroup& workgroup,
               MatmulTimes& times) {
  Share share;
  double product_ns = 0;  // of the product in the accumulator
  bool begins_k = false;
  for (const Op& op : ops_of(schedule, workgroup)) {
    if (multiplies(op.kind)) {
      product_ns += times(op).ns;
      if (fetches_a(op)) share.fetched_bytes += tile_bytes(schedule, load_of_a(op, kernel.rank));
      begins_k = begins_k || op.k_begin == 0 || attends(op.kind);
      continue;
    }
    if (moves_data(op.kind) && !(op.multimem && op.with_previous)) {
      const double bytes = tile_bytes(schedule, op);
      const DataMove move = move_of(op, kernel.rank);
      if (move.peer != move.rank || op.multimem)
        (move.pulls() ? share.fetched_bytes : share.sent_bytes) += bytes;
    }
    if (!writes_out(op.kind) || product_ns == 0) continue;
    ++share.products;
    share.tiles += begins_k;
    share.product_ns = std::max(share.product_ns, product_ns);
    product_ns = 0;
    begins_k = false;
  }
  return share;
}

}  // namespace

Rounds gemm_rounds(const Schedule& schedule, const Machine& machine) {
  const CostTable costs(machine);
  Rounds found;
  std::int64_t products = 0;
  for (const Kernel& kernel : schedule.kernels) {
    if (kernel.rank != 0) continue;
    MatmulTimes matmul_times(schedule, machine.gpu, costs.of(kernel), kernel, kernel_rates(machine, kernel));
    std::int64_t tasks = 0;
    std::int32_t workers = 0;
    std::int64_t rounds = 0;
    for (std::size_t p = 0; p < program_count(kernel); ++p) {
      const Workgroup& workgroup = program_of(kernel, p);
      const Share share = share_of(schedule, kernel, workgroup, matmul_times);
      const bool idle = share.products == 0;
      found.tiles += share.tiles;
      found.tile_ns = std::max(found.tile_ns, share.product_ns);
      found.sent_bytes += share.sent_bytes;
      found.fetched_bytes += share.fetched_bytes;
      found.senders += idle && share.sent_bytes + share.fetched_bytes > 0;
      workers += !idle || (kernel.tile.m > 0 && workgroup.op_count == 0);  // idle in a grid too large
      tasks += share.products;
      rounds = std::max(rounds, share.products);
    }
    if (!kernel.items.empty() && tasks > 0) {  // each claim takes the next product
      workers = std::min(static_cast<std::int32_t>(kernel.workgroups.size()), machine.gpu.cu_count());
      rounds = (tasks + workers - 1) / workers;
    } else if (kernel.placement == Placement::dispatch && tasks > 0) {
      // One workgroup per product: units take workgroups as the units become free.
      workers = machine.gpu.cu_count();
      rounds = (tasks + workers - 1) / workers;
    }
    if (tasks > 0) {
      found.tile_m = kernel.tile.m;
      found.tile_n = kernel.tile.n;
    }
    products += tasks;
    found.workers = std::max(found.workers, workers);
    found.rounds += rounds;
  }
  for (const Op& copy : schedule.transfers) {  // by copy engines
    if (copy.src_rank == 0 && copy.rank != 0) found.sent_bytes += tile_bytes(schedule, copy);
  }
  if (found.tiles > 0 && products % found.tiles == 0) {
    found.parts = products / found.tiles;
  } else {
    found.tiles = products;  // cut in another way by hand
  }
  return found;
}

}  // namespace tritax
