// Tables of result fields: keys carry units, tables take fields from other tables.
#include "model/core/fields.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace tritax {
namespace {

struct Part {
  double time_ns = 0;
};

struct Whole {
  std::string name;
  std::optional<Part> part;
};

const Fields<Part>& part_fields() {
  static const Fields<Part> fields{{{.name = "time",
                                     .unit = FieldUnit::time,
                                     .meaning = "how long it takes",
                                     .shows = shown::kJson | shown::kRow},
                                    &Part::time_ns}};
  return fields;
}

Fields<Whole> whole_fields(const Included& how) {
  Fields<Whole> fields{{{.name = "name", .type = FieldType::text, .meaning = "of it"}, &Whole::name}};
  include(fields, part_fields(), &Whole::part, how);
  return fields;
}

TEST(Fields, HaveTheirUnitInTheirKeys) {
  const FieldInfo time{.name = "bulk_synchronous", .unit = FieldUnit::time};
  EXPECT_EQ(time.key(), "bulk_synchronous_us");
  EXPECT_EQ(time.python_key(), "bulk_synchronous_ns");
  EXPECT_EQ(time.heading(), "bulk synchronous");
  EXPECT_EQ(FieldInfo{.name = "speedup"}.key(), "speedup");
}

TEST(Fields, OfAPartShowWhereBothTablesSay) {
  const Fields<Whole> fields = whole_fields({.shows = shown::kJson | shown::kText, .object = "part"});
  ASSERT_EQ(fields.size(), 2);
  EXPECT_EQ(fields[1].shows, shown::kJson);
  EXPECT_EQ(fields[1].object, "part");
  EXPECT_EQ(whole_fields({.shows = shown::kText}).size(), 1);
}

TEST(Fields, OfAPartThatLacksHaveNoValue) {
  const Fields<Whole> fields = whole_fields({});
  EXPECT_EQ(fields[1].get({"a", Part{1500}}).number(), 1500);
  EXPECT_FALSE(fields[1].get({"a", std::nullopt}).known());
}

TEST(Fields, ArePickedInTheOrderAskedFor) {
  const Fields<Whole> fields = whole_fields({});
  const Fields<Whole> picked = pick(fields, {"time", "name"});
  ASSERT_EQ(picked.size(), 2);
  EXPECT_EQ(picked[0].name, "time");
  EXPECT_EQ(std::get<std::string>(picked[1].get({"a", {}}).value), "a");
}

}  // namespace
}  // namespace tritax
