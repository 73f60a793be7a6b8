// The board of the game of schedules: what can be moved, and what a position takes.
//
// CuAsmRL (arXiv:2501.08071) finds faster GPU code by a game: a move swaps an instruction with the one above
// or below it, moves that could change results are masked, and the reward is the measured speed. Here a board
// is anything whose parts stand in *tracks*, in an order that may change: programs of workgroups
// (tile_board.hpp), or the instructions of a K step (step_board.hpp). A board knows no player, a player
// (player.hpp) no board, and neither a simulator: whoever makes a board of a schedule says what gives its
// time.
//
// Example: {matmul t; store t -> 0; store t -> 1} is a track of three places. The move {place 2, up by 1}
// stores to GPU 1 first; {place 0, down by 1} is masked, since the store writes out what the matmul leaves.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tritax {

// How much moves as one.
enum class Grain : std::uint8_t {
  operation,
  step,  // an operation with the waits in front of it and the signals behind it
  tile,  // all that is done for one tile, or one item that is sent
};
inline constexpr std::array<std::string_view, 3> kGrainNames{"operation", "step", "tile"};

// Where to.
enum class MoveKind : std::uint8_t {
  pass,  // past neighbours of its own program
  swap,  // it changes places with the unit at the same place of another workgroup of its kernel
  give,  // it goes to another workgroup of its kernel, in front of what stands at the same place there
};
inline constexpr std::array<std::string_view, 3> kMoveKindNames{"pass", "swap", "give"};

struct Move {
  std::uint32_t track = 0;
  std::uint32_t place = 0;  // which unit of that grain, from 0
  Grain grain = Grain::operation;
  // pass: neighbours that it passes, up (earlier) if negative, down if positive; else: how many workgroups
  // further along the grid the other one is
  std::int32_t steps = 1;
  MoveKind kind = MoveKind::pass;

  bool operator==(const Move&) const = default;
};

// In an episode; the number is that of CuAsmRL.
inline constexpr int kMovesOfEpisode = 32;

class Board {
 public:
  virtual ~Board() = default;

  virtual std::uint32_t tracks() const = 0;
  virtual std::string track_name(std::uint32_t track) const = 0;
  // The first tracks, of which each stands for many alike; the others are parts of these.
  virtual std::uint32_t wide_tracks() const = 0;
  virtual bool has_grain(Grain grain) const = 0;
  // Whether moves between workgroups are worth proposing.
  virtual bool crosses() const { return false; }
  // Units of that grain in the longest program of the track, as it stands.
  virtual std::uint32_t places(std::uint32_t track, Grain grain) const = 0;

  // Makes the move if the mask allows it. Otherwise nothing changes, and false comes back.
  virtual bool make(const Move& move) = 0;
  // The same by the cheap part of the mask alone. Who ends a list of such moves has to ask lawful().
  virtual bool make_unproved(const Move& move) = 0;
  // Whether the position does what the first one does, by all that can be said of it.
  virtual bool lawful() = 0;
  virtual void take_back() = 0;  // the last move that was made

  // Of the position: ns, or whatever the board counts. Lower is better.
  virtual double time() = 0;

  // "all of gemm (264 programs): store C -> GPU 1 up past 1 operation"; before the move is made.
  virtual std::string describe(const Move& move) const = 0;
};

}  // namespace tritax
