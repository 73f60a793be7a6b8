#include "model/parts/levels/k_step_of_tile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/core/error.hpp"
#include "model/parts/kernels.hpp"
#include "model/parts/levels/step_lines.hpp"

namespace tritax {

namespace {

// Writes down the instructions of a wave.
class StepWriter : StepLines {
 public:
  StepWriter(const Gpu& gpu, const Levels& levels, const KStepOptions& options);
  KStep write();

 private:
  void add_piece(std::int32_t piece);
  void add_reads(std::int32_t piece, Ids& reads_a, Ids& reads_b);
  void add_reads_ahead();
  void need_reads(std::int32_t piece, std::size_t product, std::int32_t turns);
  bool reads_ahead() const;
  void add_products(std::int32_t piece);
  void guard_fragments();

  const WaveProduct& product_;
  std::int32_t pieces_ = 1;
  std::int32_t along_k_ = 1;   // instructions per piece
  std::vector<Ids> products_;  // by piece: (place along K · along_m + place along m) · along_n + along n
};

StepWriter::StepWriter(const Gpu& gpu, const Levels& levels, const KStepOptions& options)
    : StepLines(gpu, levels, options), product_(levels.products.front()) {
  along_k_ = std::min(product_.along_k, levels.read_depth / product_.instruction.k);
  pieces_ = ceil_div(product_.along_k, along_k_);
}

void StepWriter::add_reads(std::int32_t piece, Ids& reads_a, Ids& reads_b) {
  if (levels_.feed == Feed::by_copy_engine) return;
  const bool cached = levels_.feed == Feed::through_cache;
  const std::int32_t depth = along_k_ * product_.instruction.k;
  for (const auto& [matrix, along, edge, reads] :
       {std::tuple{'A', product_.along_m, product_.instruction.m, &reads_a},
        std::tuple{'B', product_.along_n, product_.instruction.n, &reads_b}}) {
    const double bytes = static_cast<double>(along) * edge * depth * bytes_of(levels_.dtype);
    const auto count = static_cast<std::int32_t>(cached ? ceil_div(along * edge, kBlockRows)
                                                        : std::ceil(bytes / read_bytes()));
    for (std::int32_t i = 0; i < count; ++i) {
      reads->push_back(add_read(fmt::format("read {} {}, piece {}", matrix, i, piece)));
    }
  }
}

void StepWriter::add_products(std::int32_t piece) {
  const MatrixInstruction& instruction = product_.instruction;
  double clk = product_.clk_each;
  if (instruction.from_lds) {
    const double bytes =
        static_cast<double>(instruction.m + instruction.n) * instruction.k * bytes_of(levels_.dtype);
    clk = std::max(clk, bytes / gpu_.lds_bytes_per_clk);
  }
  Ids& own = products_.emplace_back();
  const std::int32_t end = std::min(along_k_, product_.along_k - piece * along_k_);
  const Ids* before = piece > 0 ? &products_[static_cast<std::size_t>(piece) - 1] : nullptr;
  const auto block = static_cast<std::size_t>(product_.along_m) * static_cast<std::size_t>(product_.along_n);
  for (std::int32_t q = 0; q < end; ++q) {
    for (std::int32_t i = 0; i < product_.along_m; ++i) {
      for (std::int32_t j = 0; j < product_.along_n; ++j) {
        const std::int32_t id =
            add(InstructionKind::matrix, StepUnit::matrix,
                fmt::format("multiply {},{}, k {}", i, j, piece * along_k_ + q), clk, clk);
        const std::int32_t clocks = step_.instructions[static_cast<std::size_t>(id)].busy;
        if (own.size() >= block) {
          need(own[own.size() - block], id, 0, clocks);
        } else if (before != nullptr) {
          need((*before)[before->size() - block + own.size()], id, 0, clocks);
        }
        own.push_back(id);
        need_reads(piece, own.size() - 1, 0);
      }
    }
  }
}

bool StepWriter::reads_ahead() const {
  return options_.reads_ahead && (levels_.feed == Feed::through_registers || levels_.feed == Feed::by_copies);
}

// Dependences of the product at a place of its piece on the reads of its fragments, `turns` ago.
void StepWriter::need_reads(std::int32_t piece, std::size_t product, std::int32_t turns) {
  const auto of = static_cast<std::size_t>(piece);
  const auto j = static_cast<std::int32_t>(product) % product_.along_n;
  const auto i = static_cast<std::int32_t>(product) / product_.along_n % product_.along_m;
  for (const auto& [reads, place, along] :
       {std::tuple{&reads_a_[of], i, product_.along_m}, std::tuple{&reads_b_[of], j, product_.along_n}}) {
    if (reads->empty()) continue;
    const auto [first, last] = bringing(place, along, reads->size());
    for (std::int32_t r = first; r <= last; ++r) {
      const std::int32_t read = (*reads)[static_cast<std::size_t>(r)];
      need(read, products_[of][product], turns, step_.instructions[static_cast<std::size_t>(read)].latency);
    }
  }
}

// The first reads of the next turn, behind the barrier that allows them.
void StepWriter::add_reads_ahead() {
  add_reads(0, reads_a_.front(), reads_b_.front());
  for (const Ids* reads : {&reads_a_.front(), &reads_b_.front()}) {
    follow_all(last_barrier_, *reads, 0);
    need_all(*reads, read_barrier_, 1);
  }
  for (std::size_t product = 0; product < products_.front().size(); ++product) need_reads(0, product, 1);
}

void StepWriter::add_piece(std::int32_t piece) {
  reads_a_.emplace_back();
  reads_b_.emplace_back();
  if (piece > 0 || !reads_ahead()) add_reads(piece, reads_a_.back(), reads_b_.back());
  add_products(piece);
}

// Reads wait for the matrix instructions that use the fragments they overwrite; accumulators continue in the
// next turn.
void StepWriter::guard_fragments() {
  const auto block = static_cast<std::size_t>(product_.along_m) * static_cast<std::size_t>(product_.along_n);
  const Ids& last = products_.back();
  for (std::size_t i = 0; i < block; ++i) {
    const std::int32_t id = last[last.size() - block + i];
    need(id, products_.front()[i], 1, step_.instructions[static_cast<std::size_t>(id)].busy);
  }
  const std::int32_t sets = levels_.feed == Feed::through_cache ? pieces_ : 2;
  for (std::int32_t piece = 0; piece < pieces_; ++piece) {
    std::int32_t user = piece - sets, turns = 0;
    for (; user < 0; user += pieces_) ++turns;
    if (piece == 0 && reads_ahead()) --turns;  // the fragments are read a turn before their use
    const Ids& users = products_[static_cast<std::size_t>(user)];
    for (std::size_t at = 0; at < users.size(); ++at) {
      const auto j = static_cast<std::int32_t>(at) % product_.along_n;
      const auto i = static_cast<std::int32_t>(at) / product_.along_n % product_.along_m;
      for (const auto& [reads, place, along] :
           {std::tuple{&reads_a_[static_cast<std::size_t>(piece)], i, product_.along_m},
            std::tuple{&reads_b_[static_cast<std::size_t>(piece)], j, product_.along_n}}) {
        if (reads->empty()) continue;
        const auto [first, end] = bringing(place, along, reads->size());
        for (std::int32_t r = first; r <= end; ++r) {
          guard(users[at], (*reads)[static_cast<std::size_t>(r)], turns);
        }
      }
    }
  }
}

KStep StepWriter::write() {
  add_loads('A', levels_.tile.m, 'B', levels_.tile.n);
  for (std::int32_t piece = 0; piece < pieces_; ++piece) add_piece(piece);
  switch (levels_.feed) {
    case Feed::through_registers:
      close_through_registers();
      break;
    case Feed::by_copies:
      close_by_copies();
      break;
    case Feed::by_copy_engine:
      for (const Ids& piece : products_) {
        close_by_copy_engine(loads_a_, piece);
        close_by_copy_engine(loads_b_, piece);
      }
      break;
    case Feed::through_cache:
      close_through_cache(loads_a_, reads_a_);
      close_through_cache(loads_b_, reads_b_);
      break;
  }
  if (reads_ahead()) add_reads_ahead();
  guard_fragments();
  return std::move(step_);
}

}  // namespace

KStep k_step_of(const Gpu& gpu, const Levels& levels, const KStepOptions& options) {
  std::int32_t count = 0;
  for (const WaveProduct& product : levels.products) count += product.instructions();
  if (count > kMostStepInstructions) {
    throw UserError(
        fmt::format("{} matrix instructions a wave and K step are more than {}; use a smaller tile_k", count,
                    kMostStepInstructions));
  }
  if (levels.waves.loop == TileLoop::attention) return k_step_of_attention(gpu, levels, options);
  return StepWriter(gpu, levels, options).write();
}

}  // namespace tritax
