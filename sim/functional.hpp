// Functional execution: runs the schedule on real numbers, in simulated order, and checks the result against
// its reference.
//
// Every rank's buffers hold real matrices. Operations take effect at their simulated start (reads) and end
// (writes). A read is stale if nothing orders the write before it (sim/happens_before.hpp). Three kinds of
// reads are reported with their operation, even if the timing gives the right value: a read of an element
// that was never written, of an element whose last write is not in the reader's past, and of an element that
// is still being written.
//
// Elements of fp64 buffers are kept in fp64, all others in fp32, and sums in fp64: apart from fp64, the dtype
// decides bytes, never results. So a right schedule is within 1e-6 of the reference, and a wrong one is not.
// The bound is 1e-12 if no write on the way to the expected values rounds to fp32, neither into the compared
// buffers nor into the buffers that they are computed from. Codecs do round (model/core/codec.hpp): the bound
// is larger by what they explain (sim/functional_codec.hpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/schedule/schedule.hpp"
#include "sim/observer.hpp"

namespace tritax {

struct FunctionalResult {
  std::vector<std::string>
      stale_reads;  // at most 20, in simulated order; each names the reading operation and the tile
  double max_relative_error =
      0;  // over all expected elements of all ranks; infinite if an element was not written
  std::vector<double> error_of_rank;  // by rank: the largest max |difference| / max |expected| of a buffer
  double right_within = 0;            // largest error of a right schedule
};

// Executes a schedule on its inputs, filled with random numbers from `seed`, and compares the resulting
// buffers with its reference (model/schedule/reference.hpp). All other elements are unwritten at first.
// Throws UserError if the schedule has no reference, is out of range or meaningless (check.hpp), does not fit
// the machine or stalls. If `stop` is given and becomes true, the run ends early.
FunctionalResult execute_functionally(const Schedule& schedule, const Machine& machine, std::uint64_t seed,
                                      const std::atomic<bool>* stop = nullptr);

// The executor itself, for use beside other observers. `schedule` must outlive it and must have passed
// check_schedule.
class FunctionalExecutor : public SimulationObserver {
 public:
  // Throws UserError like execute_functionally.
  FunctionalExecutor(const Schedule& schedule, std::uint64_t seed);
  ~FunctionalExecutor() override;
  FunctionalExecutor(const FunctionalExecutor&) = delete;
  FunctionalExecutor& operator=(const FunctionalExecutor&) = delete;

  void op_started(const OpPlace& place, double time_ns) override;
  void op_finished(const OpPlace& place, double time_ns) override;
  void kernel_started(std::uint32_t kernel, double time_ns) override;
  void kernel_finished(std::uint32_t kernel, double time_ns) override;
  void copy_started(int rank, std::uint32_t host_op, int engine, double time_ns) override;
  void copy_finished(int rank, std::uint32_t host_op, double time_ns) override;
  void host_op_started(int rank, std::uint32_t host_op, double time_ns) override;
  void host_op_finished(int rank, std::uint32_t host_op, double time_ns) override;

  // The stale reads so far, and the present difference of the buffers to the reference.
  FunctionalResult result() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tritax
