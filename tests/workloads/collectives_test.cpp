// Collectives alone: every pattern leaves every rank what it must have, whatever the shape, and the checker
// finds nothing over three runs; what crosses links is what the algorithm says.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>

#include "model/core/csv.hpp"
#include "model/core/error.hpp"
#include "model/cost/kernel_rates.hpp"
#include "model/workload/launching.hpp"
#include "model/workload/library_call.hpp"
#include "model/workloads/all_gather/workload.hpp"
#include "model/workloads/all_gather_gemm/workload.hpp"
#include "model/workloads/all_reduce/workload.hpp"
#include "model/workloads/all_to_all/workload.hpp"
#include "model/workloads/broadcast/workload.hpp"
#include "model/workloads/reduce_scatter/workload.hpp"
#include "model/workloads/rooted/workload.hpp"
#include "sim/simulate.hpp"
#include "tests/workloads/partial_sums.hpp"

namespace tritax {
namespace {

namespace sums = partial_sums_test;

Problem collective_of(const Workload& workload, std::int64_t rows, std::int64_t cols, DType dtype, int gpus) {
  Problem problem = problem_of(workload);
  problem.values.give("rows", rows);
  problem.values.give("cols", cols);
  problem.values.give("dtype", static_cast<std::int64_t>(dtype));
  problem.values.give("gpus", gpus);
  complete_problem(problem, "test");
  return problem;
}

int least_gpus(const Workload& workload) { return static_cast<int>(find_spec(workload.fields, "gpus")->low); }

// Small pieces, so that few rows and columns make several.
Values small_pieces(const Workload& workload) {
  Values knobs(workload.knobs);
  knobs.give("comm_tile_m", 16);
  knobs.give("comm_tile_n", 32);
  return knobs;
}

std::map<int, double> sent_by(const Workload& workload, std::string_view pattern, std::int64_t transport,
                              const Problem& asked) {
  Values knobs = small_pieces(workload);
  knobs.give("transport", transport);
  return sums::sent_bytes(
      sums::built(find_pattern(workload, pattern, "test"), asked, find_machine("mi300x-8"), knobs));
}

Machine small_machine() {
  Machine machine = find_machine("mi300x-8");
  machine.gpu.xcds = 2;  // so that workgroups take turns
  machine.gpu.cus_per_xcd = 3;
  return machine;
}

class EveryCollective : public testing::TestWithParam<const Workload*> {
 protected:
  const Workload& workload() const { return *GetParam(); }
};

TEST_P(EveryCollective, IsSoundAndRightInEveryDTypeOnUpToEightRanks) {
  const Machine machine = small_machine();
  for (int gpus = least_gpus(workload()); gpus <= 8; ++gpus) {
    for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16, DType::fp8}) {
      if (dtype != DType::fp16 && gpus > 3 && gpus < 8) continue;
      const Problem asked = collective_of(workload(), 35, 50, dtype, gpus);
      for (const bool host_barriers : {false, true}) {
        Values knobs = small_pieces(workload());
        knobs.give("host_barriers", host_barriers);
        for (const Pattern& pattern : workload().patterns) {
          for (int transport = 0; transport < (pattern.uses("transport") ? 2 : 1); ++transport) {
            knobs.give("transport", transport);
            EXPECT_EQ(sums::what_is_wrong(pattern, asked, machine, knobs), "") << gpus << " ranks";
          }
        }
      }
    }
  }
}

// No schedule is faster than its bytes through the links of a GPU.
TEST_P(EveryCollective, TakesNoLessThanItsBytesNeedOnTheLinks) {
  const Machine machine = find_machine("mi300x-8");
  const Problem asked = collective_of(workload(), 2048, 2048, DType::bf16, 8);
  const double links_gb_per_s = 7 * machine.fabric.link_raw_gb_per_s;
  for (const Pattern& pattern : workload().patterns) {
    const Schedule schedule = sums::built(pattern, asked, machine, Values(workload().knobs));
    const double time_ns = simulate(schedule, machine).makespan_ns;
    EXPECT_GT(time_ns, work_of(asked).bytes_per_gpu / links_gb_per_s) << pattern.name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, EveryCollective,
                         testing::Values(&reduce_scatter(), &all_reduce(), &all_to_all(), &broadcast(),
                                         &rooted_reduce(), &rooted_gather(), &rooted_scatter(),
                                         &send_receive()),
                         [](const auto& workload) {
                           std::string name(workload.param->name);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

RC_GTEST_PROP(Collectives, AreSoundAndRightOnRaggedShapesWithAnyKnobs, ()) {
  constexpr std::array all{reduce_scatter, all_reduce,    all_to_all,     broadcast,
                           rooted_reduce,  rooted_gather, rooted_scatter, send_receive};
  const Workload& workload = all[static_cast<std::size_t>(between(0, 7))]();
  const int gpus = between(least_gpus(workload), 8);
  const auto dtype = static_cast<DType>(between(0, kCommonDTypeCount - 1));
  const Problem asked = collective_of(workload, gpus + between(0, 90), between(1, 90), dtype, gpus);
  Machine machine = find_machine("mi300x-8");
  machine.gpu.xcds = between(1, 3);
  machine.gpu.cus_per_xcd = between(2, 5);
  machine.library.channels = between(1, 9);
  Values knobs(workload.knobs);
  if (coin()) knobs.give("comm_tile_m", 16 * between(1, 3));
  if (coin()) knobs.give("comm_tile_n", 16 * between(1, 3));
  if (coin()) knobs.give("comm_cus", between(1, machine.gpu.cu_count()));
  if (knobs.has("rings")) knobs.give("rings", between(1, 4));
  knobs.give("transport", between(0, 1));
  if (knobs.has("peer_order")) knobs.give("peer_order", between(0, 2));
  knobs.give("lock", between(0, 2));
  knobs.give("host_barriers", between(0, 1));
  for (const Pattern& pattern : workload.patterns) {
    const std::string wrong = sums::what_is_wrong(pattern, asked, machine, knobs);
    if (!wrong.empty()) RC_LOG() << workload.name << ": " << wrong;
    RC_ASSERT(wrong.empty());
  }
}

// Eight columns on eight ranks: of the channels of an all-reduce of all pairs one has something to send.
TEST(LibraryAllReduce, OfAFewBytesRaisesNoFlagsForNothing) {
  const Machine machine = find_machine("mi300x-8");
  const Problem few = collective_of(all_reduce(), 1, 8, DType::fp32, 8);
  const Pattern& library = find_pattern(all_reduce(), "library", "test");
  const Schedule schedule = sums::built(library, few, machine, Values(all_reduce().knobs));
  EXPECT_EQ(kernel_rates(machine, schedule.kernels[0]).payload_share, 0.5);
  int to_peers = 0;
  for (const Workgroup& workgroup : schedule.kernels[0].workgroups) {
    for (const Op& op : ops_of(schedule, workgroup))
      to_peers += op.kind == OpKind::signal && op.rank != 0 ? 1 : 0;
  }
  EXPECT_EQ(to_peers, 7 + 7);  // a summand and a sum for each
  const Problem many = collective_of(all_reduce(), 1024, 256, DType::fp32, 8);
  const Schedule of_many = sums::built(library, many, machine, Values(all_reduce().knobs));
  EXPECT_EQ(kernel_rates(machine, of_many.kernels[0]).payload_share, 1);
}

// RCCL's algorithms for small all-to-alls: 1, 2 or 4 channels of all pairs, by all that a GPU has.
// The form custom-graph, of each engine: below and above what engines' own kernels take.
TEST(EngineAllReduce, IsRightOnUpToEightRanksAndTimesWhatEnginesTake) {
  const Pattern& library = find_pattern(all_reduce(), "library", "test");
  Values knobs(all_reduce().knobs);
  const Spec& form = *find_spec(all_reduce().knobs, kFormKnob);
  knobs.give(kFormKnob, static_cast<std::int64_t>(form.names.size() - 1));
  ASSERT_EQ(call_form_of(knobs), CallForm::custom_graph);
  for (std::size_t engine = 0; engine < kEngineNames.size(); ++engine) {
    knobs.give(kEngineKnob, static_cast<std::int64_t>(engine));
    for (int gpus = 1; gpus <= 8; ++gpus) {
      const Problem few = collective_of(all_reduce(), 35, 50, DType::bf16, gpus);
      EXPECT_EQ(sums::what_is_wrong(library, few, find_machine("h200-8"), knobs), "") << gpus;
    }
    const Schedule small = build_schedule(library, collective_of(all_reduce(), 64, 512, DType::bf16, 4),
                                          find_machine("h200-8"), knobs);
    EXPECT_TRUE(is_custom(small.kernels.front().library.routine));
    EXPECT_EQ(small.graphs.size(), 4U);
  }
  // More than its own kernel takes: the library's channels.
  const Problem many = collective_of(all_reduce(), 8192, 1024, DType::bf16, 4);
  const Schedule large = build_schedule(library, many, find_machine("h200-8"), knobs);
  Values graph = knobs;
  graph.give(kFormKnob, static_cast<std::int64_t>(CallForm::graph));
  const Schedule plain = build_schedule(library, many, find_machine("h200-8"), graph);
  EXPECT_EQ(large.kernels.front().workgroups.size(), plain.kernels.front().workgroups.size());
  EXPECT_EQ(plain.kernels.front().library.routine, LibraryRoutine::all_reduce);
}

TEST(EngineAllReduce, IsTheLibrarysBetweenNodes) {
  Values knobs(all_reduce().knobs);
  const Spec& form = *find_spec(all_reduce().knobs, kFormKnob);
  knobs.give(kFormKnob, static_cast<std::int64_t>(form.names.size() - 1));
  const Problem problem = collective_of(all_reduce(), 64, 512, DType::bf16, 16);
  const Schedule schedule =
      build_schedule(find_pattern(all_reduce(), "library", "test"), problem, find_machine("h200-8x8"), knobs);
  for (const Kernel& kernel : schedule.kernels) EXPECT_EQ(kernel.library.routine, LibraryRoutine::all_reduce);
}

// Where calls of the engine were measured, a question that runs as a graph takes it for the library.
TEST(EngineAllReduce, IsTheLibraryOfGraphsWhereItWasMeasured) {
  const Values none(all_reduce().knobs);
  EXPECT_EQ(call_form_of(in_mode(none, LaunchMode::graph, find_machine("h200-8"))), CallForm::custom_graph);
  EXPECT_EQ(call_form_of(in_mode(none, LaunchMode::graph, find_machine("mi300x-8"))), CallForm::graph);
  EXPECT_EQ(call_form_of(in_mode(none, LaunchMode::stream, find_machine("h200-8"))), CallForm::stream);
  Values graph = none;
  graph.give(kFormKnob, static_cast<std::int64_t>(CallForm::graph));
  EXPECT_EQ(call_form_of(in_mode(graph, LaunchMode::graph, find_machine("h200-8"))), CallForm::graph);
}

// As nccl-tests counts sizes: all that is gathered, and the matrix of an all-reduce.
TEST(Collectives, HaveAMessageOfSomeBytes) {
  Problem reduce = collective_of(all_reduce(), 8, 8, DType::fp16, 4);
  give_message(reduce, 128 << 20, "--bytes");
  EXPECT_EQ(message_bytes(reduce), 128 << 20);
  EXPECT_EQ(reduce["rows"] % 4, 0);
  Problem gather = problem_of(all_gather());
  gather.values.give("gpus", 8);
  give_message(gather, 8 * 3 * 2 * 5, "--bytes");
  EXPECT_EQ(message_bytes(gather), 8 * 3 * 2 * 5);
  EXPECT_EQ(gather["rows"] * gather["cols"], 15);
  EXPECT_THROW(give_message(reduce, 12, "--bytes"), UserError);
  EXPECT_EQ(message_bytes(problem_of(all_gather_gemm())), 0);
}

TEST(LibraryAllToAll, OfSmallBlocksOfOneSizeGoesAllPairsWithFlagsInTheData) {
  const Machine machine = find_machine("mi300x-8");
  const Pattern& library = find_pattern(all_to_all(), "library", "test");
  const auto kernel_of = [&](std::int64_t rows, std::int64_t cols) {
    const Problem asked = collective_of(all_to_all(), rows, cols, DType::fp16, 8);
    return sums::built(library, asked, machine, Values(all_to_all().knobs)).kernels[0];
  };
  for (const auto& [rows, channels] :
       {std::pair{72, 1}, std::pair{80, 2}, std::pair{1520, 2}, std::pair{1528, 4}, std::pair{4096, 4}}) {
    const Kernel kernel = kernel_of(rows, 64);  // 128 bytes a row: 9 KiB, 190 KiB and 512 KiB
    EXPECT_EQ(kernel_rates(machine, kernel).payload_share, 0.5) << rows;
    EXPECT_EQ(kernel.workgroups.size(), static_cast<std::size_t>(8 * channels)) << rows;
  }
  EXPECT_EQ(kernel_rates(machine, kernel_of(4104, 64)).payload_share, 1);
  EXPECT_EQ(kernel_rates(machine, kernel_of(73, 64)).payload_share,
            1);  // one block has a row more: sends and receives
}

// Sends of 7 peers after each other are replaced by one turn.
TEST(LibraryAllToAll, OfAFewBytesTakesLessThanAnAllReduceOfThem) {
  const Machine machine = find_machine("mi300x-8");
  const auto time_ns = [&](const Workload& workload) {
    const Problem few = collective_of(workload, 8, 64, DType::fp16, 8);
    const Pattern& library = find_pattern(workload, "library", "test");
    return simulate(sums::built(library, few, machine, Values(workload.knobs)), machine).makespan_ns;
  };
  EXPECT_LT(time_ns(all_to_all()), time_ns(all_reduce()));
}

constexpr double kMatrix = 256.0 * 192 * 2;

TEST(ReduceScatter, EveryRankSendsAllButItsOwnRowsOnce) {
  const Problem asked = collective_of(reduce_scatter(), 256, 192, DType::bf16, 4);
  for (const Pattern& pattern : reduce_scatter().patterns) {
    for (const int transport : {0, 1}) {
      const auto bytes = sent_by(reduce_scatter(), pattern.name, transport, asked);
      ASSERT_EQ(bytes.size(), 4U) << pattern.name;
      for (const auto& [rank, sent] : bytes) EXPECT_EQ(sent, kMatrix * 3 / 4) << pattern.name << rank;
    }
  }
}

// Matrices that a rank of four sends. For a turn it fetches the sum of each peer, and stores it there.
double shots_of(std::string_view pattern) {
  if (pattern == "spin-lock") return 3 + 3;
  return pattern == "one-shot" || pattern == "atomic" ? 3 : 2 * 3.0 / 4;
}

TEST(AllReduce, SendsWhatItsShotsNeed) {
  const Problem asked = collective_of(all_reduce(), 256, 192, DType::bf16, 4);
  for (const Pattern& pattern : all_reduce().patterns) {
    for (const int transport : {0, 1}) {
      const auto bytes = sent_by(all_reduce(), pattern.name, transport, asked);
      ASSERT_EQ(bytes.size(), 4U) << pattern.name;
      const double shots = shots_of(pattern.name);
      for (const auto& [rank, sent] : bytes) EXPECT_EQ(sent, kMatrix * shots) << pattern.name << rank;
    }
  }
}

constexpr std::array kCodecs{Codec::fp8, Codec::int8, Codec::int6, Codec::int4};

Values on_the_wire(Codec codec) {
  Values knobs = small_pieces(all_reduce());
  knobs.give("wire", static_cast<std::int64_t>(codec));
  return knobs;
}

TEST(CodedAllReduce, IsWithinWhatItsCodecExplainsInEveryDTypeOnUpToEightRanks) {
  const Machine machine = small_machine();
  for (int gpus = 1; gpus <= 8; ++gpus) {
    for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16}) {
      if (dtype != DType::fp16 && gpus > 3 && gpus < 8) continue;
      for (const std::int64_t rows : {35, 3}) {  // owners of rows, and of columns
        const Problem asked = collective_of(all_reduce(), rows, 50, dtype, gpus);
        for (const Codec codec : kCodecs) {
          Values knobs = on_the_wire(codec);
          for (const bool staged : {false, true}) {
            knobs.give("staged", staged);
            knobs.give("host_barriers", !staged && codec == Codec::int8);
            for (const char* name : {"one-shot", "two-shot"}) {
              const Pattern& pattern = find_pattern(all_reduce(), name, "test");
              EXPECT_EQ(sums::what_is_wrong(pattern, asked, machine, knobs), "")
                  << gpus << " ranks, " << name_of(codec);
            }
          }
        }
      }
    }
  }
}

// The sum that the owner codes is the one that all ranks read, the owner too.
TEST(CodedAllReduce, LeavesTheSameNumbersOnAllRanks) {
  const Problem asked = collective_of(all_reduce(), 35, 50, DType::bf16, 4);
  const Pattern& two_shot = find_pattern(all_reduce(), "two-shot", "test");
  double finer = 0;
  for (const Codec codec : kCodecs) {
    if (codec == Codec::fp8) continue;
    const Schedule schedule = sums::built(two_shot, asked, small_machine(), on_the_wire(codec));
    const FunctionalResult result = execute_functionally(schedule, small_machine(), 7);
    for (const double error : result.error_of_rank) EXPECT_EQ(error, result.error_of_rank.front());
    const double step = 1.0 / (1 << (bits_of(codec) - 1));
    EXPECT_GT(result.max_relative_error, step / 16) << name_of(codec);  // it does round
    EXPECT_GT(result.max_relative_error, finer);                        // int8, int6, int4
    finer = result.max_relative_error;
  }
}

TEST(CodedAllReduce, SendsCodedElementsAndTheirScales) {
  const Problem asked = collective_of(all_reduce(), 256, 192, DType::bf16, 4);
  for (const Codec codec : kCodecs) {
    for (const char* name : {"one-shot", "two-shot"}) {
      const Pattern& pattern = find_pattern(all_reduce(), name, "test");
      const auto bytes =
          sums::sent_bytes(sums::built(pattern, asked, find_machine("mi300x-8"), on_the_wire(codec)));
      const double shots = pattern.name == "one-shot" ? 3.0 : 2 * 3.0 / 4;
      const double matrix = 256 * 192 * (bits_of(codec) / 8.0 + 2.0 / 32);
      ASSERT_EQ(bytes.size(), 4U);
      for (const auto& [rank, sent] : bytes) EXPECT_EQ(sent, matrix * shots) << pattern.name << rank;
    }
  }
}

// No time of coding is in the prediction, and commands say so of coded runs only.
TEST(CodedAllReduce, SaysThatCodingTakesNoTime) {
  const auto said = [](const char* pattern, const Values& knobs) {
    return untimed_of(all_reduce(), find_pattern(all_reduce(), pattern, "test"), knobs);
  };
  for (const Codec codec : kCodecs) {
    EXPECT_EQ(said("two-shot", on_the_wire(codec)).rfind("Coding and decoding take no time", 0), 0U);
    EXPECT_EQ(said("ring", on_the_wire(codec)), "");
  }
  EXPECT_EQ(said("two-shot", on_the_wire(Codec::same)), "");
  EXPECT_EQ(said("two-shot", small_pieces(all_reduce())), "");
}

TEST(CodedAllReduce, RefusesWhatNoCodecHolds) {
  const auto refused = [](const char* begin, DType dtype, const Values& knobs) {
    const Problem asked = collective_of(all_reduce(), 64, 128, dtype, 4);
    for (const char* name : {"one-shot", "two-shot"}) {
      try {
        sums::built(find_pattern(all_reduce(), name, "test"), asked, find_machine("mi300x-8"), knobs);
        ADD_FAILURE() << name << ": " << begin;
      } catch (const UserError& error) {
        EXPECT_EQ(std::string(error.what()).rfind(begin, 0), 0U) << error.what();
      }
    }
  };
  Values pulled = on_the_wire(Codec::int4);
  pulled.give("transport", 1);
  refused("wire: int4 with transport pull", DType::fp16, pulled);
  refused("wire: int8 of fp8", DType::fp8, on_the_wire(Codec::int8));
  Values narrow = on_the_wire(Codec::int8);
  narrow.give("comm_tile_n", 48);
  refused("comm_tile: pieces of 48 columns", DType::fp16, narrow);
}

TEST(AllReduce, OfFewRowsIsOwnedByColumns) {
  const Problem asked = collective_of(all_reduce(), 3, 64, DType::fp16, 8);
  for (const Pattern& pattern : all_reduce().patterns)
    EXPECT_EQ(sums::what_is_wrong(pattern, asked, small_machine(), small_pieces(all_reduce())), "");
  EXPECT_THROW(collective_of(all_reduce(), 3, 3, DType::fp16, 4), UserError);
}

// The framework's copies are two more kernels in one graph, and the result is their output.
TEST(AllReduce, StagedCopiesInAndOutAroundTheKernel) {
  const Machine machine = find_machine("mi300x-8");
  for (const char* name : {"one-shot", "two-shot"}) {
    const Pattern& pattern = find_pattern(all_reduce(), name, "test");
    for (const int gpus : {1, 2, 3, 8}) {
      const Problem asked = collective_of(all_reduce(), 35, 50, DType::bf16, gpus);
      Values knobs(all_reduce().knobs);
      knobs.give("comm_cus", 4);
      for (const std::int64_t transport : {0, 1}) {
        knobs.give("transport", transport);
        knobs.give("staged", 0);
        const Schedule plain = sums::built(pattern, asked, machine, knobs);
        knobs.give("staged", 1);
        const Schedule staged = sums::built(pattern, asked, machine, knobs);
        EXPECT_EQ(sums::what_is_wrong(pattern, asked, machine, knobs), "") << gpus;
        EXPECT_EQ(staged.kernels.size(), plain.kernels.size() + 2 * static_cast<std::size_t>(gpus));
        EXPECT_EQ(staged.buffers[static_cast<std::size_t>(staged.result_buffer)].name, "out");
        EXPECT_GT(simulate(staged, machine).kernels_ns, simulate(plain, machine).kernels_ns);
      }
    }
  }
}

TEST(AllToAll, EveryRankSendsAllButItsOwnBlockOnce) {
  const Problem asked = collective_of(all_to_all(), 256, 192, DType::bf16, 4);
  for (const Pattern& pattern : all_to_all().patterns) {
    const auto bytes = sent_by(all_to_all(), pattern.name, 0, asked);
    ASSERT_EQ(bytes.size(), 4U) << pattern.name;
    for (const auto& [rank, sent] : bytes) EXPECT_EQ(sent, kMatrix * 3 / 4) << pattern.name << rank;
  }
}

// Direct, the root sends everything to everybody; else once, and the others pass it on.
TEST(Broadcast, TheRootSendsEverythingOnceOrToEverybody) {
  const Problem asked = collective_of(broadcast(), 256, 192, DType::bf16, 4);
  const auto direct = sent_by(broadcast(), "direct", 0, asked);
  ASSERT_EQ(direct.size(), 1U);
  EXPECT_EQ(direct.at(0), 3 * kMatrix);
  for (const char* pattern : {"scatter-gather", "library"}) {
    const auto bytes = sent_by(broadcast(), pattern, 0, asked);
    ASSERT_EQ(bytes.size(), 4U) << pattern;
    double all = 0;
    for (const auto& [rank, sent] : bytes) all += sent;
    EXPECT_EQ(bytes.at(0), kMatrix) << pattern;
    EXPECT_EQ(all, 3 * kMatrix) << pattern;
  }
}

// One shot has one step, two have a W/2-th of the bytes.
TEST(AllReduce, OneShotIsAsGoodAsTwoForFewBytesAndFarFromItForMany) {
  const Machine machine = find_machine("mi300x-8");
  const auto time_ns = [&](const char* pattern, std::int64_t side) {
    const Problem asked = collective_of(all_reduce(), side, side, DType::bf16, 8);
    const Values knobs = side < 128 ? small_pieces(all_reduce()) : Values(all_reduce().knobs);
    return simulate(sums::built(find_pattern(all_reduce(), pattern, "test"), asked, machine, knobs), machine)
        .makespan_ns;
  };
  EXPECT_LT(time_ns("one-shot", 64), 1.2 * time_ns("two-shot", 64));
  EXPECT_GT(time_ns("one-shot", 2048), 2 * time_ns("two-shot", 2048));
}

// What the scripts of backend_hip/baselines write.
TEST(Collectives, AreKnownInTablesOfTheirScripts) {
  for (const Workload* workload : {&reduce_scatter(), &all_reduce(), &all_to_all(), &broadcast()}) {
    std::vector<LibraryCall> calls;
    const std::string table = "workload,form,launch,gpus,rows,cols,dtype,wall_us\n" +
                              std::string(workload->name) + ",library,eager,4,512,256,bf16,7\n" +
                              std::string(workload->name) + ",library,graph,4,512,256,bf16,6\n" +
                              "another,library,eager,4,512,256,bf16,7\n";
    read_csv(table, "f.csv", "launch", "test", [&](const CsvRow& line) {
      if (const auto call = workload->library_call(line)) calls.push_back(*call);
    });
    ASSERT_EQ(calls.size(), 1U) << workload->name;
    EXPECT_EQ(calls[0].problem, collective_of(*workload, 512, 256, DType::bf16, 4));
    EXPECT_EQ(calls[0].pattern, "library");
    EXPECT_EQ(calls[0].time_column, "wall_us");
  }
}

TEST(Collectives, AreRefusedWhereAGpuWouldHaveNothing) {
  EXPECT_THROW(collective_of(reduce_scatter(), 3, 64, DType::fp16, 4), UserError);
  EXPECT_THROW(collective_of(all_to_all(), 3, 64, DType::fp16, 4), UserError);
  EXPECT_NO_THROW(collective_of(all_to_all(), 4, 1, DType::fp16, 4));
}

TEST(Collectives, NameTheKnobOfMoreWorkgroupsThanComputeUnits) {
  const Problem asked = collective_of(all_reduce(), 64, 64, DType::fp16, 4);
  Values knobs(all_reduce().knobs);
  knobs.give("comm_cus", 999);
  try {
    sums::built(find_pattern(all_reduce(), "ring", "test"), asked, find_machine("mi300x-8"), knobs);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(std::string(error.what()).rfind("comm_cus: 999", 0), 0U) << error.what();
  }
}

}  // namespace
}  // namespace tritax
