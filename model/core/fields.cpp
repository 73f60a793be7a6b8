#include "model/core/fields.hpp"

#include <array>

namespace tritax {

namespace {

// In the order of FieldUnit.
constexpr std::array<UnitForms, 7> kUnits{{
    {"", "", "", 1},
    {"us", "_us", "_ns", 1000},
    {"bytes", "_bytes", "_bytes", 1},
    {"%", "_percent", "_percent", 1},
    {"MB", "_megabytes", "_megabytes", 1},
    {"GB/s", "_gb_per_s", "_gb_per_s", 1},
    {"TFLOP/s", "", "", 1},
}};

constexpr std::array<std::string_view, 7> kTypeNames{"number", "share",  "size", "integer",
                                                     "text",   "yes_no", "texts"};

}  // namespace

const UnitForms& forms_of(FieldUnit unit) { return kUnits[static_cast<std::size_t>(unit)]; }

std::string_view name_of(FieldType type) { return kTypeNames[static_cast<std::size_t>(type)]; }

std::string FieldInfo::key() const { return std::string(name).append(forms_of(unit).suffix); }

std::string FieldInfo::python_key() const { return std::string(name).append(forms_of(unit).python_suffix); }

std::string FieldInfo::heading() const {
  if (!title.empty()) return title;
  std::string words(name);
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

std::string FieldInfo::label_text() const { return label.empty() ? heading() : std::string(label); }

}  // namespace tritax
