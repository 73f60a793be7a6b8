#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

#include "backend_hip/lower.hpp"
#include "model/core/error.hpp"
#include "model/machine/machine.hpp"
#include "model/schedule/builder.hpp"
#include "model/schedule/items.hpp"
#include "model/schedule/op_traits.hpp"
#include "model/workloads/registry.hpp"
#include "tests/workloads/gemm_all_scatter.hpp"

namespace tritax::gpu {
namespace {

DeviceTraits device_with_copy_engine() {
  DeviceTraits device;
  device.name = "test device";
  device.tensor_maps = true;
  device.fp8_b_transposed = true;
  for (const DType dtype : {DType::bf16, DType::fp8}) {
    device.tiles.push_back({dtype, 128, 256, 384, 200000, 128 / bytes_of(dtype), 64});
    device.tiles.push_back({dtype, 128, 128, 384, 200000, 128 / bytes_of(dtype), 64});
  }
  device.tiles.push_back({DType::fp64, 128, 128, 256, 150000, 0, 0});
  for (const std::int32_t queries : {16, 128})
    device.tiles.push_back({DType::bf16, queries, 64, 128, 100000, 0, 0, 128});
  return device;
}

DeviceTraits plain_device() {
  DeviceTraits device = device_with_copy_engine();
  device.tensor_maps = false;
  device.fp8_b_transposed = false;
  return device;
}

// One rank, one kernel with 128×128 tiles, C = A·B of 256×256×256.
struct OneKernel {
  ScheduleBuilder builder{"test", 2};
  DType dtype;
  std::int16_t a;
  std::int16_t b;
  std::int16_t c;
  std::int16_t flag;
  std::int32_t kernel;

  explicit OneKernel(DType dtype_ = DType::bf16) : dtype(dtype_) {
    a = builder.buffer({"A", dtype, 256, 256, 128, 64});
    b = builder.buffer({"B", dtype, 256, 256, 64, 128});
    c = builder.buffer({"C", dtype, 256, 256, 128, 128});
    flag = builder.flags("ready", 4);
    Kernel k;
    k.name = "gemm";
    k.tile = {128, 128, 128 / bytes_of(dtype), 8, Pipeline::overlapped};
    kernel = builder.kernel(std::move(k));
    builder.workgroup(kernel);
    builder.launch(0, kernel);
  }

  RankProgram lowered(const DeviceTraits& device, int rank = 0) {
    schedule = builder.finish();
    const HeapLayout heap = lay_out_heap(schedule, device);
    return lower(schedule, heap, device, rank, {0x10000000, 0x90000000});
  }

  std::string refusal(const DeviceTraits& device) {
    try {
      lowered(device);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }

  Schedule schedule;
};

constexpr Rect kTile{0, 0, 128, 128};

bool has(const DeviceOp& op, OpBits bit) { return (op.bits & bit) != 0; }

TEST(Heap, buffers_and_flags_do_not_overlap_and_rows_start_on_128_bytes) {
  ScheduleBuilder builder("heap", 1);
  builder.buffer({"odd", DType::bf16, 33, 65, 16, 16});
  builder.buffer({"fp8", DType::fp8, 7, 129, 16, 16});
  builder.flags("flags", 3);
  const Schedule schedule = builder.finish();
  const HeapLayout heap = lay_out_heap(schedule, plain_device());
  EXPECT_EQ(heap.buffers[0].pitch, 256);
  EXPECT_EQ(heap.buffers[1].pitch, 256);
  EXPECT_GE(heap.buffers[1].offset, 33U * 256U);
  EXPECT_GE(heap.flag_offsets[0], heap.buffers[1].offset + 7U * 256U);
  EXPECT_EQ(heap.flags_begin, heap.flag_offsets[0]);
  EXPECT_GE(heap.flags_end, heap.flags_begin + 12U);
  EXPECT_EQ(heap.bytes, heap.flags_end);
}

TEST(Heap, there_is_memory_behind_operands_for_boxes_that_reach_over_their_last_row) {
  ScheduleBuilder last("last", 1);
  const std::int16_t b = last.buffer({"B", DType::bf16, 64, 128, 64, 128});
  const std::int16_t c = last.buffer({"C", DType::bf16, 16, 128, 16, 128});
  const std::int16_t a = last.buffer({"A", DType::bf16, 16, 64, 16, 64});
  Kernel kernel;
  kernel.tile = {128, 128, 64, 8, Pipeline::overlapped};
  last.kernel(std::move(kernel));
  last.workgroup(0);
  last.matmul(a, b, {0, 0, 16, 128}, 0, 64);
  last.store(c, {0, 0, 16, 128}, 0);
  const Schedule schedule = last.finish();
  const HeapLayout with_boxes = lay_out_heap(schedule, device_with_copy_engine());
  EXPECT_GE(with_boxes.bytes, with_boxes.buffers[2].offset + (16U + 128U) * 128U);
  EXPECT_EQ(lay_out_heap(schedule, plain_device()).bytes, with_boxes.flags_end);
}

TEST(Heap, fp8_operands_b_get_a_transposed_copy_where_the_matrix_unit_wants_one) {
  OneKernel test(DType::fp8);
  test.builder.matmul(test.a, test.b, kTile, 0, 256);
  test.builder.store(test.c, kTile, 0);
  const Schedule schedule = test.builder.finish();
  EXPECT_GT(lay_out_heap(schedule, device_with_copy_engine()).buffers[1].transposed_pitch, 0);
  EXPECT_EQ(lay_out_heap(schedule, device_with_copy_engine()).buffers[0].transposed_pitch, 0);
  EXPECT_EQ(lay_out_heap(schedule, plain_device()).buffers[1].transposed_pitch, 0);
}

TEST(Lowering, the_first_matmul_starts_from_zero_and_so_does_one_after_a_store) {
  OneKernel test;
  test.builder.matmul(test.a, test.b, kTile, 0, 128);
  test.builder.matmul(test.a, test.b, kTile, 128, 256);
  test.builder.store(test.c, kTile, 0);
  test.builder.matmul(test.a, test.b, {128, 0, 128, 128}, 0, 256);
  test.builder.store(test.c, {128, 0, 128, 128}, 0);
  const RankProgram program = test.lowered(device_with_copy_engine());
  EXPECT_TRUE(has(program.ops[0], kFresh));
  EXPECT_FALSE(has(program.ops[1], kFresh));
  EXPECT_TRUE(has(program.ops[3], kFresh));
}

TEST(Lowering, a_tile_is_converted_once_for_all_ranks_it_goes_to) {
  OneKernel test;
  test.builder.matmul(test.a, test.b, kTile, 0, 256);
  test.builder.store(test.c, kTile, 0);
  test.builder.store(test.c, kTile, 1);
  test.builder.matmul(test.a, test.b, {0, 128, 128, 128}, 0, 256);
  test.builder.store(test.c, {0, 128, 128, 128}, 1);
  const RankProgram program = test.lowered(device_with_copy_engine());
  EXPECT_FALSE(has(program.ops[1], kStaged));
  EXPECT_TRUE(has(program.ops[2], kStaged));
  EXPECT_FALSE(has(program.ops[4], kStaged));
  EXPECT_TRUE(has(program.ops[1], kKeep));  // the next store needs the converted tile
  EXPECT_FALSE(has(program.ops[2], kKeep));
  EXPECT_FALSE(has(program.ops[4], kKeep));
}

TEST(Lowering, stores_to_peers_are_marked_so_that_they_can_be_paced) {
  OneKernel test;
  test.builder.matmul(test.a, test.b, kTile, 0, 256);
  test.builder.store(test.c, kTile, 0);
  test.builder.store(test.c, kTile, 1);
  const RankProgram program = test.lowered(device_with_copy_engine());
  EXPECT_FALSE(has(program.ops[1], kRemote));
  EXPECT_TRUE(has(program.ops[2], kRemote));
}

TEST(Lowering, wave_schedules_are_refused_in_words) {
  for (const Pipeline pipeline : {Pipeline::ping_pong, Pipeline::interleaved, Pipeline::producer_consumer}) {
    OneKernel test;
    test.builder.matmul(test.a, test.b, kTile, 0, 256);
    test.schedule = test.builder.finish();
    test.schedule.kernels[0].tile.pipeline = pipeline;
    const HeapLayout heap = lay_out_heap(test.schedule, plain_device());
    try {
      lower(test.schedule, heap, plain_device(), 0, {0x10000000, 0x90000000});
      ADD_FAILURE() << "taken";
    } catch (const UserError& error) {
      EXPECT_NE(std::string(error.what()).find("serial or overlapped"), std::string::npos) << error.what();
    }
  }
}

TEST(Lowering, the_last_of_a_run_of_stores_or_copies_is_marked_for_the_stamp_of_its_drain) {
  OneKernel test;
  test.builder.matmul(test.a, test.b, kTile, 0, 128);
  test.builder.store(test.c, kTile, 0);
  test.builder.store(test.c, kTile, 1);
  test.builder.signal(test.flag, 0, 1, 1, Scope::system, LockProtocol::load_store);
  test.builder.store(test.c, kTile, 0);
  test.builder.copy(test.c, {0, 128, 128, 128}, 1, test.c, 0, 128, 0);
  const RankProgram program = test.lowered(device_with_copy_engine());
  std::vector<int> ends;
  for (const DeviceOp& op : program.ops) ends.push_back(op.ends_run);
  EXPECT_EQ(ends, (std::vector<int>{0, 0, 1, 0, 1, 1}));
}

TEST(Lowering, a_signal_says_whether_it_covers_stores_of_computing_threads) {
  OneKernel test;
  test.builder.matmul(test.a, test.b, kTile, 0, 256);
  test.builder.store(test.c, kTile, 0);
  test.builder.signal(test.flag, 0, 1, 1, Scope::system, LockProtocol::load_store);
  test.builder.copy(test.c, {128, 0, 128, 128}, 1, test.a, 0, 0, 0);
  test.builder.signal(test.flag, 1, 1, 1, Scope::system, LockProtocol::load_store);
  test.builder.signal(test.flag, 2, 1, 1, Scope::system, LockProtocol::load_store);
  const RankProgram program = test.lowered(device_with_copy_engine());
  EXPECT_FALSE(has(program.ops[2], kTeamWrites));
  EXPECT_TRUE(has(program.ops[4], kTeamWrites));
  EXPECT_FALSE(has(program.ops[5], kTeamWrites));
}

TEST(Lowering, addresses_name_the_rank_the_row_and_the_column) {
  OneKernel test;
  test.builder.matmul(test.a, test.b, kTile, 0, 256);
  test.builder.store(test.c, {128, 64, 128, 128}, 1);
  test.builder.signal(test.flag, 2, 1, 1, Scope::system, LockProtocol::load_store);
  const RankProgram program = test.lowered(device_with_copy_engine());
  const HeapLayout heap = lay_out_heap(test.schedule, device_with_copy_engine());
  EXPECT_EQ(program.ops[1].address, 0x90000000 + heap.buffers[2].offset + 128U * 512U + 64U * 2U);
  EXPECT_EQ(program.ops[1].pitch, 512);
  EXPECT_EQ(program.ops[1].width, 16);
  EXPECT_EQ(program.ops[2].address, 0x90000000 + heap.flag_offsets[0] + 8U);
}

TEST(Lowering, whole_tiles_and_tiles_at_the_edge_go_through_the_copy_engine_and_others_do_not) {
  OneKernel test;
  test.builder.matmul(test.a, test.b, kTile, 0, 256);
  test.builder.store(test.c, kTile, 0);
  test.builder.store(test.c, {200, 0, 56, 128}, 0);  // ends where the buffer ends
  test.builder.store(test.c, {0, 0, 100, 128}, 0);   // ends before a neighbour's rows: its map does, too
  test.builder.store(test.c, {0, 0, 128, 120}, 0);   // likewise for columns
  test.builder.store(test.c, {0, 4, 128, 128}, 0);   // starts off the 16-byte grid
  test.builder.store(test.c, {0, 0, 128, 100}, 0);   // ends off it, in 16 bytes that a neighbour shares
  const RankProgram program = test.lowered(device_with_copy_engine());
  EXPECT_TRUE(has(program.ops[1], kTensor));
  EXPECT_TRUE(has(program.ops[2], kTensor));
  const auto map_of = [&](std::size_t op) {
    return program.tensor_maps[static_cast<std::size_t>(program.ops[op].tensor_map)];
  };
  EXPECT_TRUE(has(program.ops[3], kTensor));
  EXPECT_EQ(map_of(3).rows, 100);
  EXPECT_TRUE(has(program.ops[4], kTensor));
  EXPECT_EQ(map_of(4).cols, 120);
  EXPECT_FALSE(has(program.ops[5], kTensor));
  EXPECT_EQ(program.ops[5].width, 8);
  EXPECT_FALSE(has(program.ops[6], kTensor));
}

TEST(Lowering, a_k_range_that_ends_inside_the_operands_is_clipped_by_its_maps) {
  OneKernel test;
  test.builder.matmul(test.a, test.b, kTile, 0, 72);
  test.builder.matmul(test.a, test.b, kTile, 72, 200);  // whole steps need no clipping
  test.builder.store(test.c, kTile, 0);
  const RankProgram program = test.lowered(device_with_copy_engine());
  EXPECT_EQ(program.tensor_maps[static_cast<std::size_t>(program.ops[0].tensor_map)].cols, 72);
  EXPECT_EQ(program.tensor_maps[static_cast<std::size_t>(program.ops[0].tensor_map_b)].rows, 72);
  EXPECT_EQ(program.tensor_maps[static_cast<std::size_t>(program.ops[1].tensor_map)].cols, 256);
}

TEST(Lowering, boxes_of_operands_are_not_clipped_where_results_are_never_stored) {
  OneKernel test;
  test.builder.matmul(test.a, test.b, {200, 0, 56, 128}, 0, 256);  // 56 of 128 rows, up to the end of A
  test.builder.store(test.c, {200, 0, 56, 128}, 0);
  const RankProgram program = test.lowered(device_with_copy_engine());
  const TensorMapSpec& a = program.tensor_maps[static_cast<std::size_t>(program.ops[0].tensor_map)];
  EXPECT_GE(a.rows, 200 + 128);
  EXPECT_EQ(a.cols, 256);
  const TensorMapSpec& c = program.tensor_maps[static_cast<std::size_t>(program.ops[1].tensor_map)];
  EXPECT_EQ(c.rows, 256);  // what is stored is
}

TEST(Lowering, operations_on_the_same_memory_are_kept_apart) {
  OneKernel test;
  test.builder.copy(test.a, kTile, 0, test.c, 0, 0, 0);
  test.builder.matmul(test.a, test.b, kTile, 0, 256);               // reads what the copy wrote
  test.builder.matmul(test.a, test.b, {128, 0, 128, 128}, 0, 256);  // other rows
  test.builder.store(test.c, {128, 0, 128, 128}, 0);
  test.builder.copy(test.c, kTile, 1, test.c, 128, 0, 0);  // reads what the store wrote
  test.builder.copy(test.c, {128, 128, 128, 128}, 1, test.c, 0, 128, 0);
  const RankProgram program = test.lowered(device_with_copy_engine());
  EXPECT_TRUE(has(program.ops[1], kJoin));
  EXPECT_FALSE(has(program.ops[2], kJoin));
  EXPECT_TRUE(has(program.ops[4], kJoin));
  EXPECT_FALSE(has(program.ops[5], kJoin));
}

TEST(Lowering, only_a_counter_with_one_signal_may_be_set_by_a_plain_store) {
  OneKernel test;
  test.builder.signal(test.flag, 0, 1, 1, Scope::system, LockProtocol::load_store);
  test.builder.signal(test.flag, 1, 1, 1, Scope::system, LockProtocol::load_store);
  test.builder.signal(test.flag, 1, 1, 1, Scope::system, LockProtocol::load_store);
  test.builder.signal(test.flag, 1, 1, 0, Scope::system, LockProtocol::load_store);
  const RankProgram program = test.lowered(device_with_copy_engine());
  EXPECT_TRUE(has(program.ops[0], kAlone));
  EXPECT_FALSE(has(program.ops[1], kAlone));
  EXPECT_FALSE(has(program.ops[2], kAlone));
  EXPECT_TRUE(has(program.ops[3], kAlone));
}

TEST(Lowering, a_signal_that_sets_its_counter_stores_whoever_else_changes_it) {
  OneKernel test;
  test.builder.signal(test.flag, 0, 1, 1, Scope::system, LockProtocol::load_store);
  test.builder.set_flag(test.flag, 0, 0, 1, Scope::system, LockProtocol::load_store);
  test.builder.set_flag(test.flag, 0, 3, 1, Scope::system, LockProtocol::compare_and_swap);
  const RankProgram program = test.lowered(device_with_copy_engine());
  EXPECT_FALSE(has(program.ops[0], kAlone));
  EXPECT_TRUE(has(program.ops[1], kAlone));
  EXPECT_EQ(program.ops[1].value, 0);
  EXPECT_TRUE(has(program.ops[2], kAlone));
  EXPECT_EQ(static_cast<LockProtocol>(program.ops[2].protocol),
            LockProtocol::exchange);  // it holds more than 0
}

TEST(Lowering, a_relaxed_signal_covers_nothing_and_leaves_it_to_the_next) {
  OneKernel test;
  test.builder.copy(test.c, {128, 0, 128, 128}, 1, test.a, 0, 0, 0);
  test.builder.signal(test.flag, 0, 1, 1, Scope::system, LockProtocol::load_store, MemoryOrder::relaxed);
  test.builder.signal(test.flag, 1, 1, 1, Scope::system, LockProtocol::load_store);
  const RankProgram program = test.lowered(device_with_copy_engine());
  EXPECT_EQ(program.ops[1].relaxed, 1);
  EXPECT_FALSE(has(program.ops[1], kTeamWrites));
  EXPECT_EQ(program.ops[2].relaxed, 0);
  EXPECT_TRUE(has(program.ops[2], kTeamWrites));
}

TEST(Lowering, a_kernel_that_is_launched_twice_has_no_lone_signals) {
  OneKernel test;
  test.builder.signal(test.flag, 0, 1, 1, Scope::system, LockProtocol::load_store);
  test.builder.launch(0, test.kernel);
  const RankProgram program = test.lowered(device_with_copy_engine());
  EXPECT_FALSE(has(program.ops[0], kAlone));
}

TEST(Lowering, smaller_tiles_run_in_the_smallest_kernel_that_holds_them) {
  OneKernel test;
  test.builder.matmul(test.a, test.b, kTile, 0, 256);
  test.builder.store(test.c, kTile, 0);
  Schedule schedule = test.builder.finish();
  schedule.kernels[0].tile.n = 64;
  const HeapLayout heap = lay_out_heap(schedule, plain_device());
  const DeviceTraits device = plain_device();
  const RankProgram program = lower(schedule, heap, device, 0, {0, 0});
  EXPECT_EQ(program.kernels[0].tile->n, 128);
}

TEST(Lowering, boxes_of_a_have_the_rows_of_the_schedules_tiles) {
  OneKernel test;
  const Rect tile{0, 0, 32, 128};
  test.builder.matmul(test.a, test.b, tile, 0, 256);
  test.builder.store(test.c, tile, 0);
  Schedule schedule = test.builder.finish();
  const DeviceTraits device = device_with_copy_engine();
  const HeapLayout heap = lay_out_heap(schedule, device);
  for (const std::int32_t rows : {32, 75, 128}) {
    schedule.kernels[0].tile.m = rows;
    const RankProgram program = lower(schedule, heap, device, 0, {0, 0});
    EXPECT_EQ(program.kernels[0].box_rows_of_a, rows);
    EXPECT_EQ(program.tensor_maps[static_cast<std::size_t>(program.ops[0].tensor_map)].box_rows, rows);
    EXPECT_EQ(program.tensor_maps[static_cast<std::size_t>(program.ops[0].tensor_map_b)].box_rows, 64);
  }
}

TEST(Lowering, refuses_what_the_device_lacks_and_names_the_place) {
  const auto expect = [](OneKernel& test, const std::string& part,
                         const DeviceTraits& device = device_with_copy_engine()) {
    const std::string message = test.refusal(device);
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  OneKernel fp16(DType::fp16);
  fp16.builder.matmul(fp16.a, fp16.b, kTile, 0, 256);
  expect(fp16,
         "kernel 'gemm': 128x128 fp16 tiles fit no matmul kernel on test device; it has none for this dtype");

  OneKernel misplaced;
  misplaced.builder.matmul(misplaced.a, misplaced.b, {0, 3, 128, 128}, 0, 256);
  expect(misplaced,
         "kernel 'gemm' rank 0 workgroup 0 operation 0 (matmul): place in B starts at element 3; the copy "
         "engine of test device takes multiples of 8");

  OneKernel empty;
  empty.builder.matmul(empty.a, empty.b, kTile, 0, 256);
  empty.builder.store(empty.c, kTile, 0);
  Schedule without = empty.builder.finish();
  without.ops.erase(without.ops.begin());
  without.kernels[0].workgroups[0].op_count = 1;
  EXPECT_THROW(lower(without, lay_out_heap(without, plain_device()), plain_device(), 0, {0, 0}), UserError);

  OneKernel written(DType::fp8);
  written.builder.matmul(written.a, written.b, kTile, 0, 256);
  written.builder.store(written.b, kTile, 0);
  expect(written, "operation 1 (store): writes to an fp8 buffer that matmul reads as B");

  OneKernel atomic(DType::fp8);
  atomic.builder.matmul(atomic.a, atomic.b, kTile, 0, 256);
  atomic.builder.atomic_add(atomic.c, kTile, 0);
  expect(atomic, "GPUs have no atomic addition of fp8 values");

  OneKernel carried;
  carried.builder.matmul(carried.a, carried.b, kTile, 0, 256);
  carried.builder.claim(carried.flag, 0, 1, 1);
  carried.builder.store(carried.c, kTile, 0);
  expect(carried, "no claim may lie between matmul and store");
}

// A workgroup whose two items compute tile 0 and load `loaded`; then it stores a tile of its own.
RankProgram two_items(Rect loaded) {
  OneKernel test;
  test.builder.claim_items(test.flag, 1, 0, 2);
  test.builder.matmul(test.a, test.b, {128, 0, 128, 128}, 0, 256);
  test.builder.store(test.c, {128, 0, 128, 128}, 0);
  test.builder.item(test.kernel);
  test.builder.matmul(test.a, test.b, kTile, 0, 256);
  test.builder.store(test.c, kTile, 0);
  test.builder.item(test.kernel);
  test.builder.load(test.c, loaded, 1);
  test.builder.atomic_add(test.c, {128, 128, 128, 128}, 0);
  test.builder.signal(test.flag, 0, 1, 1, Scope::system, LockProtocol::load_store);
  return test.lowered(device_with_copy_engine());
}

TEST(Lowering, an_item_ends_with_a_claim_of_the_next) {
  const RankProgram program = two_items(kTile);
  ASSERT_EQ(program.items.size(), 2U);
  EXPECT_EQ(program.workgroups[0].op_count, 3U);
  EXPECT_EQ(program.items[0].first_op, 3U);
  EXPECT_EQ(program.items[0].op_count, 3U);
  EXPECT_EQ(program.items[1].first_op, 6U);
  EXPECT_EQ(program.items[1].op_count, 4U);
  const DeviceOp& own = program.ops[0];
  EXPECT_EQ(own.row, 1);  // behind the claim
  EXPECT_EQ(own.col, 3);
  for (const std::size_t last : {5U, 9U}) {
    const DeviceOp& claim = program.ops[last];
    EXPECT_EQ(static_cast<OpKind>(claim.kind), OpKind::claim);
    EXPECT_EQ(claim.address, own.address);
    EXPECT_EQ(claim.k_begin, 0);
    EXPECT_EQ(claim.k_end, 2);
    EXPECT_EQ(claim.row, -1);
    EXPECT_EQ(claim.number, last == 5 ? 8 : 9);  // behind the eight operations of the schedule
  }
  for (const std::size_t matmul : {1U, 3U}) EXPECT_TRUE(has(program.ops[matmul], kFresh));
  // Another item may have left what its threads stored.
  EXPECT_TRUE(has(program.ops[8], kTeamWrites));
}

TEST(Lowering, programs_that_touch_the_same_memory_meet_in_between) {
  // Of rank 1 nothing is written here; of rank 0 tile 0.
  for (const bool written : {false, true}) {
    OneKernel test;
    test.builder.claim_items(test.flag, 1, 0, 2);
    test.builder.item(test.kernel);
    test.builder.matmul(test.a, test.b, kTile, 0, 256);
    test.builder.store(test.c, kTile, 0);
    test.builder.item(test.kernel);
    test.builder.load(test.c, {64, 64, 128, 128}, written ? 0 : 1);
    test.builder.store(test.c, {128, 128, 128, 128}, 1);
    const RankProgram program = test.lowered(device_with_copy_engine());
    EXPECT_EQ(has(program.ops[1], kJoin), written);  // the matmul, which is the first to touch memory
    EXPECT_EQ(has(program.ops[4], kJoin), written);
    EXPECT_FALSE(has(program.ops[5], kJoin) && written);
  }
}

TEST(Lowering, says_which_operation_a_number_is) {
  OneKernel test;
  test.builder.matmul(test.a, test.b, kTile, 0, 256);
  test.builder.wait(test.flag, 3, 2, Scope::gpu, LockProtocol::load_store);
  const Schedule schedule = test.builder.finish();
  EXPECT_EQ(describe_operation(schedule, 1),
            "kernel 'gemm' rank 0 workgroup 0 operation 1 (wait), flag 'ready'[3] >= 2");
  OneKernel queue;
  queue.builder.claim_items(queue.flag, 0, 0, 1);
  queue.builder.item(queue.kernel);
  queue.builder.barrier();
  EXPECT_EQ(describe_operation(queue.builder.finish(), 1),
            "kernel 'gemm' rank 0 item 0 operation 0 (barrier)");
}

// Whatever the shape, every pattern's tiles stay inside the heap and every rank's program mirrors its
// operations.
RC_GTEST_PROP(Lowering, keeps_every_address_of_every_pattern_inside_a_heap, ()) {
  const Machine machine = find_machine("h200-4");
  GemmKnobs knobs;
  knobs.tile_m = 128;
  knobs.tile_n = *rc::gen::element(128, 256);
  knobs.pipeline = Pipeline::overlapped;
  const int gpus = *rc::gen::element(1, 2, 4);
  const GemmAllScatter workload{*rc::gen::inRange(1, 700), *rc::gen::inRange(4, 900),
                                *rc::gen::inRange(1, 600), DType::bf16, gpus};
  const DeviceTraits device = device_with_copy_engine();
  for (const Pattern& pattern : gemm_all_scatter().patterns) {
    if (pattern.name == "library") continue;  // its tiles are the library's
    const Schedule schedule = build(pattern, workload, machine, knobs);
    const HeapLayout heap = lay_out_heap(schedule, device);
    std::vector<std::uint64_t> bases;
    for (int r = 0; r < gpus; ++r) bases.push_back((static_cast<std::uint64_t>(r) + 1) << 40);
    for (int r = 0; r < gpus; ++r) {
      const RankProgram program = lower(schedule, heap, device, r, bases);
      for (const DeviceOp& op : program.ops) {
        const auto kind = static_cast<OpKind>(op.kind);
        if (kind == OpKind::barrier) continue;
        const std::uint64_t base = op.address >> 40 << 40;
        RC_ASSERT(std::find(bases.begin(), bases.end(), base) != bases.end());
        const bool tile = kind == OpKind::store || kind == OpKind::copy;
        const std::uint64_t bytes =
            tile ? static_cast<std::uint64_t>(op.rows - 1) * static_cast<std::uint64_t>(op.pitch) +
                       2U * static_cast<std::uint64_t>(op.cols)
                 : 4;
        RC_ASSERT(op.address - base + bytes <= heap.bytes);
        if (op.width > 0) RC_ASSERT(op.address % op.width == 0U);
      }
    }
  }
}

// Sizes that tiles divide, so that the copy engine takes them; tiles that the device has.
Problem even_problem(const Workload& workload) {
  Problem problem = problem_of(workload);
  for (const Spec& field : workload.fields) {
    if (field.counts_gpus) {
      problem.values.give(field.name, 4);
    } else if (field.required && field.kind == ValueKind::name) {
      problem.values.give(field.name, static_cast<std::int64_t>(field.names.size()) - 1);
    } else if (field.required) {
      problem.values.give(field.name, field.kind == ValueKind::bytes ? 1 << 16 : 1024);
    }
  }
  if (problem.values.has("dtype")) problem.values.give("dtype", static_cast<std::int64_t>(DType::bf16));
  complete_problem(problem, "test");
  return problem;
}

// What stands for a vendor's library is measured by scripts.
TEST(Lowering, accepts_every_pattern_of_every_workload_but_the_librarys) {
  const Machine machine = find_machine("h200-4");
  const DeviceTraits device = device_with_copy_engine();
  for (const Workload* workload : workloads()) {
    const Problem problem = even_problem(*workload);
    Values knobs(workload->knobs);
    for (const auto& [column, value] :
         {std::pair{"tile_m", 128}, {"tile_n", 128}, {"tile_k", 64}, {"comm_cus", 8}}) {
      if (knobs.has(column)) knobs.give(column, value);
    }
    for (const Pattern& pattern : workload->patterns) {
      if (pattern.vendor) continue;
      for (int transport = 0; transport < (pattern.uses("transport") ? 2 : 1); ++transport) {
        SCOPED_TRACE(std::string(workload->name) + ", " + std::string(pattern.name));
        if (pattern.uses("transport")) knobs.give("transport", transport);
        const Schedule schedule =
            build_schedule(pattern, problem, machine, resolved_knobs(problem, machine, knobs));
        const HeapLayout heap = lay_out_heap(schedule, device);
        std::vector<std::uint64_t> bases;
        for (int r = 0; r < schedule.ranks; ++r) bases.push_back((static_cast<std::uint64_t>(r) + 1) << 40);
        // It normalises whole rows of C, which its tiles do not hold, in the kernel that multiplies.
        const bool rows_are_wider = workload->name == "gemm-all-reduce-norm" && pattern.name == "fused";
        for (int r = 0; r < schedule.ranks; ++r) {
          if (rows_are_wider) {
            EXPECT_THROW(lower(schedule, heap, device, r, bases), UserError);
          } else {
            EXPECT_NO_THROW(lower(schedule, heap, device, r, bases));
          }
        }
      }
    }
  }
}

// There is no wgmma of fp64: the waves of its kernel load, and store their tiles themselves.
TEST(LowerFp64, NeedsNoCopyEngine) {
  OneKernel one(DType::fp64);
  one.builder.matmul(one.a, one.b, {0, 0, 128, 128}, 1, 256);  // K may begin anywhere
  one.builder.store(one.c, {0, 0, 128, 128}, 0);
  one.builder.signal(one.flag, 0, 1, 0, Scope::gpu, LockProtocol::load_store);
  const RankProgram program = one.lowered(device_with_copy_engine());
  EXPECT_TRUE(program.tensor_maps.empty());
  EXPECT_EQ(program.kernels[0].threads, 256);
  EXPECT_EQ(program.ops[0].tensor_map, -1);
  EXPECT_EQ(program.ops[0].width, 8);
  EXPECT_EQ(program.ops[1].bits & kTensor, 0);
  EXPECT_NE(program.ops[2].bits & kTeamWrites, 0);
}

TEST(LowerFp64, RefusesOtherTypesBesideItAndSumsWithoutIt) {
  OneKernel mixed(DType::fp64);
  const std::int16_t narrow = mixed.builder.buffer({"narrow", DType::fp32, 128, 128, 128, 128});
  mixed.builder.matmul(mixed.a, mixed.b, {0, 0, 128, 128}, 0, 256);
  mixed.builder.store(narrow, {0, 0, 128, 128}, 0);
  EXPECT_NE(
      mixed.refusal(device_with_copy_engine()).find("fp32 data in a kernel of fp64 tiles; fp64 is possible"),
      std::string::npos);
  OneKernel vectors(DType::fp64);
  vectors.builder.load(vectors.a, {0, 0, 16, 16}, 0);
  vectors.builder.store(vectors.c, {0, 0, 16, 16}, 0);
  EXPECT_NE(vectors.refusal(device_with_copy_engine()).find("does not multiply in fp64"), std::string::npos);
}

TEST(SharedRoom, IsRefusedBeyondWhatTheDeviceGives) {
  require_shared_room("merge_path", 232448, 232448, "NVIDIA H200");
  try {
    require_shared_room("merge_path", 263680, 232448, "NVIDIA H200");
    FAIL() << "accepted";
  } catch (const UserError& error) {
    EXPECT_STREQ(
        error.what(),
        "kernel 'merge_path': a workgroup asks for 263680 bytes of LDS, NVIDIA H200 gives it at most "
        "232448; use fewer threads or items, or smaller tiles");
  }
}

}  // namespace
}  // namespace tritax::gpu
