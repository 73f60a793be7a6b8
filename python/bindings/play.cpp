// The game of better orders: whole games by players in C++, and single moves for a player in Python.
#include <fmt/format.h>
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>

#include "model/core/error.hpp"
#include "python/bindings/calls.hpp"
#include "python/bindings/module.hpp"
#include "python/bindings/schedules.hpp"
#include "sim/study/play.hpp"

namespace tritax::python {

namespace py = pybind11;

namespace {

constexpr std::size_t kMoveColumns = 5;  // track, place, grain, steps, kind
constexpr std::size_t kViewColumns = 6;

using IntRows = py::array_t<std::int32_t, py::array::c_style | py::array::forcecast>;

struct Find {
  PlayResult result;
  std::string player;
};

void require_at_least(std::int64_t value, std::int64_t least, const char* name) {
  if (value < least) throw UserError(fmt::format("{}: {} is less than {}", name, value, least));
}

PlayClock clock_of(std::uint64_t seed, int draws, bool executes) {
  require_at_least(draws, 0, "draws");
  PlayClock clock;
  clock.seed = seed;
  clock.draws = draws;
  clock.executes = executes;
  return clock;
}

GameOptions options_of(std::int64_t moves, std::uint64_t seed) {
  require_at_least(moves, 1, "moves");
  GameOptions options;
  options.moves = moves;
  options.seed = seed;
  return options;
}

// A game, with the start and the machine that the game refers to.
struct PythonGame {
  std::unique_ptr<OpenGame> open;
  bool finished = false;

  OpenGame& use() const {
    if (finished) throw UserError("this game is finished; begin another one");
    return *open;
  }
};

PythonGame new_game(const BoundSchedule& schedule, const Machine& machine, std::int64_t moves,
                    std::uint64_t seed, int draws, bool executes) {
  PythonGame game;
  const PlayClock clock = clock_of(seed, draws, executes);
  const GameOptions options = options_of(moves, seed);
  const py::gil_scoped_release unlocked;
  game.open = std::make_unique<OpenGame>(*schedule, machine, options, clock);
  return game;
}

Move move_of(std::span<const std::int32_t> row, std::uint32_t tracks) {
  const auto within = [](std::int32_t value, std::size_t end, const char* name) {
    if (value >= 0 && static_cast<std::size_t>(value) < end) return static_cast<std::uint32_t>(value);
    throw UserError(fmt::format("{}: {} is not one of 0 to {}", name, value, end - 1));
  };
  Move move;
  move.track = within(row[0], tracks, "track");
  move.place = within(row[1], std::size_t{1} << 30, "place");
  move.grain = static_cast<Grain>(within(row[2], kGrainNames.size(), "grain"));
  constexpr std::int32_t kMostSteps = 32767;  // limit of files of moves
  if (row[3] < -kMostSteps || row[3] > kMostSteps) {
    throw UserError(fmt::format("steps: {} is not one of -{} to {}", row[3], kMostSteps, kMostSteps));
  }
  move.steps = row[3];
  move.kind = static_cast<MoveKind>(within(row[4], kMoveKindNames.size(), "kind"));
  return move;
}

std::vector<Move> moves_of(const PythonGame& game, const IntRows& rows) {
  if (rows.ndim() != 2 || rows.shape(1) != static_cast<py::ssize_t>(kMoveColumns)) {
    throw UserError("moves: need rows of track, place, grain, steps, kind");
  }
  OpenGame& open = game.use();
  std::vector<Move> moves;
  for (py::ssize_t i = 0; i < rows.shape(0); ++i) {
    moves.push_back(move_of(std::span(rows.data(i, 0), kMoveColumns), open.board().tracks()));
  }
  return moves;
}

// All moves by one neighbour in the wide tracks, and moves to the next workgroup, for the current position.
IntRows candidates_of(const PythonGame& game, std::int64_t most_places) {
  require_at_least(most_places, 1, "most_places");
  TileBoard& board = game.use().board();
  std::vector<std::int32_t> rows;
  const auto add = [&](std::uint32_t track, std::uint32_t place, std::size_t grain, std::int32_t steps,
                       MoveKind kind) {
    for (const std::int32_t value :
         {static_cast<std::int32_t>(track), static_cast<std::int32_t>(place),
          static_cast<std::int32_t>(grain), steps, static_cast<std::int32_t>(kind)}) {
      rows.push_back(value);
    }
  };
  for (std::uint32_t track = 0; track < board.wide_tracks(); ++track) {
    for (std::size_t grain = 0; grain < kGrainNames.size(); ++grain) {
      const std::uint32_t places = board.places(track, static_cast<Grain>(grain));
      for (std::uint32_t place = 0; place < places && place < most_places; ++place) {
        if (place > 0) add(track, place, grain, -1, MoveKind::pass);
        if (place + 1 < places) add(track, place, grain, 1, MoveKind::pass);
        if (!board.crosses() || static_cast<Grain>(grain) == Grain::operation) continue;
        add(track, place, grain, 1, MoveKind::swap);
        add(track, place, grain, 1, MoveKind::give);
      }
    }
  }
  const auto count = static_cast<py::ssize_t>(rows.size() / kMoveColumns);
  IntRows table({count, static_cast<py::ssize_t>(kMoveColumns)});
  std::copy(rows.begin(), rows.end(), table.mutable_data());
  return table;
}

IntRows look_at(const PythonGame& game, const IntRows& rows) {
  const std::vector<Move> moves = moves_of(game, rows);
  TileBoard& board = game.use().board();
  IntRows table({static_cast<py::ssize_t>(moves.size()), static_cast<py::ssize_t>(kViewColumns)});
  std::int32_t* next = table.mutable_data();
  for (const Move& move : moves) {
    const TileBoard::View view = board.look(move);
    for (const std::int32_t value : {view.allowed ? 1 : 0, view.unit_kind, view.unit_peer, view.other_kind,
                                     view.other_peer, view.operations}) {
      *next++ = value;
    }
  }
  return table;
}

std::optional<double> try_move(const PythonGame& game, const IntRows& row) {
  OpenGame& open = game.use();
  if (row.ndim() != 1 || row.shape(0) != static_cast<py::ssize_t>(kMoveColumns)) {
    throw UserError("move: needs track, place, grain, steps, kind");
  }
  const Move move = move_of(std::span(row.data(0), kMoveColumns), open.board().tracks());
  const py::gil_scoped_release unlocked;
  return open.game().try_move(move);
}

Find finish(PythonGame& game, const std::string& player) {
  OpenGame& open = game.use();
  game.finished = true;
  const py::gil_scoped_release unlocked;
  return {open.finish(), player};
}

Find play_python(const BoundSchedule& schedule, const Machine& machine, const std::string& player,
                 std::int64_t moves, std::uint64_t seed, int draws, bool executes,
                 const py::object& progress) {
  Find find;
  find.player = player;
  const Player& played = find_player(player, "player");
  GameOptions options = options_of(moves, seed);
  const PlayClock clock = clock_of(seed, draws, executes);
  run_call(progress, [&](Call& call) {
    options.stop = &call.stop();
    options.progress = [&](std::int64_t evaluated) {
      call.report(static_cast<std::uint64_t>(evaluated), static_cast<std::uint64_t>(moves));
    };
    find.result = play_on_tiles(*schedule, machine, played, options, clock);
  });
  return find;
}

py::list moves_of(const PlayResult& result) {
  py::list rows;
  for (const PlayedMove& played : result.moves) {
    py::dict row;
    row["track"] = played.track;
    row["place"] = played.move.place;
    row["grain"] = std::string(kGrainNames[static_cast<std::size_t>(played.move.grain)]);
    row["steps"] = played.move.steps;
    row["kind"] = std::string(kMoveKindNames[static_cast<std::size_t>(played.move.kind)]);
    row["text"] = played.text;
    row["time_ns"] = played.time_ns ? py::object(py::float_(*played.time_ns)) : py::object(py::none());
    rows.append(std::move(row));
  }
  return rows;
}

void save_moves(const Find& find, const py::object& path) {
  const auto name = py::str(path).cast<std::string>();
  std::ofstream file(name);
  file << play_to_json(find.result, find.player) << '\n';
  file.close();
  if (!file) throw UserError(name + ": cannot be written");
}

void add_game(py::module_& module) {
  using G = PythonGame;
  py::class_<G>(module, "Game",
                "The game of better orders, move by move, for a player in Python (docs/play.md). A move is a "
                "row of five: track, place, grain, steps, kind")
      .def(py::init(&new_game), py::arg("schedule"), py::arg("machine"), py::kw_only(), py::arg("moves"),
           py::arg("seed") = 1, py::arg("draws") = 16, py::arg("executes") = false)
      .def_property_readonly("start_ns", [](const G& game) { return game.use().game().start_time(); })
      .def_property_readonly("time_ns", [](const G& game) { return game.use().game().time(); })
      .def_property_readonly("best_ns", [](const G& game) { return game.use().game().best_time(); })
      .def_property_readonly("evaluated", [](const G& game) { return game.use().game().evaluated(); })
      .def_property_readonly("over", [](const G& game) { return game.use().game().over(); })
      .def_property_readonly(
          "made", [](const G& game) { return game.use().game().moves().size(); },
          "Moves that lead from the start to the position")
      .def_property_readonly("wide_tracks", [](const G& game) { return game.use().board().wide_tracks(); })
      .def(
          "track_name",
          [](const G& game, std::uint32_t track) {
            TileBoard& board = game.use().board();
            if (track >= board.tracks()) throw UserError(fmt::format("track: there is no {}", track));
            return board.track_name(track);
          },
          py::arg("track"))
      .def("candidates", &candidates_of, py::arg("most_places") = 64,
           "Moves by one neighbour in the wide tracks, and to the next workgroup, a row each")
      .def("look", &look_at, py::arg("moves"),
           "By move: allowed by what the two units decide themselves, kind and peer of its unit's main "
           "operation and of its neighbour's, operations of the unit; -1: there is none")
      .def("try_move", &try_move, py::arg("move"),
           "Makes it, and returns what the position takes in ns; None, and nothing changed, if it is masked")
      .def("take_back",
           [](const G& game) {
             if (game.use().game().moves().empty()) throw UserError("there is no move to take back");
             game.use().game().take_back();
           })
      .def("back_to_start", [](const G& game) { game.use().game().back_to_start(); })
      .def("finish", &finish, py::arg("player"), "What came of it, under that player's name; the game ends");
}

}  // namespace

void add_play(py::module_& module) {
  py::class_<Find>(module, "Find", "What a player has found; moves is empty if it takes no less time")
      .def_property_readonly("player", [](const Find& find) { return find.player; })
      .def_property_readonly("start_ns", [](const Find& find) { return find.result.start_ns; })
      .def_property_readonly("found_ns", [](const Find& find) { return find.result.found_ns; })
      .def_property_readonly(
          "gain", [](const Find& find) { return find.result.gain(); },
          "Share of the start's time that is saved, with equal shares of full links")
      .def_property_readonly(
          "gain_with_random_shares", [](const Find& find) { return find.result.gain_with_random_shares(); },
          "Of the means over seeds that the game did not use; 0 without draws")
      .def_property_readonly(
          "gain_with_luck", [](const Find& find) { return find.result.gain_with_random_shares(); },
          "Former name of gain_with_random_shares")
      .def_property_readonly("error_of_gain", [](const Find& find) { return find.result.error_of_gain(); })
      .def_property_readonly("moves", [](const Find& find) { return moves_of(find.result); })
      .def_property_readonly(
          "order", [](const Find& find) { return find.result.order; }, "Moved operations, in words")
      .def_property_readonly("evaluated", [](const Find& find) { return find.result.evaluated; })
      .def_property_readonly("masked", [](const Find& find) { return find.result.masked; })
      .def_property_readonly("seconds", [](const Find& find) { return find.result.seconds; })
      .def_property_readonly("schedule", [](const Find& find) { return BoundSchedule(find.result.found); })
      .def("save_moves", &save_moves, py::arg("path"), "For tritax play --replay")
      .def("__repr__", [](const Find& find) {
        return fmt::format("<Find by {}: {:.2f} us in place of {:.2f} us>", find.player,
                           find.result.found_ns / 1000, find.result.start_ns / 1000);
      });
  add_game(module);
  std::vector<std::string> names;
  for (const Player& player : players()) names.emplace_back(player.name);
  module.attr("players") = py::cast(names);
  module.attr("moves_of_episode") = kMovesOfEpisode;
  module.def("play_by_rules", &play_python, py::arg("schedule"), py::arg("machine"), py::kw_only(),
             py::arg("player"), py::arg("moves"), py::arg("seed"), py::arg("draws"), py::arg("executes"),
             py::arg("progress"), "A whole game by one of the players of C++");
}

}  // namespace tritax::python
