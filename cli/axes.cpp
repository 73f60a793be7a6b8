#include "cli/axes.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "model/core/error.hpp"

namespace tritax::cli {

namespace {

// A given change replaces the change with the same key that stands for its axis.
void give_change(Asked& asked, const ParameterChange& change) {
  const auto found = std::find_if(asked.changes.begin(), asked.changes.end(),
                                  [&](const ParameterChange& other) { return other.key == change.key; });
  if (found == asked.changes.end()) {
    asked.changes.push_back(change);
  } else {
    *found = change;
  }
}

void add_change(Asked& asked, ChangeKind kind, const std::string& text, bool several) {
  const std::size_t equals = text.find('=');
  if (!several || equals == std::string::npos || text.find(',', equals) == std::string::npos) {
    asked.changes.push_back(parse_change(kind, text));
    return;
  }
  const std::string key = text.substr(0, equals);
  const std::string flag = fmt::format("{} {}", kind == ChangeKind::set ? "--set" : "--scale", key);
  Axis axis{AxisKind::change, key};
  for (const std::string& part : parts_of(text.substr(equals + 1), flag)) {
    const ParameterChange change = parse_change(kind, fmt::format("{}={}", key, part));
    if (axis.values.empty()) asked.changes.push_back(change);
    const std::string shown = kind == ChangeKind::set ? part : "x " + part;
    axis.values.push_back({shown, [change](Asked& point) { give_change(point, change); }});
  }
  add_axis(asked, std::move(axis));
}

// File names may contain commas.
bool names_several(const std::string& machine) {
  std::error_code ignored;
  return machine.find(',') != std::string::npos && !std::filesystem::exists(machine, ignored);
}

}  // namespace

void add_axis(Asked& asked, Axis axis) {
  const auto place = std::upper_bound(asked.axes.begin(), asked.axes.end(), axis,
                                      [](const Axis& a, const Axis& b) { return a.kind < b.kind; });
  asked.axes.insert(place, std::move(axis));
}

std::vector<std::string> parts_of(const std::string& text, const std::string& flag) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::string part = text.substr(begin, end - begin);
    if (part.empty()) throw UserError(fmt::format("{}: '{}' has an empty value", flag, text));
    if (std::find(parts.begin(), parts.end(), part) != parts.end()) {
      throw UserError(fmt::format("{}: '{}' has {} twice", flag, text, part));
    }
    parts.push_back(std::move(part));
    begin = end + 1;
  }
  return parts;
}

std::size_t count_points(const Asked& asked) {
  std::size_t count = 1;
  for (const Axis& axis : asked.axes) {
    count *= axis.values.size();
    if (count > kMostPoints) {
      throw UserError(fmt::format("{}: it makes more than {} combinations of values; give fewer", axis.name,
                                  kMostPoints));
    }
  }
  return count;
}

void require_no_axes(const Asked& asked, const std::string& command) {
  if (asked.axes.empty()) return;
  throw UserError(
      fmt::format("{}: several values are given, but '{}' takes one; 'advise' and 'simulate' make a table of "
                  "several",
                  asked.axes.front().name, command));
}

void add_machine_options(CLI::App& app, Asked& asked, bool several) {
  app.add_option_function<std::string>(
         "--machine",
         [&asked, several](const std::string& text) {
           asked.machine = text;
           if (!several || !names_several(text)) return;
           Axis axis{AxisKind::machine, "machine"};
           for (const std::string& part : parts_of(text, "--machine")) {
             axis.values.push_back({part, [part](Asked& point) { point.machine = part; }});
           }
           asked.machine = axis.values.front().text;
           add_axis(asked, std::move(axis));
         },
         "Shipped machine (see tritax machines) or machine file (TOML)")
      ->type_name("NAME|FILE");
  add_change_options(app, asked, several);
}

void add_change_options(CLI::App& app, Asked& asked, bool several) {
  const auto add = [&](ChangeKind kind, const std::string& flag, const std::string& help,
                       const std::string& form) {
    app.add_option_function<std::vector<std::string>>(
           flag,
           [&asked, kind, several](const std::vector<std::string>& texts) {
             for (const std::string& text : texts) add_change(asked, kind, text, several);
           },
           help)
        ->type_name(form)
        ->expected(1)
        ->take_all();
  };
  add(ChangeKind::set, "--set", "Set a machine parameter: fabric.link=32GB/s; may be repeated", "KEY=VALUE");
  add(ChangeKind::scale, "--scale",
      "Multiply a machine parameter by a factor: gpu.hbm_bandwidth=0.5; may be repeated", "KEY=FACTOR");
}

void add_pattern_option(CLI::App& app, Asked& asked) {
  app.add_option_function<std::string>(
         "--pattern",
         [&asked](const std::string& text) {
           asked.pattern = text;
           if (text.find(',') == std::string::npos) return;
           Axis axis{AxisKind::pattern, "pattern"};
           for (const std::string& part : parts_of(text, "--pattern")) {
             axis.values.push_back({part, [part](Asked& point) { point.pattern = part; }});
           }
           asked.pattern = axis.values.front().text;
           add_axis(asked, std::move(axis));
         },
         "Overlap pattern (see tritax patterns)")
      ->type_name("NAME");
}

std::string describe_point(const Asked& asked) {
  std::string text;
  for (const auto& [name, value] : asked.at) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  }
  return text;
}

}  // namespace tritax::cli
