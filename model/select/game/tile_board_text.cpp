// Describes the board of tile schedules, for people and for players.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "model/schedule/items.hpp"
#include "model/schedule/op_traits.hpp"
#include "model/select/game/tile_board.hpp"

namespace tritax {

namespace {

std::string rect_text(const Schedule& schedule, const Op& op) {
  const Rect& r = op.rect;
  const std::string name =
      op.buffer >= 0 ? schedule.buffers[static_cast<std::size_t>(op.buffer)].name : std::string("rows");
  return fmt::format("{}[{}:{}, {}:{}]", name, r.row, r.row + r.rows, r.col, r.col + r.cols);
}

// The main operation of a unit: the first that moves data or computes.
const Op& main_of(std::span<const Op> unit) {
  const auto main = std::find_if(unit.begin(), unit.end(), [](const Op& op) {
    return op.kind != OpKind::wait && op.kind != OpKind::signal;
  });
  return main == unit.end() ? unit.front() : *main;
}

std::int32_t relative_peer(const Schedule& schedule, const Op& op, std::int32_t own_rank) {
  if (!names_rank(op.kind)) return -1;
  return (peer_of(op, own_rank) - own_rank + schedule.ranks) % schedule.ranks;
}

}  // namespace

std::string describe_operation_text(const Schedule& schedule, const Op& op) {
  const std::string kind(name_of(op.kind));
  const auto flag = [&] {
    return fmt::format("{}[{}]", schedule.flags[static_cast<std::size_t>(op.flag)].name, op.index);
  };
  const OpTraits& traits = traits_of(op.kind);
  if (op.kind == OpKind::wait) return kind + " for " + flag();
  if (op.kind == OpKind::signal) return fmt::format("{} {} of GPU {}", kind, flag(), op.rank);
  if (multiplies(op.kind)) {
    return fmt::format("{} {} over k {}:{}", kind, rect_text(schedule, op), op.k_begin, op.k_end);
  }
  if (traits.fields.contains(OpField::to)) {
    return fmt::format("{} {} -> GPU {}", kind, rect_text(schedule, op), op.rank);
  }
  if (traits.fields.contains(OpField::from)) {
    return fmt::format("{} {} of GPU {}", kind, rect_text(schedule, op), op.rank);
  }
  return kind;
}

std::string TileBoard::unit_text_of(const Unit& unit, Grain grain) const {
  const auto ops = std::span(schedule_.ops).subspan(unit.begin, unit.end - unit.begin);
  std::string text = describe_operation_text(schedule_, main_of(ops));
  if (ops.size() > 1) {
    text +=
        fmt::format(" and {} more of its {}", ops.size() - 1, kGrainNames[static_cast<std::size_t>(grain)]);
  }
  return text;
}

std::string TileBoard::unit_text(const Program& program, const Stretch& stretch, const Move& move) const {
  const std::vector<std::uint32_t> bounds = bounds_of(program, stretch, move.grain);
  if (move.place + 1 >= bounds.size()) return {};
  return unit_text_of({program.first_op + bounds[move.place], program.first_op + bounds[move.place + 1]},
                      move.grain);
}

std::string TileBoard::describe(const Move& move) const {
  const Track& track = tracks_[move.track];
  std::string unit;
  for (const std::uint32_t i : track.programs) {
    for (const Stretch& stretch : stretches_of(programs_[i], track.every_tile)) {
      if (unit.empty()) unit = unit_text(programs_[i], stretch, move);
    }
    if (!unit.empty()) break;
  }
  const std::int32_t steps = std::abs(move.steps);
  if (move.kind != MoveKind::pass) {
    return fmt::format("{}: {} {} the workgroup {} {}", track.name, unit,
                       move.kind == MoveKind::swap ? "changes places with that of" : "goes to", steps,
                       move.steps < 0 ? "back" : "further on");
  }
  return fmt::format("{}: {} {} past {} {}{}", track.name, unit, move.steps < 0 ? "up" : "down", steps,
                     kGrainNames[static_cast<std::size_t>(move.grain)], steps == 1 ? "" : "s");
}

TileBoard::View TileBoard::look(const Move& move) {
  const Track& track = tracks_[move.track];
  for (const std::uint32_t i : track.programs) {
    const Program program = programs_[i];
    if (move.kind != MoveKind::pass && (kernel_crosses_[program.kernel] == 0 || track.every_tile)) continue;
    const std::int32_t rank = schedule_.kernels[program.kernel].rank;
    for (const Stretch& stretch : stretches_of(program, track.every_tile)) {
      const std::vector<std::uint32_t> bounds = bounds_of(program, stretch, move.grain);
      const auto unit_at = [&](std::int64_t place) {
        const auto at = static_cast<std::size_t>(place);
        return std::span(schedule_.ops).subspan(program.first_op + bounds[at], bounds[at + 1] - bounds[at]);
      };
      if (move.place + 1 >= bounds.size()) continue;
      View view;
      const Op& main = main_of(unit_at(move.place));
      view.unit_kind = static_cast<std::int32_t>(main.kind);
      view.unit_peer = relative_peer(schedule_, main, rank);
      view.operations = static_cast<std::int32_t>(unit_at(move.place).size());
      const std::size_t before = rotations_.size();
      if (move.kind == MoveKind::pass) {
        const std::int64_t next = std::int64_t{move.place} + (move.steps < 0 ? -1 : 1);
        if (next >= 0 && next + 1 < static_cast<std::int64_t>(bounds.size())) {
          const Op& passed = main_of(unit_at(next));
          view.other_kind = static_cast<std::int32_t>(passed.kind);
          view.other_peer = relative_peer(schedule_, passed, rank);
        }
        bool asks = false;
        view.allowed = move_in(program, stretch, move, asks);
      } else if (const Program* other = partner_of(program, move.steps); other != nullptr) {
        const std::vector<Unit> others = units_of(*other, move.grain);
        if (move.place < others.size()) {
          const Unit& met = others[move.place];
          const Op& there = main_of(std::span(schedule_.ops).subspan(met.begin, met.end - met.begin));
          view.other_kind = static_cast<std::int32_t>(there.kind);
          view.other_peer = relative_peer(schedule_, there, rank);
        }
        view.allowed = exchange(program, *other, move);
      }
      undo_down_to(before);
      return view;
    }
  }
  return {};
}

namespace {

struct Shift {
  std::string what;
  std::array<std::int64_t, 2> count{};  // earlier, later
  std::array<std::int64_t, 2> places{};
  std::int64_t elsewhere = 0;  // in another workgroup
};

struct Spot {
  std::uint32_t program = 0;
  std::uint32_t place = 0;  // in the program
};

// Spots by place in the schedule.
std::vector<Spot> spots_of(const Schedule& schedule) {
  std::vector<Spot> spots(schedule.ops.size());
  for (const Kernel& kernel : schedule.kernels) {
    for (std::uint32_t p = 0; p < program_count(kernel); ++p) {
      const Workgroup& program = program_of(kernel, p);
      for (std::uint32_t i = 0; i < program.op_count; ++i) spots[program.first_op + i] = {p, i};
    }
  }
  return spots;
}

std::string shift_text(const Shift& shift) {
  std::string line = shift.what + ":";
  const auto add = [&line](const std::string& text) { line += (line.ends_with(':') ? " " : ", ") + text; };
  for (std::size_t later = 0; later < 2; ++later) {
    if (shift.count[later] == 0) continue;
    add(fmt::format("{} {} by {:.1f}", shift.count[later], later == 0 ? "earlier" : "later",
                    static_cast<double>(shift.places[later]) / static_cast<double>(shift.count[later])));
  }
  if (shift.elsewhere > 0) add(fmt::format("{} in another workgroup", shift.elsewhere));
  return line;
}

}  // namespace

std::vector<std::string> describe_order(const Schedule& start, const Schedule& moved,
                                        const std::vector<std::uint32_t>& start_of) {
  std::vector<Shift> shifts;
  std::vector<std::uint32_t> place_of(start_of.size());
  for (std::uint32_t i = 0; i < start_of.size(); ++i) place_of[start_of[i]] = i;
  const std::vector<Spot> before = spots_of(start), after = spots_of(moved);
  for (const Kernel& kernel : start.kernels) {
    for (std::size_t p = 0; p < program_count(kernel); ++p) {
      const Workgroup& program = program_of(kernel, p);
      for (std::uint32_t i = program.first_op; i < program.first_op + program.op_count; ++i) {
        const Spot& from = before[i];
        const Spot& to = after[place_of[i]];
        const std::int64_t by = std::int64_t{to.place} - from.place;
        if (by == 0 && from.program == to.program) continue;
        const Op& op = start.ops[i];
        std::string what = fmt::format("{}: {}", kernel.name, name_of(op.kind));
        if (names_rank(op.kind)) {
          const std::int32_t peer = relative_peer(start, op, kernel.rank);
          what += peer == 0 ? std::string(" of the own GPU") : fmt::format(" of peer +{}", peer);
        }
        auto found =
            std::find_if(shifts.begin(), shifts.end(), [&](const Shift& s) { return s.what == what; });
        if (found == shifts.end()) found = shifts.insert(shifts.end(), Shift{what, {}, {}});
        if (from.program != to.program) {
          ++found->elsewhere;
          continue;
        }
        const std::size_t later = by > 0 ? 1 : 0;
        ++found->count[later];
        found->places[later] += std::abs(by);
      }
    }
  }
  std::vector<std::string> lines;
  for (const Shift& shift : shifts) lines.push_back(shift_text(shift));
  return lines;
}

}  // namespace tritax
