// Scenarios: what a user wants predicted, as text in a TOML file. Format: docs/scenarios.md.
//
// A scenario names a machine and a workload; a GEMM + all-scatter also names a pattern and its knobs. The
// other workloads are the measurements that published tables hold: library GEMMs, remote-access
// microbenchmarks and all-gathers by a number of communication CUs. Each becomes a tile schedule
// (`build_scenario`), so one simulator predicts them all.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/patterns/pattern.hpp"
#include "model/schedule/schedule.hpp"
#include "model/workload/gemm_all_scatter.hpp"

namespace tritax {

// Who calls a GEMM of a library, and so how long the call takes before the launch.
enum class GemmCaller : std::uint8_t {
  framework,  // a framework such as PyTorch
  binding,    // Python, through a thin binding of one kernel
  loop,       // a bare benchmark loop
};

// A GEMM of a library on one GPU.
struct LibraryGemm {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  DType dtype = DType::bf16;
  GemmCaller caller = GemmCaller::framework;
  MatmulTile tile;  // of a library with one kernel; all zero: the vendor's library picks
};

enum class RemoteOperation : std::uint8_t {
  load,        // memory to registers
  store,       // registers to memory
  atomic_add,  // registers added to memory
  get,         // the peer's memory to the own
  put,         // the own memory to the peer's
};
inline constexpr std::array<std::string_view, 5> kRemoteOperationNames{"load", "store", "atomic-add", "get",
                                                                       "put"};

enum class Peers : std::uint8_t {
  self,  // GPU 0 with its own memory
  one,   // GPU 0 with GPU 1
  all,   // every GPU with all its peers at once
};
inline constexpr std::array<std::string_view, 3> kPeersNames{"self", "one", "all"};

// Every workgroup of a large grid moves one block of `block_bytes` per peer (ROCm/iris examples 00 to 05).
struct RemoteAccess {
  RemoteOperation operation = RemoteOperation::store;
  Peers peers = Peers::one;
  std::int64_t bytes = 0;           // per peer
  std::int64_t block_bytes = 1024;  // 512 fp16 elements, as in Iris
  int gpus = 2;                     // that take part
};

// Every GPU sends its rows × columns shard to all GPUs with a persistent kernel.
struct AllGather {
  std::int64_t rows = 0;  // of one rank's shard
  std::int64_t cols = 0;
  DType dtype = DType::fp16;
  int gpus = 2;
  bool library = false;  // the vendor's collective kernel instead of one with `comm_cus` workgroups
  // What a workgroup stores to each peer before it waits for its next load; 0: what the machine's rate of
  // remote stores was measured with.
  std::int64_t posted_bytes_per_peer = 0;
};

using Workload = std::variant<GemmAllScatter, LibraryGemm, RemoteAccess, AllGather>;
inline constexpr std::array<std::string_view, 4> kWorkloadNames{"gemm-all-scatter", "library-gemm",
                                                                "remote-access", "all-gather"};

struct Scenario {
  std::string id;
  std::string title;
  std::string machine;  // a shipped name or a path
  Workload workload;
  std::string pattern;      // of a GEMM + all-scatter; empty: not chosen yet, only `advise` can run it
  Knobs knobs;              // of a GEMM + all-scatter; of an all-gather comm_tile, comm_cus and peer_order
  bool tile_given = false;  // whether the file says so; if not, `resolved_knobs` asks the machine
  bool pipeline_given = false;
  std::string where;  // "file:line", for messages; empty: not from a file
};

// What to put in front of messages about a scenario: "file:line: scenario "id": ", or less if there is less.
std::string place_of(const Scenario& scenario);

// The machine that a scenario names. Throws UserError that begins with the scenario's place.
Machine find_machine_of(const Scenario& scenario);

// The GPUs that a scenario uses.
int gpus_of(const Scenario& scenario);

// The knobs with the machine's default tile and pipeline where the file gives none.
Knobs resolved_knobs(const Scenario& scenario, const Machine& machine);

// Floating point operations of the whole problem; 0 for workloads that only move data.
double flops_of(const Scenario& scenario);

// Bytes that one GPU moves, as published bandwidths count them: bytes per peer times peers. 0 for GEMMs.
double bytes_per_gpu_of(const Scenario& scenario);

// Everything that decides a prediction as one line of text, without id, title and place: equal keys, equal
// schedules.
std::string scenario_key(const Scenario& scenario);

// Reads the [[scenario]] tables of a file. Throws UserError with file, line, key, value and what is allowed:
// syntax, unknown keys (nearest name offered), sizes that are 0, negative or overflow, unknown patterns and
// dtypes, ids used twice. Machines are not looked up.
std::vector<Scenario> read_scenarios(const std::string& path);

// Same, from text; `origin` is used in messages.
std::vector<Scenario> parse_scenarios(std::string_view toml, const std::string& origin);

// The tile schedule of a scenario. Throws UserError that begins with the scenario's place when the machine
// does not allow it, or when a GEMM + all-scatter has no pattern.
Schedule build_scenario(const Scenario& scenario, const Machine& machine);

}  // namespace tritax
