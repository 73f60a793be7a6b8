#include "model/schedule/harness.hpp"

#include <algorithm>
#include <cstddef>

namespace tritax {

namespace {

bool is_work(HostOpKind kind) {
  return kind == HostOpKind::launch || kind == HostOpKind::graph_launch || kind == HostOpKind::copy ||
         kind == HostOpKind::host_work;
}

}  // namespace

std::vector<char> harness_barriers(const Schedule& schedule) {
  std::vector<char> worked_before;  // by barrier: on any rank
  std::vector<char> works_after;
  for (const std::vector<HostOp>& program : schedule.host) {
    bool worked = false;
    std::size_t barrier = 0;
    std::size_t after_last_work = 0;  // barriers from this index on have no later work
    for (const HostOp& op : program) {
      if (is_work(op.kind)) {
        worked = true;
        after_last_work = barrier;
      }
      if (op.kind != HostOpKind::barrier) continue;
      if (barrier == worked_before.size()) {
        worked_before.push_back(0);
        works_after.push_back(0);
      }
      if (worked) worked_before[barrier] = 1;
      ++barrier;
    }
    std::fill_n(works_after.begin(), after_last_work, char{1});
  }
  std::vector<char> harness;
  for (std::size_t i = 0; i < worked_before.size(); ++i) {
    harness.push_back(worked_before[i] != 0 && works_after[i] != 0 ? 0 : 1);
  }
  return harness;
}

}  // namespace tritax
