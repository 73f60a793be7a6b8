// Questions to `tritax advise`: a problem on a machine, with given knobs. There are several questions where
// options have several values or a file has several scenarios.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/run_input.hpp"
#include "sim/study/advise.hpp"

namespace tritax::cli {

struct Question {
  std::string id;  // of the scenario, without its pattern; "" when the command line asks
  Problem problem;
  Values pins;  // given knobs of its workload
  Machine machine;
  std::string machine_name;                             // or path, as the user gave it
  std::vector<ParameterChange> changes;                 // of the machine
  std::string place;                                    // prefix of messages
  std::vector<std::pair<std::string, std::string>> at;  // on the axes of the command line; see Asked::at
};

// One question for every problem, machine and set of knobs of the scenarios; scenarios that differ only in
// the pattern are one question. Throws UserError.
std::vector<Question> questions_of(const RunInputOptions& options);

// The answer, searched with a progress bar; `label`: text of the bar. Pins and progress in `options` are
// replaced by those of the question. Throws UserError.
Advice search(const Question& question, AdviseOptions options, const std::string& label);

// --selector: chooses the tried knobs by the name of a selector, or by a file of decision trees or grid
// models. `usual`: name of the selector that null stands for.
void add_selector_option(CLI::App& app, const Selector*& selector, const std::string& usual);

// "tile 256x128x64, host_barriers true"; empty if everything is free.
std::string pins_text(const Values& pins);

}  // namespace tritax::cli
