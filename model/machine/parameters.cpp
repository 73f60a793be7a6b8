#include "model/machine/parameters.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace tritax {

namespace {

// Limits are wide. They catch wrong units (a latency of hours, a cache of exabytes) and values that would let
// times overflow (a link of one byte per day), but allow unusual parts.
constexpr Bounds kPositiveTime{1e-3, 1e12};  // below 1000 s
constexpr Bounds kTime{0, 1e12};
constexpr Bounds kPositiveRate{1e-6, 1e9};  // 1 kB/s to 1e18 B/s
constexpr Bounds kRate{0, 1e9, true, 1e-6};
constexpr Bounds kPositiveData{1, 1e18};
constexpr Bounds kData{0, 1e18};
constexpr Bounds kClock{1e-3, 100};  // 1 MHz to 100 GHz
constexpr Bounds kShareOrNone{0, 1, true, 1e-3};
constexpr Bounds kLightClock{0, 100, true, 1e-3};
constexpr Bounds kPerClk{1e-3, 1e6};
constexpr Bounds kCycles{0, 1e6, true};
constexpr Bounds kPower{0, 1e5, true};
constexpr Bounds kEnergy{0, 1e6, true};
constexpr Bounds kEfficiency{1e-3, 1};
constexpr Bounds kSpread{0, 0.9, true};
constexpr Bounds kMatmulSpread{0, 0.4,
                               true};       // the shortest of equal matmuls still takes time: spread_width()
constexpr Bounds kLinkEnds{0, 4096, true};  // bytes on a link for an end of a row or a line of 128 bytes
constexpr Bounds kIdleShare{0, 0.99, true};
constexpr Bounds kFlag{0, 1, true};

constexpr Bounds count_up_to(double high) { return {1, high, true}; }

using D = Dimension;

constexpr std::array kSpecs{
    ParameterSpec{"gpu", "xcds", &Gpu::xcds, D::count, count_up_to(64),
                  "dies that own compute units and an L2 (NVIDIA: 1)"},
    ParameterSpec{"gpu", "cus_per_xcd", &Gpu::cus_per_xcd, D::count, count_up_to(4096),
                  "compute units (SMs) in use per die"},
    ParameterSpec{"gpu", "shader_engines", &Gpu::shader_engines, D::count, count_up_to(64),
                  "groups of compute units of a die, which take its workgroups in turn", Presence::optional},
    ParameterSpec{"gpu", "simds_per_cu", &Gpu::simds_per_cu, D::count, count_up_to(64),
                  "SIMDs (schedulers) per compute unit"},
    ParameterSpec{"gpu", "waves_per_simd", &Gpu::waves_per_simd, D::count, count_up_to(256),
                  "resident waves (warps) per SIMD"},
    ParameterSpec{"gpu", "lanes_per_wave", &Gpu::lanes_per_wave, D::count, count_up_to(1024),
                  "threads of a wave (warp)"},
    ParameterSpec{"gpu", "registers_per_cu", &Gpu::registers_per_cu, D::count, count_up_to(1e8),
                  "32-bit vector registers per compute unit"},
    ParameterSpec{"gpu", "registers_per_thread_max", &Gpu::registers_per_thread_max, D::count,
                  count_up_to(65536), "32-bit vector registers that one thread can have"},
    ParameterSpec{"gpu", "copy_registers", &Gpu::copy_registers, D::count, Bounds{0, 512, true},
                  "registers of a thread of a kernel that copies tiles, of which it has 64 elements; 0: few",
                  Presence::optional},
    ParameterSpec{"gpu", "lds_per_cu", &Gpu::lds_bytes_per_cu, D::data, kPositiveData,
                  "LDS (shared memory) per compute unit"},
    ParameterSpec{"gpu", "lds_per_workgroup_max", &Gpu::lds_bytes_per_workgroup_max, D::data, kPositiveData,
                  "LDS that one workgroup can have"},
    ParameterSpec{"gpu", "lds_bandwidth", &Gpu::lds_bytes_per_clk, D::bytes_per_clk, kPerClk,
                  "LDS port of one compute unit"},
    ParameterSpec{"gpu", "cu_l2_bandwidth", &Gpu::cu_l2_bytes_per_clk, D::bytes_per_clk, kPerClk,
                  "port of one compute unit towards L2"},
    ParameterSpec{"gpu", "boost_clock", &Gpu::boost_clock_ghz, D::clock, kClock,
                  "clock while the matrix cores are idle or nearly so"},
    ParameterSpec{"gpu", "power_window", &Gpu::power_window_ns, D::time, kTime,
                  "work of the matrix cores that the power limit lets pass before it holds in the mean",
                  Presence::optional},
    ParameterSpec{"gpu", "power_limit", &Gpu::power_limit_w, D::power, kPower,
                  "of the whole GPU; the clock follows from it", Presence::optional},
    ParameterSpec{"gpu", "load_power", &Gpu::load_power_w, D::power, kPower,
                  "the power limit under which load clocks and energies were measured; missing: power_limit",
                  Presence::optional},
    ParameterSpec{"gpu", "idle_power", &Gpu::idle_power_w, D::power, kPower,
                  "of the power limit, what no clock lowers", Presence::optional},
    ParameterSpec{"gpu", "flat_voltage_clock", &Gpu::flat_voltage_ghz, D::clock, kLightClock,
                  "below this clock the voltage falls no further; 0: it falls with every clock",
                  Presence::optional},
    ParameterSpec{"gpu", "operand_energy", &Gpu::operand_pj_per_byte, D::energy_per_byte, kEnergy,
                  "A tiles through LDS to the matrix cores, at the boost clock; 0: unknown",
                  Presence::optional},
    ParameterSpec{"gpu", "miss_energy", &Gpu::miss_pj_per_byte, D::energy_per_byte, kEnergy,
                  "operands that miss the caches, at the boost clock; 0: unknown", Presence::optional},
    ParameterSpec{
        "gpu", "matmul_step_overhead", &KernelCosts::matmul_step_clk, D::cycles, kCycles,
        "of a K step besides the bytes of its operands: the waves that load hand over to those that multiply",
        Presence::optional},
    ParameterSpec{"gpu", "matmul_least_step", &KernelCosts::matmul_least_step_clk, D::cycles, kCycles,
                  "of a K step, however few bytes it needs: once around the loop of the waves that multiply",
                  Presence::optional},
    ParameterSpec{"gpu", "matmul_spread", &Gpu::matmul_spread, D::share, kMatmulSpread,
                  "relative standard deviation of the time that equal matmuls take", Presence::optional},
    ParameterSpec{"gpu", "attend_spread", &Gpu::attend_spread, D::share, kMatmulSpread,
                  "how far from the mean, at most, the paces of workgroups lie that attend; usually 0.015",
                  Presence::optional},
    ParameterSpec{"gpu", "cold_start_time", &KernelCosts::cold_start_ns, D::time, kTime,
                  "first operation of a workgroup in a kernel: code, operations and tables come from memory",
                  Presence::optional},
    ParameterSpec{"gpu", "cold_code_time", &KernelCosts::cold_code_ns, D::time, kTime,
                  "a kernel besides, where the GPU ran other code before: nothing is in instruction caches",
                  Presence::optional},
    ParameterSpec{"gpu", "accumulate_bandwidth", &KernelCosts::accumulate_gb_per_s, D::rate, kRate,
                  "loaded values into the accumulators of one workgroup; 0: free", Presence::optional},
    ParameterSpec{"gpu", "specialised_copy_efficiency", &KernelCosts::specialised_copy_efficiency, D::share,
                  kShareOrNone,
                  "rate of copies by workgroups of a matmul kernel to those of a copying kernel; 0: the same",
                  Presence::optional},
    ParameterSpec{"gpu", "matmul_op_time", &KernelCosts::matmul_op_ns, D::time, kTime,
                  "of a matmul besides its K steps and the latency of its first operands",
                  Presence::optional},
    ParameterSpec{"gpu", "copy_op_time", &KernelCosts::copy_op_ns, D::time, kTime,
                  "of a load, copy or reduction besides latency and bytes", Presence::optional},
    ParameterSpec{
        "gpu", "guarded_copy_time", &KernelCosts::guarded_copy_ns, D::time, kTime,
        "copy_op_time of a copy behind anything but a copy, in a kernel without matmuls; 0: the same",
        Presence::optional},
    ParameterSpec{"gpu", "guarded_copy_bandwidth", &KernelCosts::guarded_copy_gb_per_s, D::rate, kRate,
                  "what one workgroup then copies at most, as its loads overlap no stores; 0: no limit",
                  Presence::optional},
    ParameterSpec{"gpu", "guarded_copy_least_time", &KernelCosts::guarded_copy_least_ns, D::time, kTime,
                  "what such a copy takes at least besides latency, however few bytes it has",
                  Presence::optional},
    ParameterSpec{
        "gpu", "busy_copy_time", &KernelCosts::busy_copy_ns, D::time, kTime,
        "more of a copy behind anything but a copy while every compute unit is at work on a matmul, "
        "in proportion to those that are",
        Presence::optional},
    ParameterSpec{"gpu", "ragged_copy_time", &KernelCosts::ragged_copy_ns, D::time, kTime,
                  "more of a copy whose rows begin or end off the multiples of 16 bytes", Presence::optional},
    ParameterSpec{"gpu", "store_op_time", &KernelCosts::store_op_ns, D::time, kTime,
                  "of a store or atomic addition besides its bytes", Presence::optional},
    ParameterSpec{"gpu", "stage_op_time", &KernelCosts::stage_op_ns, D::time, kTime,
                  "of a tile through the staging area of async_tile_store besides its bytes",
                  Presence::optional},
    ParameterSpec{"gpu", "passed_op_time", &KernelCosts::passed_op_ns, D::time, kTime,
                  "of a signal, or a further store of a staged tile, that a matmul workgroup leaves to its "
                  "sending waves",
                  Presence::optional},
    ParameterSpec{"gpu", "sent_signal_time", &KernelCosts::sent_signal_ns, D::time, kTime,
                  "of a signal that sending waves raise, besides its release", Presence::optional},
    ParameterSpec{
        "gpu", "meet_time", &KernelCosts::meet_ns, D::time, kTime,
        "until all waves of a matmul workgroup with async_tile_store go on behind a barrier or a wait "
        "that had to wait",
        Presence::optional},
    ParameterSpec{"gpu", "stage_bandwidth", &KernelCosts::stage_gb_per_s, D::rate, kRate,
                  "accumulators of one workgroup into the staging area of async_tile_store; 0: free",
                  Presence::optional},
    ParameterSpec{"gpu", "async_tile_copy", &Gpu::async_tile_copy, D::boolean, kFlag,
                  "memory-to-LDS copies that take no registers and no waves (TMA)"},
    ParameterSpec{
        "gpu", "async_tile_store", &Gpu::async_tile_store, D::boolean, kFlag,
        "finished tiles leave from a staging area in LDS, carried by waves of their own, beside the next "
        "matmul of the workgroup",
        Presence::optional},

    ParameterSpec{"gpu.matrix", "flop_per_clk", &MatrixRate::flop_per_clk_per_cu, D::flop_per_clk, kPerClk,
                  "dense matrix operations of one compute unit"},
    ParameterSpec{"gpu.matrix", "issue_efficiency", &MatrixRate::issue_efficiency, D::share, kEfficiency,
                  "best sustained share of the peak at the loaded clock"},
    ParameterSpec{"gpu.matrix", "load_clock", &MatrixRate::load_clock_ghz, D::clock, kClock,
                  "clock when all matrix cores work on random data of this dtype"},
    ParameterSpec{"gpu.matrix", "sustained_clock", &MatrixRate::sustained_clock_ghz, D::clock, kLightClock,
                  "as load_clock, after gpu.power_window of such load; 0: the same", Presence::optional},
    ParameterSpec{"gpu.matrix", "light_clock", &MatrixRate::light_clock_ghz, D::clock, kLightClock,
                  "clock when only few matrix cores work on this dtype; 0: the boost clock",
                  Presence::optional},
    ParameterSpec{"gpu.matrix", "stage_bandwidth", &MatrixRate::stage_gb_per_s, D::rate, kRate,
                  "as gpu.stage_bandwidth, of results of this dtype; 0: the same", Presence::optional},

    ParameterSpec{"gpu", "l2_size", &Gpu::l2_bytes, D::data, kPositiveData, "L2 of one die"},
    ParameterSpec{"gpu", "l2_bandwidth", &Gpu::l2_gb_per_s, D::rate, kPositiveRate, "L2 of one die"},
    ParameterSpec{"gpu", "l2_coalescing_time", &KernelCosts::l2_coalescing_ns, D::time, kTime,
                  "those who ask for the same operands this much later than others join their requests e "
                  "times less; 0: nobody does",
                  Presence::optional},
    ParameterSpec{
        "gpu", "l2_ports", &Gpu::l2_ports, D::count, count_up_to(4096),
        "ports that the compute units of a die share to the L2; requests of one port coalesce. 0: one each",
        Presence::optional},
    ParameterSpec{
        "gpu", "l2_lock_step_bandwidth", &Gpu::l2_lock_step_gb_per_s, D::rate, kRate,
        "L2 of one die, of operands in tiles whose requests all coalesce, as a vendor's; 0: l2_bandwidth",
        Presence::optional},
    ParameterSpec{"gpu", "l2_latency", &Gpu::l2_latency_ns, D::time, kPositiveTime, "load that hits L2"},
    ParameterSpec{"gpu", "llc_size", &Gpu::llc_bytes, D::data, kData,
                  "memory-side last-level cache of the GPU, 0 if there is none"},
    ParameterSpec{"gpu", "llc_bandwidth", &Gpu::llc_gb_per_s, D::rate, kRate,
                  "last-level cache, 0 if there is none"},
    ParameterSpec{"gpu", "llc_latency", &Gpu::llc_latency_ns, D::time, kTime,
                  "load that hits the last-level cache, 0 if there is none"},
    ParameterSpec{"gpu", "hbm_size", &Gpu::hbm_bytes, D::data, kPositiveData, "memory of the GPU"},
    ParameterSpec{"gpu", "hbm_bandwidth", &Gpu::hbm_gb_per_s, D::rate, kPositiveRate,
                  "sustained, shared by reads and writes"},
    ParameterSpec{"gpu", "hbm_write_bandwidth", &Gpu::hbm_write_gb_per_s, D::rate, kRate,
                  "sustained, of writes alone; 0: a write takes what a read takes", Presence::optional},
    ParameterSpec{"gpu", "dirty_share", &Gpu::dirty_share, D::share, kShareOrNone,
                  "share of the caches that may wait to be written back when a kernel begins",
                  Presence::optional},
    ParameterSpec{"gpu", "hbm_latency", &Gpu::hbm_latency_ns, D::time, kPositiveTime,
                  "load that misses all caches"},
    ParameterSpec{"gpu", "stage_latency", &Gpu::stage_latency_ns, D::time, kTime,
                  "from asking for a stage of operands out of memory to using it, under load; 0: hbm_latency",
                  Presence::optional},
    ParameterSpec{"gpu", "cu_load_bandwidth", &Gpu::cu_load_gb_per_s, D::rate, kPositiveRate,
                  "one compute unit loading from its own GPU's memory"},
    ParameterSpec{"gpu", "cu_store_bandwidth", &Gpu::cu_store_gb_per_s, D::rate, kPositiveRate,
                  "one compute unit storing to its own GPU's memory"},
    ParameterSpec{"gpu", "cu_remote_store_bandwidth", &Gpu::cu_remote_store_gb_per_s, D::rate, kPositiveRate,
                  "one compute unit storing to peers"},
    ParameterSpec{"gpu", "post_time", &Gpu::post_ns, D::time, kTime,
                  "of an iteration of a workgroup that loads a piece and posts it to peers; 0: unknown",
                  Presence::optional},
    ParameterSpec{"gpu", "post_peer_time", &Gpu::post_peer_ns, D::time, kTime,
                  "what such an iteration takes longer for each peer", Presence::optional},
    ParameterSpec{"gpu", "cu_remote_load_bandwidth", &Gpu::cu_remote_load_gb_per_s, D::rate, kPositiveRate,
                  "one compute unit loading from peers"},
    ParameterSpec{"gpu", "cu_remote_atomic_bandwidth", &Gpu::cu_remote_atomic_gb_per_s, D::rate,
                  kPositiveRate, "one compute unit doing atomics on the data of peers"},
    ParameterSpec{
        "gpu", "atomic_bandwidth", &Gpu::atomic_gb_per_s, D::rate, kRate,
        "what the atomic units of the GPU's memory add for all requesters; 0: all that memory carries",
        Presence::optional},

    ParameterSpec{"gpu", "flag_same_die_latency", &Gpu::flag_same_die_ns, D::time, kPositiveTime,
                  "GPU scope: release to acquire between compute units of one die"},
    ParameterSpec{"gpu", "flag_cross_die_latency", &Gpu::flag_cross_die_ns, D::time, kPositiveTime,
                  "GPU scope: release to acquire between dies"},
    ParameterSpec{"gpu", "release_time", &Gpu::release_ns, D::time, kTime,
                  "drain and write-back before a release is visible"},
    ParameterSpec{
        "gpu", "attend_chain_time", &Gpu::attend_chain_ns, D::time, kTime,
        "dependent instructions of one block of attention in a compiled kernel, from scores to results, "
        "for heads of 128 columns; 0: not known, no cost",
        Presence::optional},
    ParameterSpec{"gpu", "poll_load_time", &Gpu::poll_load_ns, D::time, kPositiveTime,
                  "one poll of a flag by volatile load"},
    ParameterSpec{"gpu", "poll_atomic_time", &Gpu::poll_atomic_ns, D::time, kPositiveTime,
                  "one poll of a flag by exchange or compare-and-swap"},
    ParameterSpec{"gpu", "loads_wait_for_stores", &Gpu::loads_wait_for_stores, D::boolean, kFlag,
                  "loads and stores of a wave complete in the order of issue"},
    ParameterSpec{"gpu", "loads_queue_behind_stores", &Gpu::loads_queue_behind_stores, D::boolean, kFlag,
                  "one request queue per compute unit: a store to a peer holds up the loads behind it until "
                  "it has left",
                  Presence::optional},
    ParameterSpec{"gpu", "acquire_drops_l2", &Gpu::acquire_drops_l2, D::boolean, kFlag,
                  "an acquire at GPU scope or wider invalidates the die's L2"},
    ParameterSpec{"gpu", "l2_keeps_peers", &Gpu::l2_keeps_peers, D::boolean, kFlag,
                  "the L2 of a die keeps data that products read from a peer's memory", Presence::optional},
    ParameterSpec{"gpu", "workgroup_dispatch_time", &Gpu::workgroup_dispatch_ns, D::time, kTime,
                  "between two workgroups sent to one die"},
    ParameterSpec{"gpu", "dispatch_latency", &Gpu::dispatch_latency_ns, D::time, kTime,
                  "from when a workgroup is sent until it starts on its compute unit; 0: with no delay",
                  Presence::optional},

    ParameterSpec{"host", "launch_call_time", &HostCosts::launch_call_ns, D::time, kTime,
                  "host thread busy per kernel launch"},
    ParameterSpec{
        "host", "launch_turn_time", &HostCosts::launch_turn_ns, D::time, kTime,
        "of a kernel launch or graph replay: the threads of the node's other GPUs cannot launch, where "
        "one process drives them all",
        Presence::optional},
    ParameterSpec{"host", "launch_latency", &HostCosts::launch_latency_ns, D::time, kTime,
                  "launch call returns to first workgroup, GPU idle"},
    ParameterSpec{"host", "kernel_gap", &HostCosts::kernel_gap_ns, D::time, kTime,
                  "end of a kernel to the start of the next in the same stream"},
    ParameterSpec{"host", "graph_launch_call_time", &HostCosts::graph_launch_call_ns, D::time, kTime,
                  "host thread busy per graph replay"},
    ParameterSpec{"host", "graph_node_gap", &HostCosts::graph_node_gap_ns, D::time, kTime,
                  "end of a graph node to the start of its successor"},
    ParameterSpec{"host", "synchronize_time", &HostCosts::synchronize_ns, D::time, kTime,
                  "end of the last kernel to the return of a synchronisation call"},
    ParameterSpec{"host", "barrier_time", &HostCosts::barrier_ns, D::time, kTime,
                  "host barrier over all ranks of a node, after the last arrives"},

    ParameterSpec{"copy_engine", "engines", &CopyEngines::engines, D::count, count_up_to(1024),
                  "copy engines of a GPU that work at the same time; needed by schedules that use them",
                  Presence::optional},
    ParameterSpec{"copy_engine", "rate", &CopyEngines::gb_per_s, D::rate, kPositiveRate,
                  "one engine, at most; needed by schedules that use them", Presence::optional},
    ParameterSpec{"copy_engine", "packet", &CopyEngines::packet_ns, D::time, kPositiveTime,
                  "of a transfer: from its turn until data moves; needed by schedules that use them",
                  Presence::optional},

    ParameterSpec{"library", "collective_call_time", &LibraryCosts::collective_call_ns, D::time, kTime,
                  "host time of one collective call"},
    ParameterSpec{"library", "collective_start_time", &LibraryCosts::collective_start_ns, D::time, kTime,
                  "handshake before the first byte moves"},
    ParameterSpec{"library", "channels", &LibraryCosts::channels, D::count, count_up_to(1024),
                  "workgroups of the collective kernel"},
    ParameterSpec{"library", "channel_bandwidth", &LibraryCosts::channel_gb_per_s, D::rate, kPositiveRate,
                  "one channel, to all its peers together"},
    ParameterSpec{"library", "small_start_time", &LibraryCosts::small_start_ns, D::time, kTime,
                  "handshake of the protocol for small messages, of 2 GPUs", Presence::optional},
    ParameterSpec{"library", "small_step_time", &LibraryCosts::small_step_ns, D::time, kTime,
                  "of the protocol for small messages, for each GPU beyond 2", Presence::optional},
    ParameterSpec{"library", "small_channel_bandwidth", &LibraryCosts::small_channel_gb_per_s, D::rate, kRate,
                  "one channel with the protocol for small messages; 0: there is none", Presence::optional},
    ParameterSpec{"library", "gemm_call_time", &LibraryCosts::gemm_call_ns, D::time, kTime,
                  "host time of one GEMM call through the framework, beyond a bare launch"},
    ParameterSpec{"library", "binding_call_time", &LibraryCosts::binding_call_ns, D::time, kTime,
                  "host time of one kernel call from Python through a thin binding, beyond a bare launch",
                  Presence::optional},
    ParameterSpec{
        "library", "kernel_gap", &LibraryCosts::kernel_gap_ns, D::time, kTime,
        "end of a kernel of the library to the start of the next in a busy stream; 0: as host.kernel_gap",
        Presence::optional},
    ParameterSpec{"library", "kernel_start_time", &LibraryCosts::kernel_start_ns, D::time, kTime,
                  "of a kernel of the library before its first operation, with everything in the caches",
                  Presence::optional},
    ParameterSpec{"library", "tile_time", &LibraryCosts::tile_ns, D::time, kTime,
                  "of a tile that a GEMM of the library finishes besides its K steps and bytes",
                  Presence::optional},
    ParameterSpec{
        "library", "odd_row_share", &LibraryCosts::odd_row_share, D::share, kShareOrNone,
        "of the matrix rate that 16-bit GEMMs reach with rows of an odd number of elements; 0: the same",
        Presence::optional},
    ParameterSpec{
        "library", "even_row_share", &LibraryCosts::even_row_share, D::share, kShareOrNone,
        "of the matrix rate that 16-bit GEMMs reach with rows off the multiples of 16 bytes, but of an "
        "even number of elements; 0: the same",
        Presence::optional},
    ParameterSpec{"library", "slice_copy_bandwidth", &LibraryCosts::slice_copy_gb_per_s, D::rate, kRate,
                  "of the framework's copy into slices of a matrix, bytes copied; 0: as memory gives",
                  Presence::optional},
    ParameterSpec{"library", "framework_sync_time", &LibraryCosts::framework_sync_ns, D::time, kTime,
                  "host work of the framework around a synchronised step"},
    ParameterSpec{"library", "framework_gather_time", &LibraryCosts::framework_gather_ns, D::time, kTime,
                  "host work of the framework's gather into slices of a matrix, beyond the collective call",
                  Presence::optional},

    ParameterSpec{"fabric", "link", &Fabric::link_raw_gb_per_s, D::rate, kPositiveRate,
                  "raw rate, one direction, of one link (mesh) or one GPU's port (switch)"},
    ParameterSpec{"fabric", "store_efficiency", &Fabric::store_efficiency, D::share, kEfficiency,
                  "payload share of the raw rate, remote stores over one link"},
    ParameterSpec{"fabric", "store_idle_share", &Fabric::store_idle_share, D::share, kIdleShare,
                  "of a full link, what a single copying workgroup would leave idle; less with more of them",
                  Presence::optional},
    ParameterSpec{
        "fabric",
        "split_line_bytes", &KernelCosts::split_line_bytes, D::data, kLinkEnds,
        "on a link, for every line of 128 bytes that a stored row, or box of the copy engine, lies in "
        "beyond those that its bytes fill",
        Presence::optional},
    ParameterSpec{
        "fabric",
        "sector_end_bytes", &KernelCosts::sector_end_bytes, D::data, kLinkEnds,
        "on a link, for every begin or end of a stored row off the multiples of 32 bytes, but on those "
        "of 16",
        Presence::optional},
    ParameterSpec{"fabric", "ragged_end_bytes", &KernelCosts::ragged_end_bytes, D::data, kLinkEnds,
                  "on a link, for every begin or end of a stored row off the multiples of 16 bytes",
                  Presence::optional},
    ParameterSpec{"fabric", "load_efficiency", &Fabric::load_efficiency, D::share, kEfficiency,
                  "payload share of the raw rate, remote loads"},
    ParameterSpec{"fabric", "atomic_efficiency", &Fabric::atomic_efficiency, D::share, kEfficiency,
                  "payload share of the raw rate, remote atomics on data"},
    ParameterSpec{"fabric", "store_egress", &Fabric::store_egress_gb_per_s, D::rate, kPositiveRate,
                  "one GPU storing to all peers"},
    ParameterSpec{"fabric", "store_ingress", &Fabric::store_ingress_gb_per_s, D::rate, kPositiveRate,
                  "one GPU being stored to by all peers"},
    ParameterSpec{"fabric", "load_ingress", &Fabric::load_ingress_gb_per_s, D::rate, kPositiveRate,
                  "one GPU loading from all peers"},
    ParameterSpec{"fabric", "load_egress", &Fabric::load_egress_gb_per_s, D::rate, kPositiveRate,
                  "one GPU being read by all peers"},
    ParameterSpec{"fabric", "store_latency", &Fabric::store_latency_ns, D::time, kPositiveTime,
                  "first byte leaves to first byte visible at the peer"},
    ParameterSpec{"fabric", "load_round_trip", &Fabric::load_round_trip_ns, D::time, kPositiveTime,
                  "remote load of one line"},
    ParameterSpec{"fabric", "flag_latency", &Fabric::flag_latency_ns, D::time, kPositiveTime,
                  "system scope: release at one GPU to acquire at another"},
    ParameterSpec{
        "fabric",
        "signal_round_trip", &Fabric::signal_round_trip_ns, D::time, kTime,
        "a signal to a peer, until its sender knows it to be there: the release of the workgroup's next "
        "signal takes at least as long; 0: unknown",
        Presence::optional},
    ParameterSpec{"fabric", "arbitration_spread", &Fabric::arbitration_spread, D::share, kSpread,
                  "relative standard deviation of the service that equal requesters get on a full link"},
    ParameterSpec{"fabric", "convoy_rounds", &Fabric::convoy_rounds, D::count, count_up_to(64),
                  "rounds of workgroups after which GPUs that began with the same peer no longer meet there",
                  Presence::optional},
    ParameterSpec{"fabric", "network_bandwidth", &Fabric::network_gb_per_s, D::rate, kPositiveRate,
                  "one NIC, one direction; every GPU has one", Presence::several_nodes},
    ParameterSpec{"fabric", "network_latency", &Fabric::network_latency_ns, D::time, kPositiveTime,
                  "one way between GPUs of different nodes, on top of the latencies within one",
                  Presence::several_nodes},

    ParameterSpec{"network", "nodes_per_leaf", &NodeNetwork::nodes_per_leaf, D::count,
                  count_up_to(kMostNodes), "nodes under one leaf switch; all when missing",
                  Presence::optional},
    ParameterSpec{"network", "uplink_share", &NodeNetwork::uplink_share, D::share, kEfficiency,
                  "of what all NICs under a leaf switch send, what it passes on; all when missing",
                  Presence::optional},
    ParameterSpec{"network", "spine_latency", &NodeNetwork::spine_latency_ns, D::time, kTime,
                  "one way through the spine, on top of that through a leaf", Presence::optional},
    ParameterSpec{"network", "efficiency", &NodeNetwork::efficiency, D::share, kEfficiency,
                  "payload share of the raw rate of a NIC, stores and loads; as of [fabric] when missing",
                  Presence::optional},
    ParameterSpec{
        "network", "atomic_efficiency", &NodeNetwork::atomic_efficiency, D::share, kEfficiency,
        "payload share of the raw rate of a NIC, remote atomics on data; as of [fabric] when missing",
        Presence::optional},
    ParameterSpec{"network", "message_time", &NodeNetwork::message_ns, D::time, kTime,
                  "a NIC, for every message besides its bytes: a run of bytes at the target",
                  Presence::optional},
};

// Each parameter needs a measurement and code that uses it. The limit is raised only for a mechanism that
// changes a row of `reproduce` or `validate` by more than 1 % (scripts/ablate) and that no existing parameter
// can represent.
static_assert(kSpecs.size() <= 139, "more parameters than the model is meant to have");

// Table name in kSpecs: "gpu.matrix.fp16" and the other dtypes share the entries of "gpu.matrix".
std::string_view table_of_specs(std::string_view table) {
  constexpr std::string_view kMatrix = "gpu.matrix";
  for (const std::string_view dtype : kDTypeNames) {
    if (table == fmt::format("{}.{}", kMatrix, dtype)) return kMatrix;
  }
  return table;
}

}  // namespace

std::span<const ParameterSpec> parameter_specs() { return kSpecs; }

const ParameterSpec* find_parameter_spec(std::string_view key) {
  const std::size_t dot = key.rfind('.');
  const bool top_level = dot == std::string_view::npos;
  const std::string_view table = top_level ? "" : table_of_specs(key.substr(0, dot));
  const std::string_view name = top_level ? key : key.substr(dot + 1);
  for (const ParameterSpec& spec : kSpecs) {
    if (spec.table == table && spec.name == name) return &spec;
  }
  return nullptr;
}

std::string value_problem(const ParameterSpec& spec, double value, std::string_view unit) {
  const double factor = unit_factor(spec.dimension, unit);
  if (factor == 0) {
    return fmt::format("unit \"{}\" does not fit; allowed: {}", unit, unit_names(spec.dimension));
  }
  const double internal = value * factor;
  const Bounds& bounds = spec.bounds;
  const bool none = bounds.above_zero > 0 && internal == 0;
  const double lowest = std::max(bounds.low, bounds.above_zero);
  const bool low_ok = none || (bounds.low_allowed ? internal >= lowest : internal > lowest);
  if (!std::isfinite(internal) || !low_ok || internal > bounds.high) {
    return fmt::format("value {}{}{} is out of range; allowed: {}{} {:g} and at most {:g}", value,
                       unit.empty() ? "" : " ", unit, bounds.above_zero > 0 ? "0, or " : "",
                       bounds.low_allowed ? "at least" : "more than", lowest / factor, bounds.high / factor);
  }
  if (spec.dimension == Dimension::count && internal != std::floor(internal)) {
    return fmt::format("value {} must be a whole number", value);
  }
  return "";
}

}  // namespace tritax
