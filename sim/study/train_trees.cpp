#include "sim/study/train_trees.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "model/core/error.hpp"
#include "model/core/read_file.hpp"

extern char** environ;

namespace tritax {

namespace embedded {
// Defined in the generated file: ("train_tree", text of the script).
std::span<const std::pair<std::string_view, std::string_view>> train_tree();
}  // namespace embedded

namespace {

// The Python on the path may be the user's own, without the distribution's packages.
constexpr std::array<const char*, 2> kPythons{"python3", "/usr/bin/python3"};
constexpr int kNoLibrary = 3;
constexpr int kNoProgram = 127;
constexpr std::size_t kLargestAnswer = std::size_t{1} << 30;
constexpr std::size_t kLargestComplaint = std::size_t{1} << 20;

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "tritax-tree-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw UserError(fmt::format("{}: cannot be made: {}", name, std::strerror(errno)));
    }
    root_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path(const char* name) const { return (root_ / name).string(); }
  void write(const char* name, std::string_view text) const {
    std::ofstream file(root_ / name, std::ios::binary);
    file << text;
    file.close();
    if (!file) throw UserError(fmt::format("{}: cannot be written; is the disk full?", path(name)));
  }

 private:
  std::filesystem::path root_;
};

// Runs a program with its errors in a file; returns its exit code.
int run_program(const char* program, std::vector<std::string> arguments, const std::string& errors) {
  std::vector<char*> words;
  for (std::string& argument : arguments) words.push_back(argument.data());
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                   0600);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, program, &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return kNoProgram;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string question_text(const TimedProblems& problems, std::span<const std::size_t> folds,
                          std::size_t fold_count, const TreeLimits& limits) {
  nlohmann::json question;
  question["head"] = {{"schema", "tritax.tree/1"},   {"workload", problems.workload},
                      {"machine", problems.machine}, {"options", problems.options},
                      {"known", problems.known},     {"gathered", problems.gathered}};
  question["limits"] = {
      {"depth", limits.depth}, {"leaves", nullptr}, {"leaf_examples", limits.leaf_examples}};
  if (limits.leaves) question["limits"]["leaves"] = *limits.leaves;
  question["fold_count"] = fold_count;
  question["folds"] = std::vector<std::size_t>(folds.begin(), folds.end());
  const auto known = static_cast<std::ptrdiff_t>(problems.known.size());
  for (const TimedProblem& problem : problems.rows) {
    const auto middle = problem.features.begin() + known;
    question["known"].push_back(std::vector<double>(problem.features.begin(), middle));
    question["gathered"].push_back(std::vector<double>(middle, problem.features.end()));
    nlohmann::json times = nlohmann::json::array();
    for (const double time : problem.time_ns)
      times.push_back(std::isfinite(time) ? nlohmann::json(time) : nullptr);
    question["times"].push_back(std::move(times));
    question["gather_time"].push_back(problem.gather_ns);
    question["groups"].push_back(problem.group);
  }
  return question.dump();
}

void run_script(const TemporaryFolder& folder) {
  const std::string script = folder.path("train_tree.py");
  const std::string errors = folder.path("errors.txt");
  for (const char* python : kPythons) {
    const int code = run_program(
        python, {python, script, folder.path("question.json"), folder.path("answer.json")}, errors);
    if (code == 0) return;
    if (code == kNoLibrary || code == kNoProgram) continue;
    throw UserError(fmt::format("training by {} failed (exit code {}): {}", python, code,
                                read_file(errors, "what it said", kLargestComplaint)));
  }
  throw UserError(
      "--selector tree: trees are trained by Python's scikit-learn, which neither python3 nor "
      "/usr/bin/python3 has; "
      "install it (Debian, Ubuntu: python3-sklearn, or scripts/install-deps python)");
}

}  // namespace

TrainedTrees train_trees(const TimedProblems& problems, std::span<const std::size_t> folds,
                         std::size_t fold_count, const TreeLimits& limits) {
  TRITAX_ASSERT(folds.size() == problems.rows.size(), "a fold is missing");
  const TemporaryFolder folder;
  folder.write("train_tree.py", embedded::train_tree().front().second);
  folder.write("question.json", question_text(problems, folds, fold_count, limits));
  run_script(folder);
  const std::string path = folder.path("answer.json");
  const auto answer = nlohmann::json::parse(read_file(path, "trees", kLargestAnswer));
  TRITAX_ASSERT(answer.size() == fold_count + 1, "not as many selectors as were asked for");
  TrainedTrees trained;
  for (std::size_t fold = 0; fold <= fold_count; ++fold) {
    TreeSelector selector = TreeSelector::from_json(answer[fold].dump(), path);
    if (fold == fold_count) {
      trained.all = std::move(selector);
    } else {
      trained.by_fold.push_back(std::move(selector));
    }
  }
  return trained;
}

}  // namespace tritax
