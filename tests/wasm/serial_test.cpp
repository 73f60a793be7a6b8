// The stand-ins of the WebAssembly build (wasm/serial, wasm/include), compiled for this computer.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <bit>
#include <charconv>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "wasm/include/read_double.hpp"

namespace tritax {
namespace {

TEST(SerialTbb, CallsTheBodyForEveryIndexInOrder) {
  std::vector<std::size_t> seen;
  tbb::parallel_for(std::size_t{2}, std::size_t{5}, [&](std::size_t i) { seen.push_back(i); });
  EXPECT_EQ(seen, (std::vector<std::size_t>{2, 3, 4}));
  tbb::parallel_for(
      tbb::blocked_range<std::size_t>(0, 0, 1), [&](const auto&) { FAIL() << "nothing is in the range"; },
      tbb::simple_partitioner{});
}

TEST(SerialTbb, GivesBackWhatAnArenaComputesAndWhatItThrows) {
  tbb::task_arena arena(4);
  EXPECT_EQ(arena.execute([] { return 7; }), 7);
  EXPECT_THROW(arena.execute([] { throw std::runtime_error("a"); }), std::runtime_error);
  EXPECT_EQ(tbb::info::default_concurrency(), 1);
}

TEST(SerialTbb, AGroupThrowsWhatATaskThrewWhenItIsWaitedFor) {
  tbb::task_group tasks;
  int ran = 0;
  tasks.run([&] { ++ran; });
  tasks.run([] { throw std::runtime_error("a"); });
  tasks.run([&] { ++ran; });  // after a failure none runs
  EXPECT_EQ(ran, 1);
  EXPECT_THROW(tasks.wait(), std::runtime_error);
  tasks.run([&] { ++ran; });
  EXPECT_NO_THROW(tasks.wait());
  EXPECT_EQ(ran, 2);
}

void expect_same(const std::string& text) {
  double wanted = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), wanted);
  const DoubleRead read = read_double(text);
  EXPECT_EQ(read.length, static_cast<std::size_t>(end - text.data())) << text;
  EXPECT_EQ(static_cast<int>(read.error), static_cast<int>(error)) << text;
  if (error == std::errc{}) {
    EXPECT_EQ(std::bit_cast<std::uint64_t>(read.value), std::bit_cast<std::uint64_t>(wanted)) << text;
  }
}

TEST(ReadDouble, ReadsWhatFromCharsReads) {
  for (const char* text :
       {"",     "-",        "+1",  " 1", "1 ",   "0x10",  "1e",     "1e+",    "1e5x",     ".5",
        ".",    "-.",       "-0",  "1.", "1..2", "1e999", "-1e999", "1e-999", "4.9e-324", "inf",
        "-inf", "infinity", "nan", "i",  "in",   "1-2",   "--1",    "1e5e5"}) {
    expect_same(text);
  }
}

RC_GTEST_PROP(ReadDouble, ReadsAnyTextAsFromCharsDoes, ()) {
  expect_same(*rc::gen::container<std::string>(rc::gen::elementOf(std::string("0123456789.eE+-infax "))));
}

}  // namespace
}  // namespace tritax
