// Rows of the scripts in backend_hip/baselines for ring attention, Ulysses and experts: the runs that they
// stand for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/core/csv.hpp"
#include "model/workload/library_call.hpp"
#include "model/workloads/moe/workload.hpp"
#include "model/workloads/ring_attention/workload.hpp"
#include "model/workloads/ulysses_attention/workload.hpp"
#include "tests/workloads/any_workload.hpp"

namespace tritax {
namespace {

std::vector<LibraryCall> calls_of(const Workload& workload, std::string_view text) {
  std::vector<LibraryCall> calls;
  read_csv(text, "f.csv", "workload,form", "a script", [&](const CsvRow& row) {
    std::optional<LibraryCall> call = workload.library_call(row);
    if (!call) return;
    complete_problem(call->problem, row.where());
    calls.push_back(std::move(*call));
  });
  return calls;
}

constexpr std::string_view kRings =
    "workload,form,launch,gpus,context,q_heads,kv_heads,head_dim,causal,dtype,wall_us\n"
    "ring-attention,library,eager,2,4096,32,0,128,False,bf16,10\n"
    "ring-attention,streams,eager,2,4096,32,8,128,True,bf16,11\n"
    "ring-attention,streams,graph,2,4096,32,8,128,True,bf16,12\n"
    "ulysses,library,eager,2,4096,32,8,128,True,bf16,13\n";

TEST(LibraryRows, OfRingsAreInTurnOrInStreams) {
  const std::vector<LibraryCall> calls = calls_of(ring_attention(), kRings);
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0].pattern, "library");
  EXPECT_EQ(calls[0].problem["kv_heads"], 32);
  EXPECT_EQ(calls[1].pattern, "library-streams");
  EXPECT_EQ(calls[1].problem["causal"], 1);
  EXPECT_EQ(calls_of(ulysses(), kRings).size(), 1U);
}

const std::string kExperts =
    "workload,form,launch,gpus,tokens,hidden,ffn,gated,experts,top_k,routing,skew,histogram,routing_seed,"
    "capacity,"
    "block,dtype,wall_us\n"
    "moe,library,eager,2,64,2048,1024,True,64,8,zipf,100,,1,0,0,bf16,10\n";

TEST(LibraryRows, OfExpertsLeaveTheBlockToTheModel) {
  const std::vector<LibraryCall> calls = calls_of(moe(), kExperts);
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_EQ(calls[0].problem["block"], 1);
  EXPECT_EQ(calls[0].problem["gated"], 1);
  std::string with_file = kExperts;
  with_file.replace(with_file.find(",100,,"), 6, ",100,h.csv,");
  EXPECT_THAT(refusal_by([&] { calls_of(moe(), with_file); }), testing::HasSubstr("no script reads files"));
}

}  // namespace
}  // namespace tritax
