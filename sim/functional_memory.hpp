// The symmetric buffers of all ranks with real elements, and the last write of every element.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "model/schedule/schedule.hpp"
#include "sim/happens_before.hpp"
#include "sim/observer.hpp"

namespace tritax {

class FunctionalMemory {
 public:
  // Elements of fp64 buffers are kept in fp64, all others in fp32.
  using Elements = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using WideElements = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  // The reason why a region must not be read, at its first faulty element.
  struct Fault {
    enum class Kind : std::uint8_t { unwritten, in_flight, unordered };
    Kind kind = Kind::unwritten;
    std::int32_t row = 0;
    std::int32_t col = 0;
    OpPlace writer;  // unless unwritten
  };

  // A write between its start and its end.
  struct OpenWrite {
    Region region;
    bool add = false;
    std::vector<std::int32_t> records;
  };

  explicit FunctionalMemory(const Schedule& schedule);

  // Every region here names one rank.

  // Sets elements before the first operation; every agent may read them.
  void fill(const Region& region, const WideElements& values);

  Eigen::MatrixXd read(const Region& region) const;

  // `is_before(epoch)` tells whether a write is ordered before the reader. A read may see a write in flight
  // or not, so a write in flight is a fault whatever its order. An atomic add (`for_add`) reads too, but in
  // any order with other adds.
  std::optional<Fault> find_fault(const Region& region, bool for_add,
                                  const std::function<bool(Epoch)>& is_before) const;

  OpenWrite begin_write(const Region& region, bool add, Epoch epoch, const OpPlace& writer);
  void end_write(const OpenWrite& write, const Eigen::MatrixXd& values);

  // True if no element is unwritten or in flight.
  bool complete(const Region& region) const;

 private:
  // Values of `record` in Memory::last_write.
  static constexpr std::int32_t kUnwritten = -1;
  static constexpr std::int32_t kInitial = 0;

  struct Write {
    Epoch epoch;
    OpPlace writer;
    std::int32_t beneath = kUnwritten;  // for an add: the write that it added to
    bool add = false;
    bool in_flight = false;
  };
  struct Memory {
    Elements elements;  // 0 × 0 for fp64 buffers
    WideElements wide;  // 0 × 0 for other buffers
    Eigen::Matrix<std::int32_t, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> last_write;
  };

  Memory& at(std::int16_t buffer, int rank);
  const Memory& at(std::int16_t buffer, int rank) const;
  std::optional<Fault> find_record_fault(std::int32_t record, bool for_add,
                                         const std::function<bool(Epoch)>& is_before) const;

  std::size_t buffers_ = 0;
  std::vector<Memory> memory_;  // rank by rank
  std::vector<Write> writes_;
};

}  // namespace tritax
