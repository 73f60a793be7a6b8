#include "python/bindings/values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <span>

#include "model/core/error.hpp"
#include "model/workload/parse_value.hpp"

namespace tritax::python {

namespace py = pybind11;

namespace {

// Text in the spelling of the command line; True and False as in `switches`, False first.
std::string text_of_python(const py::handle& value, std::span<const std::string_view> switches) {
  if (py::isinstance<py::bool_>(value)) return std::string(switches[value.cast<bool>() ? 1 : 0]);
  if (!py::isinstance<py::tuple>(value) && !py::isinstance<py::list>(value)) return py::str(value);
  std::vector<std::string> parts;
  for (const py::handle part : value) parts.emplace_back(py::str(part));
  return fmt::format("{}", fmt::join(parts, "x"));
}

[[noreturn]] void refuse_key(const std::string& key, const Values& values, const std::string& owner) {
  std::vector<std::string> names;
  for (const Spec& spec : values.specs()) names.emplace_back(spec.name);
  const std::string nearest = nearest_name(key, names);
  throw UserError(fmt::format("{}: it has no '{}'{}; it has {}", owner, key,
                              nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest),
                              names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
}

void add_changes(std::vector<ParameterChange>& changes, ChangeKind kind, const py::object& given) {
  if (given.is_none()) return;
  constexpr std::array<std::string_view, 2> kTruth{"false", "true"};  // as in machine files
  for (const auto& [key, value] : given.cast<py::dict>()) {
    const std::string text = fmt::format("{}={}", std::string(py::str(key)), text_of_python(value, kTruth));
    changes.push_back(parse_change(kind, text, GivenAs::argument));
  }
}

}  // namespace

void give_all(Values& values, const py::dict& given, const std::string& owner) {
  for (const auto& [key, value] : given) {
    const std::string name = py::str(key);
    const Spec* spec = find_spec(values.specs(), name);
    if (spec == nullptr) refuse_key(name, values, owner);
    if (value.is_none()) continue;
    const std::string place = fmt::format("{}: {}", owner, name);
    const std::vector<std::int64_t> numbers =
        parse_value(text_of_python(value, switch_names()), place, *spec);
    for (std::size_t part = 0; part < numbers.size(); ++part) values.give(spec->column(part), numbers[part]);
  }
}

py::object to_python(const Values& values, std::size_t spec) {
  const Spec& row = values.specs()[spec];
  const std::size_t first = values.first_column(spec);
  py::tuple shape(row.columns());
  for (std::size_t part = 0; part < row.columns(); ++part) {
    const std::int64_t value = values.at(first + part);
    const bool named = row.kind == ValueKind::name || row.kind == ValueKind::boolean;
    if (named ? value < 0 : value < row.low || value > row.high) return py::none();
    shape[part] = py::int_(value);
  }
  if (row.columns() > 1) return shape;
  const std::int64_t value = values.at(first);
  if (row.kind == ValueKind::boolean) return py::bool_(value != 0);
  if (row.kind == ValueKind::file) return py::str(text_of(values, spec));
  if (row.kind == ValueKind::name) return py::str(std::string(row.names[static_cast<std::size_t>(value)]));
  return py::int_(value);
}

py::dict to_dict(const Values& values) {
  py::dict all;
  for (std::size_t i = 0; i < values.specs().size(); ++i) {
    all[py::str(std::string(values.specs()[i].name))] = to_python(values, i);
  }
  return all;
}

std::vector<ParameterChange> changes_of(const py::object& set, const py::object& scale) {
  std::vector<ParameterChange> changes;
  add_changes(changes, ChangeKind::set, set);
  add_changes(changes, ChangeKind::scale, scale);
  return changes;
}

std::vector<std::string> paths_of(const py::object& paths) {
  std::vector<std::string> list;
  if (paths.is_none()) return list;
  const py::object path = py::module_::import("os").attr("fspath");
  if (!py::isinstance<py::list>(paths) && !py::isinstance<py::tuple>(paths)) return {py::str(path(paths))};
  for (const py::handle one : paths) list.emplace_back(py::str(path(one)));
  return list;
}

}  // namespace tritax::python
