// The commands of `tritax`, one file each. A command declares its options on the program's CLI::App and
// returns what runs it: parse, call the library, print. Its help text is the source of docs/cli.md.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace tritax::cli {

// Returns the exit code of the program.
using Run = std::function<int()>;

inline constexpr int kUserErrorExitCode = 2;

Run add_advise(CLI::App& program);
Run add_calibrate(CLI::App& program);
Run add_check(CLI::App& program);
Run add_explain(CLI::App& program);
Run add_machines(CLI::App& program);
Run add_measure(CLI::App& program);
Run add_patterns(CLI::App& program);
Run add_reproduce(CLI::App& program);
Run add_schedule(CLI::App& program);
Run add_simulate(CLI::App& program);
Run add_trace(CLI::App& program);
Run add_validate(CLI::App& program);

}  // namespace tritax::cli
