#include "sim/study/layer_fields.hpp"

#include <fmt/format.h>

#include "sim/account_fields.hpp"

namespace tritax {

namespace {

using shown::kColumns;
using shown::kJson;
using shown::kSweep;
using shown::kText;

// The account of a whole layer has no barriers of a harness.
Fields<TimeAccount> layer_account() {
  return pick(summary_fields(), {"useful", "launch", "bulk_synchronous", "locality", "contention"});
}

// "pays, uncertain library".
std::string verdict_in_words(const LayerStep& one) {
  std::string words(name_of(one.answer->verdict));
  for (const Candidate& candidate : one.answer->advice.candidates) {
    if (doubt_of(one.answer->problem, candidate.pattern->name, *one.machine) == nullptr) continue;
    words += fmt::format(", uncertain {}", candidate.pattern->name);
  }
  return words;
}

// A field of the answer, where there is one.
template <typename Get>
auto answered(const Get& get) {
  return [get](const LayerStep& one) { return one.answer == nullptr ? FieldValue() : FieldValue(get(one)); };
}

Fields<LayerStep> sizes() {
  return {
      {{.name = "step",
        .type = FieldType::text,
        .meaning = "which product of the layer",
        .shows = kColumns | kJson | kSweep},
       [](const LayerStep& one) { return one.step->name; }},
      {{.name = "layers",
        .type = FieldType::size,
        .meaning = "of the model that have it",
        .shows = kColumns | kJson},
       [](const LayerStep& one) { return one.step->layers; }},
      {{.name = "product",
        .type = FieldType::text,
        .meaning = "its sizes on one GPU: rows x columns x depth",
        .shows = kColumns,
        .title = "product of a GPU"},
       [](const LayerStep& one) {
         return fmt::format("{}x{}x{}", one.step->rows, one.step->columns, one.step->depth);
       }},
      {{.name = "rows", .type = FieldType::size, .meaning = "of the product of one GPU", .shows = kJson},
       [](const LayerStep& one) { return one.step->rows; }},
      {{.name = "columns", .type = FieldType::size, .meaning = "of the product of one GPU", .shows = kJson},
       [](const LayerStep& one) { return one.step->columns; }},
      {{.name = "depth",
        .type = FieldType::size,
        .meaning = "over which the product of one GPU sums",
        .shows = kJson},
       [](const LayerStep& one) { return one.step->depth; }},
      {{.name = "computed_by",
        .type = FieldType::text,
        .meaning = "the workload that has this product with its communication",
        .shows = kColumns,
        .title = "workload"},
       [](const LayerStep& one) { return one.problem->workload->name; }},
  };
}

Fields<LayerStep> best_of_step() {
  return {
      {{.name = "best_pattern",
        .type = FieldType::text,
        .meaning = "the fastest",
        .shows = kColumns,
        .nullable = true},
       answered([](const LayerStep& one) { return one.answer->best().pattern->name; })},
      {{.name = "pattern", .type = FieldType::text, .meaning = "the fastest", .shows = kSweep},
       answered([](const LayerStep& one) { return one.answer->best().pattern->name; })},
      {{.name = "time",
        .unit = Unit::time,
        .meaning = "of the best pattern",
        .shows = kColumns | kJson | kSweep,
        .optional = true},
       answered([](const LayerStep& one) { return one.answer->best().time_ns; })},
  };
}

Fields<LayerStep> verdict_of_step() {
  return {
      {{.name = "libraries",
        .unit = Unit::time,
        .meaning = "the fastest of what stands for a vendor's libraries",
        .shows = kColumns | kJson | kSweep,
        .optional = true},
       answered([](const LayerStep& one) { return one.answer->libraries_ns; })},
      {{.name = "chosen",
        .unit = Unit::time,
        .meaning = "of the best pattern where it pays, else of the libraries",
        .shows = kJson,
        .optional = true},
       answered([](const LayerStep& one) { return one.answer->chosen_ns(); })},
      {{.name = "speedup",
        .meaning = "of the best pattern over the libraries",
        .shows = kColumns,
        .decimals = 2,
        .nullable = true},
       answered([](const LayerStep& one) { return one.answer->libraries_ns / one.answer->best().time_ns; })},
      {{.name = "verdict",
        .type = FieldType::text,
        .meaning = "whether an own kernel pays, and whose time is uncertain",
        .shows = kColumns,
        .title = "fuse?",
        .nullable = true},
       answered(verdict_in_words)},
      {{.name = "verdict",
        .type = FieldType::text,
        .meaning = "whether an own kernel pays: pays, tie, libraries, or alone where nothing is communicated",
        .shows = kJson | kSweep,
        .optional = true},
       answered([](const LayerStep& one) { return name_of(one.answer->verdict); })},
      {{.name = "best_knobs",
        .type = FieldType::text,
        .meaning = "of the best pattern, in words",
        .shows = kColumns,
        .title = "knobs",
        .nullable = true},
       answered([](const LayerStep& one) {
         return describe(*one.answer->best().pattern, one.answer->best().knobs);
       })},
  };
}

const TimeAccount* account_of(const LayerStep& one) {
  return one.answer == nullptr ? nullptr : &one.answer->best().taxes.account;
}

const TimeAccount& account_of_sum(const NamedLayerSum& one) { return one.sum.account; }

Fields<NamedLayerSum> times_of_sum() {
  return {
      {{.name = "sum",
        .type = FieldType::text,
        .meaning = "of which steps",
        .shows = kText | kJson,
        .title = "sum of"},
       &NamedLayerSum::name},
      {{.name = "layers", .type = FieldType::size, .meaning = "that are summed", .shows = kText | kJson},
       &NamedLayerSum::layers},
      {{.name = "libraries",
        .unit = Unit::time,
        .meaning = "with the vendor's libraries alone",
        .shows = kText | kJson | kSweep},
       [](const NamedLayerSum& one) { return one.sum.libraries_ns; }},
      {{.name = "chosen",
        .unit = Unit::time,
        .meaning = "with the best patterns where they pay",
        .shows = kText | kJson | kSweep,
        .title = "fused where it pays"},
       [](const NamedLayerSum& one) { return one.sum.chosen_ns; }},
      {{.name = "speedup",
        .meaning = "of what is chosen over the libraries",
        .shows = kText | kSweep,
        .decimals = 2},
       [](const NamedLayerSum& one) { return one.sum.libraries_ns / one.sum.chosen_ns; }},
      {{.name = "best",
        .unit = Unit::time,
        .meaning = "with the best pattern of every step",
        .shows = kText | kJson | kSweep,
        .title = "best patterns"},
       [](const NamedLayerSum& one) { return one.sum.best_ns; }},
  };
}

}  // namespace

const Fields<LayerStep>& layer_step_fields() {
  static const Fields<LayerStep> fields = [] {
    Fields<LayerStep> all = sizes();
    append(all, best_of_step());
    include(all, layer_account(), account_of, {.shows = kColumns});
    append(all, verdict_of_step());
    include(all, layer_account(), account_of, {.shows = kJson, .object = "taxes", .optional = true});
    return all;
  }();
  return fields;
}

const Fields<NamedLayerSum>& layer_sum_fields() {
  static const Fields<NamedLayerSum> fields = [] {
    Fields<NamedLayerSum> all = times_of_sum();
    include(all, layer_account(), account_of_sum, {.shows = kText});
    include(all, layer_account(), account_of_sum, {.shows = kJson, .object = "taxes"});
    return all;
  }();
  return fields;
}

}  // namespace tritax
