// Values of tables (model/workload/values.hpp) to and from Python: keyword arguments, dictionaries.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <string_view>
#include <vector>

#include "model/machine/changes.hpp"
#include "model/workload/values.hpp"

namespace tritax::python {

// Sets the given values: whole numbers, names, True and False, and shapes as tuples or "256x256x64"; None
// counts as not given. Throws UserError that begins with `owner` ("gemm-all-scatter") for unknown keys, with
// the nearest offered, and for values that the table does not allow.
void give_all(Values& values, const pybind11::dict& given, const std::string& owner);

// int, str, bool, or a tuple of int; None for a number that only means that no value was given.
pybind11::object to_python(const Values& values, std::size_t spec);

// All values, by name.
pybind11::dict to_dict(const Values& values);

// {"fabric.link": "32GB/s"} and {"gpu.hbm_bandwidth": 0.5}, each possibly None.
std::vector<ParameterChange> changes_of(const pybind11::object& set, const pybind11::object& scale);

// A path, several paths, or None.
std::vector<std::string> paths_of(const pybind11::object& paths);

}  // namespace tritax::python
