// A workload describes a computation and the patterns that compute it. A workload is a row of data and a few
// functions; the rest of the program knows no type of a workload.
//
// Each workload is a folder of model/workloads/ and one line of its registry. A workload describes its
// problem by `fields` and the choices of its patterns by `knobs` (values.hpp), lists its patterns, names one
// pattern as the baseline, and provides the functions below. Scenario files, command line, search,
// reproduction, validation and measurement loop over these tables, so no code outside the folder names its
// struct, its fields or its patterns.
//
// A pattern turns problem, machine and knobs into a tile schedule (model/schedule/schedule.hpp). The taxonomy
// follows arXiv:2511.12500 §4 and ROCm/iris docs/conceptual/taxonomy.md.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"
#include "model/workload/knob_space.hpp"
#include "model/workload/traced_form.hpp"
#include "model/workload/values.hpp"

namespace tritax {

class CsvRow;
struct LibraryCall;
struct Workload;

// The computation: the workload and the values of its fields.
struct Problem {
  const Workload* workload = nullptr;
  Values values;

  std::int64_t operator[](std::string_view field) const { return values[field]; }
  int gpus() const { return static_cast<int>(values.get_or("gpus", 1)); }
  friend bool operator==(const Problem& a, const Problem& b) {
    return a.workload == b.workload && a.values == b.values;
  }
};

// How computing and communicating workgroups share the compute units of a GPU.
enum class Roles : std::uint8_t {
  in_turn,         // all workgroups do the same, or one kernel follows the other
  in_one_kernel,   // side by side in one grid
  in_two_kernels,  // side by side in two grids
};

struct Pattern {
  std::string_view name;                         // "producer-consumer"
  std::string_view summary;                      // one line for tables
  std::span<const std::string_view> knobs = {};  // knobs of the workload that change the pattern's schedule
  Schedule (*build)(const Problem& problem, const Machine& machine, const Values& knobs) = nullptr;
  Roles roles = Roles::in_turn;
  // The pattern stands for a vendor's libraries: a script measures the libraries on GPUs
  // (backend_hip/baselines), not `tritax measure`.
  bool vendor = false;
  // Values that the pattern chooses itself, against the knobs: the values of the table with the chosen ones
  // given. Null for most patterns.
  Values (*own_choice)(const Problem& problem, const Machine& machine) = nullptr;
  bool calls_itself = false;  // its schedule already contains the host time of its calls (call_us)

  // All patterns of vendors' libraries have a form; all other patterns have calls (launching.hpp) and a class
  // of kernels (kernel_class.hpp), also without entries in `knobs`.
  bool uses(std::string_view knob) const;
};

// Place where a field of a problem was given: "file:line", or options.
using FieldPlace = std::function<std::string(std::string_view field)>;

// The place of an argument of a library call, or in Python: its name.
std::string own_name(std::string_view field);

// Useful work, for rates and bandwidths.
struct Work {
  double flops = 0;          // of the whole problem; 0: data movement only
  double bytes_per_gpu = 0;  // bytes that one GPU moves, as published bandwidths count; 0: no bandwidth
  int peers = 0;             // number of peers to or from which each active GPU moves data
};

// The message of a collective, as nccl-tests and rccl-tests count its size: the larger of a GPU's input and
// output (NVIDIA/nccl-tests doc/PERFORMANCE.md).
enum class Message : std::uint8_t {
  none,         // not a collective alone
  matrix,       // rows × cols
  matrix_a_gpu  // rows × cols of each GPU
};

// The step that a workload is in a layer Y = X·W with weights W split over the GPUs: tensor parallelism
// (arXiv:1909.08053 §3), also with sequence parallelism, which splits rows of X and Y too (arXiv:2205.05198
// §4.2).
enum class Projection : std::uint8_t {
  none,              // not such a step
  columns,           // W split by columns, all of X on every GPU: a product alone
  columns_gathered,  // W split by columns, X by rows; the rows are gathered first
  rows_reduced,      // W split by rows, X by columns; every GPU ends with the sum of all products
  rows_scattered,    // the same, but every GPU ends with some rows of the sum
};

// The fields with the size of the product of such a step.
struct ProjectionFields {
  Projection projection = Projection::none;
  std::string_view rows = "m";
  std::string_view columns = "n";  // of one GPU
  std::string_view depth = "k";
  bool depth_of_all = false;  // depth of all GPUs together; else of one GPU
};

// The block of a language model's layer that a workload computes, beside its projections
// (model/workloads/layer_blocks.hpp). The workload's baseline stands for today's serving engines.
enum class BlockRole : std::uint8_t {
  none,              // no such block
  prompt_attention,  // all tokens of several prompts, causal
  cached_attention,  // one new token per sequence over its keys
  routed_experts,    // tokens to their experts and back
  summed_rows,       // every GPU ends with the sum of all matrices
  gathered_rows,     // every GPU ends with the rows of all GPUs
};

// Words for the computation, in sentences: "the GEMM needs at least 3 us", "2 us of matrix work more".
struct ComputingWords {
  std::string_view all = "the GEMM";
  std::string_view time = "matrix work";
};

struct Workload {
  std::string_view name;     // "gemm-all-scatter"
  std::string_view title;    // "GEMM + all-scatter"
  std::string_view summary;  // one line: "C = A·B, B split by columns, all of C on every GPU"
  std::span<const Spec> fields = {};
  std::span<const Spec> knobs = {};
  std::span<const Pattern> patterns = {};
  std::string_view baseline = {};       // the pattern that speedups refer to; "": none
  std::string_view usual_pattern = {};  // of a scenario without a pattern; "": a pattern must be chosen
  std::string_view library_key = {};    // boolean key of scenarios that means the pattern "library"; "": none

  // Fills fields that follow from others and refuses impossible values. `place` returns the file:line or
  // options to blame.
  void (*complete)(Problem& problem, const FieldPlace& place) = nullptr;
  Work (*work)(const Problem& problem) = nullptr;
  std::string (*size_text)(const Problem& problem) = nullptr;  // "8192x4608x36864 fp16"
  // The default knobs; null: the usual values of the table.
  Values (*default_knobs)(const Problem& problem, const Machine& machine) = nullptr;
  // Text for a knob whose value means "not given": its value on the machine, "256"; empty: the text after
  // "default:" in the knob's help. Null: the same.
  std::string (*left_out)(const Pattern& pattern, const Spec& knob, const Machine& machine) = nullptr;
  // The knobs that a search may try, with pinned knobs fixed; null: only the defaults.
  KnobSpace (*space)(const Pattern& pattern, const Problem& problem, const Machine& machine,
                     const Values& pins) = nullptr;
  // Lower bound of the time of every schedule with these knobs, without building one; null: 0.
  double (*bound_ns)(const Pattern& pattern, const Problem& problem, const Machine& machine,
                     const Values& knobs) = nullptr;
  // What the model leaves out of the time of a run with these knobs, as a sentence; empty: nothing. Null: the
  // same.
  std::string_view (*untimed)(const Pattern& pattern, const Values& knobs) = nullptr;
  // Host time of a library's GEMM call, beyond the launch, that events on an idle stream measure; null: 0.
  double (*call_ns)(const Pattern& pattern, const Problem& problem, const Machine& machine) = nullptr;

  // The call of this workload in a row of a library's measurements; nothing if the row is about another
  // workload. Null: no script measures the workload.
  std::optional<LibraryCall> (*library_call)(const CsvRow& line) = nullptr;

  // The field with the number of rows of one step of a model; steps with few rows go into graphs
  // (launching.hpp); "": the workload runs in streams.
  std::string_view step_rows = {};
  // The rows instead, where no field is their number; null: none.
  std::int64_t (*step_rows_of)(const Problem& problem) = nullptr;

  bool timed_by_host = false;  // usually timed by the host; else by events in a busy stream
  Message message = Message::none;
  bool computes_and_sends = false;  // has separate times of GEMM and communication
  bool back_to_back = false;        // in a busy stream: one of many equal calls
  ProjectionFields projection = {};
  BlockRole block = BlockRole::none;
  std::optional<TracedForm> traced = {};  // as a call of a real run; nothing: no call looks like the workload
  ComputingWords computing = {};
  std::string_view former_name = {};  // by which files and programs may still call it; "": none
};

// Whether files and programs mean this workload by the name.
inline bool is_called(const Workload& workload, std::string_view name) {
  return !name.empty() && (name == workload.name || name == workload.former_name);
}

// A problem of the workload with all fields at their usual values.
Problem problem_of(const Workload& workload);

// Calls `complete`. Throws UserError.
void complete_problem(Problem& problem, const FieldPlace& place);
void complete_problem(Problem& problem, const std::string& where);  // the same place for all fields

Work work_of(const Problem& problem);

// Bytes of the message of a collective alone; 0 for other workloads.
double message_bytes(const Problem& problem);

// Sets rows and cols of a collective to a message of `bytes` bytes. Throws UserError that begins with `where`
// if no matrix has this size.
void give_message(Problem& problem, std::int64_t bytes, const std::string& where);

// The given knobs, completed by the defaults of the machine and of the class of kernels (kernel_class.hpp).
Values resolved_knobs(const Problem& problem, const Machine& machine, const Values& given);

// Throws UserError that lists the names, with the nearest one offered. `where` is the flag or file:line to
// blame.
const Pattern& find_pattern(const Workload& workload, std::string_view name, const std::string& where);

// Whether the pattern exists without further work of a user: a vendor's library, or the baseline.
bool is_there(const Pattern& pattern, const Workload& workload);

// The baseline pattern; null if the workload has none.
const Pattern* baseline_of(const Workload& workload);

// Workload::untimed of the pattern's workload.
std::string_view untimed_of(const Workload& workload, const Pattern& pattern, const Values& knobs);

// Builds the schedule of a pattern. `knobs` are resolved. Throws UserError when the problem, the knobs or the
// machine do not allow it: more GPUs than there are, a tile that does not fit, knobs outside their range.
Schedule build_schedule(const Pattern& pattern, const Problem& problem, const Machine& machine,
                        const Values& knobs);

// Lower bound of the time of every schedule with these knobs, without building one (Workload::bound_ns); 0:
// unknown.
double least_time_ns(const Pattern& pattern, const Problem& problem, const Machine& machine,
                     const Values& knobs);

// The knobs that the pattern uses, in short: "256x256x64, comm 64x256, 48 comm CUs".
std::string describe(const Pattern& pattern, const Values& knobs);

}  // namespace tritax
