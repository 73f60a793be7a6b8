// JSON form of a tile schedule ("schema": "tritax.schedule/1"): save, load, write by hand.
//
// Fields with default values may be left out; buffers, flags and kernels are referred to by name instead of
// number. Format: docs/schedule-format.md.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "model/schedule/schedule.hpp"

namespace tritax {

std::string schedule_to_json(const Schedule& schedule, bool pretty = false);

// Throws UserError with origin, JSON path, value and what is allowed: syntax errors (with byte and line),
// truncated text, unknown keys (nearest name offered), wrong types, numbers out of range. The result is
// well-formed but not checked (check.hpp).
Schedule schedule_from_json(std::string_view json, const std::string& origin);

// The same for a tree from `parse_json` (json_reader.hpp), as part of another document.
Schedule schedule_from_tree(const nlohmann::json& tree, const std::string& origin);

// Reads a file; throws UserError when it cannot be read.
Schedule read_schedule(const std::string& path);

}  // namespace tritax
