#include "model/select/game/tile_board.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "model/core/error.hpp"
#include "model/schedule/items.hpp"
#include "model/schedule/op_traits.hpp"

namespace tritax {

namespace {

// For operations of one publication group: the write must stay before the signal.
bool publishes(const Op& signal, const Op& write) {
  return signal.kind == OpKind::signal && !is_relaxed(signal) && writes_memory(write.kind);
}

}  // namespace

TileBoard::TileBoard(Schedule start, const Machine& machine, TimeOfSchedule time)
    : schedule_(std::move(start)),
      start_of_(schedule_.ops.size()),
      law_(schedule_, machine),
      groups_(publication_groups(schedule_)),
      published_(published_writes(schedule_, groups_)),
      time_(std::move(time)) {
  std::iota(start_of_.begin(), start_of_.end(), 0U);
  for (std::size_t k = 0; k < schedule_.kernels.size(); ++k) {
    const Kernel& kernel = schedule_.kernels[k];
    for (std::size_t p = 0; p < program_count(kernel); ++p) {
      const Workgroup& program = program_of(kernel, p);
      if (program.op_count < 2 || skips_by_claim(ops_of(schedule_, program))) continue;
      programs_.push_back(
          {static_cast<std::uint32_t>(k), static_cast<std::uint32_t>(p), program.first_op, program.op_count});
    }
  }
  if (programs_.empty()) {
    throw UserError(fmt::format("{}: no workgroup has two operations that could change places",
                                schedule_.name.empty() ? "this schedule" : schedule_.name));
  }
  add_tracks();
  find_crossings();
}

void TileBoard::add_wide_track(std::string name, const std::vector<std::uint32_t>& programs,
                               bool every_tile) {
  if (!programs.empty()) tracks_.push_back({std::move(name), programs, every_tile});
}

void TileBoard::add_tracks() {
  std::vector<std::string> names;
  for (const Program& program : programs_) {
    const std::string& name = schedule_.kernels[program.kernel].name;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  for (const std::string& name : names) {
    std::vector<std::uint32_t> all;
    std::array<std::vector<std::uint32_t>, 2> by_parity, by_half;
    for (std::uint32_t i = 0; i < programs_.size(); ++i) {
      const Program& program = programs_[i];
      const Kernel& kernel = schedule_.kernels[program.kernel];
      if (kernel.name != name) continue;
      all.push_back(i);
      by_parity[program.number % 2].push_back(i);
      by_half[2 * program.number < program_count(kernel) ? 0 : 1].push_back(i);
    }
    add_wide_track("all of " + name, all);
    add_wide_track("every tile of " + name, all, true);
    if (all.size() < 2) continue;
    add_wide_track("even workgroups of " + name, by_parity[0]);
    add_wide_track("odd workgroups of " + name, by_parity[1]);
    add_wide_track("first half of " + name, by_half[0]);
    add_wide_track("second half of " + name, by_half[1]);
  }
  wide_tracks_ = static_cast<std::uint32_t>(tracks_.size());
  for (std::uint32_t i = 0; i < programs_.size(); ++i) {
    const Program& program = programs_[i];
    const Kernel& kernel = schedule_.kernels[program.kernel];
    const std::size_t workgroups = kernel.workgroups.size();
    const bool item = program.number >= workgroups;
    tracks_.push_back(
        {fmt::format("{} {} of {} on GPU {}", item ? "item" : "workgroup",
                     item ? program.number - workgroups : program.number, kernel.name, kernel.rank),
         {i}});
  }
}

std::vector<TileBoard::Stretch> TileBoard::stretches_of(const Program& program, bool every_tile) const {
  if (!every_tile) return {{0, program.op_count}};
  std::vector<std::uint32_t> starts =
      unit_starts(std::span(schedule_.ops).subspan(program.first_op, program.op_count), Grain::tile);
  starts.push_back(program.op_count);
  std::vector<Stretch> stretches;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) stretches.push_back({starts[i], starts[i + 1]});
  return stretches;
}

// Places in the program where units of the stretch begin, and the end of the stretch.
std::vector<std::uint32_t> TileBoard::bounds_of(const Program& program, const Stretch& stretch,
                                                Grain grain) const {
  std::vector<std::uint32_t> bounds = unit_starts(
      std::span(schedule_.ops).subspan(program.first_op + stretch.begin, stretch.end - stretch.begin), grain);
  for (std::uint32_t& bound : bounds) bound += stretch.begin;
  bounds.push_back(stretch.end);
  return bounds;
}

std::uint32_t TileBoard::places(std::uint32_t track, Grain grain) const {
  std::size_t most = 0;
  for (const std::uint32_t i : tracks_[track].programs) {
    const Program& program = programs_[i];
    if (program.op_count <= most) continue;
    for (const Stretch& stretch : stretches_of(program, tracks_[track].every_tile)) {
      if (stretch.end - stretch.begin <= most) continue;
      most = std::max(most, bounds_of(program, stretch, grain).size() - 1);
    }
  }
  return static_cast<std::uint32_t>(most);
}

Passing TileBoard::units_may_pass(const Program& program, const Rotation& units, bool whole) const {
  if (whole) {
    const std::vector<char> anew =
        begins_anew(std::span(schedule_.ops).subspan(program.first_op, program.op_count));
    whole = anew[units.begin - program.first_op] != 0 && anew[units.middle - program.first_op] != 0 &&
            anew[units.end - program.first_op] != 0;
  }
  const std::int32_t rank = schedule_.kernels[program.kernel].rank;
  Passing worst = Passing::free;
  for (std::uint32_t i = units.begin; i < units.middle; ++i) {
    for (std::uint32_t j = units.middle; j < units.end; ++j) {
      const Passing passing = may_pass(schedule_.ops[i], schedule_.ops[j], rank, whole);
      if (publishes(schedule_.ops[j], schedule_.ops[i]) && groups_[start_of_[i]] == groups_[start_of_[j]]) {
        return Passing::refused;
      }
      if (passing == Passing::refused) return passing;
      if (passing == Passing::ask) worst = passing;
    }
  }
  return worst;
}

void TileBoard::rotate(const Rotation& rotation) {
  const auto turn = [&](auto& list) {
    const auto first = list.begin();
    std::rotate(first + rotation.begin, first + rotation.middle, first + rotation.end);
  };
  turn(schedule_.ops);
  turn(start_of_);
  if (rotation.more != 0) shift_programs(rotation.kernel, rotation.first, rotation.last, rotation.more);
}

void TileBoard::undo_down_to(std::size_t rotations) {
  while (rotations_.size() > rotations) {
    const Rotation done = rotations_.back();
    rotations_.pop_back();
    rotate({done.begin, done.begin + (done.end - done.middle), done.end, done.kernel, done.first, done.last,
            -done.more});
  }
}

bool TileBoard::move_in(const Program& program, const Stretch& stretch, const Move& move, bool& asks) {
  std::vector<std::uint32_t> bounds = bounds_of(program, stretch, move.grain);
  const auto units = static_cast<std::int64_t>(bounds.size()) - 1;
  const std::int64_t target = std::int64_t{move.place} + move.steps;
  if (move.place >= units || target < 0 || target >= units) return false;
  const std::size_t before = rotations_.size();
  const bool down = move.steps > 0;
  auto place = static_cast<std::size_t>(move.place);
  for (std::int32_t step = 0; step < std::abs(move.steps); ++step) {
    const std::size_t first = down ? place : place - 1;
    const Rotation rotation{program.first_op + bounds[first], program.first_op + bounds[first + 1],
                            program.first_op + bounds[first + 2]};
    const Passing passing = units_may_pass(program, rotation, move.grain == Grain::tile);
    if (passing == Passing::refused) {
      undo_down_to(before);
      return false;
    }
    asks = asks || passing == Passing::ask;
    rotate(rotation);
    rotations_.push_back(rotation);
    bounds[first + 1] = bounds[first] + (rotation.end - rotation.middle);
    place = down ? place + 1 : place - 1;
  }
  const Kernel& kernel = schedule_.kernels[program.kernel];
  if (!law_.reads_what_is_there(schedule_, start_of_, program_of(kernel, program.number), kernel.rank)) {
    undo_down_to(before);
    return false;
  }
  return true;
}

bool TileBoard::move_on_track(const Move& move, bool& asks) {
  if (move.kind != MoveKind::pass) {
    asks = true;
    return move_across(move);
  }
  const std::size_t before = rotations_.size();
  const Track& track = tracks_[move.track];
  for (const std::uint32_t i : track.programs) {
    for (const Stretch& stretch : stretches_of(programs_[i], track.every_tile)) {
      move_in(programs_[i], stretch, move, asks);
    }
  }
  return rotations_.size() > before;
}

bool TileBoard::make_unproved(const Move& move) {
  bool asks = false;
  const std::size_t before = rotations_.size();
  if (!move_on_track(move, asks)) return false;
  moves_.push_back(before);
  return true;
}

bool TileBoard::make(const Move& move) {
  bool asks = false;
  const std::size_t before = rotations_.size();
  if (!move_on_track(move, asks)) return false;
  if (asks && !lawful()) {
    ++refused_by_law_;
    undo_down_to(before);
    return false;
  }
  moves_.push_back(before);
  return true;
}

void TileBoard::take_back() {
  TRITAX_ASSERT(!moves_.empty(), "a move was made that can be taken back");
  undo_down_to(moves_.back());
  moves_.pop_back();
}

}  // namespace tritax
