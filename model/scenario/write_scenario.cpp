#include "model/scenario/write_scenario.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <sstream>
#include <vector>

#include "model/core/toml.hpp"

namespace tritax {

namespace {

std::string toml_string(std::string_view text) {
  std::ostringstream out;
  out << toml::value<std::string>(std::string(text));
  return out.str();
}

// "[256, 256, 64]", "\"fp16\"", "true", "48"
std::string value_text(const Values& values, std::size_t spec) {
  const Spec& one = values.specs()[spec];
  if (one.kind == ValueKind::name) return toml_string(text_of(values, spec));
  if (one.kind == ValueKind::file) {  // an absolute path: the scenario file may move
    return toml_string(std::filesystem::absolute(text_of(values, spec)).lexically_normal().string());
  }
  if (one.columns() == 1) return text_of(values, spec);
  std::string numbers;
  for (std::size_t part = 0; part < one.columns(); ++part) {
    numbers += fmt::format("{}{}", part > 0 ? ", " : "", values.at(values.first_column(spec) + part));
  }
  return fmt::format("[{}]", numbers);
}

}  // namespace

std::string write_scenario(const Scenario& scenario) {
  std::string text = fmt::format("[[scenario]]\nid = {}\n", toml_string(scenario.id));
  if (!scenario.title.empty()) text += fmt::format("title = {}\n", toml_string(scenario.title));
  text += fmt::format("machine = {}\nworkload = {}\n", toml_string(scenario.machine),
                      toml_string(scenario.problem.workload->name));
  const Values& fields = scenario.problem.values;
  for (std::size_t i = 0; i < fields.specs().size(); ++i) {
    const Spec& field = fields.specs()[i];
    const bool number = field.kind != ValueKind::name && field.kind != ValueKind::boolean;
    const bool left_out = number && !field.required && fields.at(fields.first_column(i)) < field.low;
    if (!left_out) text += fmt::format("{} = {}\n", field.name, value_text(fields, i));
  }
  if (!scenario.pattern.empty()) text += fmt::format("pattern = {}\n", toml_string(scenario.pattern));
  std::string knobs;
  for (std::size_t i = 0; i < scenario.knobs.specs().size(); ++i) {
    if (!scenario.knobs.given_at(scenario.knobs.first_column(i))) continue;
    knobs += fmt::format("{}{} = {}", knobs.empty() ? "" : ", ", scenario.knobs.specs()[i].name,
                         value_text(scenario.knobs, i));
  }
  if (!knobs.empty()) text += fmt::format("knobs = {{ {} }}\n", knobs);
  return text;
}

}  // namespace tritax
