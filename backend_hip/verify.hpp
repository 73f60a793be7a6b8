// Checks the buffers after a run against the schedule's reference (model/schedule/reference.hpp).
//
// The reference is evaluated on the GPUs, separate from the buffers. Inputs are made anew from the seed,
// because a run may have overwritten them. The value of every operation is one fp64 block on one GPU, and all
// ranks that expect it compare with this block. Products are multiplied and summed in fp64.
#pragma once

#include <cstdint>
#include <vector>

#include "backend_hip/gpu_memory.hpp"
#include "backend_hip/judge.hpp"
#include "backend_hip/lower.hpp"

namespace tritax::gpu {

class ReferenceOnGpus {
 public:
  // Throws UserError when the schedule has no reference. `seed`: of the run's inputs. Rank r has device r
  // modulo `devices`.
  ReferenceOnGpus(const Schedule& schedule, std::uint64_t seed, int devices);

  // Operations of one level read nothing that others of the same level write: evaluate level by level, and on
  // every rank within a level. Call with that rank's GPU selected.
  std::size_t levels() const { return levels_; }
  void evaluate(std::size_t level, int rank);

  // One entry per buffer with expected elements on this rank. Call after all levels, with that rank's GPU
  // selected.
  std::vector<BufferComparison> compare(int rank, const HeapLayout& heap, const unsigned char* base) const;

 private:
  DeviceMemory value_of(std::size_t op, int device) const;
  DeviceMemory product_of(const ReferenceOp& op, std::size_t index, int device) const;
  DeviceMemory rms_norm_of(const ReferenceOp& op, std::size_t index, int device) const;
  DeviceMemory sparse_product_of(const ReferenceOp& op, std::size_t index, int device) const;
  DeviceMemory attention_of(const ReferenceOp& op, std::size_t index, int device) const;
  DeviceMemory read_below_each_other(const Region& region, std::size_t before, int device) const;
  DeviceMemory read(const Region& region, int rank, std::size_t before, int device) const;
  void add(const Region& region, int rank, std::size_t before, int device, const DeviceMemory& sum) const;

  const Schedule& schedule_;
  std::uint64_t seed_ = 0;
  std::size_t levels_ = 0;
  std::vector<std::size_t> level_of_;  // by operation
  std::vector<int> rank_of_;           // by operation: the rank that evaluates it
  int devices_ = 1;
  std::vector<DeviceMemory> values_;
};

}  // namespace tritax::gpu
