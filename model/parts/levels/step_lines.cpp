#include "model/parts/levels/step_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/parts/kernels.hpp"

namespace tritax {

namespace {

constexpr std::int32_t kLdsClkOfAmd = 64;
constexpr std::int32_t kLdsClkOfNvidia = 23;
constexpr std::int32_t kL1ClkOfXe = 120;
constexpr double kL1BytesPerClkOfXe =
    512;  // load and store of an Xe-core, Intel Data Center GPU Max overview
constexpr std::int32_t kQueue = 8;

std::int32_t clk_of(double clk) { return std::max(1, static_cast<std::int32_t>(std::lround(clk))); }

}  // namespace

StepLines::StepLines(const Gpu& gpu, const Levels& levels, const KStepOptions& options)
    : gpu_(gpu), levels_(levels), options_(options) {
  const std::int32_t simds = std::max(1, gpu.simds_per_cu / levels.waves_in_group);
  step_.waves_per_simd = ceil_div(levels.waves.waves(), simds);
  served_ = std::min(gpu.simds_per_cu, levels.tile.waves);
  memory_clk_ =
      (options.memory_latency_ns > 0 ? options.memory_latency_ns : gpu.l2_latency_ns) * gpu.boost_clock_ghz;
  step_.queue[static_cast<std::size_t>(StepUnit::lds)] = kQueue;
  step_.queue[static_cast<std::size_t>(StepUnit::memory)] = kQueue;
  step_.barriers_are_walls = options.as_machine_code;
  step_.flops = levels.flops();
  step_.title = fmt::format("K step of {}x{}x{} {} by {} waves on {}, {}", levels.tile.m, levels.tile.n,
                            levels.tile.k, name_of(levels.dtype), levels.tile.waves, gpu.name,
                            kFeedNames[static_cast<std::size_t>(levels.feed)]);
}

std::int32_t StepLines::add(InstructionKind kind, StepUnit unit, std::string name, double busy_clk,
                            double latency_clk) {
  StepInstruction instruction;
  instruction.kind = kind;
  instruction.unit = unit;
  instruction.name = std::move(name);
  instruction.issue = gpu_.lanes_per_wave == 64 ? 4 : 1;
  instruction.busy = unit == StepUnit::none ? 0 : clk_of(busy_clk);
  instruction.latency = clk_of(latency_clk);
  instruction.movable = kind != InstructionKind::matrix && kind != InstructionKind::barrier;
  step_.instructions.push_back(std::move(instruction));
  return static_cast<std::int32_t>(step_.instructions.size()) - 1;
}

void StepLines::need(std::int32_t from, std::int32_t to, std::int32_t turns, std::int32_t cycles) {
  step_.dependences.push_back({from, to, turns, cycles});
}

void StepLines::need_all(const Ids& from, std::int32_t to, std::int32_t turns) {
  for (const std::int32_t id : from) {
    need(id, to, turns, step_.instructions[static_cast<std::size_t>(id)].latency);
  }
}

void StepLines::follow_all(std::int32_t from, const Ids& to, std::int32_t turns) {
  for (const std::int32_t id : to) need(from, id, turns, 1);
}

void StepLines::add_loads(char a, std::int32_t a_edge, char b, std::int32_t b_edge) {
  const WaveMoves& moves = levels_.moves;
  InstructionKind kind = InstructionKind::load;
  std::string_view verb = "load";
  const double bytes = static_cast<double>(kBytesOfLane) * gpu_.lanes_per_wave;
  if (levels_.feed == Feed::by_copies || levels_.feed == Feed::by_copy_engine) {
    kind = InstructionKind::load_lds;
    verb = "copy";
  }
  if (levels_.feed == Feed::through_cache) {
    kind = InstructionKind::prefetch;
    verb = "prefetch";
  }
  // One instruction for the whole workgroup is divided among the instructions of its waves. The same holds
  // for prefetches, because L1 merges equal requests of several waves.
  const bool shared = levels_.feed == Feed::by_copy_engine || levels_.feed == Feed::through_cache;
  const auto add_operand = [&](char name, std::int32_t count, std::int32_t edge, Ids& loads) {
    const double operand = static_cast<double>(edge) * levels_.tile.k * bytes_of(levels_.dtype);
    const double busy =
        shared ? operand / step_.waves_per_simd / count / gpu_.cu_l2_bytes_per_clk : port_busy(bytes);
    for (std::int32_t i = 0; i < count; ++i) {
      loads.push_back(
          add(kind, StepUnit::memory, fmt::format("{} {} {}", verb, name, i), busy, memory_clk_ + busy));
    }
  };
  add_operand(a, moves.loads_a, a_edge, loads_a_);
  add_operand(b, moves.loads_b, b_edge, loads_b_);
}

double StepLines::read_bytes() const {
  return levels_.feed == Feed::through_cache ? static_cast<double>(kBlockRows) * kBlockRowBytes
                                             : static_cast<double>(kBytesOfLane) * gpu_.lanes_per_wave;
}

std::int32_t StepLines::add_read(std::string name) {
  if (levels_.feed == Feed::through_cache) {
    const double busy = served_ * read_bytes() / kL1BytesPerClkOfXe;
    return add(InstructionKind::load, StepUnit::memory, std::move(name), busy, kL1ClkOfXe + busy);
  }
  const double latency = gpu_.lanes_per_wave == 64 ? kLdsClkOfAmd : kLdsClkOfNvidia;
  return add(InstructionKind::lds_read, StepUnit::lds, std::move(name), lds_busy(), latency + lds_busy());
}

void StepLines::guard(std::int32_t user, std::int32_t read, std::int32_t turns) {
  StepDependence guard{user, read, turns, 1};
  if (options_.as_machine_code) {
    guard.wait = StepWait::window;
    guard.cycles = kUsualWindow;
  }
  step_.dependences.push_back(guard);
}

void StepLines::close_through_registers() {
  Ids loads = loads_a_;
  loads.insert(loads.end(), loads_b_.begin(), loads_b_.end());
  const auto add_writes = [&] {
    for (const std::int32_t load : loads) {
      const std::string name = "write" + step_.instructions[static_cast<std::size_t>(load)].name.substr(
                                             std::string("load").size());
      const std::int32_t write = add(InstructionKind::lds_write, StepUnit::lds, name, lds_busy(), lds_busy());
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
    all_read = add(InstructionKind::barrier, StepUnit::none, "barrier, all read", 0, 1);
    need_all(reads, all_read, 0);
  }
  add_writes();
  const std::int32_t all_written =
      add(InstructionKind::barrier, StepUnit::none, "barrier, all written", 0, 1);
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

void StepLines::close_by_copies() {
  const std::int32_t barrier = add(InstructionKind::barrier, StepUnit::none, "barrier", 0, 1);
  for (const auto* of : {&reads_a_, &reads_b_}) {
    for (const Ids& piece : *of) {
      need_all(piece, barrier, 0);
      follow_all(barrier, piece, 1);
    }
  }
  for (const Ids* loads : {&loads_a_, &loads_b_}) {
    need_all(*loads, barrier, levels_.stages - 2);
    follow_all(barrier, *loads, 1);
  }
  read_barrier_ = last_barrier_ = barrier;
}

void StepLines::close_by_copy_engine(const Ids& loads, const Ids& products) {
  for (const std::int32_t product : products) {
    need_all(loads, product, levels_.stages - 1);
    for (const std::int32_t load : loads) need(product, load, 1, latency_of(product));
  }
}

void StepLines::close_through_cache(const Ids& prefetches, const std::vector<Ids>& reads) {
  for (const std::int32_t prefetch : prefetches) {
    for (const Ids& piece : reads) {
      for (const std::int32_t read : piece)
        need(prefetch, read, levels_.prefetch_distance, latency_of(prefetch));
    }
  }
}

}  // namespace tritax
