#include "cli/questions.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "cli/terminal.hpp"
#include "model/core/error.hpp"
#include "model/core/read_file.hpp"
#include "model/core/with_place.hpp"
#include "model/schedule/json_reader.hpp"
#include "model/select/select_by_grid_model.hpp"
#include "model/select/select_by_tree.hpp"

namespace tritax::cli {

namespace {

constexpr std::size_t kLargestSelectorFile = std::size_t{64} << 20;

// Decision trees or grid models of a file, with their selector.
struct SelectorOfFile {
  explicit SelectorOfFile(const std::string& path) {
    const std::string text =
        read_file(path, "the path of decision trees or grid models (JSON)", kLargestSelectorFile);
    const nlohmann::json tree = parse_json(text, path);
    if (tree.is_object() && tree.contains("schema") && tree["schema"] == kGridModelSchema) {
      grids = GridModels::from_json(text, path);
      selector = grid_model_selector(grids, path);
    } else {
      trees = TreeSelector::from_json(text, path);
      selector = tree_selector(trees, path);
    }
  }
  SelectorOfFile(const SelectorOfFile&) = delete;
  SelectorOfFile& operator=(const SelectorOfFile&) = delete;

  TreeSelector trees;
  GridModels grids;
  Selector selector;
};

Question question_of_options(const RunInputOptions& options) {
  require_no_id(options.id);
  require_problem(options.problem, options.machine, options.message_bytes);
  Source source;
  source.machine = options.machine;
  source.changes = options.changes;
  source.sustained = options.sustained;
  Question question;
  question.machine = machine_of(source);
  question.problem = problem_on(options.problem, question.machine, options.message_bytes);
  question.pins = options.pins;
  question.machine_name = options.machine;
  return question;
}

// Keeps the knobs of the source unless the command line has others; its pattern is ignored.
Question question_of(const Source& source, const RunInputOptions& options) {
  if (!source.scenario) {
    throw UserError(fmt::format("'{}' is a schedule; there is nothing to choose", options.file));
  }
  const Scenario& scenario = *source.scenario;
  Question question;
  question.id = scenario.id;
  const std::string ending = '/' + scenario.pattern;
  if (question.id.ends_with(ending)) question.id.resize(question.id.size() - ending.size());
  question.problem = scenario.problem;
  question.pins = scenario.knobs.with(
      pins_of(*scenario.problem.workload, options.pins, fmt::format("scenario '{}'", scenario.id)));
  question.machine_name = source.machine;
  question.machine = machine_of(source);
  question.place = place_of(scenario);
  return question;
}

void add_questions(const RunInputOptions& point, std::vector<Question>& questions) {
  const std::size_t first = questions.size();
  const auto add = [&](Question question) {
    question.at = point.at;
    question.changes = point.changes;
    const bool known = std::any_of(
        questions.begin() + static_cast<std::ptrdiff_t>(first), questions.end(), [&](const Question& other) {
          return other.machine.name == question.machine.name && other.problem == question.problem &&
                 pins_text(other.pins) == pins_text(question.pins);
        });
    if (!known) questions.push_back(std::move(question));
  };
  if (point.file.empty()) {
    add(question_of_options(point));
    return;
  }
  RunInputOptions of_file = point;
  of_file.pins = Values();  // of any workload, because a file may have several
  for (const Source& source : sources_of(of_file)) add(question_of(source, point));
}

}  // namespace

Advice search(const Question& question, AdviseOptions options, const std::string& label) {
  Progress progress(label);
  options.pins = question.pins;
  options.progress = [&progress](const AdviseProgress& state) {
    // The number of refinement candidates is unknown until refinement has listed them.
    progress.update(static_cast<std::size_t>(state.evaluated + state.pruned), 0);
  };
  return with_place(question.place, [&] { return advise(question.problem, question.machine, options); });
}

void add_selector_option(CLI::App& app, const Selector*& selector, const std::string& usual) {
  std::vector<std::string> texts;
  for (const Selector& one : selectors()) texts.push_back(fmt::format("{}: {}", one.name, one.summary));
  texts.emplace_back("or a file of decision trees ('tritax tune') or grid models ('tritax calibrate')");
  const auto file = std::make_shared<std::unique_ptr<SelectorOfFile>>();  // lives as long as the option
  app.add_option_function<std::string>(
         "--selector",
         [&selector, file](const std::string& name) {
           if (name.ends_with(".json")) {
             *file = std::make_unique<SelectorOfFile>(name);
             selector = &(*file)->selector;
           } else {
             selector = &find_selector(name, "--selector");
           }
         },
         fmt::format("Rule that chooses the knobs to try (default: {}). {}", usual, fmt::join(texts, "; ")))
      ->type_name("NAME|FILE.json");
}

std::string pins_text(const Values& pins) {
  std::string text;
  for (std::size_t i = 0; i < pins.specs().size(); ++i) {
    if (!pins.given_at(pins.first_column(i))) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", pins.specs()[i].name, text_of(pins, i));
  }
  return text;
}

std::vector<Question> questions_of(const RunInputOptions& options) {
  std::vector<Question> questions;
  for (const RunInputOptions& point : points_of(options)) {
    const std::string place = options.axes.empty() ? "" : describe_point(point) + ": ";
    with_place(place, [&] { add_questions(point, questions); });
  }
  return questions;
}

}  // namespace tritax::cli
