#include "model/schedule/group.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/schedule/op_traits.hpp"

namespace tritax {

namespace {

bool may_follow(OpKind before, OpKind kind) {
  if (kind == OpKind::reduce) return before == OpKind::reduce || before == OpKind::load;
  const bool groups = has(kind, [](auto& row) { return row.fields.contains(OpField::group); });
  return groups && before == kind;
}

bool overlaps(const Region& a, const Region& b) {
  return a.buffer == b.buffer && a.rank == b.rank && overlap(a.rect, b.rect);
}

// Whether one operation writes what the other reads or writes.
bool conflicts(const Op& a, const Op& b, std::int32_t rank) {
  bool found = false;
  for_each_write(a, [&](const Region& written, bool) {
    for_each_write(b, [&](const Region& other, bool) { found = found || overlaps(written, other); });
    for_each_read(b, rank, [&](const Region& read) { found = found || overlaps(written, read); });
  });
  for_each_write(b, [&](const Region& written, bool) {
    for_each_read(a, rank, [&](const Region& read) { found = found || overlaps(written, read); });
  });
  return found;
}

bool same_counter(const Op& a, const Op& b) {
  return a.flag == b.flag && a.index == b.index && a.rank == b.rank;
}

// As fault_of_group(), for the first operation of a group that the switch carries out.
std::string fault_of_multimem(const Schedule& schedule, const Workgroup& program, std::size_t number,
                              std::int32_t rank) {
  const std::span<const Op> ops = ops_of(schedule, program);
  const Op& first = ops[number];
  const std::span<const Op> group = ops.subspan(number, end_of_group(ops, number) - number);
  const bool stores = first.kind == OpKind::store;
  if (!stores && first.kind != OpKind::load)
    return fmt::format(
        "begins a group that the switch carries out ({}); such a group has stores, or a load and then "
        "reduces",
        name_of(first.kind));
  if (group.size() < 2) return "is a group of one; the switch carries out groups of several ranks";
  const DType dtype = schedule.buffers[static_cast<std::size_t>(first.buffer)].dtype;
  if (!stores && !adds_in_switch(dtype))
    return fmt::format("adds up {} in the switch, which adds fp16, bf16, fp32 and fp64",
                       tritax::name_of(dtype));
  bool own = false;
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (group[i].buffer != first.buffer || group[i].rect != first.rect)
      return fmt::format(
          "begins a group that the switch carries out, and operation {} names another rectangle; all name "
          "one",
          number + i);
    own = own || group[i].rank == rank;
    for (std::size_t other = 0; other < i; ++other) {
      if (group[i].rank == group[other].rank)
        return fmt::format("begins a group that the switch carries out, which names rank {} twice",
                           group[i].rank);
    }
  }
  if (!own) return fmt::format("begins a group that the switch carries out without the own rank {}", rank);
  return {};
}

}  // namespace

bool adds_in_switch(DType dtype) { return dtype != DType::fp8; }

std::string fault_of_group(const Schedule& schedule, const Workgroup& program, std::size_t number,
                           std::int32_t rank, std::size_t block_end) {
  const std::span<const Op> ops = ops_of(schedule, program);
  const Op& op = ops[number];
  if (!op.with_previous)
    return op.multimem ? fault_of_multimem(schedule, program, number, rank) : std::string{};
  if (number == 0) return "starts with the operation before it, and there is none";
  if (number == block_end)
    return "starts with the operation before it, which belongs to a block that a claim may skip";
  if (!may_follow(ops[number - 1].kind, op.kind)) {
    return fmt::format(
        "starts with the operation before it ({}); a group has signals, waits, stores, copies, atomic_adds, "
        "combines or reduces alone, or a load and then reduces",
        name_of(ops[number - 1].kind));
  }
  if (op.multimem != ops[number - 1].multimem)
    return "starts with the operation before it, and only one of them is multimem; the switch carries out a "
           "group "
           "as a whole";
  if (sets_flag(op)) return "sets its flag in a group; only signals that add may start together";
  std::size_t first = number;
  while (first > 0 && ops[first].with_previous) --first;
  if (number - first >= kMostTogether && !op.multimem)
    return fmt::format("is number {} of its group; a group has at most {} operations", number - first + 1,
                       kMostTogether);
  for (std::size_t other = first; other < number; ++other) {
    if (op.kind == OpKind::signal && sets_flag(ops[other]))
      return fmt::format("operation {} of its group sets a flag; only signals that add may start together",
                         other);
    if (op.kind == OpKind::signal && same_counter(op, ops[other]))
      return fmt::format(
          "raises the flag of operation {} of its group; signals that start together raise "
          "different flags",
          other);
    if (conflicts(ops[other], op, rank))
      return fmt::format(
          "writes what operation {} of its group reads or writes, or reads what that one writes; "
          "operations that start together write different places",
          other);
  }
  return {};
}

}  // namespace tritax
