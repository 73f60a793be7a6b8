#include "model/machine/base_machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "model/core/error.hpp"
#include "model/core/with_place.hpp"
#include "model/machine/find_machine.hpp"

namespace tritax {

namespace {

constexpr int kDeepest = 8;  // bases of bases

// { value = …, unit = …, … }
bool is_parameter(const toml::node& node) { return node.is_table() && node.as_table()->contains("value"); }

// Moves everything of `table` into `base`. Moved nodes keep file and line; copied nodes would lose them.
void merge(toml::table& base, toml::table&& table) {
  for (auto&& [key, node] : table) {
    toml::node* there = base.get(key);
    const bool both = there != nullptr && there->is_table() && node.is_table();
    if (both && !is_parameter(*there) && !is_parameter(node)) {
      merge(*there->as_table(), std::move(*node.as_table()));
    } else {
      base.insert_or_assign(key, std::move(node));
    }
  }
}

toml::table with_base(toml::table root, const std::string& origin, int depth) {
  const toml::node* node = root.get("base");
  if (node == nullptr) return root;
  const std::string place =
      fmt::format("{}:{}: base", origin, std::max<std::uint32_t>(node->source().begin.line, 1));
  const auto* name = node->as_string();
  if (name == nullptr || name->get().empty()) {
    throw UserError(place + ": must be the name of a shipped machine or of a file");
  }
  if (depth == kDeepest) {
    throw UserError(fmt::format("{}: bases of bases go on for more than {} files; is one its own base?",
                                place, kDeepest));
  }
  const MachineText found = with_place(place + ": ", [&] {
    return find_machine_text(name->get(), std::filesystem::path(origin).parent_path().string());
  });
  toml::table base = with_base(parse_toml(found.text, found.origin), found.origin, depth + 1);
  // The merged table does not keep the name and the description of the base.
  base.erase("name");
  base.insert_or_assign("description", fmt::format("{}, changed", name->get()));
  merge(base, std::move(root));
  return base;
}

}  // namespace

toml::table with_base(toml::table root, const std::string& origin) {
  return with_base(std::move(root), origin, 0);
}

}  // namespace tritax
