#include "model/parts/expert_routing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "model/core/error.hpp"
#include "model/parts/fields.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kMaxTokens = std::int64_t{1} << 20;
constexpr std::int64_t kMaxExperts = 4096;
constexpr std::int64_t kMaxChoices = 64;
constexpr std::int64_t kMostRouted = 4096;  // default limit of blocks times choices, of all GPUs together

const std::array<Spec, 9>& routing_fields() {
  static const std::array<Spec, 9> fields{{
      {.name = "tokens",
       .help = "tokens per GPU",
       .high = kMaxTokens,
       .required = true,
       .varies_by_doubling = true},
      {.name = "experts", .help = "experts of all GPUs together", .high = kMaxExperts, .usual = {64}},
      {.name = "top_k", .help = "experts per token", .high = kMaxChoices, .usual = {4}},
      {.name = "routing",
       .help = "routing of tokens: to experts in turn, at random with equal weights, or at random with "
               "weights 1/i^(skew/100)",
       .kind = ValueKind::name,
       .usual = {static_cast<std::int64_t>(RoutingKind::uniform)},
       .names = kRoutingNames},
      {.name = "skew", .help = "exponent of zipf, in hundredths", .low = 0, .high = 1000, .usual = {100}},
      {.name = "histogram",
       .help = "file with the number of tokens per expert, in all or per GPU; only the choice of tokens is "
               "then random",
       .kind = ValueKind::file,
       .high = 1 << 30},
      {.name = "routing_seed",
       .help = "seed of the routing",
       .low = 0,
       .high = 1 << 30,
       .usual = {1},
       .seeds = true},
      {.name = "capacity",
       .help = "capacity of an expert, in percent of its even share; 0: no limit",
       .low = 0,
       .high = 100000},
      {.name = "block",
       .help = "tokens that are routed together (default: as few as the limit of operations allows)",
       .high = kMaxTokens},
  }};
  return fields;
}

// Mixes the bits of a number (SplitMix64, public domain).
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// A random number in (0, 1).
double drawn(std::int64_t seed, std::int64_t source, std::int64_t block, std::int64_t expert) {
  std::uint64_t x = mixed(static_cast<std::uint64_t>(seed));
  for (const std::int64_t part : {source, block, expert}) x = mixed(x ^ static_cast<std::uint64_t>(part));
  return (static_cast<double>(x >> 11) + 0.5) / 9007199254740992.0;
}

std::vector<double> weights_of(const ExpertRouting& routing) {
  std::vector<double> weights(static_cast<std::size_t>(routing.experts), 1.0);
  if (routing.kind != RoutingKind::zipf) return weights;
  std::vector<std::int64_t> order(weights.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    return drawn(routing.seed, -1, -1, a) < drawn(routing.seed, -1, -1, b);
  });
  for (std::size_t i = 0; i < order.size(); ++i) {
    weights[static_cast<std::size_t>(order[i])] =
        std::pow(static_cast<double>(i + 1), -static_cast<double>(routing.skew) / 100);
  }
  return weights;
}

// Experts of a block, in no particular order.
std::vector<int> choices_of(const ExpertRouting& routing, const std::vector<double>& weights, int source,
                            std::int64_t block, std::int64_t blocks) {
  std::vector<int> experts(weights.size());
  std::iota(experts.begin(), experts.end(), 0);
  const auto k = static_cast<std::size_t>(routing.top_k);
  if (routing.kind == RoutingKind::balanced) {
    const std::int64_t first = (source * blocks + block) * routing.top_k;
    for (std::size_t i = 0; i < k; ++i) {
      experts[i] = static_cast<int>((first + static_cast<std::int64_t>(i)) % routing.experts);
    }
  } else {
    std::vector<double> keys(weights.size());
    for (std::size_t e = 0; e < keys.size(); ++e) {
      keys[e] = -std::log(drawn(routing.seed, source, block, static_cast<std::int64_t>(e))) / weights[e];
    }
    std::partial_sort(
        experts.begin(), experts.begin() + static_cast<std::ptrdiff_t>(k), experts.end(),
        [&](int a, int b) { return keys[static_cast<std::size_t>(a)] < keys[static_cast<std::size_t>(b)]; });
  }
  experts.resize(k);
  return experts;
}

// Deals a line of choices, expert after expert: choice number j falls on token j mod `tokens`. No expert has
// more choices than there are tokens. Calls `visit` for every choice.
template <typename Visit>
void deal_choices(const std::vector<std::int64_t>& choices, const std::vector<std::size_t>& order,
                  std::int64_t tokens, const Visit& visit) {
  std::int64_t at = 0;
  for (const std::size_t expert : order) {
    for (std::int64_t i = 0; i < choices[expert]; ++i) visit(at++ % tokens, static_cast<int>(expert));
  }
}

void check_choices(const ExpertHistogram& histogram, std::size_t row,
                   const std::vector<std::int64_t>& choices, std::int64_t tokens) {
  for (std::size_t expert = 0; expert < choices.size(); ++expert) {
    if (choices[expert] <= tokens) continue;
    throw UserError(fmt::format(
        "{}: expert {} has {} of all choices, {} among {} blocks of tokens, each of which goes to it once at "
        "most; give it fewer, or choose a smaller top_k",
        histogram.places[row], expert, histogram.counts[row][expert], choices[expert], tokens));
  }
}

// Experts by (source, block).
std::vector<std::vector<int>> choices_by_histogram(const ExpertRouting& routing, std::int64_t blocks) {
  const ExpertHistogram& histogram = *routing.histogram;
  const auto& counts = histogram.counts;
  std::vector<std::vector<int>> chosen(static_cast<std::size_t>(blocks * routing.gpus));
  std::vector<std::size_t> order(static_cast<std::size_t>(routing.experts));
  const auto sort_for = [&](std::int64_t source) {
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return drawn(routing.seed, source, -2, static_cast<std::int64_t>(a)) <
             drawn(routing.seed, source, -2, static_cast<std::int64_t>(b));
    });
  };
  if (counts.size() == 1) {
    const std::int64_t all = blocks * routing.gpus;
    const std::vector<std::int64_t> choices = apportioned(counts.front(), all * routing.top_k);
    check_choices(histogram, 0, choices, all);
    sort_for(-2);
    deal_choices(choices, order, all, [&](std::int64_t token, int expert) {
      const std::int64_t source = token % routing.gpus, block = token / routing.gpus;
      chosen[static_cast<std::size_t>(source * blocks + block)].push_back(expert);
    });
    return chosen;
  }
  std::vector<std::int64_t> sums;
  for (const auto& row : counts) sums.push_back(std::accumulate(row.begin(), row.end(), std::int64_t{0}));
  const std::int64_t most = *std::max_element(sums.begin(), sums.end());
  for (std::size_t source = 0; source < counts.size(); ++source) {
    if (sums[source] == 0) continue;
    const std::int64_t whole = std::llround(static_cast<double>(blocks * routing.top_k) *
                                            (static_cast<double>(sums[source]) / static_cast<double>(most)));
    const std::vector<std::int64_t> choices = apportioned(counts[source], whole);
    check_choices(histogram, source, choices, blocks);
    const std::int64_t tokens = std::max<std::int64_t>((whole + routing.top_k - 1) / routing.top_k,
                                                       *std::max_element(choices.begin(), choices.end()));
    sort_for(static_cast<std::int64_t>(source));
    deal_choices(choices, order, tokens, [&](std::int64_t token, int expert) {
      chosen[source * static_cast<std::size_t>(blocks) + static_cast<std::size_t>(token)].push_back(expert);
    });
  }
  return chosen;
}

std::int64_t blocks_of(const ExpertRouting& routing) {
  return (routing.tokens + routing.block - 1) / routing.block;
}

int owner_of_expert(std::int64_t experts, int gpus, int expert) {
  for (int rank = 0;; ++rank) {
    if (expert < share_of(experts, rank, gpus).end) return rank;
  }
}

}  // namespace

Spec routing_field(std::string_view name) {
  const Spec* found = find_spec(routing_fields(), name);
  TRITAX_ASSERT(found != nullptr, "no such field of routing");
  return *found;
}

namespace {

// Takes `experts` from the histogram. A saved scenario repeats the values of the file.
void complete_from_histogram(Problem& problem, const FieldPlace& place) {
  const std::shared_ptr<const ExpertHistogram> histogram = expert_histogram_of(problem["histogram"]);
  const Values usual(problem.values.specs());
  const auto is = [&](std::string_view field, std::int64_t value) {
    if (problem.values.given(field) && problem[field] != value) {
      throw UserError(fmt::format("{}: {} contradicts the histogram {}, which has {} experts; leave it out",
                                  place(field), field, histogram->origin, histogram->experts()));
    }
    problem.values.assume(field, value);
  };
  if (histogram->experts() > kMaxExperts) {
    throw UserError(fmt::format("{}: {} experts; give from 1 to {}", histogram->places.front(),
                                histogram->experts(), kMaxExperts));
  }
  is("experts", histogram->experts());
  for (const std::string_view field : {"routing", "skew"}) is(field, usual[field]);
  const std::size_t rows = histogram->counts.size();
  if (rows == 1 || rows == static_cast<std::size_t>(problem.gpus())) return;
  throw UserError(fmt::format("{}: {} of {} GPUs; give one line for all together, or one per GPU",
                              histogram->places.back(), rows, problem.gpus()));
}

}  // namespace

void complete_routing(Problem& problem, const FieldPlace& place) {
  if (problem["histogram"] > 0) complete_from_histogram(problem, place);
  const std::int64_t experts = problem["experts"];
  const auto refuse = [&](std::string_view field, const std::string& why) {
    throw UserError(fmt::format("{}: {}", place(field), why));
  };
  if (experts < problem.gpus()) {
    refuse("experts", fmt::format("experts = {} is less than there are GPUs ({}); every GPU must have one",
                                  experts, problem.gpus()));
  }
  if (problem["top_k"] > experts) {
    refuse("top_k", fmt::format("top_k = {} is more than there are experts ({})", problem["top_k"], experts));
  }
  if (problem["block"] != 0) return;
  std::int64_t block = 1;
  while (problem["tokens"] * problem["top_k"] * problem.gpus() / block > kMostRouted) block *= 2;
  problem.values.assume("block", block);
}

ExpertRouting routing_of(const Problem& problem, bool once_per_gpu) {
  return {problem["tokens"],
          problem["experts"],
          problem["top_k"],
          static_cast<RoutingKind>(problem["routing"]),
          problem["skew"],
          problem["routing_seed"],
          problem["capacity"],
          problem["block"],
          problem.gpus(),
          once_per_gpu,
          expert_histogram_of(problem["histogram"])};
}

Routes::Routes(const ExpertRouting& routing)
    : ranks_(routing.gpus), once_per_gpu_(routing.once_per_gpu), experts_(routing.experts) {
  std::vector<int> owner_of;
  for (int expert = 0; expert < static_cast<int>(routing.experts); ++expert) {
    owner_of.push_back(owner_of_expert(routing.experts, routing.gpus, expert));
  }
  owner_ = owner_of;
  if (once_per_gpu_) {
    owner_.resize(static_cast<std::size_t>(ranks_));
    std::iota(owner_.begin(), owner_.end(), 0);
  }
  const std::vector<double> weights = weights_of(routing);
  const double even = static_cast<double>(routing.tokens * routing.gpus * routing.top_k) /
                      static_cast<double>(routing.experts);
  const double most = std::max(static_cast<double>(routing.block),
                               std::ceil(even * static_cast<double>(routing.capacity) / 100));
  std::vector<double> taken(weights.size(), 0);
  routed_.resize(static_cast<std::size_t>(ranks_));
  const std::int64_t blocks = blocks_of(routing);
  std::vector<std::vector<int>> chosen;
  if (routing.histogram != nullptr) chosen = choices_by_histogram(routing, blocks);
  const auto experts_of = [&](int source, std::int64_t block) {
    if (chosen.empty()) return choices_of(routing, weights, source, block, blocks);
    return std::move(chosen[static_cast<std::size_t>(source * blocks + block)]);
  };
  for (int source = 0; source < ranks_; ++source) {
    for (std::int64_t block = 0; block < blocks; ++block) {
      const std::int64_t token = block * routing.block;
      const auto rows = static_cast<std::int32_t>(std::min(routing.block, routing.tokens - token));
      std::vector<int> targets;
      for (const int expert : experts_of(source, block)) {
        double& count = taken[static_cast<std::size_t>(expert)];
        if (routing.capacity > 0 && count + rows > most) continue;
        count += rows;
        targets.push_back(once_per_gpu_ ? owner_of[static_cast<std::size_t>(expert)] : expert);
      }
      std::sort(targets.begin(), targets.end());
      targets.erase(std::unique(targets.begin(), targets.end()), targets.end());
      for (const int target : targets) {
        routed_[static_cast<std::size_t>(source)].push_back(
            {static_cast<std::int32_t>(token), rows, target, 0, 0});
      }
    }
  }
  place();
}

void Routes::place() {
  const std::size_t size = static_cast<std::size_t>(ranks_) * owner_.size();
  rows_.assign(size, 0);
  source_begin_.assign(size, 0);
  owner_begin_.assign(size, 0);
  for (int source = 0; source < ranks_; ++source) {
    for (const Routed& routed : of(source)) rows_[at(source, routed.target)] += routed.rows;
  }
  for (int source = 0; source < ranks_; ++source) {
    std::int32_t row = 0;
    for (int target = 0; target < targets(); ++target) {
      source_begin_[at(source, target)] = row;
      row += rows(source, target);
    }
  }
  for (int rank = 0; rank < ranks_; ++rank) {
    std::int32_t row = 0;
    const Share own = targets_of(rank);
    for (auto target = static_cast<int>(own.begin); target < own.end; ++target) {
      for (int source = 0; source < ranks_; ++source) {
        owner_begin_[at(source, target)] = row;
        row += rows(source, target);
      }
    }
  }
  for (int source = 0; source < ranks_; ++source) {
    std::vector<std::int32_t> used(owner_.size(), 0);
    for (Routed& routed : routed_[static_cast<std::size_t>(source)]) {
      std::int32_t& place = used[static_cast<std::size_t>(routed.target)];
      routed.at_source = source_begin(source, routed.target) + place;
      routed.at_owner = owner_begin(source, routed.target) + place;
      place += routed.rows;
    }
  }
}

Share Routes::targets_of(int rank) const {
  if (once_per_gpu_) return {rank, rank + 1};
  return share_of(experts_, rank, ranks_);
}

std::int32_t Routes::target_rows(int target) const {
  std::int32_t sum = 0;
  for (int source = 0; source < ranks_; ++source) sum += rows(source, target);
  return sum;
}

std::int32_t Routes::rows_of_source(int source) const {
  std::int32_t sum = 0;
  for (int rank = 0; rank < ranks_; ++rank) sum += rows_between(source, rank);
  return sum;
}

std::int32_t Routes::rows_of_owner(int rank) const {
  std::int32_t sum = 0;
  for (int source = 0; source < ranks_; ++source) sum += rows_between(source, rank);
  return sum;
}

std::int32_t Routes::rows_between(int source, int rank) const {
  std::int32_t sum = 0;
  const Share own = targets_of(rank);
  for (auto target = static_cast<int>(own.begin); target < own.end; ++target) sum += rows(source, target);
  return sum;
}

std::int32_t Routes::most_rows_of_source() const {
  std::int32_t most = 1;
  for (int rank = 0; rank < ranks_; ++rank) most = std::max(most, rows_of_source(rank));
  return most;
}

std::int32_t Routes::most_rows_of_owner() const {
  std::int32_t most = 1;
  for (int rank = 0; rank < ranks_; ++rank) most = std::max(most, rows_of_owner(rank));
  return most;
}

std::int32_t Routes::most_rows_between() const {
  std::int32_t most = 1;
  for (int source = 0; source < ranks_; ++source) {
    for (int rank = 0; rank < ranks_; ++rank) most = std::max(most, rows_between(source, rank));
  }
  return most;
}

}  // namespace tritax
