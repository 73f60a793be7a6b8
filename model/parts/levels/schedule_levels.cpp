#include "model/parts/levels/schedule_levels.hpp"

#include <algorithm>
#include <span>

#include "model/core/error.hpp"

namespace tritax {

namespace {

// The first operation of a kernel that multiplies; null if none does.
const Op* first_product(const Schedule& schedule, const Kernel& kernel) {
  for (const auto* programs : {&kernel.workgroups, &kernel.items}) {
    for (const Workgroup& program : *programs) {
      for (const Op& op : std::span(schedule.ops).subspan(program.first_op, program.op_count)) {
        if (op.kind == OpKind::matmul || op.kind == OpKind::attend) return &op;
      }
    }
  }
  return nullptr;
}

bool same_way(const KernelLevels& a, const KernelLevels& b) {
  return a.profile == b.profile && a.dtype == b.dtype && a.tile == b.tile && a.attends == b.attends;
}

}  // namespace

std::vector<KernelLevels> levels_of(const Schedule& schedule, const Machine& machine) {
  const CostTable costs(machine);
  std::vector<KernelLevels> rows;
  for (const Kernel& kernel : schedule.kernels) {
    const Op* product = kernel.tile.m > 0 ? first_product(schedule, kernel) : nullptr;
    if (product == nullptr) continue;
    KernelLevels row;
    row.kernel = kernel.name;
    row.profile = kernel.profile;
    row.tile = kernel.tile;
    row.attends = product->kind == OpKind::attend;
    row.dtype = schedule.buffers[static_cast<std::size_t>(product->src_buffer)].dtype;
    if (row.attends && row.tile.k == 0) row.tile.k = product->rect.cols;
    const auto known = std::find_if(rows.begin(), rows.end(),
                                    [&](const KernelLevels& other) { return same_way(row, other); });
    if (known != rows.end()) continue;
    try {
      const auto lower = row.attends ? lower_attend : lower_matmul;
      row.levels = lower(machine.gpu, costs.of(kernel), row.dtype, row.tile);
    } catch (const UserError& error) {
      row.refusal = error.what();
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace tritax
