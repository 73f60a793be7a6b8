// Kernels that start as a whole or not at all (Placement::gang), as after a cooperative launch. A gang
// without room waits; kernels launched later go ahead of it.
#include "sim/engine_dispatch.hpp"

namespace tritax::engine {

// Sends all workgroups of a gang, or none.
void Dispatch::start_gang(std::uint32_t k, double now) {
  const Kernel& kernel = run_.schedule.kernels[k];
  KernelState& state = run_.kernels[k];
  if (state.to_send == 0) return;
  Dispatcher& dispatcher = run_.gpus[kernel.rank].dispatcher;
  const auto size = static_cast<std::uint32_t>(kernel.workgroups.size());
  const std::int32_t first_die = kernel.cu_begin / run_.machine.gpu.cus_per_xcd;
  std::vector<Placed> places;
  while (places.size() < size) {
    const auto w = static_cast<std::uint32_t>(places.size());
    const auto die = first_die + static_cast<std::int32_t>(w % state.dies);
    const std::int32_t cu = dispatcher.place(die, w / state.dies, state.demand);
    if (cu < 0) break;
    dispatcher.take(cu, state.demand);
    places.push_back({k, w, cu});
  }
  for (const Placed& placed : places) dispatcher.release(placed.cu, state.demand);
  if (places.size() < size) return;
  for (const Placed& placed : places) send(placed, now);
}

// The same with given places: each workgroup is next on its compute unit, and has room.
void Dispatch::start_gang_by_place(std::uint32_t k, double now) {
  const KernelState& state = run_.kernels[k];
  const std::int32_t rank = run_.schedule.kernels[k].rank;
  OfGpu& gpu = of_gpu(rank);
  std::uint32_t ready = 0;
  for (std::size_t cu = 0; cu < gpu.place_queues.size(); ++cu) {
    const PlaceQueue& queue = gpu.place_queues[cu];
    std::int32_t here = 0;
    for (std::size_t i = queue.head; i < queue.workgroups.size() && queue.workgroups[i].kernel == k; ++i)
      ++here;
    Demand all = state.demand;
    all.waves *= here;
    all.registers *= here;
    all.lds *= here;
    if (here > 0 && !run_.gpus[rank].dispatcher.has_room(static_cast<std::int32_t>(cu), all)) return;
    ready += static_cast<std::uint32_t>(here);
  }
  if (ready < state.to_send) return;
  for (PlaceQueue& queue : gpu.place_queues) {
    while (queue.head < queue.workgroups.size() && queue.workgroups[queue.head].kernel == k) {
      send(queue.workgroups[queue.head++], now);
    }
  }
}

}  // namespace tritax::engine
