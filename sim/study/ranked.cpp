#include "sim/study/ranked.hpp"

#include <fmt/format.h>

#include "sim/account_fields.hpp"
#include "sim/study/message_rates.hpp"

namespace tritax {

namespace {

const TimeAccount& account_of_candidate(const Ranked& one) { return one->taxes.account; }

FieldValue uncertainty_of(const Ranked& one) {
  const Doubt* doubt = one.assessment->doubts[one.place];
  return doubt == nullptr ? FieldValue() : FieldValue(doubt->note);
}

FieldValue parts_of_k_of(const Ranked& one) {
  return one->pattern->own_choice == nullptr ? FieldValue() : FieldValue(one->rounds.parts);
}

FieldValue mark_of_candidate(const Ranked& one) {
  if (one->at_least_ns) return fmt::format("≥ {:.1f} us, not tuned", *one->at_least_ns / 1e3);
  return mark_of(*one.assessment, one.place);
}

Fields<Ranked> rank_and_time() {
  return {
      {{.name = "rank",
        .type = FieldType::size,
        .meaning = "place in the ranking; 1 is the fastest",
        .shows = shown::kColumns | shown::kPython},
       [](const Ranked& one) { return one.place + 1; }},
      {{.name = "pattern",
        .type = FieldType::text,
        .meaning = "pattern of this candidate, the best that was found"},
       [](const Ranked& one) { return one->pattern->name; }},
      {{.name = "time", .unit = FieldUnit::time, .meaning = "predicted time of kernels and host calls"},
       [](const Ranked& one) { return one->time_ns; }},
      {{.name = "speedup",
        .meaning = "speedup over the workload's baseline; none where the baseline was not simulated",
        .decimals = 2,
        .nullable = true},
       [](const Ranked& one) { return one->speedup; }},
      {{.name = "tie_with_rank",
        .type = FieldType::size,
        .meaning = "the first rank within the prediction band; its own rank: no tie",
        .shows = shown::kJson | shown::kPython},
       [](const Ranked& one) { return one.assessment->tied_with[one.place]; }},
      {{.name = "uncertain",
        .type = FieldType::text,
        .meaning = "known problem of the predicted time",
        .shows = shown::kJson | shown::kPython,
        .nullable = true},
       uncertainty_of},
  };
}

Fields<Ranked> bounds_and_knobs() {
  return {
      {{.name = "kernels",
        .unit = FieldUnit::time,
        .meaning = "from the start of the first workgroup to the end of the last",
        .shows = shown::kJson | shown::kProperty},
       [](const Ranked& one) { return one->result.kernels_ns; }},
      {{.name = "lower_bound",
        .unit = FieldUnit::time,
        .meaning = "lower bound for all schedules with these knobs",
        .shows = shown::kJson | shown::kProperty},
       [](const Ranked& one) { return one->bound.total_ns; }},
      {{.name = "tuned",
        .type = FieldType::yes_no,
        .meaning = "no: its search was stopped far behind; its knobs are the best of a few",
        .shows = shown::kJson | shown::kPython},
       [](const Ranked& one) { return !one->at_least_ns; }},
      {{.name = "at_least",
        .unit = FieldUnit::time,
        .meaning = "least time of the candidates that were tried; none for a tuned pattern",
        .shows = shown::kJson | shown::kPython,
        .nullable = true},
       [](const Ranked& one) { return one->at_least_ns; }},
      {{.name = "parts_of_k",
        .type = FieldType::size,
        .meaning = "parts into which it splits K; only for patterns that choose themselves",
        .shows = shown::kJson,
        .optional = true},
       parts_of_k_of},
      {{.name = "mark",
        .type = FieldType::text,
        .meaning = "whether the candidate ties with a faster one, is uncertain, or was not tuned",
        .shows = shown::kColumns},
       mark_of_candidate},
      {{.name = "knobs",
        .type = FieldType::text,
        .meaning = "the best knobs that were found, in words",
        .shows = shown::kColumns | shown::kRow},
       [](const Ranked& one) { return describe(*one->pattern, one->knobs); }},
  };
}

}  // namespace

std::vector<Ranked> ranked(const std::vector<Candidate>& candidates, const Assessment& assessment) {
  std::vector<Ranked> all;
  for (const Candidate& one : candidates) all.push_back({&one, &assessment, all.size()});
  return all;
}

std::string mark_of(const Assessment& assessment, std::size_t place) {
  const int first = assessment.tied_with[place];
  std::string mark = first == static_cast<int>(place) + 1 ? "" : fmt::format("tie with {}", first);
  if (assessment.doubts[place] != nullptr) mark += mark.empty() ? "uncertain" : ", uncertain";
  return mark;
}

const Fields<Ranked>& candidate_fields() {
  static const Fields<Ranked> fields = [] {
    Fields<Ranked> all = rank_and_time();
    include(all, tax_fields(), account_of_candidate, {.shows = shown::kColumns});
    include(all, pick(account_fields(), {"harness"}), account_of_candidate, {.shows = shown::kColumns});
    include(all, tax_fields(), account_of_candidate, {.shows = shown::kJson, .object = "taxes"});
    include(all, account_fields(), account_of_candidate, {.shows = shown::kJson, .object = "critical_path"});
    include(all, account_fields(), account_of_candidate, {.shows = shown::kRow});
    include(all, savings_fields(), [](const Ranked& one) { return &one->taxes; },
            {.shows = shown::kJson, .object = "counterfactual"});
    include(all, message_fields(), [](const Ranked& one) { return one->message; }, {});
    append(all, bounds_and_knobs());
    return all;
  }();
  return fields;
}

const Fields<Answered>& answered_fields() {
  static const Fields<Answered> fields{
      {{.name = "verdict",
        .type = FieldType::text,
        .meaning = "whether an own kernel pays, as a sentence; empty without two patterns to compare",
        .shows = shown::kJson | shown::kProperty},
       &Answered::sentence},
      {{.name = "decision",
        .type = FieldType::text,
        .meaning = "the same in a word: pays, may pay, tie, leave it, unknown or nothing to fuse",
        .shows = shown::kJson | shown::kProperty},
       [](const Answered& one) { return name_of(one.verdict); }}};
  return fields;
}

std::vector<RankedLibraryForm> library_forms(const std::vector<Candidate>& candidates) {
  std::vector<RankedLibraryForm> all;
  for (const Candidate& candidate : candidates) {
    for (const FormTime& one : candidate.forms) all.push_back({candidate.pattern, one});
  }
  return all;
}

const Fields<RankedLibraryForm>& library_form_fields() {
  static const Fields<RankedLibraryForm> fields{
      {{.name = "pattern",
        .type = FieldType::text,
        .meaning = "the library",
        .shows = shown::kJson | shown::kRow},
       [](const RankedLibraryForm& one) { return one.pattern->name; }},
      {{.name = "form",
        .type = FieldType::text,
        .meaning = "library form",
        .shows = shown::kJson | shown::kRow},
       [](const RankedLibraryForm& one) { return one.form.form; }},
      {{.name = "time",
        .unit = FieldUnit::time,
        .meaning = "predicted time in that form",
        .shows = shown::kJson | shown::kRow},
       [](const RankedLibraryForm& one) { return one.form.time_ns; }}};
  return fields;
}

const Fields<ClassVerdict>& class_verdict_fields() {
  static const Fields<ClassVerdict> fields{
      {{.name = "kernels",
        .type = FieldType::text,
        .meaning = "kernel class of own kernels: vendor or triton",
        .shows = shown::kJson | shown::kRow},
       [](const ClassVerdict& one) { return kKernelClassNames[static_cast<std::size_t>(one.time.kernels)]; }},
      {{.name = "pattern",
        .type = FieldType::text,
        .meaning = "fastest own pattern in that class, of the first three, with the knobs of its row",
        .shows = shown::kJson | shown::kRow},
       [](const ClassVerdict& one) { return one.pattern->name; }},
      {{.name = "time",
        .unit = FieldUnit::time,
        .meaning = "predicted time; a search of that class may find a shorter one",
        .shows = shown::kJson | shown::kRow},
       [](const ClassVerdict& one) { return one.time.time_ns; }},
      {{.name = "decision",
        .type = FieldType::text,
        .meaning = "verdict in that class: may pay, or unknown where only a search of that class can tell",
        .shows = shown::kJson | shown::kRow},
       [](const ClassVerdict& one) { return name_of(one.verdict); }}};
  return fields;
}

const Fields<Ranked>& taxonomy_fields() {
  static const Fields<Ranked> fields = [] {
    Fields<Ranked> all = pick(candidate_fields(), {"pattern", "time"});
    include(all, summary_fields(), account_of_candidate, {.shows = shown::kColumns | shown::kJson});
    append(all, pick(candidate_fields(), {"speedup", "tie_with_rank", "uncertain"}));
    include(all, account_fields(), account_of_candidate, {.shows = shown::kJson, .object = "critical_path"});
    append(all, pick(candidate_fields(), {"mark", "knobs"}));
    return all;
  }();
  return fields;
}

}  // namespace tritax
