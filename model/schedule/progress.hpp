// Runs a schedule without time: everything that can happen happens, until nothing more can happen. Internal
// to model/schedule.
//
// Counters only grow (a counter that is set has one cell per phase, find_phases.hpp), so the order does not
// matter: a vertex that one such execution does not reach is reached by no execution.
#pragma once

#include <cstdint>
#include <vector>

#include "model/schedule/sync_graph.hpp"

namespace tritax {

// A workgroup begins when its kernel has started and it has a place. Operations after a claim are assumed to
// be executed.
//
// An item begins when it is certain to be drawn for any assignment: when the number of workgroups that have
// reached its queue exceeds the number of earlier items that may still run for ever, because then one
// workgroup is free to draw it. A workgroup leaves a queue when all items have ended, because it may hold any
// item. This refuses schedules in which an item waits for operations after the queue of another workgroup.
class Execution {
 public:
  explicit Execution(const SyncGraph& graph);
  virtual ~Execution() = default;

  // Call once for every workgroup that gets a place; items need no place.
  void give_place(std::uint32_t workgroup_run);

  // Continues until nothing more can happen; returns the newly reached vertices.
  std::vector<std::uint32_t> advance();

  bool reached(std::uint32_t vertex) const { return reached_[vertex] != 0; }

 protected:
  // Called for a vertex when everything before it has happened. If false, the overrider must call ready() for
  // the vertex later.
  virtual bool may_happen(std::uint32_t) { return true; }
  virtual void happened(std::uint32_t) {}
  void ready(std::uint32_t vertex) { ready_.push_back(vertex); }

 private:
  std::uint32_t skippable_signals_of(std::uint32_t event) const;
  void release(std::uint32_t vertex);
  void count(std::uint32_t signal);
  void note_queues(std::uint32_t vertex);
  void draw(std::uint32_t queue);

  struct QueueState {
    std::uint32_t workers = 0;  // workgroups that have reached it
    std::uint32_t drawn = 0;    // items
    std::uint32_t running = 0;  // drawn items that may not have ended
  };

  const SyncGraph& graph_;
  const std::vector<SyncVertex>& vertices_;
  std::vector<std::uint32_t> pending_;  // by vertex: number of missing conditions
  std::vector<char> reached_;           // by vertex
  std::vector<std::int64_t> counters_;  // by cell
  std::vector<std::uint32_t> skippable_reached_;
  std::vector<std::size_t> next_event_;
  std::vector<std::uint32_t> ready_;
  std::vector<QueueState> queues_;
};

// The vertices that are reached if every workgroup has a place.
std::vector<char> reached_vertices(const SyncGraph& graph);

}  // namespace tritax
