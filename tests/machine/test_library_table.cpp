#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "machine_text.hpp"
#include "model/core/error.hpp"
#include "model/machine/library_table.hpp"
#include "model/machine/write_machine.hpp"

namespace tritax {
namespace {

using testing::HasSubstr;

constexpr const char* kOne = "# from somewhere\ndtype,m,n,k,us,ratio\nbf16,4096,4096,4096,100,1.2\n";

LibraryTable table_of(const std::string& text) { return LibraryTable("t", text, "t.csv"); }

template <typename Make>
std::string refusal(const Make& make) {
  try {
    make();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(LibraryTable, IsRightAtItsRowsAndFadesToTheLaw) {
  const LibraryTable table = table_of(kOne);
  EXPECT_DOUBLE_EQ(table.factor(DType::bf16, 4096, 4096, 4096), 1.2);
  EXPECT_DOUBLE_EQ(table.factor(DType::fp16, 4096, 4096, 4096), 1.2);  // the same kernels
  EXPECT_NEAR(table.factor(DType::bf16, 2048, 4096, 4096), std::exp(std::log(1.2) * 0.25 / 0.30), 1e-12);
  EXPECT_DOUBLE_EQ(table.factor(DType::bf16, 512, 4096, 4096), 1);
  EXPECT_DOUBLE_EQ(table.factor(DType::fp8, 4096, 4096, 4096), 1);
  EXPECT_EQ(table.remarks(), std::vector<std::string>{"from somewhere"});
}

TEST(LibraryTable, IsSmoothBetweenItsRows) {
  const LibraryTable table =
      table_of("dtype,m,n,k,us,ratio\nfp16,1024,4096,4096,10,0.8\nfp16,2048,4096,4096,20,1.25\n");
  double before = table.factor(DType::fp16, 1024, 4096, 4096);
  EXPECT_DOUBLE_EQ(before, 0.8);
  for (std::int64_t m = 1025; m <= 2048; ++m) {
    const double now = table.factor(DType::fp16, m, 4096, 4096);
    EXPECT_NEAR(now / before, 1, 0.005) << m;
    EXPECT_GE(now, 0.8 - 1e-9);
    EXPECT_LE(now, 1.25 + 1e-9);
    before = now;
  }
}

constexpr const char* kAttention =
    "dtype,sequences,queries,keys,heads,kv_heads,head_dim,us,ratio\nbf16,16,1,4096,32,8,128,60,1.2\n";

TEST(AttentionTable, IsRightAtItsRowsAndFadesToTheLaw) {
  const AttentionTable table("t", kAttention, "t.csv");
  EXPECT_EQ(table.size(), 1U);
  EXPECT_TRUE(table.knows(DType::fp16));
  EXPECT_FALSE(table.knows(DType::fp8));
  EXPECT_DOUBLE_EQ(table.factor(DType::bf16, {16, 1, 4096, 32, 8, 128}), 1.2);
  const double at_one_octave = std::exp(std::log(1.2) * 0.25 / 0.30);
  EXPECT_NEAR(table.factor(DType::bf16, {32, 1, 4096, 32, 8, 128}), at_one_octave, 1e-12);
  EXPECT_NEAR(table.factor(DType::bf16, {16, 1, 4096, 32, 8, 64}), at_one_octave, 1e-12);
  EXPECT_DOUBLE_EQ(table.factor(DType::bf16, {16, 4096, 4096, 32, 8, 128}), 1);
  EXPECT_DOUBLE_EQ(table.factor(DType::fp8, {16, 1, 4096, 32, 8, 128}), 1);
}

TEST(AttentionTable, RefusesCallsThatCannotBe) {
  const std::string head = "dtype,sequences,queries,keys,heads,kv_heads,head_dim,us,ratio\n";
  const auto refused = [&](const char* row) {
    return refusal([&] { AttentionTable("t", head + row, "t.csv"); });
  };
  EXPECT_THAT(refused("bf16,16,2,1,32,8,128,60,1\n"), HasSubstr("t.csv:2"));    // more queries than keys
  EXPECT_THAT(refused("bf16,16,1,1,32,64,128,60,1\n"), HasSubstr("kv_heads"));  // more than query heads
  EXPECT_THAT(refused("bf16,1,1,1,1,1,128,60,1\nbf16,1,1,1,1,1,128,60,1\n"), HasSubstr("t.csv:3"));
  EXPECT_THAT(refused("bf16,1,1,1,1,1,128,60,1000\n"), HasSubstr("ratio"));
}

TEST(LibraryTable, RefusesWhatIsNoTable) {
  EXPECT_THAT(refusal([] { table_of("dtype,m,n,k,us\nfp16,1,1,1,1\n"); }), HasSubstr("ratio"));
  EXPECT_THAT(refusal([] { table_of("dtype,m,n,k,us,ratio\nfp16,0,1,1,1,1\n"); }), HasSubstr("t.csv:2"));
  EXPECT_THAT(refusal([] { table_of("dtype,m,n,k,us,ratio\nfp16,8,1,1,1,1000\n"); }), HasSubstr("ratio"));
  EXPECT_THAT(refusal([] { table_of("dtype,m,n,k,us,ratio\nfp16,8,1,1,1,1\nfp16,8,1,1,2,1\n"); }),
              HasSubstr("t.csv:3"));
  EXPECT_THAT(refusal([] { find_library_table("cublas-h2000"); }), HasSubstr("shipped: cublas-"));
  EXPECT_THAT(refusal([] { find_library_table("nccl-h200"); }), HasSubstr("unknown table"));
  EXPECT_THAT(refusal([] { find_collective_table("cublas-h200-bf16"); }), HasSubstr("nccl-h200"));
  EXPECT_THAT(refusal([] { find_library_table("nowhere.csv"); }), HasSubstr("nowhere.csv"));
}

TEST(CollectiveTable, IsLinearInTheLogarithms) {
  const CollectiveTable table(
      "t", "op,gpus,bytes,us,ratio\nall-reduce,8,1024,10,0.5\nall-reduce,8,4096,20,2\n", "t.csv");
  EXPECT_EQ(table.size(), 2U);
  EXPECT_DOUBLE_EQ(table.factor(CollectiveKind::all_reduce, 8, 1024), 0.5);
  EXPECT_NEAR(table.factor(CollectiveKind::all_reduce, 8, 2048), 1, 1e-12);
  EXPECT_DOUBLE_EQ(table.factor(CollectiveKind::all_reduce, 8, 4096), 2);
  EXPECT_DOUBLE_EQ(table.factor(CollectiveKind::all_reduce, 8, 1e9), 2);  // bandwidth stays what it is
  EXPECT_DOUBLE_EQ(table.factor(CollectiveKind::all_reduce, 8, 8), 0.5);
  EXPECT_DOUBLE_EQ(table.factor(CollectiveKind::all_reduce, 4, 2048), 1);
  EXPECT_DOUBLE_EQ(table.factor(CollectiveKind::all_gather, 8, 2048), 1);
}

// A machine file beside a table.
class WithTable : public testing::Test {
 protected:
  void SetUp() override {
    // A folder of its own: tests run side by side.
    folder_ += std::string("tritax_") + testing::UnitTest::GetInstance()->current_test_info()->name() + "/";
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ + "table.csv") << kOne;
    std::ofstream(folder_ + "calls.csv") << "op,gpus,bytes,us,ratio\nall-reduce,8,1024,10,0.5\n";
  }
  Machine machine_with(const std::string& library) const {
    const std::string text = "base = \"h200-8\"\nname = \"mine\"\n[library]\n" + library;
    return parse_machine(text, folder_ + "mine.toml");
  }
  std::string folder_ = testing::TempDir();
};

TEST_F(WithTable, AMachineFileNamesTablesByPathsRelativeToItself) {
  const Machine machine = machine_with("products = [\"table.csv\"]\ncollectives = [\"calls.csv\"]\n");
  ASSERT_EQ(machine.library_tables.size(), 1U);
  EXPECT_EQ(machine.library_tables[0]->products().size(), 1U);
  // Written anywhere else, it still finds them.
  const Machine again = parse_machine(write_machine(machine, ""), "/elsewhere/again.toml");
  EXPECT_EQ(again.library_tables.at(0)->name(), machine.library_tables[0]->name());
  ASSERT_EQ(machine.collective_tables.size(), 1U);
  const Machine without = machine_with("products = []\ncollectives = []\n");
  EXPECT_TRUE(without.library_tables.empty());
  EXPECT_TRUE(without.collective_tables.empty());
}

TEST_F(WithTable, TablesOfOneDtypeExcludeEachOther) {
  EXPECT_THAT(refusal([&] { machine_with("products = [\"table.csv\", \"cublas-h200-bf16\"]\n"); }),
              HasSubstr("mine.toml:4: library.products: "));
  EXPECT_THAT(refusal([&] { machine_with("products = \"cublas-h200-bf16\"\n"); }),
              HasSubstr("must be a list"));
  EXPECT_THAT(refusal([&] { machine_with("products = [1]\n"); }), HasSubstr("list of texts"));
  EXPECT_THAT(refusal([&] { machine_with("collectives = [\"nccl\"]\n"); }), HasSubstr("unknown table"));
  EXPECT_THAT(refusal([&] { machine_with("collectives = [\"calls.csv\", \"nccl-h200\"]\n"); }),
              HasSubstr("both have rows of all-reduce"));
}

TEST_F(WithTable, MulticastNeedsASwitch) {
  EXPECT_TRUE(find_machine("h200-8").fabric.multicast);
  EXPECT_FALSE(find_machine("h200-8-no-multicast").fabric.multicast);
  const auto with = [&](const std::string& base, const std::string& value) {
    return parse_machine("base = \"" + base + "\"\nname = \"mine\"\n[fabric]\nmulticast = " + value + "\n",
                         folder_ + "mine.toml");
  };
  EXPECT_FALSE(with("h200-8", "false").fabric.multicast);
  EXPECT_THAT(refusal([&] { with("mi300x-8", "true"); }), HasSubstr("fabric.multicast: needs a switch"));
  EXPECT_THAT(refusal([&] { with("h200-8", "1"); }), HasSubstr("true or false"));
}

TEST(ShippedMachines, KeepTheirTablesWhenTheyAreWritten) {
  for (const std::string& name : shipped_machines()) {
    const Machine machine = find_machine(name);
    const Machine again = parse_machine(write_machine(machine, ""), "again.toml");
    EXPECT_EQ(again.library_tables, machine.library_tables) << name;  // shipped tables are read once
    EXPECT_EQ(again.collective_tables, machine.collective_tables) << name;
    EXPECT_EQ(again.fabric.multicast, machine.fabric.multicast) << name;
  }
}

}  // namespace
}  // namespace tritax
