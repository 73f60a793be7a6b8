// Library baseline: the vendor's GEMM and a collective of the collective library, one after the other or on
// two streams.
//
//   stream 0, GEMM:             the vendor's kernel: C = A·B
//   stream 0 or 1, COLLECTIVE:  model/parts/library_gather.hpp, library_collectives.hpp
//   stream 2, HOLD:             on two streams: a workgroup per channel keeps a compute unit until the
//                               collective ends
//
// A channel of these libraries is one workgroup. No workgroup of a GEMM is taken to share its compute unit,
// for want of LDS and registers. The collectives of a schedule have several small workgroups per channel
// instead, so HOLD takes the compute units. A GEMM of 256 tiles on 304 compute units, 64 of which are held,
// takes two rounds: on 8 MI300X a product of 4096³ takes 0.43 ms beside an all-reduce and 0.22 ms alone
// (ROCm/tritonBLAS @3b84da43).
//
// On two streams the collective is posted first: its workgroups find compute units before the GEMM takes all.
// Frameworks gather into a separate buffer, so that the own block is copied to its slot too. Products of fp8
// leave the GEMM in bf16.
#include <algorithm>
#include <functional>
#include <vector>

#include "model/parts/kernels.hpp"
#include "model/parts/library_collectives.hpp"
#include "model/parts/library_gather.hpp"
#include "model/parts/library_gemm.hpp"
#include "model/parts/library_sum.hpp"
#include "model/schedule/builder.hpp"
#include "model/workloads/gemm_beside_collective/patterns.hpp"

namespace tritax {

namespace {

// Adds the kernel of a rank and returns its number.
using AddCollective = std::function<std::int32_t(int rank)>;

AddCollective all_gather_of(ScheduleBuilder& builder, const GemmBeside& problem, const Machine& machine) {
  const auto rows = static_cast<std::int32_t>(problem.rows);
  const auto cols = static_cast<std::int32_t>(problem.cols);
  const int gpus = problem.gpus;
  const DType dtype = problem.gemm.dtype;
  const std::int16_t block = builder.buffer({"block", dtype, rows, cols, rows, cols});
  const std::int16_t x = builder.buffer({"X", dtype, rows * gpus, cols, rows, cols});
  const std::int16_t arrived = builder.flags("arrived", library_channels(machine) * gpus);
  builder.expect_gathered_rows(block, x);
  const GatherNodes nodes = gather_nodes(builder, machine, gpus, [&](int rank) {
    return Rect{rank * rows, 0, rows, cols};
  });
  return [=, &builder, &machine](int rank) {
    const PeerOrder order =
        nodes.passed >= 0 ? PeerOrder::rotated : PeerOrder::fixed;  // then all nodes have the same order
    const std::vector<int> peers = peers_of(order, gpus, rank, 0);
    const double bytes = static_cast<double>(rows) * cols * bytes_of(dtype);
    return add_library_gather(
        builder, machine, {"all_gather", rank, gpus, block, x, {rank * rows, 0, rows, cols}, bytes, nodes},
        [&](std::int32_t channel) {
          exchange_arrivals(builder, peers, gpus, rank, channel, arrived, LockProtocol::load_store);
        });
  };
}

AddCollective all_to_all_of(ScheduleBuilder& builder, const GemmBeside& problem, const Machine& machine) {
  const int gpus = problem.gpus;
  const DType dtype = problem.gemm.dtype;
  const auto cols = static_cast<std::int32_t>(problem.cols);
  const std::vector<Rect> blocks = blocks_of(array_of(problem));
  const std::int32_t widest = blocks.front().rows;
  LibraryAllToAll all;
  all.kernel = "all_to_all";
  all.ranks = gpus;
  all.own = builder.buffer({"own", dtype, static_cast<std::int32_t>(problem.rows), cols, widest, cols});
  all.received = builder.buffer({"X", dtype, widest * gpus, cols, widest, cols});
  all.blocks = blocks;
  all.widest_bytes = static_cast<double>(widest) * cols * bytes_of(dtype);
  all.equal_blocks = problem.rows % gpus == 0;
  all.arrived = builder.flags("arrived", library_channels(machine) * gpus);
  builder.input(builder.whole(all.own));
  const auto place = [=](int from, int to) {
    return Rect{from * widest, 0, blocks[static_cast<std::size_t>(to)].rows, cols};
  };
  all.nodes = exchange_nodes(builder, machine, gpus, dtype, blocks.front(), [=](int from, int to) {
    return BlockMove{blocks[static_cast<std::size_t>(to)], place(from, to)};
  });
  for (int from = 0; from < gpus; ++from) {
    for (int to = 0; to < gpus; ++to) {
      const Rect& block = blocks[static_cast<std::size_t>(to)];
      if (block.rows > 0) builder.expect_copy({all.received, to, place(from, to)}, {all.own, from, block});
    }
  }
  return [=, &builder, &machine](int rank) {
    LibraryAllToAll own = all;
    own.rank = rank;
    for (int to = 0; to < gpus; ++to) own.places.push_back(place(rank, to));
    return add_library_all_to_all(builder, machine, own);
  };
}

// The GEMM, and the collective before or behind it, in the schedule of `builder`.
void add_programs(ScheduleBuilder& builder, const GemmBeside& problem, const Machine& machine,
                  bool host_barriers, bool two_streams, const AddCollective& add_collective) {
  const LibraryTile library = library_tile(problem.gemm, machine);
  const DType dtype = problem.gemm.dtype;
  const auto m = static_cast<std::int32_t>(problem.gemm.m);
  const auto n = static_cast<std::int32_t>(problem.gemm.n);
  const auto k = static_cast<std::int32_t>(problem.gemm.k);
  const std::int16_t a = builder.buffer({"A", dtype, m, k, library.tile.m, library.tile.k});
  const std::int16_t b = builder.buffer({"B", dtype, k, n, library.tile.k, library.tile.n});
  const std::int16_t product =
      builder.buffer({"product", product_dtype(dtype), m, n, library.tile.m, library.tile.n});
  const std::int16_t parts = add_buffer_of_parts(builder, library, m, n);
  const std::int16_t ended = two_streams ? builder.flags("ended", 1) : std::int16_t{-1};
  builder.result(product);
  builder.input(builder.whole(a));
  builder.input(builder.whole(b));
  for (int rank = 0; rank < problem.gpus; ++rank) {
    builder.expect_product(builder.whole(product, rank), builder.whole(a, rank), builder.whole(b, rank));
    const std::int32_t collective = add_collective(rank);
    std::int32_t holding = -1;
    if (two_streams) {
      builder.signal(ended, 0, 1, rank, Scope::gpu, LockProtocol::load_store);
      Kernel hold = collective_kernel("hold", rank, {});
      hold.resources.lds_bytes = static_cast<std::int32_t>(machine.gpu.lds_bytes_per_workgroup_max);
      holding = builder.kernel(std::move(hold));
      for (std::int32_t channel = 0; channel < library_channels(machine); ++channel) {
        builder.workgroup(holding);
        builder.wait(ended, 0, 1, Scope::gpu, LockProtocol::load_store);
      }
    }
    LibraryGemmPlan plan{rank, a, b, k, product, {0, 0, m, n}, parts, dtype, library};
    plan.shares_units = two_streams;
    const std::vector<std::int32_t> gemm = add_library_gemm(builder, machine, plan);
    if (host_barriers) builder.host(rank, HostOpKind::barrier);
    const auto post_collective = [&](std::int32_t stream) {
      builder.host_work(rank, kCollectiveCall);
      builder.launch(rank, collective, stream);
    };
    if (two_streams) {
      post_collective(1);
      builder.launch(rank, holding, 2);
    }
    for (const std::int32_t kernel : gemm) builder.launch(rank, kernel, 0);
    if (!two_streams) post_collective(0);
    builder.host(rank, HostOpKind::device_synchronize);
    if (host_barriers) builder.host(rank, HostOpKind::barrier);
  }
}

Schedule beside_sum(std::string_view name, const GemmBeside& problem, const Machine& machine,
                    bool host_barriers, bool two_streams) {
  const bool everywhere = problem.collective == BesideCollective::all_reduce;
  const PartialSums sums = array_of(problem);
  SumKnobs sum_knobs;
  sum_knobs.host_barriers = host_barriers;
  SumDraft draft(name, sums, machine, sum_knobs, everywhere);
  LibraryReduce reduce = library_reduce_of(draft, everywhere ? "all_reduce" : "reduce_scatter", draft.partial,
                                           sums.dtype, blocks_of(sums));
  add_programs(draft.builder, problem, machine, host_barriers, two_streams, [&](int rank) {
    const Rect& block = reduce.blocks[static_cast<std::size_t>(rank)];
    reduce.rank = rank;
    reduce.place = everywhere ? block : Rect{0, 0, block.rows, block.cols};
    return add_library_reduce(draft.builder, machine, reduce);
  });
  return draft.builder.finish();
}

}  // namespace

Schedule build_beside_library(const GemmBeside& problem, const Machine& machine, const GemmKnobs& knobs,
                              bool two_streams) {
  const std::string_view name = two_streams ? "library-streams" : "library";
  if (problem.sums()) return beside_sum(name, problem, machine, knobs.host_barriers, two_streams);
  ScheduleBuilder builder(std::string(name), problem.gpus);
  const AddCollective add_collective =
      problem.gathers() ? all_gather_of(builder, problem, machine) : all_to_all_of(builder, problem, machine);
  add_programs(builder, problem, machine, knobs.host_barriers, two_streams, add_collective);
  return builder.finish();
}

}  // namespace tritax
