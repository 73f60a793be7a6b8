// Reads results of this program to compare them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "model/core/error.hpp"
#include "model/core/json_nesting.hpp"
#include "model/core/printable.hpp"
#include "model/core/read_file.hpp"
#include "sim/study/compare.hpp"

namespace tritax {

namespace {

using nlohmann::ordered_json;

// Where the JSON of a command has its rows, the key of their names, and the member with the parts of their
// time.
struct ResultForm {
  std::string_view schema;
  const char* rows;  // "" if the file is one row
  const char* id;
  const char* parts;
};
constexpr std::array<ResultForm, 4> kForms{{
    {"tritax.simulate/1", "runs", "id", "critical_path"},
    {"tritax.explain/1", "", "id", "critical_path"},
    {"tritax.advise/1", "candidates", "pattern", "critical_path"},
    {"tritax.layer/1", "steps", "step", "taxes"},
}};

constexpr std::string_view kWanted = "what --json of 'tritax simulate', 'explain', 'advise' or 'layer' wrote";

class ResultReader {
 public:
  ResultReader(std::string_view text, const std::string& origin) : origin_(origin) {
    constexpr std::size_t kDeepest = 32;  // a result needs 6
    if (find_json_deeper_than(text, kDeepest) != std::string_view::npos) {
      refuse(fmt::format("is nested more than {} levels deep", kDeepest));
    }
    root_ = ordered_json::parse(text, nullptr, false);
    if (root_.is_discarded() || !root_.is_object()) refuse("is not a JSON object");
  }

  ResultFile read() const {
    ResultFile file;
    file.origin = origin_;
    const ResultForm& form = form_of_file();
    file.schema = form.schema;
    const std::string_view rows = form.rows;
    if (rows.empty()) {
      file.rows.push_back(row_of(root_, form, "the file"));
    } else {
      const ordered_json& list = member(root_, form.rows, "the file");
      if (!list.is_array()) refuse(fmt::format("\"{}\" is not a list", rows));
      for (std::size_t i = 0; i < list.size(); ++i) {
        const std::string where = fmt::format("{}[{}]", rows, i);
        if (list[i].is_object() && !list[i].contains("time_us")) continue;  // interrupted without a time
        file.rows.push_back(row_of(list[i], form, where));
      }
      number_again(file.rows);
    }
    if (file.rows.empty()) refuse("has no run to compare");
    return file;
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw UserError(fmt::format("{}: {}; give {}", origin_, without_controls(what), kWanted));
  }

  const ResultForm& form_of_file() const {
    const ordered_json& schema = member(root_, "schema", "the file");
    const std::string name = schema.is_string() ? schema.get<std::string>() : schema.dump();
    const auto at = std::find_if(kForms.begin(), kForms.end(),
                                 [&](const ResultForm& form) { return form.schema == name; });
    if (at != kForms.end()) return *at;
    std::vector<std::string_view> known;
    for (const ResultForm& form : kForms) known.push_back(form.schema);
    refuse(fmt::format("schema '{}' cannot be compared; allowed: {}", name, fmt::join(known, ", ")));
  }

  const ordered_json& member(const ordered_json& parent, const char* key, const std::string& where) const {
    if (!parent.is_object() || !parent.contains(key)) refuse(fmt::format("{} has no \"{}\"", where, key));
    return parent.at(key);
  }

  double time(const ordered_json& value, const std::string& where) const {
    constexpr double kLongest = 1e12;  // us
    if (!value.is_number()) refuse(fmt::format("{} is not a number", where));
    const auto found = value.get<double>();
    if (!(found >= 0 && found <= kLongest)) {
      refuse(fmt::format("{} = {} is not allowed; allowed: 0 to {}", where, found, kLongest));
    }
    return found;
  }

  ResultRow row_of(const ordered_json& json, const ResultForm& form, const std::string& where) const {
    ResultRow row;
    const ordered_json& id = member(json, form.id, where);
    if (!id.is_string()) refuse(fmt::format("{}: {} is not a text", where, form.id));
    row.id = without_controls(id.get<std::string>());
    row.time_us = time(member(json, "time_us", where), where + ": time_us");
    if (row.time_us <= 0) refuse(fmt::format("{}: time_us = 0 is not allowed; allowed: above 0", where));
    const ordered_json& parts = member(json, form.parts, where);
    if (!parts.is_object()) refuse(fmt::format("{}: {} is not an object", where, form.parts));
    for (const auto& [key, value] : parts.items()) {
      std::string part = without_controls(key);
      if (part.ends_with("_us")) part.resize(part.size() - 3);
      std::replace(part.begin(), part.end(), '_', '-');
      row.parts.emplace_back(std::move(part), time(value, fmt::format("{}: {}", where, key)));
    }
    for (const char* key : {"version", "machine", "machine_changes", "sustained", "seed", "schedule_file",
                            "workload", "pattern", "knobs"}) {
      if (json.contains(key)) add_made_with(row, key, json.at(key));
    }
    return row;
  }

  // For a list, its members; "none" for an empty list.
  static std::string text_of(const ordered_json& value) {
    if (value.is_string()) return value.get<std::string>();
    if (!value.is_array()) return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
    std::vector<std::string> texts;
    for (const ordered_json& one : value) {
      if (!one.is_structured()) texts.push_back(text_of(one));
    }
    return texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, ", "));
  }

  // Adds a scalar under its name, and the members of an object under theirs, or as "knobs.m" if "m" is taken.
  static void add_made_with(ResultRow& row, const std::string& name, const ordered_json& value) {
    const auto add = [&row](const std::string& as, const ordered_json& one) {
      const std::string shown = without_controls(as);
      const bool taken = std::any_of(row.made_with.begin(), row.made_with.end(),
                                     [&](const auto& other) { return other.first == shown; });
      if (!taken) row.made_with.emplace_back(shown, without_controls(text_of(one)));
      return !taken;
    };
    if (!value.is_object()) {
      add(name, value);
      return;
    }
    for (const auto& [key, member] : value.items()) {
      if (!member.is_structured() && !add(key == "name" ? name : key, member)) add(name + '.' + key, member);
    }
  }

  // Points of a sweep have one id: the second "id" becomes "id (2)".
  static void number_again(std::vector<ResultRow>& rows) {
    std::set<std::string> taken;
    std::map<std::string, int> last;
    for (ResultRow& row : rows) {
      std::string name = row.id;
      for (int& n = last[row.id]; !taken.insert(name).second;) {
        n = std::max(n, 1) + 1;
        name = fmt::format("{} ({})", row.id, n);
      }
      row.id = std::move(name);
    }
  }

  const std::string& origin_;
  ordered_json root_;
};

}  // namespace

ResultFile parse_result(std::string_view json, const std::string& origin) {
  return ResultReader(json, origin).read();
}

ResultFile read_result(const std::string& path) {
  constexpr std::size_t kLargestFileBytes = std::size_t{1} << 30;
  return parse_result(read_file(path, kWanted, kLargestFileBytes), path);
}

}  // namespace tritax
