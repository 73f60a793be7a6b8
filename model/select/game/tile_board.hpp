// Defines the board of a tile schedule: operations change places in programs of workgroups and items.
//
// A *track* is a set of programs in which a move is made at the same place, like an instruction of a kernel's
// code that moves in all workgroups. The tracks are: all programs of the kernels of one name, on all ranks;
// every other program; the first or the second half of each grid; then each program alone. Tracks "every tile
// of …" are the body of the loop over tiles: a move is made at one place inside each tile. If a move of a
// wide track is masked in some programs, it is made in the others.
//
// The mask is the dependence test of mask.hpp, and, if a signal or wait is passed, the law of
// model/schedule/same_result.hpp, which includes the checker. So every position computes the same as the
// start. Programs with a claim that skips operations are not on the board, because the claim counts
// operations by place.
//
// Moves between workgroups of a kernel on one GPU need a kernel with plain programs without claims: two units
// at the same place change places, or one unit goes to another workgroup, n further along the grid (modulo
// its size). In a wide track each workgroup takes part in at most one such exchange, in order of workgroups.
// A unit moves only with everything that its signals publish, must not pass its accumulator to a later unit,
// and must not leave its workgroup empty. The law decides every such move.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "model/schedule/same_result.hpp"
#include "model/schedule/schedule.hpp"
#include "model/select/game/board.hpp"
#include "model/select/game/mask.hpp"

namespace tritax {

// Time of a schedule [ns].
using TimeOfSchedule = std::function<double(const Schedule&)>;

class TileBoard final : public Board {
 public:
  // Throws UserError if the checker has findings in `start`, or if nothing in `start` can move. `machine`
  // must outlive the board.
  TileBoard(Schedule start, const Machine& machine, TimeOfSchedule time);

  std::uint32_t tracks() const override { return static_cast<std::uint32_t>(tracks_.size()); }
  std::uint32_t wide_tracks() const override { return wide_tracks_; }
  std::string track_name(std::uint32_t track) const override { return tracks_[track].name; }
  bool has_grain(Grain) const override { return true; }
  bool crosses() const override { return crosses_; }
  std::uint32_t places(std::uint32_t track, Grain grain) const override;
  bool make(const Move& move) override;
  bool make_unproved(const Move& move) override;
  bool lawful() override { return law_.fault(schedule_, start_of_).empty(); }
  void take_back() override;
  double time() override { return time_(schedule_); }
  std::string describe(const Move& move) const override;

  // What a player sees of a move, in the first program of the track that has the place: the kinds of the main
  // operations of the unit and of the next unit in the direction of the move (or in the other workgroup),
  // their peers relative to the own rank, -1 if there is none; and whether the mask allows the move, from
  // these two units alone.
  struct View {
    std::int32_t unit_kind = -1;
    std::int32_t unit_peer = -1;
    std::int32_t other_kind = -1;
    std::int32_t other_peer = -1;
    std::int32_t operations = 0;  // number in the unit
    bool allowed = false;
  };
  View look(const Move& move);

  const Schedule& schedule() const { return schedule_; }
  // The operation of the start at each place.
  const std::vector<std::uint32_t>& start_of() const { return start_of_; }
  // Moves that the dependence test allowed and the law refused.
  std::int64_t refused_by_law() const { return refused_by_law_; }

 private:
  struct Program {
    std::uint32_t kernel = 0;
    std::uint32_t number = 0;  // in program_of()
    std::uint32_t first_op = 0;
    std::uint32_t op_count = 0;
  };
  struct Track {
    std::string name;
    std::vector<std::uint32_t> programs;  // into programs_
    bool every_tile = false;
  };
  // The operations of a program among which a move is made, by place in the program.
  struct Stretch {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
  };
  // [middle, end) moved before [begin, middle). In a move between workgroups, program `first` of the kernel
  // then has `more` operations more, program `last` has `more` fewer, and the programs between begin `more`
  // operations later.
  struct Rotation {
    std::uint32_t begin = 0;
    std::uint32_t middle = 0;
    std::uint32_t end = 0;
    std::uint32_t kernel = 0;
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    std::int32_t more = 0;
  };
  // Operations of a unit, by place in the schedule.
  struct Unit {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
  };
  void add_tracks();
  void add_wide_track(std::string name, const std::vector<std::uint32_t>& programs, bool every_tile = false);
  std::vector<Stretch> stretches_of(const Program& program, bool every_tile) const;
  std::vector<std::uint32_t> bounds_of(const Program& program, const Stretch& stretch, Grain grain) const;
  Passing units_may_pass(const Program& program, const Rotation& units, bool whole) const;
  // Returns whether all steps of the move were made; otherwise none was made.
  bool move_in(const Program& program, const Stretch& stretch, const Move& move, bool& asks);
  bool move_on_track(const Move& move, bool& asks);  // returns whether it was made anywhere
  bool move_across(const Move& move);                // returns whether it was made anywhere
  bool exchange(const Program& program, const Program& other, const Move& move);
  std::vector<Unit> units_of(const Program& program, Grain grain) const;
  bool may_leave(const Program& program, const Unit& unit) const;
  const Program* partner_of(const Program& program, std::int32_t steps) const;
  std::string unit_text_of(const Unit& unit, Grain grain) const;
  void find_crossings();
  void shift_programs(std::uint32_t kernel, std::uint32_t first, std::uint32_t last, std::int32_t more);
  void rotate(const Rotation& rotation);
  void undo_down_to(std::size_t rotations);
  std::string unit_text(const Program& program, const Stretch& stretch, const Move& move) const;

  Schedule schedule_;
  std::vector<std::uint32_t> start_of_;
  SameResult law_;
  std::vector<std::uint32_t> groups_;                 // publication_groups of the start
  std::vector<std::uint32_t> published_;              // published_writes of the start
  std::vector<std::vector<std::uint32_t>> on_board_;  // by kernel, workgroup: into programs_, or kOffBoard
  std::vector<char> kernel_crosses_;                  // by kernel
  bool crosses_ = false;
  TimeOfSchedule time_;
  std::vector<Program> programs_;
  std::vector<Track> tracks_;
  std::uint32_t wide_tracks_ = 0;
  std::vector<Rotation> rotations_;
  std::vector<std::size_t> moves_;  // number of rotations before each move
  std::int64_t refused_by_law_ = 0;
};

// Describes the operations that moved since the start: by kernel and kind of operation, with the peer
// relative to the own rank, how many moved up and down and by how many places of their program on average,
// and how many moved to another workgroup. "gemm: store C to the own GPU: 512 later by 1.0".
std::vector<std::string> describe_order(const Schedule& start, const Schedule& moved,
                                        const std::vector<std::uint32_t>& start_of);

// "store C[0:128, 256:512] -> GPU 1", for people.
std::string describe_operation_text(const Schedule& schedule, const Op& op);

}  // namespace tritax
