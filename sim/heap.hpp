// A binary heap whose pop does not branch on which child comes first: that is a coin toss to the processor,
// and std::pop_heap loses a twentieth of a run on guessing it wrong.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tritax {

// Takes the top off a heap that is ordered like std::push_heap(…, Later{}) orders it: what is not later than
// anything else is on top. The heap must not be empty. The hole on top sinks to the bottom, and the last
// entry rises from there: it belongs near the bottom.
template <typename Later, typename T>
T pop_first(std::vector<T>& heap) {
  const Later later;
  const T top = heap.front();
  const T last = heap.back();
  heap.pop_back();
  const std::size_t size = heap.size();
  if (size == 0) return top;
  std::size_t at = 0;
  for (std::size_t child = 1; child < size; child = 2 * at + 1) {
    if (child + 1 < size) child += static_cast<std::size_t>(later(heap[child], heap[child + 1]));
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = last;
  std::push_heap(heap.begin(), heap.begin() + static_cast<std::ptrdiff_t>(at) + 1, later);
  return top;
}

}  // namespace tritax
