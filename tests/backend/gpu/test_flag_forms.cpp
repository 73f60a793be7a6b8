// Flags that are set back, relaxed signals and gangs on GPUs.
#include <gtest/gtest.h>

#include "gpu_schedules.hpp"
#include "model/core/error.hpp"
#include "model/schedule/check.hpp"

namespace tritax::gpu {
namespace {

// A gang of one workgroup computes tile after tile and puts each into a box; another empties the box into C
// and sets the flag back.
Schedule mailbox(LockProtocol protocol, Placement placement) {
  const Problem problem{512, 384, 256, DType::bf16};
  ScheduleBuilder builder("mailbox", 1);
  const Operands buffers = operands(builder, problem, {128, 128});
  const std::int16_t box = builder.buffer({"box", problem.dtype, 128, 128, 128, 128});
  const std::int16_t full = builder.flags("full", 1);
  const std::int16_t taken = builder.flags("taken", 1);
  const std::int32_t compute = matmul_kernel(builder, "gemm", {128, 128}, problem.dtype);
  const std::int32_t move = plain_kernel(builder, "move", 256);
  const std::vector<Rect> tiles = tiles_of(problem, {128, 128});
  builder.workgroup(compute);
  for (std::size_t t = 0; t < tiles.size(); ++t) {
    builder.matmul(buffers.a, buffers.b, tiles[t], 0, problem.k);
    builder.store(box, {0, 0, 128, 128}, 0);
    builder.signal(full, 0, 1, 0, Scope::gpu, protocol);
    builder.wait(taken, 0, static_cast<std::int32_t>(t) + 1, Scope::gpu, protocol);
  }
  builder.workgroup(move);
  for (const Rect& tile : tiles) {
    builder.wait(full, 0, 1, Scope::gpu, protocol);
    builder.copy(buffers.c, tile, 0, box, 0, 0, 0);
    builder.set_flag(full, 0, 0, 0, Scope::gpu, protocol, MemoryOrder::relaxed);
    builder.signal(taken, 0, 1, 0, Scope::gpu, protocol);
  }
  builder.launch(0, compute, 0);
  builder.launch(0, move, 1);
  Schedule schedule = builder.finish();
  for (Kernel& kernel : schedule.kernels) kernel.placement = placement;
  return schedule;
}

TEST(FlagFormsOnGpu, AFlagThatIsSetBackHandsOverEveryTile) {
  TRITAX_NEEDS_GPUS(1);
  for (const LockProtocol protocol :
       {LockProtocol::load_store, LockProtocol::exchange, LockProtocol::compare_and_swap}) {
    for (const Placement placement : {Placement::dispatch, Placement::gang}) {
      const Schedule schedule = mailbox(protocol, placement);
      require_sound(check_schedule(schedule), "mailbox");
      for (std::uint64_t seed = 1; seed <= 3; ++seed) expect_right(schedule, seed);
    }
  }
}

TEST(FlagFormsOnGpu, AGangThatIsTooLargeOrInAGraphIsRefused) {
  TRITAX_NEEDS_GPUS(1);
  const auto refusal = [](const Schedule& schedule) -> std::string {
    try {
      Executor executor(schedule, {});
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  Schedule large = mailbox(LockProtocol::load_store, Placement::gang);
  large.kernels[1].workgroups.resize(1 << 16);
  EXPECT_NE(refusal(large).find("kernel 'move' is gang with 65536 workgroups"), std::string::npos);
  Schedule in_graph = mailbox(LockProtocol::load_store, Placement::gang);
  in_graph.graphs.push_back({{0, 0}, {1, 1}});
  in_graph.host[0] = {{HostOpKind::graph_launch, -1, 0, 0}};
  EXPECT_NE(refusal(in_graph).find("is gang and a node of a graph"), std::string::npos);
}

}  // namespace
}  // namespace tritax::gpu
