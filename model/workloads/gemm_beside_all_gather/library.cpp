// Library baseline: the vendor's GEMM and the all-gather of the collective library, one after the other or on
// two streams.
//
//   stream 0, GEMM:             the vendor's kernel: C = A·B
//   stream 0 or 1, ALL-GATHER:  model/parts/library_gather.hpp; its channels exchange arrivals at the end
//
// Frameworks gather into a separate buffer, so that the own block is copied to its slot too. Products of fp8
// leave the GEMM in bf16. On two streams the all-gather is posted first: its few workgroups find compute
// units before the GEMM takes all of them.
#include <vector>

#include "model/parts/library_gather.hpp"
#include "model/parts/library_gemm.hpp"
#include "model/schedule/builder.hpp"
#include "model/workloads/gemm_beside_all_gather/patterns.hpp"

namespace tritax {

Schedule build_beside_library(const GemmBesideAllGather& problem, const Machine& machine,
                              const GemmKnobs& knobs, bool two_streams) {
  const LibraryTile library = library_tile(problem.gemm, machine);
  const DType dtype = problem.gemm.dtype;
  const auto m = static_cast<std::int32_t>(problem.gemm.m);
  const auto n = static_cast<std::int32_t>(problem.gemm.n);
  const auto k = static_cast<std::int32_t>(problem.gemm.k);
  const auto rows = static_cast<std::int32_t>(problem.rows);
  const auto cols = static_cast<std::int32_t>(problem.cols);
  ScheduleBuilder builder(two_streams ? "library-streams" : "library", problem.gpus);
  const std::int16_t a = builder.buffer({"A", dtype, m, k, library.tile.m, library.tile.k});
  const std::int16_t b = builder.buffer({"B", dtype, k, n, library.tile.k, library.tile.n});
  const std::int16_t c =
      builder.buffer({"C", dtype == DType::fp8 ? DType::bf16 : dtype, m, n, library.tile.m, library.tile.n});
  const std::int16_t block = builder.buffer({"block", dtype, rows, cols, rows, cols});
  const std::int16_t x = builder.buffer({"X", dtype, rows * problem.gpus, cols, rows, cols});
  const std::int16_t parts = add_buffer_of_parts(builder, library, m, n);
  const std::int16_t arrived = builder.flags("arrived", library_channels(machine) * problem.gpus);
  builder.result(c);
  builder.input(builder.whole(a));
  builder.input(builder.whole(b));
  builder.expect_gathered_rows(block, x);
  const GatherNodes nodes = gather_nodes(builder, machine, problem.gpus, [&](int rank) {
    return Rect{rank * rows, 0, rows, cols};
  });
  for (int rank = 0; rank < problem.gpus; ++rank) {
    builder.expect_product(builder.whole(c, rank), builder.whole(a, rank), builder.whole(b, rank));
    const PeerOrder order =
        nodes.passed >= 0 ? PeerOrder::rotated : PeerOrder::fixed;  // then all nodes have the same order
    const std::vector<int> peers = peers_of(order, problem.gpus, rank, 0);
    const std::int32_t gather = add_library_gather(
        builder, machine,
        {"all_gather",
         rank,
         problem.gpus,
         block,
         x,
         {rank * rows, 0, rows, cols},
         static_cast<double>(rows) * cols * bytes_of(dtype),
         nodes},
        [&](std::int32_t channel) {
          exchange_arrivals(builder, peers, problem.gpus, rank, channel, arrived, LockProtocol::load_store);
        });
    const std::vector<std::int32_t> gemm =
        add_library_gemm(builder, machine, {rank, a, b, k, c, {0, 0, m, n}, parts, dtype, library});
    const auto post_gather = [&](std::int32_t stream) {
      builder.host_work(rank, kCollectiveCall);
      builder.launch(rank, gather, stream);
    };
    if (knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
    if (two_streams) post_gather(1);
    for (const std::int32_t kernel : gemm) builder.launch(rank, kernel, 0);
    if (!two_streams) post_gather(0);
    builder.host(rank, HostOpKind::device_synchronize);
    if (knobs.host_barriers) builder.host(rank, HostOpKind::barrier);
  }
  return builder.finish();
}

}  // namespace tritax
