// Describes the fields of results: every field of a record is one row of a table, and the table is declared
// beside the record.
//
// A row has the name, the unit, the type and the meaning of the field, the outputs that show the field, and a
// function that reads the field from the record. Tables for people, CSV, JSON, rows and properties of Python,
// their type stubs, the schemas of docs/schemas and the list of docs/result-fields.md loop over these tables:
// a new field is a new row.
//
//   struct Step { std::string name; double time_ns = 0; };
//   const Fields<Step> kStepFields{
//       {{.name = "step", .type = FieldType::text, .meaning = "its name"}, &Step::name},
//       {{.name = "time", .unit = FieldUnit::time, .meaning = "of the step alone"}, &Step::time_ns}};
//
// Times are nanoseconds in records and in Python ("time_ns") and microseconds in printed output ("time_us").
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "model/core/error.hpp"

namespace tritax {

// Unit of the numbers that a getter returns. The unit is part of the key.
enum class FieldUnit : std::uint8_t { none, time, bytes, percent, megabytes, gb_per_s, tflop_per_s };

struct UnitForms {
  std::string_view name;           // "us", printed after titles
  std::string_view suffix;         // of printed keys
  std::string_view python_suffix;  // of keys in Python
  double divisor = 1;              // value in the record / printed value
};
const UnitForms& forms_of(FieldUnit unit);

enum class FieldType : std::uint8_t {
  number,
  share,    // 0 to 1
  size,     // a whole number, 0 or more
  integer,  // a whole number
  text,
  yes_no,
  texts  // a list of texts
};
std::string_view name_of(FieldType type);

// Outputs that show a field; a bit mask.
namespace shown {
inline constexpr unsigned kText = 1;       // a column of a table for people
inline constexpr unsigned kCsv = 2;        // a column of CSV
inline constexpr unsigned kJson = 4;       // a key of JSON
inline constexpr unsigned kRow = 8;        // a row of a frame in Python
inline constexpr unsigned kProperty = 16;  // a property of a class in Python
inline constexpr unsigned kSweep = 32;     // the answer to a point of a sweep
inline constexpr unsigned kColumns = kText | kCsv;
inline constexpr unsigned kPython = kRow | kProperty;
inline constexpr unsigned kEverywhere = kColumns | kJson | kPython;
}  // namespace shown

// The properties of a field that do not depend on the type of the record.
struct FieldInfo {
  std::string_view name = {};  // without the unit: "bulk_synchronous"
  FieldUnit unit = FieldUnit::none;
  FieldType type = FieldType::number;
  std::string_view meaning = {};  // for readers who do not know the program
  unsigned shows = shown::kEverywhere;
  std::string title = {};        // of the column for people; empty: the name
  std::string_view label = {};   // longer than the title: "bulk-synchronous tax"; empty: the title
  int decimals = 1;              // for people
  bool nullable = false;         // the field may have no value: null
  bool optional = false;         // JSON leaves out the field where the field has no value
  bool if_any = false;           // tables for people show the column only if some value is above 0
  std::string_view object = {};  // key of the JSON object that contains the field

  std::string key() const;         // "bulk_synchronous_us"
  std::string python_key() const;  // "bulk_synchronous_ns"
  std::string heading() const;     // the title, or the name in words
  std::string label_text() const;
  bool shows_in(unsigned places) const { return (shows & places) != 0; }
};

// The value of a field of one record; monostate: no value.
struct FieldValue {
  std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<std::string>> value;

  FieldValue() = default;
  FieldValue(bool yes) : value(yes) {}
  template <std::integral Number>
  FieldValue(Number number) : value(static_cast<std::int64_t>(number)) {}
  FieldValue(double number) : value(number) {}
  FieldValue(const char* text) : value(std::string(text)) {}
  FieldValue(std::string_view text) : value(std::string(text)) {}
  FieldValue(std::string text) : value(std::move(text)) {}
  FieldValue(std::vector<std::string> texts) : value(std::move(texts)) {}
  template <typename T>
  FieldValue(const std::optional<T>& given) {
    if (given) *this = FieldValue(*given);
  }

  bool known() const { return !std::holds_alternative<std::monostate>(value); }
  // The value must be a double.
  double number() const { return std::get<double>(value); }
};

template <typename Record>
struct Field : FieldInfo {
  std::function<FieldValue(const Record&)> get;
};

template <typename Record>
using Fields = std::vector<Field<Record>>;

// How a table shows the fields that it includes from another table.
struct Included {
  unsigned shows = shown::kEverywhere;  // upper limit: a field also needs the bit in its own table
  std::string_view object = {};
  std::string_view title_end = {};  // appended to the titles
  bool optional = false;            // the whole part may be absent
};

// The fields `names` of a table, in this order.
template <typename Record>
Fields<Record> pick(const Fields<Record>& from, std::initializer_list<std::string_view> names) {
  Fields<Record> picked;
  for (const std::string_view name : names) {
    const auto found = std::find_if(from.begin(), from.end(), [name](const Field<Record>& field) {
      return field.name == name && field.object.empty();
    });
    TRITAX_ASSERT(found != from.end(), "a table has the fields that others take from it");
    picked.push_back(*found);
  }
  return picked;
}

// Types whose value may be absent: pointers and std::optional.
template <typename T>
concept MayLack = requires(const T& one) {
  !one;
  *one;
};

// Adds the fields of a part of the record; `part` returns the part, or a pointer or std::optional if the part
// may be absent.
template <typename Record, typename Part, typename Get>
void include(Fields<Record>& into, const Fields<Part>& from, const Get& part, const Included& how) {
  for (const Field<Part>& field : from) {
    if (!field.shows_in(how.shows)) continue;
    Field<Record> added;
    static_cast<FieldInfo&>(added) = field;
    added.shows = field.shows & how.shows;
    added.object = how.object;
    added.optional = added.optional || how.optional;
    if (!how.title_end.empty()) added.title = field.heading().append(how.title_end);
    added.get = [part, get = field.get](const Record& record) {
      if constexpr (MayLack<std::decay_t<std::invoke_result_t<Get, const Record&>>>) {
        const auto found = std::invoke(part, record);
        return found ? get(*found) : FieldValue();
      } else {
        return get(std::invoke(part, record));
      }
    };
    into.push_back(std::move(added));
  }
}

// Adds fields of the same record. The outputs that show them stay the same.
template <typename Record>
void append(Fields<Record>& into, Fields<Record> more) {
  std::move(more.begin(), more.end(), std::back_inserter(into));
}

template <typename Record>
std::vector<FieldInfo> infos_of(const Fields<Record>& fields) {
  return {fields.begin(), fields.end()};
}

}  // namespace tritax
