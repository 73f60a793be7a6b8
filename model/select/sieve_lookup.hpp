// Looking a problem up in a sieve of Bloom filters. Needs the standard library alone: what Tritax exports for
// kernel libraries begins with this file.
//
// A problem is a few whole numbers. Each is rounded down to its highest binary digits, all of them together
// are hashed to one key of 64 bits, and a filter has seen the key if all bits are set that the key asks for:
// double hashing (Kirsch and Mitzenmacher, 2006), bit i of a filter of m bits being (h1 + i·h2) mod m. A
// problem has a key for every number of digits: where no filter knows the finest, coarser ones are asked.
#ifndef TRITAX_SIEVE_LOOKUP
#define TRITAX_SIEVE_LOOKUP

#include <cstddef>
#include <cstdint>

namespace tritax_sieve {

// Keeps the leading digit and `bits` behind it: 2^bits steps an octave, exact below 2^(bits + 1).
inline std::int64_t quantised(std::int64_t value, int bits) {
  int dropped = 0;
  while ((value >> dropped) >= (std::int64_t{2} << bits)) ++dropped;
  return value >> dropped << dropped;
}

// The finaliser of splitmix64.
inline std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

inline std::uint64_t key_of(const std::int64_t* numbers, std::size_t count, int bits) {
  std::uint64_t key = mixed(static_cast<std::uint64_t>(bits) + 1);
  for (std::size_t i = 0; i < count; ++i) {
    key = mixed(key + 0x9E3779B97F4A7C15u + static_cast<std::uint64_t>(quantised(numbers[i], bits)));
  }
  return key;
}

struct Filter {
  const std::uint64_t* words;
  std::uint64_t bits;  // 0: it has seen nothing
  int hashes;
};

inline std::uint64_t bit_of(std::uint64_t key, std::uint64_t i, std::uint64_t bits) {
  return (key + i * (mixed(key) | 1)) % bits;
}

// True for every key that was put in, and for few others.
inline bool may_have(const Filter& filter, std::uint64_t key) {
  if (filter.bits == 0) return false;
  for (int i = 0; i < filter.hashes; ++i) {
    const std::uint64_t bit = bit_of(key, static_cast<std::uint64_t>(i), filter.bits);
    if ((filter.words[bit / 64] >> (bit % 64) & 1) == 0) return false;
  }
  return true;
}

// The policies that have seen the key, bit p for policy p.
inline std::uint32_t seen_by(const Filter* filters, std::size_t policies, std::uint64_t key) {
  std::uint32_t seen = 0;
  for (std::size_t p = 0; p < policies; ++p) {
    if (may_have(filters[p], key)) seen |= std::uint32_t{1} << p;
  }
  return seen;
}

// The policies that are left, with `bits` the digits of the finest key; all if no filter knows any key.
inline std::uint32_t candidates(const Filter* filters, std::size_t policies, const std::int64_t* numbers,
                                std::size_t count, int bits) {
  for (int coarser = bits; coarser >= 0; --coarser) {
    const std::uint32_t left = seen_by(filters, policies, key_of(numbers, count, coarser));
    if (left != 0) return left;
  }
  return static_cast<std::uint32_t>((std::uint64_t{1} << policies) - 1);
}

}  // namespace tritax_sieve

#endif
