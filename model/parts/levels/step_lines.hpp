// Base class that writes down the steps of matmul and attention: instructions, dependences, and the arrival
// of operands. Internal to model/parts/levels; k_step_of_tile.hpp explains the terms.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "model/parts/levels/k_step_of_tile.hpp"

namespace tritax {

class StepLines {
 public:
  using Ids = std::vector<std::int32_t>;  // of instructions

 protected:
  static constexpr std::int32_t kUsualWindow = 5;  // stall cycles

  StepLines(const Gpu& gpu, const Levels& levels, const KStepOptions& options);

  std::int32_t add(InstructionKind kind, StepUnit unit, std::string name, double busy_clk,
                   double latency_clk);
  void need(std::int32_t from, std::int32_t to, std::int32_t turns, std::int32_t cycles);
  void need_all(const Ids& from, std::int32_t to, std::int32_t turns);    // their results
  void follow_all(std::int32_t from, const Ids& to, std::int32_t turns);  // a barrier
  // Dependence from the last user of fragments to the read that overwrites them.
  void guard(std::int32_t user, std::int32_t read, std::int32_t turns);
  // Loads, copies or prefetches of both operands; A and B of a matmul.
  void add_loads(char a, std::int32_t a_edge, char b, std::int32_t b_edge);
  std::int32_t add_read(std::string name);  // from LDS, or from L1 through the cache
  void close_through_registers();
  void close_by_copies();
  // Copies and multiplying waves signal each other through barriers in LDS, at which only the waiting side
  // stops.
  void close_by_copy_engine(const Ids& loads, const Ids& products);
  void close_through_cache(const Ids& prefetches, const std::vector<Ids>& reads);

  std::int32_t latency_of(std::int32_t id) const { return at(id).latency; }
  const StepInstruction& at(std::int32_t id) const {
    return step_.instructions[static_cast<std::size_t>(id)];
  }
  double read_bytes() const;  // per add_read
  double lds_busy() const { return served_ * kBytesOfLane * gpu_.lanes_per_wave / gpu_.lds_bytes_per_clk; }
  double port_busy(double bytes) const { return served_ * bytes / gpu_.cu_l2_bytes_per_clk; }

  const Gpu& gpu_;
  const Levels& levels_;
  const KStepOptions& options_;
  KStep step_;
  double served_ = 1;  // waves that request the same of LDS and memory path at the same time
  double memory_clk_ = 0;
  Ids loads_a_;  // loads, copies or prefetches
  Ids loads_b_;
  Ids writes_;
  std::int32_t read_barrier_ = -1;  // behind this barrier, read fragments may be overwritten
  std::int32_t last_barrier_ = -1;  // behind this barrier, the next stage may be read
  std::vector<Ids> reads_a_;        // by piece
  std::vector<Ids> reads_b_;
};

// First and last read that bring fragment `i` of `along`.
inline std::pair<std::int32_t, std::int32_t> bringing(std::int32_t i, std::int32_t along, std::size_t reads) {
  const auto count = static_cast<std::int32_t>(reads);
  return {i * count / along, ((i + 1) * count - 1) / along};
}

// Step of the levels of attention; called by k_step_of().
KStep k_step_of_attention(const Gpu& gpu, const Levels& levels, const KStepOptions& options);

}  // namespace tritax
