// Sparse products on GPUs, as far as a CPU can say: how they are lowered, and what the lanes of a workgroup
// make of it, emulated lane by lane on memory that is laid out as a GPU's.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>

#include "backend_hip/lower.hpp"
#include "emulated_workgroup.hpp"
#include "model/core/error.hpp"
#include "model/machine/machine.hpp"
#include "model/parts/load_balance.hpp"
#include "model/parts/tile_set.hpp"
#include "model/schedule/builder.hpp"
#include "model/schedule/items.hpp"
#include "model/workloads/registry.hpp"

namespace tritax::gpu {
namespace {

DeviceTraits small_device() {
  DeviceTraits device;
  device.name = "test device";
  device.tiles.push_back({DType::bf16, 128, 128, 384, 200000});
  return device;
}

std::vector<float> random_numbers(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> number(-1, 1);
  std::vector<float> numbers(count);
  for (float& one : numbers) one = number(random);
  return numbers;
}

std::vector<double> right_product(const SparseMatrix& matrix, const float* values, const float* x) {
  std::vector<double> y(static_cast<std::size_t>(matrix.rows), 0.0);
  for (std::int32_t row = 0; row < matrix.rows; ++row) {
    for (std::int32_t k = matrix.begin(row); k < matrix.end(row); ++k) {
      y[static_cast<std::size_t>(row)] +=
          static_cast<double>(values[k]) * x[matrix.columns[static_cast<std::size_t>(k)]];
    }
  }
  return y;
}

double largest_error(const std::vector<double>& right, const float* found) {
  double largest = 0;
  for (std::size_t row = 0; row < right.size(); ++row) {
    const double error = std::abs(right[row] - found[row]);
    largest = error >= largest || std::isnan(error) ? error : largest;
    if (std::isnan(error)) return error;
  }
  return largest;
}

SparseMatrix matrix_of(TileSetKind kind, std::int32_t rows, std::int32_t cols, double length) {
  return generate_tile_set({kind, rows, cols, length, 1.7, std::min(cols, 24), 3});
}

// Waves of 4 lanes: every way that goes over several of them is taken with few threads.
TEST(SparseRows, EveryRowComesOnceInEverySharingOfItsRanges) {
  if (!kLanesCanTakeTurns) GTEST_SKIP() << "sanitizers";
  constexpr int kThreads = 16;
  using Workgroup = EmulatedWorkgroup<4>;
  Workgroup workgroup(kThreads, 4096);
  unsigned seed = 0;
  for (const TileSetKind kind : {TileSetKind::uniform, TileSetKind::power_law, TileSetKind::banded}) {
    for (const double length : {0.4, 3.0, 40.0}) {
      const SparseMatrix matrix = matrix_of(kind, 61, 50, length);
      const std::vector<float> values = random_numbers(matrix.columns.size(), ++seed);
      const std::vector<float> x = random_numbers(static_cast<std::size_t>(matrix.cols), ++seed);
      const std::vector<double> right = right_product(matrix, values.data(), x.data());
      const auto expect_right = [&](const std::vector<WorkRange>& ranges, LaneSharing sharing, int lanes,
                                    bool staged) {
        SCOPED_TRACE(fmt::format("{} of {} nonzeros, sharing {} by {}, {} ranges, staged {}",
                                 kTileSetKindNames[static_cast<std::size_t>(kind)], length,
                                 kLaneSharingNames[static_cast<std::size_t>(sharing)], lanes, ranges.size(),
                                 staged));
        // Rows that several ranges add to begin at 0; all others have to be written.
        std::vector<float> y(right.size(), std::nanf(""));
        for (const WorkRange& range : ranges) {
          if (range.rows == 0) continue;
          if (shares_first_row(matrix, range)) y[static_cast<std::size_t>(range.row)] = 0;
          if (shares_last_row(matrix, range)) y[static_cast<std::size_t>(range.row + range.rows - 1)] = 0;
        }
        workgroup.run([&](Workgroup::Team& team) {
          for (const WorkRange& range : ranges) {
            if (range.rows == 0) continue;
            const auto row = static_cast<std::size_t>(range.row);
            const int sums = (shares_first_row(matrix, range) ? kAddsFirstRow : 0) |
                             (shares_last_row(matrix, range) ? kAddsLastRow : 0);
            const SparseWork work{matrix.offsets.data() + row,
                                  matrix.columns.data(),
                                  reinterpret_cast<const unsigned char*>(values.data()),
                                  reinterpret_cast<const unsigned char*>(x.data()),
                                  reinterpret_cast<unsigned char*>(y.data() + row),
                                  4,
                                  4,
                                  range.rows,
                                  range.k_begin,
                                  range.k_end,
                                  sums};
            sparse_rows<Workgroup::Team, DType::fp32>(team, work, sharing, lanes, staged);
          }
        });
        EXPECT_LT(largest_error(right, y.data()), 1e-4);
      };
      expect_right(mapped_rows(matrix, 16), LaneSharing::row, 1, false);
      expect_right(mapped_rows(matrix, 23), LaneSharing::row, 1, false);
      for (const int lanes : {1, 2, 4, 8, 16}) {
        expect_right(mapped_rows(matrix, 5), LaneSharing::vector, lanes, false);
        expect_right(mapped_rows(matrix, 20), LaneSharing::group, lanes, false);
      }
      for (const bool staged : {false, true}) {
        expect_right(merge_path(matrix, 32), LaneSharing::even, 1, staged);
        expect_right(work_oriented(matrix, 3), LaneSharing::even, 1, staged);
        expect_right(work_oriented(matrix, 150), LaneSharing::even, 1, staged);
      }
    }
  }
}

// Whatever the lengths of rows: none, one that goes on over many batches, and several in one.
RC_GTEST_PROP(SparseRows, GroupsLeaveEveryRowToTheLaneThatHasIt, ()) {
  if (!kLanesCanTakeTurns) return;  // sanitizers
  using Workgroup = EmulatedWorkgroup<4>;
  const auto lengths = *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(
      rc::gen::weightedOneOf<int>({{3, rc::gen::inRange(0, 4)}, {1, rc::gen::inRange(0, 90)}})));
  SparseMatrix matrix{"any", static_cast<std::int32_t>(lengths.size()), 7, {0}, {}};
  for (const int length : lengths) {
    for (int k = 0; k < length; ++k) matrix.columns.push_back(k % matrix.cols);
    matrix.offsets.push_back(matrix.nonzeros());
  }
  const std::vector<float> values = random_numbers(matrix.columns.size(), 1);
  const std::vector<float> x = random_numbers(static_cast<std::size_t>(matrix.cols), 2);
  std::vector<float> y(lengths.size(), std::nanf(""));
  const int lanes = 1 << *rc::gen::inRange(0, 5);
  Workgroup workgroup(16, 16);
  workgroup.run([&](Workgroup::Team& team) {
    const SparseWork work{matrix.offsets.data(),
                          matrix.columns.data(),
                          reinterpret_cast<const unsigned char*>(values.data()),
                          reinterpret_cast<const unsigned char*>(x.data()),
                          reinterpret_cast<unsigned char*>(y.data()),
                          4,
                          4,
                          matrix.rows,
                          0,
                          matrix.nonzeros(),
                          0};
    sparse_rows<Workgroup::Team, DType::fp32>(team, work, LaneSharing::group, lanes, false);
  });
  RC_ASSERT(largest_error(right_product(matrix, values.data(), x.data()), y.data()) < 1e-4);
}

// Memory of one rank, with the schedule's structure and random values and x in it.
struct Memory {
  explicit Memory(const Schedule& schedule) : heap(lay_out_heap(schedule, small_device())) {
    bytes.resize(heap.bytes + kAlignment);
    const auto raw = reinterpret_cast<std::uintptr_t>(bytes.data());
    base = (raw + kAlignment - 1) / kAlignment * kAlignment;
    for (std::size_t i = 0; i < schedule.sparse.size(); ++i) {
      put(heap.sparse[i].offsets, schedule.sparse[i]->offsets);
      put(heap.sparse[i].columns, schedule.sparse[i]->columns);
    }
    for (const Op& op : schedule.ops) {
      if (op.kind != OpKind::sparse_product) continue;
      values = op.src_buffer;
      x = op.b_buffer;
    }
    for (const ReferenceOp& op : schedule.reference) y = op.to.buffer;
    const auto count = [&](std::int16_t buffer) {
      const Buffer& it = schedule.buffers[static_cast<std::size_t>(buffer)];
      return static_cast<std::size_t>(it.rows) * static_cast<std::size_t>(it.cols);
    };
    put(heap.buffers[static_cast<std::size_t>(values)].offset, random_numbers(count(values), 1));
    put(heap.buffers[static_cast<std::size_t>(x)].offset, random_numbers(count(x), 2));
  }

  template <class T>
  void put(std::size_t offset, const std::vector<T>& numbers) const {
    std::copy(numbers.begin(), numbers.end(), reinterpret_cast<T*>(base + offset));
  }
  float* at(std::int16_t buffer) const {
    return reinterpret_cast<float*>(base + heap.buffers[static_cast<std::size_t>(buffer)].offset);
  }

  static constexpr std::uintptr_t kAlignment = 1024;
  HeapLayout heap;
  std::vector<unsigned char> bytes;
  std::uintptr_t base = 0;
  std::int16_t values = -1, x = -1, y = -1;
};

using Wave = EmulatedWorkgroup<32>;

// Does the sparse products of a program, an operation after the other, by the interpreter's rules.
void run_program(const DeviceOp* op, std::uint32_t count, Wave::Team& team) {
  for (const DeviceOp* const end = op + count; op < end; op += 1 + op->skip) {
    if (static_cast<OpKind>(op->kind) != OpKind::sparse_product) continue;
    const SparseWork work{reinterpret_cast<const std::int32_t*>(op->offsets),
                          reinterpret_cast<const std::int32_t*>(op->columns),
                          reinterpret_cast<const unsigned char*>(op->source),
                          reinterpret_cast<const unsigned char*>(op->values),
                          reinterpret_cast<unsigned char*>(op->address),
                          op->values_pitch,
                          op->pitch,
                          op->rows,
                          op->k_begin,
                          op->k_end,
                          op->partial};
    sparse_rows<Wave::Team, DType::fp32>(team, work, static_cast<LaneSharing>(op->value), op->group,
                                         op->rows <= op->row);
    team.barrier();
  }
}

// Every workload that has sparse products, in every pattern.
template <typename Visit>
void for_each_sparse_pattern(const Visit& visit) {
  Machine machine = find_machine("h200-4");
  machine.gpu.cus_per_xcd = 3;
  for (const Workload* workload : workloads()) {
    const bool sparse = std::any_of(workload->fields.begin(), workload->fields.end(),
                                    [](const Spec& field) { return field.name == "matrix_seed"; });
    if (!sparse) continue;
    for (const Pattern& pattern : workload->patterns) {
      for (std::int64_t structure = 0; structure < 4; ++structure) {
        Problem problem = problem_of(*workload);
        for (const auto& [field, value] : {std::pair{"rows", 300}, {"row_length", 9}, {"exponent", 170}})
          problem.values.give(field, value);
        problem.values.give("structure", structure);
        complete_problem(problem, "test");
        Values knobs(workload->knobs);
        for (const auto& [knob, value] : {std::pair{"workgroup_threads", 64},
                                          {"items", 3},
                                          {"lanes", 16},
                                          {"chunk", 90},
                                          {"long_row", 20}})
          knobs.give(knob, value);
        SCOPED_TRACE(fmt::format("{}, structure {}", pattern.name, structure));
        visit(build_schedule(pattern, problem, machine, resolved_knobs(problem, machine, knobs)));
      }
    }
  }
}

TEST(SparseLowering, WhatIsLoweredLeavesTheProductWhateverTheSchedule) {
  if (!kLanesCanTakeTurns) GTEST_SKIP() << "sanitizers";
  std::size_t schedules = 0;
  for_each_sparse_pattern([&](const Schedule& schedule) {
    ++schedules;
    const Memory memory(schedule);
    const RankProgram program = lower(schedule, memory.heap, small_device(), 0, {memory.base});
    for (const LoweredKernel& kernel : program.kernels) {
      if (!kernel.sparse) continue;
      Wave workgroup(kernel.threads, (kernel.shared_bytes - kSparseCarryBytes) / 4);
      workgroup.run([&](Wave::Team& team) {
        for (std::uint32_t w = 0; w < kernel.workgroup_count; ++w) {
          const DeviceWorkgroup& one = program.workgroups[kernel.first_workgroup + w];
          run_program(program.ops.data() + one.first_op, one.op_count, team);
        }
        for (std::size_t i = kernel.first_item; i < program.items.size(); ++i) {
          run_program(program.ops.data() + program.items[i].first_op, program.items[i].op_count, team);
        }
      });
    }
    const std::vector<double> right =
        right_product(*schedule.sparse[0], memory.at(memory.values), memory.at(memory.x));
    EXPECT_LT(largest_error(right, memory.at(memory.y)), 1e-4);
  });
  EXPECT_GE(schedules, 28U);
}

TEST(SparseLowering, AProductDoesTheWritesBehindItAndASearchItsLoads) {
  for_each_sparse_pattern([](const Schedule& schedule) {
    const HeapLayout heap = lay_out_heap(schedule, small_device());
    const RankProgram program = lower(schedule, heap, small_device(), 0, {1U << 20});
    std::size_t loads = 0;
    for (std::size_t k = 0; k < schedule.kernels.size(); ++k) {
      if (!program.kernels[k].sparse) continue;
      const DeviceWorkgroup* place = program.workgroups.data() + program.kernels[k].first_workgroup;
      for (const Workgroup& workgroup : schedule.kernels[k].workgroups) {
        const DeviceOp* const ops = program.ops.data() + (place++)->first_op;
        for (std::uint32_t i = 0; i < workgroup.op_count; i += 1 + static_cast<std::uint32_t>(ops[i].skip)) {
          const Op& op = schedule.ops[workgroup.first_op + i];
          if (op.kind == OpKind::load) loads += static_cast<std::size_t>(ops[i].skip);
          if (op.kind != OpKind::sparse_product) continue;
          EXPECT_GE(ops[i].skip, 1);
          const SparseMatrix& matrix = *schedule.sparse[static_cast<std::size_t>(op.index)];
          const WorkRange range{op.rect.row, op.rect.rows, op.k_begin, op.k_end};
          const bool first = shares_first_row(matrix, range), last = shares_last_row(matrix, range);
          EXPECT_EQ((ops[i].partial & kAddsFirstRow) != 0, first || (last && range.rows == 1));
          EXPECT_EQ((ops[i].partial & kAddsLastRow) != 0, last || (first && range.rows == 1));
        }
      }
    }
    EXPECT_EQ(loads, program.probes.size());
  });
}

TEST(SparseLowering, ElementsOfXAndYLieSideBySideAndStructureBehindTheBuffers) {
  for_each_sparse_pattern([](const Schedule& schedule) {
    const Memory memory(schedule);
    const HeapLayout& heap = memory.heap;
    for (const std::int16_t column : {memory.x, memory.y})
      EXPECT_EQ(heap.buffers[static_cast<std::size_t>(column)].pitch, 4);
    std::size_t end = 0;
    for (std::size_t i = 0; i < heap.buffers.size(); ++i) {
      EXPECT_GE(heap.buffers[i].offset, end);
      end = heap.buffers[i].offset + static_cast<std::size_t>(heap.buffers[i].pitch) *
                                         static_cast<std::size_t>(schedule.buffers[i].rows);
    }
    EXPECT_GE(heap.sparse[0].offsets, end);
    EXPECT_GE(heap.sparse[0].columns, heap.sparse[0].offsets + 4 * schedule.sparse[0]->offsets.size());
    EXPECT_GE(heap.flags_begin, heap.sparse[0].columns + 4 * schedule.sparse[0]->columns.size());
  });
}

// Two rows of one nonzero each.
struct TwoRows {
  ScheduleBuilder builder{"two rows", 1};
  std::int16_t sparse, values, x, y;
  std::int32_t kernel;

  explicit TwoRows(DType of_x = DType::fp32, DType of_y = DType::fp32) {
    auto matrix = std::make_shared<SparseMatrix>();
    *matrix = {"two", 2, 2, {0, 1, 2}, {0, 1}};
    sparse = builder.sparse(matrix);
    values = builder.buffer({"values", DType::fp32, 1, 2, 1, 2});
    x = builder.buffer({"x", of_x, 2, 1, 2, 1});
    y = builder.buffer({"y", of_y, 2, 1, 2, 1});
    Kernel plain;
    plain.name = "rows";
    plain.resources.threads = 64;
    kernel = builder.kernel(std::move(plain));
    builder.workgroup(kernel);
    builder.launch(0, kernel);
  }
  void product(LaneSharing sharing = LaneSharing::row, std::int32_t lanes = 1) {
    builder.sparse_product(sparse, values, x, {0, 2, 0, 2}, sharing, lanes);
  }
  std::string refusal() {
    const Schedule schedule = builder.finish();
    try {
      lower(schedule, lay_out_heap(schedule, small_device()), small_device(), 0, {1U << 20});
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }
};

void expect_says(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(SparseLowering, RefusesRowsThatAreNotWrittenAtOnce) {
  TwoRows right;
  right.product();
  right.builder.store(right.y, {0, 0, 1, 1}, 0);
  right.builder.atomic_add(right.y, {1, 0, 1, 1}, 0);
  EXPECT_EQ(right.refusal(), "");
  TwoRows late;
  late.product();
  late.builder.barrier();
  late.builder.store(late.y, {0, 0, 2, 1}, 0);
  expect_says(late.refusal(), "write every row once to one buffer");
  TwoRows half;
  half.product();
  half.builder.store(half.y, {0, 0, 1, 1}, 0);
  expect_says(half.refusal(), "write every row once to one buffer");
  TwoRows twice;
  twice.product();
  twice.builder.store(twice.y, {0, 0, 1, 1}, 0);
  twice.builder.atomic_add(twice.y, {0, 0, 1, 1}, 0);
  expect_says(twice.refusal(), "write every row once to one buffer");
}

TEST(SparseLowering, RefusesWhatLanesCannotShareAndOtherDtypes) {
  TwoRows three;
  three.product(LaneSharing::vector, 3);
  three.builder.store(three.y, {0, 0, 2, 1}, 0);
  expect_says(three.refusal(), "3 lanes of 64 threads");
  TwoRows many;
  many.product(LaneSharing::group, 128);
  many.builder.store(many.y, {0, 0, 2, 1}, 0);
  expect_says(many.refusal(), "128 lanes of 64 threads");
  TwoRows mixed(DType::fp16);
  mixed.product();
  mixed.builder.store(mixed.y, {0, 0, 2, 1}, 0);
  expect_says(mixed.refusal(), "values are fp32 and x is fp16");
  TwoRows halves(DType::fp32, DType::fp16);
  halves.product();
  halves.builder.store(halves.y, {0, 0, 2, 1}, 0);
  expect_says(halves.refusal(), "buffer 'y' of fp16; fp32 is possible");
}

}  // namespace
}  // namespace tritax::gpu
