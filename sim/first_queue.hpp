// A priority queue for entries that mostly come nearly in the order in which they leave: equal operations of
// equal kernels that start one after the other end so, or a little out of order where their times spread.
// What belongs near the end of a sorted run is inserted there; only the rest goes through a binary heap.
//
// The heap's pop does not branch on which child comes first: that is a coin toss to the processor, and
// std::pop_heap loses a twentieth of a run on guessing it wrong.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tritax {

// `Later` orders as for std::push_heap: what is not later than anything else comes first. It must tell any
// two entries apart, or their order is not defined.
template <typename T, typename Later>
class FirstQueue {
 public:
  bool empty() const { return (left_ == 0) & heap_.empty(); }
  std::size_t size() const { return left_ + heap_.size(); }

  // Of a queue that is not empty.
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

  // Takes the first entry off a queue that is not empty.
  T pop() {
    if (heap_is_first()) return pop_heap();
    --left_;
    return run_[head_++];
  }

 private:
  static constexpr std::size_t kNear = 32;  // places from the end; none of 16384³ on 8 GPUs is farther
  static constexpr std::size_t kGaps = 64;  // fewer are not worth moving the run for

  // Brings the last entry of the run to its place in it.
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

  // The hole on top sinks to the bottom, and the last entry rises from there: it belongs near the bottom.
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
  std::size_t left_ = 0;  // of it
  std::vector<T> heap_;
};

}  // namespace tritax
