#include "model/schedule/sync_graph.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "model/schedule/items.hpp"
#include "model/schedule/op_traits.hpp"

namespace tritax {

namespace {

constexpr std::uint32_t kNone = kNoVertex;

// One signal to a cell, with the data that decides which events need it.
struct SignalRecord {
  std::uint32_t vertex = 0;
  std::int64_t value = 0;
  std::uint32_t run = 0;
  std::uint32_t workgroup_run = 0;
  std::uint32_t claim_cell = kNone;  // of the claim that guards it
  std::uint32_t claim_block = 0;     // unique number of the guarded block
  std::int64_t claim_limit = 0;
  bool publishes = true;
  bool sets = false;
};

struct CellRecords {
  std::vector<SignalRecord> signals;
  std::vector<std::pair<std::int64_t, std::uint32_t>> waits;  // value, vertex
  // As a queue:
  std::int64_t claims = 0;  // every claim adds one
  std::int64_t least_limit = std::numeric_limits<std::int32_t>::max();

  // Whether every block is executed, in any order of claims.
  bool enough_for_all() const { return claims <= least_limit; }
};

// Sums that the blocks of one queue add to one counter.
struct QueueShare {
  std::int64_t limit = 0;
  std::map<std::uint32_t, std::int64_t> sum_of_block;  // of blocks that signal the counter

  // Sums in rising order.
  std::vector<std::int64_t> sums() const {
    std::vector<std::int64_t> sums;
    for (const auto& [block, sum] : sum_of_block) {
      sums.push_back(sum);
    }
    std::sort(sums.begin(), sums.end());
    return sums;
  }
  std::int64_t most() const {
    const std::vector<std::int64_t> all = sums();
    const auto executed = std::min(limit, static_cast<std::int64_t>(all.size()));
    return std::accumulate(all.end() - executed, all.end(), std::int64_t{0});
  }
  // Least sum: the executed blocks are those that add the least; other blocks of the queue may add nothing.
  std::int64_t least(const CellRecords& queue) const {
    const std::vector<std::int64_t> all = sums();
    const auto size = static_cast<std::int64_t>(all.size());
    const std::int64_t executed = std::min(queue.least_limit, queue.claims) - (queue.claims - size);
    return std::accumulate(all.begin(), all.begin() + std::max<std::int64_t>(executed, 0), std::int64_t{0});
  }
};

}  // namespace

class SyncGraphBuilder {
 public:
  explicit SyncGraphBuilder(SyncGraph& graph) : graph_(graph), schedule_(graph.schedule_) {}

  void build() {
    add_runs();
    for (std::uint32_t run = 0; run < graph_.runs_.size(); ++run) {
      add_workgroups(run);
    }
    add_host_programs();
    for (std::uint32_t cell = 0; cell < graph_.cells_.size(); ++cell) {
      add_events(cell);
    }
    for (std::uint32_t queue = 0; queue < graph_.queues_.size(); ++queue) {
      order_items(queue);
    }
    graph_.cell_of_vertex_.resize(graph_.vertices_.size(), kNone);
    for (std::uint32_t cell = 0; cell < graph_.cells_.size(); ++cell) {
      for (const std::uint32_t signal : graph_.cells_[cell].signals) {
        graph_.cell_of_vertex_[signal] = cell;
      }
    }
    graph_.block_of_vertex_.resize(graph_.vertices_.size(), kNoVertex);
    for (std::uint32_t block = 0; block < graph_.blocks_.size(); ++block) {
      const auto first = graph_.block_of_vertex_.begin();
      std::fill(first + graph_.blocks_[block].first_vertex, first + graph_.blocks_[block].last_vertex + 1,
                block);
    }
    graph_.graph_ = SyncGraph::Graph(boost::edges_are_unsorted_multi_pass, edges_.begin(), edges_.end(),
                                     static_cast<std::uint32_t>(graph_.vertices_.size()));
  }

 private:
  std::uint32_t add_vertex(SyncVertex::Kind kind, std::uint32_t owner, std::uint32_t op = 0) {
    graph_.vertices_.push_back({kind, owner, op});
    return static_cast<std::uint32_t>(graph_.vertices_.size()) - 1;
  }

  void add_edge(std::uint32_t from, std::uint32_t to) { edges_.emplace_back(from, to); }

  void add_runs() {
    for (std::size_t rank = 0; rank < schedule_.host.size(); ++rank) {
      std::map<std::int32_t, std::uint32_t> count_of_stream;
      const auto add = [&](std::size_t host_op, std::uint32_t kernel, std::int32_t stream,
                           std::uint32_t transfer = 0) {
        Run run;
        run.kernel = kernel;
        run.transfer = transfer;
        run.rank = static_cast<std::int32_t>(rank);
        run.stream = stream;
        run.stream_position = count_of_stream[stream]++;
        run.host_op = static_cast<std::uint32_t>(host_op);
        const auto index = static_cast<std::uint32_t>(graph_.runs_.size());
        run.start = add_vertex(SyncVertex::Kind::run_start, index);
        run.end = add_vertex(SyncVertex::Kind::run_end, index);
        graph_.runs_.push_back(run);
      };
      for (std::size_t i = 0; i < schedule_.host[rank].size(); ++i) {
        const HostOp& op = schedule_.host[rank][i];
        for_each_launch(schedule_, op, [&](const GraphNode& node) {
          add(i, static_cast<std::uint32_t>(node.kernel), node.stream);
        });
        if (op.kind == HostOpKind::copy) {
          add(i, kNoKernel, op.stream, static_cast<std::uint32_t>(op.transfer));
        }
      }
    }
  }

  void add_workgroups(std::uint32_t run_index) {
    Run& run = graph_.runs_[run_index];
    run.first_workgroup = static_cast<std::uint32_t>(graph_.workgroups_.size());
    const Kernel& kernel = graph_.kernel_of(run);
    for (std::uint32_t i = 0; i < program_count(kernel); ++i) {
      const auto index = static_cast<std::uint32_t>(graph_.workgroups_.size());
      WorkgroupRun workgroup{run_index, i, add_vertex(SyncVertex::Kind::workgroup_begin, index), 0};
      add_edge(run.start, workgroup.first_vertex);
      if (run.kernel != kNoKernel) add_sync_ops(run_index, index, program_of(kernel, i));
      const auto end = static_cast<std::uint32_t>(graph_.vertices_.size());
      workgroup.vertex_count = end - workgroup.first_vertex;
      add_edge(end - 1, run.end);
      graph_.workgroups_.push_back(workgroup);
    }
    if (kernel.workgroups.empty()) {
      add_edge(run.start, run.end);
    }
    for (std::uint32_t queue = 0; queue < graph_.queues_.size(); ++queue) {
      const WorkQueue& its = graph_.queues_[queue];
      if (its.first_item < run.first_workgroup) continue;  // of an earlier run
      for (std::uint32_t i = 0; i < its.item_count; ++i) graph_.workgroups_[its.first_item + i].queue = queue;
    }
  }

  void add_sync_ops(std::uint32_t run, std::uint32_t workgroup_run, const Workgroup& workgroup) {
    const std::int32_t own = graph_.runs_[run].rank;
    std::uint64_t guarded_until = 0;
    SignalRecord guard;
    std::map<std::uint32_t, std::int64_t> waited;  // by cell: waits that are certainly executed
    for (std::uint32_t i = 0; i < workgroup.op_count; ++i) {
      const Op& op = schedule_.ops[workgroup.first_op + i];
      if (draws_items(op)) {
        add_item_claim(run, {workgroup_run, i}, op, waited);
      } else if (op.kind == OpKind::claim) {
        const std::uint32_t cell = cell_index(own, op.flag, op.index);
        ++records_[cell].claims;
        records_[cell].least_limit = std::min<std::int64_t>(records_[cell].least_limit, op.value);
        graph_.cells_[cell].claims.push_back({workgroup_run, i});
        guarded_until = std::uint64_t{i} + 1 + static_cast<std::uint64_t>(op.rect.rows);
        guard.claim_cell = cell;
        guard.claim_block = claim_blocks_++;
        guard.claim_limit = op.value;
        add_skipped_waits(workgroup, i, guarded_until);
      } else if (op.kind == OpKind::signal || op.kind == OpKind::wait) {
        const bool is_signal = op.kind == OpKind::signal;
        const std::uint32_t vertex =
            add_vertex(is_signal ? SyncVertex::Kind::signal : SyncVertex::Kind::wait, workgroup_run, i);
        add_edge(vertex - 1, vertex);
        const std::uint32_t phase = graph_.phases_.of({workgroup_run, i});
        if (phase == FlagPhases::kNone) continue;
        const std::uint32_t cell = cell_index(is_signal ? op.rank : own, op.flag, op.index, phase);
        if (is_signal) {
          SignalRecord record = i < guarded_until ? guard : SignalRecord{};
          record.vertex = vertex;
          record.value = op.value;
          record.run = run;
          record.workgroup_run = workgroup_run;
          record.publishes = !is_relaxed(op);
          record.sets = sets_flag(op);
          records_[cell].signals.push_back(record);
          graph_.cells_[cell].signals.push_back(vertex);
        } else {
          records_[cell].waits.emplace_back(op.value, vertex);
          if (i >= guarded_until) waited[cell] = std::max<std::int64_t>(waited[cell], op.value);
        }
      }
    }
  }

  // Every item adds 1 to the counter, and every claim adds 1 when it finds no item.
  void add_item_claim(std::uint32_t run, OpPoint at, const Op& op,
                      const std::map<std::uint32_t, std::int64_t>& waited) {
    const std::uint32_t reached = add_vertex(SyncVertex::Kind::queue_reached, at.workgroup_run, at.op);
    add_edge(reached - 1, reached);
    add_edge(reached, add_vertex(SyncVertex::Kind::queue_left, at.workgroup_run, at.op));
    const std::uint32_t cell = cell_index(graph_.runs_[run].rank, op.flag, op.index);
    ++records_[cell].claims;
    graph_.cells_[cell].claims.push_back(at);
    const auto [entry, added] =
        queue_of_cell_.emplace(cell, static_cast<std::uint32_t>(graph_.queues_.size()));
    if (added) {
      const auto workgroups =
          static_cast<std::uint32_t>(graph_.kernel_of(graph_.runs_[run]).workgroups.size());
      const auto first =
          graph_.runs_[run].first_workgroup + workgroups + static_cast<std::uint32_t>(op.k_begin);
      graph_.queues_.push_back({first, static_cast<std::uint32_t>(item_count(op)), {}});
      records_[cell].claims += item_count(op);
      waited_by_all_.push_back(waited);
    }
    graph_.queues_[entry->second].claims.push_back(reached);
    graph_.queue_of_claim_.emplace(reached, entry->second);
    std::map<std::uint32_t, std::int64_t>& all = waited_by_all_[entry->second];
    for (auto it = all.begin(); it != all.end();) {
      const auto own = waited.find(it->first);
      if (own == waited.end()) {
        it = all.erase(it);
      } else {
        it->second = std::min(it->second, own->second);
        ++it;
      }
    }
  }

  // Events for which all claims of a queue have waited precede its items.
  void order_items(std::uint32_t queue) {
    const WorkQueue& its = graph_.queues_[queue];
    for (const auto& [cell, value] : waited_by_all_[queue]) {
      const std::vector<std::uint32_t>& events = graph_.cells_[cell].events;
      const auto event = std::find_if(events.begin(), events.end(), [&, least = value](std::uint32_t e) {
        return graph_.events_[e].value == least;
      });
      for (std::uint32_t i = 0; i < its.item_count; ++i) {
        add_edge(graph_.events_[*event].vertex, graph_.workgroups_[its.first_item + i].first_vertex);
      }
    }
  }

  // Called before the vertices of the block behind operation `claim` are added.
  void add_skipped_waits(const Workgroup& workgroup, std::uint32_t claim, std::uint64_t end) {
    std::uint32_t vertices = 0;
    bool waits = false;
    for (std::uint64_t i = claim + 1; i < end; ++i) {
      const OpKind kind = schedule_.ops[workgroup.first_op + i].kind;
      vertices += kind == OpKind::signal || kind == OpKind::wait ? 1 : 0;
      waits = waits || kind == OpKind::wait;
    }
    if (waits) {
      const auto first = static_cast<std::uint32_t>(graph_.vertices_.size());
      graph_.blocks_.push_back({first, first + vertices - 1, static_cast<std::uint32_t>(end)});
    }
  }

  std::uint32_t cell_index(std::int32_t rank, std::int32_t flag, std::int32_t index,
                           std::uint32_t phase = 0) {
    const auto high = static_cast<std::uint64_t>(static_cast<std::uint32_t>(rank) << 16 |
                                                 static_cast<std::uint32_t>(flag & 0xffff));
    const std::uint64_t key = high << 32 | static_cast<std::uint32_t>(index);
    const auto next = static_cast<std::uint32_t>(graph_.cells_.size());
    std::uint32_t& cell_of_key =
        phase == 0 ? cell_of_key_.emplace(key, next).first->second
                   : cell_of_later_phase_.emplace(std::pair(key, phase), next).first->second;
    if (cell_of_key == next) {
      FlagCell cell;
      cell.rank = rank;
      cell.flag = flag;
      cell.index = index;
      cell.phase = phase;
      graph_.cells_.push_back(std::move(cell));
      records_.emplace_back();
    }
    return cell_of_key;
  }

  void add_host_programs() {
    std::vector<std::uint32_t> barriers;  // the n-th barrier of all ranks
    std::uint32_t next_run = 0;
    for (std::uint32_t rank = 0; rank < schedule_.host.size(); ++rank) {
      std::map<std::int32_t, std::uint32_t> last_of_stream;  // end vertices, and stream points
      std::map<std::int32_t, std::uint32_t> recorded;        // by event: the stream point of its last record
      std::uint32_t previous = kNone;
      std::size_t barrier = 0;
      for (std::uint32_t i = 0; i < schedule_.host[rank].size(); ++i) {
        const HostOp& op = schedule_.host[rank][i];
        const std::uint32_t vertex = add_vertex(SyncVertex::Kind::host, rank, i);
        if (op.kind == HostOpKind::barrier) {
          if (barrier == barriers.size()) {
            barriers.push_back(
                add_vertex(SyncVertex::Kind::host_barrier, static_cast<std::uint32_t>(barrier)));
          }
          if (previous != kNone) {
            add_edge(previous, barriers[barrier]);
          }
          add_edge(barriers[barrier++], vertex);
        } else if (previous != kNone) {
          add_edge(previous, vertex);
        }
        for (; next_run < graph_.runs_.size() && started_by(graph_.runs_[next_run], rank, i); ++next_run) {
          add_run_order(graph_.runs_[next_run], vertex, last_of_stream);
        }
        if (op.kind == HostOpKind::event_record || op.kind == HostOpKind::event_wait) {
          add_stream_point(rank, i, vertex, last_of_stream, recorded);
        }
        for (const auto& [stream, end] : last_of_stream) {
          if (op.kind == HostOpKind::device_synchronize ||
              (op.kind == HostOpKind::stream_synchronize && op.stream == stream)) {
            add_edge(end, vertex);
          }
        }
        previous = vertex;
      }
    }
  }

  static bool started_by(const Run& run, std::uint32_t rank, std::uint32_t host_op) {
    return static_cast<std::uint32_t>(run.rank) == rank && run.host_op == host_op;
  }

  void add_run_order(const Run& run, std::uint32_t launch,
                     std::map<std::int32_t, std::uint32_t>& last_of_stream) {
    add_edge(launch, run.start);
    const auto [last, first_of_stream] = last_of_stream.emplace(run.stream, run.end);
    if (!first_of_stream) {
      add_edge(last->second, run.start);
      last->second = run.end;
    }
  }

  void add_stream_point(std::uint32_t rank, std::uint32_t host_op, std::uint32_t posted,
                        std::map<std::int32_t, std::uint32_t>& last_of_stream,
                        std::map<std::int32_t, std::uint32_t>& recorded) {
    const HostOp& op = schedule_.host[rank][host_op];
    const std::uint32_t point = add_vertex(SyncVertex::Kind::stream_point, rank, host_op);
    add_edge(posted, point);
    const auto [last, first_of_stream] = last_of_stream.emplace(op.stream, point);
    if (!first_of_stream) {
      add_edge(last->second, point);
      last->second = point;
    }
    if (op.kind == HostOpKind::event_record) {
      recorded[op.event] = point;
    } else {
      add_edge(recorded.at(op.event), point);
    }
  }

  // Computes the highest and the least final value of the counter.
  void sum_up(FlagCell& cell, const CellRecords& records) {
    cell.total = records.claims;
    std::map<std::uint32_t, QueueShare> queues;
    for (const SignalRecord& signal : records.signals) {
      if (signal.claim_cell == kNone) {
        cell.total += signal.value;
        continue;
      }
      QueueShare& queue = queues[signal.claim_cell];
      queue.limit = std::max(queue.limit, signal.claim_limit);
      queue.sum_of_block[signal.claim_block] += signal.value;
      if (!records_[signal.claim_cell].enough_for_all()) {
        graph_.vertices_[signal.vertex].may_be_skipped = true;
        ++cell.skippable;
      }
    }
    cell.least = cell.total;
    for (const auto& [queue_cell, queue] : queues) {
      const std::int64_t least = queue.least(records_[queue_cell]);
      cell.total += queue.most();
      cell.least += least;
      cell.least_of_skippable += records_[queue_cell].enough_for_all() ? 0 : least;
    }
  }

  void add_events(std::uint32_t cell) {
    CellRecords& records = records_[cell];
    sum_up(graph_.cells_[cell], records);
    const std::int64_t total = graph_.cells_[cell].total;
    if (records.waits.empty()) {
      return;
    }
    std::sort(records.waits.begin(), records.waits.end());
    std::vector<std::int64_t> values;
    for (const auto& [value, wait] : records.waits) {
      if (values.empty() || values.back() != value) {
        const auto event = static_cast<std::uint32_t>(graph_.events_.size());
        const std::uint32_t vertex = add_vertex(SyncVertex::Kind::event, event);
        if (!values.empty()) {
          add_edge(graph_.events_.back().vertex, vertex);  // the counter only grows
        }
        values.push_back(value);
        graph_.events_.push_back({cell, value, vertex, {}});
        graph_.cells_[cell].events.push_back(event);
      }
      graph_.events_.back().waits.push_back(wait);
      add_edge(graph_.events_.back().vertex, wait);
    }
    order_signals(cell, values, total);
  }

  // Adds signal → the first event that cannot happen without it.
  void order_signals(std::uint32_t cell, const std::vector<std::int64_t>& values, std::int64_t total) {
    std::vector<SignalRecord>& signals = records_[cell].signals;
    const auto stream_of = [this](const SignalRecord& signal) {
      const Run& run = graph_.runs_[signal.run];
      return std::tuple(run.rank, run.stream);
    };
    const auto key = [&](const SignalRecord& signal) {
      const Run& run = graph_.runs_[signal.run];
      return std::tuple(run.rank, run.stream, run.stream_position, signal.workgroup_run, signal.vertex);
    };
    std::sort(signals.begin(), signals.end(),
              [&](const SignalRecord& a, const SignalRecord& b) { return key(a) > key(b); });
    std::int64_t in_later_runs = 0;
    std::int64_t in_this_run = 0;
    std::int64_t later_in_workgroup = 0;
    std::int64_t later_in_block = 0;
    for (std::size_t i = 0; i < signals.size(); ++i) {
      const SignalRecord& signal = signals[i];
      const SignalRecord* next = i == 0 ? nullptr : &signals[i - 1];
      if (next == nullptr || stream_of(*next) != stream_of(signal)) {
        in_later_runs = in_this_run = 0;
      } else if (next->run != signal.run) {
        in_later_runs += std::exchange(in_this_run, 0);
      }
      if (next == nullptr || next->workgroup_run != signal.workgroup_run) {
        later_in_workgroup = 0;
      }
      if (next == nullptr || next->claim_cell == kNone || next->claim_block != signal.claim_block) {
        later_in_block = 0;
      }
      std::int64_t behind = 0;
      if (signal.claim_cell == kNone) {
        later_in_workgroup += signal.value;
        in_this_run += signal.value;
        behind = later_in_workgroup + in_later_runs;
      } else {
        later_in_block += signal.value;
        behind = later_in_block;
      }
      // The setting of a counter precedes everything else of its phase.
      const auto event = std::upper_bound(values.begin(), values.end(), signal.sets ? 0 : total - behind);
      if (!signal.publishes) continue;
      if (event != values.end()) {
        const std::uint32_t index =
            graph_.cells_[cell].events[static_cast<std::size_t>(event - values.begin())];
        add_edge(signal.vertex, graph_.events_[index].vertex);
      }
    }
  }

  SyncGraph& graph_;
  const Schedule& schedule_;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> edges_;
  std::vector<CellRecords> records_;  // by cell
  std::unordered_map<std::uint64_t, std::uint32_t> cell_of_key_;
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint32_t> cell_of_later_phase_;
  std::uint32_t claim_blocks_ = 0;
  std::unordered_map<std::uint32_t, std::uint32_t> queue_of_cell_;
  std::vector<std::map<std::uint32_t, std::int64_t>> waited_by_all_;  // by queue: cell and least value
};

SyncGraph::SyncGraph(const Schedule& schedule, FlagPhases phases)
    : schedule_(schedule), phases_(std::move(phases)) {
  copy_kernel_.name = "copy engine";
  copy_kernel_.resources = {0, 0, 0};
  copy_kernel_.workgroups.push_back({0, 1});
  SyncGraphBuilder(*this).build();
}

}  // namespace tritax
