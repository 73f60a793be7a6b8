// The interpreter: every workgroup runs its list of tile operations.
//
// An Engine contains the parts that differ between kernels: the computing threads, the place of the
// accumulator, the movement of tiles. An engine has a *team*, the threads that run operations (on NVIDIA some
// waves only feed and send), and offers
//
//   thread(), threads()   place in the team, and its size
//   team_barrier()        barrier of the team
//   meet()                barrier of all waves of the workgroup
//   join()                the same, once all waves can read and overwrite their earlier stores
//   stamps(op)            whether the team's first thread records when this operation begins and ends
//   kCopiesInFlight       16-byte words of a copy that a thread holds at once
//   matmul, accumulate, store, atomic_add, signal, finish
//   attend, combine, rms_norm, sparse_product, search   optional; lowering gives such operations only to
//                         engines that have them
//   accumulate_together   optional: loads of a group; other engines run groups one operation after the other
//   through_switch        optional: a group that the switch carries out; lowering gives it to no other engine
//
// No operation spins without a bound: a wait longer than `spin_limit_ticks` records its reason on the failure
// board, and all workgroups of all ranks leave at their next wait.
#pragma once

#include "backend_hip/device.hpp"
#include "backend_hip/device_op.hpp"
#include "backend_hip/tile_copy.hpp"

namespace tritax::gpu {

inline constexpr float kLog2E = 1.44269504F;

// A wave's view of its operations: the current one is in shared memory, the next one on its way.
class OpReader {
 public:
  __device__ OpReader(const LaunchParams& params, DeviceOp* two_slots) : slots_(two_slots) {
    const DeviceWorkgroup workgroup = params.workgroups[blockIdx.x];
    words_ = reinterpret_cast<const std::uint32_t*>(params.ops + workgroup.first_op);
    end_ = workgroup.op_count;
    lane_ = threadIdx.x % kWaveLanes;
    if (lane_ < kAhead) prefetch(lane_);
    fetch(0);
    publish();
  }

  __device__ bool done() const { return index_ >= end_; }
  __device__ const DeviceOp& current() const { return slots_[index_ % 2]; }

  // Index of the workgroup's first operation, from which its other indices count.
  __device__ std::uint32_t first_op(const LaunchParams& params) const {
    return static_cast<std::uint32_t>(reinterpret_cast<const DeviceOp*>(words_) - params.ops);
  }

  // The current operation and those behind it, in memory.
  __device__ const DeviceOp* in_memory() const { return reinterpret_cast<const DeviceOp*>(words_) + index_; }

  // Continues at `index`, with operations that end before `end`: operations of an item, or of the workgroup
  // again.
  __device__ void go_to(std::uint32_t index, std::uint32_t end) {
    wave_barrier();
    // The operation on its way is not needed, and must not overwrite the new one.
    if (index_ + 1 < end_ && lane_ < kWords) arriving_.end(slot_word(index_ + 1));
    index_ = index;
    end_ = end;
    if (lane_ < kAhead) prefetch(index_ + lane_);
    fetch(index_);
    publish();
  }

  // Advances past the next `skip` operations.
  __device__ void advance(std::uint32_t skip) {
    wave_barrier();  // after a skip the new operation may overwrite the current one, which other lanes still
                     // read
    index_ += 1 + skip;
    if (lane_ == 0) prefetch(index_ + kAhead);
    if (skip > 0) {
      // The operation on its way is not needed, and must not overwrite the new one.
      if (lane_ < kWords) arriving_.end(slot_word(index_ - skip));
      fetch(index_);
    }
    publish();
  }

 private:
  static constexpr std::uint32_t kWords = sizeof(DeviceOp) / sizeof(std::uint32_t);
  static constexpr std::uint32_t kAhead =
      8;  // operations prefetched to L2: short operations outrun the memory

  __device__ void prefetch(std::uint32_t index) const {
    if (index < end_) prefetch_to_l2(words_ + index * kWords);
  }

  __device__ std::uint32_t* slot_word(std::uint32_t index) const {
    return reinterpret_cast<std::uint32_t*>(&slots_[index % 2]) + lane_;
  }

  __device__ void fetch(std::uint32_t index) {
    if (index < end_ && lane_ < kWords) arriving_.begin(slot_word(index), words_ + index * kWords + lane_);
  }

  __device__ void publish() {
    if (index_ < end_ && lane_ < kWords) arriving_.end(slot_word(index_));
    wave_barrier();
    fetch(index_ + 1);
  }

  const std::uint32_t* words_ = nullptr;
  DeviceOp* slots_;
  std::uint32_t index_ = 0;
  std::uint32_t end_ = 0;
  std::uint32_t lane_ = 0;
  ArrivingWord arriving_;
};

// Messages of the team's first thread to all waves at a join. The two entries are used in turn: a fast thread
// may already write the next message while a slow one still reads this one, but it cannot be two joins ahead.
struct Mailbox {
  std::uint32_t stop[2] = {0, 0};
  std::uint32_t skip[2] = {0, 0};
  // For a claim of items: the next operations, counted from the workgroup's first.
  std::uint32_t next[2] = {0, 0};
  std::uint32_t end[2] = {0, 0};
  // Private to the first thread: the next operations when the queue is empty.
  std::uint32_t home = 0;
  std::uint32_t home_end = 0;
};

__device__ inline bool draws_items(const DeviceOp& op) {
  return static_cast<OpKind>(op.kind) == OpKind::claim && op.k_end != 0;
}

// Continues behind `op`; `turn` belongs to the next join, so that the message of this join is in the other
// entry.
__device__ inline void go_on(OpReader& reader, const DeviceOp& op, const Mailbox& mailbox, int turn,
                             std::uint32_t skip) {
  if (draws_items(op)) {
    reader.go_to(mailbox.next[turn ^ 1], mailbox.end[turn ^ 1]);
  } else {
    reader.advance(skip);
  }
}

// Written straight to memory, because the matmul kernels have no free register.
__device__ inline void note(Instant& instant) {
  instant.ticks = ticks();
  instant.cycles = core_cycles();
}

// The operations of a group begin and end with the first, whose begin is noted.
__device__ inline void note_group(const LaunchParams& params, const DeviceOp* group, int count) {
  const Instant begin = params.stamps[group[0].number].begin;
  for (int i = 0; i < count; ++i) {
    OpStamp& stamp = params.stamps[group[i].number];
    stamp.begin = begin;
    note(stamp.end);
  }
}

__device__ inline std::uint32_t* as_flag(const DeviceOp& op) {
  return reinterpret_cast<std::uint32_t*>(op.address);
}

__device__ inline void raise_failure(const LaunchParams& params, std::int32_t number, std::uint32_t cause,
                                     std::uint32_t seen) {
  if (flag_compare_and_swap(params.failure_lock, 0, 1, Scope::gpu) == 0) {
    Failure& entry = params.board->of_rank[params.rank];
    entry.number = number;
    entry.cause = cause;
    entry.seen = seen;
    release_fence(Scope::system);
    flag_store(&entry.raised, 1, Scope::system);
  }
  flag_store(&params.board->stop, 1, Scope::system);
}

// Sets a counter as the lock protocol does. A plain store, an exchange or a compare-and-swap is allowed only
// for a counter without other writers; shared counters are added to.
__device__ inline void set_flag(const DeviceOp& op) {
  const auto scope = static_cast<Scope>(op.scope);
  const auto value = static_cast<std::uint32_t>(op.value);
  if ((op.bits & kAlone) == 0) {
    flag_add(as_flag(op), value, scope);
    return;
  }
  switch (static_cast<LockProtocol>(op.protocol)) {
    case LockProtocol::load_store:
      flag_store(as_flag(op), value, scope);
      break;
    case LockProtocol::exchange:
      flag_exchange(as_flag(op), value, scope);
      break;
    case LockProtocol::compare_and_swap:
      flag_compare_and_swap(as_flag(op), 0, value, scope);
      break;
  }
}

// Polls until the counter is reached; false: a timeout here or elsewhere. The compare-and-swap protocol polls
// with compare-and-swap, as the locks of arXiv:2511.12500 §4 do; other protocols poll with loads.
__device__ inline bool await_flag(const DeviceOp& op, const LaunchParams& params) {
  constexpr std::uint32_t kPollsBetweenClocks = 64;
  constexpr std::uint32_t kPollsBetweenBoards = 4096;  // the board lies across PCIe
  const auto scope = static_cast<Scope>(op.scope);
  const auto wanted = static_cast<std::uint32_t>(op.value);
  const bool swaps = static_cast<LockProtocol>(op.protocol) == LockProtocol::compare_and_swap;
  unsigned long long begin = 0;
  for (std::uint32_t polls = 1;; ++polls) {
    const std::uint32_t seen =
        swaps ? flag_compare_and_swap(as_flag(op), wanted, wanted, scope) : flag_poll(as_flag(op), scope);
    if (seen >= wanted) break;
    if (polls % kPollsBetweenClocks != 0) continue;
    const unsigned long long now = ticks();
    if (begin == 0) begin = now;
    if (now - begin > params.spin_limit_ticks) {
      raise_failure(params, op.number, kFlagTimeout, seen);
      return false;
    }
    if (polls % kPollsBetweenBoards == 0 && flag_load(&params.board->stop, Scope::system) != 0) return false;
  }
  return true;
}

// Draws an item, in the team's first thread: the program of the item, or the operations behind the
// workgroup's claim.
__device__ inline void draw_item(const LaunchParams& params, const OpReader& reader, const DeviceOp& op,
                                 Mailbox& mailbox, int turn) {
  if (op.row >= 0) {
    mailbox.home = static_cast<std::uint32_t>(op.row);
    mailbox.home_end = static_cast<std::uint32_t>(op.col);
  }
  const std::uint32_t drawn = flag_add(as_flag(op), 1, Scope::gpu);
  if (drawn < static_cast<std::uint32_t>(op.k_end - op.k_begin)) {
    const std::uint32_t number = static_cast<std::uint32_t>(op.k_begin) + drawn;
    const DeviceWorkgroup item = params.items[number];
    mailbox.next[turn] = item.first_op - reader.first_op(params);
    mailbox.end[turn] = mailbox.next[turn] + item.op_count;
    if (params.stamps != nullptr) params.item_workgroups[number] = blockIdx.x;
  } else {
    mailbox.next[turn] = mailbox.home;
    mailbox.end[turn] = mailbox.home_end;
  }
}

// Waits of a group: each lane of the first wave polls a flag. False: leave the kernel.
template <class Engine>
__device__ __forceinline__ bool await_together(const LaunchParams& params, Engine& engine,
                                               const DeviceOp* group, int count, Mailbox& mailbox, int turn) {
  if (engine.thread() < kWaveLanes) {
    if (engine.thread() == 0) mailbox.stop[turn] = 0;
    wave_barrier();
    for (int i = engine.thread(); i < count; i += kWaveLanes) {
      const DeviceOp op = group[i];
      if (!await_flag(op, params)) mailbox.stop[turn] = 1;
      const bool swaps = static_cast<LockProtocol>(op.protocol) == LockProtocol::compare_and_swap;
      if (swaps || !kPollAcquires) acquire_fence(static_cast<Scope>(op.scope));
    }
  }
  engine.meet();
  for (int i = 0; i < count; ++i) acquire_by_wave(static_cast<Scope>(group[i].scope));
  return mailbox.stop[turn] == 0;
}

// Signals of a group: all earlier stores of the team are published once, then each lane of the first wave
// sets a flag.
template <class Engine>
__device__ __forceinline__ void signal_together(Engine& engine, const DeviceOp* group, int count) {
  bool releases = false;
  bool of_system = false;
  for (int i = 0; i < count; ++i) {
    releases = releases || group[i].relaxed == 0;
    of_system = of_system || static_cast<Scope>(group[i].scope) == Scope::system;
  }
  const Scope widest = of_system ? Scope::system : Scope::gpu;
  if (releases) {
    release_by_wave(widest);
    engine.team_barrier();
  }
  if (engine.thread() >= kWaveLanes) return;
  for (int i = engine.thread(); i < count; i += kWaveLanes) {
    if (releases) release_fence(widest);
    set_flag(group[i]);
  }
}

// A group of operations that start together, of which `op` is the first. False: leave the kernel.
template <class Engine>
__device__ __forceinline__ bool run_together(const LaunchParams& params, Engine& engine,
                                             const DeviceOp* group, const DeviceOp& op, Mailbox& mailbox,
                                             int turn) {
  const int count = op.together + 1;
  if constexpr (requires { engine.through_switch(op); }) {
    if (op.multimem != 0) {
      engine.through_switch(op);
      return true;
    }
  }
  switch (static_cast<OpKind>(op.kind)) {
    case OpKind::wait:
      return await_together(params, engine, group, count, mailbox, turn);
    case OpKind::signal:
      signal_together(engine, group, count);
      return true;
    default:
      engine.accumulate_together(group, count);
      return true;
  }
}

// wait and claim: the team's first thread acts, all waves meet, and all threads learn the outcome. False:
// leave the kernel.
template <class Engine>
__device__ __forceinline__ bool meet(const LaunchParams& params, Engine& engine, const OpReader& reader,
                                     const DeviceOp& op, Mailbox& mailbox, int turn, std::uint32_t* skip) {
  const auto scope = static_cast<Scope>(op.scope);
  if (engine.thread() == 0) {
    if (static_cast<OpKind>(op.kind) == OpKind::wait) {
      const bool swaps = static_cast<LockProtocol>(op.protocol) == LockProtocol::compare_and_swap;
      mailbox.stop[turn] = await_flag(op, params) ? 0 : 1;
      mailbox.skip[turn] = 0;
      if (swaps || !kPollAcquires) acquire_fence(scope);
    } else if (draws_items(op)) {
      mailbox.stop[turn] = mailbox.skip[turn] = 0;
      draw_item(params, reader, op, mailbox, turn);
    } else {
      const std::uint32_t item = flag_add(as_flag(op), 1, scope);
      mailbox.stop[turn] = 0;
      mailbox.skip[turn] =
          item >= static_cast<std::uint32_t>(op.value) ? static_cast<std::uint32_t>(op.skip) : 0;
    }
  }
  engine.meet();
  if (static_cast<OpKind>(op.kind) == OpKind::wait) acquire_by_wave(scope);
  *skip = mailbox.skip[turn];
  return mailbox.stop[turn] == 0;
}

// A signal, for engines whose team does all stores itself.
template <class Engine>
__device__ void raise_signal(const Engine& engine, const DeviceOp& op) {
  const auto scope = static_cast<Scope>(op.scope);
  if (op.relaxed != 0) {
    if (engine.thread() == 0) set_flag(op);
    return;
  }
  release_by_wave(scope);
  engine.team_barrier();
  if (engine.thread() == 0) {
    release_fence(scope);
    set_flag(op);
  }
}

// Waits until all stores of the team are performed; called before the stamp of their end.
template <class Engine>
__device__ void drain_stores(const Engine& engine) {
  release_fence(Scope::system);
  engine.team_barrier();
}

template <class Engine>
__device__ __forceinline__ void interpret(const LaunchParams& params, Engine& engine, OpReader& reader,
                                          Mailbox& mailbox) {
  const bool leader = engine.thread() == 0;
  if (leader) {
    atomicMax(&params.span->inverted_begin, ~ticks());
    if (params.stamps != nullptr) params.compute_units[blockIdx.x] = compute_unit();
    if (blockIdx.x == 0) {  // kept in memory, as in note()
      params.span->ticks = ticks();
      params.span->cycles = core_cycles();
    }
  }
  int turn = 0;
  bool stopped = false;
  while (!reader.done() && !stopped) {
    const DeviceOp& op = reader.current();
    std::uint32_t skip = 0;
    const bool stamped = leader && params.stamps != nullptr && engine.stamps(op);
    if (stamped) note(params.stamps[op.number].begin);
    if ((op.bits & kJoin) != 0) engine.join();
    if constexpr (requires { engine.accumulate_together(&op, 1); }) {
      if (op.together > 0) {
        const int count = op.together + 1;
        const DeviceOp* const group = reader.in_memory();
        stopped = !run_together(params, engine, group, op, mailbox, turn);
        if (static_cast<OpKind>(op.kind) == OpKind::wait) turn ^= 1;
        if (stamped) note_group(params, group, count);
        reader.advance(static_cast<std::uint32_t>(count) - 1);
        continue;
      }
    }
    switch (static_cast<OpKind>(op.kind)) {
      case OpKind::matmul:
        engine.matmul(op);
        break;
      case OpKind::load:
      case OpKind::reduce:
        engine.accumulate(op);
        if constexpr (requires { engine.search(params, op); }) {
          engine.search(params, op);
          skip = static_cast<std::uint32_t>(op.skip);
        }
        break;
      case OpKind::store:
        engine.store(op);
        break;
      case OpKind::atomic_add:
        engine.atomic_add(op);
        break;
      case OpKind::copy:
        copy_tile<Engine::kCopiesInFlight>(op, engine.thread(), engine.threads());
        break;
      case OpKind::signal:
        engine.signal(op);
        break;
      case OpKind::wait:
      case OpKind::claim:
        stopped = !meet(params, engine, reader, op, mailbox, turn, &skip);
        turn ^= 1;
        break;
      case OpKind::barrier:
        engine.join();
        break;
      case OpKind::attend:
        if constexpr (requires { engine.attend(op); }) engine.attend(op);
        break;
      case OpKind::combine:
        if constexpr (requires { engine.combine(op); }) engine.combine(op);
        break;
      case OpKind::rms_norm:
        if constexpr (requires { engine.rms_norm(op); }) engine.rms_norm(op);
        break;
      case OpKind::sparse_product:
        if constexpr (requires { engine.sparse_product(op); }) {
          engine.sparse_product(op);
          skip = static_cast<std::uint32_t>(op.skip);
        }
        break;
    }
    if (params.stamps != nullptr && op.ends_run != 0 && engine.stamps(op)) drain_stores(engine);
    if (stamped) note(params.stamps[op.number].end);
    go_on(reader, op, mailbox, turn, skip);
  }
  engine.finish();
  if (leader) {
    atomicMax(&params.span->end, ticks());
    if (blockIdx.x == 0) {
      params.span->cycles = core_cycles() - params.span->cycles;
      params.span->ticks = ticks() - params.span->ticks;
    }
  }
}

}  // namespace tritax::gpu
