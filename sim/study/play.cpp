#include "sim/study/play.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <numeric>
#include <utility>

#include "model/core/error.hpp"
#include "model/core/read_file.hpp"
#include "model/core/same_time.hpp"
#include "model/schedule/check.hpp"
#include "model/schedule/json_reader.hpp"
#include "sim/functional.hpp"
#include "sim/simulate.hpp"

namespace tritax {

namespace {

constexpr std::size_t kLargestMoves = std::size_t{1} << 28;  // bytes
constexpr double kWrong = 1e-5;                              // relative; sums in another order stay far below

double mean_of(const std::vector<double>& values) {
  if (values.empty()) return 0;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

Machine with_equal_shares(Machine machine) {
  machine.fabric.arbitration_spread = 0;
  return machine;
}

void prove(const Schedule& schedule, const Machine& machine, std::uint64_t seed) {
  require_sound(check_schedule(schedule), schedule.name);
  require_sound(check_schedule_on(schedule, machine), schedule.name);
  const FunctionalResult result = execute_functionally(schedule, machine, seed);
  if (!result.stale_reads.empty()) {
    throw UserError(fmt::format("{}: a position of the game reads what nothing orders behind its write: {}",
                                schedule.name, result.stale_reads.front()));
  }
  if (!(result.max_relative_error < kWrong)) {
    throw UserError(fmt::format("{}: a position of the game is wrong by {:.2g} of the largest element",
                                schedule.name, result.max_relative_error));
  }
}

TimeOfSchedule clock_on(const Machine& machine, const PlayClock& clock) {
  return [&machine, clock](const Schedule& schedule) {
    if (clock.executes) prove(schedule, machine, clock.seed);
    SimulationOptions options;
    options.seed = clock.seed;
    return simulate(schedule, machine, options).makespan_ns;
  };
}

// Draws times with seeds apart from the game's seed.
std::vector<double> draws_of(const Schedule& schedule, const Machine& machine, const PlayClock& clock) {
  std::vector<double> times(static_cast<std::size_t>(std::max(0, clock.draws)));
  tbb::parallel_for(std::size_t{0}, times.size(), [&](std::size_t i) {
    SimulationOptions options;
    options.seed = clock.seed + 1'000'000 + i;
    times[i] = simulate(schedule, machine, options).makespan_ns;
  });
  return times;
}

// Makes the moves on a board at its start, and adds them and the resulting position to the result.
void enter_moves(TileBoard& board, const std::vector<Move>& moves, const Schedule& start,
                 const Machine& machine, const PlayClock& clock, PlayResult& result) {
  for (const Move& move : moves) {
    const std::string text = board.describe(move);
    if (!board.make_unproved(move)) {
      throw UserError(fmt::format("move {} ({}): is not allowed in its position", result.moves.size(), text));
    }
    // If two moves are lawful only together, the first leads to a position that must not run.
    std::optional<double> time;
    if (board.lawful()) time = board.time();
    result.moves.push_back({move, board.track_name(move.track), text, time});
  }
  if (!moves.empty() && !result.moves.back().time_ns)
    throw UserError("moves: they lead to a schedule that computes another result than the start");
  result.found = board.schedule();
  result.found_ns = moves.empty() ? result.start_ns : *result.moves.back().time_ns;
  result.order = describe_order(start, board.schedule(), board.start_of());
  result.start_draws_ns = draws_of(start, machine, clock);
  result.found_draws_ns = moves.empty() ? result.start_draws_ns : draws_of(result.found, machine, clock);
}

}  // namespace

double PlayResult::gain_with_random_shares() const {
  if (start_draws_ns.empty()) return 0;
  return 1 - mean_of(found_draws_ns) / mean_of(start_draws_ns);
}

double PlayResult::error_of_gain() const {
  const std::size_t n = start_draws_ns.size();
  if (n < 2) return 0;
  std::vector<double> differences(n);
  for (std::size_t i = 0; i < n; ++i) differences[i] = start_draws_ns[i] - found_draws_ns[i];
  const double mean = mean_of(differences);
  double squares = 0;
  for (const double d : differences) squares += (d - mean) * (d - mean);
  const auto count = static_cast<double>(n);
  return std::sqrt(squares / (count - 1) / count) / mean_of(start_draws_ns);
}

OpenGame::OpenGame(const Schedule& start, const Machine& machine, GameOptions game, const PlayClock& clock)
    : start_(start),
      machine_(machine),
      even_(with_equal_shares(machine)),
      clock_(clock),
      board_(start, even_, clock_on(even_, clock_)),
      game_(board_, std::move(game)),
      begin_(std::chrono::steady_clock::now()) {}

PlayResult OpenGame::finish() {
  PlayResult result;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  result.start_ns = game_.start_time();
  result.evaluated = game_.evaluated();
  result.masked = game_.masked();
  result.refused_by_law = board_.refused_by_law();
  std::vector<Move> moves = game_.best_moves();
  const double best = game_.best_time();
  game_.back_to_start();
  // Evaluations to find which moves are needed; no more than the game itself has used.
  const std::int64_t spare = std::clamp<std::int64_t>(result.evaluated / 4, 200, 4000);
  moves = needed_moves(board_, std::move(moves), result.start_ns, best, spare);
  enter_moves(board_, moves, start_, machine_, clock_, result);
  return result;
}

PlayResult play_on_tiles(const Schedule& start, const Machine& machine, const Player& player,
                         const GameOptions& game, const PlayClock& clock) {
  OpenGame open(start, machine, game, clock);
  player.play(open.game());
  return open.finish();
}

PlayResult replay_on_tiles(const Schedule& start, const Machine& machine, const std::vector<Move>& moves,
                           const PlayClock& clock) {
  const Machine even = with_equal_shares(machine);
  TileBoard board(start, even, clock_on(even, clock));
  PlayResult result;
  result.start_ns = board.time();
  enter_moves(board, moves, start, machine, clock, result);
  return result;
}

std::vector<Move> read_moves(const std::string& path, const Board& board) {
  static constexpr std::array<std::string_view, 7> kKeys{"track", "place", "grain",  "steps",
                                                         "kind",  "text",  "time_us"};
  const nlohmann::json tree = parse_json(read_file(path, "a list of moves", kLargestMoves), path);
  const JsonValue root(tree, path);
  const JsonValue list = tree.is_object() ? root.at("moves") : root;
  list.expect_array();
  std::vector<std::string> names;
  for (std::uint32_t t = 0; t < board.tracks(); ++t) names.push_back(board.track_name(t));
  std::vector<Move> moves;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const JsonValue item = list.item(i);
    item.expect_object(kKeys);
    const std::string& track = item.at("track").string();
    const auto found = std::find(names.begin(), names.end(), track);
    if (found == names.end()) item.at("track").refuse_name("track", names);
    Move move;
    move.track = static_cast<std::uint32_t>(found - names.begin());
    move.place = static_cast<std::uint32_t>(item.at("place").integer(0, kMaxInt32));
    move.grain = static_cast<Grain>(item.at("grain").one_of(kGrainNames));
    move.steps = static_cast<std::int32_t>(item.at("steps").integer(-kMaxInt16, kMaxInt16));
    if (item.has("kind")) move.kind = static_cast<MoveKind>(item.at("kind").one_of(kMoveKindNames));
    moves.push_back(move);
  }
  return moves;
}

std::string play_to_json(const PlayResult& result, const std::string& player) {
  nlohmann::ordered_json moves = nlohmann::ordered_json::array();
  for (const PlayedMove& played : result.moves) {
    moves.push_back({{"track", played.track},
                     {"place", played.move.place},
                     {"grain", kGrainNames[static_cast<std::size_t>(played.move.grain)]},
                     {"steps", played.move.steps}});
    if (played.move.kind != MoveKind::pass) {
      moves.back()["kind"] = kMoveKindNames[static_cast<std::size_t>(played.move.kind)];
    }
    moves.back()["text"] = played.text;
    moves.back()["time_us"] = nullptr;
    if (played.time_ns) moves.back()["time_us"] = *played.time_ns / 1e3;
  }
  nlohmann::ordered_json tree{{"schema", "tritax.play/1"},
                              {"player", player},
                              {"evaluated", result.evaluated},
                              {"masked", result.masked},
                              {"refused_by_law", result.refused_by_law},
                              {"seconds", result.seconds},
                              {"start_us", result.start_ns / 1e3},
                              {"found_us", result.found_ns / 1e3},
                              {"gain_percent", 100 * result.gain()}};
  if (!result.start_draws_ns.empty()) {
    tree["draws"] = result.start_draws_ns.size();
    tree["start_mean_us"] = mean_of(result.start_draws_ns) / 1e3;
    tree["found_mean_us"] = mean_of(result.found_draws_ns) / 1e3;
    tree["gain_of_means_percent"] = 100 * result.gain_with_random_shares();
    tree["standard_error_percent"] = 100 * result.error_of_gain();
  }
  tree["order"] = result.order;
  tree["moves"] = std::move(moves);
  return tree.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace tritax
