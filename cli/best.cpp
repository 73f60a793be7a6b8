#include "cli/best.hpp"

#include <optional>

namespace tritax::cli {

namespace {

using shown::kText;

std::optional<Ranked> first_of(const Best& best) {
  if (best.found->empty()) return std::nullopt;
  return Ranked{&best.found->front(), &best.judgement, 0};
}

FieldValue pattern_of(const Best& best) {
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
      {{.name = "pattern", .type = FieldType::text, .shows = kText, .title = "best pattern"}, pattern_of}};
  include(fields, times, first_of, {.shows = kText});
  append<Best>(fields,
               {{{.name = "second", .type = FieldType::text, .shows = kText},
                 [](const Best& best) {
                   const Candidate* second = second_of(best);
                   return second == nullptr ? FieldValue() : second->pattern->name;
                 }},
                {{.name = "second", .unit = Unit::percent, .shows = kText, .title = "slower by"}, slower_by},
                {{.name = "mark", .type = FieldType::text, .shows = kText},
                 [mark](const Best& best) { return best.found->empty() ? FieldValue() : mark(best); }}});
  Fields<Ranked> knobs = pick(candidate_fields(), {"knobs"});
  knobs.front().title = "knobs of the best";
  include(fields, knobs, first_of, {.shows = kText});
  return fields;
}

}  // namespace tritax::cli
