// What may be asked, as JSON, for the form of the page:
//
//   "schema"     "tritax.form/1"
//   "version"
//   "workloads"  [{"name", "title", "summary", "fields": [{"option", "help", "kind", "required", "usual",
//   "example",
//                "low", "high", "names"}]}]; "usual" and "example" are text, null where there is none: the
//                value that a field has when nobody gives one, and that of the first shipped scenario of the
//                workload
//   "machines"   [{"name", "description", "gpus"}]
//   "selectors"  [{"name", "summary"}], the usual one first
#pragma once

#include "cli/commands.hpp"

namespace tritax::cli {

// The command `form`, which writes it to standard output.
Run add_form(CLI::App& program, const Workload& workload);

}  // namespace tritax::cli
