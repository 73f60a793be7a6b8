// The inputs and the reference result of a schedule (model/schedule/reference.hpp) on real numbers, in fp64.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <vector>

#include "model/schedule/schedule.hpp"
#include "sim/functional_memory.hpp"

namespace tritax {

// Fills the inputs of all ranks. Equal seeds give equal inputs on every platform.
void fill_inputs(const Schedule& schedule, std::uint64_t seed, FunctionalMemory& memory);

// Rows divided by their root mean square, as rms_norm computes them before it multiplies by weights.
Eigen::MatrixXd normalised_rows(const Eigen::MatrixXd& values);

// The expected final contents of the buffers. `schedule` must outlive it and must have passed check_schedule.
class FunctionalReference {
 public:
  // Evaluates the reference on `memory`: the inputs are filled, and no operation has been executed.
  FunctionalReference(const Schedule& schedule, const FunctionalMemory& memory);

  // max |difference| / max |expected| of a buffer, the largest over the buffers with expected elements on
  // this rank; infinite if an element was not written or is not a number.
  double error_on(int rank, const FunctionalMemory& memory) const;

  // errors[b] / max |expected| of buffer b on a rank, the largest over all buffers with expected elements and
  // all ranks; 0 without errors.
  double largest_share(const std::vector<double>& errors) const;

 private:
  Eigen::MatrixXd value_of(const ReferenceOp& op, std::size_t index, const FunctionalMemory& memory) const;
  Eigen::MatrixXd read(const Region& region, int rank, std::size_t before,
                       const FunctionalMemory& memory) const;
  // A region on every rank: the blocks of rank 0, 1, … below each other.
  Eigen::MatrixXd read_all(const Region& region, std::size_t before, const FunctionalMemory& memory) const;

  const Schedule& schedule_;
  std::vector<Eigen::MatrixXd> values_;  // targets of the operations done so far
};

}  // namespace tritax
