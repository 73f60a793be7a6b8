// Values of shipped machines that published figures have set name figures that exist: entries of `reproduce`,
// which are then no predictions, or single figures of scenarios/published/facts.csv.
#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>

#include "model/core/csv.hpp"
#include "sim/study/reproduce.hpp"

namespace tritax {
namespace {

std::set<std::string> facts() {
  const std::string path = TRITAX_SOURCE_DIR "/scenarios/published/facts.csv";
  std::set<std::string> ids;
  read_csv(read_csv_file(path, "tritax"), path, "id,value,value_low,value_high,unit,source", "tritax",
           [&](const CsvRow& row) {
             EXPECT_TRUE(ids.insert(row.text("id")).second) << row.where();
             EXPECT_NE(row.text("source"), "") << row.where();
             if (row.field("value").empty()) {
               EXPECT_LT(row.number("value_low"), row.number("value_high")) << row.where();
             } else {
               EXPECT_GT(row.number("value"), 0) << row.where();
             }
           });
  return ids;
}

TEST(Serves, NamesFiguresThatExistAndEachFactServesOne) {
  const std::set<std::string> single = facts();
  std::set<std::string> entries;
  for (const PublishedEntry& entry : shipped_published()) entries.insert(entry.id);
  std::set<std::string> used;
  for (const std::string& name : shipped_machines()) {
    for (const Parameter& parameter : find_machine(name).parameters) {
      std::istringstream ids(parameter.serves);
      for (std::string id; ids >> id;) {
        EXPECT_NE(single.count(id), entries.count(id)) << name << " " << parameter.key << ": " << id;
        used.insert(id);
      }
    }
  }
  for (const std::string& id : single) EXPECT_EQ(used.count(id), 1u) << id << " serves no parameter";
}

}  // namespace
}  // namespace tritax
