// Output of results: tables to the terminal, JSON and CSV to files or standard output.
//
// A file appears complete or not at all: it is written beside its target under a temporary name and renamed.
// The temporary is created before the work starts, so that a target that cannot be written is refused at
// once. All files of a command are renamed at its end, so that all are new or none is. A name that ends in
// `.gz` asks for gzip.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/table.hpp"

namespace CLI {
class App;
}

namespace tritax::cli {

// TOML files are inputs of the program, so that a TOML name for results is a forgotten file name; only
// machine files and scenarios are written as TOML.
enum class OutputKind { result, machine_file, scenario_file };

// Remembers all files that the command may read: the values of all its options but the outputs. No output
// replaces such a file, except a machine file, which may be updated.
void remember_inputs(std::vector<std::string> values);

// One output file. Devices and pipes are written in place, because a rename would replace them.
class OutputFile {
 public:
  // Throws UserError that names `flag` when the file cannot be written, or when another output has it.
  OutputFile(std::string path, const std::string& flag, OutputKind kind = OutputKind::result);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  // Writes the whole text; publish_outputs() gives the file its name. Throws UserError, for example when the
  // disk is full.
  void commit(std::string_view text);

 private:
  void create_temporary(unsigned mode);
  void write_all(std::string_view text) const;

  std::string flag_;
  std::string path_;
  std::string temporary_;  // "" for a device and after commit
  int descriptor_ = -1;
  int doom_slot_ = -1;
  bool owns_path_ = false;  // no other output may have it
  OutputKind kind_;
};

// Gives all committed files their names. Throws UserError when a file would replace a file that was read.
void publish_outputs();

// Removes committed files that have not been published.
void discard_outputs();

// Whether a path stands for standard output.
inline bool is_standard_output(std::string_view path) { return path == "-"; }

// Group of every option that names an output, so that its value is not taken for an input.
inline constexpr const char* kOutputGroup = "Output";

// The values of --json, --csv ("-" is standard output) and --wide.
struct OutputOptions {
  std::optional<std::string> json;
  std::optional<std::string> csv;
  bool wide = false;
  std::string json_flag = "--json";  // the flag that gave it, for messages
};

void add_output_options(CLI::App& app, OutputOptions& options);

// The outputs of one command, opened before its work starts.
class Outputs {
 public:
  // Throws UserError when a file cannot be written, or when two forms ask for standard output. `taken_by`:
  // flag of another output on standard output.
  explicit Outputs(const OutputOptions& options, const std::string& taken_by = "");

  // Prints text for people; nothing when a machine-readable form uses standard output.
  void print(std::string_view text) const;
  void print(const Table& table) const;

  // Each writes its form if it was asked for.
  void json(const nlohmann::ordered_json& value);
  void json_text(std::string_view text);  // JSON from another writer
  // `complete`: false after Ctrl-C, when rows may be missing. CSV cannot mark this, so no file is written and
  // an old file stays.
  void csv(const Table& table, bool complete = true);

  bool for_people() const { return for_people_; }

  // Throws UserError for `flag`, which asks for more text, where no text is printed.
  void require_text(bool given, std::string_view flag) const;

 private:
  void write(std::optional<OutputFile>& file, const std::optional<std::string>& target,
             std::string_view text);

  OutputOptions options_;
  std::optional<OutputFile> json_file_;
  std::optional<OutputFile> csv_file_;
  bool for_people_ = true;
};

// Writes to standard output; throws UserError when that fails (a full disk behind a redirection). When the
// reader has gone (`| head`), or standard output was closed from the start, the rest is dropped, so that
// requested files are still written.
void write_standard_output(std::string_view text);
bool standard_output_was_cut();

// Whether standard output was closed at the start; whether text for it was dropped.
void note_closed_standard_output();
bool standard_output_was_missed();

}  // namespace tritax::cli
