// A space made by hand: what a search may try, and in which order.
#include "model/workload/knob_space.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace tritax {
namespace {

const std::array<Spec, 4> kKnobs{{
    {.name = "size", .help = "of a piece", .high = 1000},
    {.name = "part", .help = "of the size", .high = 1000},
    {.name = "units", .help = "that work", .high = 1000},
    {.name = "order", .help = "of the pieces", .high = 1000},
}};

// Parts depend on the size: a half of it, where that is whole.
Axis part_axis() {
  Axis axis;
  axis.name = "part";
  axis.relative = true;
  for (const std::int64_t share : {1, 2}) {
    axis.values.push_back({{share}, 0, [share](Values& knobs) {
                             knobs.assume("part", knobs["size"] / share);
                             return knobs["size"] % share == 0;
                           }});
  }
  return axis;
}

// Sizes 4, 5, 6, 7, of which even and odd ones are a group each.
Axis size_axis(const std::vector<std::int64_t>& sizes) {
  Axis axis = column_axis("size", sizes);
  for (AxisValue& value : axis.values) value.group = static_cast<int>(value.id.front() % 2);
  axis.near = Axis::Near::grouped;
  axis.travels = axis.must_travel = true;
  return axis;
}

KnobSpace hand_made(const std::vector<std::int64_t>& sizes = {4, 5, 6, 7}) {
  KnobSpace space;
  space.base = Values(kKnobs);
  space.axes.push_back(part_axis());
  space.axes.push_back(size_axis(sizes));
  space.axes.push_back(column_axis("units", {10, 20, 30, 40}));
  space.axes.back().near = Axis::Near::next;
  space.axes.back().start = 2;
  space.axes.push_back(column_axis("order", {1, 2, 3}));
  space.axes.back().travels = true;
  return space;
}

// "size/part/units/order".
std::string text(const Values& knobs) {
  return std::to_string(knobs["size"]) + "/" + std::to_string(knobs["part"]) + "/" +
         std::to_string(knobs["units"]) + "/" + std::to_string(knobs["order"]);
}

std::vector<std::string> texts(const std::vector<Option>& options) {
  std::vector<std::string> all;
  for (const Option& option : options) all.push_back(text(option.knobs));
  return all;
}

using Texts = std::vector<std::string>;

TEST(Compose, AppliesWhatDependsOnOthersAfterThem) {
  const auto knobs = compose(hand_made(), {1, 2, 0, 0});
  ASSERT_TRUE(knobs.has_value());
  EXPECT_EQ(text(*knobs), "6/3/10/1");
}

TEST(Compose, IsNothingWhereValuesDoNotGoTogether) {
  EXPECT_FALSE(compose(hand_made(), {1, 1, 0, 0}).has_value()) << "5 has no half";
}

TEST(Compose, SettlesLast) {
  KnobSpace space = hand_made();
  space.settle = [](Values& knobs) { knobs.assume("order", knobs["part"]); };
  EXPECT_EQ(text(*compose(space, {1, 0, 0, 2})), "4/2/10/2");
}

TEST(Compose, KeepsWhatNoAxisCovers) {
  KnobSpace space = hand_made();
  space.axes.pop_back();
  space.base.give("order", 77);
  EXPECT_EQ(text(*compose(space, start_of(space))), "4/4/30/77");
}

TEST(CoarseChoices, AreTheStartAloneWhereNoAxisIsCrossed) {
  EXPECT_EQ(texts(coarse_choices(hand_made())), (Texts{"4/4/30/1"}));
}

TEST(CoarseChoices, CrossWithTheLastAxisFastestAfterTheStart) {
  KnobSpace space = hand_made();
  space.axes[1].coarse = {0, 3};
  space.axes[2].coarse = {0, 1, 2};
  EXPECT_EQ(texts(coarse_choices(space)),
            (Texts{"4/4/30/1", "4/4/10/1", "4/4/20/1", "7/7/10/1", "7/7/20/1", "7/7/30/1"}));
}

TEST(CoarseChoices, LeaveOutWhatDoesNotGoTogetherAndWhatSettlesToTheSame) {
  KnobSpace space = hand_made();
  space.axes[0].coarse = {0, 1};
  space.axes[1].coarse = {0, 1};
  EXPECT_EQ(texts(coarse_choices(space)), (Texts{"4/4/30/1", "5/5/30/1", "4/2/30/1"}));
  space.settle = [](Values& knobs) { knobs.assume("part", 0); };
  EXPECT_EQ(texts(coarse_choices(space)), (Texts{"4/0/30/1", "5/0/30/1"}));
}

TEST(Neighbours, AreTheNextTheSameGroupOrAllByAxis) {
  EXPECT_EQ(texts(neighbours(hand_made(), {0, 0, 2, 1})),
            (Texts{"4/2/30/2",                // the half
                   "6/6/30/2",                // of its group
                   "4/4/20/2", "4/4/40/2",    // the next
                   "4/4/30/1", "4/4/30/3"}))  // all
      << "axis by axis";
  EXPECT_EQ(texts(neighbours(hand_made(), {0, 1, 0, 0})),
            (Texts{"7/7/10/1", "5/5/20/1", "5/5/10/2", "5/5/10/3"}));
}

TEST(Neighbours, LeaveOutWhatSettlesToTheSame) {
  KnobSpace space = hand_made();
  space.settle = [](Values& knobs) { knobs.assume("order", std::min<std::int64_t>(knobs["order"], 2)); };
  EXPECT_EQ(texts(neighbours(space, {0, 1, 0, 1})), (Texts{"7/7/10/2", "5/5/20/2", "5/5/10/1"}));
}

TEST(WithTravelling, TakesTheTravellingValuesAndKeepsTheOthers) {
  const auto taken = with_travelling(hand_made(), {1, 0, 1, 0}, hand_made(), {0, 2, 3, 2});
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(text(taken->knobs), "6/3/20/3");
  EXPECT_EQ(taken->choice, (KnobChoice{1, 2, 1, 2}));
}

TEST(WithTravelling, FindsValuesByWhatTheyAreNotByTheirNumber) {
  const KnobSpace others = hand_made({7, 6});
  const auto taken = with_travelling(hand_made(), {0, 0, 0, 0}, others, {0, 0, 0, 0});
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(text(taken->knobs), "7/7/10/1");
}

TEST(WithTravelling, IsNothingWithoutWhatMustTravel) {
  EXPECT_FALSE(with_travelling(hand_made(), {0, 0, 0, 0}, hand_made({8}), {0, 0, 0, 0}).has_value());
  KnobSpace others = hand_made();
  others.axes.erase(others.axes.begin() + 1);
  EXPECT_FALSE(with_travelling(hand_made(), {0, 0, 0, 0}, others, {0, 0, 0}).has_value());
}

TEST(WithTravelling, KeepsTheOwnOfWhatNeedNotTravelAndIsNotThere) {
  KnobSpace others = hand_made();
  others.axes.pop_back();  // no orders
  const auto taken = with_travelling(hand_made(), {0, 0, 0, 2}, others, {0, 3, 0});
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(text(taken->knobs), "7/7/10/3");
}

TEST(WithTravelling, GivesUpWhatDependsOnOthersWhereItDoesNotGoWithThem) {
  const auto taken = with_travelling(hand_made(), {1, 0, 0, 0}, hand_made(), {0, 1, 0, 0});
  ASSERT_TRUE(taken.has_value());
  EXPECT_EQ(text(taken->knobs), "5/5/10/1") << "5 has no half";
  EXPECT_EQ(taken->choice, (KnobChoice{0, 1, 0, 0}));
}

TEST(GroupOf, IsThatOfTheGroupedAxis) {
  EXPECT_EQ(group_of(hand_made(), {0, 1, 0, 0}), 1);
  EXPECT_EQ(group_of(hand_made(), {0, 2, 0, 0}), 0);
  KnobSpace space = hand_made();
  space.axes.erase(space.axes.begin() + 1);
  EXPECT_EQ(group_of(space, {0, 0, 0}), -1);
}

// Of random spaces whose axes write columns of their own.
KnobSpace some_space() {
  KnobSpace space;
  space.base = Values(kKnobs);
  for (const char* column : {"size", "part", "units", "order"}) {
    const auto count = *rc::gen::inRange<std::size_t>(1, 5);
    std::vector<std::int64_t> values;
    for (std::size_t i = 0; i < count; ++i) values.push_back(*rc::gen::inRange(1, 9));
    Axis& axis = space.axes.emplace_back(column_axis(column, values));
    axis.start = *rc::gen::inRange<std::size_t>(0, count);
    for (std::size_t i = 0; i < count; ++i) {
      axis.values[i].group = *rc::gen::inRange(0, 2);
      if (*rc::gen::arbitrary<bool>()) axis.coarse.push_back(i);
    }
    axis.near = *rc::gen::element(Axis::Near::all, Axis::Near::next, Axis::Near::grouped);
  }
  return space;
}

void expect_options(const KnobSpace& space, const std::vector<Option>& options) {
  for (std::size_t i = 0; i < options.size(); ++i) {
    RC_ASSERT(compose(space, options[i].choice) == options[i].knobs);
    for (std::size_t j = 0; j < i; ++j) RC_ASSERT(!(options[i].knobs == options[j].knobs));
  }
}

RC_GTEST_PROP(KnobSpaces, HaveOptionsThatAreTheirChoicesComposedAndNoKnobsTwice, ()) {
  const KnobSpace space = some_space();
  const std::vector<Option> coarse = coarse_choices(space);
  RC_ASSERT(coarse.front().choice == start_of(space));
  expect_options(space, coarse);
  for (const Option& option : coarse) {
    const std::vector<Option> near = neighbours(space, option.choice);
    expect_options(space, near);
    for (const Option& other : near) {
      RC_ASSERT(!(other.knobs == option.knobs));
      int changed = 0;
      for (std::size_t a = 0; a < space.axes.size(); ++a)
        changed += other.choice[a] != option.choice[a] ? 1 : 0;
      RC_ASSERT(changed == 1);
    }
  }
}

}  // namespace
}  // namespace tritax
