// Any bytes as decision trees: a selector that is written and read again without a change, or a UserError.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "model/core/error.hpp"
#include "model/select/decision_tree.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto trees =
        tritax::TreeSelector::from_json({reinterpret_cast<const char*>(data), size}, "fuzz.json");
    const std::string text = trees.to_json();
    if (tritax::TreeSelector::from_json(text, "fuzz.json").to_json() != text) std::abort();
    const std::vector<double> features(trees.known.size() + trees.gathered.size(), 12);
    if (tritax::choose(trees, features).option >= trees.options.size()) std::abort();
    trees.to_header("fuzz");
  } catch (const tritax::UserError&) {
  }
  return 0;
}
