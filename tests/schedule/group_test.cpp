#include "model/schedule/group.hpp"

#include <gtest/gtest.h>

#include "model/schedule/json.hpp"
#include "model/schedule/relax.hpp"
#include "tests/schedule/expect_finding.hpp"
#include "tests/schedule/small_schedules.hpp"

namespace tritax {
namespace {

using Kind = Finding::Kind;

const std::string kPlace = "kernel 'k' rank 0 workgroup 0 operation ";

template <typename Add>
void expect_refused(const std::string& operation, const std::string& why, Add add) {
  const Schedule schedule = one_workgroup(add);
  bool found = false;
  for (const Finding& finding : check_schedule(schedule)) {
    found = found || (finding.kind == Kind::meaningless && finding.where == kPlace + operation &&
                      finding.message.find(why) != std::string::npos);
  }
  EXPECT_TRUE(found) << operation << ": " << why << "\n" << text_of(check_schedule(schedule));
}

TEST(Group, OfOneKindIsSound) {
  SmallSchedule s(4);
  for (int rank = 0; rank < 4; ++rank) {
    const auto k = s.kernel("k", rank);
    s.builder.workgroup(k);
    s.compute(0);
    s.builder.store(s.c, s.tile(0), rank);
    s.builder.together([&] {
      for (int peer = 0; peer < 4; ++peer)
        if (peer != rank) s.signal(rank, peer, 1, Scope::system);
    });
    s.builder.together([&] {
      for (int peer = 0; peer < 4; ++peer)
        if (peer != rank) s.wait(peer, 1, Scope::system);
    });
    s.builder.together([&] {
      s.builder.load(s.c, s.tile(0), rank);
      for (int peer = 0; peer < 4; ++peer)
        if (peer != rank) s.builder.reduce(s.c, s.tile(0), peer);
    });
    s.builder.store(s.c, s.tile(1), rank);
    s.builder.launch(rank, k);
  }
  expect_sound(s.builder.finish());
}

TEST(Group, BeginsWithAnOperationOfItsOwn) {
  Schedule schedule = one_workgroup([](auto& s) { s.builder.load(s.c, s.tile(0), 0); });
  schedule.ops[0].with_previous = true;
  expect_finding(schedule, Kind::meaningless, kPlace + "0 (load)", "there is none");
}

TEST(Group, OfDifferentKindsIsRefused) {
  expect_refused("2 (signal)", "before it (store)", [](auto& s) {
    s.builder.load(s.c, s.tile(0), 0);
    s.builder.together([&] {
      s.store(1, 0);
      s.signal(0, 0);
    });
  });
  expect_refused("1 (load)", "before it (load)", [](auto& s) {
    s.builder.together([&] {
      s.builder.load(s.c, s.tile(0), 0);
      s.builder.load(s.c, s.tile(1), 0);
    });
  });
  expect_refused("1 (matmul)", "before it (matmul)", [](auto& s) {
    s.builder.together([&] {
      s.compute(0);
      s.compute(0);
    });
  });
}

TEST(Group, ThatWritesOnePlaceTwiceIsRefused) {
  expect_refused("2 (store)", "writes what operation 1 of its group", [](auto& s) {
    s.builder.load(s.c, s.tile(0), 0);
    s.builder.together([&] {
      s.store(1, 1);
      s.store(1, 1);
    });
  });
  expect_refused("1 (copy)", "writes what operation 0 of its group", [](auto& s) {
    s.builder.together([&] {
      s.builder.copy(s.c, s.tile(1), 0, s.c, 0, 0, 0);
      s.builder.copy(s.c, s.tile(2), 0, s.c, s.tile(1).row, s.tile(1).col, 0);
    });
  });
}

TEST(Group, OfSignalsRaisesEachFlagOnceAndSetsNone) {
  expect_refused("1 (signal)", "raises the flag of operation 0", [](auto& s) {
    s.builder.together([&] {
      s.signal(0, 0);
      s.signal(0, 0);
    });
  });
  expect_refused("1 (signal)", "sets its flag in a group", [](auto& s) {
    s.builder.together([&] {
      s.builder.signal(s.ready, 0, 1, 1, Scope::system, kPlain);
      s.builder.set_flag(s.ready, 1, 1, 1, Scope::system, kPlain);
    });
  });
}

TEST(Group, LiesInsideOrOutsideABlockThatMayBeSkipped) {
  expect_refused("3 (store)", "a block that a claim may skip", [](auto& s) {
    s.builder.load(s.c, s.tile(0), 0);
    s.builder.claim(s.ready, 9, 1, 1);
    s.builder.together([&] {
      s.store(1, 0);
      s.store(2, 0);
    });
  });
}

TEST(Group, ThatTheSwitchCarriesOutIsOneRectangleOfSeveralRanksWithTheOwn) {
  const auto on_ranks = [](std::initializer_list<int> ranks, auto& s, bool stores) {
    s.builder.load(s.c, s.tile(0), 0);
    s.builder.multimem([&] {
      bool first = true;
      for (const int rank : ranks) {
        if (stores) {
          s.store(1, rank);
        } else if (first) {
          s.builder.load(s.c, s.tile(1), rank);
        } else {
          s.builder.reduce(s.c, s.tile(1), rank);
        }
        first = false;
      }
    });
  };
  for (const bool stores : {true, false}) {
    const std::string kind = stores ? "1 (store)" : "1 (load)";
    const Schedule sound = one_workgroup([&](auto& s) { on_ranks({1, 0}, s, stores); });
    for (const Finding& finding : check_schedule(sound)) EXPECT_NE(finding.kind, Kind::meaningless);
    EXPECT_TRUE(sound.ops[2].with_previous && sound.ops[2].multimem && sound.ops[1].multimem);
    expect_refused(kind, "a group of one", [&](auto& s) { on_ranks({0}, s, stores); });
    expect_refused(kind, "names rank 1 twice", [&](auto& s) { on_ranks({0, 1, 1}, s, stores); });
  }
  expect_refused("1 (store)", "without the own rank 0", [](auto& s) {
    s.builder.load(s.c, s.tile(0), 0);
    s.builder.multimem([&] {
      s.store(1, 1);
      s.store(1, 2);
    });
  });
  expect_refused("1 (store)", "names another rectangle", [](auto& s) {
    s.builder.load(s.c, s.tile(0), 0);
    s.builder.multimem([&] {
      s.store(1, 0);
      s.store(2, 1);
    });
  });
  expect_refused("0 (signal)", "has stores, or a load and then reduces", [](auto& s) {
    s.builder.multimem([&] {
      s.signal(0, 0);
      s.signal(1, 1);
    });
  });
  Schedule mixed = one_workgroup([&](auto& s) { on_ranks({0, 1}, s, true); });
  mixed.ops[1].multimem = false;
  expect_finding(mixed, Kind::meaningless, kPlace + "2 (store)", "only one of them is multimem");
}

TEST(Group, OfATransferIsRefused) {
  SmallSchedule s;
  s.builder.host_copy(0, 0, s.c, s.tile(0), 1, s.c, 0, 0, 0);
  Schedule schedule = s.builder.finish();
  schedule.transfers[0].with_previous = true;
  expect_finding(schedule, Kind::meaningless, "host operation 0 (copy) of rank 0",
                 "only workgroups have groups");
}

TEST(Group, IsCutWhereItIsTooLarge) {
  SmallSchedule s(2);
  const auto wide = s.builder.flags("wide", 3 * static_cast<std::int32_t>(kMostTogether));
  const auto k = s.kernel("k", 0);
  s.builder.workgroup(k);
  s.builder.together([&] {
    for (std::int32_t i = 0; i < 2 * static_cast<std::int32_t>(kMostTogether) + 1; ++i)
      s.builder.signal(wide, i, 1, 1, Scope::system, kPlain);
  });
  s.builder.launch(0, k);
  Schedule schedule = s.builder.finish();
  expect_sound(schedule);
  EXPECT_EQ(end_of_group(schedule.ops, 0), kMostTogether);
  EXPECT_EQ(end_of_group(schedule.ops, kMostTogether), 2 * kMostTogether);
  schedule.ops[kMostTogether].with_previous = true;
  expect_finding(schedule, Kind::meaningless, kPlace + "64 (signal)", "at most 64 operations");
}

TEST(Group, IsKeptByTheJsonForm) {
  const Schedule schedule = one_workgroup([](auto& s) {
    s.builder.load(s.c, s.tile(0), 0);
    s.builder.together([&] {
      s.store(1, 0);
      s.store(1, 1);
    });
  });
  const Schedule again = schedule_from_json(schedule_to_json(schedule), "again");
  ASSERT_EQ(again.ops.size(), 3U);
  EXPECT_FALSE(again.ops[0].with_previous);
  EXPECT_FALSE(again.ops[1].with_previous);
  EXPECT_TRUE(again.ops[2].with_previous);
}

// A run without boundaries has more flags; none comes between the operations of a group.
TEST(Group, StaysTogetherWithoutBoundaries) {
  SmallSchedule s(1);
  const auto first = s.kernel("first", 0);
  s.builder.workgroup(first);
  s.compute(0);
  s.builder.together([&] {
    s.store(0, 0);
    s.store(1, 0);
  });
  const auto second = s.kernel("second", 0);
  s.builder.workgroup(second);
  s.builder.together([&] {
    s.builder.load(s.c, s.tile(0), 0);
    s.builder.reduce(s.c, s.tile(1), 0);
  });
  s.store(2, 0);
  s.builder.launch(0, first);
  s.builder.launch(0, second);
  const Schedule relaxed = with_tile_dependences(s.builder.finish());
  expect_sound(relaxed);
  EXPECT_GT(relaxed.ops.size(), 6U);
}

}  // namespace
}  // namespace tritax
