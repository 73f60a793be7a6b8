#include "model/schedule/json.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/core/error.hpp"
#include "tests/schedule/random_schedule.hpp"

namespace tritax {
namespace {

// A correct schedule with one place that tests damage.
std::string schedule_with_op(const std::string& op) {
  return R"({"schema": "tritax.schedule/1", "ranks": 2,
    "buffers": [{"name": "A", "dtype": "fp16", "shape": [64, 64]}, {"name": "C", "dtype": "fp16", "shape": [64, 64]}],
    "flags": [{"name": "ready", "count": 4}],
    "kernels": [{"name": "gemm", "rank": 1, "workgroups": [{"ops": [{"op": "barrier"}, )" +
         op + R"(]}]}],
    "host": [[], [{"op": "launch", "kernel": "gemm"}]]})";
}

std::string error_of(const std::string& text) {
  try {
    schedule_from_json(text, "s.json");
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

void expect_error(const std::string& text, const std::vector<std::string>& parts) {
  const std::string message = error_of(text);
  for (const std::string& part : parts) {
    EXPECT_NE(message.find(part), std::string::npos) << "'" << part << "' is not in: " << message;
  }
}

RC_GTEST_PROP(ScheduleJson, WritingAndReadingGivesTheSameText, ()) {
  const Schedule schedule = *random_schedule();
  const bool pretty = *rc::gen::arbitrary<bool>();
  const std::string text = schedule_to_json(schedule, pretty);
  RC_ASSERT(schedule_to_json(schedule_from_json(text, "text"), pretty) == text);
}

RC_GTEST_PROP(ScheduleJson, ReadingRestoresEveryOperation, ()) {
  const Schedule written = *random_schedule();
  const Schedule read = schedule_from_json(schedule_to_json(written), "text");
  RC_ASSERT(read.ops.size() == written.ops.size());
  for (std::size_t i = 0; i < read.ops.size(); ++i) {
    RC_ASSERT(fields_of(read.ops[i]) == fields_of(written.ops[i]));
  }
}

RC_GTEST_PROP(ScheduleJson, ReadingRestoresWhetherRegistersAreFilled, ()) {
  const Schedule written = *random_schedule();
  const Schedule read = schedule_from_json(schedule_to_json(written), "text");
  for (std::size_t i = 0; i < read.kernels.size(); ++i) {
    RC_ASSERT(read.kernels[i].clk_per_stored_byte == written.kernels[i].clk_per_stored_byte);
    RC_ASSERT(read.kernels[i].registers_filled == written.kernels[i].registers_filled);
  }
}

RC_GTEST_PROP(ScheduleJson, ReadingRestoresWorkgroupsAndItems, ()) {
  const Schedule written = *random_schedule();
  const Schedule read = schedule_from_json(schedule_to_json(written), "text");
  const auto same = [](const std::vector<Workgroup>& a, const std::vector<Workgroup>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const Workgroup& one, const Workgroup& other) {
                        return one.first_op == other.first_op && one.op_count == other.op_count;
                      });
  };
  for (std::size_t i = 0; i < read.kernels.size(); ++i) {
    RC_ASSERT(same(read.kernels[i].workgroups, written.kernels[i].workgroups));
    RC_ASSERT(same(read.kernels[i].items, written.kernels[i].items));
  }
}

TEST(ScheduleJson, AClaimNamesItemsOrSkipsOperations) {
  const auto claim = [](const std::string& keys) {
    return R"({"schema": "tritax.schedule/1", "ranks": 1, "flags": [{"name": "queue", "count": 1}],
      "kernels": [{"name": "k", "workgroups": [{"ops": [{"op": "claim", "flag": "queue")" +
           keys + R"(}]}], "items": [{"ops": []}]}], "host": [[]]})";
  };
  const Schedule read = schedule_from_json(claim(R"(, "items": [0, 1])"), "s.json");
  EXPECT_EQ(read.ops[0].k_end, 1);
  EXPECT_EQ(read.kernels[0].items.size(), 1U);
  expect_error(claim(""), {"kernels[0].workgroups[0].ops[0]", "limit"});
  expect_error(claim(R"(, "items": [1, 1])"), {"ops[0].items", "a claim names at least one item"});
  expect_error(claim(R"(, "items": [0, 1], "skip": 2)"), {"ops[0].skip", "a claim of items skips nothing"});
}

RC_GTEST_PROP(ScheduleJson, TruncatedTextIsRefusedWithLineAndColumn, ()) {
  const std::string text = schedule_to_json(*random_schedule(), true);
  const auto last = static_cast<int>(text.find_last_of('}'));
  const auto length = static_cast<std::size_t>(*rc::gen::inRange(0, last));
  const std::string message = error_of(text.substr(0, length));
  const auto lines = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length), '\n') + 1;
  RC_ASSERT(message.starts_with("s.json:" + std::to_string(lines) + ":"));
  RC_ASSERT(message.find("ends too early") != std::string::npos);
}

RC_GTEST_PROP(ScheduleJson, DamagedTextIsReadOrRefusedButNeverCrashes, ()) {
  std::string text = schedule_to_json(*random_schedule());
  for (int i = 0; i < 3; ++i) {
    text[static_cast<std::size_t>(*rc::gen::inRange(0, static_cast<int>(text.size())))] =
        *rc::gen::arbitrary<char>();
  }
  try {
    schedule_from_json(text, "text");
  } catch (const UserError& error) {
    RC_ASSERT(std::string(error.what()).starts_with("text"));
  }
}

TEST(ScheduleJson, DefaultsAreTheOwnRankGpuScopeAndOne) {
  const Schedule schedule =
      schedule_from_json(schedule_with_op(R"({"op": "signal", "flag": "ready"})"), "s.json");
  const Op& op = schedule.ops.at(1);
  EXPECT_EQ(op.rank, 1);
  EXPECT_EQ(op.flag, 0);
  EXPECT_EQ(op.index, 0);
  EXPECT_EQ(op.value, 1);
  EXPECT_EQ(op.scope, Scope::gpu);
  EXPECT_EQ(op.protocol, LockProtocol::load_store);
}

TEST(ScheduleJson, ACopyTakesTheSameTileUnlessItSaysOtherwise) {
  const Schedule schedule = schedule_from_json(
      schedule_with_op(
          R"({"op": "copy", "to": 0, "buffer": "C", "at": [0, 32], "shape": [8, 8], "from": {}})"),
      "s");
  const Op& op = schedule.ops.at(1);
  EXPECT_EQ(op.rank, 0);
  EXPECT_EQ(op.src_rank, 1);
  EXPECT_EQ(op.src_buffer, 1);
  EXPECT_EQ(op.src_row, 0);
  EXPECT_EQ(op.src_col, 32);
}

TEST(ScheduleJson, AMatmulReadsItsOwnAUnlessItNamesAnOwner) {
  const std::string matmul = R"({"op": "matmul", "a": "A", "b": "A", "shape": [8, 8], "k": [0, 8])";
  const auto value_with = [&](const std::string& rest) {
    const Schedule schedule = schedule_from_json(schedule_with_op(matmul + rest), "s");
    EXPECT_EQ(schedule_from_json(schedule_to_json(schedule), "again").ops.at(1).value,
              schedule.ops.at(1).value);
    return schedule.ops.at(1).value;
  };
  EXPECT_EQ(value_with("}"), 0);
  EXPECT_EQ(value_with(R"(, "owner": 1})"), 0);  // of the kernel
  EXPECT_EQ(value_with(R"(, "owner": 0})"), 1);
}

std::string kernels_of_profile(const std::string& of_all, const std::string& of_first) {
  return R"({"schema": "tritax.schedule/1", "ranks": 1, )" + of_all + R"("kernels": [
    {"name": "gemm", )" +
         of_first + R"("workgroups": []}, {"name": "copy", "workgroups": []}], "host": [[]]})";
}

TEST(ScheduleJson, KernelsHaveTheInterpretersProfileUnlessTheySayOtherwise) {
  for (const bool again : {false, true}) {
    Schedule schedule = schedule_from_json(kernels_of_profile("", R"("profile": "triton", )"), "s.json");
    if (again) schedule = schedule_from_json(schedule_to_json(schedule), "again");
    EXPECT_EQ(schedule.kernels.at(0).profile, KernelProfile::triton);
    EXPECT_EQ(schedule.kernels.at(1).profile, KernelProfile::interpreter);
  }
}

TEST(ScheduleJson, AFormerScheduleOfAVendorHasItsKernels) {
  for (const bool again : {false, true}) {
    Schedule schedule = schedule_from_json(kernels_of_profile(R"("vendor": true, )", ""), "s.json");
    if (again) schedule = schedule_from_json(schedule_to_json(schedule), "again");
    for (const Kernel& kernel : schedule.kernels) EXPECT_EQ(kernel.profile, KernelProfile::vendor);
  }
  const Schedule own = schedule_from_json(kernels_of_profile(R"("vendor": false, )", ""), "s.json");
  EXPECT_EQ(own.kernels.at(0).profile, KernelProfile::interpreter);
}

TEST(ScheduleJson, AnUnknownProfileIsRefusedWithTheKnownOnes) {
  expect_error(kernels_of_profile("", R"("profile": "cublas", )"),
               {"s.json", "kernels[0]", "profile", "cublas", "interpreter", "triton", "vendor"});
}

TEST(ScheduleJson, HostWorkHasALabelAndMayHaveADuration) {
  const Schedule schedule = schedule_from_json(
      R"({"schema": "tritax.schedule/1", "ranks": 1, "kernels": [], "host": [[
          {"op": "host_work", "label": "collective_call"}, {"op": "host_work", "label": "mine", "duration_ns": 7.5}]]})",
      "test");
  ASSERT_EQ(schedule.host[0].size(), 2u);
  EXPECT_TRUE(schedule.host[0][0].is_work(kCollectiveCall));
  EXPECT_LT(schedule.host[0][0].duration_ns, 0);
  EXPECT_EQ(schedule.host[0][1].duration_ns, 7.5);
  const Schedule again = schedule_from_json(schedule_to_json(schedule, true), "again");
  EXPECT_EQ(again.host[0][1].label, "mine");
  EXPECT_EQ(again.host[0][1].duration_ns, 7.5);
  EXPECT_LT(again.host[0][0].duration_ns, 0);
}

TEST(ScheduleJson, FormerHostWorkIsReadAsWorkOfThatLabel) {
  const Schedule schedule = schedule_from_json(
      R"({"schema": "tritax.schedule/1", "ranks": 1, "kernels": [], "host": [[
          {"op": "framework_sync"}, {"op": "framework_gather"}, {"op": "collective_call"}]]})",
      "test");
  for (const HostOp& op : schedule.host[0]) EXPECT_LT(op.duration_ns, 0);
  EXPECT_TRUE(schedule.host[0][0].is_work(kFrameworkSync));
  EXPECT_TRUE(schedule.host[0][1].is_work(kFrameworkGather));
  EXPECT_TRUE(schedule.host[0][2].is_work(kCollectiveCall));
}

TEST(ScheduleJson, AnUnknownKeyIsRefusedWithItsPathAndTheNearestKey) {
  expect_error(schedule_with_op(R"({"op": "store", "bufer": "C", "shape": [8, 8]})"),
               {"s.json: kernels[0].workgroups[0].ops[1]: unknown key 'bufer', did you mean 'buffer'?"});
}

TEST(ScheduleJson, AKeyOfAnotherOperationIsRefused) {
  expect_error(schedule_with_op(R"({"op": "load", "to": 1, "buffer": "C", "shape": [8, 8]})"),
               {"unknown key 'to'", "allowed: op, from, buffer, at, shape"});
}

TEST(ScheduleJson, AnUnknownOperationIsRefusedWithTheNearestName) {
  expect_error(schedule_with_op(R"({"op": "stroe"})"),
               {"kernels[0].workgroups[0].ops[1].op", "'stroe'", "did you mean 'store'?", "matmul"});
}

TEST(ScheduleJson, AnUnknownBufferIsRefusedWithTheKnownOnes) {
  expect_error(schedule_with_op(R"({"op": "store", "buffer": "D", "shape": [8, 8]})"),
               {"ops[1].buffer: unknown buffer 'D'", "A, C"});
}

TEST(ScheduleJson, AnUnknownFlagIsRefused) {
  expect_error(schedule_with_op(R"({"op": "wait", "flag": "redy"})"),
               {"ops[1].flag: unknown flag 'redy', did you mean 'ready'?"});
}

TEST(ScheduleJson, TheNameOfFlagsThatCostNothingIsRefused) {
  std::string text = schedule_with_op(R"({"op": "wait", "flag": "ready"})");
  text.replace(text.find("\"ready\""), 7, "\"tile-dependences\"");
  expect_error(
      text, {"flags[0].name: \"tile-dependences\" is not allowed", "kept for flags that the simulator adds"});
}

TEST(ScheduleJson, AKernelOfAnotherRankIsRefused) {
  std::string text = schedule_with_op(R"({"op": "barrier"})");
  text.replace(text.find("[[]"), 3, R"([[{"op": "launch", "kernel": "gemm"}])");
  expect_error(text, {"host[0][0].kernel: unknown kernel of rank 0 'gemm'"});
}

TEST(ScheduleJson, NumbersThatOverflowAreRefused) {
  for (const char* value :
       {"2147483648", "99999999999999999999999", "-1", "1.5", "1e400", "\"1\"", "null", "true"}) {
    expect_error(
        schedule_with_op(R"({"op": "signal", "flag": "ready", "index": )" + std::string(value) + "}"),
        {"s.json"});
  }
  expect_error(schedule_with_op(R"({"op": "signal", "flag": "ready", "index": 2147483648})"),
               {"ops[1].index: 2147483648 is not allowed; give an integer from 0 to 2147483647"});
  expect_error(schedule_with_op(R"({"op": "signal", "flag": "ready", "rank": 40000})"),
               {"ops[1].rank: 40000 is not allowed; give an integer from 0 to 32767"});
}

std::string with_kernel_key(const std::string& key_and_value) {
  return R"({"schema": "tritax.schedule/1", "ranks": 1, "host": [[]], "kernels": [{"name": "k", )" +
         key_and_value + ", \"workgroups\": []}]}";
}

TEST(ScheduleJson, RatesOfEarlierVersionsAreRefusedWithWhatToDo) {
  for (const std::string key : {"workgroup_gb_per_s", "remote_store_gb_per_s", "matmul_share"}) {
    expect_error(with_kernel_key("\"" + key + "\": 0.5"),
                 {"s.json: kernels[0]." + key + ": 0.5 is not allowed; a schedule has no " + key,
                  "\"library\"", "write the schedule again"});
  }
}

TEST(ScheduleJson, AKernelOfALibraryIsNamedWithWhatItsRatesFollowFrom) {
  const std::string text =
      R"("library": {"routine": "all-reduce", "bytes": 1e6, "ranks": 8, "channels": 24, "chunks": 4, "flags": 2})";
  const LibraryKernel expected{LibraryRoutine::all_reduce, 8, 1e6, 24, 4, 2};
  EXPECT_EQ(schedule_from_json(with_kernel_key(text), "s.json").kernels[0].library, expected);
  expect_error(with_kernel_key(R"("library": {"routine": "all-red"})"),
               {"kernels[0].library.routine", "all-red", "all-reduce"});
  expect_error(with_kernel_key(R"("library": {"routine": "gemm", "rate": 1})"),
               {"kernels[0].library", "rate"});
  expect_error(with_kernel_key(R"("library": {"bytes": 1})"), {"'routine' is missing"});
}

TEST(ScheduleJson, SaysWhoLaunches) {
  const auto with = [](const std::string& processes) {
    return R"({"schema": "tritax.schedule/1", "ranks": 1, )" + processes + R"("host": [[]]})";
  };
  EXPECT_FALSE(schedule_from_json(with(""), "s.json").one_process);
  EXPECT_FALSE(schedule_from_json(with(R"("processes": "per-gpu", )"), "s.json").one_process);
  EXPECT_TRUE(schedule_from_json(with(R"("processes": "one", )"), "s.json").one_process);
  expect_error(with(R"("processes": "two", )"), {"s.json: processes", "two", "per-gpu", "one"});
}

TEST(ScheduleJson, AMissingKeyIsNamed) {
  expect_error(schedule_with_op(R"({"op": "store", "buffer": "C"})"), {"ops[1]: the key 'shape' is missing"});
}

TEST(ScheduleJson, ARepeatedKeyIsRefused) {
  expect_error(schedule_with_op(R"({"op": "signal", "flag": "ready", "flag": "ready"})"),
               {"s.json: kernels[0].workgroups[0].ops[1]: key 'flag' is given twice"});
  expect_error(R"({"schema": "tritax.schedule/1", "ranks": 1, "ranks": 2, "host": [[]]})",
               {"s.json: key 'ranks' is given twice"});
}

TEST(ScheduleJson, AByteOrderMarkIsNoPartOfIt) {
  EXPECT_EQ(error_of("\xEF\xBB\xBF" + schedule_with_op(R"({"op": "barrier"})")), "no error");
}

TEST(ScheduleJson, AnotherSchemaIsRefused) {
  expect_error(R"({"schema": "tritax.schedule/2"})", {"schema: \"tritax.schedule/2\"", "tritax.schedule/1"});
}

TEST(ScheduleJson, TheNumberOfHostProgramsIsTheNumberOfRanks) {
  expect_error(R"({"schema": "tritax.schedule/1", "ranks": 2, "host": [[]]})",
               {"host: an array of 1 is not allowed", "one host program a rank"});
}

TEST(ScheduleJson, DeepNestingIsRefused) { expect_error(std::string(100000, '['), {"nested more than"}); }

TEST(ScheduleJson, ValuesOfTheWrongTypeAreRefusedAtEveryPlace) {
  const std::string good =
      schedule_with_op(R"({"op": "copy", "buffer": "C", "shape": [8, 8], "from": {"rank": 0}})");
  ASSERT_EQ(error_of(good), "no error");
  const auto tree = nlohmann::json::parse(good);
  const auto flat = tree.flatten();
  for (const auto& [path, value] : flat.items()) {
    auto damaged = tree;
    damaged[nlohmann::json::json_pointer(path)] = nlohmann::json::array({nlohmann::json::object()});
    if (!value.empty()) {  // an empty host program may hold something else
      expect_error(damaged.dump(), {"s.json: "});
      EXPECT_NE(error_of(damaged.dump()), "no error") << path;
    }
  }
}

TEST(ScheduleJson, AFileThatIsMissingIsNamed) {
  EXPECT_THROW(
      {
        try {
          read_schedule("/no/such/schedule.json");
        } catch (const UserError& error) {
          EXPECT_NE(std::string(error.what()).find("/no/such/schedule.json: cannot be read"),
                    std::string::npos);
          throw;
        }
      },
      UserError);
}

}  // namespace
}  // namespace tritax
