#include "model/parts/levels/k_step_of_tile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/core/error.hpp"
#include "model/parts/kernels.hpp"

namespace tritax {

namespace {

constexpr std::int32_t kLdsClkOfAmd = 64;
constexpr std::int32_t kLdsClkOfNvidia = 29;
constexpr std::int32_t kL1ClkOfXe = 120;
constexpr double kL1BytesPerClkOfXe =
    512;  // load and store of an Xe-core, Intel Data Center GPU Max overview
constexpr std::int32_t kQueue = 8;
constexpr std::int32_t kUsualWindow = 5;

std::int32_t clk_of(double clk) { return std::max(1, static_cast<std::int32_t>(std::lround(clk))); }

// Writes down the instructions of a wave.
class StepWriter {
 public:
  StepWriter(const Gpu& gpu, const Levels& levels, const KStepOptions& options);
  KStep write();

 private:
  using Ids = std::vector<std::int32_t>;

  std::int32_t add(StepKind kind, StepUnit unit, std::string name, double busy_clk, double latency_clk);
  void need(std::int32_t from, std::int32_t to, std::int32_t turns, std::int32_t cycles);
  void need_all(const Ids& from, std::int32_t to, std::int32_t turns);    // their results
  void follow_all(std::int32_t from, const Ids& to, std::int32_t turns);  // a barrier
  void add_loads();
  void add_piece(std::int32_t piece);
  void add_reads(std::int32_t piece, Ids& reads_a, Ids& reads_b);
  void add_reads_ahead();
  void need_reads(std::int32_t piece, std::size_t product, std::int32_t turns);
  bool reads_ahead() const;
  void add_products(std::int32_t piece);
  void guard_fragments();
  void close_through_registers();
  void close_by_copies();
  void close_by_copy_engine();
  void close_through_cache();

  double lds_busy() const { return served_ * kBytesOfLane * gpu_.lanes_per_wave / gpu_.lds_bytes_per_clk; }
  double port_busy(double bytes) const { return served_ * bytes / gpu_.cu_l2_bytes_per_clk; }

  const Gpu& gpu_;
  const Levels& levels_;
  const KStepOptions& options_;
  const WaveProduct& product_;
  KStep step_;
  double served_ = 1;  // waves of the SIMDs that ask LDS and memory path for the same at a time
  double memory_clk_ = 0;
  std::int32_t pieces_ = 1;
  std::int32_t along_k_ = 1;  // instructions of a piece
  Ids loads_;                 // or copies, or prefetches
  Ids writes_;
  std::int32_t read_barrier_ = -1;  // behind which what was read may be overwritten
  std::int32_t last_barrier_ = -1;  // behind which the next stage may be read
  std::vector<Ids> reads_a_;        // by piece
  std::vector<Ids> reads_b_;
  std::vector<Ids> products_;  // by piece: (place along K · along_m + place along m) · along_n + along n
};

StepWriter::StepWriter(const Gpu& gpu, const Levels& levels, const KStepOptions& options)
    : gpu_(gpu), levels_(levels), options_(options), product_(levels.products.front()) {
  const std::int32_t simds = std::max(1, gpu.simds_per_cu / levels.waves_in_group);
  step_.waves_per_simd = ceil_div(levels.waves.waves(), simds);
  served_ = std::min(gpu.simds_per_cu, levels.tile.waves);
  memory_clk_ =
      (options.memory_latency_ns > 0 ? options.memory_latency_ns : gpu.l2_latency_ns) * gpu.boost_clock_ghz;
  along_k_ = std::min(product_.along_k, levels.read_depth / product_.instruction.k);
  pieces_ = ceil_div(product_.along_k, along_k_);
  step_.queue[static_cast<std::size_t>(StepUnit::lds)] = kQueue;
  step_.queue[static_cast<std::size_t>(StepUnit::memory)] = kQueue;
  step_.barriers_are_walls = options.as_machine_code;
  step_.flops = levels.flops();
  step_.title = fmt::format("K step of {}x{}x{} {} by {} waves on {}, {}", levels.tile.m, levels.tile.n,
                            levels.tile.k, name_of(levels.dtype), levels.tile.waves, gpu.name,
                            kFeedNames[static_cast<std::size_t>(levels.feed)]);
}

std::int32_t StepWriter::add(StepKind kind, StepUnit unit, std::string name, double busy_clk,
                             double latency_clk) {
  StepInstruction instruction;
  instruction.kind = kind;
  instruction.unit = unit;
  instruction.name = std::move(name);
  instruction.issue = gpu_.lanes_per_wave == 64 ? 4 : 1;
  instruction.busy = unit == StepUnit::none ? 0 : clk_of(busy_clk);
  instruction.latency = clk_of(latency_clk);
  instruction.movable = kind != StepKind::matrix && kind != StepKind::barrier;
  step_.instructions.push_back(std::move(instruction));
  return static_cast<std::int32_t>(step_.instructions.size()) - 1;
}

void StepWriter::need(std::int32_t from, std::int32_t to, std::int32_t turns, std::int32_t cycles) {
  step_.dependences.push_back({from, to, turns, cycles});
}

void StepWriter::need_all(const Ids& from, std::int32_t to, std::int32_t turns) {
  for (const std::int32_t id : from) {
    need(id, to, turns, step_.instructions[static_cast<std::size_t>(id)].latency);
  }
}

void StepWriter::follow_all(std::int32_t from, const Ids& to, std::int32_t turns) {
  for (const std::int32_t id : to) need(from, id, turns, 1);
}

void StepWriter::add_loads() {
  const WaveMoves& moves = levels_.moves;
  StepKind kind = StepKind::load;
  std::string_view verb = "load";
  double bytes = static_cast<double>(kBytesOfLane) * gpu_.lanes_per_wave;
  const auto step_bytes = [&](std::int32_t edge) {
    return static_cast<double>(edge) * levels_.tile.k * bytes_of(levels_.dtype);
  };
  if (levels_.feed == Feed::by_copies || levels_.feed == Feed::by_copy_engine) {
    kind = StepKind::load_lds;
    verb = "copy";
  }
  if (levels_.feed == Feed::through_cache) {
    kind = StepKind::prefetch;
    verb = "prefetch";
  }
  for (const auto& [matrix, count, edge] :
       {std::tuple{'A', moves.loads_a, levels_.tile.m}, std::tuple{'B', moves.loads_b, levels_.tile.n}}) {
    // One for the whole workgroup is shared out among those who stand for its waves; so are prefetches, which
    // L1 makes into one where waves ask for the same.
    const bool shared = levels_.feed == Feed::by_copy_engine || levels_.feed == Feed::through_cache;
    const double busy = shared ? step_bytes(edge) / step_.waves_per_simd / count / gpu_.cu_l2_bytes_per_clk
                               : port_busy(bytes);
    for (std::int32_t i = 0; i < count; ++i) {
      loads_.push_back(
          add(kind, StepUnit::memory, fmt::format("{} {} {}", verb, matrix, i), busy, memory_clk_ + busy));
    }
  }
}

void StepWriter::add_reads(std::int32_t piece, Ids& reads_a, Ids& reads_b) {
  if (levels_.feed == Feed::by_copy_engine) return;
  const bool cached = levels_.feed == Feed::through_cache;
  const std::int32_t depth = along_k_ * product_.instruction.k;
  const double one = static_cast<double>(kBytesOfLane) * gpu_.lanes_per_wave;
  const double block = static_cast<double>(kBlockRows) * kBlockRowBytes;
  const double busy = cached ? served_ * block / kL1BytesPerClkOfXe : lds_busy();
  const double latency = cached ? kL1ClkOfXe : gpu_.lanes_per_wave == 64 ? kLdsClkOfAmd : kLdsClkOfNvidia;
  for (const auto& [matrix, along, edge, reads] :
       {std::tuple{'A', product_.along_m, product_.instruction.m, &reads_a},
        std::tuple{'B', product_.along_n, product_.instruction.n, &reads_b}}) {
    const double bytes = static_cast<double>(along) * edge * depth * bytes_of(levels_.dtype);
    const auto count =
        static_cast<std::int32_t>(cached ? ceil_div(along * edge, kBlockRows) : std::ceil(bytes / one));
    for (std::int32_t i = 0; i < count; ++i) {
      reads->push_back(add(cached ? StepKind::load : StepKind::lds_read,
                           cached ? StepUnit::memory : StepUnit::lds,
                           fmt::format("read {} {}, piece {}", matrix, i, piece), busy, latency + busy));
    }
  }
}

// The reads that bring fragment `i` of `along`.
std::pair<std::int32_t, std::int32_t> bringing(std::int32_t i, std::int32_t along, std::size_t reads) {
  const auto count = static_cast<std::int32_t>(reads);
  return {i * count / along, ((i + 1) * count - 1) / along};
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
            add(StepKind::matrix, StepUnit::matrix,
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

// Of the product at a place of its piece: the reads of its fragments, `turns` ago.
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

// The first reads of the next turn, behind the barrier that lets them.
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

// Reads overwrite what the matrix instructions of an earlier piece read; and accumulators go on in the next
// turn.
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
    if (piece == 0 && reads_ahead()) --turns;  // read a turn before they are used
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
          StepDependence guard{users[at], (*reads)[static_cast<std::size_t>(r)], turns, 1};
          if (options_.as_machine_code) {
            guard.wait = StepWait::window;
            guard.cycles = kUsualWindow;
          }
          step_.dependences.push_back(guard);
        }
      }
    }
  }
}

void StepWriter::close_through_registers() {
  const auto add_writes = [&] {
    for (const std::int32_t load : loads_) {
      const std::string name = "write" + step_.instructions[static_cast<std::size_t>(load)].name.substr(
                                             std::string("load").size());
      const std::int32_t write = add(StepKind::lds_write, StepUnit::lds, name, lds_busy(), lds_busy());
      writes_.push_back(write);
      need(load, write, 0, step_.instructions[static_cast<std::size_t>(load)].latency);
      need(write, load, 1, step_.instructions[static_cast<std::size_t>(write)].busy);
    }
  };
  Ids reads;
  for (const auto* of : {&reads_a_, &reads_b_}) {
    for (const Ids& piece : *of) reads.insert(reads.end(), piece.begin(), piece.end());
  }
  std::int32_t all_read = -1;
  if (levels_.stages == 1) {
    all_read = add(StepKind::barrier, StepUnit::none, "barrier, all read", 0, 1);
    need_all(reads, all_read, 0);
  }
  add_writes();
  const std::int32_t all_written = add(StepKind::barrier, StepUnit::none, "barrier, all written", 0, 1);
  need_all(writes_, all_written, 0);
  follow_all(all_written, reads, 1);
  if (all_read >= 0) {
    follow_all(all_read, writes_, 0);
    need(all_read, all_written, 0, 1);
  } else {
    need_all(reads, all_written, 0);
    follow_all(all_written, writes_, 1);
  }
  read_barrier_ = all_read >= 0 ? all_read : all_written;
  last_barrier_ = all_written;
}

void StepWriter::close_by_copies() {
  const std::int32_t barrier = add(StepKind::barrier, StepUnit::none, "barrier", 0, 1);
  for (const auto* of : {&reads_a_, &reads_b_}) {
    for (const Ids& piece : *of) {
      need_all(piece, barrier, 0);
      follow_all(barrier, piece, 1);
    }
  }
  need_all(loads_, barrier, levels_.stages - 2);
  follow_all(barrier, loads_, 1);
  read_barrier_ = last_barrier_ = barrier;
}

// Copies tell matrix instructions through barriers in LDS that only they wait at, and are told so too.
void StepWriter::close_by_copy_engine() {
  for (const Ids& piece : products_) {
    for (const std::int32_t product : piece) {
      need_all(loads_, product, levels_.stages - 1);
      for (const std::int32_t load : loads_) {
        need(product, load, 1, step_.instructions[static_cast<std::size_t>(product)].latency);
      }
    }
  }
}

void StepWriter::close_through_cache() {
  for (const std::int32_t prefetch : loads_) {
    const StepInstruction& from = step_.instructions[static_cast<std::size_t>(prefetch)];
    const bool of_a = from.name.find(" A ") != std::string::npos;
    for (const Ids& piece : of_a ? reads_a_ : reads_b_) {
      for (const std::int32_t read : piece) need(prefetch, read, levels_.prefetch_distance, from.latency);
    }
  }
}

KStep StepWriter::write() {
  add_loads();
  for (std::int32_t piece = 0; piece < pieces_; ++piece) add_piece(piece);
  switch (levels_.feed) {
    case Feed::through_registers:
      close_through_registers();
      break;
    case Feed::by_copies:
      close_by_copies();
      break;
    case Feed::by_copy_engine:
      close_by_copy_engine();
      break;
    case Feed::through_cache:
      close_through_cache();
      break;
  }
  if (reads_ahead()) add_reads_ahead();
  guard_fragments();
  return std::move(step_);
}

}  // namespace

KStep k_step_of(const Gpu& gpu, const Levels& levels, const KStepOptions& options) {
  if (levels.waves.loop == TileLoop::attention) {
    throw UserError(
        "a block of attention has vector work between its products, for which no instructions are known "
        "here; "
        "only the K step of a matmul has an instruction schedule");
  }
  const std::int32_t count = levels.products.front().instructions();
  if (count > kMostStepInstructions) {
    throw UserError(
        fmt::format("{} matrix instructions a wave and K step are more than {}; use a smaller tile_k", count,
                    kMostStepInstructions));
  }
  return StepWriter(gpu, levels, options).write();
}

}  // namespace tritax
