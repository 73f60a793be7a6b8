#include "model/select/bloom_sieve.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "model/core/error.hpp"
#include "model/schedule/json_reader.hpp"

namespace tritax {

namespace embedded {
// Defined in the generated file: ("sieve_lookup", text of sieve_lookup.hpp).
std::span<const std::pair<std::string_view, std::string_view>> sieve_lookup();
}  // namespace embedded

namespace {

constexpr const char* kSieveSchema = "tritax.sieve/1";
constexpr int kMostKeyBits = 16;
constexpr int kMostHashes = 64;
constexpr std::int64_t kMostFilterBits = std::int64_t{1} << 32;

std::uint64_t word_of(const JsonValue& value) {
  const std::string& text = value.string();
  std::uint64_t word = 0;
  const char* const end = text.data() + text.size();
  const bool begins = text.starts_with("0x") && text.size() > 2;
  if (begins) {
    const auto [stop, error] = std::from_chars(text.data() + 2, end, word, 16);
    if (error == std::errc() && stop == end) return word;
  }
  value.refuse("give 64 bits as \"0x…\"");
}

// A name that is valid between quotation marks in a header.
std::string name_of(const JsonValue& value) {
  const std::string& name = value.string();
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == ' ' ||
           c == '-' || c == '_';
  });
  if (name.empty() || !plain) value.refuse("give letters, digits, blanks, - and _");
  return name;
}

std::vector<std::string> names_of(const JsonValue& value) {
  value.expect_array();
  std::vector<std::string> names;
  for (std::size_t i = 0; i < value.size(); ++i) names.push_back(name_of(value.item(i)));
  return names;
}

}  // namespace

BloomSieve::BloomSieve(std::vector<std::string> policies, std::vector<std::string> numbers,
                       const SieveDesign& design, std::span<const SieveExample> examples)
    : policies_(std::move(policies)), numbers_(std::move(numbers)), key_bits_(design.key_bits) {
  TRITAX_ASSERT(!policies_.empty() && policies_.size() <= kMostSievedPolicies,
                "a sieve of no or too many policies");
  TRITAX_ASSERT(key_bits_ >= 0 && key_bits_ <= kMostKeyBits, "no such key");
  TRITAX_ASSERT(design.false_positive_rate > 0 && design.false_positive_rate < 1, "no rate");
  std::vector<std::set<std::uint64_t>> keys(policies_.size());
  for (const SieveExample& example : examples) {
    TRITAX_ASSERT(example.numbers.size() == numbers_.size(), "a problem of another sieve");
    for (int bits = 0; bits <= key_bits_; ++bits) {
      const std::uint64_t key = tritax_sieve::key_of(example.numbers.data(), numbers_.size(), bits);
      for (std::size_t p = 0; p < policies_.size(); ++p) {
        if ((example.suitable >> p & 1) != 0) keys[p].insert(key);
      }
    }
  }
  for (const std::set<std::uint64_t>& seen : keys) {
    Filter& filter = filters_.emplace_back();
    if (seen.empty()) continue;
    const double by_key = -std::log(design.false_positive_rate) / (std::log(2.0) * std::log(2.0));
    filter.bits = static_cast<std::uint64_t>(std::ceil(by_key * static_cast<double>(seen.size())));
    filter.hashes = std::max(1, static_cast<int>(std::lround(by_key * std::log(2.0))));
    filter.words.resize((filter.bits + 63) / 64);
    for (const std::uint64_t key : seen) {
      for (int i = 0; i < filter.hashes; ++i) {
        const std::uint64_t bit = tritax_sieve::bit_of(key, static_cast<std::uint64_t>(i), filter.bits);
        filter.words[bit / 64] |= std::uint64_t{1} << bit % 64;
      }
    }
  }
  index();
}

void BloomSieve::index() {
  for (const Filter& filter : filters_) lookup_.push_back({filter.words.data(), filter.bits, filter.hashes});
}

std::uint32_t BloomSieve::candidates(std::span<const std::int64_t> numbers) const {
  TRITAX_ASSERT(numbers.size() == numbers_.size(), "a problem of another sieve");
  return tritax_sieve::candidates(lookup_.data(), lookup_.size(), numbers.data(), numbers.size(), key_bits_);
}

bool BloomSieve::knows(std::span<const std::int64_t> numbers) const {
  TRITAX_ASSERT(numbers.size() == numbers_.size(), "a problem of another sieve");
  const std::uint64_t key = tritax_sieve::key_of(numbers.data(), numbers.size(), key_bits_);
  return tritax_sieve::seen_by(lookup_.data(), lookup_.size(), key) != 0;
}

std::uint64_t BloomSieve::bits() const {
  std::uint64_t bits = 0;
  for (const Filter& filter : filters_) bits += filter.bits;
  return bits;
}

std::string BloomSieve::to_json() const {
  nlohmann::ordered_json policies = nlohmann::ordered_json::array();
  for (std::size_t p = 0; p < policies_.size(); ++p) {
    nlohmann::ordered_json words = nlohmann::ordered_json::array();
    for (const std::uint64_t word : filters_[p].words) words.push_back(fmt::format("{:#018x}", word));
    policies.push_back({{"name", policies_[p]},
                        {"bits", filters_[p].bits},
                        {"hashes", filters_[p].hashes},
                        {"words", std::move(words)}});
  }
  const nlohmann::ordered_json json{
      {"schema", kSieveSchema}, {"numbers", numbers_}, {"key_bits", key_bits_}, {"policies", policies}};
  return json.dump() + '\n';
}

BloomSieve BloomSieve::from_json(std::string_view text, const std::string& origin) {
  static constexpr std::array<std::string_view, 4> keys{"schema", "numbers", "key_bits", "policies"};
  static constexpr std::array<std::string_view, 4> policy_keys{"name", "bits", "hashes", "words"};
  static constexpr std::array<std::string_view, 1> schemas{kSieveSchema};
  const nlohmann::json tree = parse_json(text, origin);
  const JsonValue root(tree, origin);
  root.expect_object(keys);
  root.at("schema").one_of(schemas);
  BloomSieve sieve;
  sieve.numbers_ = names_of(root.at("numbers"));
  sieve.key_bits_ = static_cast<int>(root.at("key_bits").integer(0, kMostKeyBits));
  const JsonValue policies = root.at("policies");
  policies.expect_array();
  if (policies.size() == 0 || policies.size() > kMostSievedPolicies) {
    policies.refuse(fmt::format("give 1 to {} policies", kMostSievedPolicies));
  }
  for (std::size_t p = 0; p < policies.size(); ++p) {
    const JsonValue policy = policies.item(p);
    policy.expect_object(policy_keys);
    sieve.policies_.push_back(name_of(policy.at("name")));
    Filter& filter = sieve.filters_.emplace_back();
    filter.bits = static_cast<std::uint64_t>(policy.at("bits").integer(0, kMostFilterBits));
    filter.hashes = static_cast<int>(policy.at("hashes").integer(0, kMostHashes));
    const JsonValue words = policy.at("words");
    words.expect_array_of((filter.bits + 63) / 64, "as many words of 64 bits as hold the bits");
    for (std::size_t i = 0; i < words.size(); ++i) filter.words.push_back(word_of(words.item(i)));
  }
  sieve.index();
  return sieve;
}

std::string BloomSieve::to_header(const std::string& name) const {
  std::string text = "// Written by tritax tune.\n#pragma once\n\n";
  text += embedded::sieve_lookup().front().second;
  text += fmt::format("\nnamespace {} {{\n\n", name);
  text += fmt::format("// Of a problem, in this order: {}.\ninline constexpr std::size_t kNumbers = {};\n",
                      fmt::join(numbers_, ", "), numbers_.size());
  text += fmt::format("inline constexpr std::size_t kPolicies = {};\n", policies_.size());
  text += fmt::format("inline constexpr const char* kPolicyNames[] = {{\"{}\"}};\n\n",
                      fmt::join(policies_, "\", \""));
  std::string filters;
  for (std::size_t p = 0; p < filters_.size(); ++p) {
    const Filter& filter = filters_[p];
    std::vector<std::string> words;
    for (const std::uint64_t word : filter.words) words.push_back(fmt::format("{:#x}u", word));
    if (words.empty()) words.emplace_back("0");
    text += fmt::format("inline constexpr std::uint64_t kWords{}[] = {{{}}};\n", p, fmt::join(words, ", "));
    filters += fmt::format("{}{{kWords{}, {}u, {}}}", p == 0 ? "" : ", ", p, filter.bits, filter.hashes);
  }
  text += fmt::format(
      "inline constexpr tritax_sieve::Filter kFilters[] = {{{}}};\n\n"
      "// Bit p is set if policy p is worth trying; never 0.\n"
      "inline std::uint32_t candidates(const std::int64_t (&numbers)[kNumbers]) {{\n"
      "  return tritax_sieve::candidates(kFilters, kPolicies, numbers, kNumbers, {});\n"
      "}}\n\n}}  // namespace {}\n",
      filters, key_bits_, name);
  return text;
}

}  // namespace tritax
