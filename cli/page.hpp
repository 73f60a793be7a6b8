// The page of `tritax report`: one HTML file that shows a result in figures, opens from disk, and uses no
// network. The page itself (cli/report_page) is a JavaScript program that reads the JSON embedded in the
// file:
//
//   "schema"     "tritax.report/1"
//   "version", "command"   the exact command that makes the page again
//   "kind"       "advise", "simulate", "layer" or "validate": the command of "result"
//   "title"
//   "result"     the --json output of that command
//   "sentences"  the text below the tables of the command
//   "run"        one run in full (cli/run_detail.hpp); null where there is none
//   "machines"   every machine, as in `tritax machines show --json`, with "compared": the measurements that
//                its predictions were compared with
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/interrupt.hpp"
#include "cli/output.hpp"
#include "model/machine/machine.hpp"
#include "sim/study/explain.hpp"

namespace tritax::cli {

struct PageOptions {
  bool offered = false;  // whether the command is below `tritax report`
  std::optional<std::string> file;
  std::optional<std::string> svg;
  std::optional<std::string> png;
  bool fast = false;
  Inputs inputs() const { return fast ? Inputs::left_out : Inputs::varied; }
};

// Content of a command's page.
struct Page {
  std::string kind;
  std::string title;
  nlohmann::ordered_json result;
  std::vector<std::string> sentences = {};
  nlohmann::ordered_json run = {};
  std::vector<Machine> machines;
  std::string figure;  // the figure of --svg and --png
};

// Remembers the words of the command line, program name first.
void remember_command(int argc, const char* const* argv);

// -o, --svg and --png for a command below `report`; no options elsewhere. Adds --fast where a page may show a
// run in full.
enum class PageShows : std::uint8_t { answers, answers_and_run };
void add_page_options(CLI::App& command, PageOptions& options, PageShows shows);

// The files of a page, opened before the work starts.
class PageOutput {
 public:
  // Throws UserError when a file cannot be written, when `report` has no output file, and when no program can
  // draw a requested PNG.
  explicit PageOutput(const PageOptions& options);

  bool wanted() const { return options_.offered; }

  // The flag of an output on standard output, for Outputs; "" without one.
  std::string taken_by() const;

  // Makes the page and writes it, where one is requested; not for interrupted work. Throws UserError when
  // that fails.
  void write(const std::function<Page()>& make, const InterruptibleWork& work, const Outputs& outputs);

 private:
  void write(const Page& page, const Outputs& outputs);

  PageOptions options_;
  std::optional<OutputFile> file_;
  std::optional<OutputFile> svg_;
  std::optional<OutputFile> png_;
};

// The whole HTML document.
std::string page_html(const Page& page);

}  // namespace tritax::cli
