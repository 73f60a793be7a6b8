// Reads and writes the fields of a machine by key.
#include <fmt/format.h>

#include <tuple>
#include <type_traits>
#include <variant>

#include "model/core/error.hpp"
#include "model/machine/parameters.hpp"

namespace tritax {

namespace {

// The dtype of a key: fp16 for "gpu.matrix.fp16.load_clock".
std::size_t dtype_of(std::string_view key) {
  for (std::size_t i = 0; i < kDTypeNames.size(); ++i) {
    if (key.find(fmt::format(".{}.", kDTypeNames[i])) != std::string_view::npos) return i;
  }
  return 0;
}

template <typename AnyMachine, typename Visit>
void visit_field(AnyMachine& machine, std::string_view key, const Visit& visit) {
  const ParameterSpec* spec = find_parameter_spec(key);
  TRITAX_ASSERT(spec != nullptr, "no such parameter");
  auto parts = std::tie(machine.gpu, machine.gpu.matrix[dtype_of(key)], machine.interpreter, machine.host,
                        machine.copy_engine, machine.library, machine.fabric, machine.network);
  std::visit(
      [&]<typename Field, typename Part>(Field Part::*member) {
        using Reference = std::conditional_t<std::is_const_v<AnyMachine>, const Part&, Part&>;
        visit(std::get<Reference>(parts).*member);
      },
      spec->target);
}

}  // namespace

double parameter_value(const Machine& machine, std::string_view key) {
  double value = 0;
  visit_field(machine, key, [&](const auto& field) { value = static_cast<double>(field); });
  return value;
}

void set_parameter_value(Machine& machine, std::string_view key, double value) {
  visit_field(machine, key, [&]<typename Field>(Field& field) { field = static_cast<Field>(value); });
}

}  // namespace tritax
