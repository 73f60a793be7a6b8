// Selects in nanoseconds the policies that are worth trying for a problem, with one Bloom filter per policy.
// The filter contains the problems for which the policy was good.
//
//   candidates(problem) = {p : filter p may have seen the problem's finest key that any has}, all if none has
//
// A Bloom filter has no false negatives, so no policy is lost for a problem of the training set, or for a
// problem with the same finest key. The requested rate of false positives decides the size:
//
//   n keys, rate f:  m = −n·ln f / (ln 2)² bits,  k = m/n · ln 2 hashes  (Bloom, 1970)
//
//   Example: 1,000 keys at 1 %: 9,586 bits, 7 hashes.
//
// Stream-K++ (arXiv:2408.11417) sieves policies of a GEMM in this way: it removes up to 95.8 % of the
// unsuitable policies and no suitable one. The paper does not say how it rounds problems to keys, how large
// its filters are and how it hashes: these choices are this project's (sieve_lookup.hpp), as is keeping all
// policies for an unknown key.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/select/sieve_lookup.hpp"

namespace tritax {

struct SieveDesign {
  int key_bits = 4;                    // per number, after its leading digit, in the finest key; 0 to 16
  double false_positive_rate = 0.001;  // per filter, above 0 and below 1
};

// A problem and its suitable policies.
struct SieveExample {
  std::vector<std::int64_t> numbers;  // one per name of the sieve; each at least 0
  std::uint32_t suitable = 0;         // bit p: policy p
};

inline constexpr std::size_t kMostSievedPolicies = 32;

class BloomSieve {
 public:
  // `numbers`: names of the numbers of a problem, in order; exports contain them.
  BloomSieve(std::vector<std::string> policies, std::vector<std::string> numbers, const SieveDesign& design,
             std::span<const SieveExample> examples);
  BloomSieve(BloomSieve&&) = default;
  BloomSieve& operator=(BloomSieve&&) = default;

  // The remaining policies; at least one.
  std::uint32_t candidates(std::span<const std::int64_t> numbers) const;
  // Whether any filter contains the finest key of the problem.
  bool knows(std::span<const std::int64_t> numbers) const;

  const std::vector<std::string>& policies() const { return policies_; }
  const std::vector<std::string>& numbers() const { return numbers_; }
  std::uint64_t bits() const;  // total of all filters

  // {"schema": "tritax.sieve/1", "numbers": [...], "key_bits": 4, "policies": [{"name", "bits", "hashes",
  // "words": ["0x…", …]}, …]}; words of 64 bits, the lowest bit first.
  std::string to_json() const;
  // Throws UserError for anything that to_json does not write.
  static BloomSieve from_json(std::string_view text, const std::string& origin);

  // A C++ header without dependences, with `candidates(numbers)` in namespace `name`, an identifier.
  std::string to_header(const std::string& name) const;

 private:
  struct Filter {
    std::vector<std::uint64_t> words;
    std::uint64_t bits = 0;
    int hashes = 0;
  };
  BloomSieve() = default;
  void index();

  std::vector<std::string> policies_;
  std::vector<std::string> numbers_;
  int key_bits_ = 0;
  std::vector<Filter> filters_;
  std::vector<tritax_sieve::Filter> lookup_;  // points into filters_; the words never move
};

}  // namespace tritax
