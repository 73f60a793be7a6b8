// What a machine is: one kind of GPU, how the GPUs are linked, and what the host pays to use them.
//
// Every number is a physical property of the part, never of a workload, a shape or a pattern. Numbers live in
// a TOML file (model/machine/machines/*.toml), each with value, unit, source and how it was obtained;
// `read_machine` converts them to the units used throughout Tritax:
//
//   time      ns      (suffix _ns)
//   data      bytes   (suffix _bytes)
//   rates     GB/s    (suffix _gb_per_s; decimal, so 1 GB/s is exactly 1 byte/ns)
//   clocks    GHz     (suffix _ghz; cycles per ns)
//
// `Machine::parameters` keeps the provenance of every value for `tritax machines show`.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/core/dtype.hpp"
#include "model/machine/doubt.hpp"

namespace tritax {

class LibraryTable;
class CollectiveTable;

// How the value of a parameter was obtained.
enum class Provenance : std::uint8_t { datasheet, measured, derived, calibrated, assumed };
inline constexpr std::array<std::string_view, 5> kProvenanceNames{"datasheet", "measured", "derived",
                                                                  "calibrated", "assumed"};

// One line of a machine file, as written.
struct Parameter {
  std::string key;     // dotted path, e.g. "fabric.link"
  double value = 0;    // in `unit`
  std::string unit;    // "" for counts
  std::string source;  // paper, repository and commit, or the reason for an assumption
  Provenance how = Provenance::assumed;
  std::string serves;   // ids of published rows that set this value, blank-separated; they are no predictions
  double residual = 0;  // relative uncertainty of a calibrated value, 0 if unknown
};

// Matrix-core behaviour of one dtype on one GPU.
struct MatrixRate {
  double flop_per_clk_per_cu = 0;  // dense, 0 when the part has no such instruction
  double issue_efficiency = 0;     // best sustained share of the clock-adjusted peak, (0, 1]
  double load_clock_ghz = 0;       // clock when all matrix cores run this dtype on random data
  double light_clock_ghz = 0;      // clock when only few of them do; 0: the boost clock of the GPU
  double sustained_clock_ghz = 0;  // as load_clock_ghz, after Gpu::power_window_ns of such load; 0: the same
  double stage_gb_per_s = 0;       // results of this dtype, as Gpu::stage_gb_per_s; 0: the same
};

// Elements of a tile that a thread copies where `copy_registers` was found: 128×128 by 256 threads.
inline constexpr double kElementsOfCopyRegisters = 64;

struct Gpu {
  std::string name;  // "MI300X"
  std::string arch;  // "gfx942", "sm_90a"

  // Compute. A die (XCD) owns its compute units and its L2; NVIDIA parts are one die.
  int xcds = 1;
  int cus_per_xcd = 1;
  int simds_per_cu = 4;
  int shader_engines = 1;  // of a die, which take its workgroups in turn (model/schedule/shader_engines.hpp)
  int waves_per_simd = 8;
  int lanes_per_wave = 64;
  double registers_per_cu = 0;          // 32-bit registers
  double registers_per_thread_max = 0;  // 32-bit registers
  // Of a thread of a kernel that copies tiles, with kElementsOfCopyRegisters of them; 0: few, whatever the
  // tile.
  double copy_registers = 0;
  double lds_bytes_per_cu = 0;
  double lds_bytes_per_workgroup_max = 0;
  double lds_bytes_per_clk = 0;    // one CU
  double cu_l2_bytes_per_clk = 0;  // one CU's port towards L2
  double boost_clock_ghz = 0;
  double power_window_ns =
      0;  // load that the power limit lets pass before the clock falls to what is sustained
  double power_limit_w = 0;        // of the whole GPU
  double load_power_w = 0;         // the limit that load clocks and energies hold under; 0: power_limit_w
  double idle_power_w = 0;         // of the limit, what no clock lowers
  double flat_voltage_ghz = 0;     // below this clock the voltage stays; 0: it falls with every clock
  double operand_pj_per_byte = 0;  // A tiles through LDS to the matrix cores, at the boost clock; 0: unknown
  double miss_pj_per_byte = 0;     // operands that miss the caches, at the boost clock; 0: unknown
  double matmul_spread = 0;        // relative standard deviation of the time of equal tiles
  // Workgroups that attend go at a pace of their own for as long as they run, uniform within this of the
  // mean. Measured nowhere: what is usual is what the L2s of MI300X ask for (mi300x-8.toml).
  double attend_spread = 0.015;
  bool async_tile_copy = false;            // memory-to-LDS copies that need no registers and no waves (TMA)
  bool loads_queue_behind_stores = false;  // one queue to the fabric: a store to a peer holds up loads
  bool async_tile_store = false;  // finished tiles leave from a staging area in LDS beside the next matmul
  std::array<MatrixRate, kDTypeCount> matrix{};

  // Memory. One HBM and one memory-side last-level cache a GPU (0 bytes: none); one L2 a die.
  double l2_bytes = 0;
  double l2_gb_per_s = 0;
  double l2_lock_step_gb_per_s =
      0;                      // what those get who share operands and always run together; 0: l2_gb_per_s
  std::int32_t l2_ports = 0;  // of a die, shared by its compute units as evenly as pairs can; 0: one each
  double l2_latency_ns = 0;
  double llc_bytes = 0;
  double llc_gb_per_s = 0;
  double llc_latency_ns = 0;
  double hbm_bytes = 0;
  double hbm_gb_per_s = 0;        // sustained, shared by reads and writes
  double hbm_write_gb_per_s = 0;  // sustained, of writes alone; 0: a write takes what a read takes
  double dirty_share = 0;         // of the caches, that may wait to be written back when a kernel begins
  double hbm_latency_ns = 0;
  double stage_latency_ns =
      0;  // from asking for a stage of operands out of HBM to using it, under load; 0: hbm_latency_ns
  double cu_load_gb_per_s = 0;          // one CU, from its own GPU's memory
  double cu_store_gb_per_s = 0;         // one CU, to its own GPU's memory
  double cu_remote_store_gb_per_s = 0;  // one CU, to a peer
  // Of an iteration of a kernel that loads a piece, posts it to peers and loads the next, whatever the bytes:
  // by itself and for each peer; 0: unknown.
  double post_ns = 0;
  double post_peer_ns = 0;
  double cu_remote_load_gb_per_s = 0;  // one CU, from a peer
  double atomic_gb_per_s = 0;          // additions into its own memory, of all who add; 0: as fast as memory
  double cu_remote_atomic_gb_per_s = 0;

  // Flags.
  double flag_same_die_ns = 0;         // gpu scope: release on one CU to acquire on another of the same die
  double flag_cross_die_ns = 0;        // gpu scope, other die
  double release_ns = 0;               // drain and write-back before a release is visible
  double poll_load_ns = 0;             // one poll by volatile load
  double poll_atomic_ns = 0;           // one poll by exchange or compare-and-swap
  bool loads_wait_for_stores = false;  // one counter for loads and stores, in order of issue (gfx9: VM_CNT)
  bool acquire_drops_l2 = false;       // an acquire at gpu scope or wider invalidates the die's L2 (gfx942)

  // Dispatch.
  double workgroup_dispatch_ns = 0;  // between two workgroups sent to one die
  double dispatch_latency_ns = 0;    // until one that was sent starts

  // Of a stage of operands from memory; that of a load where no stages were measured.
  double memory_stage_latency_ns() const { return stage_latency_ns > 0 ? stage_latency_ns : hbm_latency_ns; }
  // Whether the clock follows from what is computed and moved (sim/engine_clock.cpp).
  bool knows_energies() const { return power_limit_w > 0 && operand_pj_per_byte > 0; }
  int cu_count() const { return xcds * cus_per_xcd; }
  const MatrixRate& rate(DType dtype) const { return matrix[static_cast<std::size_t>(dtype)]; }
};

// What a kernel costs because of how it is written, whatever hardware runs it: what it does besides moving
// bytes and multiplying. A machine file has those of this project's kernels, which interpret a schedule, as
// `tritax calibrate` measures them with these kernels; costs() in model/cost/kernel_costs.hpp says what they
// are of kernels of another profile.
struct KernelCosts {
  bool tuned = false;  // as a vendor tunes its kernels: what that means is in kernel_costs.hpp

  // Of matmuls.
  double matmul_step_clk = 0;  // of a K step besides its operands' bytes: waves that load hand over to others
  double matmul_least_step_clk = 0;      // of a K step, however few bytes it needs
  double matmul_op_ns = 0;               // besides its K steps and the latency of its first operands
  std::int32_t most_operand_stages = 8;  // in LDS
  // Of K in a stage that a copy engine fills: a swizzled row (CUDA driver API, CU_TENSOR_MAP_SWIZZLE_128B),
  // whatever a schedule says of tiles. 0: as deep as the tile.
  std::int32_t copy_engine_row_bytes = 128;
  // Of attention whose waves multiply, weigh and read LDS in turn (model/cost/attend_cost.hpp): keys of a
  // block, whatever a schedule says of tiles. 0: attention as the pipeline of the tile says.
  std::int32_t attend_block_keys = 0;
  double lds_bytes_of_senders = 9216;  // of async_tile_store, besides the tile: operations, barriers
  // Requests of the compute units of a port for the same operands reach the L2 as one, if they follow each
  // other soon; sim/engine_lock_step.cpp. 0: each for itself.
  double l2_coalescing_ns = 0;

  // Of code that is in no cache.
  double cold_start_ns = 0;  // first operation of a workgroup: code, operations and tables from HBM
  double cold_code_ns = 0;   // a kernel besides, if what the GPU ran before it is other code

  // Of what moves data.
  double accumulate_gb_per_s = 0;  // loaded values into the accumulators of one workgroup; 0: no cost
  double specialised_copy_efficiency =
      0;                  // rate of copies by workgroups of a matmul kernel to others; 0: the same
  double copy_op_ns = 0;  // of a load, copy or reduction besides latency and bytes
  // A copy by a kernel without matmuls behind anything but a copy, whose loads overlap no stores: what it
  // takes besides latency and bytes, and what one workgroup moves at most. 0: the same as behind a copy.
  double guarded_copy_ns = 0;
  double guarded_copy_gb_per_s = 0;
  double guarded_copy_least_ns = 0;  // besides latency, however few bytes it has
  // More of a copy behind anything but a copy while every compute unit is at work on a matmul, whose operands
  // its loads wait for; in proportion to those that are.
  double busy_copy_ns = 0;
  double ragged_copy_ns = 0;  // more of a copy whose rows begin or end off the multiples of 16 bytes
  double store_op_ns = 0;     // of a store or atomic addition besides its bytes

  // Of waves that carry finished tiles out of the staging area of async_tile_store, and those they serve.
  double stage_op_ns = 0;     // of a tile through the staging area besides its bytes
  double stage_gb_per_s = 0;  // into the staging area; 0: no cost
  double passed_op_ns = 0;    // of an operation that a workgroup only leaves to its sending waves
  double sent_signal_ns = 0;  // of a signal by the sending waves, besides its release
  double meet_ns = 0;         // until all waves of a matmul workgroup go on behind a wait or a barrier

  // Of stores to peers. What a stored row takes more of a link: for each memory line beyond those that its
  // bytes fill, for a begin or end off the multiples of 32 bytes, and off those of 16; see
  // model/cost/link_packets.hpp.
  double split_line_bytes = 0;
  double sector_end_bytes = 0;
  double ragged_end_bytes = 0;

  // Of its place in a stream; negative: as HostCosts says.
  double kernel_gap_ns = -1;
  double graph_node_gap_ns = -1;

  bool knows_guarded_copies() const {
    return guarded_copy_ns > 0 || guarded_copy_gb_per_s > 0 || guarded_copy_least_ns > 0;
  }
  // Of a copy behind anything but a copy, besides latency and bytes.
  double guarded_op_ns() const { return guarded_copy_ns > 0 ? guarded_copy_ns : copy_op_ns; }
};

// Costs of the host side of one GPU: launches, graphs, synchronisation.
struct HostCosts {
  double launch_call_ns = 0;     // host thread busy per kernel launch
  double launch_turn_ns = 0;     // of a launch or graph replay: no other GPU's thread of the node can launch
  double launch_latency_ns = 0;  // launch call returns to first workgroup, GPU idle
  double kernel_gap_ns = 0;      // end of a kernel to the start of the next in the same stream
  double graph_launch_call_ns = 0;  // host thread busy per graph replay
  double graph_node_gap_ns = 0;     // end of a graph node to the start of its successor
  double synchronize_ns = 0;        // last kernel's end to the return of a stream or device synchronisation
  double barrier_ns = 0;            // host barrier over all ranks of a node, after the last arrives
};

// The copy engines (SDMA) of one GPU: they move data without a compute unit. A machine that does not say what
// they are runs no schedule that uses them.
struct CopyEngines {
  int engines = 0;       // that work at the same time; 0: unknown
  double gb_per_s = 0;   // one engine, whatever it copies; 0: unknown
  double packet_ns = 0;  // of a transfer: from its turn until data moves; 0: unknown
};

// The vendor's collective library, as the baseline pattern uses it.
struct LibraryCosts {
  double collective_call_ns = 0;      // host time of one collective call
  double collective_start_ns = 0;     // handshake before the first byte moves
  double small_start_ns = 0;          // the same with the protocol for small messages, of 2 GPUs
  double small_step_ns = 0;           // more of it for each further GPU
  double small_channel_gb_per_s = 0;  // one channel with that protocol; 0: there is none
  int channels = 0;                   // workgroups of the collective kernel
  double channel_gb_per_s = 0;        // one channel, to all its peers together
  double gemm_call_ns = 0;     // host time of one GEMM call through the framework, beyond a bare launch
  double binding_call_ns = 0;  // host time of one kernel call from Python through a thin binding, beyond it
  double kernel_gap_ns = 0;    // between the library's kernels in a busy stream; 0: as HostCosts says
  double kernel_start_ns =
      0;  // of a kernel of the library before its first operation, everything in the caches
  // Of the matrix rate that 16-bit GEMMs reach with rows off 16 bytes, of an odd or an even number of
  // elements; 0: no kernel needs aligned rows.
  double odd_row_share = 0;
  double even_row_share = 0;
  double tile_ns = 0;              // of a tile that its GEMM finishes besides K steps and bytes
  double slice_copy_gb_per_s = 0;  // of the framework's copy into slices, bytes copied; 0: as memory gives
  double framework_sync_ns = 0;    // host work of the framework around a synchronised step
  double framework_gather_ns = 0;  // host work of its gather into slices of a matrix, beyond the call
};

enum class LinkKind : std::uint8_t { mesh, node_switch, ring };
inline constexpr std::array<std::string_view, 3> kLinkKindNames{"mesh", "switch", "ring"};

// How the NICs of several nodes are joined: by one switch that holds nobody back; by a leaf switch for every
// NIC of a node, which joins those of the same number (rails); or by a leaf switch for a few nodes (fat
// tree).
enum class NetworkKind : std::uint8_t { one_switch, rails, fat_tree };
inline constexpr std::array<std::string_view, 3> kNetworkKindNames{"switch", "rails", "fat-tree"};

// What joins the nodes, beyond the rate and the latency of a NIC, which Fabric has. A machine that says
// nothing has a NIC for every GPU and one switch. model/machine/topology.hpp makes links of it.
struct NodeNetwork {
  NetworkKind kind = NetworkKind::one_switch;
  int nodes_per_leaf = 0;        // under one leaf switch; 0: all
  double uplink_share = 1;       // of what all NICs under a leaf send, what it passes to the spine
  double spine_latency_ns = 0;   // one way through the spine, on top of that through a leaf
  double efficiency = 0;         // payload/raw of what GPUs store and load over NICs; 0: as in a node
  double atomic_efficiency = 0;  // likewise of remote atomics on data
  double message_ns = 0;         // of a NIC for every message besides its bytes; 0: none
};

// Links of a node. Rates are payload rates that software can reach; the raw rate is kept for reports.
struct Fabric {
  LinkKind kind = LinkKind::mesh;
  double link_raw_gb_per_s = 0;  // one direction of one link (mesh) or of one GPU's port (switch)
  double store_efficiency = 0;   // payload/raw of remote stores over one link
  // Of a full link, what a single workgroup that copies to a peer would leave idle; see sim/crowding.hpp.
  double store_idle_share = 0;
  double load_efficiency = 0;         // payload/raw of remote loads
  double atomic_efficiency = 0;       // payload/raw of remote atomics on data
  double store_egress_gb_per_s = 0;   // one GPU storing to all peers
  double store_ingress_gb_per_s = 0;  // one GPU being stored to by all peers
  double load_ingress_gb_per_s = 0;   // one GPU loading from all peers (reader's request limit)
  double load_egress_gb_per_s = 0;    // one GPU being read by all peers (owner's limit)
  double store_latency_ns = 0;        // first byte leaves to first byte visible at the peer
  double load_round_trip_ns = 0;      // remote load of one line
  double flag_latency_ns = 0;         // system scope: release at one GPU to acquire at another
  double signal_round_trip_ns = 0;    // a signal to a peer, until its sender knows it to be there
  double arbitration_spread = 0;  // relative spread of the service that equal requesters get on a full link
  // Rounds of workgroups after which GPUs that all began with the same peer no longer meet there; 8 as on
  // MI300X (ROCm/iris @3b4c197 examples/03_all_store: nothing more is lost from 16 MiB a peer on) where a
  // file is silent.
  int convoy_rounds = 8;
  // The switch sends a store to all GPUs at once and adds up what they load (NVLink SHARP), and the
  // collective library uses it (NCCL: NVLS).
  bool multicast = false;

  // Several nodes: GPUs of different nodes talk through NICs (0 when there is one node).
  double network_gb_per_s = 0;  // one NIC
  double network_latency_ns = 0;
};

inline constexpr int kMostNodes = 4096;
inline constexpr int kMostGpusPerNode = 1024;

// What somebody asked to be different from the machine's file (model/machine/changes.hpp).
struct MachineChange {
  std::string key;       // "fabric.link"
  std::string value;     // "32 GB/s"
  std::string was;       // "64 GB/s"; "" where the file has none
  bool follows = false;  // not asked for itself, but scaled with what was
};

struct Machine {
  std::string name;         // "mi300x-8"
  std::string description;  // one line
  std::string file;         // where it was read from
  std::string base;         // the machine that its file differs from; "" mostly
  int nodes = 1;
  int gpus_per_node = 1;
  Gpu gpu;
  KernelCosts interpreter;  // of this project's kernels
  HostCosts host;
  CopyEngines copy_engine;
  LibraryCosts library;
  // What products of the library were measured to take, each for other dtypes.
  std::vector<std::shared_ptr<const LibraryTable>> library_tables;
  // … what its collectives were, each for other calls.
  std::vector<std::shared_ptr<const CollectiveTable>> collective_tables;
  Fabric fabric;
  NodeNetwork network;
  bool after_long_load = false;  // more than gpu.power_window_ns of it: the power limit holds
  std::vector<Parameter> parameters;
  std::vector<Doubt> doubts;           // times that are known to be wrong
  std::vector<MachineChange> changes;  // against the file, already part of all of the above

  // "mi300x-8", or "mi300x-8 with fabric.link=32GB/s": for headings.
  std::string title() const;
  int gpu_count() const { return nodes * gpus_per_node; }
};

// The machine after more than Gpu::power_window_ns of load: the sustained clocks hold. What has none is not
// changed by it.
Machine sustained(Machine machine);

// Reads and checks a machine file, with its base where it names one. Throws UserError with file, line, key,
// value and what is allowed: unknown keys (with the nearest known name), missing keys, wrong units, negative
// or zero values where they make no sense.
Machine read_machine(const std::string& path);

// Same, from text; `origin` is used in messages.
Machine parse_machine(std::string_view toml, const std::string& origin);

// Names of the shipped machines, sorted.
std::vector<std::string> shipped_machines();

// A shipped name ("mi300x-8") or a path to a TOML file. Throws UserError (nearest name offered).
Machine find_machine(const std::string& name_or_path);

}  // namespace tritax
