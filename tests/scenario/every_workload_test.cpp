// The keys that a scenario file needs follow from the tables of its workload.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "model/core/error.hpp"
#include "model/scenario/scenario.hpp"
#include "model/workloads/registry.hpp"

namespace tritax {
namespace {

std::string some_value(const Spec& field) {
  if (field.kind == ValueKind::name) return "\"" + std::string(field.names.front()) + "\"";
  if (field.kind == ValueKind::bytes) return "\"1 MiB\"";
  if (field.counts_gpus) return "2";  // among which whatever it is can be shared
  return std::to_string(std::min<std::int64_t>(field.high, std::max<std::int64_t>(field.low, 64)));
}

// With all required fields but one.
std::string file_without(const Workload& workload, std::string_view missing) {
  std::string text = "[[scenario]]\nid = \"one\"\nmachine = \"mi300x-8\"\nworkload = \"" +
                     std::string(workload.name) + "\"\n";
  for (const Spec& field : workload.fields) {
    if (field.required && field.name != missing)
      text += std::string(field.name) + " = " + some_value(field) + "\n";
  }
  return text;
}

TEST(EveryWorkloadFile, NeedsTheRequiredFieldsAndNoMore) {
  for (const Workload* workload : workloads()) {
    EXPECT_NO_THROW(parse_scenarios(file_without(*workload, ""), "file.toml")) << workload->name;
    for (const Spec& field : workload->fields) {
      if (!field.required) continue;
      try {
        parse_scenarios(file_without(*workload, field.name), "file.toml");
        ADD_FAILURE() << workload->name << " without " << field.name;
      } catch (const UserError& error) {
        EXPECT_EQ(std::string(error.what())
                      .rfind("file.toml:1: this scenario has no '" + std::string(field.name) + "'", 0),
                  0u)
            << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace tritax
