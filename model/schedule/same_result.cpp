#include "model/schedule/same_result.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "model/schedule/accesses.hpp"
#include "model/schedule/find_phases.hpp"
#include "model/schedule/findings.hpp"
#include "model/schedule/items.hpp"
#include "model/schedule/op_traits.hpp"

namespace tritax {

namespace {

constexpr std::uint32_t kNowhere = ~std::uint32_t{0};

// A number of an operation; sums of other numbers practically never equal it (splitmix64).
std::uint64_t mark_of(std::uint32_t op) {
  std::uint64_t z = (std::uint64_t{op} + 1) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

// The contents of a workgroup's accumulator as a sum of marks of operations, which does not depend on their
// order.
class AccumulatorMarks {
 public:
  // The mark of the written-out contents; 0 for other operations.
  std::uint64_t after(const Op& op, std::uint32_t number) {
    switch (traits_of(op.kind).accumulator) {
      case AccumulatorUse::none:
        return 0;
      case AccumulatorUse::written_out:
        stored_ = true;
        return sum_ | 1;
      case AccumulatorUse::multiplied_into:
        if (stored_ || empty_) begin();
        break;
      case AccumulatorUse::added_to:
        if (empty_) begin();
        break;
      case AccumulatorUse::replaced:
        begin();
        break;
    }
    sum_ += mark_of(number);
    return 0;
  }

 private:
  void begin() {
    sum_ = 0;
    stored_ = false;
    empty_ = false;
  }
  std::uint64_t sum_ = 0;
  bool stored_ = false;
  bool empty_ = true;
};

// Marks by operation of the start. `start_of` empty: the schedule is the start.
std::vector<std::uint64_t> marks_written(const Schedule& schedule, std::span<const std::uint32_t> start_of) {
  std::vector<std::uint64_t> written(schedule.ops.size(), 0);
  for (const Kernel& kernel : schedule.kernels) {
    for (std::size_t p = 0; p < program_count(kernel); ++p) {
      const Workgroup& program = program_of(kernel, p);
      AccumulatorMarks marks;
      for (std::uint32_t i = program.first_op; i < program.first_op + program.op_count; ++i) {
        const std::uint32_t number = start_of.empty() ? i : start_of[i];
        written[number] = marks.after(schedule.ops[i], number);
      }
    }
  }
  return written;
}

bool is_moved(std::span<const std::uint32_t> start_of, const Workgroup& program) {
  for (std::uint32_t i = program.first_op; i < program.first_op + program.op_count; ++i) {
    if (start_of[i] != i) return true;
  }
  return false;
}

// Describes a signal that does not have all writes of its group before it in its workgroup, or a signal
// without writes that moved to another workgroup; "" if there is none.
std::string fault_of_publication(const Schedule& moved, std::span<const std::uint32_t> start_of,
                                 const std::vector<std::uint32_t>& groups,
                                 const std::vector<std::uint32_t>& published,
                                 const std::vector<std::uint32_t>& program_of_op) {
  std::vector<std::uint32_t> written(published.size(), 0);  // by group, in the current program
  for (std::size_t k = 0; k < moved.kernels.size(); ++k) {
    const Kernel& kernel = moved.kernels[k];
    for (std::size_t p = 0; p < program_count(kernel); ++p) {
      const Workgroup& program = program_of(kernel, p);
      for (std::uint32_t i = program.first_op; i < program.first_op + program.op_count; ++i) {
        const std::uint32_t group = groups[start_of[i]];
        const Op& op = moved.ops[i];
        if (writes_memory(op.kind)) ++written[group];
        if (op.kind != OpKind::signal) continue;
        if (published[group] == 0 && program_of_op[start_of[i]] != p) {
          return describe_op(moved, k, p, i - program.first_op) +
                 ": tells of what another workgroup has done";
        }
        if (is_relaxed(op) || written[group] == published[group]) continue;
        return describe_op(moved, k, p, i - program.first_op) + ": comes before what it publishes";
      }
      for (std::uint32_t i = program.first_op; i < program.first_op + program.op_count; ++i) {
        written[groups[start_of[i]]] = 0;
      }
    }
  }
  return {};
}

// Runs the checker on an existing graph. The first finding, or "".
std::string finding_of(const SyncGraph& graph, const Machine& machine, LaunchOrders* orders) {
  Findings findings(1);
  check_progress(graph, findings);
  if (findings.empty()) *orders = check_places(graph, machine.gpu, findings);
  const std::vector<Finding> found = findings.take();
  return found.empty() ? std::string{} : found.front().where + ": " + found.front().message;
}

}  // namespace

// By operation of the start: its place. By place: its program in the kernel.
struct MovedPlaces {
  struct Home {
    std::uint32_t program = 0;
    std::uint32_t first_op = 0;
  };
  MovedPlaces(const Schedule& moved, std::span<const std::uint32_t> start_of)
      : place_of(start_of.size()), homes(start_of.size()) {
    for (std::uint32_t i = 0; i < place_of.size(); ++i) place_of[start_of[i]] = i;
    for (const Kernel& kernel : moved.kernels) {
      for (std::uint32_t p = 0; p < program_count(kernel); ++p) {
        const Workgroup& program = program_of(kernel, p);
        std::fill_n(homes.begin() + program.first_op, program.op_count, Home{p, program.first_op});
      }
    }
  }
  std::vector<std::uint32_t> place_of;
  std::vector<Home> homes;
};

std::vector<std::uint32_t> published_writes(const Schedule& schedule,
                                            std::span<const std::uint32_t> publication_groups) {
  const auto most = std::max_element(publication_groups.begin(), publication_groups.end());
  std::vector<std::uint32_t> writes(most == publication_groups.end() ? 1 : *most + 1, 0);
  std::vector<char> signalled(writes.size(), 0);
  for (std::size_t i = 0; i < publication_groups.size(); ++i) {
    const Op& op = schedule.ops[i];
    if (writes_memory(op.kind)) ++writes[publication_groups[i]];
    if (op.kind == OpKind::signal && !is_relaxed(op)) signalled[publication_groups[i]] = 1;
  }
  for (std::size_t group = 0; group < writes.size(); ++group) {
    if (signalled[group] == 0) writes[group] = 0;
  }
  return writes;
}

std::vector<std::uint32_t> publication_groups(const Schedule& schedule) {
  std::vector<std::uint32_t> groups(schedule.ops.size(), 0);
  std::uint32_t group = 0;
  for (const Kernel& kernel : schedule.kernels) {
    for (std::size_t p = 0; p < program_count(kernel); ++p) {
      const Workgroup& program = program_of(kernel, p);
      ++group;
      bool after_signal = false;
      for (std::uint32_t i = program.first_op; i < program.first_op + program.op_count; ++i) {
        const bool releases = schedule.ops[i].kind == OpKind::signal && !is_relaxed(schedule.ops[i]);
        if (after_signal && !releases) ++group;
        after_signal = releases;
        groups[i] = group;
      }
    }
  }
  return groups;
}

bool skips_by_claim(std::span<const Op> program) {
  return std::any_of(program.begin(), program.end(),
                     [](const Op& op) { return op.kind == OpKind::claim && !draws_items(op); });
}

std::vector<std::pair<std::uint32_t, std::uint32_t>> reads_in_flight(std::span<const Op> program,
                                                                     std::int32_t own_rank) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> found;
  std::uint32_t writer = kNowhere;
  for (std::uint32_t i = 0; i < program.size(); ++i) {
    // Operations that drain wait for the store before them, also before reads.
    if (drains(program[i])) writer = kNowhere;
    if (writer != kNowhere) {
      const Region written = tile_of(program[writer]);
      bool meets = false;
      for_each_read(program[i], own_rank, [&](const Region& read) {
        meets = meets || (read.buffer == written.buffer && read.rank == written.rank &&
                          overlap(read.rect, written.rect));
      });
      if (meets) found.emplace_back(writer, i);
    }
    if (is_asynchronous(program[i].kind)) writer = i;
  }
  return found;
}

bool SameResult::reads_what_is_there(const Schedule& moved, std::span<const std::uint32_t> start_of,
                                     const Workgroup& program, std::int32_t own_rank) const {
  for (const auto& [write, read] : reads_in_flight(tritax::ops_of(moved, program), own_rank)) {
    const std::pair pair{start_of[program.first_op + write], start_of[program.first_op + read]};
    if (!std::binary_search(in_flight_.begin(), in_flight_.end(), pair)) return false;
  }
  return true;
}

SameResult::SameResult(const Schedule& start, const Machine& machine)
    : machine_(machine), groups_(publication_groups(start)), published_(published_writes(start, groups_)) {
  require_sound(check_schedule(start), start.name);
  require_sound(check_schedule_on(start, machine, 20, &orders_), start.name);
  written_ = marks_written(start, {});
  program_of_op_.resize(start.ops.size());
  for (const Kernel& kernel : start.kernels) {
    for (std::size_t p = 0; p < program_count(kernel); ++p) {
      const std::uint32_t first = program_of(kernel, p).first_op;
      std::fill_n(program_of_op_.begin() + first, program_of(kernel, p).op_count,
                  static_cast<std::uint32_t>(p));
      for (const auto& [write, read] :
           reads_in_flight(tritax::ops_of(start, program_of(kernel, p)), kernel.rank)) {
        in_flight_.emplace_back(first + write, first + read);
      }
    }
  }
  std::sort(in_flight_.begin(), in_flight_.end());
  const SyncGraph graph = sync_graph_of(start);
  for (const WorkgroupRun& workgroup : graph.workgroups()) {
    const Run& run = graph.runs()[workgroup.run];
    first_op_.push_back(run.kernel == kNoKernel
                            ? kNowhere
                            : program_of(start.kernels[run.kernel], workgroup.workgroup).first_op);
    first_of_run_.push_back(run.first_workgroup);
  }
  const Accesses accesses = find_accesses(graph);
  const auto ask = [&](OpPoint point, const WriteGroup& group) {
    const auto begin = static_cast<std::uint32_t>(ops_.size());
    const auto ops = accesses.ops_of(group);
    ops_.insert(ops_.end(), ops.begin(), ops.end());
    standings_.push_back({point.workgroup_run, point.op, group.first.at.workgroup_run, begin,
                          static_cast<std::uint32_t>(ops_.size()), 0, 0});
  };
  for (const Conflict& conflict : accesses.read_write) {
    ask(accesses.reads[conflict.first].at, accesses.writes[conflict.second]);
  }
  for (const Conflict& conflict : find_write_conflicts(graph, accesses)) {
    const WriteGroup& group = accesses.writes[conflict.first];
    for (const std::uint32_t op : accesses.ops_of(group)) {
      ask({group.first.at.workgroup_run, op}, accesses.writes[conflict.second]);
    }
  }
  find_rewrites(accesses, find_own_rewrites(graph, accesses));
  std::vector<SideQuery> queries;
  queries.reserve(standings_.size());
  for (const Standing& s : standings_) {
    queries.push_back(
        {{s.workgroup_run, s.op}, s.other_run, std::span(ops_).subspan(s.begin, s.end - s.begin)});
  }
  const std::vector<Sides> sides = sides_of(graph, queries);
  for (std::size_t i = 0; i < sides.size(); ++i) {
    standings_[i].before = sides[i].before;
    standings_[i].after = sides[i].after;
  }
}

// Copies by copy engines keep their order in every move.
void SameResult::find_rewrites(const Accesses& accesses, const std::vector<Conflict>& own) {
  for (const Conflict& conflict : own) {
    const WriteGroup& first = accesses.writes[conflict.first];
    const WriteGroup& second = accesses.writes[conflict.second];
    const std::uint32_t workgroup_run = first.first.at.workgroup_run;
    if (first_op_[workgroup_run] == kNowhere) continue;
    const auto begin = static_cast<std::ptrdiff_t>(rewrite_ops_.size());
    for (const WriteGroup* group : {&first, &second}) {
      const auto ops = accesses.ops_of(*group);
      rewrite_ops_.insert(rewrite_ops_.end(), ops.begin(), ops.end());
      if (conflict.first == conflict.second) break;
    }
    std::sort(rewrite_ops_.begin() + begin, rewrite_ops_.end());
    rewrites_.push_back(
        {workgroup_run, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(rewrite_ops_.size())});
  }
}

OpPoint SameResult::moved_point(OpPoint start, const MovedPlaces& places) const {
  const std::uint32_t first = first_op_[start.workgroup_run];
  if (first == kNowhere) return start;
  const std::uint32_t place = places.place_of[first + start.op];
  const MovedPlaces::Home& home = places.homes[place];
  return {first_of_run_[start.workgroup_run] + home.program, place - home.first_op};
}

std::string SameResult::fault_of_rewrites(const SyncGraph& graph, const MovedPlaces& places) const {
  for (const Rewrites& r : rewrites_) {
    for (std::uint32_t i = r.begin + 1; i < r.end; ++i) {
      const OpPoint before = moved_point({r.workgroup_run, rewrite_ops_[i - 1]}, places);
      const OpPoint after = moved_point({r.workgroup_run, rewrite_ops_[i]}, places);
      if (before.workgroup_run != after.workgroup_run) {
        return graph.describe(before) + ": is no longer in the workgroup of a write of the same tile";
      }
      if (before.op >= after.op) {
        return graph.describe(before) + ": has changed places with a write of the same tile";
      }
    }
  }
  return {};
}

// One query for all writes of a group, or one query per write if they are no longer in one workgroup: then
// all of them are additions, because rewrites stay together.
std::string SameResult::fault_of_order(const SyncGraph& graph, const MovedPlaces& places) const {
  struct Asked {
    std::uint32_t before = 0;  // at least
    std::uint32_t after = 0;   // at most
  };
  std::vector<std::uint32_t> ops(ops_.size());
  std::vector<SideQuery> queries;
  std::vector<Asked> asked;
  queries.reserve(standings_.size());
  asked.reserve(standings_.size());
  for (const Standing& s : standings_) {
    const OpPoint point = moved_point({s.workgroup_run, s.op}, places);
    const OpPoint first = moved_point({s.other_run, ops_[s.begin]}, places);
    bool together = true;
    for (std::uint32_t i = s.begin; i < s.end; ++i) {
      const OpPoint moved = moved_point({s.other_run, ops_[i]}, places);
      ops[i] = moved.op;
      together = together && moved.workgroup_run == first.workgroup_run;
    }
    const auto moved_ops = std::span(ops).subspan(s.begin, s.end - s.begin);
    if (together && !std::is_sorted(moved_ops.begin(), moved_ops.end())) {
      return graph.describe(first) + ": has changed places with a write of the same tile";
    }
    if (together) {
      queries.push_back({point, first.workgroup_run, moved_ops});
      asked.push_back({s.before, s.after});
      continue;
    }
    for (std::uint32_t i = 0; i < moved_ops.size(); ++i) {
      const OpPoint moved = moved_point({s.other_run, ops_[s.begin + i]}, places);
      queries.push_back({point, moved.workgroup_run, moved_ops.subspan(i, 1)});
      asked.push_back({i < s.before ? 1U : 0U, i < s.after ? 1U : 0U});
    }
  }
  const std::vector<Sides> sides = sides_of(graph, queries);
  for (std::size_t i = 0; i < sides.size(); ++i) {
    // Unordered pairs may get an order; ordered pairs must keep theirs.
    if (sides[i].before >= asked[i].before && sides[i].after <= asked[i].after) continue;
    return graph.describe(queries[i].point) + ": no longer stands as it did to " +
           graph.describe({queries[i].workgroup_run, queries[i].ops[0]}) + ", which writes the same data";
  }
  return {};
}

std::string SameResult::fault(const Schedule& moved, std::span<const std::uint32_t> start_of) const {
  Findings findings(1);
  check_ranges(moved, findings);
  if (!findings.empty()) {
    const Finding finding = findings.take().front();
    return finding.where + ": " + finding.message;
  }
  if (marks_written(moved, start_of) != written_) {
    return fmt::format("schedule '{}': an accumulator is written out that holds something else", moved.name);
  }
  for (std::size_t k = 0; k < moved.kernels.size(); ++k) {
    const Kernel& kernel = moved.kernels[k];
    for (std::size_t p = 0; p < program_count(kernel); ++p) {
      const Workgroup& program = program_of(kernel, p);
      if (is_moved(start_of, program) && skips_by_claim(tritax::ops_of(moved, program))) {
        return describe_kernel(moved, k) + " " + describe_program(kernel, p) +
               ": has a claim that skips operations, which counts them by place; nothing of it may move";
      }
      if (reads_what_is_there(moved, start_of, program, kernel.rank)) continue;
      return describe_kernel(moved, k) + " " + describe_program(kernel, p) +
             ": reads what it has just written, with nothing between that waits for it";
    }
  }
  std::string unpublished = fault_of_publication(moved, start_of, groups_, published_, program_of_op_);
  if (!unpublished.empty()) return unpublished;
  const SyncGraph graph = sync_graph_of(moved);
  LaunchOrders orders = LaunchOrders::one;
  std::string fault = finding_of(graph, machine_, &orders);
  if (!fault.empty()) return fault;
  if (orders != orders_) {
    return fmt::format("schedule '{}': launches may come {}, the start's {}", moved.name, describe(orders),
                       describe(orders_));
  }
  const MovedPlaces places(moved, start_of);
  fault = fault_of_rewrites(graph, places);
  return fault.empty() ? fault_of_order(graph, places) : fault;
}

}  // namespace tritax
