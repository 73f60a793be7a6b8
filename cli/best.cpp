#include "cli/best.hpp"

#include <optional>

namespace tritax::cli {

namespace {

std::optional<Ranked> first_ranked(const Best& best) {
  if (best.found->empty()) return std::nullopt;
  return Ranked{&best.found->front(), &best.assessment, 0};
}

FieldValue best_pattern_of(const Best& best) {
  if (!best.found->empty()) return best.found->front().pattern->name;
  return best.skipped ? "not searched" : "none: see below";
}

const Candidate* second_of(const Best& best) { return best.found->size() > 1 ? &(*best.found)[1] : nullptr; }

FieldValue slower_by(const Best& best) {
  const Candidate* second = second_of(best);
  return second == nullptr ? FieldValue() : 100 * (second->time_ns / best.found->front().time_ns - 1);
}

}  // namespace

Fields<Best> best_fields(const Fields<Ranked>& times, std::string (*mark)(const Best&)) {
  Fields<Best> fields{
      {{.name = "pattern", .type = FieldType::text, .shows = shown::kText, .title = "best pattern"},
       best_pattern_of}};
  include(fields, times, first_ranked, {.shows = shown::kText});
  append<Best>(fields,
               {{{.name = "second", .type = FieldType::text, .shows = shown::kText},
                 [](const Best& best) {
                   const Candidate* second = second_of(best);
                   return second == nullptr ? FieldValue() : second->pattern->name;
                 }},
                {{.name = "second", .unit = FieldUnit::percent, .shows = shown::kText, .title = "slower by"},
                 slower_by},
                {{.name = "mark", .type = FieldType::text, .shows = shown::kText},
                 [mark](const Best& best) { return best.found->empty() ? FieldValue() : mark(best); }}});
  Fields<Ranked> knobs = pick(candidate_fields(), {"knobs"});
  knobs.front().title = "knobs of the best";
  include(fields, knobs, first_ranked, {.shows = shown::kText});
  return fields;
}

}  // namespace tritax::cli
