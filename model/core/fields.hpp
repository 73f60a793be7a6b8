// What results consist of: every field of a record is one row of a table, which stands beside the record.
//
// A row says what the field is called, its unit, its type, what it means, where it shows, and how to get it
// from the record. Tables for people, CSV, JSON, rows and properties of Python, their type stubs, the schemas
// of docs/schemas and the list of docs/result-fields.md loop over these tables: a new field is a new row.
//
//   struct Step { std::string name; double time_ns = 0; };
//   const Fields<Step> kStepFields{
//       {{.name = "step", .type = FieldType::text, .meaning = "its name"}, &Step::name},
//       {{.name = "time", .unit = FieldUnit::time, .meaning = "of the step alone"}, &Step::time_ns}};
//
// Times are nanoseconds in records and in Python ("time_ns"), microseconds in all that is printed
// ("time_us").
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

// Of the numbers that a getter gives. The unit is part of the key.
enum class FieldUnit : std::uint8_t { none, time, bytes, percent, megabytes, gb_per_s, tflop_per_s };

struct UnitForms {
  std::string_view name;           // "us", behind titles
  std::string_view suffix;         // of keys that are printed
  std::string_view python_suffix;  // of keys in Python
  double divisor = 1;              // of what is printed
};
const UnitForms& forms_of(FieldUnit unit);

enum class FieldType : std::uint8_t {
  number,
  share,    // 0 to 1
  size,     // a whole number, 0 or more
  integer,  // a whole number
  text,
  yes_no,
  texts  // several
};
std::string_view name_of(FieldType type);

// Where a field shows; several together.
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

// What is known of a field whatever the record.
struct FieldInfo {
  std::string_view name = {};  // without the unit: "bulk_synchronous"
  FieldUnit unit = FieldUnit::none;
  FieldType type = FieldType::number;
  std::string_view meaning = {};  // for who reads the field without having seen the program
  unsigned shows = shown::kEverywhere;
  std::string title = {};        // of the column for people; empty: the name
  std::string_view label = {};   // where there is room for more: "bulk-synchronous tax"; empty: the title
  int decimals = 1;              // for people
  bool nullable = false;         // it may have no value: null
  bool optional = false;         // JSON leaves it out where it has no value
  bool if_any = false;           // tables for people have the column only where it is above 0 somewhere
  std::string_view object = {};  // JSON has it in the object of this key

  std::string key() const;         // "bulk_synchronous_us"
  std::string python_key() const;  // "bulk_synchronous_ns"
  std::string heading() const;     // the title, or the name in words
  std::string label_text() const;
  bool shows_in(unsigned places) const { return (shows & places) != 0; }
};

// The value of a field of one record; monostate: it has none.
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
  // Of a number that there is.
  double number() const { return std::get<double>(value); }
};

template <typename Record>
struct Field : FieldInfo {
  std::function<FieldValue(const Record&)> get;
};

template <typename Record>
using Fields = std::vector<Field<Record>>;

// What a table says of fields that it has from another.
struct Included {
  unsigned shows = shown::kEverywhere;  // at most: those that their own table shows there
  std::string_view object = {};
  std::string_view title_end = {};  // behind their titles
  bool optional = false;            // the whole part may be absent
};

// Some of a table, in this order.
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

// What may not be there: pointers and std::optional.
template <typename T>
concept MayLack = requires(const T& one) {
  !one;
  *one;
};

// Adds the fields of a part of the record; `part` gives it, or a pointer or std::optional where it may lack.
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

// Fields of the same record, shown where their table shows them.
template <typename Record>
void append(Fields<Record>& into, Fields<Record> more) {
  std::move(more.begin(), more.end(), std::back_inserter(into));
}

template <typename Record>
std::vector<FieldInfo> infos_of(const Fields<Record>& fields) {
  return {fields.begin(), fields.end()};
}

}  // namespace tritax
