#include "cli/result_tables.hpp"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/account_fields.hpp"
#include "sim/run_fields.hpp"
#include "sim/study/layer_fields.hpp"
#include "sim/study/message_rates.hpp"
#include "sim/study/ranked.hpp"
#include "sim/study/validate.hpp"
#include "sim/study/verdicts.hpp"

namespace tritax::cli {

using nlohmann::ordered_json;

std::vector<ResultTable> result_tables() {
  return {
      {"account", "the time along the critical path, in parts that sum to it", infos_of(account_fields())},
      {"taxes", "the three taxes along the critical path", infos_of(tax_fields())},
      {"savings", "what a run would save without each tax", infos_of(savings_fields())},
      {"candidate", "the best candidate of one pattern, of tritax advise", infos_of(candidate_fields())},
      {"taxonomy", "the taxes of one pattern, of tritax taxonomy", infos_of(taxonomy_fields())},
      {"answered", "the answer to a question as a whole, of tritax advise and tritax taxonomy",
       infos_of(answered_fields())},
      {"library_form", "the library in another form, of tritax advise", infos_of(library_form_fields())},
      {"class_verdict", "the verdict for another kernel class, of tritax advise",
       infos_of(class_verdict_fields())},
      {"layer_step", "one product of a layer, of tritax layer", infos_of(layer_step_fields())},
      {"layer_sum", "the products of a layer or a model together, of tritax layer",
       infos_of(layer_sum_fields())},
      {"verdict", "which of two ways is faster, of tritax reproduce", infos_of(verdict_fields())},
      {"score", "how many verdicts are right, of tritax reproduce", infos_of(score_fields())},
      {"validation", "predictions beside measurements in all, of tritax validate",
       infos_of(validation_fields())},
      {"message", "the bandwidths of a collective alone, of tritax simulate", infos_of(message_fields())},
      {"run", "a simulated run, of tritax simulate", infos_of(run_fields())},
      {"rank", "one GPU of a run, in JSON and Python", infos_of(rank_fields())},
      {"gpu", "one GPU of a run, in tables and CSV", infos_of(gpu_line_fields())},
  };
}

ordered_json json_of(const ResultTable& table) {
  constexpr std::array<std::pair<unsigned, const char*>, 6> kPlaces{{{shown::kText, "text"},
                                                                     {shown::kCsv, "csv"},
                                                                     {shown::kJson, "json"},
                                                                     {shown::kRow, "row"},
                                                                     {shown::kProperty, "property"},
                                                                     {shown::kSweep, "sweep"}}};
  ordered_json fields = ordered_json::array();
  for (const FieldInfo& field : table.fields) {
    ordered_json shows = ordered_json::array();
    for (const auto& [place, name] : kPlaces) {
      if (field.shows_in(place)) shows.push_back(name);
    }
    fields.push_back({{"name", field.name},
                      {"key", field.key()},
                      {"python", field.python_key()},
                      {"unit", forms_of(field.unit).name},
                      {"type", name_of(field.type)},
                      {"meaning", field.meaning},
                      {"title", field.heading()},
                      {"label", field.label_text()},
                      {"decimals", field.decimals},
                      {"shows", std::move(shows)},
                      {"object", field.object},
                      {"nullable", field.nullable},
                      {"optional", field.optional},
                      {"if_any", field.if_any}});
  }
  return {{"record", table.record}, {"of", table.of}, {"fields", std::move(fields)}};
}

}  // namespace tritax::cli
