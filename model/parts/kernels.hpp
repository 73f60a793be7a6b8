// Common parts of hand-written kernels: the resources of a workgroup, the split of compute units among roles,
// the order of peers, and the host program around the kernels.
//
// Roles: r own rank, W ranks, p workgroup number, G workgroups of a grid.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/core/ceil_div.hpp"
#include "model/parts/gemm_knobs.hpp"
#include "model/schedule/builder.hpp"
#include "model/workload/workload.hpp"

namespace tritax {

// Share `rank` of `size` things that `ranks` ranks split as evenly as possible: the first size mod ranks
// shares are one larger.
struct Share {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
};
Share share_of(std::int64_t size, int rank, int ranks);

// Piece `i` of `pieces` of so many rows: whole tiles of `tile` rows except in the last piece; empty beyond
// it.
Share piece_of_rows(std::int64_t rows, std::int32_t i, std::int32_t pieces, std::int32_t tile);

// Resources of a workgroup that computes tiles of this shape: accumulators and operand fragments in
// registers, and operand stages in LDS. `costs`: of the kernel. Throws UserError when the tile does not fit a
// compute unit of `gpu`.
Resources matmul_resources(const Gpu& gpu, const KernelCosts& costs, DType dtype, const MatmulTile& tile);

// Resources of a workgroup that only copies, in small pieces: 256 threads, 64 registers, no LDS.
Resources copy_resources();

// Resources of a workgroup that copies whole tiles of `elements` elements. A compiler that keeps the address
// of every element needs registers for the addresses (gpu.copy_registers), up to the limit of a thread, or of
// all threads together.
Resources tile_copy_resources(const Gpu& gpu, std::int32_t threads, std::int64_t elements);

// Resources of a kernel with some workgroups that multiply and others that copy tiles of `elements` elements:
// the threads of the multiplying role, and the larger registers and LDS of both roles.
Resources with_copy_role(const Gpu& gpu, const Resources& gemm, std::int64_t elements);

// Compute and communication workgroups of a pattern that splits the compute units.
struct Split {
  std::int32_t gemm = 0;
  std::int32_t comm = 0;
};

// The split that the knobs ask for. Without knobs, the largest power of two not above the CU count computes
// and the rest communicates (ROCm/iris example 11); if nothing is left, one CU in eight communicates. With
// one rank no CU communicates. With one knob, the other role gets the rest. With two kernels, the rest is
// what the fullest die leaves on every die, so that both kernels are resident, unless that is nothing. Throws
// UserError if both together exceed the CU count.
Split split_cus(const GemmKnobs& knobs, const Gpu& gpu, int ranks, Roles roles);

// Workload::left_out for the knobs of the CU split: the compute units that a left-out knob stands for.
std::string left_out_cus(const Pattern& pattern, const Spec& knob, const Machine& machine);

// Compute workgroups of a pattern that does not split: the knob, or all CUs.
std::int32_t all_cus(const Gpu& gpu, std::int32_t knob);

// First item of workgroup p in a persistent grid of G workgroups: p, or p after the XCD remap.
std::int32_t first_item(const GemmKnobs& knobs, const Gpu& gpu, std::int32_t p, std::int32_t workgroups);

// The other ranks in an order, for workgroup number `workgroup` among the sending workgroups.
std::vector<int> peers_of(PeerOrder order, int ranks, int rank, std::int32_t workgroup);

// The same with the own rank: at its place (fixed) or last.
std::vector<int> ranks_from(PeerOrder order, int ranks, int rank, std::int32_t workgroup);

// Merges lists per peer into one list: list after list, or one of each in turn.
template <typename T>
std::vector<T> merged(const std::vector<std::vector<T>>& by_peer, bool in_turn) {
  std::vector<T> all;
  if (!in_turn) {
    for (const std::vector<T>& list : by_peer) all.insert(all.end(), list.begin(), list.end());
    return all;
  }
  std::size_t longest = 0;
  for (const std::vector<T>& list : by_peer) longest = std::max(longest, list.size());
  for (std::size_t i = 0; i < longest; ++i) {
    for (const std::vector<T>& list : by_peer) {
      if (i < list.size()) all.push_back(list[i]);
    }
  }
  return all;
}

// Adds the end of communicating workgroup `index`: it tells its counterpart on every peer that its data are
// there, and waits for the data of all peers. `arrived` has one flag for every (index, source rank).
void exchange_arrivals(ScheduleBuilder& builder, const std::vector<int>& peers, int ranks, int rank,
                       std::int32_t index, std::int16_t arrived, LockProtocol protocol,
                       ServesPeers serves = ServesPeers::in_turn);

// Adds operations as `add` does, as a group unless the kernel serves its peers in turn.
template <typename Add>
void add_by_peer(ScheduleBuilder& builder, ServesPeers serves, Add&& add) {
  if (serves == ServesPeers::in_turn) return add();
  builder.together(add);
}

// Adds a kernel of one workgroup that does only this, for data that copy engines have moved or will move.
std::int32_t telling_kernel(ScheduleBuilder& builder, std::string_view name, const std::vector<int>& peers,
                            int ranks, int rank, std::int16_t arrived, LockProtocol protocol);

// The same behind all copies to the peers, which are in the streams 1 + peer. Uses the events `first_event` +
// peer.
void tell_behind_copies(ScheduleBuilder& builder, const std::vector<int>& peers, int ranks, int rank,
                        std::int32_t first_event, std::int16_t arrived, LockProtocol protocol);

// Host program of a rank: barrier, kernels (launched one by one or as a graph), device synchronisation,
// barrier.
void host_program(ScheduleBuilder& builder, int rank, const GemmKnobs& knobs, const Graph& kernels);

// How blocks reach all GPUs in a workload that gathers: peer by peer, as its pattern says, or once through
// the switch.
inline constexpr std::array<std::string_view, 2> kGatherWayNames{"peer-by-peer", "multimem"};
Spec gather_way_knob();

// Adds a persistent kernel whose workgroups only wait for flags and post copies to copy engines.
std::int32_t posting_kernel(ScheduleBuilder& builder, int rank, std::string_view name);

// Workgroups of a kernel beside which kernels of a few small workgroups find room: as many as asked, but one
// compute unit of every die is left, because the first workgroup of a kernel goes to the first die, whichever
// die has room.
std::int32_t cus_beside_small_kernels(const Gpu& gpu, std::int32_t asked);

// Throws UserError if a compute unit cannot hold this many waves of a workgroup.
void check_waves(std::int32_t waves, const Gpu& gpu);

// Throws UserError if the machine has no matrix instruction for the dtype.
void check_dtype(DType dtype, const Machine& machine);

// Throws UserError if a GPU cannot hold this many bytes. `what`: the user of the bytes, "pattern library".
void check_memory(std::string_view what, double bytes, const Gpu& gpu);

// kMostScheduled, for estimates before a schedule is built.
inline constexpr double kMaxOperations = static_cast<double>(kMostScheduled);

}  // namespace tritax
