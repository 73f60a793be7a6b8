// What calls of a vendor's libraries were measured to take, beside what the law says of them.
//
// The choice of kernels of a GEMM library cannot be derived, so that its law (model/parts/library_tile.hpp)
// is off by a few tenths where it is off. What it misses changes slowly with the sizes: a product like one
// that was measured is off by about the same. So a call takes
//
//   time = law · f,   log f = Σ wᵢ·log(measuredᵢ / lawᵢ) / (Σ wᵢ + w₀),   wᵢ = ((R - dᵢ) / (R·dᵢ))²
//
// over the measured calls of the same element size that are nearer than R = 2 octaves, dᵢ the distance of
// (log₂ m, log₂ n, log₂ k). It is the interpolation of D. Shepard (A two-dimensional interpolation function
// for irregularly-spaced data, ACM 1968) in the local form of R. Franke and G. Nielson (1980): right at the
// measured calls, smooth between them, and w₀ lets it fade to the law where none is near.
//
// A table is a file of comma-separated values, `dtype,m,n,k,us,ratio`; ratio = us / law. Remarks at its
// beginning say where the times come from. scripts/make-library-table makes it. Its rows are calibration:
// they never count as predictions.
//
// Example: 4096×4096×4096 was measured at 1.2 times the law, and nothing else; the same product is predicted
// at 1.2 times the law, one of 2048×4096×4096 at 1.16, one of 512×4096×4096 by the law.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/core/dtype.hpp"

namespace tritax {

// One call: C = A·B, A of m × k.
struct MeasuredProduct {
  DType dtype = DType::fp16;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  double time_ns = 0;  // of its kernels
  double ratio = 1;    // to the law
};

class LibraryTable {
 public:
  // `origin`: for messages. Throws UserError.
  LibraryTable(std::string name, std::string_view text, const std::string& origin);

  const std::string& name() const { return name_; }
  const std::vector<MeasuredProduct>& products() const { return products_; }
  const std::vector<std::string>& remarks() const { return remarks_; }

  bool knows(DType dtype) const;
  // By which the law's time of a product is multiplied; 1 if nothing like it was measured.
  double factor(DType dtype, std::int64_t m, std::int64_t n, std::int64_t k) const;

 private:
  struct Point {
    double m = 0, n = 0, k = 0;  // log₂
    double log_ratio = 0;
  };
  const std::vector<Point>& points(DType dtype) const { return points_[static_cast<std::size_t>(dtype)]; }

  std::string name_;
  std::vector<std::string> remarks_;
  std::vector<MeasuredProduct> products_;
  std::array<std::vector<Point>, kDTypeNames.size()> points_;
};

enum class CollectiveKind : std::uint8_t {
  all_gather,
  reduce_scatter,
  all_reduce,
  broadcast,
  all_to_all,
  vllm_all_reduce,  // kernels of serving engines: model/parts/library_all_pairs.hpp
  sglang_all_reduce,
  trtllm_all_reduce,
};
inline constexpr std::array<std::string_view, 8> kCollectiveNames{
    "all-gather", "reduce-scatter",  "all-reduce",        "broadcast",
    "all-to-all", "vllm-all-reduce", "sglang-all-reduce", "trtllm-all-reduce"};

// Measured calls of a collective library on one machine, `op,gpus,bytes,us,ratio`: of the widest block that a
// GPU has, us / law. Between sizes the logarithm of the ratio is linear in that of the bytes; beyond the
// smallest and the largest it stays. What was not measured on as many GPUs goes by the law.
class CollectiveTable {
 public:
  // Throws UserError.
  CollectiveTable(std::string name, std::string_view text, const std::string& origin);

  const std::string& name() const { return name_; }
  const std::vector<std::string>& remarks() const { return remarks_; }
  std::size_t size() const;
  bool knows(CollectiveKind op) const;  // on any number of GPUs

  // By which the law's time of a call is multiplied.
  double factor(CollectiveKind op, int gpus, double bytes) const;

 private:
  std::string name_;
  std::vector<std::string> remarks_;
  std::map<std::pair<CollectiveKind, int>, std::map<double, double>>
      ratios_;  // logarithms, by log₂ of the bytes
};

// A table that is shipped (a file of model/machine/library/), or one at a path relative to `folder`, which is
// then called by its absolute path. Names of shipped ones of collectives begin with nccl-, rccl- or custom-.
// Throw UserError if there is none.
std::shared_ptr<const LibraryTable> find_library_table(const std::string& name_or_path,
                                                       const std::string& folder = "");
std::shared_ptr<const CollectiveTable> find_collective_table(const std::string& name_or_path,
                                                             const std::string& folder = "");

}  // namespace tritax
