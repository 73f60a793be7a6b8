// The `tritax` program: finds the command, runs it, turns errors into messages and exit codes.
//
//   0    done
//   1    a defect of Tritax, including a failed assertion (interrupt.hpp)
//   2    a user error; one line on standard error explains it
//   130  interrupted
//   141  done, but the reader of standard output had gone

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/commands.hpp"
#include "cli/interrupt.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/page.hpp"
#include "cli/program.hpp"
#include "cli/terminal.hpp"
#include "model/core/command_line/parse_error.hpp"
#include "model/core/error.hpp"
#include "model/core/printable.hpp"

namespace tritax::cli {
namespace {

// Empty values come mostly from unset shell variables; the command would do something else without the value.
void refuse_empty_arguments(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const bool named = argument.starts_with("--") && argument.find('=') == argument.size() - 1;
    if (!argument.empty() && !named) continue;
    std::string what = fmt::format("argument {}", i);
    if (named) {
      what = argument.substr(0, argument.size() - 1);
    } else if (argv[i - 1][0] == '-') {
      what = argv[i - 1];
    }
    throw UserError(fmt::format("{}: the value is empty; give one, or leave it out", what));
  }
}

// Values of all options but outputs: each may name a file that is read.
std::vector<std::string> input_values(const CLI::App& program) {
  std::vector<std::string> values;
  for (const CLI::App* app = &program; app != nullptr;
       app = app->get_subcommands().empty() ? nullptr : app->get_subcommands().front()) {
    for (const CLI::Option* option : app->get_options()) {
      if (option->get_group() == kOutputGroup) continue;
      values.insert(values.end(), option->results().begin(), option->results().end());
    }
  }
  return values;
}

int run(int argc, char** argv) {
  const Program all = program_of(workload_of_command_line(argc, argv));
  CLI::App& program = *all.app;
  refuse_empty_arguments(argc, argv);
  try {
    program.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    write_standard_output(program.help());
    return 0;
  } catch (const CLI::CallForVersion& version) {
    write_standard_output(fmt::format("{}\n", version.what()));
    return 0;
  } catch (const CLI::ParseError& error) {
    tell(parsing::describe_parse_error(program, error) + '\n');
    return kUserErrorExitCode;
  }
  if (const std::string missing = parsing::describe_missing_value(program); !missing.empty()) {
    tell(missing + '\n');
    return kUserErrorExitCode;
  }
  remember_inputs(input_values(program));
  remember_command(argc, argv);
  for (const auto& [app, command] : all.commands) {
    if (app->parsed()) {
      return command();
    }
  }
  TRITAX_ASSERT(false, "the parser accepted a command line without a command");
}

// Without this, a file could get the number of a closed standard stream, and then the text for the stream.
void fill_closed_streams() {
  if (fcntl(STDOUT_FILENO, F_GETFD) < 0) note_closed_standard_output();
  int descriptor = 0;
  while (descriptor >= 0 && descriptor <= 2) descriptor = open("/dev/null", O_RDWR);
  if (descriptor > 2) close(descriptor);
}

}  // namespace
}  // namespace tritax::cli

namespace tritax::cli {
namespace {

// Whether the error is oneTBB's lack of a thread, which only its text tells.
bool lacks_threads(const std::exception& error) {
  return dynamic_cast<const std::system_error*>(&error) != nullptr ||
         std::string_view(error.what()).find("pthread_create") != std::string_view::npos;
}

// Prints the error; returns the exit code.
int tell_failure(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const UserError& error) {
    tell(fmt::format("tritax: {}\n", error.what()));
    return kUserErrorExitCode;
  } catch (const std::bad_alloc&) {
    tell(
        "tritax: out of memory; give a smaller problem, larger tiles or fewer threads (--threads), or raise "
        "the "
        "limit (ulimit -v)\n");
    return kUserErrorExitCode;
  } catch (const std::exception& error) {
    if (lacks_threads(error)) {
      tell(fmt::format(
          "tritax: the system refused: {}; give fewer threads (--threads), or raise the limits of memory and "
          "threads (ulimit -v, -u)\n",
          without_controls(error.what())));
      return kUserErrorExitCode;
    }
    tell(fmt::format("tritax: internal error: {}. Please report this.\n", without_controls(error.what())));
    return kDefectExitCode;
  }
}

// Handles exceptions of oneTBB's threads that nothing can catch, for example without memory for another
// thread. Only the first one is reported.
[[noreturn]] void on_terminate() {
  static std::atomic<bool> is_told{false};
  const std::exception_ptr failure = std::current_exception();
  int code = kDefectExitCode;
  if (!is_told.exchange(true)) {
    if (failure) code = tell_failure(failure);
    leave_at_once(code);
  }
  for (;;) pause();
}

}  // namespace
}  // namespace tritax::cli

int main(int argc, char** argv) {
  namespace cli = tritax::cli;
  cli::fill_closed_streams();
  cli::install_interrupt_handler();
  std::set_terminate(cli::on_terminate);
  try {
    const int code = cli::run(argc, argv);
    cli::publish_outputs();
    if (code == 0 && cli::standard_output_was_missed()) {
      throw tritax::UserError(
          "standard output: cannot write: it is closed; open it, or send it to /dev/null (files that were "
          "asked for are written)");
    }
    return code == 0 && cli::standard_output_was_cut() ? cli::kNobodyReadsExitCode : code;
  } catch (...) {
    const int code = cli::tell_failure(std::current_exception());
    cli::discard_outputs();
    return code;
  }
}
