// Collects the findings of the checker, one per cause, up to a limit. Internal to model/schedule.
//
// Findings that differ only in numbers (ranks, workgroups, indices, values; not in names) have one cause: the
// same rule, broken by the same kind of operation on the same flags or buffers of kernels of the same name.
// The finding has the first place and the number of places.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/schedule/check.hpp"

namespace tritax {

class Findings {
 public:
  explicit Findings(std::size_t limit) : limit_(limit) {}

  // Adds `count` places. Names in `where` and `message` may be long or contain control characters; the stored
  // finding is one line.
  void add(Finding::Kind kind, const std::string& where, const std::string& message, std::size_t count = 1);
  bool full() const { return list_.size() >= limit_; }
  bool empty() const { return list_.empty(); }
  std::vector<Finding> take() { return std::move(list_); }

 private:
  std::size_t limit_;
  std::vector<Finding> list_;
  std::unordered_map<std::string, std::size_t> of_cause_;  // index into list_
};

class SyncGraph;

// The parts of the checker. check_ranges has no preconditions and includes check_limits, check_host,
// check_items, check_library_kernel (of one kernel) and check_reference; the other parts need a schedule in
// which check_ranges found nothing.
void check_ranges(const Schedule& schedule, Findings& findings);
void check_limits(const Schedule& schedule, Findings& findings);
void check_host(const Schedule& schedule, Findings& findings);
void check_items(const Schedule& schedule, Findings& findings);
void check_library_kernel(const Schedule& schedule, std::size_t kernel, Findings& findings);
void check_reference(const Schedule& schedule, Findings& findings);
void check_overflow(const SyncGraph& graph, Findings& findings);
void check_progress(const SyncGraph& graph, Findings& findings);
void check_order(const SyncGraph& graph, Findings& findings);
// Every workgroup must fit on an empty GPU.
LaunchOrders check_places(const SyncGraph& graph, const Gpu& gpu, Findings& findings);

// "workgroup 5" or "item 5" of a kernel, by the number of program_of() (items.hpp).
std::string describe_program(const Kernel& kernel, std::size_t number);

// "kernel 'scatter' rank 2"; "host operation 3 (launch) of rank 1"; "C[0:256, 512:768] of rank 1".
std::string describe_kernel(const Schedule& schedule, std::size_t kernel);
std::string describe_host_op(const Schedule& schedule, std::size_t rank, std::size_t op);
std::string describe_tile(const Schedule& schedule, std::int32_t buffer, const Rect& rect, std::int32_t rank);

// The problem of a rectangle of a buffer (named `what` in the message), or of source and target of a copy; an
// empty message if there is none.
std::string fault_of(const Schedule& schedule, std::int32_t buffer, const Rect& rect,
                     std::string_view what = "tile ");
Finding fault_of_copy(const Schedule& schedule, const Op& copy);
// Why a buffer, or an operation of a rank on buffers in range, cannot have its codec; empty if it can.
std::string fault_of_codec(const Buffer& buffer);
std::string fault_of_codec(const Schedule& schedule, const Op& op, std::int32_t own_rank);
// The problem of the regions, masks and dtypes of an operation that attends, forward or backward.
Finding fault_of_attention(const Schedule& schedule, const Op& op, const Kernel& kernel);

// "ready[7] of rank 1".
std::string describe_flag(const Schedule& schedule, std::int32_t flag, std::int32_t index, std::int32_t rank);

}  // namespace tritax
