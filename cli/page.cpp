#include "cli/page.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "cli/machine_json.hpp"
#include "cli/repeat_run.hpp"
#include "cli/svg.hpp"
#include "cli/terminal.hpp"
#include "cli/version.hpp"
#include "model/core/error.hpp"
#include "model/core/quantile.hpp"
#include "sim/study/trust.hpp"

namespace tritax::embedded {
std::span<const std::pair<std::string_view, std::string_view>> report_page();
}

namespace tritax::cli {

namespace {

using nlohmann::ordered_json;

std::string command_asked;  // quoted for a shell

std::string_view part_of_page(std::string_view name) {
  for (const auto& [stem, text] : embedded::report_page()) {
    if (stem == name) return text;
  }
  TRITAX_ASSERT(false, "a part of the page is not embedded");
}

// Escapes "<!--" and "</script", which would end the enclosing script.
std::string json_for_script(const ordered_json& value) {
  const std::string text = value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

ordered_json page_json(const Page& page) {
  ordered_json machines = ordered_json::array();
  for (const Machine& machine : page.machines) {
    ordered_json json = machine_json(machine);
    json["title"] = machine.title();
    json["compared"] = ordered_json::array();
    for (const ComparedSet& set : shipped_comparisons()) {
      if (set.gpu != machine.gpu.name) continue;
      json["compared"].push_back({{"workload", set.workload},
                                  {"of", name_of(set.of)},
                                  {"rows", set.count},
                                  {"nine_of_ten", quantile(set.off, kHeld)},
                                  {"problems", problems_text(set.ranges)},
                                  {"source", set.set}});
    }
    machines.push_back(std::move(json));
  }
  return {{"schema", "tritax.report/1"}, {"version", version()}, {"command", command_asked},
          {"kind", page.kind},           {"title", page.title},  {"result", page.result},
          {"sentences", page.sentences}, {"run", page.run},      {"machines", std::move(machines)}};
}

void require_ending(const std::optional<std::string>& file, const std::string& flag,
                    std::string_view ending) {
  if (!file || file->ends_with(ending)) return;
  throw UserError(fmt::format("{}: '{}': give a file name that ends in {}", flag, *file, ending));
}

// Path of the program that draws PNG files; "" if it is not installed.
std::string find_rasteriser() {
  const char* path = std::getenv("PATH");
  std::string_view folders = path == nullptr ? "" : path;
  while (!folders.empty()) {
    const std::size_t end = std::min(folders.find(':'), folders.size());
    const std::string program = std::string(folders.substr(0, end)) + "/rsvg-convert";
    if (access(program.c_str(), X_OK) == 0) return program;
    folders.remove_prefix(std::min(end + 1, folders.size()));
  }
  return "";
}

// A file with the text, which exists as long as this object.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view text) {
    path_ = (std::filesystem::temp_directory_path() / "tritax-figure-XXXXXX").string();
    const int descriptor = mkstemp(path_.data());
    if (descriptor < 0) throw UserError(fmt::format("--png: cannot write '{}'", path_));
    const bool whole = ::write(descriptor, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::close(descriptor);
    if (!whole) throw UserError(fmt::format("--png: cannot write '{}'", path_));
  }
  ~TemporaryFile() { unlink(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string png_of(const std::string& svg) {
  const TemporaryFile file(svg);
  const std::string call =
      fmt::format("{} --zoom 2 {}", shell_word(find_rasteriser()), shell_word(file.path()));
  FILE* pipe = popen(call.c_str(), "r");
  if (pipe == nullptr) throw UserError("--png: cannot start rsvg-convert");
  std::string png;
  std::array<char, 1 << 16> part{};
  while (const std::size_t got = std::fread(part.data(), 1, part.size(), pipe)) png.append(part.data(), got);
  if (pclose(pipe) != 0 || png.empty()) throw UserError("--png: rsvg-convert could not draw the figure");
  return png;
}

}  // namespace

void remember_command(int argc, const char* const* argv) {
  command_asked = "tritax";
  for (int i = 1; i < argc; ++i) command_asked += ' ' + shell_word(argv[i]);
}

void add_page_options(CLI::App& app, PageOptions& options, PageShows shows) {
  if (app.get_parent() == nullptr || app.get_parent()->get_name() != "report") return;
  options.offered = true;
  const auto add = [&app](const std::string& flags, std::optional<std::string>& target,
                          const std::string& help, const std::string& form) {
    app.add_option_function<std::string>(
           flags, [&target](const std::string& file) { target = file; }, help)
        ->type_name(form)
        ->group(kOutputGroup);
  };
  add("-o,--output", options.file, "File for the page; '-': standard output", "FILE.html");
  add("--svg", options.svg, "Write only the first figure", "FILE.svg");
  add("--png", options.png, "Write only the first figure, with rsvg-convert", "FILE.png");
  if (shows == PageShows::answers) return;
  app.add_flag("--fast", options.fast, "Leave out the sensitivity to inputs, which takes some hundred runs");
}

PageOutput::PageOutput(const PageOptions& options) : options_(options) {
  if (!options.offered) return;
  if (!options.file && !options.svg && !options.png) {
    throw UserError("--output: missing; give -o FILE.html, or --svg or --png for its first figure alone");
  }
  require_ending(options.svg, "--svg", ".svg");
  require_ending(options.png, "--png", ".png");
  if (options.png && find_rasteriser().empty()) {
    throw UserError(
        "--png: needs the program rsvg-convert, which is not on PATH; install it (Debian, Ubuntu: "
        "librsvg2-bin), or give --svg");
  }
  if (options.file && !is_standard_output(*options.file)) file_.emplace(*options.file, "--output");
  if (options.svg) svg_.emplace(*options.svg, "--svg");
  if (options.png) png_.emplace(*options.png, "--png");
}

std::string PageOutput::taken_by() const {
  return options_.file && is_standard_output(*options_.file) ? "--output" : "";
}

void PageOutput::write(const std::function<Page()>& make, const InterruptibleWork& work,
                       const Outputs& outputs) {
  if (!wanted()) return;
  if (!work.interrupted()) {
    const Page page = make();
    if (!work.interrupted()) {
      write(page, outputs);
      return;
    }
  }
  tell("tritax: report: nothing is written, since parts of the answer are missing\n");
}

void PageOutput::write(const Page& page, const Outputs& outputs) {
  if (options_.file) {
    const std::string html = page_html(page);
    if (file_) {
      file_->commit(html);
      outputs.print(fmt::format("\n{}: open it in a browser\n", *options_.file));
    } else {
      write_standard_output(html);
    }
  }
  if (svg_) svg_->commit(page.figure);
  if (png_) png_->commit(png_of(page.figure));
}

std::string page_html(const Page& page) {
  std::string html;
  std::string_view frame = part_of_page("frame");
  while (!frame.empty()) {
    const std::size_t at = frame.find("@@");
    html += frame.substr(0, at);
    if (at == std::string_view::npos) break;
    frame.remove_prefix(at + 2);
    const std::size_t end = frame.find("@@");
    const std::string_view what = frame.substr(0, end);
    frame.remove_prefix(end + 2);
    if (what == "title") {
      html += escaped(page.title);
    } else if (what == "data") {
      html += json_for_script(page_json(page));
    } else {
      html += part_of_page(what);
    }
  }
  return html;
}

}  // namespace tritax::cli
