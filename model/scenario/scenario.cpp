#include "model/scenario/scenario.hpp"

#include <fmt/format.h>

#include "model/core/error.hpp"
#include "model/core/with_place.hpp"
#include "model/scenario/workload_schedules.hpp"

namespace tritax {

namespace {

template <typename... Cases>
struct Overload : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overload(Cases...) -> Overload<Cases...>;

std::string key_of(const Knobs& knobs) {
  return fmt::format(
      "tile {}x{}x{} waves {} pipeline {} comm {}x{} cus {}+{} group {} remap {} order {} lock {} "
      "launch {} barriers {}",
      knobs.tile_m, knobs.tile_n, knobs.tile_k, knobs.waves, static_cast<int>(knobs.pipeline),
      knobs.comm_tile_m, knobs.comm_tile_n, knobs.gemm_cus, knobs.comm_cus, knobs.group_m, knobs.xcd_remap,
      static_cast<int>(knobs.peer_order), static_cast<int>(knobs.lock), static_cast<int>(knobs.launch),
      knobs.host_barriers);
}

std::string key_of(const Workload& workload) {
  return std::visit(Overload{
                        [](const GemmAllScatter& w) {
                          return fmt::format("gemm-all-scatter {}x{}x{} {} gpus {}", w.m, w.n, w.k,
                                             name_of(w.dtype), w.gpus);
                        },
                        [](const LibraryGemm& w) {
                          return fmt::format("library-gemm {}x{}x{} {} caller {} tile {}x{}x{} waves {}", w.m,
                                             w.n, w.k, name_of(w.dtype), static_cast<int>(w.caller), w.tile.m,
                                             w.tile.n, w.tile.k, w.tile.waves);
                        },
                        [](const RemoteAccess& w) {
                          return fmt::format("remote-access {} peers {} bytes {} block {} gpus {}",
                                             static_cast<int>(w.operation), static_cast<int>(w.peers),
                                             w.bytes, w.block_bytes, w.gpus);
                        },
                        [](const AllGather& w) {
                          return fmt::format("all-gather {}x{} {} gpus {} library {} posted {}", w.rows,
                                             w.cols, name_of(w.dtype), w.gpus, w.library,
                                             w.posted_bytes_per_peer);
                        },
                    },
                    workload);
}

// Refuses what no GPU of the machine can hold, before anyone builds it. `bytes`: own data and one slot a
// rank.
void check_memory(double bytes_of_slot, int gpus, const Machine& machine) {
  const double bytes = bytes_of_slot * (gpus + 1);
  if (bytes <= machine.gpu.hbm_bytes) return;
  throw UserError(fmt::format("this scenario needs {:.1f} GB on every GPU; {} has {:.1f} GB", bytes / 1e9,
                              machine.gpu.name, machine.gpu.hbm_bytes / 1e9));
}

// Refuses all-gathers of more tiles than a schedule can reasonably hold.
void check_tiles(const AllGather& workload, const Knobs& knobs) {
  constexpr std::int64_t kMaxTiles = 1 << 18;  // of all ranks; each is one operation a rank
  const std::int64_t tile_rows = knobs.comm_tile_m > 0 ? knobs.comm_tile_m : kAllGatherTile;
  const std::int64_t tile_cols = knobs.comm_tile_n > 0 ? knobs.comm_tile_n : kAllGatherTile;
  const std::int64_t tiles =
      (workload.rows + tile_rows - 1) / tile_rows * ((workload.cols + tile_cols - 1) / tile_cols);
  if (workload.library || tiles * workload.gpus <= kMaxTiles) return;
  throw UserError(
      fmt::format("{}x{} tiles cut the shard into {} pieces, too many to schedule; use a larger "
                  "knobs.comm_tile",
                  tile_rows, tile_cols, tiles));
}

// Refuses what a kernel posts where the machine does not say what to compare it with.
void check_window(const AllGather& workload, const Machine& machine) {
  if (workload.posted_bytes_per_peer == 0 || machine.gpu.remote_store_window_bytes > 0) return;
  throw UserError(
      fmt::format("posted_bytes_per_peer needs gpu.remote_store_window, which machine {} does "
                  "not give; leave the key out, or add the parameter",
                  machine.name));
}

}  // namespace

std::string place_of(const Scenario& scenario) {
  if (scenario.where.empty()) return "";
  return scenario.id.empty() ? scenario.where + ": "
                             : fmt::format("{}: scenario \"{}\": ", scenario.where, scenario.id);
}

Machine find_machine_of(const Scenario& scenario) {
  return with_place(place_of(scenario), [&] { return find_machine(scenario.machine); });
}

int gpus_of(const Scenario& scenario) {
  return std::visit(Overload{[](const LibraryGemm&) { return 1; }, [](const auto& w) { return w.gpus; }},
                    scenario.workload);
}

Knobs resolved_knobs(const Scenario& scenario, const Machine& machine) {
  Knobs knobs = scenario.knobs;
  const auto* workload = std::get_if<GemmAllScatter>(&scenario.workload);
  if (workload == nullptr) return knobs;
  const Knobs defaults = default_knobs(machine, workload->dtype);
  if (!scenario.tile_given) {
    knobs.tile_m = defaults.tile_m;
    knobs.tile_n = defaults.tile_n;
    knobs.tile_k = defaults.tile_k;
  }
  if (!scenario.pipeline_given) knobs.pipeline = defaults.pipeline;
  return knobs;
}

double flops_of(const Scenario& scenario) {
  return std::visit(Overload{[](const GemmAllScatter& w) { return flops(w); },
                             [](const LibraryGemm& w) {
                               return 2.0 * static_cast<double>(w.m) * static_cast<double>(w.n) *
                                      static_cast<double>(w.k);
                             },
                             [](const auto&) { return 0.0; }},
                    scenario.workload);
}

double bytes_per_gpu_of(const Scenario& scenario) {
  return std::visit(Overload{[](const RemoteAccess& w) {
                               const int peers = w.peers == Peers::all ? w.gpus - 1 : 1;
                               return static_cast<double>(w.bytes) * peers;
                             },
                             [](const AllGather& w) {
                               return static_cast<double>(w.rows) * static_cast<double>(w.cols) *
                                      bytes_of(w.dtype) * (w.gpus - 1);
                             },
                             [](const auto&) { return 0.0; }},
                    scenario.workload);
}

std::string scenario_key(const Scenario& scenario) {
  return fmt::format("{} | {} | {} | {} given {}{}", scenario.machine, key_of(scenario.workload),
                     scenario.pattern, key_of(scenario.knobs), scenario.tile_given, scenario.pipeline_given);
}

namespace {

Schedule build(const Scenario& scenario, const Machine& machine) {
  const int gpus = gpus_of(scenario);
  if (gpus > machine.gpu_count()) {
    throw UserError(
        fmt::format("gpus = {} is not allowed; machine {} has {}", gpus, machine.name, machine.gpu_count()));
  }
  return std::visit(
      Overload{[&](const GemmAllScatter& w) {
                 if (scenario.pattern.empty()) {
                   throw UserError("it has no 'pattern'; name one to run it, or let `tritax advise` choose");
                 }
                 const Pattern& pattern = find_pattern(scenario.pattern, "pattern");
                 return build_schedule(pattern, w, machine, resolved_knobs(scenario, machine));
               },
               [&](const LibraryGemm& w) { return library_gemm_schedule(w, machine); },
               [&](const RemoteAccess& w) {
                 check_memory(static_cast<double>(w.bytes), w.gpus, machine);
                 return remote_access_schedule(w, machine);
               },
               [&](const AllGather& w) {
                 check_memory(bytes_per_gpu_of(scenario) / (w.gpus - 1), w.gpus, machine);
                 check_tiles(w, scenario.knobs);
                 check_window(w, machine);
                 return all_gather_schedule(w, machine, scenario.knobs);
               }},
      scenario.workload);
}

}  // namespace

Schedule build_scenario(const Scenario& scenario, const Machine& machine) {
  return with_place(place_of(scenario), [&] { return build(scenario, machine); });
}

}  // namespace tritax
