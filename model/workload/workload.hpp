// A workload: what is computed, and the patterns that compute it. A row of data and a few functions, not a
// type that the rest of the program knows.
//
// Each workload is a folder of model/workloads/ and one line of its registry. It describes its problem by
// `fields` and what its patterns may vary by `knobs` (values.hpp), lists its patterns, names one of them as
// the baseline, and gives the functions below. Scenario files, command line, search, reproduction, validation
// and measurement loop over these tables, so nothing outside its folder names its struct, its fields or its
// patterns.
//
// A pattern turns problem, machine and knobs into a tile schedule (model/schedule/schedule.hpp). The taxonomy
// is that of arXiv:2511.12500 §4 and ROCm/iris docs/conceptual/taxonomy.md.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"
#include "model/workload/knob_space.hpp"
#include "model/workload/values.hpp"

namespace tritax {

class CsvRow;
struct LibraryCall;
struct Workload;

// What is to be computed: the workload and the values of its fields.
struct Problem {
  const Workload* workload = nullptr;
  Values values;

  std::int64_t operator[](std::string_view field) const { return values[field]; }
  int gpus() const { return static_cast<int>(values.get_or("gpus", 1)); }
  friend bool operator==(const Problem& a, const Problem& b) {
    return a.workload == b.workload && a.values == b.values;
  }
};

// How the workgroups that compute and those that communicate share the compute units of a GPU.
enum class Roles : std::uint8_t {
  in_turn,         // all do the same, or one kernel follows the other
  in_one_kernel,   // side by side in one grid
  in_two_kernels,  // side by side in two grids
};

struct Pattern {
  std::string_view name;                         // "producer-consumer"
  std::string_view summary;                      // one line for tables
  std::span<const std::string_view> knobs = {};  // of the workload's table, those that change its schedule
  Schedule (*build)(const Problem& problem, const Machine& machine, const Values& knobs) = nullptr;
  Roles roles = Roles::in_turn;
  // It stands for a vendor's libraries: on GPUs a script measures them (backend_hip/baselines), not `tritax
  // measure`.
  bool vendor = false;
  // What it chooses itself, whatever the knobs say: the table's values with those given. Null for most.
  Values (*own_choice)(const Problem& problem, const Machine& machine) = nullptr;
  bool calls_itself = false;  // its schedule holds the host time of its calls (call_us) already

  // All of vendors' libraries have a form, all others calls (launching.hpp) and a class of kernels
  // (kernel_class.hpp), whether or not `knobs` says so.
  bool uses(std::string_view knob) const;
};

// Where a field of a problem was given: "file:line", or options.
using FieldPlace = std::function<std::string(std::string_view field)>;

// What "useful" means for rates and bandwidths.
struct Work {
  double flops = 0;  // of the whole problem; 0: it only moves data
  double bytes_per_gpu =
      0;          // that one GPU moves, as published bandwidths count them; 0: they are not asked for
  int peers = 0;  // that each active GPU moves data to or from
};

// What a collective's message is, as nccl-tests and rccl-tests count its size: the larger of what a GPU gives
// and what it gets (NVIDIA/nccl-tests doc/PERFORMANCE.md).
enum class Message : std::uint8_t {
  none,         // it is no collective alone
  matrix,       // rows × cols
  matrix_a_gpu  // rows × cols of each GPU
};

// Which step a workload is of a layer Y = X·W whose weights W are split over the GPUs: tensor parallelism
// (arXiv:1909.08053 §3), and with it sequence parallelism, where rows of X and Y are split too
// (arXiv:2205.05198 §4.2).
enum class Projection : std::uint8_t {
  none,              // it is no such step as it stands
  columns,           // W split by columns, all of X on every GPU: a product alone
  columns_gathered,  // W split by columns, X by rows, which are gathered first
  rows_reduced,      // W split by rows, X by columns; every GPU ends with the sum of all products
  rows_scattered,    // the same, but every GPU ends with some rows of the sum
};

// The fields that say the size of the product of such a step.
struct ProjectionFields {
  Projection projection = Projection::none;
  std::string_view rows = "m";
  std::string_view columns = "n";  // of one GPU
  std::string_view depth = "k";
  bool depth_of_all = false;  // the depth of all GPUs together; else what one GPU multiplies
};

// What its compute units work on, in sentences: "the GEMM needs at least 3 us", "2 us of matrix work more".
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
  std::string_view baseline = {};       // the pattern that speedups refer to; "": it has none
  std::string_view usual_pattern = {};  // of a scenario that names none; "": one has to be chosen
  std::string_view library_key = {};  // a boolean key of scenarios that means the pattern "library"; "": none

  // Fills fields that follow from others and refuses what cannot be. `where` is the file:line or options to
  // blame.
  void (*complete)(Problem& problem, const FieldPlace& place) = nullptr;
  Work (*work)(const Problem& problem) = nullptr;
  std::string (*size_text)(const Problem& problem) = nullptr;  // "8192x4608x36864 fp16"
  // The knobs where nobody gives any; null: the usual values of the table.
  Values (*default_knobs)(const Problem& problem, const Machine& machine) = nullptr;
  // What a knob that nobody gave stands for on a machine, where its value only says that: "256"; empty: what
  // its help says behind "left out:". Null: the same.
  std::string (*left_out)(const Pattern& pattern, const Spec& knob, const Machine& machine) = nullptr;
  // What a search may try, some of it held fixed; null: only the defaults.
  KnobSpace (*space)(const Pattern& pattern, const Problem& problem, const Machine& machine,
                     const Values& pins) = nullptr;
  // No schedule of the knobs is faster, known before any is built; null: 0.
  double (*bound_ns)(const Pattern& pattern, const Problem& problem, const Machine& machine,
                     const Values& knobs) = nullptr;
  // Host time of a library's GEMM call that an event on an idle stream sees beyond the launch; null: 0.
  double (*call_ns)(const Pattern& pattern, const Problem& problem, const Machine& machine) = nullptr;

  // The call of this workload that a row of a library's measurements is about; nothing if it is about
  // another. Null: no script measures it.
  std::optional<LibraryCall> (*library_call)(const CsvRow& line) = nullptr;

  // The field that counts the rows of one step of a model, which go into graphs where there are few of them
  // (launching.hpp); "": it runs in streams.
  std::string_view step_rows = {};

  bool timed_by_host = false;  // its usual clock is the host's; else events in a busy stream
  Message message = Message::none;
  bool computes_and_sends = false;  // its times of GEMM and of communication can be asked for
  bool back_to_back = false;        // in a busy stream it is one of many equal calls
  ProjectionFields projection = {};
  ComputingWords computing = {};
};

// A problem of the workload with everything at its usual value.
Problem problem_of(const Workload& workload);

// Calls `complete`. Throws UserError.
void complete_problem(Problem& problem, const FieldPlace& place);
void complete_problem(Problem& problem, const std::string& where);  // the same place for all fields

Work work_of(const Problem& problem);

// Of a collective alone; 0 of all else.
double message_bytes(const Problem& problem);

// Gives rows and cols of a collective whose message has so many bytes. Throws UserError that begins with
// `where` where no matrix has them.
void give_message(Problem& problem, std::int64_t bytes, const std::string& where);

// The knobs with the defaults of the machine, and those of the class of kernels (kernel_class.hpp), where
// nothing was given.
Values resolved_knobs(const Problem& problem, const Machine& machine, const Values& given);

// Throws UserError that lists the names, with the nearest one offered. `where` is the flag or file:line to
// blame.
const Pattern& find_pattern(const Workload& workload, std::string_view name, const std::string& where);

// Whether nobody has to build it: a vendor's library, or the baseline.
bool is_there(const Pattern& pattern, const Workload& workload);

// Null if the workload has none.
const Pattern* baseline_of(const Workload& workload);

// Builds the schedule of a pattern. `knobs` are resolved. Throws UserError when the problem, the knobs or the
// machine do not allow it: more GPUs than there are, a tile that does not fit, knobs outside their range.
Schedule build_schedule(const Pattern& pattern, const Problem& problem, const Machine& machine,
                        const Values& knobs);

// No schedule of the knobs is faster, known before any is built (Workload::bound_ns); 0: nothing is known.
double least_time_ns(const Pattern& pattern, const Problem& problem, const Machine& machine,
                     const Values& knobs);

// The knobs that the pattern uses, in short: "256x256x64, comm 64x256, 48 comm CUs".
std::string describe(const Pattern& pattern, const Values& knobs);

}  // namespace tritax
