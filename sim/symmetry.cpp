#include "sim/symmetry.hpp"

#include <algorithm>
#include <utility>

#include "model/schedule/items.hpp"
#include "model/schedule/op_traits.hpp"
#include "model/schedule/operations.hpp"
#include "sim/alike_programs.hpp"
#include "sim/slab_overlaps.hpp"

namespace tritax {

namespace {

constexpr std::int32_t kNone = -1;

// The programs of the ranks below `ranks`; operations on other ranks act on the alike ranks below `ranks`.
class Folding {
 public:
  Folding(const Schedule& whole, const AlikePrograms& programs, std::int32_t ranks)
      : whole_(whole), programs_(programs), ranks_(ranks), kernels_(static_cast<std::size_t>(ranks)) {}

  FoldedRun fold(Numbers numbers) {
    Schedule& out = folded_.schedule;
    out.name = whole_.name;
    out.ranks = whole_.ranks;
    out.buffers = whole_.buffers;
    out.flags = whole_.flags;
    out.sparse = whole_.sparse;
    kernel_of_.assign(whole_.kernels.size(), -1);
    for (std::uint32_t k = 0; k < whole_.kernels.size(); ++k) {
      if (whole_.kernels[k].rank < ranks_) add_kernel(k);
    }
    for (std::int32_t rank = 0; rank < ranks_; ++rank) add_host(rank);
    if (numbers == Numbers::of_all) number_alike();
    folded_.simulated_ranks = ranks_;
    return std::move(folded_);
  }

 private:
  void add_kernel(std::uint32_t k) {
    Schedule& out = folded_.schedule;
    const Kernel& from = whole_.kernels[k];
    const std::uint32_t place = kernels_[static_cast<std::size_t>(from.rank)]++;
    kernel_of_[k] = static_cast<std::int32_t>(out.kernels.size());
    Kernel& kernel = out.kernels.emplace_back(from);
    for (std::size_t p = 0; p < program_count(from); ++p) {
      const Workgroup& program = program_of(from, p);
      const std::size_t workgroups = kernel.workgroups.size();
      Workgroup& moved = p < workgroups ? kernel.workgroups[p] : kernel.items[p - workgroups];
      moved.first_op = static_cast<std::uint32_t>(out.ops.size());
      for (std::uint32_t i = 0; i < program.op_count; ++i) {
        Op& op = out.ops.emplace_back(whole_.ops[program.first_op + i]);
        if (op.kind == OpKind::signal && op.rank >= ranks_) {
          op.index = programs_.towards_home(from.rank, op.rank, place, p, i).index;
        }
      }
    }
  }

  void add_host(std::int32_t rank) {
    Schedule& out = folded_.schedule;
    std::vector<HostOp>& program = out.host.emplace_back(whole_.host[static_cast<std::size_t>(rank)]);
    for (std::size_t i = 0; i < program.size(); ++i) {
      HostOp& op = program[i];
      if (op.kind == HostOpKind::launch) op.kernel = kernel_of_[static_cast<std::size_t>(op.kernel)];
      if (op.kind == HostOpKind::graph_launch) {
        Graph graph = whole_.graphs[static_cast<std::size_t>(op.graph)];
        for (GraphNode& node : graph) node.kernel = kernel_of_[static_cast<std::size_t>(node.kernel)];
        op.graph = static_cast<std::int32_t>(out.graphs.size());
        out.graphs.push_back(std::move(graph));
      }
      if (op.kind != HostOpKind::copy) continue;
      Op transfer = whole_.transfers[static_cast<std::size_t>(op.transfer)];
      if (transfer.rank >= ranks_) {
        const Rect& there = programs_.transfer_towards_home(rank, transfer.rank, i).rect;
        transfer.rect.row = there.row;
        transfer.rect.col = there.col;
      }
      op.transfer = static_cast<std::int32_t>(out.transfers.size());
      out.transfers.push_back(transfer);
    }
  }

  // Numbers the workgroups and operations of the whole schedule by those of the folded one.
  void number_alike() {
    folded_.op_of.resize(whole_.ops.size());
    std::vector<std::uint32_t> first_workgroup;
    std::uint32_t workgroups = 0;
    for (const Kernel& kernel : folded_.schedule.kernels) {
      first_workgroup.push_back(workgroups);
      workgroups += static_cast<std::uint32_t>(kernel.workgroups.size());
    }
    std::vector<std::size_t> places(static_cast<std::size_t>(whole_.ranks));
    for (const Kernel& kernel : whole_.kernels) {
      const std::size_t place = places[static_cast<std::size_t>(kernel.rank)]++;
      const auto like =
          static_cast<std::size_t>(kernel_of_[programs_.kernels_of(programs_.home(kernel.rank))[place]]);
      const Kernel& folded = folded_.schedule.kernels[like];
      for (std::uint32_t w = 0; w < kernel.workgroups.size(); ++w) {
        folded_.workgroup_of.push_back(first_workgroup[like] + w);
      }
      for (std::size_t p = 0; p < program_count(kernel); ++p) {
        const Workgroup& program = program_of(kernel, p);
        for (std::uint32_t i = 0; i < program.op_count; ++i) {
          folded_.op_of[program.first_op + i] = program_of(folded, p).first_op + i;
        }
      }
    }
  }

  const Schedule& whole_;
  const AlikePrograms& programs_;
  const std::int32_t ranks_;
  FoldedRun folded_;
  std::vector<std::int32_t> kernel_of_;  // by kernel of the whole schedule; -1: left out
  std::vector<std::uint32_t> kernels_;   // by rank: kernels so far
};

// `next` maps a link to the link that it is alike, kNone for unused links; after `copies` steps every link is
// back at itself.
std::optional<std::vector<AlikeLink>> cycles_of(const Topology& topology,
                                                const std::vector<std::int32_t>& next, std::int32_t copies) {
  std::vector<AlikeLink> links(topology.edges.size(), {kNone, 1});
  for (std::int32_t edge = 0; edge < static_cast<std::int32_t>(links.size()); ++edge) {
    if (links[static_cast<std::size_t>(edge)].first != kNone) continue;
    links[static_cast<std::size_t>(edge)].first = edge;
    if (next[static_cast<std::size_t>(edge)] == kNone) continue;
    const TopologyEdge& like = topology.edges[static_cast<std::size_t>(edge)];
    std::int32_t alike = 1;
    for (std::int32_t e = next[static_cast<std::size_t>(edge)]; e != edge; ++alike) {
      const TopologyEdge& other = topology.edges[static_cast<std::size_t>(e)];
      if (other.raw_gb_per_s != like.raw_gb_per_s || other.network != like.network) return std::nullopt;
      links[static_cast<std::size_t>(e)].first = edge;
      e = next[static_cast<std::size_t>(e)];
    }
    links[static_cast<std::size_t>(edge)].share = static_cast<double>(alike) / copies;
  }
  return links;
}

}  // namespace

std::optional<std::vector<AlikeLink>> alike_links(const Topology& topology, std::int32_t shift) {
  const std::size_t ranks = topology.routes.size();
  std::vector<std::int32_t> next(topology.edges.size(), kNone), before = next;
  for (std::size_t from = 0; from < ranks; ++from) {
    for (std::size_t to = 0; to < ranks; ++to) {
      const auto by = static_cast<std::size_t>(shift);
      const std::vector<int>& route = topology.routes[from][to];
      const std::vector<int>& moved = topology.routes[(from + by) % ranks][(to + by) % ranks];
      if (route.size() != moved.size()) return std::nullopt;
      for (std::size_t i = 0; i < route.size(); ++i) {
        std::int32_t& there = next[static_cast<std::size_t>(route[i])];
        std::int32_t& back = before[static_cast<std::size_t>(moved[i])];
        if (there == kNone && back == kNone) {
          there = moved[i];
          back = route[i];
        } else if (there != moved[i] || back != route[i]) {
          return std::nullopt;
        }
      }
    }
  }
  return cycles_of(topology, next, static_cast<std::int32_t>(ranks) / shift);
}

namespace {

std::optional<FoldedRun> fold(const Schedule& schedule, const Machine& machine, const Topology& topology,
                              std::int32_t shift, Numbers numbers) {
  std::optional<std::vector<AlikeLink>> links = alike_links(topology, shift);
  if (!links) return std::nullopt;
  AlikePrograms programs(schedule, machine, shift);
  if (!programs.hold() || !programs.operands().same_bytes()) return std::nullopt;
  FoldedRun folded = Folding(schedule, programs, shift).fold(numbers);
  if (!programs.same_cells(folded.schedule)) return std::nullopt;
  folded.links = std::move(*links);
  return folded;
}

}  // namespace

std::optional<FoldedRun> fold_nodes(const Schedule& schedule, const Machine& machine, Numbers numbers) {
  const std::int32_t per_node = machine.gpus_per_node;
  const std::int32_t nodes = schedule.ranks / per_node;
  if (nodes < 2 || schedule.ranks % per_node != 0) return std::nullopt;
  const Topology topology = build_topology(machine, schedule.ranks);
  for (std::int32_t of = 1; of < nodes; ++of) {
    if (nodes % of != 0) continue;
    if (auto folded = fold(schedule, machine, topology, of * per_node, numbers)) return folded;
  }
  return std::nullopt;
}

std::optional<FoldedRun> fold_ranks(const Schedule& schedule, const Machine& machine, Numbers numbers) {
  if (schedule.ranks < 2) return std::nullopt;
  const Topology topology = build_topology(machine, schedule.ranks);
  for (std::int32_t shift = 1; shift < std::min(schedule.ranks, machine.gpus_per_node); ++shift) {
    if (schedule.ranks % shift != 0) continue;
    if (auto folded = fold(schedule, machine, topology, shift, numbers)) return folded;
  }
  return std::nullopt;
}

}  // namespace tritax
