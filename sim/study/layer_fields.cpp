#include "sim/study/layer_fields.hpp"

#include <fmt/format.h>

#include "sim/account_fields.hpp"

namespace tritax {

namespace {

// The account of a whole layer has no barriers of a harness.
Fields<TimeAccount> layer_account() {
  return pick(summary_fields(), {"useful", "launch", "bulk_synchronous", "locality", "contention"});
}

// A field of the answer; no value without an answer.
template <typename Get>
auto answered(const Get& get) {
  return [get](const LayerStep& one) { return one.answer == nullptr ? FieldValue() : FieldValue(get(one)); };
}

Fields<LayerStep> sizes() {
  return {
      {{.name = "step",
        .type = FieldType::text,
        .meaning = "which product of the layer",
        .shows = shown::kColumns | shown::kJson | shown::kSweep},
       [](const LayerStep& one) { return one.step->name; }},
      {{.name = "layers",
        .type = FieldType::size,
        .meaning = "layers of the model that have the product",
        .shows = shown::kColumns | shown::kJson},
       [](const LayerStep& one) { return one.step->layers; }},
      {{.name = "product",
        .type = FieldType::text,
        .meaning = "sizes on one GPU: rows x columns x depth",
        .shows = shown::kColumns,
        .title = "product of a GPU"},
       [](const LayerStep& one) {
         return fmt::format("{}x{}x{}", one.step->rows, one.step->columns, one.step->depth);
       }},
      {{.name = "rows",
        .type = FieldType::size,
        .meaning = "of the product of one GPU",
        .shows = shown::kJson},
       [](const LayerStep& one) { return one.step->rows; }},
      {{.name = "columns",
        .type = FieldType::size,
        .meaning = "of the product of one GPU",
        .shows = shown::kJson},
       [](const LayerStep& one) { return one.step->columns; }},
      {{.name = "depth",
        .type = FieldType::size,
        .meaning = "over which the product of one GPU sums",
        .shows = shown::kJson},
       [](const LayerStep& one) { return one.step->depth; }},
      {{.name = "computed_by",
        .type = FieldType::text,
        .meaning = "the workload that has this product with its communication",
        .shows = shown::kColumns,
        .title = "workload"},
       [](const LayerStep& one) { return one.problem->workload->name; }},
  };
}

Fields<LayerStep> best_of_step() {
  return {
      {{.name = "best_pattern",
        .type = FieldType::text,
        .meaning = "the fastest",
        .shows = shown::kColumns,
        .nullable = true},
       answered([](const LayerStep& one) { return one.answer->best().pattern->name; })},
      {{.name = "pattern", .type = FieldType::text, .meaning = "the fastest", .shows = shown::kSweep},
       answered([](const LayerStep& one) { return one.answer->best().pattern->name; })},
      {{.name = "time",
        .unit = FieldUnit::time,
        .meaning = "of the best pattern",
        .shows = shown::kColumns | shown::kJson | shown::kSweep,
        .optional = true},
       answered([](const LayerStep& one) { return one.answer->best().time_ns; })},
  };
}

Fields<LayerStep> verdict_of_step() {
  return {
      {{.name = "libraries",
        .unit = FieldUnit::time,
        .meaning = "time of the fastest pattern that stands for a vendor's libraries",
        .shows = shown::kColumns | shown::kJson | shown::kSweep,
        .optional = true},
       answered([](const LayerStep& one) { return one.answer->libraries_ns; })},
      {{.name = "chosen",
        .unit = FieldUnit::time,
        .meaning = "time of the best pattern where it pays, else of the libraries",
        .shows = shown::kJson,
        .optional = true},
       answered([](const LayerStep& one) { return one.answer->chosen_ns(); })},
      {{.name = "speedup",
        .meaning = "of the best pattern over the libraries",
        .shows = shown::kColumns,
        .decimals = 2,
        .nullable = true},
       answered([](const LayerStep& one) { return one.answer->libraries_ns / one.answer->best().time_ns; })},
      {{.name = "verdict",
        .type = FieldType::text,
        .meaning = "whether an own kernel pays: pays, may pay, tie, leave it, unknown or nothing to fuse",
        .shows = shown::kColumns | shown::kJson | shown::kSweep,
        .title = "fuse?",
        .optional = true},
       answered([](const LayerStep& one) { return name_of(one.answer->verdict); })},
      {{.name = "best_knobs",
        .type = FieldType::text,
        .meaning = "of the best pattern, in words",
        .shows = shown::kColumns,
        .title = "knobs",
        .nullable = true},
       answered([](const LayerStep& one) {
         return describe(*one.answer->best().pattern, one.answer->best().knobs);
       })},
  };
}

const TimeAccount* account_of_step(const LayerStep& one) {
  return one.answer == nullptr ? nullptr : &one.answer->best().taxes.account;
}

const TimeAccount& account_of_sum(const NamedLayerSum& one) { return one.sum.account; }

Fields<NamedLayerSum> times_of_sum() {
  return {
      {{.name = "sum",
        .type = FieldType::text,
        .meaning = "the steps that are summed",
        .shows = shown::kText | shown::kJson,
        .title = "sum of"},
       &NamedLayerSum::name},
      {{.name = "layers",
        .type = FieldType::size,
        .meaning = "layers that are summed",
        .shows = shown::kText | shown::kJson},
       &NamedLayerSum::layers},
      {{.name = "libraries",
        .unit = FieldUnit::time,
        .meaning = "time with the vendor's libraries alone",
        .shows = shown::kText | shown::kJson | shown::kSweep},
       [](const NamedLayerSum& one) { return one.sum.libraries_ns; }},
      {{.name = "chosen",
        .unit = FieldUnit::time,
        .meaning = "time with the best patterns where they pay",
        .shows = shown::kText | shown::kJson | shown::kSweep,
        .title = "fused where it pays"},
       [](const NamedLayerSum& one) { return one.sum.chosen_ns; }},
      {{.name = "speedup",
        .meaning = "speedup of the chosen patterns over the libraries",
        .shows = shown::kText | shown::kSweep,
        .decimals = 2},
       [](const NamedLayerSum& one) { return one.sum.libraries_ns / one.sum.chosen_ns; }},
      {{.name = "best",
        .unit = FieldUnit::time,
        .meaning = "time with the best pattern of every step",
        .shows = shown::kText | shown::kJson | shown::kSweep,
        .title = "best patterns"},
       [](const NamedLayerSum& one) { return one.sum.best_ns; }},
  };
}

}  // namespace

const Fields<LayerStep>& layer_step_fields() {
  static const Fields<LayerStep> fields = [] {
    Fields<LayerStep> all = sizes();
    append(all, best_of_step());
    include(all, layer_account(), account_of_step, {.shows = shown::kColumns});
    append(all, verdict_of_step());
    include(all, layer_account(), account_of_step,
            {.shows = shown::kJson, .object = "taxes", .optional = true});
    return all;
  }();
  return fields;
}

const Fields<NamedLayerSum>& layer_sum_fields() {
  static const Fields<NamedLayerSum> fields = [] {
    Fields<NamedLayerSum> all = times_of_sum();
    include(all, layer_account(), account_of_sum, {.shows = shown::kText});
    include(all, layer_account(), account_of_sum, {.shows = shown::kJson, .object = "taxes"});
    return all;
  }();
  return fields;
}

}  // namespace tritax
