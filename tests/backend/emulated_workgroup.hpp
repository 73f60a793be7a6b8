// A workgroup on a CPU, a thread a lane: the Team of backend_hip/sparse_rows.hpp, so that what GPUs run of it
// is tested without one.
#pragma once

#include <ucontext.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "backend_hip/sparse_rows.hpp"

namespace tritax::gpu {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kLanesCanTakeTurns = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
inline constexpr bool kLanesCanTakeTurns = false;
#else
inline constexpr bool kLanesCanTakeTurns = true;
#endif
#else
inline constexpr bool kLanesCanTakeTurns = true;
#endif

template <int lanes_of_wave>
class EmulatedWorkgroup {
 public:
  class Team {
   public:
    static constexpr int kLanes = lanes_of_wave;
    Team(EmulatedWorkgroup& group, int thread) : group_(group), thread_(thread) {}

    int thread() const { return thread_; }
    int threads() const { return group_.threads_; }
    void barrier() const { group_.wait(group_.all_, group_.threads_); }
    template <class T>
    T below(T value, int distance) const {
      return of_lane(value, lane() >= distance ? lane() - distance : lane());
    }
    template <class T>
    T above(T value, int distance) const {
      return of_lane(value, lane() + distance < kLanes ? lane() + distance : lane());
    }
    template <class T>
    T from(T value, int lane) const {
      return of_lane(value, lane);
    }
    int last_mark(int named) const {
      int last = -1;
      see_all(named, [&](std::uint32_t other) {
        const auto place = static_cast<int>(other);
        if (place <= lane() && place > last) last = place;
      });
      return last;
    }
    bool any(bool holds) const {
      bool found = false;
      see_all(holds ? 1 : 0, [&](std::uint32_t other) { found = found || other != 0; });
      return found;
    }
    template <DType dtype>
    float element(const unsigned char* address) const {
      static_assert(dtype == DType::fp32);
      float value;
      std::memcpy(&value, address, sizeof(value));
      return value;
    }
    void store(float* y, float value) const { *y = value; }
    void add(float* y, float value) const { *y += value; }
    std::int32_t* room() const { return group_.room_.data(); }
    std::int32_t* row_carry() const { return group_.rows_.data(); }
    float* sum_carry() const { return group_.sums_.data(); }

   private:
    int lane() const { return thread_ % kLanes; }
    template <class T>
    T of_lane(T value, int lane) const {
      static_assert(sizeof(T) == sizeof(std::uint32_t));
      std::uint32_t found = 0;
      int at = 0;
      see_all(value, [&](std::uint32_t other) { found = at++ == lane ? other : found; });
      return std::bit_cast<T>(found);
    }
    // Values of all lanes of the wave, in their order.
    template <class T, class Visit>
    void see_all(T value, const Visit& visit) const {
      Meeting& wave = group_.waves_[static_cast<std::size_t>(thread_ / kLanes)];
      const auto first = static_cast<std::size_t>(thread_ / kLanes * kLanes);
      group_.exchanged_[static_cast<std::size_t>(thread_)] = std::bit_cast<std::uint32_t>(value);
      group_.wait(wave, kLanes);
      for (std::size_t lane = 0; lane < kLanes; ++lane) visit(group_.exchanged_[first + lane]);
      group_.wait(wave, kLanes);
    }

    EmulatedWorkgroup& group_;
    int thread_;
  };

  // `threads`: a multiple of the lanes of a wave; `room`: numbers of 4 bytes.
  EmulatedWorkgroup(int threads, int room)
      : threads_(threads),
        waves_(static_cast<std::size_t>(threads / lanes_of_wave)),
        room_(static_cast<std::size_t>(room)),
        rows_(waves_.size()),
        sums_(waves_.size()),
        exchanged_(static_cast<std::size_t>(threads)),
        lanes_(static_cast<std::size_t>(threads)) {}

  // Calls work(team) by every lane.
  void run(std::function<void(Team&)> work) {
    work_ = std::move(work);
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      Lane& lane = lanes_[i];
      lane.stack.resize(kStackBytes);
      lane.done = false;
      getcontext(&lane.context);
      lane.context.uc_stack.ss_sp = lane.stack.data();
      lane.context.uc_stack.ss_size = lane.stack.size();
      lane.context.uc_link = &turns_;
      const auto self = reinterpret_cast<std::uintptr_t>(this);
      makecontext(&lane.context, reinterpret_cast<void (*)()>(&EmulatedWorkgroup::begin), 3,
                  static_cast<unsigned int>(self >> 32), static_cast<unsigned int>(self),
                  static_cast<int>(i));
    }
    for (bool some = true; some;) {
      some = false;
      for (std::size_t i = 0; i < lanes_.size(); ++i) {
        if (lanes_[i].done) continue;
        some = true;
        turn_ = i;
        swapcontext(&turns_, &lanes_[i].context);
      }
    }
  }

 private:
  static constexpr std::size_t kStackBytes = 64 << 10;
  struct Meeting {
    int arrived = 0;
    int number = 0;
  };
  struct Lane {
    ucontext_t context{};
    std::vector<char> stack;
    bool done = true;
  };

  static void begin(unsigned int high, unsigned int low, int thread) {
    const std::uintptr_t self = static_cast<std::uintptr_t>(high) << 32 | low;
    auto& group = *reinterpret_cast<EmulatedWorkgroup*>(self);
    Team team(group, thread);
    group.work_(team);
    group.lanes_[static_cast<std::size_t>(thread)].done = true;
  }

  void wait(Meeting& meeting, int lanes) {
    const int number = meeting.number;
    if (++meeting.arrived == lanes) {
      meeting.arrived = 0;
      ++meeting.number;
      return;
    }
    while (meeting.number == number) swapcontext(&lanes_[turn_].context, &turns_);
  }

  int threads_;
  Meeting all_;
  std::vector<Meeting> waves_;
  std::vector<std::int32_t> room_, rows_;
  std::vector<float> sums_;
  std::vector<std::uint32_t> exchanged_;
  std::vector<Lane> lanes_;
  ucontext_t turns_{};
  std::size_t turn_ = 0;
  std::function<void(Team&)> work_;
};

}  // namespace tritax::gpu
