// The commands of `tritax`, one file each. A command declares its options on the program's CLI::App and
// returns a function that runs it: parse, call the library, print. Its help text is the source of
// docs/cli.md.
//
// Commands on a problem have the options of one workload, given by --workload.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace tritax {
struct Workload;
}

namespace tritax::cli {

// Returns the exit code of the program.
using Run = std::function<int()>;

inline constexpr int kUserErrorExitCode = 2;

Run add_advise(CLI::App& program, const Workload& workload);
Run add_calibrate(CLI::App& program, const Workload& workload);
Run add_check(CLI::App& program, const Workload& workload);
Run add_compare(CLI::App& program, const Workload& workload);
Run add_evaluate(CLI::App& program, const Workload& workload);
Run add_explain(CLI::App& program, const Workload& workload);
Run add_export(CLI::App& program, const Workload& workload);
Run add_import(CLI::App& program, const Workload& workload);
Run add_layer(CLI::App& program, const Workload& workload);
Run add_machines(CLI::App& program, const Workload& workload);
Run add_measure(CLI::App& program, const Workload& workload);
Run add_merge(CLI::App& program, const Workload& workload);
Run add_model(CLI::App& program, const Workload& workload);
Run add_patterns(CLI::App& program, const Workload& workload);
Run add_report(CLI::App& program, const Workload& workload);
Run add_play(CLI::App& program, const Workload& workload);
Run add_reproduce(CLI::App& program, const Workload& workload);
Run add_roofline(CLI::App& program, const Workload& workload);
Run add_scenarios(CLI::App& program, const Workload& workload);
Run add_schedule(CLI::App& program, const Workload& workload);
Run add_simulate(CLI::App& program, const Workload& workload);
Run add_sweep(CLI::App& program, const Workload& workload);
Run add_taxonomy(CLI::App& program, const Workload& workload);
Run add_trace(CLI::App& program, const Workload& workload);
Run add_tune(CLI::App& program, const Workload& workload);
Run add_validate(CLI::App& program, const Workload& workload);

}  // namespace tritax::cli
