// Defines the board of the game of schedules: the possible moves, and the time of a position.
//
// CuAsmRL (arXiv:2501.08071) finds faster GPU code by a game: a move swaps an instruction with the one above
// or below it, moves that could change results are masked, and the reward is the measured speed. Here a board
// has parts in *tracks*, in an order that may change: programs of workgroups (tile_board.hpp), or the
// instructions of a K step (step_board.hpp). A board knows no player, a player (player.hpp) knows only the
// interface of a board, and neither knows a simulator: the creator of a board passes the function that gives
// the time.
//
// Example: {matmul t; store t -> 0; store t -> 1} is a track of three places. The move {place 2, up by 1}
// stores to GPU 1 first; {place 0, down by 1} is masked, because the store writes out the result of the
// matmul.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tritax {

// The unit of a move.
enum class Grain : std::uint8_t {
  operation,
  step,  // an operation with the waits in front of it and the signals behind it
  tile,  // all operations for one tile, or for one sent item
};
inline constexpr std::array<std::string_view, 3> kGrainNames{"operation", "step", "tile"};

// The target of a move.
enum class MoveKind : std::uint8_t {
  pass,  // past neighbours in its own program
  swap,  // exchange with the unit at the same place of another workgroup of its kernel
  give,  // to another workgroup of its kernel, before the unit at the same place
};
inline constexpr std::array<std::string_view, 3> kMoveKindNames{"pass", "swap", "give"};

struct Move {
  std::uint32_t track = 0;
  std::uint32_t place = 0;  // number of the unit of that grain, from 0
  Grain grain = Grain::operation;
  // pass: number of neighbours passed, up (earlier) if negative, down if positive; else: distance to the
  // other workgroup along the grid
  std::int32_t steps = 1;
  MoveKind kind = MoveKind::pass;

  bool operator==(const Move&) const = default;
};

// Moves per episode, as in CuAsmRL.
inline constexpr int kMovesOfEpisode = 32;

class Board {
 public:
  virtual ~Board() = default;

  virtual std::uint32_t tracks() const = 0;
  virtual std::string track_name(std::uint32_t track) const = 0;
  // Number of wide tracks, which come first. A wide track stands for many similar programs; the other tracks
  // are parts of wide tracks.
  virtual std::uint32_t wide_tracks() const = 0;
  virtual bool has_grain(Grain grain) const = 0;
  // Whether moves between workgroups are worth proposing.
  virtual bool crosses() const { return false; }
  // Units of that grain in the longest program of the track, in the current position.
  virtual std::uint32_t places(std::uint32_t track, Grain grain) const = 0;

  // Makes the move if the mask allows it. Otherwise changes nothing and returns false.
  virtual bool make(const Move& move) = 0;
  // The same with only the cheap part of the mask. After a list of such moves the caller must check lawful().
  virtual bool make_unproved(const Move& move) = 0;
  // Whether the position computes the same as the first position, by the complete mask.
  virtual bool lawful() = 0;
  virtual void take_back() = 0;  // the last move that was made

  // Time of the position in ns, or in another unit of the board. Lower is better.
  virtual double time() = 0;

  // "all of gemm (264 programs): store C -> GPU 1 up past 1 operation". Call before the move is made.
  virtual std::string describe(const Move& move) const = 0;
};

}  // namespace tritax
