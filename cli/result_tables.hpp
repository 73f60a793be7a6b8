// All tables of fields of results (model/core/fields.hpp), for code that describes them: schemas, type stubs,
// pages.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "model/core/fields.hpp"

namespace tritax::cli {

struct ResultTable {
  std::string_view record;  // "candidate"
  std::string_view of;      // meaning of one record
  std::vector<FieldInfo> fields;
};

std::vector<ResultTable> result_tables();

// {"record", "of", "fields": [{"name", "key", "python", "unit", "type", "meaning", "title", "label",
// "decimals", "shows", "object", "nullable", "optional"}]}.
nlohmann::ordered_json json_of(const ResultTable& table);

}  // namespace tritax::cli
