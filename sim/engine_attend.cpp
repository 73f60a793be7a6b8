// Attention in the engine: the share of a workgroup's keys and values that the caches hold, see
// stream_reuse.hpp. In all other respects an `attend` runs like a matmul: engine_ops.cpp.
#include "sim/engine_attend.hpp"

#include <algorithm>
#include <cmath>

#include "model/schedule/op_views.hpp"
#include "sim/engine_clock.hpp"
#include "sim/engine_matmul_times.hpp"

namespace tritax::engine {

namespace {

// Bytes of the rows that stream past: keys and values, or all that belongs to queries.
double stream_bytes(const MatmulShape& shape) {
  return shape.cost.a_bytes + shape.cost.b_bytes + shape.cost.sum_bytes;
}

}  // namespace

Attention::Caches& Attention::caches_of(std::int32_t rank) {
  Caches& caches = caches_[static_cast<std::size_t>(rank)];
  if (caches.l2.empty()) {
    caches.l2.assign(static_cast<std::size_t>(run_.machine.gpu.xcds), StreamReuse(run_.machine.gpu.l2_bytes));
    caches.llc.emplace_back(run_.machine.gpu.llc_bytes);
  }
  return caches;
}

Missed Attention::begin(WorkgroupState& wg, std::uint32_t id, std::int32_t sharers, double now) {
  const GpuState& gpu = run_.gpus[static_cast<std::size_t>(wg.rank)];
  const Op& op = run_.schedule.ops[wg.pc];
  const MatmulShape& shape = run_.shapes[run_.inputs_of_op[wg.pc].shape];
  Caches& caches = caches_of(wg.rank);
  if (id >= readers_.size()) readers_.resize(id + 1);
  Reader& state = readers_[id];
  const double streamed_row_bytes = stream_bytes(shape) / shape.k;
  StreamReuse::Piece piece;
  piece.stream = streams_[wg.pc];
  piece.begin = op.k_begin * streamed_row_bytes;
  piece.end = op.k_end * streamed_row_bytes;
  piece.start_ns = now;
  const double bytes = piece.end - piece.begin;
  const bool goes_on = state.wg == wg.id && state.stream == piece.stream && state.end == piece.begin;
  piece.run_begin = goes_on ? state.run_begin : piece.begin;
  const double pace = luck_.pace_of(wg);
  const auto expected_ns = [&](std::uint32_t misses) {  // the last duration, if the misses are equal
    if (goes_on && state.misses == misses) return state.ns_per_byte * bytes;
    return work_ns(shape, sharers, misses, Clock::factor(gpu, shape.dtype)) / pace;
  };
  piece.ns_per_byte = expected_ns(goes_on ? state.misses : 0) / bytes;

  const auto parts = [](double share) { return static_cast<std::uint32_t>(std::lround(share * kMissParts)); };
  StreamReuse& l2 = caches.l2[static_cast<std::size_t>(wg.die)];
  const StreamReuse::Found found = l2.found(piece);
  const std::uint32_t missed_l2 = parts(1 - found.share);
  std::uint32_t missed_llc = missed_l2;
  const bool asks_llc = missed_l2 > 0 && run_.machine.gpu.llc_bytes > 0;
  if (asks_llc) missed_llc = parts((1 - caches.llc.front().found(piece).share) * missed_l2 / kMissParts);
  const std::uint32_t misses = missed_l2 | missed_llc << kMissPartsBits;
  const double alone_ns = expected_ns(misses);
  // A reader does not overtake the readers whose lines it finds.
  const double taken_ns = std::max(alone_ns, found.no_sooner_ns - now);
  piece.ns_per_byte = taken_ns / bytes;
  piece.missed = static_cast<double>(missed_l2) / kMissParts;
  state = {wg.id,
           piece.stream,
           l2.begin(piece),
           kNobody,
           misses,
           piece.end,
           piece.run_begin,
           0,
           pace * alone_ns / taken_ns};
  if (asks_llc) {
    piece.weight = piece.missed;
    state.llc_reader = caches.llc.front().begin(piece);
  }
  Missed missed;
  missed.bits = misses;
  missed.l2_bytes = bytes * missed_l2 / kMissParts + shape.cost.q_bytes;
  missed.llc_bytes = bytes * missed_llc / kMissParts + shape.cost.q_bytes;
  count(wg, op, shape, missed_l2, missed_llc);
  return missed;
}

void Attention::count(const WorkgroupState& wg, const Op& op, const MatmulShape& shape,
                      std::uint32_t missed_l2, std::uint32_t missed_llc) {
  const auto count = [&](std::int32_t buffer, double bytes) {
    CacheTraffic& traffic = run_.traffic.at(wg.rank, wg.die, buffer, op.kind);
    traffic.asked_bytes += bytes;
    traffic.l2_hit_bytes += bytes * (kMissParts - missed_l2) / kMissParts;
    traffic.llc_hit_bytes += bytes * (missed_l2 - missed_llc) / kMissParts;
    traffic.hbm_read_bytes += bytes * missed_llc / kMissParts;
  };
  count(op.src_buffer, shape.cost.a_bytes);
  count(op.b_buffer, shape.cost.b_bytes);
  if (op.kind == OpKind::attend_backward) {
    const std::int32_t sums = BackwardView(op).query_gradients();
    count(sums, shape.cost.sum_bytes);
    run_.traffic.at(wg.rank, wg.die, sums, op.kind).hbm_written_bytes +=
        shape.cost.sum_bytes * missed_llc / kMissParts;
  }
  if (shape.cost.q_bytes == 0) return;
  CacheTraffic& queries = run_.traffic.at(wg.rank, wg.die, op.buffer, op.kind);  // no cache has them
  queries.asked_bytes += shape.cost.q_bytes;
  queries.hbm_read_bytes += shape.cost.q_bytes;
}

void Attention::end(const WorkgroupState& wg, std::uint32_t id, double now) {
  Caches& caches = caches_of(wg.rank);
  const MatmulShape& shape = run_.shapes[run_.inputs_of_op[wg.pc].shape];
  Reader& state = readers_[id];
  caches.l2[static_cast<std::size_t>(wg.die)].end(state.l2_reader, now);
  if (state.llc_reader != kNobody) caches.llc.front().end(state.llc_reader, now);
  state.ns_per_byte = std::max(1e-12, (now - wg.op_start_ns) / stream_bytes(shape));
}

}  // namespace tritax::engine
