#include "sim/study/sweep/sweep_key.hpp"

#include <algorithm>
#include <boost/uuid/name_generator_sha1.hpp>
#include <boost/uuid/uuid_io.hpp>

#include "model/core/error.hpp"
#include "model/core/read_file.hpp"
#include "model/machine/library_table.hpp"
#include "model/machine/machine.hpp"
#include "model/machine/write_machine.hpp"
#include "sim/study/language_model.hpp"

namespace tritax {

namespace {

// With the tables that are not shipped; shipped tables are part of the version.
std::string text_of_machine(const std::string& name) {
  const Machine machine = find_machine(name);
  std::string text = write_machine(machine, "");
  constexpr std::size_t kLargestTableBytes = std::size_t{4} << 20;
  const auto add = [&](const std::string& table) {
    if (table.ends_with(".csv")) text += read_file(table, "the path of a table (CSV)", kLargestTableBytes);
  };
  for (const std::string& table : names_of_tables(machine)) add(table);
  return text;
}

// A shipped model is part of the version.
std::string text_of_model(const std::string& name) {
  const std::vector<std::string> shipped = shipped_models();
  if (std::find(shipped.begin(), shipped.end(), name) != shipped.end()) return "";
  constexpr std::size_t kLargestModelBytes = std::size_t{1} << 20;
  return read_file(name, "the path of a model file (TOML)", kLargestModelBytes);
}

}  // namespace

std::string hash_text(const std::string& text) {
  return boost::uuids::to_string(boost::uuids::name_generator_sha1(boost::uuids::ns::oid())(text));
}

const std::string& SweepKeys::content_of(const nlohmann::json& point, const char* name,
                                         const std::function<std::string(const std::string&)>& read) {
  const auto found = point.find(name);
  const std::string file = found != point.end() && found->is_string() ? found->get<std::string>() : "";
  const auto [place, is_new] = contents_.try_emplace(std::string(name) + ' ' + file);
  if (is_new && !file.empty()) {
    try {
      place->second = hash_text(read(file));
    } catch (const UserError& error) {
      place->second = hash_text(error.what());
    }
  }
  return place->second;
}

std::string SweepKeys::key(const nlohmann::json& point) {
  std::string text = "tritax " + version_ + '\n';
  text += content_of(point, "machine", text_of_machine) + '\n';
  text += content_of(point, "model", text_of_model) + '\n';
  return hash_text(text + point.dump());
}

}  // namespace tritax
