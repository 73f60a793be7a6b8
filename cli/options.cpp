#include "cli/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <limits>
#include <utility>

#include "model/core/error.hpp"
#include "model/core/with_place.hpp"
#include "model/workloads/registry.hpp"

namespace tritax::cli {

namespace {

constexpr std::int64_t kAnyInteger = std::numeric_limits<std::int64_t>::max();

template <typename Integer>
void add_any_integer(CLI::App& app, const std::string& flag, std::optional<Integer>& target,
                     const std::string& help, Integer lowest, Integer highest, const std::string& allowed) {
  app.add_option_function<std::string>(
         flag,
         [&target, flag, lowest, highest, allowed](const std::string& text) {
           target = static_cast<Integer>(parse_integer(text, flag, lowest, highest, allowed));
         },
         help)
      ->type_name("NUMBER");
}

std::vector<std::string_view> workload_names() {
  std::vector<std::string_view> names;
  for (const Workload* workload : workloads()) names.push_back(workload->name);
  return names;
}

bool is_shape(const Spec& spec) { return spec.columns() > 1; }

// "MxNxK" for a shape with the parts m, n and k.
std::string form_of_shape(const Spec& spec) {
  std::string form;
  for (std::size_t part = 0; part < spec.columns(); ++part) {
    form += part == 0 ? "" : "x";
    for (const char letter : spec.parts[part]) form += static_cast<char>(std::toupper(letter));
  }
  return form;
}

std::string type_name(const Spec& spec) {
  if (is_shape(spec)) return form_of_shape(spec);
  switch (spec.kind) {
    case ValueKind::integer:
      return "NUMBER";
    case ValueKind::bytes:
      return "BYTES";
    case ValueKind::file:
      return "FILE";
    case ValueKind::name:
    case ValueKind::boolean:
      break;
  }
  return "NAME";
}

// Names for an option, where its help does not explain them one by one.
std::span<const std::string_view> names_to_list(const Spec& spec) {
  if (spec.kind == ValueKind::boolean) return switch_names();
  if (spec.kind != ValueKind::name) return {};
  const bool explained = std::all_of(spec.names.begin(), spec.names.end(), [&](std::string_view name) {
    return spec.help.find(name) != std::string_view::npos;
  });
  return explained ? std::span<const std::string_view>{} : spec.names;
}

// "default fp16" for an optional field; empty where the default is no number or name.
std::string default_text(const Spec& spec) {
  const std::int64_t usual = spec.usual[0];
  if (spec.counts_gpus) return "default: all of the machine";
  if (spec.required || is_shape(spec)) return "";
  if (spec.kind == ValueKind::name)
    return fmt::format("default {}", spec.names[static_cast<std::size_t>(usual)]);
  if (spec.kind == ValueKind::boolean) {
    return usual < 0 ? "" : fmt::format("default {}", switch_names()[static_cast<std::size_t>(usual)]);
  }
  return usual < spec.low || usual > spec.high ? "" : fmt::format("default {}", usual);
}

std::string help_of(const Spec& spec, const std::string& usual) {
  std::string help(spec.help);
  help.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(help.front())));
  const std::span<const std::string_view> names = names_to_list(spec);
  if (!names.empty()) help += fmt::format(": {}", fmt::join(names, ", "));
  return usual.empty() ? help : fmt::format("{} ({})", help, usual);
}

// Selects the values of a question that an option fills.
using Target = Values& (*)(Asked&);

Values& fields_of(Asked& asked) { return asked.problem.values; }
Values& knobs_of(Asked& asked) { return asked.pins; }

// "M" of -M, "comm-tile" of --comm-tile.
std::string axis_name(const Spec& spec) {
  const std::string option = spec.option_name();
  return option.substr(option.find_first_not_of('-'));
}

// An option that fills the columns of spec `index`; several values become an axis.
void add_value(CLI::App& app, Asked& asked, Target target, std::size_t index, const std::string& help,
               const char* group) {
  const Spec& spec = target(asked).specs()[index];
  const std::size_t first = target(asked).first_column(index);
  const AxisKind kind = target == fields_of ? AxisKind::field : AxisKind::knob;
  const auto give = [target, first](Asked& point, const std::vector<std::int64_t>& numbers) {
    for (std::size_t part = 0; part < numbers.size(); ++part) {
      target(point).give_at(first + part, numbers[part]);
    }
  };
  app.add_option_function<std::string>(
         spec.option_name(),
         [&asked, &spec, give, kind](const std::string& text) {
           if (text.find(',') == std::string::npos) {
             give(asked, parse_value(text, spec.option_name(), spec));
             return;
           }
           Axis axis{kind, axis_name(spec)};
           for (const std::string& part : parts_of(text, spec.option_name())) {
             const std::vector<std::int64_t> numbers = parse_value(part, spec.option_name(), spec);
             if (axis.values.empty()) give(asked, numbers);
             axis.values.push_back({part, [give, numbers](Asked& point) { give(point, numbers); }});
           }
           add_axis(asked, std::move(axis));
         },
         help)
      ->type_name(type_name(spec))
      ->group(group);
}

[[noreturn]] void refuse_sweep(const std::string& text) {
  throw UserError(fmt::format(
      "--sweep: '{}' is not a range; give FIELD=FIRST:LAST:xFACTOR or FIELD=FIRST:LAST:+STEP, for example "
      "M=1:16384:x2",
      text));
}

// The field in front of "=".
const Spec& swept_field(const Workload& workload, const std::string& text) {
  const std::string name = text.substr(0, text.find('='));
  std::vector<std::string> numbers;
  for (const Spec& field : workload.fields) {
    const bool number = field.kind == ValueKind::integer || field.kind == ValueKind::bytes;
    if (number && !is_shape(field)) numbers.push_back(axis_name(field));
  }
  const Spec* field = find_field(workload, name);
  if (field != nullptr && std::find(numbers.begin(), numbers.end(), axis_name(*field)) != numbers.end()) {
    return *field;
  }
  const std::string nearest = nearest_name(name, numbers);
  throw UserError(fmt::format(
      "--sweep: '{}' is not a numeric field of {}{}; give one of {}", name, workload.name,
      nearest.empty() ? "" : fmt::format(" (did you mean '{}'?)", nearest), fmt::join(numbers, ", ")));
}

// Values of a range "1:16384:x2".
std::vector<std::int64_t> values_of_range(const std::string& text, const Spec& field) {
  const std::size_t begin = text.find('=') + 1;
  const std::size_t middle = text.find(':', begin);
  const std::size_t end = middle == std::string::npos ? middle : text.find(':', middle + 1);
  if (end == std::string::npos || end + 2 >= text.size()) refuse_sweep(text);
  const char sign = text[end + 1];
  if (sign != 'x' && sign != '+') refuse_sweep(text);
  const auto number = [&](const std::string& part) {
    return with_place("--sweep ", [&] { return parse_value(part, field.option_name(), field).front(); });
  };
  const std::int64_t first = number(text.substr(begin, middle - begin));
  const std::int64_t last = number(text.substr(middle + 1, end - middle - 1));
  const std::string step_text = text.substr(end + 2);
  Spec step = field;
  step.low = sign == 'x' ? 2 : 1;
  step.counts_gpus = false;
  const std::int64_t by = sign == 'x' ? parse_integer(step_text, "--sweep: factor", step.low, field.high)
                                      : with_place("--sweep: step: ", [&] {
                                          return parse_value(step_text, step.option_name(), step).front();
                                        });
  if (first >= last) {
    throw UserError(fmt::format("--sweep: '{}': the first value must be below the last", text));
  }
  std::vector<std::int64_t> values;
  for (std::int64_t value = first; value <= last; value = sign == 'x' ? value * by : value + by) {
    if (values.size() == kMostPoints) {
      throw UserError(fmt::format("--sweep: '{}' has more than {} values; give fewer", text, kMostPoints));
    }
    values.push_back(value);
  }
  return values;
}

// The flag alone means on; "=off" overrides a scenario.
void add_switch(CLI::App& app, Asked& asked, std::size_t index) {
  const Spec& spec = asked.pins.specs()[index];
  std::string help(spec.help);
  help.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(help.front())));
  app.add_flag_function(
         spec.option_name(),
         [&asked, first = asked.pins.first_column(index)](std::int64_t on) {
           asked.pins.give_at(first, on > 0 ? 1 : 0);
         },
         help)
      ->group(kKnobGroup);
}

}  // namespace

Machine find_machine_option(const std::string& name, const std::vector<ParameterChange>& changes) {
  return changed(with_place("--machine: ", [&] { return find_machine(name); }), changes);
}

void add_integer(CLI::App& app, const std::string& flag, std::optional<std::int32_t>& target,
                 const std::string& help, std::int32_t lowest, std::int32_t highest,
                 const std::string& allowed) {
  add_any_integer(app, flag, target, help, lowest, highest, allowed);
}

void add_integer(CLI::App& app, const std::string& flag, std::optional<std::int64_t>& target,
                 const std::string& help, std::int64_t lowest, std::int64_t highest) {
  add_any_integer(app, flag, target, help, lowest, highest, "");
}

const Workload& workload_of_command_line(int argc, const char* const* argv) {
  constexpr std::string_view kOption = "--workload";
  std::string_view wanted;
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    const std::string_view argument = argv[i];
    if (argument == kOption && i + 1 < argc) wanted = argv[i + 1];
    if (argument.starts_with(kOption) && argument.substr(kOption.size()).starts_with('=')) {
      wanted = argument.substr(kOption.size() + 1);
    }
  }
  const Workload* workload = workload_named(wanted);
  return workload != nullptr ? *workload : *workloads().front();
}

void add_workload_option(CLI::App& app, const Workload& workload) {
  std::vector<std::string_view> others = workload_names();
  others.erase(std::remove(others.begin(), others.end(), workload.name), others.end());
  app.add_option_function<std::string>(
         "--workload", [](const std::string& word) { find_workload(word, "--workload"); },
         fmt::format("Workload to compute: {} ({}), or with other options {}", workload.name,
                     workload.summary, fmt::join(others, ", ")))
      ->type_name("NAME")
      ->group(kWorkloadGroup);
}

void add_problem_options(CLI::App& app, const Workload& workload, Asked& asked) {
  asked.problem = problem_of(workload);
  add_workload_option(app, workload);
  for (std::size_t i = 0; i < workload.fields.size(); ++i) {
    const Spec& spec = workload.fields[i];
    add_value(app, asked, fields_of, i, help_of(spec, default_text(spec)), kWorkloadGroup);
  }
  if (workload.message == Message::none) return;
  app.add_option_function<std::string>(
         "--bytes",
         [&asked](const std::string& text) {
           constexpr std::int64_t kMostBytes = std::int64_t{1} << 40;
           static const Spec size{.name = "bytes", .help = "", .kind = ValueKind::bytes, .high = kMostBytes};
           asked.message_bytes = parse_value(text, "--bytes", size).front();
         },
         "Message size as nccl-tests and rccl-tests count it, for example 128MiB, instead of --rows and "
         "--cols")
      ->type_name("BYTES")
      ->group(kWorkloadGroup);
}

const Spec* find_field(const Workload& workload, std::string_view name) {
  const auto found = std::find_if(workload.fields.begin(), workload.fields.end(), [&](const Spec& field) {
    return field.name == name || axis_name(field) == name;
  });
  return found == workload.fields.end() ? nullptr : &*found;
}

void add_sweep(Asked& asked, const std::string& text) {
  if (text.find('=') == std::string::npos) refuse_sweep(text);
  const Spec& field = swept_field(*asked.problem.workload, text);
  if (asked.problem.values.given(field.name)) {
    throw UserError(fmt::format("--sweep: {} is given already; leave it out", field.option_name()));
  }
  Axis axis{AxisKind::field, axis_name(field)};
  for (const std::int64_t value : values_of_range(text, field)) {
    axis.values.push_back({fmt::format("{}", value), [name = field.name, value](Asked& point) {
                             point.problem.values.give(name, value);
                           }});
  }
  add_axis(asked, std::move(axis));
}

std::string required_options(const Workload& workload) {
  std::vector<std::string> options;
  for (const Spec& spec : workload.fields) {
    if (spec.required && !spec.counts_gpus) options.push_back(spec.option_name());
  }
  return fmt::format("{}", fmt::join(options, ", "));
}

Problem problem_on(Problem problem, const Machine& machine, std::optional<std::int64_t> message_bytes) {
  std::vector<std::string> options;
  for (const Spec& spec : problem.workload->fields) {
    if (spec.required || spec.counts_gpus) options.push_back(spec.option_name());
    if (!spec.counts_gpus) continue;
    if (!problem.values.given(spec.name)) problem.values.assume(spec.name, machine.gpu_count());
    if (spec.required && machine.gpu_count() < spec.low) {
      throw UserError(fmt::format("--machine: '{}' has {} GPU{}; {} needs at least {}", machine.name,
                                  machine.gpu_count(), machine.gpu_count() == 1 ? "" : "s",
                                  problem.workload->name, spec.low));
    }
    if (problem[spec.name] > machine.gpu_count()) {
      throw UserError(fmt::format("{}: {} is more than the machine '{}' has; give {} to {}",
                                  spec.option_name(), problem[spec.name], machine.name, spec.low,
                                  machine.gpu_count()));
    }
  }
  if (options.empty()) {  // no option is required: the given input is the error
    for (const Spec& spec : problem.workload->fields) {
      if (problem.values.given(spec.column(0))) options.push_back(spec.option_name());
    }
  }
  if (message_bytes) {
    give_message(problem, *message_bytes, "--bytes");
    options = {"--bytes"};
  }
  complete_problem(problem, fmt::format("{}", fmt::join(options, " ")));
  return problem;
}

void require_problem(const Problem& problem, const std::string& machine,
                     std::optional<std::int64_t> message_bytes) {
  const bool collective = problem.workload->message != Message::none;
  if (message_bytes) {
    for (const char* side : {"rows", "cols"}) {
      if (problem.values.given(side))
        throw UserError(fmt::format("--bytes: --{} is given as well; give only one of them", side));
    }
  }
  std::string missing;
  bool numbers = true;
  for (const Spec& spec : problem.workload->fields) {
    if (!spec.required || spec.counts_gpus) continue;
    if (message_bytes && (spec.name == "rows" || spec.name == "cols")) continue;
    if (missing.empty() && !problem.values.given(spec.column(0))) missing = spec.option_name();
    numbers = numbers && spec.kind == ValueKind::integer;
  }
  if (missing.empty() && machine.empty()) missing = "--machine";
  if (missing.empty()) return;
  throw UserError(fmt::format("{}: missing; give {}{}{} and --machine", missing, numbers ? "the sizes " : "",
                              required_options(*problem.workload), collective ? " (or --bytes)" : ""));
}

void add_knob_options(CLI::App& app, const Workload& workload, Asked& asked) {
  asked.pins = Values(workload.knobs);
  for (std::size_t i = 0; i < workload.knobs.size(); ++i) {
    const Spec& spec = workload.knobs[i];
    if (spec.kind == ValueKind::boolean && spec.of_every_run) {
      add_switch(app, asked, i);
    } else {
      add_value(app, asked, knobs_of, i, help_of(spec, ""), kKnobGroup);
    }
  }
}

void give_text(Values& values, std::size_t spec, const std::string& text, const std::string& place) {
  const Spec& row = values.specs()[spec];
  const std::size_t first = values.first_column(spec);
  const bool may_be_left_out = !row.required && row.kind == ValueKind::integer && row.usual[0] < row.low;
  if (may_be_left_out && text == text_of(Values(values.specs()), spec)) return;
  const std::vector<std::int64_t> numbers = parse_value(text, place, row);
  for (std::size_t part = 0; part < numbers.size(); ++part) values.give_at(first + part, numbers[part]);
}

std::string value_form(const Spec& spec) {
  if (is_shape(spec)) return fmt::format(" {}", form_of_shape(spec));
  return spec.kind == ValueKind::boolean ? " on|off" : "";
}

Values pins_of(const Workload& workload, const Values& pins, const std::string& what) {
  Values own(workload.knobs);
  for (std::size_t i = 0; i < pins.specs().size(); ++i) {
    const Spec& spec = pins.specs()[i];
    const std::size_t first = pins.first_column(i);
    if (!pins.given_at(first)) continue;
    const Spec* mine = find_spec(workload.knobs, spec.name);
    if (mine == nullptr || mine->kind != spec.kind || mine->columns() != spec.columns()) {
      throw UserError(fmt::format("{}: {} is of the workload {}, which has no such knob", spec.option_name(),
                                  what, workload.name));
    }
    for (std::size_t part = 0; part < spec.columns(); ++part) {
      std::int64_t value = pins.at(first + part);
      if (spec.kind == ValueKind::name) {
        const std::string_view name = spec.names[static_cast<std::size_t>(value)];
        value = static_cast<std::int64_t>(parse_name(std::string(name), spec.option_name(), mine->names));
      }
      own.give(spec.column(part), value);
    }
  }
  return own;
}

void require_each_once(const std::vector<std::string>& files, std::string_view flag) {
  std::error_code unknown;  // a missing file is refused when it is read
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (files[i] != files[j] && !std::filesystem::equivalent(files[i], files[j], unknown)) continue;
      throw UserError(fmt::format("{}: '{}' is given twice ('{}'); allowed: once", flag, files[i], files[j]));
    }
  }
}

void add_threads_option(CLI::App& app, std::optional<int>& threads) {
  add_integer(app, "--threads", threads, "Cores to use (default: all)", 1, 4096);
}

std::unique_ptr<tbb::global_control> limit_threads(const std::optional<int>& threads) {
  return threads ? std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism,
                                                         static_cast<std::size_t>(*threads))
                 : nullptr;
}

void add_seed_option(CLI::App& app, std::optional<std::int64_t>& seed) {
  add_integer(app, "--seed", seed,
              "Seed of the random shares of full links (default: 1); equal seeds give equal results", 0,
              kAnyInteger);
}

}  // namespace tritax::cli
