// Functional execution: the schedule on real numbers, in simulated order, checked against its reference.
//
// Every rank's buffers hold real matrices. Operations take effect at their simulated start (reads) and end
// (writes). A read is stale when nothing orders the write before it (sim/happens_before.hpp): a read of an
// element that was never written, whose last write is not in the reader's past, or that is still being
// written, is reported with the operation that made it, even if the timing happened to be lucky.
//
// Elements of buffers in fp64 are kept in fp64, all others in fp32, and sums in fp64: else the dtype decides
// bytes, never results. A right schedule is therefore within 1e-6 of the reference, and a wrong one is not;
// or within 1e-12, where no write on the way to what is expected rounds to fp32: neither into the buffers
// that are compared nor into those that these are made of.
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
      0;  // of all that is expected, over all ranks; infinite if an element was not written
  std::vector<double> error_of_rank;  // max |difference| / max |expected| of a buffer, the largest
  double right_within = 0;            // a right schedule's largest error
};

// Executes a schedule on its inputs, filled with random numbers from `seed`, and compares what it leaves with
// its reference (model/schedule/reference.hpp). Everything that is no input is unwritten at first.
// Throws UserError when the schedule has no reference, is out of range or meaningless (check.hpp), does not
// fit the machine or stalls. Once `stop` is set, if given, the run ends where it is.
FunctionalResult execute_functionally(const Schedule& schedule, const Machine& machine, std::uint64_t seed,
                                      const std::atomic<bool>* stop = nullptr);

// The executor itself, for use beside other observers. `schedule` must outlive it and have passed
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

  // What was found so far, and how far the buffers are from the reference now.
  FunctionalResult result() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tritax
