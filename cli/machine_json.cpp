#include "cli/machine_json.hpp"

#include <nlohmann/json.hpp>

namespace tritax::cli {

std::string provenance_name(Provenance how) {
  return std::string(kProvenanceNames[static_cast<std::size_t>(how)]);
}

nlohmann::ordered_json machine_json(const Machine& machine) {
  nlohmann::ordered_json parameters = nlohmann::ordered_json::array();
  for (const Parameter& parameter : machine.parameters) {
    parameters.push_back({{"key", parameter.key},
                          {"value", parameter.value},
                          {"unit", parameter.unit},
                          {"how", provenance_name(parameter.how)},
                          {"source", parameter.source},
                          {"serves", parameter.serves},
                          {"residual", parameter.residual}});
  }
  return {
      {"schema", "tritax.machine/1"}, {"name", machine.name},     {"description", machine.description},
      {"file", machine.file},         {"nodes", machine.nodes},   {"gpus_per_node", machine.gpus_per_node},
      {"gpu", machine.gpu.name},      {"arch", machine.gpu.arch}, {"parameters", std::move(parameters)}};
}

}  // namespace tritax::cli
