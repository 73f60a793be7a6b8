// Which policies are worth trying for a problem, known in nanoseconds: one Bloom filter a policy, which has
// seen the problems that the policy was good for.
//
//   candidates(problem) = {p : filter p may have seen the problem's finest key that any has}, all if none has
//
// A Bloom filter forgets nothing, so no policy is lost for a problem of the training set, nor for any that
// shares its finest key. What it has not seen it takes for seen at the rate that was asked for:
//
//   n keys, rate f:  m = −n·ln f / (ln 2)² bits,  k = m/n · ln 2 hashes  (Bloom, 1970)
//
//   Example: 1,000 keys at 1 %: 9,586 bits, 7 hashes.
//
// Policies of a GEMM sieved so are those of Stream-K++ (arXiv:2408.11417): up to 95.8 % of the unsuitable
// ones go, none of the suitable. How the paper rounds problems to keys, how large its filters are and how it
// hashes is not said there: that is ours (sieve_lookup.hpp), and so is keeping all policies of an unknown
// key.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/select/sieve_lookup.hpp"

namespace tritax {

struct SieveDesign {
  int key_bits = 4;                    // of every number behind its leading digit, in the finest key, 0 to 16
  double false_positive_rate = 0.001;  // of a filter, above 0 and below 1
};

// A problem, and what was good for it.
struct SieveExample {
  std::vector<std::int64_t> numbers;  // as many as the sieve has names of; at least 0
  std::uint32_t suitable = 0;         // bit p: policy p
};

inline constexpr std::size_t kMostSievedPolicies = 32;

class BloomSieve {
 public:
  // `numbers`: what the numbers of a problem mean, in their order; said in what is exported.
  BloomSieve(std::vector<std::string> policies, std::vector<std::string> numbers, const SieveDesign& design,
             std::span<const SieveExample> examples);
  BloomSieve(BloomSieve&&) = default;
  BloomSieve& operator=(BloomSieve&&) = default;

  // The policies that are left; never none.
  std::uint32_t candidates(std::span<const std::int64_t> numbers) const;
  // Whether any filter has seen its finest key.
  bool knows(std::span<const std::int64_t> numbers) const;

  const std::vector<std::string>& policies() const { return policies_; }
  const std::vector<std::string>& numbers() const { return numbers_; }
  std::uint64_t bits() const;  // of all filters

  // {"schema": "tritax.sieve/1", "numbers": [...], "key_bits": 4, "policies": [{"name", "bits", "hashes",
  // "words": ["0x…", …]}, …]}; words of 64 bits, the lowest bit first.
  std::string to_json() const;
  // Throws UserError for anything that to_json does not write.
  static BloomSieve from_json(std::string_view text, const std::string& origin);

  // A C++ header without dependences that has `candidates(numbers)` in namespace `name`, an identifier.
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
  std::vector<tritax_sieve::Filter> lookup_;  // into filters_, whose words never move
};

}  // namespace tritax
