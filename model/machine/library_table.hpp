// Tables of measured times of calls of a vendor's libraries, as ratios to the times of the law.
//
// The kernel choice of a GEMM library cannot be derived, so the law (model/parts/library_tile.hpp) has errors
// of up to a few tenths. The error changes slowly with the sizes: similar products have similar errors. So a
// call takes
//
//   time = law · f,   log f = Σ wᵢ·log(measuredᵢ / lawᵢ) / (Σ wᵢ + w₀),   wᵢ = ((R - dᵢ) / (R·dᵢ))²
//
// over the measured calls of the same element size that are nearer than R = 2 octaves. dᵢ is the distance of
// (log₂ m, log₂ n, log₂ k). This is the interpolation of D. Shepard (A two-dimensional interpolation function
// for irregularly-spaced data, ACM 1968) in the local form of R. Franke and G. Nielson (1980): exact at the
// measured calls, smooth between them; w₀ lets the factor fade to 1 where no measured call is near.
//
// Attention is the same with more sizes (AttentionTable).
//
// A table is a file of comma-separated values, `dtype,m,n,k,us,ratio`; ratio = us / law. Remarks at the
// beginning of the file name the source of the times. scripts/make-library-table writes the file. The rows
// are calibration: they never count as predictions.
//
// Example: only 4096×4096×4096 was measured, at 1.2 times the law. The prediction is 1.2 times the law for
// the same product, 1.16 times for 2048×4096×4096, and the law itself for 512×4096×4096.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/core/dtype.hpp"

namespace tritax {

struct Machine;

// One call: C = A·B, with A of m × k.
struct MeasuredProduct {
  DType dtype = DType::fp16;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  double time_ns = 0;  // of its kernels
  double ratio = 1;    // to the law
};

// Measured calls as points in the space of their log₂ sizes.
template <std::size_t Sizes>
class MeasuredCalls {
 public:
  using Point = std::array<double, Sizes>;

  bool empty() const { return calls_.empty(); }
  void add(const Point& at, double log_ratio) { calls_.push_back({at, log_ratio}); }
  // f of the opening comment.
  double factor(const Point& at) const;

 private:
  struct Call {
    Point at{};
    double log_ratio = 0;
  };
  std::vector<Call> calls_;
};

class LibraryTable {
 public:
  // `origin`: for messages. Throws UserError.
  LibraryTable(std::string name, std::string_view text, const std::string& origin);

  const std::string& name() const { return name_; }
  const std::vector<MeasuredProduct>& products() const { return products_; }
  const std::vector<std::string>& remarks() const { return remarks_; }

  bool knows(DType dtype) const;
  // Factor on the law's time of a product; 1 if no similar product was measured.
  double factor(DType dtype, std::int64_t m, std::int64_t n, std::int64_t k) const;

 private:
  std::string name_;
  std::vector<std::string> remarks_;
  std::vector<MeasuredProduct> products_;
  std::array<MeasuredCalls<3>, kDTypeNames.size()> calls_;
};

// Sizes of an attention call: equal sequences, whose queries are the last of their keys.
struct AttentionCall {
  std::int64_t sequences = 1;
  std::int64_t queries = 1;  // of a sequence
  std::int64_t keys = 1;
  std::int64_t heads = 1;  // of queries
  std::int64_t kv_heads = 1;
  std::int64_t depth = 128;  // columns of a head
};

// Measured calls of an attention library, `dtype,sequences,queries,keys,heads,kv_heads,head_dim,us,ratio`,
// with the same interpolation in the space of the six sizes.
class AttentionTable {
 public:
  // Throws UserError.
  AttentionTable(std::string name, std::string_view text, const std::string& origin);

  const std::string& name() const { return name_; }
  const std::vector<std::string>& remarks() const { return remarks_; }
  std::size_t size() const { return size_; }

  bool knows(DType dtype) const;
  // Factor on the law's time of a call; 1 if no similar call was measured.
  double factor(DType dtype, const AttentionCall& call) const;

 private:
  std::string name_;
  std::vector<std::string> remarks_;
  std::size_t size_ = 0;
  std::array<MeasuredCalls<6>, kDTypeNames.size()> calls_;
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

// Measured calls of a collective library on one machine, `op,gpus,bytes,us,ratio`: `bytes` of the widest
// block of a GPU, ratio = us / law. Between measured sizes the logarithm of the ratio is linear in the
// logarithm of the bytes; beyond the smallest and the largest size the ratio is constant. A number of GPUs
// without measurements has the ratio 1.
class CollectiveTable {
 public:
  // Throws UserError.
  CollectiveTable(std::string name, std::string_view text, const std::string& origin);

  const std::string& name() const { return name_; }
  const std::vector<std::string>& remarks() const { return remarks_; }
  std::size_t size() const;
  bool knows(CollectiveKind op) const;  // on any number of GPUs

  // Factor on the law's time of a call.
  double factor(CollectiveKind op, int gpus, double bytes) const;

 private:
  std::string name_;
  std::vector<std::string> remarks_;
  std::map<std::pair<CollectiveKind, int>, std::map<double, double>>
      ratios_;  // logarithms, by log₂ of the bytes
};

// A shipped table (a file of model/machine/library/), or a table at a path relative to `folder`, whose name
// is then its absolute path. Names of shipped tables of collectives begin with nccl-, rccl- or custom-, those
// of attention with attention-. Throw UserError if there is no such table.
std::shared_ptr<const LibraryTable> find_library_table(const std::string& name_or_path,
                                                       const std::string& folder = "");
std::shared_ptr<const CollectiveTable> find_collective_table(const std::string& name_or_path,
                                                             const std::string& folder = "");
std::shared_ptr<const AttentionTable> find_attention_table(const std::string& name_or_path,
                                                           const std::string& folder = "");

// Names of all tables of a machine.
std::vector<std::string> names_of_tables(const Machine& machine);

}  // namespace tritax
