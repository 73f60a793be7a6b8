// What `tritax advise` is asked: a problem on a machine, with the knobs that are given; several where options
// have several values or a file has several scenarios.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/subject.hpp"
#include "sim/study/advise.hpp"

namespace tritax::cli {

struct Question {
  std::string id;  // of the scenario, without its pattern; "" when the command line asks
  Problem problem;
  Values pins;  // knobs of its workload
  Machine machine;
  std::string machine_name;                             // or the path, as it was asked for
  std::vector<ParameterChange> changes;                 // of it
  std::string place;                                    // in front of messages
  std::vector<std::pair<std::string, std::string>> at;  // on the axes of the command line; see Asked::at
};

// One for every problem, machine and set of knobs that scenarios hold; scenarios that differ in the pattern
// alone are one question. Throws UserError.
std::vector<Question> questions_of(const SubjectOptions& options);

// The answer, searched with a progress bar; `label` says what is done. Pins and progress of `options` are
// those of the question. Throws UserError.
Advice search(const Question& question, AdviseOptions options, const std::string& label);

// --selector: which knobs are tried, by the name of a selector or a file of decision trees or grid models.
// `usual` says which one stands for null.
void add_selector_option(CLI::App& app, const Selector*& selector, const std::string& usual);

// "tile 256x128x64, host_barriers true"; empty if everything is free.
std::string pins_text(const Values& pins);

}  // namespace tritax::cli
