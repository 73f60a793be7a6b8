#include "backend_hip/lower.hpp"

#include "backend_hip/lower_items.hpp"
#include "backend_hip/lowering.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/core/error.hpp"
#include "model/schedule/findings.hpp"
#include "model/schedule/group.hpp"
#include "model/schedule/items.hpp"
#include "model/schedule/op_traits.hpp"
#include "model/timeline/timeline.hpp"

namespace tritax::gpu {

namespace {

std::uint64_t counter_key(int rank, std::int16_t flag, std::int32_t index) {
  return (static_cast<std::uint64_t>(rank) << 48) |
         (static_cast<std::uint64_t>(static_cast<std::uint16_t>(flag)) << 32) |
         static_cast<std::uint32_t>(index);
}

std::vector<int> launches_of_kernels(const Schedule& schedule) {
  std::vector<int> launches(schedule.kernels.size(), 0);
  for (const auto& program : schedule.host) {
    for_each_launch(schedule, program,
                    [&](const GraphNode& node) { ++launches[static_cast<std::size_t>(node.kernel)]; });
  }
  return launches;
}

CounterUses count_uses(const Schedule& schedule) {
  CounterUses uses;
  const std::vector<int> launches = launches_of_kernels(schedule);
  for (std::size_t k = 0; k < schedule.kernels.size(); ++k) {
    const Kernel& kernel = schedule.kernels[k];
    for (std::size_t p = 0; p < program_count(kernel); ++p) {
      for (const Op& op : ops_of(schedule, program_of(kernel, p))) {
        if (op.kind == OpKind::signal) uses[counter_key(op.rank, op.flag, op.index)] += launches[k];
        if (op.kind == OpKind::claim) uses[counter_key(kernel.rank, op.flag, op.index)] += 2;
      }
    }
  }
  return uses;
}

}  // namespace

Lowering::Lowering(const Schedule& schedule, const HeapLayout& heap, const DeviceTraits& device, int rank,
                   const std::vector<std::uint64_t>& heap_base, std::uint64_t multicast)
    : schedule_(schedule),
      heap_(heap),
      device_(device),
      rank_(rank),
      heap_base_(heap_base),
      multicast_(multicast),
      uses_(count_uses(schedule)) {}

RankProgram Lowering::run() {
  program_.kernels.resize(schedule_.kernels.size());
  for (std::size_t k = 0; k < schedule_.kernels.size(); ++k) {
    if (schedule_.kernels[k].rank == rank_) lower_kernel(k);
  }
  return std::move(program_);
}

void Lowering::refuse(std::uint32_t number, const std::string& why) const {
  throw UserError(fmt::format("schedule '{}', {}: {}", schedule_.name,
                              describe_operation(schedule_, static_cast<std::int32_t>(number)), why));
}

void Lowering::lower_kernel(std::size_t k) {
  const Kernel& kernel = schedule_.kernels[k];
  LoweredKernel& lowered = program_.kernels[k];
  lowered.first_workgroup = static_cast<std::uint32_t>(program_.workgroups.size());
  lowered.workgroup_count = static_cast<std::uint32_t>(kernel.workgroups.size());
  const TileTraits* const tile = lowered.tile = find_tile(schedule_, kernel, device_);
  attend_ = tile != nullptr && tile->depth > 0 ? tile : nullptr;
  tile_ = attend_ == nullptr ? tile : nullptr;
  if (tile_ != nullptr) box_rows_of_a_ = lowered.box_rows_of_a = std::min(tile_->m, kernel.tile.m);
  lowered.threads = tile != nullptr ? tile->threads : vector_threads(kernel);
  threads_ = lowered.threads;
  sparse_ = lowered.sparse = runs_sparse(kernel);
  row_ends_ = kernel.resources.lds_bytes / static_cast<std::int32_t>(sizeof(std::int32_t));
  lowered.shared_bytes =
      tile != nullptr ? tile->shared_bytes : kernel.resources.lds_bytes + (sparse_ ? kSparseCarryBytes : 0);
  lowered.lean = tile == nullptr && is_lean(kernel);
  items_conflict_ = !kernel.items.empty() && programs_conflict(schedule_, kernel);
  team_may_write_ = !kernel.items.empty() && team_may_write(kernel);
  for (const Workgroup& workgroup : kernel.workgroups) lower_workgroup(workgroup);
  lowered.first_item = static_cast<std::uint32_t>(program_.items.size());
  program_.items.resize(program_.items.size() + kernel.items.size());
  for (const ItemQueue& queue : item_queues(schedule_, kernel)) {
    for (std::int32_t i = 0; i < queue.count; ++i) {
      lower_item(k, static_cast<std::size_t>(queue.first + i), queue, lowered.first_item);
    }
  }
}

// Only for kernels that combine partials: in other kernels copies matter, and they need registers.
bool Lowering::is_lean(const Kernel& kernel) const {
  constexpr std::int32_t kGroup = 8;  // numbers per thread, as in tile_vector.hpp
  bool combines = false;
  for (std::size_t p = 0; p < program_count(kernel); ++p) {
    for (const Op& op : ops_of(schedule_, program_of(kernel, p))) {
      const AccumulatorUse use = traits_of(op.kind).accumulator;
      combines = combines || op.kind == OpKind::combine;
      if (use == AccumulatorUse::none) continue;
      if (std::int64_t{op.rect.rows} * ((op.rect.cols + kGroup - 1) / kGroup) > threads_) return false;
    }
  }
  return combines;
}

bool Lowering::team_may_write(const Kernel& kernel) const {
  for (std::size_t p = 0; p < program_count(kernel); ++p) {
    const Workgroup& program = program_of(kernel, p);
    for (std::uint32_t i = program.first_op; i < program.first_op + program.op_count; ++i) {
      const Op& op = schedule_.ops[i];
      if (op.kind == OpKind::atomic_add || op.kind == OpKind::copy) return true;
      if (op.kind == OpKind::store && !goes_to_senders(op)) return true;
    }
  }
  return false;
}

std::int32_t Lowering::vector_threads(const Kernel& kernel) {
  const std::int32_t threads = (kernel.resources.threads + 63) / 64 * 64;
  if (threads < 64 || threads > 1024) {
    throw UserError(fmt::format("kernel '{}': {} threads a workgroup; 1 to 1024 are possible", kernel.name,
                                kernel.resources.threads));
  }
  return threads;
}

void Lowering::lower_workgroup(const Workgroup& workgroup) {
  accumulator_ = {};
  all_waves_meet();
  skip_targets_.clear();
  done_until_ = 0;
  program_end_ = workgroup.first_op + workgroup.op_count;
  const std::size_t first_lowered = program_.ops.size();
  program_.workgroups.push_back({static_cast<std::uint32_t>(first_lowered), workgroup.op_count});
  for (std::uint32_t i = workgroup.first_op; i < workgroup.first_op + workgroup.op_count; ++i) {
    if (std::find(skip_targets_.begin(), skip_targets_.end(), i) != skip_targets_.end())
      forget_accumulator(i);
    program_.ops.push_back(lower_op(i));
    DeviceOp& lowered = program_.ops.back();
    lowered.ends_run = ends_run(i, workgroup) ? 1 : 0;
    if (draws_items(schedule_.ops[i])) {  // the operations to continue with when the queue is empty
      lowered.row = static_cast<std::int32_t>(i - workgroup.first_op) + 1;
      lowered.col = static_cast<std::int32_t>(workgroup.op_count);
    }
  }
  join_groups(first_lowered, workgroup);
}

// Kernels without matrix cores carry out a group at once. Stores and copies need nothing for that: the next
// operation starts before they end.
void Lowering::join_groups(std::size_t first_lowered, const Workgroup& program) {
  const bool plain = tile_ == nullptr && attend_ == nullptr && !sparse_;
  const std::span<const Op> ops = ops_of(schedule_, program);
  for (std::size_t i = 0, end = 0; i < ops.size(); i = end) {
    end = end_of_group(ops, i);
    const bool of_switch = ops[i].multimem && multicast_ != 0;
    if (of_switch) {
      const std::uint32_t number = program.first_op + static_cast<std::uint32_t>(i);
      if (!plain) refuse(number, "is multimem, which GPUs carry out only in kernels that do not multiply");
      send_to_switch(ops[i], number, program_.ops[first_lowered + i]);
    }
    const bool waits = loads(ops[i].kind) && ops[i].kind != OpKind::combine;
    if (!plain || end == i + 1 || !(waits || of_switch || ops[i].kind == OpKind::signal)) continue;
    DeviceOp& first = program_.ops[first_lowered + i];
    first.together = static_cast<std::int32_t>(end - i - 1);
    for (std::size_t other = i + 1; other < end; ++other) {
      if ((program_.ops[first_lowered + other].bits & kJoin) != 0) first.bits |= kJoin;
    }
  }
}

void Lowering::send_to_switch(const Op& op, std::uint32_t number, DeviceOp& first) const {
  constexpr std::int32_t kGroup = 8;  // elements, as in tile_vector.hpp
  const auto dtype = static_cast<DType>(first.dtype);
  const bool adds = dtype == DType::fp32 || dtype == DType::fp16 || dtype == DType::bf16;
  if (!adds || first.width != 16 || first.cols % kGroup != 0) {
    refuse(
        number,
        fmt::format("is multimem, with {} columns of {}; the switch takes multiples of {} columns of fp32, "
                    "fp16 and bf16, at multiples of 16 bytes",
                    first.cols, name_of(dtype), kGroup));
  }
  first.multimem = 1;
  first.address += multicast_ - heap_base_[static_cast<std::size_t>(op.rank)];
}

void Lowering::lower_item(std::size_t k, std::size_t number, const ItemQueue& queue,
                          std::uint32_t first_item) {
  const Item& item = schedule_.kernels[k].items[number];
  DeviceWorkgroup& place = program_.items[first_item + number];
  place = {static_cast<std::uint32_t>(program_.ops.size()), item.op_count + 1};
  follow_other_program();
  skip_targets_.clear();
  done_until_ = 0;
  program_end_ = item.first_op + item.op_count;
  const std::size_t first_lowered = program_.ops.size();
  for (std::uint32_t i = item.first_op; i < item.first_op + item.op_count; ++i) {
    program_.ops.push_back(lower_op(i));
    program_.ops.back().ends_run = ends_run(i, item) ? 1 : 0;
  }
  join_groups(first_lowered, item);
  DeviceOp& next = program_.ops.emplace_back();
  next.kind = static_cast<std::uint8_t>(OpKind::claim);
  next.scope = static_cast<std::uint8_t>(Scope::gpu);
  next.number = number_of_item_claim(schedule_, k, number);
  next.address = counter_address(rank_, queue.flag, queue.index);
  next.k_begin = queue.first;
  next.k_end = queue.first + queue.count;
  next.row = next.col = -1;
}

void Lowering::follow_other_program() {
  accumulator_ = {};
  accesses_.clear();
  unknown_before_ = items_conflict_;
  team_wrote_ = team_may_write_;
}

std::uint64_t Lowering::counter_address(int rank, std::int16_t flag, std::int32_t index) const {
  return heap_base_[static_cast<std::size_t>(rank)] + heap_.flag_offsets[static_cast<std::size_t>(flag)] +
         static_cast<std::uint64_t>(index) * sizeof(std::uint32_t);
}

bool Lowering::ends_run(std::uint32_t number, const Workgroup& workgroup) const {
  const Op& op = schedule_.ops[number];
  if (op.kind == OpKind::sparse_product) return true;  // a sparse product stores its result
  if (!is_asynchronous(op.kind)) return false;
  if (number + 1 == workgroup.first_op + workgroup.op_count) return true;
  const Op& next = schedule_.ops[number + 1];
  const auto dtype_of = [this](const Op& one) {
    return schedule_.buffers[static_cast<std::size_t>(one.buffer)].dtype;
  };
  return next.kind != op.kind || dtype_of(next) != dtype_of(op);
}

void Lowering::forget_accumulator(std::uint32_t number) {
  if (!accumulator_.empty && !accumulator_.stored) {
    refuse(number,
           "the accumulator holds a tile that was not stored; no claim may lie between matmul and store");
  }
  accumulator_ = {};
}

DeviceOp Lowering::lower_op(std::uint32_t number) {
  const Op& op = schedule_.ops[number];
  DeviceOp out;
  out.kind = static_cast<std::uint8_t>(op.kind);
  out.scope = static_cast<std::uint8_t>(op.scope);
  out.protocol = static_cast<std::uint8_t>(op.protocol);
  out.number = static_cast<std::int32_t>(number);
  out.rows = op.rect.rows;
  out.cols = op.rect.cols;
  out.value = op.value;
  if (number < done_until_) return out;  // carried out by an earlier operation
  switch (op.kind) {
    case OpKind::matmul:
      lower_matmul(op, number, out);
      break;
    case OpKind::load:
    case OpKind::reduce:
      if (sparse_) {
        lower_probes(op, number, out);
        break;
      }
      require_fits(op, number);
      place(op.buffer, op.rect.row, op.rect.col, op.rank, out);
      set_width(out, false);
      if (attend_ != nullptr) refuse(number, "loads into the accumulator of a kernel that attends");
      touch({tile_of(op), false}, out);
      if (op.kind == OpKind::load || accumulator_.empty) out.bits |= kFresh;
      accumulator_ = {.empty = false, .stored = false, .staged = false};
      break;
    case OpKind::store:
    case OpKind::atomic_add:
      if (sparse_) {
        lower_single_write(op, number, out);
      } else if (op.kind == OpKind::store) {
        lower_store(op, number, out);
      } else {
        lower_atomic_add(op, number, out);
      }
      break;
    case OpKind::copy:
      lower_copy(op, number, out);
      break;
    case OpKind::signal:
    case OpKind::wait:
    case OpKind::claim:
      lower_flag(op, number, out);
      break;
    case OpKind::barrier:
      all_waves_meet();
      break;
    case OpKind::sparse_product:
      lower_sparse_product(op, number, out);
      break;
    case OpKind::attend:
      lower_attend(op, number, out);
      break;
    case OpKind::combine:
      lower_combine(op, number, out);
      break;
    case OpKind::rms_norm:
      lower_rms_norm(op, number, out);
      break;
    case OpKind::row_dot:
    case OpKind::attend_backward:
      refuse(number,
             "no kernel here runs it on a GPU; attention backward is simulated and executed functionally");
  }
  return out;
}

// The threads of a workgroup have a row in their registers, and add up its squares through LDS.
void Lowering::lower_rms_norm(const Op& op, std::uint32_t number, DeviceOp& out) {
  if (tile_ != nullptr || attend_ != nullptr || sparse_)
    refuse(number,
           "normalises in a kernel that multiplies, attends or has sparse products; GPUs run it apart");
  if (op.rect.rows != 1)
    refuse(number, fmt::format("normalises {} rows at once; one is possible", op.rect.rows));
  require_content(number);
  require_fits(op, number);
  place(op.buffer, op.rect.row, op.rect.col, op.rank, out);
  set_width(out, false);
  touch({tile_of(op), false}, out);
  accumulator_ = {.empty = false, .stored = false, .staged = false};
}

void Lowering::lower_flag(const Op& op, std::uint32_t number, DeviceOp& out) {
  const int home = op.kind == OpKind::signal ? op.rank : rank_;
  out.address = counter_address(home, op.flag, op.index);
  if (op.kind == OpKind::signal) {
    // A swap that expects 0 has no effect on a counter that is set a second time.
    if (sets_flag(op) && op.protocol == LockProtocol::compare_and_swap) {
      out.protocol = static_cast<std::uint8_t>(LockProtocol::exchange);
    }
    if (sets_flag(op) || uses_.at(counter_key(op.rank, op.flag, op.index)) == 1) out.bits |= kAlone;
    if (is_relaxed(op)) {
      out.relaxed = 1;
      return;
    }
    if (team_wrote_) out.bits |= kTeamWrites;
    team_wrote_ = false;
    return;
  }
  // All waves meet at a wait or claim, but stores may still be on their way.
  std::erase_if(accesses_, [](const Access& access) { return !access.writes; });
  if (draws_items(op)) {
    out.k_begin = op.k_begin;
    out.k_end = op.k_end;
    follow_other_program();
  } else if (op.kind == OpKind::claim) {
    forget_accumulator(number);
    out.skip = op.rect.rows;
    out.rows = 0;
    skip_targets_.push_back(number + 1 + static_cast<std::uint32_t>(op.rect.rows));
  }
}

bool Lowering::conflicts(const Access& access) const {
  return unknown_before_ || std::any_of(accesses_.begin(), accesses_.end(), [&](const Access& earlier) {
           return (earlier.writes || access.writes) && overlap(earlier.region, access.region);
         });
}

void Lowering::all_waves_meet() {
  accesses_.clear();
  unknown_before_ = false;
  team_wrote_ = false;
}

void Lowering::touch(const Access& access, DeviceOp& out) {
  if (conflicts(access)) {
    out.bits |= kJoin;
    all_waves_meet();
  }
  accesses_.push_back(access);
}

RankProgram lower(const Schedule& schedule, const HeapLayout& heap, const DeviceTraits& device, int rank,
                  const std::vector<std::uint64_t>& heap_base, std::uint64_t multicast) {
  TRITAX_ASSERT(heap_base.size() == static_cast<std::size_t>(schedule.ranks), "one heap base a rank");
  return Lowering(schedule, heap, device, rank, heap_base, multicast).run();
}

std::string describe_operation(const Schedule& schedule, std::int32_t number) {
  const auto index = static_cast<std::uint32_t>(number);
  for (const Kernel& kernel : schedule.kernels) {
    for (std::size_t p = 0; p < program_count(kernel); ++p) {
      const Workgroup& program = program_of(kernel, p);
      if (index < program.first_op || index >= program.first_op + program.op_count) continue;
      const Op& op = schedule.ops[index];
      std::string text = fmt::format("kernel '{}' rank {} {} operation {} ({})", kernel.name, kernel.rank,
                                     describe_program(kernel, p), index - program.first_op, name_of(op.kind));
      if (op.flag >= 0) {
        text += fmt::format(", flag '{}'[{}]{}", schedule.flags[static_cast<std::size_t>(op.flag)].name,
                            op.index, op.kind == OpKind::wait ? fmt::format(" >= {}", op.value) : "");
      }
      return text;
    }
  }
  return fmt::format("operation {} of the schedule", number);
}

void require_shared_room(const std::string& kernel, std::int64_t asked, std::int64_t most,
                         const std::string& device) {
  if (asked <= most) return;
  throw UserError(
      fmt::format("kernel '{}': a workgroup asks for {} bytes of LDS, {} gives it at most {}; use fewer "
                  "threads or items, "
                  "or smaller tiles",
                  kernel, asked, device, most));
}

}  // namespace tritax::gpu
