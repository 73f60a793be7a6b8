// Moves between workgroups on the board of tile schedules.
#include <algorithm>
#include <utility>

#include "model/schedule/items.hpp"
#include "model/schedule/op_traits.hpp"
#include "model/select/game/tile_board.hpp"

namespace tritax {

namespace {

constexpr std::uint32_t kOffBoard = ~std::uint32_t{0};

// Whether the operations of its workgroups are contiguous, and no operation counts operations by place.
bool has_plain_programs(const Schedule& schedule, const Kernel& kernel) {
  if (!kernel.items.empty() || kernel.workgroups.size() < 2) return false;
  std::uint32_t next = kernel.workgroups.front().first_op;
  for (const Workgroup& workgroup : kernel.workgroups) {
    if (workgroup.first_op != next) return false;
    next += workgroup.op_count;
    const auto ops = std::span(schedule.ops).subspan(workgroup.first_op, workgroup.op_count);
    if (std::any_of(ops.begin(), ops.end(), [](const Op& op) { return op.kind == OpKind::claim; })) {
      return false;
    }
  }
  return true;
}

}  // namespace

void TileBoard::find_crossings() {
  for (const Kernel& kernel : schedule_.kernels) {
    kernel_crosses_.push_back(has_plain_programs(schedule_, kernel) ? 1 : 0);
    on_board_.emplace_back(program_count(kernel), kOffBoard);
  }
  for (std::uint32_t i = 0; i < programs_.size(); ++i) {
    on_board_[programs_[i].kernel][programs_[i].number] = i;
    crosses_ = crosses_ || kernel_crosses_[programs_[i].kernel] != 0;
  }
}

void TileBoard::shift_programs(std::uint32_t kernel, std::uint32_t first, std::uint32_t last,
                               std::int32_t more) {
  for (std::uint32_t w = first; w <= last; ++w) {
    Workgroup& workgroup = schedule_.kernels[kernel].workgroups[w];
    const auto by = static_cast<std::uint32_t>(more);  // modulo 2^32, like the sums
    if (w == first) workgroup.op_count += by;
    if (w != first) workgroup.first_op += by;
    if (w == last) workgroup.op_count -= by;
    const std::uint32_t i = on_board_[kernel][w];
    if (i == kOffBoard) continue;
    programs_[i].first_op = workgroup.first_op;
    programs_[i].op_count = workgroup.op_count;
  }
}

std::vector<TileBoard::Unit> TileBoard::units_of(const Program& program, Grain grain) const {
  const std::vector<std::uint32_t> bounds = bounds_of(program, {0, program.op_count}, grain);
  std::vector<Unit> units;
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    units.push_back({program.first_op + bounds[i], program.first_op + bounds[i + 1]});
  }
  return units;
}

// The other workgroup's program; null if there is none, or if it is the program itself.
const TileBoard::Program* TileBoard::partner_of(const Program& program, std::int32_t steps) const {
  const auto count = static_cast<std::int64_t>(schedule_.kernels[program.kernel].workgroups.size());
  const std::int64_t other = ((program.number + std::int64_t{steps}) % count + count) % count;
  const std::uint32_t i = on_board_[program.kernel][static_cast<std::size_t>(other)];
  return i == kOffBoard || other == program.number ? nullptr : &programs_[i];
}

// Whether the unit and the rest of its workgroup are independent: neither needs the other's accumulator or
// published writes.
bool TileBoard::may_leave(const Program& program, const Unit& unit) const {
  const std::vector<char> anew =
      begins_anew(std::span(schedule_.ops).subspan(program.first_op, program.op_count));
  if (anew[unit.begin - program.first_op] == 0 || anew[unit.end - program.first_op] == 0) return false;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> writes;  // by group
  for (std::uint32_t i = unit.begin; i < unit.end; ++i) {
    const Op& op = schedule_.ops[i];
    if (op.kind == OpKind::barrier) return false;
    if (op.kind != OpKind::signal && !writes_memory(op.kind)) continue;
    const std::uint32_t group = groups_[start_of_[i]];
    if (published_[group] == 0) {
      if (op.kind == OpKind::signal) return false;  // it publishes earlier operations
      continue;
    }
    auto known = std::find_if(writes.begin(), writes.end(), [&](const auto& w) { return w.first == group; });
    if (known == writes.end()) known = writes.insert(writes.end(), {group, 0U});
    known->second += op.kind == OpKind::signal ? 0 : 1;
  }
  return std::all_of(writes.begin(), writes.end(),
                     [&](const auto& w) { return w.second == published_[w.first]; });
}

bool TileBoard::exchange(const Program& program, const Program& other, const Move& move) {
  const std::vector<Unit> units = units_of(program, move.grain);
  const std::vector<Unit> others = units_of(other, move.grain);
  const bool swaps = move.kind == MoveKind::swap;
  if (move.place >= units.size() || (!swaps && units.size() < 2)) return false;
  if (swaps && move.place >= others.size()) return false;
  const Unit unit = units[move.place];
  if (!may_leave(program, unit) || (swaps && !may_leave(other, others[move.place]))) return false;
  Unit there{other.first_op + other.op_count, other.first_op + other.op_count};
  if (move.place < others.size()) there = others[move.place];
  if (!swaps) there.end = there.begin;
  const std::uint32_t kernel = program.kernel;
  // The lower one first.
  const bool up = program.number > other.number;
  const Unit low = up ? there : unit, high = up ? unit : there;
  const std::uint32_t first = std::min(program.number, other.number);
  const std::uint32_t last = std::max(program.number, other.number);
  const std::uint32_t low_count = low.end - low.begin, high_count = high.end - high.begin;
  const auto more = static_cast<std::int32_t>(high_count) - static_cast<std::int32_t>(low_count);
  const std::size_t before = rotations_.size();
  const auto turn = [&](const Rotation& rotation) {
    rotate(rotation);
    rotations_.push_back(rotation);
  };
  if (high_count > 0) turn({low.begin, high.begin, high.end});
  // The order is then high, low, and the operations between them.
  if (low_count > 0) turn({low.begin + high_count, low.end + high_count, high.end});
  rotations_.back().kernel = kernel;
  rotations_.back().first = first;
  rotations_.back().last = last;
  rotations_.back().more = more;
  if (more != 0) shift_programs(kernel, first, last, more);
  const Kernel& of = schedule_.kernels[kernel];
  for (const std::uint32_t number : {first, last}) {
    if (law_.reads_what_is_there(schedule_, start_of_, of.workgroups[number], of.rank)) continue;
    undo_down_to(before);
    return false;
  }
  return true;
}

bool TileBoard::move_across(const Move& move) {
  const Track track = tracks_[move.track];
  if (move.steps == 0 || track.every_tile) return false;
  const std::size_t before = rotations_.size();
  std::vector<char> taken(programs_.size(), 0);
  for (const std::uint32_t i : track.programs) {
    const Program& program = programs_[i];
    if (kernel_crosses_[program.kernel] == 0 || taken[i] != 0) continue;
    const Program* other = partner_of(program, move.steps);
    if (other == nullptr) continue;
    const auto j = static_cast<std::size_t>(other - programs_.data());
    if (taken[j] != 0 || !exchange(program, *other, move)) continue;
    taken[i] = taken[j] = 1;
  }
  return rotations_.size() > before;
}

}  // namespace tritax
