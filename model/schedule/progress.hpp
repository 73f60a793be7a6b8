// Runs a schedule without time: what can happen does, until nothing more can. Internal to model/schedule.
//
// Counters only grow (one that is set is a cell of its own in each phase, flag_phases.hpp), so the order does
// not matter: what is not reached in one such execution is reached in none.
#pragma once

#include <cstdint>
#include <vector>

#include "model/schedule/sync_graph.hpp"

namespace tritax {

// A workgroup begins once its kernel has started and it has been given a place. Operations behind a claim are
// taken to be executed.
//
// An item begins once it is sure to be drawn, whoever draws what: when more workgroups have come to its queue
// than items before it may still run for ever, for then one of them is free to draw it. A workgroup leaves a
// queue when all items have ended, as it might hold any. That refuses schedules in which an item waits for
// what only follows the queue of another workgroup.
class Execution {
 public:
  explicit Execution(const SyncGraph& graph);
  virtual ~Execution() = default;

  // To be called once for every workgroup that gets one; items need none.
  void give_place(std::uint32_t workgroup_run);

  // Goes on until nothing more can happen; returns the vertices that this has reached.
  std::vector<std::uint32_t> advance();

  bool reached(std::uint32_t vertex) const { return reached_[vertex] != 0; }

 protected:
  // Asked of a vertex before which all has happened; who says no has to make it ready() later.
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
    std::uint32_t workers = 0;  // that have come to it
    std::uint32_t drawn = 0;    // items
    std::uint32_t running = 0;  // of those, may not have ended
  };

  const SyncGraph& graph_;
  const std::vector<SyncVertex>& vertices_;
  std::vector<std::uint32_t> pending_;  // by vertex: what it still needs
  std::vector<char> reached_;           // by vertex
  std::vector<std::int64_t> counters_;  // by cell
  std::vector<std::uint32_t> skippable_reached_;
  std::vector<std::size_t> next_event_;
  std::vector<std::uint32_t> ready_;
  std::vector<QueueState> queues_;
};

// Which vertices are reached if every workgroup has a place.
std::vector<char> reached_vertices(const SyncGraph& graph);

}  // namespace tritax
