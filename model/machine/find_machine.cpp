// Finds machines by name or path. The files of shipped machines are compiled in (cmake/TritaxModule.cmake,
// tritax_embed).
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <utility>

#include "model/core/error.hpp"
#include "model/core/read_file.hpp"
#include "model/machine/find_machine.hpp"
#include "model/machine/machine.hpp"

namespace tritax {

namespace embedded {
// Defined in the generated file: (file stem, file text) of model/machine/machines/*.toml.
std::span<const std::pair<std::string_view, std::string_view>> machine_files();
}  // namespace embedded

namespace {

constexpr std::size_t kLargestFileBytes = 1 << 20;  // a machine file is a few kilobytes

std::string read_machine_file(const std::string& path) {
  return read_file(path, "the path of a machine file (TOML)", kLargestFileBytes);
}

}  // namespace

Machine read_machine(const std::string& path) { return parse_machine(read_machine_file(path), path); }

std::vector<std::string> shipped_machines() {
  std::vector<std::string> names;
  for (const auto& [name, text] : embedded::machine_files()) names.emplace_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

Machine sustained(Machine machine) {
  machine.after_long_load = true;
  if (machine.gpu.knows_energies()) return machine;
  for (MatrixRate& rate : machine.gpu.matrix) {
    if (rate.sustained_clock_ghz > 0) rate.load_clock_ghz = rate.sustained_clock_ghz;
  }
  return machine;
}

MachineText find_machine_text(const std::string& name_or_path, const std::string& folder) {
  for (const auto& [name, text] : embedded::machine_files()) {
    if (name == name_or_path) return {std::string(text), fmt::format("{}.toml (shipped)", name)};
  }
  const std::filesystem::path given(name_or_path);
  const std::filesystem::path path = given.is_relative() ? folder / given : given;
  std::error_code ignored;
  const bool looks_like_a_path = given.has_parent_path() || given.extension() == ".toml";
  if (looks_like_a_path || std::filesystem::is_regular_file(path, ignored)) {
    return {read_machine_file(path.string()), path.string()};
  }
  const std::vector<std::string> known = shipped_machines();
  const std::string nearest = nearest_name(name_or_path, known);
  std::string message = fmt::format("unknown machine \"{}\"", name_or_path);
  if (!nearest.empty()) message += fmt::format(", did you mean \"{}\"?", nearest);
  message += "; shipped:";
  for (const std::string& name : known) message += " " + name;
  throw UserError(message + "; or give the path of a TOML file");
}

Machine find_machine(const std::string& name_or_path) {
  const MachineText found = find_machine_text(name_or_path);
  return parse_machine(found.text, found.origin);
}

}  // namespace tritax
