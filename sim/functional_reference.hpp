// The inputs and the reference of a schedule (model/schedule/reference.hpp) on real numbers, in fp64.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <vector>

#include "model/schedule/schedule.hpp"
#include "sim/functional_memory.hpp"

namespace tritax {

// Fills the inputs of all ranks, the same from the same seed on every platform.
void fill_inputs(const Schedule& schedule, std::uint64_t seed, FunctionalMemory& memory);

// Rows divided by the root of the mean of their squares, as rms_norm does before it multiplies with weights.
Eigen::MatrixXd normalised_rows(const Eigen::MatrixXd& values);

// What the buffers must hold at the end. `schedule` must outlive it and have passed check_schedule.
class FunctionalReference {
 public:
  // Evaluates the reference on `memory`, where the inputs are filled and nothing has been executed yet.
  FunctionalReference(const Schedule& schedule, const FunctionalMemory& memory);

  // max |difference| / max |expected| of a buffer, the largest over the buffers of which something is
  // expected on this rank; infinite if an element was not written or is not a number.
  double error_on(int rank, const FunctionalMemory& memory) const;

 private:
  Eigen::MatrixXd value_of(const ReferenceOp& op, std::size_t index, const FunctionalMemory& memory) const;
  Eigen::MatrixXd read(const Region& region, int rank, std::size_t before,
                       const FunctionalMemory& memory) const;
  // Of a region on every rank: that of rank 0, 1, … one below the other.
  Eigen::MatrixXd read_all(const Region& region, std::size_t before, const FunctionalMemory& memory) const;

  const Schedule& schedule_;
  std::vector<Eigen::MatrixXd> values_;  // of the targets of the operations done so far
};

}  // namespace tritax
