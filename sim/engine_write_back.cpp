// Data that waits in the caches to be written to memory: of the run itself, and of the time before the run.
//
// Stored data goes to memory at once, whatever replaces it in the L2 later. Only stores of tuned kernels stay
// in the cache until after the run, if they fit.
#include "sim/engine_write_back.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "model/core/error.hpp"

namespace tritax::engine {

WriteBack::WriteBack(const Run& run) : run_(run), dirty_(static_cast<std::size_t>(run.simulated_ranks)) {
  const double most_bytes = run_.machine.gpu.dirty_share * cache_bytes();
  for (Dirty& dirty : dirty_) dirty.bytes = std::min(run_.options.written_before_bytes, most_bytes);
}

// Bytes of a GPU's buffers that matmuls read and, with `results`, that operations store to. Copies by tuned
// kernels, which come after a product, do not count.
double WriteBack::bytes_touched(bool results) const {
  std::vector<std::uint8_t> touched(run_.schedule.buffers.size(), 0);
  const auto touch = [&](std::int32_t buffer) { touched[static_cast<std::size_t>(buffer)] = 1; };
  for_each_op([&](const Kernel& kernel, const Op& op) {
    const bool copies = op.kind == OpKind::copy && !run_.costs.of(kernel).tuned;
    if (results && (op.kind == OpKind::store || copies)) touch(op.buffer);
    if (results && copies) touch(op.src_buffer);
    if (!multiplies(op.kind)) return;
    touch(op.src_buffer);
    touch(op.b_buffer);
  });
  for (const Op& op : run_.schedule.transfers) {
    if (results) touch(op.buffer);
    if (results) touch(op.src_buffer);
  }
  double bytes = 0;
  for (std::size_t i = 0; i < touched.size(); ++i) {
    const Buffer& buffer = run_.schedule.buffers[i];
    if (touched[i] != 0) bytes += bytes_of(buffer, {0, 0, buffer.rows, buffer.cols});
  }
  return bytes;
}

// Right after an equal run the operands are in the L2 if they fit.
void WriteBack::find_what_stays() {
  const double l2_bytes = run_.machine.gpu.l2_bytes;
  operands_stay_ = run_.options.warm && bytes_touched(false) <= l2_bytes;
  results_fit_ = run_.machine.gpu.llc_bytes == 0 && bytes_touched(true) <= l2_bytes;
}

// Whether the data of a store or copy goes to memory.
bool WriteBack::is_written_back(const Op& op, const KernelCosts& costs) const {
  return !(results_fit_ && costs.tuned && op.kind == OpKind::store);
}

// Fetches of a GPU's matmuls from memory displace a part of the data written before the run, at random, as
// caches with hashed sets do: the first bytes displace at the dirty share of the caches, later bytes at the
// falling share. Evidence: products of few rows, whose operands are smaller than the caches. cuBLAS products
// of 10 to 34 MB come out 18 and 19 % slow in the median on H200 and H100 if dirty data is displaced first,
// and 3 % and 0 % fast if it is displaced at random (scenarios/measured/h200-4-library-microbench.csv,
// h100-library-microbench.csv). The resident workgroups read side by side, all with the same share.
void WriteBack::find_share(Dirty& dirty, std::int32_t rank) const {
  if (dirty.reads_bytes > 0) return;
  dirty.reads_bytes = bytes_ahead(rank);
  TRITAX_ASSERT(dirty.reads_bytes > 0, "who reads has bytes ahead");
  const double displaced = -dirty.bytes * std::expm1(-dirty.reads_bytes / cache_bytes());
  dirty.share = displaced / dirty.reads_bytes;
  dirty.write_back_ns = displaced * write_cost() / run_.machine.gpu.hbm_gb_per_s;
  if (dirty.share < 1.0 / kEvictionParts) dirty.bytes = dirty.share = dirty.write_back_ns = 0;
}

WriteBack::Displaced WriteBack::displace(std::int32_t rank, double bytes) {
  Dirty& dirty = dirty_[static_cast<std::size_t>(rank)];
  find_share(dirty, rank);
  const Displaced displaced{dirty.share, dirty.write_back_ns};
  dirty.bytes -= dirty.share * bytes;
  dirty.reads_bytes -= bytes;
  return displaced;
}

// Bytes of the different slabs that the workgroups of a GPU multiply now or next.
double WriteBack::bytes_ahead(std::int32_t rank) const {
  std::unordered_set<std::uint32_t> slabs;
  double bytes = 0;
  for (const WorkgroupState& wg : run_.workgroups) {
    if (wg.kernel == kNobody || wg.rank != rank) continue;
    std::uint32_t o = wg.pc;
    while (o < wg.end && !multiplies(run_.schedule.ops[o].kind)) ++o;
    if (o == wg.end) continue;
    const MatmulInputs& inputs = run_.inputs_of_op[o];
    const MatmulShape& shape = run_.shapes[inputs.shape];
    if (shape.peer < 0 && slabs.insert(inputs.a_slab).second) bytes += shape.cost.a_bytes;
    if (slabs.insert(inputs.b_slab).second) bytes += shape.cost.b_bytes;
  }
  return bytes;
}

// Cost of a byte written to HBM, in bytes read.
double WriteBack::write_cost() const {
  const double writes = run_.machine.gpu.hbm_write_gb_per_s;
  return writes > 0 ? run_.machine.gpu.hbm_gb_per_s / writes : 1;
}

}  // namespace tritax::engine
