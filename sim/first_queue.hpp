// A priority queue for entries that mostly arrive nearly in the order in which they leave: equal operations
// of equal kernels that start one after another end in that order, or slightly out of order if their times
// spread. An entry that belongs near the end of a sorted run is inserted there; only the other entries go
// through a binary heap.
//
// The heap's pop does not branch on which child comes first: the processor cannot predict that branch, and
// std::pop_heap loses a twentieth of a run to mispredictions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tritax {

// `Later` orders as for std::push_heap: the entry that is not later than any other comes first. `Later` must
// order any two entries strictly, or their order is undefined.
template <typename T, typename Later>
class FirstQueue {
 public:
  bool empty() const { return (left_ == 0) & heap_.empty(); }
  std::size_t size() const { return left_ + heap_.size(); }

  // The queue must not be empty.
  const T& front() const { return heap_is_first() ? heap_.front() : run_[head_]; }

  void push(const T& entry) {
    const Later later;
    bool out_of_order = false;
    if (left_ == 0) {
      run_.clear();
      head_ = 0;
    } else {
      out_of_order = later(run_.back(), entry);
      if (out_of_order && left_ > kNear && later(run_[run_.size() - kNear], entry)) {
        heap_.push_back(entry);
        std::push_heap(heap_.begin(), heap_.end(), later);
        return;
      }
      if (head_ >= kGaps && 2 * head_ >= run_.size()) {
        run_.erase(run_.begin(), run_.begin() + static_cast<std::ptrdiff_t>(head_));
        head_ = 0;
      }
    }
    run_.push_back(entry);
    ++left_;
    if (out_of_order) sink();
  }

  // Removes and returns the first entry; the queue must not be empty.
  T pop() {
    if (heap_is_first()) return pop_heap();
    --left_;
    return run_[head_++];
  }

 private:
  static constexpr std::size_t kNear = 32;  // positions from the end; no entry of 16384³ on 8 GPUs is farther
  static constexpr std::size_t kGaps = 64;  // fewer gaps do not justify moving the run

  // Moves the last entry of the run to its sorted position.
  void sink() {
    std::size_t at = run_.size() - 1;
    const T entry = run_[at];
    for (; at > head_ && Later{}(run_[at - 1], entry); --at) run_[at] = run_[at - 1];
    run_[at] = entry;
  }

  bool heap_is_first() const {
    if (heap_.empty()) return false;
    return left_ == 0 || Later{}(run_[head_], heap_.front());
  }

  // The hole at the top sinks to the bottom, and the last entry rises from there: it belongs near the bottom.
  T pop_heap() {
    const Later later;
    const T top = heap_.front();
    const T last = heap_.back();
    heap_.pop_back();
    const std::size_t size = heap_.size();
    if (size == 0) return top;
    std::size_t at = 0;
    for (std::size_t child = 1; child < size; child = 2 * at + 1) {
      if (child + 1 < size) child += static_cast<std::size_t>(later(heap_[child], heap_[child + 1]));
      heap_[at] = heap_[child];
      at = child;
    }
    heap_[at] = last;
    std::push_heap(heap_.begin(), heap_.begin() + static_cast<std::ptrdiff_t>(at) + 1, later);
    return top;
  }

  std::vector<T> run_;  // sorted, from head_ on
  std::size_t head_ = 0;
  std::size_t left_ = 0;  // entries left in run_
  std::vector<T> heap_;
};

}  // namespace tritax
