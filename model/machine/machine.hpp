// Describes a machine: one kind of GPU, the links between GPUs, and the host costs of using them.
//
// Every number is a physical property of the hardware or software, never of a workload, a shape or a pattern.
// A TOML file (model/machine/machines/*.toml) holds each number with value, unit, source and provenance;
// `read_machine` converts the numbers to the units used throughout Tritax:
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
class AttentionTable;
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
  std::string serves;   // blank-separated ids of published rows that set this value and so are no predictions
  double residual = 0;  // relative uncertainty of a calibrated value, 0 if unknown
};

// Matrix-core behaviour of one dtype on one GPU.
struct MatrixRate {
  double flop_per_clk_per_cu = 0;  // dense, 0 when the part has no such instruction
  double issue_efficiency = 0;     // best sustained share of the clock-adjusted peak, (0, 1]
  double load_clock_ghz = 0;       // clock when all matrix cores run this dtype on random data
  double light_clock_ghz = 0;      // clock when only few matrix cores do; 0: the boost clock of the GPU
  double sustained_clock_ghz = 0;  // clock after Gpu::power_window_ns of such load; 0: load_clock_ghz
  double stage_gb_per_s = 0;       // KernelCosts::stage_gb_per_s for this dtype; 0: the same
};

// Elements per thread of the tile with which `copy_registers` was determined: 128×128 by 256 threads.
inline constexpr double kElementsOfCopyRegisters = 64;

struct Gpu {
  std::string name;  // "MI300X"
  std::string arch;  // "gfx942", "sm_90a"

  // Compute. A die (XCD) owns its compute units and its L2; NVIDIA parts are one die.
  int xcds = 1;
  int cus_per_xcd = 1;
  int simds_per_cu = 4;
  int shader_engines = 1;  // per die; take workgroups in turn (model/schedule/shader_engines.hpp)
  int waves_per_simd = 8;
  int lanes_per_wave = 64;
  double registers_per_cu = 0;          // 32-bit registers
  double registers_per_thread_max = 0;  // 32-bit registers
  // Registers per thread of a kernel that copies tiles with kElementsOfCopyRegisters elements per thread; 0:
  // few, for any tile.
  double copy_registers = 0;
  double lds_bytes_per_cu = 0;
  double lds_bytes_per_workgroup_max = 0;
  double lds_bytes_per_clk = 0;    // one CU
  double cu_l2_bytes_per_clk = 0;  // one CU's port towards L2
  double boost_clock_ghz = 0;
  double power_window_ns =
      0;  // duration of load before the power limit lowers the clock to the sustained clock
  double power_limit_w = 0;        // of the whole GPU
  double load_power_w = 0;         // the limit that load clocks and energies hold under; 0: power_limit_w
  double idle_power_w = 0;         // part of the limit that does not depend on the clock
  double flat_voltage_ghz = 0;     // below this clock the voltage is constant; 0: the voltage always falls
  double operand_pj_per_byte = 0;  // A tiles through LDS to the matrix cores, at the boost clock; 0: unknown
  double miss_pj_per_byte = 0;     // operands that miss the caches, at the boost clock; 0: unknown
  double matmul_spread = 0;        // relative standard deviation of the time of equal tiles
  // Each workgroup with attention has its own speed for its whole run, uniform within this relative distance
  // of the mean. Not measured: the default is the value that the L2s of MI300X need (mi300x-8.toml).
  double attend_spread = 0.015;
  bool async_tile_copy = false;            // memory-to-LDS copies without registers and waves (TMA)
  bool loads_queue_behind_stores = false;  // one queue to the fabric: a store to a peer delays loads
  bool async_tile_store = false;           // finished tiles leave LDS during the next matmul
  std::array<MatrixRate, kDTypeCount> matrix{};

  // Memory. One HBM and one memory-side last-level cache per GPU (0 bytes: none); one L2 per die.
  double l2_bytes = 0;
  double l2_gb_per_s = 0;
  double l2_lock_step_gb_per_s =
      0;                      // for workgroups that share operands and run in lock step; 0: l2_gb_per_s
  std::int32_t l2_ports = 0;  // per die, shared evenly by its compute units; 0: one per CU
  double l2_latency_ns = 0;
  double llc_bytes = 0;
  double llc_gb_per_s = 0;
  double llc_latency_ns = 0;
  double hbm_bytes = 0;
  double hbm_gb_per_s = 0;        // sustained, shared by reads and writes
  double hbm_write_gb_per_s = 0;  // sustained, writes alone; 0: writes cost as much as reads
  double dirty_share = 0;         // share of the caches that may be dirty when a kernel begins
  double hbm_latency_ns = 0;
  double stage_latency_ns =
      0;  // from the request of a stage of operands in HBM to its use, under load; 0: hbm_latency_ns
  double cu_load_gb_per_s = 0;          // one CU, from its own GPU's memory
  double cu_store_gb_per_s = 0;         // one CU, to its own GPU's memory
  double cu_remote_store_gb_per_s = 0;  // one CU, to a peer
  // Time per iteration of a kernel that loads a piece, posts the piece to peers and loads the next piece, for
  // any number of bytes: a constant part, and a part per peer; 0: unknown.
  double post_ns = 0;
  double post_peer_ns = 0;
  double cu_remote_load_gb_per_s = 0;  // one CU, from a peer
  double atomic_gb_per_s = 0;          // additions into own memory, of all CUs together; 0: as memory
  double cu_remote_atomic_gb_per_s = 0;

  double attend_chain_ns = 0;  // one block of attention, 128 columns; model/cost/attend_cost.hpp

  // Flags.
  double flag_same_die_ns = 0;         // gpu scope: release on one CU to acquire on another of the same die
  double flag_cross_die_ns = 0;        // gpu scope, other die
  double release_ns = 0;               // drain and write-back before a release is visible
  double poll_load_ns = 0;             // one poll by volatile load
  double poll_atomic_ns = 0;           // one poll by exchange or compare-and-swap
  bool loads_wait_for_stores = false;  // one counter for loads and stores, in order of issue (gfx9: VM_CNT)
  bool l2_keeps_peers = false;         // L2s keep operands read from a peer until an acquire
  bool acquire_drops_l2 = false;       // an acquire at gpu scope or wider invalidates the die's L2 (gfx942)

  // Dispatch.
  double workgroup_dispatch_ns = 0;  // between two workgroups sent to one die
  double dispatch_latency_ns = 0;    // from sending a workgroup to its start

  // Latency of a stage of operands from memory; the latency of a load if no stages were measured.
  double memory_stage_latency_ns() const { return stage_latency_ns > 0 ? stage_latency_ns : hbm_latency_ns; }
  // Whether the clock follows from computation and data movement (sim/engine_clock.cpp).
  bool knows_energies() const { return power_limit_w > 0 && operand_pj_per_byte > 0; }
  int cu_count() const { return xcds * cus_per_xcd; }
  const MatrixRate& rate(DType dtype) const { return matrix[static_cast<std::size_t>(dtype)]; }
};

// Costs of a kernel that follow from how the kernel is written, besides moving bytes and multiplying. A
// machine file has the costs of this project's kernels, which interpret a schedule; `tritax calibrate`
// measures the costs with these kernels. costs() in model/cost/kernel_costs.hpp derives the costs of other
// profiles.
struct KernelCosts {
  bool tuned = false;  // tuned like a vendor's kernels; kernel_costs.hpp explains the meaning

  // Of matmuls.
  double matmul_step_clk = 0;        // per K step besides operand bytes: loading waves hand over to others
  double matmul_least_step_clk = 0;  // least per K step, however few its bytes
  double matmul_op_ns = 0;           // per matmul, besides K steps and the latency of the first operands
  std::int32_t most_operand_stages = 8;  // in LDS
  // Bytes along K of a stage that a copy engine fills: a swizzled row (CUDA driver API,
  // CU_TENSOR_MAP_SWIZZLE_128B), for any tile of a schedule. 0: the depth of the tile.
  std::int32_t copy_engine_row_bytes = 128;
  // For attention whose waves multiply, weigh and read LDS in turn (model/cost/attend_cost.hpp): keys per
  // block, for any tile of a schedule. 0: attention by the pipeline of the tile.
  std::int32_t attend_block_keys = 0;
  // Attention compiled from tiles: its waves meet between products and softmax (model/cost/attend_cost.hpp).
  bool compiled_attention = false;
  double lds_bytes_of_senders = 9216;  // with async_tile_store, besides the tile: operations, barriers
  // Requests of the compute units of one port for the same operands reach the L2 as one request if they come
  // within this time; sim/engine_lock_step.cpp. 0: requests are separate.
  double l2_coalescing_ns = 0;

  // Of code that is not in a cache.
  double cold_start_ns = 0;  // first operation of a workgroup: code, operations and tables from HBM
  double cold_code_ns = 0;   // per kernel, if the GPU ran other code before

  // Of data movement.
  double accumulate_gb_per_s = 0;  // loaded values into the accumulators of one workgroup; 0: no cost
  double specialised_copy_efficiency =
      0;  // rate of copies by workgroups of a matmul kernel / of a copying kernel; 0: the same
  double copy_op_ns = 0;  // per load, copy or reduction, besides latency and bytes
  // A copy by a kernel without matmuls, if the operation before is not a copy: its loads overlap no stores.
  // Time besides latency and bytes, and highest rate of one workgroup. 0: as after a copy.
  double guarded_copy_ns = 0;
  double guarded_copy_gb_per_s = 0;
  double guarded_copy_least_ns = 0;  // least time besides latency, however few its bytes
  // Additional time of a copy after an operation that is not a copy, while all compute units run matmuls: the
  // loads of the copy wait for operands of the matmuls. In proportion to the share of compute units that run
  // matmuls.
  double busy_copy_ns = 0;
  double ragged_copy_ns = 0;  // additional, per copy with rows not aligned to 16 bytes
  double store_op_ns = 0;     // per store or atomic addition, besides its bytes

  // Of sending waves, which move finished tiles out of the staging area of async_tile_store, and of the other
  // waves.
  double stage_op_ns = 0;     // per tile through the staging area, besides its bytes
  double stage_gb_per_s = 0;  // into the staging area; 0: no cost
  double passed_op_ns = 0;    // per operation that a workgroup leaves to its sending waves
  double sent_signal_ns = 0;  // per signal of the sending waves, besides its release
  double meet_ns = 0;         // until all waves of a matmul workgroup continue after a wait or barrier

  // Of stores to peers: additional bytes on a link per stored row. For each memory line beyond the lines that
  // the bytes fill, for a begin or end not aligned to 32 bytes, and not aligned to 16 bytes; see
  // model/cost/link_packets.hpp.
  double split_line_bytes = 0;
  double sector_end_bytes = 0;
  double ragged_end_bytes = 0;

  // Gaps before the kernel; negative: as in HostCosts.
  double kernel_gap_ns = -1;
  double graph_node_gap_ns = -1;

  bool knows_guarded_copies() const {
    return guarded_copy_ns > 0 || guarded_copy_gb_per_s > 0 || guarded_copy_least_ns > 0;
  }
  // Time of a copy after an operation that is not a copy, besides latency and bytes.
  double guarded_op_ns() const { return guarded_copy_ns > 0 ? guarded_copy_ns : copy_op_ns; }
};

// Costs of the host side of one GPU: launches, graphs, synchronisation.
struct HostCosts {
  double launch_call_ns = 0;        // host thread busy per kernel launch
  double launch_turn_ns = 0;        // per launch or graph replay: launches of the node's other threads wait
  double launch_latency_ns = 0;     // from the return of the call to the first workgroup, GPU idle
  double kernel_gap_ns = 0;         // end of a kernel to the start of the next in the same stream
  double graph_launch_call_ns = 0;  // host thread busy per graph replay
  double graph_node_gap_ns = 0;     // end of a graph node to the start of its successor
  double synchronize_ns = 0;        // last kernel's end to the return of a stream or device synchronisation
  double barrier_ns = 0;            // host barrier over all ranks of a node, after the last arrives
};

// The copy engines (SDMA) of one GPU, which move data without a compute unit. A machine without these values
// runs no schedule that uses copy engines.
struct CopyEngines {
  int engines = 0;       // number that work at the same time; 0: unknown
  double gb_per_s = 0;   // one engine, for any copy; 0: unknown
  double packet_ns = 0;  // per transfer: from its turn until data moves; 0: unknown
};

// Costs of the vendor's libraries, as the baseline pattern uses them.
struct LibraryCosts {
  double collective_call_ns = 0;      // host time of one collective call
  double collective_start_ns = 0;     // handshake before the first byte moves
  double small_start_ns = 0;          // the same with the protocol for small messages, 2 GPUs
  double small_step_ns = 0;           // additional, for each further GPU
  double small_channel_gb_per_s = 0;  // one channel with that protocol; 0: no such protocol
  int channels = 0;                   // workgroups of the collective kernel
  double channel_gb_per_s = 0;        // one channel, to all its peers together
  double gemm_call_ns = 0;     // host time of one GEMM call through the framework, beyond a bare launch
  double binding_call_ns = 0;  // the same for one kernel call from Python through a thin binding
  double kernel_gap_ns = 0;    // between the library's kernels in a busy stream; 0: as HostCosts says
  double kernel_start_ns = 0;  // per kernel of the library before its first operation, with warm caches
  // Share of the matrix rate that 16-bit GEMMs reach with rows that are not aligned to 16 bytes, for rows of
  // an odd and an even number of elements; 0: no kernel needs aligned rows.
  double odd_row_share = 0;
  double even_row_share = 0;
  double tile_ns = 0;              // per finished tile of a GEMM, besides K steps and bytes
  double slice_copy_gb_per_s = 0;  // the framework's copy into slices, per copied byte; 0: limited by memory
  double framework_sync_ns = 0;    // host work of the framework around a synchronised step
  double framework_gather_ns = 0;  // host work of the framework's gather into slices, beyond the call
};

enum class LinkKind : std::uint8_t { mesh, node_switch, ring };
inline constexpr std::array<std::string_view, 3> kLinkKindNames{"mesh", "switch", "ring"};

// How the NICs of several nodes are connected: by one switch that never limits; by one leaf switch per local
// NIC number, which connects the NICs of that number (rails); or by one leaf switch per few nodes (fat tree).
enum class NetworkKind : std::uint8_t { one_switch, rails, fat_tree };
inline constexpr std::array<std::string_view, 3> kNetworkKindNames{"switch", "rails", "fat-tree"};

// The network between nodes, except the rate and the latency of a NIC, which are in Fabric. The default is
// one NIC per GPU and one switch. model/machine/topology.hpp builds links from it.
struct NodeNetwork {
  NetworkKind kind = NetworkKind::one_switch;
  int nodes_per_leaf = 0;        // nodes under one leaf switch; 0: all
  double uplink_share = 1;       // rate from leaf to spine / rate of all NICs under the leaf
  double spine_latency_ns = 0;   // one way through the spine, on top of the latency through a leaf
  double efficiency = 0;         // payload/raw of stores and loads over NICs; 0: as in a node
  double atomic_efficiency = 0;  // payload/raw of remote atomics on data
  double message_ns = 0;         // per message of a NIC, besides its bytes; 0: none
};

// Links of a node. Rates are payload rates that software can reach; the raw rate is kept for reports.
struct Fabric {
  LinkKind kind = LinkKind::mesh;
  double link_raw_gb_per_s = 0;  // one direction of one link (mesh) or of one GPU's port (switch)
  double store_efficiency = 0;   // payload/raw of remote stores over one link
  // Share of a full link that a single workgroup that copies to a peer would leave idle; see
  // sim/crowding.hpp.
  double store_idle_share = 0;
  double load_efficiency = 0;         // payload/raw of remote loads
  double atomic_efficiency = 0;       // payload/raw of remote atomics on data
  double store_egress_gb_per_s = 0;   // one GPU storing to all peers
  double store_ingress_gb_per_s = 0;  // all peers storing to one GPU
  double load_ingress_gb_per_s = 0;   // one GPU loading from all peers (reader's request limit)
  double load_egress_gb_per_s = 0;    // all peers loading from one GPU (owner's limit)
  double store_latency_ns = 0;        // first byte leaves to first byte visible at the peer
  double load_round_trip_ns = 0;      // remote load of one line
  double flag_latency_ns = 0;         // system scope: release at one GPU to acquire at another
  double signal_round_trip_ns = 0;    // a signal to a peer, until the sender knows its arrival
  double arbitration_spread = 0;      // relative spread of the shares of equal requesters on a full link
  // Rounds of workgroups after which GPUs that all began with the same peer no longer collide at a peer.
  // Default 8, as on MI300X (ROCm/iris @3b4c197 examples/03_all_store: no more loss from 16 MiB per peer on).
  int convoy_rounds = 8;
  // The switch sends one store to all GPUs and adds up their data for one load (NVLink SHARP), and the
  // collective library uses both (NCCL: NVLS).
  bool multicast = false;

  // Several nodes: GPUs of different nodes talk through NICs (0 when there is one node).
  double network_gb_per_s = 0;  // one NIC
  double network_latency_ns = 0;
};

inline constexpr int kMostNodes = 4096;
inline constexpr int kMostGpusPerNode = 1024;

// A user's change of a parameter of the machine file (model/machine/changes.hpp).
struct MachineChange {
  std::string key;       // "fabric.link"
  std::string value;     // "32 GB/s"
  std::string was;       // "64 GB/s"; "" where the file has none
  bool follows = false;  // not requested, but scaled with a requested change
};

struct Machine {
  std::string name;         // "mi300x-8"
  std::string description;  // one line
  std::string file;         // where it was read from
  std::string base;         // the base machine of the file; "": none
  int nodes = 1;
  int gpus_per_node = 1;
  Gpu gpu;
  KernelCosts interpreter;  // of this project's kernels
  HostCosts host;
  CopyEngines copy_engine;
  LibraryCosts library;
  // Measured times of products of the library; each table has other dtypes.
  std::vector<std::shared_ptr<const LibraryTable>> library_tables;
  // Measured times of collectives of the library; each table has other calls.
  std::vector<std::shared_ptr<const CollectiveTable>> collective_tables;
  // Measured times of attention of the library; each table has other dtypes.
  std::vector<std::shared_ptr<const AttentionTable>> attention_tables;
  Fabric fabric;
  NodeNetwork network;
  bool after_long_load = false;  // after more than gpu.power_window_ns of load: sustained clocks
  std::vector<Parameter> parameters;
  std::vector<Doubt> doubts;           // times that are known to be wrong
  std::vector<MachineChange> changes;  // changes against the file; the fields above contain them

  // "mi300x-8", or "mi300x-8 with fabric.link=32GB/s": for headings.
  std::string title() const;
  int gpu_count() const { return nodes * gpus_per_node; }
};

// The machine after more than Gpu::power_window_ns of load: sustained clocks replace load clocks. Dtypes
// without a sustained clock do not change.
Machine sustained(Machine machine);

// Reads and checks a machine file, with its base if it names one. Throws UserError with file, line, key,
// value and what is allowed: unknown keys (with the nearest known name), missing keys, wrong units, invalid
// negative or zero values.
Machine read_machine(const std::string& path);

// Same, from text; `origin` is used in messages.
Machine parse_machine(std::string_view toml, const std::string& origin);

// Names of the shipped machines, sorted.
std::vector<std::string> shipped_machines();

// A shipped name ("mi300x-8") or a path to a TOML file. Throws UserError (nearest name offered).
Machine find_machine(const std::string& name_or_path);

}  // namespace tritax
