// The step of attention: scores of a block of keys, their softmax, and the weighted results.
//
// One vector line stands for the instructions of a wave on one tile of scores or results (the tile of a
// matrix instruction). `largest` scales and takes the maximum, two instructions per score. `exponentials`
// takes one per score, and needs all maxima of its rows. `weigh` adds up and rounds to the type of operands,
// two per score. `rescale` takes one per result, in front of the first product of the result. Counts and
// rates are those of model/cost/attend_cost.hpp. A line keeps a wave until its last instruction is issued. A
// dependent instruction waits four cycles on NVIDIA parts (Z. Jia et al., arXiv:1804.06826, for most
// arithmetic), and no longer than its turn on AMD parts.
//
// Keys and values come from LDS read by read, 16 bytes per lane each. Two reads fit into the fragments'
// registers, and the next read waits for the products of the read two before it. Queries and weights stay in
// registers; with wgmma, queries, keys and values stay in LDS.
//
// Left out: the exchange of maxima and sums between lanes of a row, and masks.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/core/error.hpp"
#include "model/parts/kernels.hpp"
#include "model/parts/levels/step_lines.hpp"

namespace tritax {

namespace {

constexpr std::int32_t kPlainLatencyOfNvidia = 4;
constexpr std::int32_t kLargestOfScore = 2;  // instructions
constexpr std::int32_t kWeighOfScore = 2;

bool ranges_meet(std::int32_t a, std::int32_t a_count, std::int32_t b, std::int32_t b_count) {
  return a < b + b_count && b < a + a_count;
}

class AttentionWriter : StepLines {
 public:
  AttentionWriter(const Gpu& gpu, const Levels& levels, const KStepOptions& options)
      : StepLines(gpu, levels, options), scores_(levels.products.front()), results_(levels.products.back()) {}
  KStep write();

 private:
  struct Read {
    std::int32_t id = 0;
    Ids users;
  };
  std::int32_t add_vector(InstructionKind kind, std::string name, std::int32_t instructions);
  std::int32_t add_product(const WaveProduct& product, std::string name, bool a_from_lds);
  std::int32_t reads_of(const WaveProduct& product) const;
  std::pair<std::int32_t, std::int32_t> read_for(const WaveProduct& product, char operand,
                                                 std::int32_t column, std::int32_t q, Ids& reads);
  void use(std::pair<std::int32_t, std::int32_t> reads, std::int32_t product);
  void add_scores();
  void add_softmax();
  void add_results();
  void keep_order_of_turns();
  void guard_reads();

  std::int32_t per_lane(const MatrixInstruction& one) const {
    return ceil_div(one.m * one.n, gpu_.lanes_per_wave * one.waves);
  }
  std::size_t score(std::int32_t i, std::int32_t j) const {
    return static_cast<std::size_t>(i * scores_.along_n + j);
  }

  const WaveProduct& scores_;
  const WaveProduct& results_;
  std::vector<Read> reads_;      // in the order of their registers
  std::int32_t most_reads_ = 1;  // per product
  std::vector<Ids> of_score_;    // products, by tile of scores
  Ids largest_, exponentials_, weigh_;
  std::vector<Ids> of_result_;  // products, by tile of results
  Ids rescale_;
};

std::int32_t AttentionWriter::add_vector(InstructionKind kind, std::string name, std::int32_t instructions) {
  const bool one_unit = gpu_.lanes_per_wave == 64;
  const bool exponential = kind == InstructionKind::exponential;
  // Lanes per SIMD and clock: 16, and a quarter of that for exponentials, on AMD parts; 32 and 4 on NVIDIA
  // parts.
  const std::int32_t each = one_unit ? (exponential ? 16 : 4) : (exponential ? 8 : 1);
  const std::int32_t busy = each * instructions;
  const std::int32_t id = add(kind, exponential && !one_unit ? StepUnit::special : StepUnit::vector,
                              std::move(name), busy, busy + (one_unit ? 0 : kPlainLatencyOfNvidia));
  StepInstruction& line = step_.instructions[static_cast<std::size_t>(id)];
  line.issue += each * (instructions - 1);
  return id;
}

std::int32_t AttentionWriter::add_product(const WaveProduct& product, std::string name, bool a_from_lds) {
  const MatrixInstruction& one = product.instruction;
  double clk = product.clk_each;
  if (one.from_lds) {
    const double bytes =
        static_cast<double>((a_from_lds ? one.m : 0) + one.n) * one.k * bytes_of(levels_.dtype);
    clk = std::max(clk, bytes / gpu_.lds_bytes_per_clk);
  }
  return add(InstructionKind::matrix, StepUnit::matrix, std::move(name), clk, clk);
}

// Number of reads for a column of instructions of a product, over all of K.
std::int32_t AttentionWriter::reads_of(const WaveProduct& product) const {
  if (levels_.feed == Feed::by_copy_engine) return 0;
  const double bytes = static_cast<double>(product.instruction.n) * product.instruction.k * product.along_k *
                       bytes_of(levels_.dtype);
  return std::max(1, static_cast<std::int32_t>(std::ceil(bytes / read_bytes())));
}

// Writes down the missing reads of a column for its product `q`. Returns the range of all reads of the
// column, by their place in reads_.
std::pair<std::int32_t, std::int32_t> AttentionWriter::read_for(const WaveProduct& product, char operand,
                                                                std::int32_t column, std::int32_t q,
                                                                Ids& reads) {
  const std::int32_t count = reads_of(product);
  if (count == 0) return {0, -1};
  const auto [first, last] = bringing(q, product.along_k, static_cast<std::size_t>(count));
  most_reads_ = std::max(most_reads_, last - first + 1);
  const std::int32_t there = static_cast<std::int32_t>(reads.size()) - column * count;
  const std::int32_t begin = static_cast<std::int32_t>(reads_.size()) - there;
  for (std::int32_t next = there; next <= last; ++next) {
    reads_.push_back({add_read(fmt::format("read {} {},{}", operand, column, next)), {}});
    reads.push_back(reads_.back().id);
  }
  return {begin + first, begin + last};
}

void AttentionWriter::use(std::pair<std::int32_t, std::int32_t> reads, std::int32_t product) {
  for (std::int32_t r = reads.first; r <= reads.second; ++r) {
    Read& read = reads_[static_cast<std::size_t>(r)];
    need(read.id, product, 0, latency_of(read.id));
    read.users.push_back(product);
  }
}

void AttentionWriter::add_scores() {
  of_score_.resize(static_cast<std::size_t>(scores_.along_m) * static_cast<std::size_t>(scores_.along_n));
  reads_a_.emplace_back();
  for (std::int32_t j = 0; j < scores_.along_n; ++j) {
    for (std::int32_t q = 0; q < scores_.along_k; ++q) {
      const auto reads = read_for(scores_, 'K', j, q, reads_a_.back());
      for (std::int32_t i = 0; i < scores_.along_m; ++i) {
        const std::int32_t id = add_product(scores_, fmt::format("scores {},{}, d {}", i, j, q), true);
        Ids& chain = of_score_[score(i, j)];
        if (!chain.empty()) need(chain.back(), id, 0, at(id).busy);
        chain.push_back(id);
        use(reads, id);
      }
    }
  }
}

void AttentionWriter::add_softmax() {
  const std::int32_t each = per_lane(scores_.instruction);
  const std::int32_t turns = options_.scores_ahead ? 1 : 0;  // whether the scores come from the turn before
  const auto for_each_tile = [&](const auto& visit) {
    for (std::int32_t i = 0; i < scores_.along_m; ++i) {
      for (std::int32_t j = 0; j < scores_.along_n; ++j) visit(i, j);
    }
  };
  for_each_tile([&](std::int32_t i, std::int32_t j) {
    const std::int32_t id =
        add_vector(InstructionKind::vector, fmt::format("largest {},{}", i, j), kLargestOfScore * each);
    need(of_score_[score(i, j)].back(), id, turns, latency_of(of_score_[score(i, j)].back()));
    largest_.push_back(id);
  });
  for_each_tile([&](std::int32_t i, std::int32_t j) {
    const std::int32_t id =
        add_vector(InstructionKind::exponential, fmt::format("exponentials {},{}", i, j), each);
    for (std::int32_t other = 0; other < scores_.along_n; ++other) {
      const std::int32_t largest = largest_[score(i, other)];
      need(largest, id, 0, latency_of(largest));
    }
    exponentials_.push_back(id);
  });
  for_each_tile([&](std::int32_t i, std::int32_t j) {
    const std::int32_t id =
        add_vector(InstructionKind::vector, fmt::format("weigh {},{}", i, j), kWeighOfScore * each);
    need(exponentials_[score(i, j)], id, 0, latency_of(exponentials_[score(i, j)]));
    weigh_.push_back(id);
  });
}

void AttentionWriter::add_results() {
  const MatrixInstruction& s = scores_.instruction;
  const MatrixInstruction& o = results_.instruction;
  of_result_.resize(static_cast<std::size_t>(results_.along_m) * static_cast<std::size_t>(results_.along_n));
  for (std::int32_t i = 0; i < results_.along_m; ++i) {
    for (std::int32_t j = 0; j < results_.along_n; ++j) {
      const std::int32_t id =
          add_vector(InstructionKind::vector, fmt::format("rescale {},{}", i, j), per_lane(o));
      rescale_.push_back(id);
      for (std::int32_t rows = 0; rows < scores_.along_m; ++rows) {
        if (!ranges_meet(i * o.m, o.m, rows * s.m, s.m)) continue;
        for (std::int32_t cols = 0; cols < scores_.along_n; ++cols) {
          const std::int32_t largest = largest_[score(rows, cols)];
          need(largest, id, 0, latency_of(largest));
        }
      }
    }
  }
  reads_b_.emplace_back();
  for (std::int32_t j = 0; j < results_.along_n; ++j) {
    for (std::int32_t q = 0; q < results_.along_k; ++q) {
      const auto reads = read_for(results_, 'V', j, q, reads_b_.back());
      for (std::int32_t i = 0; i < results_.along_m; ++i) {
        const std::int32_t id = add_product(results_, fmt::format("results {},{}, key {}", i, j, q), false);
        const auto tile = static_cast<std::size_t>(i * results_.along_n + j);
        Ids& chain = of_result_[tile];
        const std::int32_t before = chain.empty() ? rescale_[tile] : chain.back();
        need(before, id, 0, chain.empty() ? latency_of(before) : at(id).busy);
        chain.push_back(id);
        for (std::int32_t rows = 0; rows < scores_.along_m; ++rows) {
          for (std::int32_t cols = 0; cols < scores_.along_n; ++cols) {
            if (!ranges_meet(i * o.m, o.m, rows * s.m, s.m) || !ranges_meet(q * o.k, o.k, cols * s.n, s.n))
              continue;
            const std::int32_t weights = weigh_[score(rows, cols)];
            need(weights, id, 0, latency_of(weights));
            need(id, weights, 1, 1);  // the next weights overwrite them
          }
        }
        use(reads, id);
      }
    }
  }
}

// Scores of the next block overwrite scores that have become weights; results accumulate over turns.
void AttentionWriter::keep_order_of_turns() {
  for (std::size_t tile = 0; tile < of_score_.size(); ++tile) {
    need(weigh_[tile], of_score_[tile].front(), 1, at(weigh_[tile]).busy);
  }
  for (std::size_t tile = 0; tile < of_result_.size(); ++tile) {
    need(of_result_[tile].back(), rescale_[tile], 1, latency_of(of_result_[tile].back()));
  }
}

// Two reads are on their way or in use at a time; through the cache, all reads of a block.
void AttentionWriter::guard_reads() {
  const auto count = static_cast<std::int32_t>(reads_.size());
  const std::int32_t sets = levels_.feed == Feed::through_cache ? count : 2 * most_reads_;
  for (std::int32_t i = 0; i < count; ++i) {
    std::int32_t user = i - sets, turns = 0;
    for (; user < 0; user += count) ++turns;
    for (const std::int32_t product : reads_[static_cast<std::size_t>(user)].users) {
      guard(product, reads_[static_cast<std::size_t>(i)].id, turns);
    }
  }
}

KStep AttentionWriter::write() {
  add_loads('K', levels_.tile.n, 'V', levels_.tile.n);
  add_scores();
  add_softmax();
  add_results();
  switch (levels_.feed) {
    case Feed::through_registers:
      close_through_registers();
      break;
    case Feed::by_copies:
      close_by_copies();
      break;
    case Feed::by_copy_engine:
      for (const Ids& products : of_score_) close_by_copy_engine(loads_a_, products);
      for (const Ids& products : of_result_) close_by_copy_engine(loads_b_, products);
      break;
    case Feed::through_cache:
      close_through_cache(loads_a_, reads_a_);
      close_through_cache(loads_b_, reads_b_);
      break;
  }
  keep_order_of_turns();
  guard_reads();
  return std::move(step_);
}

// Registers must hold the scores of two blocks.
void require_room_for_scores(const Gpu& gpu, const Levels& levels) {
  const WaveProduct& scores = levels.products.front();
  const MatrixInstruction& one = scores.instruction;
  const std::int32_t more =
      ceil_div(scores.along_m * one.m * scores.along_n * one.n, gpu.lanes_per_wave * levels.waves_in_group);
  const double threads = static_cast<double>(levels.tile.waves) * gpu.lanes_per_wave;
  const double available = std::min(gpu.registers_per_thread_max, std::floor(gpu.registers_per_cu / threads));
  if (levels.registers.total() + more <= available) return;
  throw UserError(fmt::format("scores of two blocks take {} registers of a thread, and it has {:.0f}",
                              levels.registers.total() + more, available));
}

}  // namespace

KStep k_step_of_attention(const Gpu& gpu, const Levels& levels, const KStepOptions& options) {
  if (options.scores_ahead) require_room_for_scores(gpu, levels);
  return AttentionWriter(gpu, levels, options).write();
}

}  // namespace tritax
