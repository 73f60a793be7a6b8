// tritax-mpi: `tritax sweep` on the ranks of MPI.
//
//   mpirun -n 64 tritax-mpi SWEEP.toml [-o FILE.db] …
//
// Rank 0 reads the file, hands out points as ranks ask for them, and alone writes the database. Every rank,
// rank 0 included, answers points on a separate thread. Answers and database equal those of one process. A
// rank that is silent for a while counts as lost, and its points go to others. MPI then guarantees nothing
// for the rest of the job, and most launchers end it (Open MPI continues with --enable-recovery): stored
// answers stay, and the same command continues from them.
//
// A rank computes on one core, but searches on --threads cores.
#include <fmt/format.h>
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <exception>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cli/interrupt.hpp"
#include "cli/options.hpp"
#include "cli/sweep_command.hpp"
#include "cli/sweep_point.hpp"
#include "cli/terminal.hpp"
#include "cli/version.hpp"
#include "model/core/command_line/parse_error.hpp"
#include "model/core/error.hpp"
#include "sim/study/sweep/run_sweep.hpp"

namespace tritax::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPointsTag = 1;   // to a rank: JSON array of points; empty: there are no more
constexpr int kAnswersTag = 2;  // from a rank: JSON array of [answer, error]; the rank wants more points
constexpr int kAliveTag = 3;    // from a rank, while it computes
constexpr auto kBetweenPolls = std::chrono::milliseconds(1);
constexpr auto kBetweenSigns = std::chrono::seconds(1);
constexpr double kSecondsOfAChunk = 0.2;
constexpr std::size_t kLargestChunk = 256;

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

// Answers chunks on a separate thread, so that the rank can communicate meanwhile: only the main thread calls
// MPI.
class Computer {
 public:
  explicit Computer(const std::atomic<bool>& stop) : answerer_(stop), thread_([this] { work(); }) {}
  Computer(const Computer&) = delete;
  Computer& operator=(const Computer&) = delete;
  ~Computer() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

  void begin(nlohmann::json points) {
    {
      const std::lock_guard lock(mutex_);
      points_ = std::move(points);
    }
    wake_.notify_one();
  }

  // The answers of the chunk; each is returned once.
  std::optional<nlohmann::json> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(answers_, std::nullopt);
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return ended_ || points_; });
      if (ended_) return;
      const nlohmann::json points = *std::exchange(points_, std::nullopt);
      lock.unlock();
      nlohmann::json answers = nlohmann::json::array();
      for (const nlohmann::json& point : points) {
        const SweepAnswer answer = answerer_.answer(point);
        answers.push_back({answer.answer, answer.error});
      }
      lock.lock();
      answers_ = std::move(answers);
    }
  }

  PointAnswerer answerer_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::optional<nlohmann::json> points_;
  std::optional<nlohmann::json> answers_;
  bool ended_ = false;
  std::thread thread_;
};

void send_text(const std::string& text, int rank, int tag) {
  MPI_Send(text.data(), static_cast<int>(text.size()), MPI_CHAR, rank, tag, MPI_COMM_WORLD);
}

// Sends without waiting, because a lost rank never receives.
class Outbox {
 public:
  void post(std::string text, int rank, int tag) {
    letters_.remove_if([](Letter& letter) {
      int arrived = 0;
      MPI_Test(&letter.request, &arrived, MPI_STATUS_IGNORE);
      return arrived != 0;
    });
    Letter& letter = letters_.emplace_back();
    letter.text = std::move(text);
    MPI_Isend(letter.text.data(), static_cast<int>(letter.text.size()), MPI_CHAR, rank, tag, MPI_COMM_WORLD,
              &letter.request);
  }

  // Waits until all messages have arrived.
  void settle() {
    for (Letter& letter : letters_) MPI_Wait(&letter.request, MPI_STATUS_IGNORE);
  }

 private:
  struct Letter {
    std::string text;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  std::list<Letter> letters_;
};

struct Message {
  int rank = 0;
  int tag = 0;
  std::string text;
};

std::optional<Message> poll_message(int rank) {
  int found = 0;
  MPI_Status status;
  MPI_Iprobe(rank, MPI_ANY_TAG, MPI_COMM_WORLD, &found, &status);
  if (found == 0) return std::nullopt;
  int size = 0;
  MPI_Get_count(&status, MPI_CHAR, &size);
  Message message{status.MPI_SOURCE, status.MPI_TAG, std::string(static_cast<std::size_t>(size), '\0')};
  MPI_Recv(message.text.data(), size, MPI_CHAR, message.rank, message.tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return message;
}

// The loop of every rank but 0.
void serve(const std::atomic<bool>& stop) {
  Computer computer(stop);
  send_text("[]", 0, kAnswersTag);
  Clock::time_point said = Clock::now();
  for (;;) {
    if (const std::optional<Message> message = poll_message(0)) {
      nlohmann::json points = nlohmann::json::parse(message->text);
      if (points.empty()) return;
      computer.begin(std::move(points));
    }
    if (const std::optional<nlohmann::json> answers = computer.take()) {
      send_text(answers->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), 0, kAnswersTag);
      said = Clock::now();
    } else if (Clock::now() - said >= kBetweenSigns) {
      send_text("", 0, kAliveTag);
      said = Clock::now();
    }
    std::this_thread::sleep_for(kBetweenPolls);
  }
}

// Hands out missing points, rank by rank, and stores the answers.
class Distributor {
 public:
  Distributor(const SweepPlan& plan, const SweepWork& work, SweepBatches& batches,
              const SweepRunOptions& options, int ranks, double lost_after_seconds)
      : plan_(plan), batches_(batches), options_(options), lost_after_(lost_after_seconds) {
    for (const AskedPoint& point : work.missing) open_.push_back(point);
    for (int rank = 0; rank < ranks; ++rank) ranks_[rank].heard = Clock::now();
  }

  // Runs until everything is answered, or no rank is left. Returns the number of lost ranks.
  int run() {
    Computer computer(*options_.stop);
    give(0, &computer);
    while (!done()) {
      if (const std::optional<Message> message = poll_message(MPI_ANY_SOURCE)) {
        hear(*message);
      } else {
        std::this_thread::sleep_for(kBetweenPolls);
      }
      if (const std::optional<nlohmann::json> answers = computer.take()) {
        keep(0, *answers);
        give(0, &computer);
      }
      give_up_silent_ranks();
      // Points of a lost rank may become free after rank 0 has run out of points.
      if (ranks_[0].waits) give(0, &computer);
    }
    for (auto& [rank, state] : ranks_) {
      if (rank != 0 && !state.lost) outbox_.post("[]", rank, kPointsTag);
    }
    if (lost_ == 0) outbox_.settle();
    return lost_;
  }

 private:
  struct Rank {
    std::vector<AskedPoint> has;  // points of the rank without an answer yet
    Clock::time_point given;
    Clock::time_point heard;
    double points_a_second = 0;  // 0: unknown
    bool waits = false;          // asked when no point was left
    bool lost = false;
  };

  bool done() const {
    if (!open_.empty() && !options_.stop->load()) return false;
    for (const auto& [rank, state] : ranks_) {
      if (!state.lost && !state.has.empty()) return false;
    }
    // Ranks that have not begun are told to end when they ask.
    for (const auto& [rank, state] : ranks_) {
      if (rank != 0 && !state.lost && !state.waits) return false;
    }
    return true;
  }

  void hear(const Message& message) {
    Rank& state = ranks_[message.rank];
    state.heard = Clock::now();
    if (message.tag != kAnswersTag || state.lost) return;  // its points have gone to other ranks
    keep(message.rank, nlohmann::json::parse(message.text));
    give(message.rank, nullptr);
  }

  void keep(int rank, const nlohmann::json& answers) {
    Rank& state = ranks_[rank];
    if (!answers.empty()) {
      const double seconds = std::max(seconds_between(state.given, Clock::now()), 1e-6);
      state.points_a_second = static_cast<double>(answers.size()) / seconds;
    }
    for (std::size_t i = 0; i < answers.size() && i < state.has.size(); ++i) {
      batches_.add(state.has[i], plan_.point(state.has[i].number),
                   {answers[i][0].get<std::string>(), answers[i][1].get<std::string>()});
    }
    state.has.clear();
  }

  // A chunk is some tenths of a second of work, and less towards the end, so that all ranks end together.
  void give(int rank, Computer* own) {
    Rank& state = ranks_[rank];
    state.waits = true;
    if (open_.empty() || options_.stop->load()) return;
    auto count = static_cast<std::size_t>(std::max(1.0, state.points_a_second * kSecondsOfAChunk));
    count = std::min({count, kLargestChunk, 1 + open_.size() / (2 * ranks_.size()), open_.size()});
    nlohmann::json points = nlohmann::json::array();
    for (std::size_t i = 0; i < count; ++i) {
      state.has.push_back(open_.front());
      points.push_back(plan_.point(open_.front().number));
      open_.pop_front();
    }
    state.given = Clock::now();
    state.waits = false;
    if (own != nullptr) {
      own->begin(std::move(points));
    } else {
      outbox_.post(points.dump(), rank, kPointsTag);
    }
  }

  void give_up_silent_ranks() {
    const Clock::time_point now = Clock::now();
    for (auto& [rank, state] : ranks_) {
      const bool silent = !state.lost && rank != 0 && seconds_between(state.heard, now) > lost_after_;
      if (!silent) continue;
      state.lost = true;
      ++lost_;
      tell(fmt::format(
          "tritax-mpi: rank {} has been silent for {:.0f} s and is given up; {} points go to others\n", rank,
          lost_after_, state.has.size()));
      open_.insert(open_.begin(), state.has.begin(), state.has.end());
      state.has.clear();
      for (auto& [other, waiting] : ranks_) {
        if (other != 0 && !waiting.lost && waiting.waits) give(other, nullptr);
      }
    }
  }

  const SweepPlan& plan_;
  SweepBatches& batches_;
  const SweepRunOptions& options_;
  const double lost_after_;
  Outbox outbox_;
  std::deque<AskedPoint> open_;
  std::map<int, Rank> ranks_;
  int lost_ = 0;
};

// The loop of rank 0. Returns the number of lost ranks.
int lead(const SweepArguments& arguments, int ranks, double lost_after_seconds,
         const InterruptibleWork& interrupt) {
  const SweepPlan plan = read_sweep(arguments.file);
  SweepKeys keys{std::string(version())};
  SweepRunOptions options = sweep_options(arguments, plan);
  options.stop = &interrupt.flag();
  SweepStore store(arguments.database, SweepAccess::write);
  const SweepWork work = work_of_sweep(plan, &store, keys, options);
  store.ask(plan.name, work.total, options.shard, options.shards, work.asked);
  const Clock::time_point begin = Clock::now();
  int lost = 0;
  SweepTally tally;
  {
    Progress progress(fmt::format("sweep '{}' on {} ranks", plan.name, ranks));
    options.progress = [&](std::size_t done, std::size_t all) { progress.update(done, all); };
    SweepBatches batches(store, options, keys.version(), work.missing.size());
    lost = Distributor(plan, work, batches, options, ranks, lost_after_seconds).run();
    tally = batches.finish();
  }
  store.close();
  report_sweep(arguments, plan, tally, seconds_between(begin, Clock::now()));
  return lost;
}

int run_rank(int argc, char** argv, int rank, int ranks) {
  CLI::App program{"tritax sweep on the ranks of MPI: mpirun -n N tritax-mpi SWEEP.toml", "tritax-mpi"};
  SweepArguments arguments;
  std::optional<std::int32_t> lost_after;
  add_sweep_options(program, arguments);
  add_integer(program, "--lost-after", lost_after,
              "Seconds without a sign after which a rank is given up (default: 30)", 3, 86'400);
  program.footer(
      "Options are those of 'tritax sweep'; a rank computes on one core, searches on --threads of them.");
  try {
    program.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    if (rank == 0) std::fputs(program.help().c_str(), stdout);
    return 0;
  } catch (const CLI::ParseError& error) {
    if (rank == 0) tell(parsing::describe_parse_error(program, error) + '\n');
    return 2;
  }
  const auto limit = limit_threads(arguments.threads.value_or(1));
  const InterruptibleWork interrupt;
  if (rank != 0) {
    serve(interrupt.flag());
    return 0;
  }
  complete_sweep_arguments(arguments);
  const int lost = lead(arguments, ranks, lost_after.value_or(30), interrupt);
  const int code = interrupt.interrupted() ? interrupted_exit_code() : 0;
  // A lost rank cannot reach MPI_Finalize.
  if (lost > 0) MPI_Abort(MPI_COMM_WORLD, code);
  return code;
}

}  // namespace
}  // namespace tritax::cli

int main(int argc, char** argv) {
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  int rank = 0;
  int ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  tritax::cli::install_interrupt_handler();
  int code = 1;
  try {
    code = tritax::cli::run_rank(argc, argv, rank, ranks);
  } catch (const tritax::UserError& error) {
    tritax::cli::tell(fmt::format("tritax-mpi: {}\n", error.what()));
    MPI_Abort(MPI_COMM_WORLD, 2);
  } catch (const std::exception& error) {
    tritax::cli::tell(fmt::format("tritax-mpi: internal error: {}. Please report this.\n", error.what()));
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return code;
}
