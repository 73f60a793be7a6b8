// Records printed by their tables of fields, and laws over all tables.
#include "cli/fields.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/result_tables.hpp"

namespace tritax::cli {
namespace {

struct Sample {
  double time_ns = 0;
  double harness_ns = 0;
  std::optional<std::int64_t> count;
};

const Fields<Sample>& sample_fields() {
  static const Fields<Sample> fields{
      {{.name = "time", .unit = FieldUnit::time, .meaning = "the run"}, &Sample::time_ns},
      {{.name = "harness", .unit = FieldUnit::time, .meaning = "barriers", .if_any = true},
       &Sample::harness_ns},
      {{.name = "count",
        .type = FieldType::size,
        .meaning = "of things",
        .shows = shown::kJson,
        .optional = true},
       &Sample::count},
      {{.name = "double_count",
        .type = FieldType::size,
        .meaning = "twice",
        .shows = shown::kJson,
        .object = "more"},
       [](const Sample& one) { return one.count ? FieldValue(2 * *one.count) : FieldValue(); }},
  };
  return fields;
}

TEST(FieldsOutput, TextLeavesOutWhatNoRowHasAndCsvDoesNot) {
  const std::vector<Sample> none{{1500, 0, {}}, {2500, 0, {}}};
  EXPECT_EQ(table_of(sample_fields(), none, shown::kText).columns.size(), 1);
  EXPECT_EQ(to_csv(table_of(sample_fields(), none, shown::kCsv)), "time_us,harness_us\n1.5,0\n2.5,0\n");
  EXPECT_EQ(table_of(sample_fields(), {none[0], {1, 2, {}}}, shown::kText).columns.size(), 2);
}

TEST(FieldsOutput, JsonHasNullOrNothingWithoutAValue) {
  EXPECT_EQ(json_of(sample_fields(), Sample{1500, 0, {}}).dump(),
            R"({"time_us":1.5,"harness_us":0.0,"more":{"double_count":null}})");
  EXPECT_EQ(json_of(sample_fields(), Sample{1500, 0, 2}).dump(),
            R"({"time_us":1.5,"harness_us":0.0,"count":2,"more":{"double_count":4}})");
}

TEST(ResultTables, GiveEveryKeyOnceAtAPlace) {
  for (const ResultTable& table : result_tables()) {
    for (const unsigned place :
         {shown::kText, shown::kCsv, shown::kJson, shown::kRow, shown::kProperty, shown::kSweep}) {
      std::set<std::string> keys;
      for (const FieldInfo& field : table.fields) {
        if (!field.shows_in(place)) continue;
        const std::string object = place == shown::kJson ? std::string(field.object) : "";
        EXPECT_TRUE(keys.insert(object + '.' + field.key()).second) << table.record << ": " << field.key();
      }
    }
  }
}

TEST(ResultTables, SayWhatEveryFieldMeans) {
  for (const ResultTable& table : result_tables()) {
    for (const FieldInfo& field : table.fields) {
      EXPECT_FALSE(field.meaning.empty()) << table.record << ": " << field.name;
      EXPECT_FALSE(field.meaning.ends_with('.')) << table.record << ": " << field.name;
      EXPECT_NE(field.shows, 0U) << table.record << ": " << field.name;
    }
  }
}

}  // namespace
}  // namespace tritax::cli
