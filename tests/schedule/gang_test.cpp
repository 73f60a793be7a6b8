// Kernels that start whole or not at all.
#include "tests/schedule/places.hpp"

namespace tritax {
namespace {

// The case of deepseek-ai/DeepEP issue 496, made small: on both ranks "ep" needs both compute units at once
// for as long as its twin takes, and "nccl" one for as long as its own. Half of a unit is not enough for
// "ep".
Schedule exchange_beside_collective(Placement placement, bool same_order) {
  SmallSchedule s(2);
  for (int rank = 0; rank < 2; ++rank) {
    const auto add = [&](const std::string& name, int workgroups, int flag, int lds_bytes, Placement placed) {
      Kernel kernel;
      kernel.name = name;
      kernel.rank = rank;
      kernel.placement = placed;
      kernel.resources = {256, 16, lds_bytes};
      kernel.cu_end = 2;
      const std::int32_t index = s.builder.kernel(std::move(kernel));
      for (int w = 0; w < workgroups; ++w) {
        s.builder.workgroup(index);
        s.signal(flag + w, 1 - rank, 1, Scope::system);
        s.wait(flag + w, 1, Scope::system);
      }
      return index;
    };
    const auto ep = add("ep", 2, 0, 50000, placement);
    const auto nccl = add("nccl", 1, 2, 20000, Placement::dispatch);
    const bool nccl_first = rank == 0 || same_order;
    s.builder.launch(rank, nccl_first ? nccl : ep, 0);
    s.builder.launch(rank, nccl_first ? ep : nccl, 1);
  }
  return s.builder.finish();
}

TEST(CheckGang, InDifferentOrdersOnTwoRanksKeepsTheOtherKernelFromItsPlace) {
  const auto findings =
      check_schedule_on(exchange_beside_collective(Placement::gang, false), small_machine());
  ASSERT_EQ(findings.size(), 1U) << text_of(findings);
  EXPECT_EQ(findings[0].kind, Finding::Kind::resources);
  EXPECT_NE(findings[0].message.find("rank 0 launches 'nccl' before 'ep', rank 1 after it: keep one order"),
            std::string::npos)
      << findings[0].message;
}

TEST(CheckGang, InTheSameOrderOnAllRanksIsSound) {
  LaunchOrders orders = LaunchOrders::one;
  const auto findings =
      check_schedule_on(exchange_beside_collective(Placement::gang, true), small_machine(), 20, &orders);
  EXPECT_EQ(text_of(findings), "");
  EXPECT_EQ(orders, LaunchOrders::alike);
}

TEST(CheckGang, WorkgroupsThatStartOneByOneMakeDoWithWhatIsLeft) {
  for (const Placement placement : {Placement::dispatch, Placement::persistent}) {
    const auto findings = check_schedule_on(exchange_beside_collective(placement, false), small_machine());
    EXPECT_EQ(text_of(findings), "");
  }
}

TEST(CheckGang, NeedsAPlaceForEachOfItsWorkgroups) {
  Places s(1);
  s.signalling(s.add("signals", 0, -1, 65536, Placement::gang), 0, 0, kUnits + 1);
  s.expect_refused("kernel 'signals' rank 0",
                   "is gang with 9 workgroups, but only 8 of them are resident at once on Small");
}

// One unit less than the gang needs is left beside a kernel that spins on it.
TEST(CheckGang, IsKeptOutAsAWholeByOneThatSpinsOnIt) {
  for (const int spinning : {2, 3}) {
    for (const Placement placement : {Placement::gang, Placement::dispatch}) {
      Places s(1);
      s.spinning(s.add("spins", 0), spinning, 0, kUnits - 2);
      s.signalling(s.add("signals", 0, -1, 65536, placement), 0, 0, kUnits - 2);
      if (spinning == 2 || placement == Placement::dispatch) {
        s.expect_sound();
      } else {
        s.expect_refused(
            "kernel 'spins' rank 0 workgroup 0 operation 0 (wait)",
            "kernel 'signals' rank 0 as a whole (6 workgroups), on which that depends, may never get a "
            "place on Small: 3 workgroups of kernel 'spins' rank 0 can take places that it needs");
      }
    }
  }
}

}  // namespace
}  // namespace tritax
