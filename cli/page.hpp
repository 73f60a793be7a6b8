// The page of `tritax report`: one HTML file that shows a result in figures, opens from disk, and asks no
// network for anything. The page itself (cli/report_page) is a program in JavaScript that reads the JSON
// which stands in it:
//
//   "schema"     "tritax.report/1"
//   "version", "command"   the exact command that makes the page again
//   "kind"       "advise", "simulate", "layer" or "validate": what "result" is of
//   "title"
//   "result"     what --json of that command writes
//   "sentences"  what the command says below its tables
//   "run"        one run in full (cli/run_detail.hpp); null where there is none
//   "machines"   every machine, as `tritax machines show --json` has it, with "compared": what its
//                predictions were compared with
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
  bool offered = false;  // the command is one of `tritax report`
  std::optional<std::string> file;
  std::optional<std::string> svg;
  std::optional<std::string> png;
  bool fast = false;
  Inputs inputs() const { return fast ? Inputs::left_out : Inputs::varied; }
};

// What a command says on its page.
struct Page {
  std::string kind;
  std::string title;
  nlohmann::ordered_json result;
  std::vector<std::string> sentences = {};
  nlohmann::ordered_json run = {};
  std::vector<Machine> machines;
  std::string figure;  // the one of --svg and --png
};

// The program was started with these words, its own name first.
void remember_command(int argc, const char* const* argv);

// -o, --svg and --png of a command that stands under `report`; nothing elsewhere. --fast where a page may
// show a run in full.
enum class PageShows : std::uint8_t { answers, answers_and_run };
void add_page_options(CLI::App& command, PageOptions& options, PageShows shows);

// The files of a page, opened before the work starts.
class PageOutput {
 public:
  // Throws UserError when a file cannot be written, when `report` is asked for none, and when a PNG is
  // wanted that nothing here can draw.
  explicit PageOutput(const PageOptions& options);

  bool wanted() const { return options_.offered; }

  // The flag of what goes to standard output, for Outputs; "" where nothing does.
  std::string taken_by() const;

  // Makes the page and writes it, where one is wanted; not of work that was interrupted, before or meanwhile.
  // Throws UserError when that fails.
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
