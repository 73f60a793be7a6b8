// What waits in the caches to be written to memory: of the run itself, and of what was there before.
//
// What is stored goes to memory at once, whatever takes its place in the L2 later; only what tuned kernels
// store stays until after the run, wherever it fits.
#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "model/core/error.hpp"
#include "sim/engine_write_back.hpp"

namespace tritax::engine {

// Of a GPU's buffers that matmuls read and, with `results`, that operations store to; copies by tuned
// kernels, which come after a product, are not asked for.
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
    if (touched[i] != 0) bytes += static_cast<double>(buffer.rows) * buffer.cols * bytes_of(buffer.dtype);
  }
  return bytes;
}

// Right after an equal run the operands are in the L2 if they fit.
void WriteBack::find_what_stays() {
  const double l2_bytes = run_.machine.gpu.l2_bytes;
  operands_stay_ = run_.options.warm && bytes_touched(false) <= l2_bytes;
  results_fit_ = run_.machine.gpu.llc_bytes == 0 && bytes_touched(true) <= l2_bytes;
}

// Whether what a store or copy writes goes to memory.
bool WriteBack::is_written_back(const Op& op, const KernelCosts& costs) const {
  return !(results_fit_ && costs.tuned && op.kind == OpKind::store);
}

// What matmuls of a GPU fetch from memory displaces some of what was written before the run, by chance, as
// caches that are hashed into sets do: of the first bytes as much as the caches are dirty, less and less as
// that gets less. Products of few rows show it, whose operands are smaller than the caches: of cuBLAS, with
// 10 to 34 MB that displace first what is dirty, they come out 18 and 19 % slow in the median on H200 and
// H100, by chance 3 % and 0 % fast (scenarios/measured/h200-4-library-microbench.csv,
// h100-library-microbench.csv). The workgroups that are there read side by side, and none is luckier than the
// others.
void WriteBack::find_dirty_share(GpuState& gpu, std::int32_t rank) {
  if (gpu.dirty_reads_bytes > 0) return;
  gpu.dirty_reads_bytes = bytes_ahead(rank);
  TRITAX_ASSERT(gpu.dirty_reads_bytes > 0, "who reads has bytes ahead");
  const double displaced = -gpu.dirty_bytes * std::expm1(-gpu.dirty_reads_bytes / cache_bytes());
  gpu.dirty_share = displaced / gpu.dirty_reads_bytes;
  gpu.write_back_ns = displaced * write_cost() / run_.machine.gpu.hbm_gb_per_s;
  if (gpu.dirty_share < 1.0 / kEvictionParts) gpu.dirty_bytes = gpu.dirty_share = gpu.write_back_ns = 0;
}

// Of different slabs that the workgroups of a GPU multiply next, or are multiplying.
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
    if (slabs.insert(inputs.a_slab).second) bytes += shape.cost.a_bytes;
    if (slabs.insert(inputs.b_slab).second) bytes += shape.cost.b_bytes;
  }
  return bytes;
}

// Of a byte written to HBM, in bytes read.
double WriteBack::write_cost() const {
  const double writes = run_.machine.gpu.hbm_write_gb_per_s;
  return writes > 0 ? run_.machine.gpu.hbm_gb_per_s / writes : 1;
}

}  // namespace tritax::engine
