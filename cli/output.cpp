#include "cli/output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/interrupt.hpp"
#include "cli/terminal.hpp"
#include "model/core/error.hpp"
#include "model/core/gzip.hpp"
#include "model/core/read_file.hpp"

namespace tritax::cli {

namespace {

bool reader_has_gone = false;     // reader of standard output, a pipe
bool output_is_closed = false;    // standard output
bool output_was_missed = false;   // text for it was dropped
std::vector<std::string> inputs;  // files that the command reads, resolved

// A file that is written completely under a temporary name.
struct WrittenFile {
  std::string flag;
  std::string temporary;
  std::string path;
  int doom_slot;
  OutputKind kind;
};
std::vector<WrittenFile> written_files;

// Current outputs: resolved path and flag.
std::map<std::string, std::string>& open_outputs() {
  static std::map<std::string, std::string> outputs;
  return outputs;
}

[[noreturn]] void refuse(const std::string& flag, const std::string& path, std::string_view reason) {
  throw UserError(fmt::format("{}: cannot write '{}': {}", flag, path, reason));
}

// `--json scenario.toml` is a forgotten file name, and would replace the input by the output.
void refuse_input_format(const std::string& flag, const std::string& path) {
  if (path.size() > 5 && path.ends_with(".toml")) {
    refuse(flag, path, fmt::format("this is an input file; give '{0} -' or '{0} FILE'", flag));
  }
}

// The target of a symbolic link, existing or not; none for a cycle of links.
std::optional<std::filesystem::path> followed(std::filesystem::path path) {
  constexpr int kMostLinks = 40;  // the limit of Linux
  std::error_code error;
  for (int i = 0; i < kMostLinks; ++i) {
    if (!std::filesystem::is_symlink(path, error)) return path;
    const std::filesystem::path target = std::filesystem::read_symlink(path, error);
    if (error) return std::nullopt;
    path = path.parent_path() / target;  // an absolute target replaces the folder
  }
  return std::nullopt;
}

std::string resolved(const std::string& path) {
  std::error_code error;
  // Made absolute first, because nothing is resolved of a relative path that does not exist.
  const std::filesystem::path target =
      std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
  return error ? path : target.string();
}

// `--measured m.csv --csv m.csv` would replace the measurements. A machine file may be updated.
void refuse_input(const std::string& flag, const std::string& path, OutputKind kind) {
  if (kind != OutputKind::scenario_file && std::filesystem::path(path).extension() == ".toml") return;
  if (std::find(inputs.begin(), inputs.end(), resolved(path)) != inputs.end()) {
    refuse(flag, path, "the command line names this file twice, as an input too; give another file");
  }
}

}  // namespace

void remember_inputs(std::vector<std::string> values) {
  inputs.clear();
  for (const std::string& value : values) inputs.push_back(resolved(value));
}

OutputFile::OutputFile(std::string path, const std::string& flag, OutputKind kind)
    : flag_(flag), path_(std::move(path)), kind_(kind) {
  if (path_.empty()) {
    throw UserError(fmt::format("{}: the file name is empty; give a name or '-' for standard output", flag_));
  }
  if (kind == OutputKind::result) refuse_input_format(flag_, path_);
  struct stat status {};
  const bool exists = stat(path_.c_str(), &status) == 0;
  if (exists && S_ISDIR(status.st_mode)) {
    refuse(flag_, path_, "it is a directory");
  }
  if (exists && !S_ISREG(status.st_mode)) {
    descriptor_ = open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) {
      refuse(flag_, path_, std::strerror(errno));
    }
    return;
  }
  if (exists && access(path_.c_str(), W_OK) != 0) {
    refuse(flag_, path_, std::strerror(errno));
  }
  if (exists) refuse_input(flag_, path_, kind);
  const auto target = followed(path_);  // a symbolic link stays a link
  if (!target) refuse(flag_, path_, "its symbolic links lead in a circle");
  path_ = resolved(target->string());
  const auto [other, fresh] = open_outputs().emplace(path_, flag_);
  if (!fresh) refuse(flag_, path_, fmt::format("{} names this file too; give two files", other->second));
  create_temporary(exists ? status.st_mode & 0777 : 0666);
  owns_path_ = true;
}

// Tries another name where a temporary is left over: a killed run may have had the same process id, as runs
// in containers often do.
void OutputFile::create_temporary(unsigned mode) {
  constexpr int kMostNames = 100;
  for (int i = 0; i < kMostNames && descriptor_ < 0; ++i) {
    temporary_ = fmt::format("{}.{}{}.tmp", path_, getpid(), i == 0 ? "" : fmt::format("-{}", i));
    doom_slot_ = doom_file(temporary_);
    descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (descriptor_ >= 0) return;
    const int reason = errno;
    spare_file(doom_slot_);
    temporary_.clear();
    if (reason == EEXIST && i + 1 < kMostNames) continue;
    open_outputs().erase(path_);
    refuse(flag_, path_, std::strerror(reason));
  }
}

OutputFile::~OutputFile() {
  if (owns_path_) open_outputs().erase(path_);
  if (descriptor_ >= 0) {
    close(descriptor_);
  }
  if (!temporary_.empty()) {
    unlink(temporary_.c_str());
    spare_file(doom_slot_);
  }
}

void OutputFile::write_all(std::string_view text) const {
  while (!text.empty()) {
    const ssize_t written = write(descriptor_, text.data(), text.size());
    if (written < 0 && errno != EINTR) {
      refuse(flag_, path_, std::strerror(errno));
    }
    text.remove_prefix(written > 0 ? static_cast<std::size_t>(written) : 0);
  }
}

void OutputFile::commit(std::string_view text) {
  if (is_gzip_name(path_)) {
    write_all(gzip(text));
  } else {
    write_all(text);
  }
  if (close(std::exchange(descriptor_, -1)) != 0) {
    refuse(flag_, path_, std::strerror(errno));
  }
  if (temporary_.empty()) return;
  written_files.push_back({flag_, std::exchange(temporary_, ""), path_, doom_slot_, kind_});
}

void publish_outputs() {
  for (const WrittenFile& file : written_files) {
    if (file.kind != OutputKind::machine_file && was_read(file.path)) {
      refuse(file.flag, file.path, "it was read as an input; give another file");
    }
  }
  while (!written_files.empty()) {
    const WrittenFile& file = written_files.front();
    if (std::rename(file.temporary.c_str(), file.path.c_str()) != 0) {
      refuse(file.flag, file.path, std::strerror(errno));
    }
    spare_file(file.doom_slot);
    written_files.erase(written_files.begin());
  }
}

void discard_outputs() {
  for (const WrittenFile& file : written_files) {
    unlink(file.temporary.c_str());
    spare_file(file.doom_slot);
  }
  written_files.clear();
}

void add_output_options(CLI::App& app, OutputOptions& options) {
  const auto add = [&app](const std::string& flag, std::optional<std::string>& target,
                          const std::string& form) {
    app.add_option_function<std::string>(
           flag, [&target](const std::string& value) { target = value.empty() ? "-" : value; },
           fmt::format("Write the result as {} to FILE; '-' or no FILE: standard output", form))
        ->type_name("FILE")
        ->expected(0, 1)
        ->group(kOutputGroup);
  };
  add("--json", options.json, "JSON");
  add("--csv", options.csv, "CSV");
  app.add_flag("--wide", options.wide, "Print each row on one line, even if it is wider than the terminal")
      ->group(kOutputGroup);
}

Outputs::Outputs(const OutputOptions& options, const std::string& taken_by) : options_(options) {
  const bool json_to_stdout = options.json == "-";
  const bool csv_to_stdout = options.csv == "-";
  if (!taken_by.empty() && (json_to_stdout || csv_to_stdout)) {
    throw UserError(
        fmt::format("{} and {}: only one of them can use standard output; give the other a file name",
                    taken_by, json_to_stdout ? options.json_flag : "--csv"));
  }
  if (json_to_stdout && csv_to_stdout) {
    throw UserError(
        fmt::format("{} and --csv: only one of them can use standard output; give the other a file name",
                    options.json_flag));
  }
  for_people_ = !json_to_stdout && !csv_to_stdout && taken_by.empty();
  if (options.json && !json_to_stdout) {
    json_file_.emplace(*options.json, options.json_flag);
  }
  if (options.csv && !csv_to_stdout) {
    csv_file_.emplace(*options.csv, "--csv");
  }
}

void Outputs::print(std::string_view text) const {
  if (for_people_) {
    write_standard_output(text);
  }
}

void Outputs::print(const Table& table) const {
  print(to_text(table, {colour_on_stdout(), options_.wide ? 0 : terminal_width()}));
}

void Outputs::require_text(bool given, std::string_view flag) const {
  if (!given || for_people_) return;
  throw UserError(
      fmt::format("{}: it extends the printed tables, but standard output holds a complete format; leave it "
                  "out, or give the other a file name",
                  flag));
}

void Outputs::json(const nlohmann::ordered_json& value) {
  if (options_.json) {
    json_text(value.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n');
  }
}

void Outputs::json_text(std::string_view text) { write(json_file_, options_.json, text); }

void Outputs::csv(const Table& table, bool complete) {
  if (!options_.csv) return;
  if (csv_file_ && !complete) {
    tell(fmt::format("tritax: --csv: '{}' is not written, since CSV cannot say that rows are missing\n",
                     *options_.csv));
    return;
  }
  write(csv_file_, options_.csv, to_csv(table));
}

void Outputs::write(std::optional<OutputFile>& file, const std::optional<std::string>& target,
                    std::string_view text) {
  if (target == "-") {
    write_standard_output(text);
  } else {
    file->commit(text);
  }
}

bool standard_output_was_cut() { return reader_has_gone; }

void note_closed_standard_output() { output_is_closed = true; }

bool standard_output_was_missed() { return output_was_missed; }

void write_standard_output(std::string_view text) {
  output_was_missed = output_was_missed || output_is_closed;
  if (reader_has_gone || output_is_closed) return;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    reader_has_gone = errno == EPIPE;
    if (reader_has_gone) return;
    throw UserError(fmt::format("standard output: cannot write: {}", std::strerror(errno)));
  }
}

}  // namespace tritax::cli
