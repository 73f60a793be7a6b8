// Records by their tables of fields (model/core/fields.hpp): rows of frames, and properties of classes. Times
// are in nanoseconds.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <functional>
#include <string>
#include <type_traits>

#include "model/core/fields.hpp"

namespace tritax::python {

// None for a missing value.
inline pybind11::object to_python(const FieldValue& value) {
  return std::visit(
      [](const auto& one) -> pybind11::object {
        if constexpr (std::is_same_v<std::decay_t<decltype(one)>, std::monostate>) {
          return pybind11::none();
        } else {
          return pybind11::cast(one);
        }
      },
      value.value);
}

// Adds the fields that show in rows.
template <typename Record>
void add_row(pybind11::dict& row, const Fields<Record>& fields, const Record& record) {
  for (const Field<Record>& field : fields) {
    if (field.shows_in(shown::kRow)) row[pybind11::str(field.python_key())] = to_python(field.get(record));
  }
}

template <typename Record>
pybind11::dict row_of(const Fields<Record>& fields, const Record& record) {
  pybind11::dict row;
  add_row(row, fields, record);
  return row;
}

template <typename Record>
pybind11::list rows_of(const Fields<Record>& fields, const std::vector<Record>& records) {
  pybind11::list rows;
  for (const Record& record : records) rows.append(row_of(fields, record));
  return rows;
}

// Adds the fields that show as properties; `record_of` gives the record of an object of the class.
template <typename Class, typename Record, typename Get>
void add_properties(pybind11::class_<Class>& type, const Fields<Record>& fields, const Get& record_of) {
  for (const Field<Record>& field : fields) {
    if (!field.shows_in(shown::kProperty)) continue;
    type.def_property_readonly(
        field.python_key().c_str(),
        [get = field.get, record_of](const Class& object) {
          return to_python(get(std::invoke(record_of, object)));
        },
        std::string(field.meaning).c_str());
  }
}

}  // namespace tritax::python
