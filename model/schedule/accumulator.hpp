// What the accumulator of a workgroup holds while it runs, for the checker; see the memory model in
// schedule.hpp. Internal to model/schedule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "model/schedule/schedule.hpp"

namespace tritax {

class Accumulator {
 public:
  Accumulator() = default;
  // `filled`: as of Kernel::registers_filled.
  explicit Accumulator(bool filled) : filled_(filled) {}

  // Goes on behind an operation that fills the accumulator or writes it out. Why that has no meaning, or "".
  // `claim`: the last one of the workgroup, for the message.
  std::string after(const Op& op, std::size_t claim);
  // Behind an operation that was refused: nothing more is said of it.
  void forget() { holds_ = Holds::unknown; }
  // Behind a block of operations that may have been skipped, and it be as before them.
  void meet(const Accumulator& before);

 private:
  enum class Holds : std::uint8_t {
    nothing,
    tile,
    either,  // depends on whether the last claim has skipped its block
    unknown
  };
  bool is_tile(std::int32_t rows, std::int32_t cols) const {
    return holds_ == Holds::tile && rows_ == rows && cols_ == cols;
  }
  std::string written_out(const Op& op, std::size_t claim);
  std::string fault_of_rows(const Rect& rect) const;
  std::string fault_of_shape(std::int32_t rows, std::int32_t cols) const;

  Holds holds_ = Holds::nothing;
  bool filled_ = false;
  bool stored_ = false;   // the next matmul or attend starts anew
  bool merges_ = false;   // with log-sum-exps, of attention
  bool of_rows_ = false;  // of a sparse_product: parts of it may be written out
  std::int32_t row_ = 0;  // the first of these
  std::int32_t rows_ = 0;
  std::int32_t cols_ = 0;  // of the result, without log-sum-exps
};

}  // namespace tritax
