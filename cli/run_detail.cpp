#include "cli/run_detail.hpp"

#include <nlohmann/json.hpp>

#include "cli/report.hpp"
#include "cli/terminal.hpp"
#include "model/core/with_place.hpp"
#include "model/machine/topology.hpp"
#include "model/timeline/columns.hpp"

namespace tritax::cli {

namespace {

using nlohmann::ordered_json;

ordered_json inputs_json(const std::vector<Sensitivity>& inputs) {
  ordered_json list = ordered_json::array();
  for (const Sensitivity& input : inputs) {
    ordered_json variations = ordered_json::array();
    for (const Variation& variation : input.variations) {
      variations.push_back({{"value", variation.value}, {"time_us", us(variation.makespan_ns)}});
      if (!variation.obstacle.empty()) {
        variations.back()["obstacle"] = variation.obstacle;
      }
    }
    list.push_back({{"input", input.input},
                    {"value", input.value},
                    {"effect", input.effect},
                    {"variations", std::move(variations)}});
  }
  return list;
}

ordered_json overlaps_json(const std::vector<Overlap>& overlaps, double run_ns) {
  const auto share = [run_ns](double ns) { return run_ns > 0 ? ns / run_ns : 0; };
  ordered_json list = ordered_json::array();
  for (const Overlap& one : overlaps) {
    list.push_back({{"gpu", list.size()},
                    {"computing_us", us(one.computing_ns)},
                    {"communicating_us", us(one.communicating_ns)},
                    {"both_us", us(one.both_ns)},
                    {"idle_us", us(one.idle_ns)},
                    {"hidden", one.hidden()},
                    {"computing", share(one.computing_ns)},
                    {"communicating", share(one.communicating_ns)},
                    {"idle", share(one.idle_ns)},
                    {"idle_by_cause",
                     {{"launch_us", us(one.idle.launch_ns)},
                      {"flag_us", us(one.idle.flag_ns)},
                      {"kernel_us", us(one.idle.kernel_ns)},
                      {"other_us", us(one.idle.other_ns)}}}});
  }
  return list;
}

}  // namespace

ordered_json explanation_json(const RunInput& run_input, const Explanation& explanation) {
  return {{"id", run_input.id},
          {"machine", run_input.machine.name},
          {"time_us", us(explanation.result.makespan_ns)},
          {"sentences", explanation.sentences},
          {"critical_path", json_of(explanation.result.account)},
          {"taxes", json_of(explanation.taxes)},
          {"overlap", overlaps_json(explanation.overlaps, explanation.result.makespan_ns)},
          {"caches", caches_json(explanation.result, buffer_names(run_input.schedule))},
          {"with_effect", inputs_json(explanation.with_effect)},
          {"without_effect", inputs_json(explanation.without_effect)},
          {"not_variable", inputs_json(explanation.not_variable)}};
}

ordered_json run_detail_json(const RunInput& run_input, const SimulationOptions& options, Inputs inputs) {
  return with_place(run_input.place, [&] {
    Progress progress("varying inputs for the page");
    const Explanation explanation = explain(
        run_input.schedule, run_input.machine, run_input.rebuild ? &*run_input.rebuild : nullptr, options,
        [&progress](std::size_t done, std::size_t total) { progress.update(done, total); }, inputs);
    const SimulationResult& result = explanation.result;
    ordered_json json = explanation_json(run_input, explanation);
    json["title"] = run_input.title;
    json["links"] = links_json(result, run_input.machine, run_input.schedule.ranks);
    json["tile_operations"] = result.tile_operations;
    json["timeline"] = timeline_columns(explanation.timeline, run_input.schedule, run_input.machine,
                                        build_topology(run_input.machine, run_input.schedule.ranks));
    return json;
  });
}

}  // namespace tritax::cli
