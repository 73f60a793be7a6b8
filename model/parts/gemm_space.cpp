#include "model/parts/gemm_space.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "model/core/error.hpp"
#include "model/parts/gemm_question.hpp"
#include "model/parts/kernels.hpp"
#include "model/schedule/shader_engines.hpp"

namespace tritax {

namespace {

constexpr std::int32_t kSmallestPiece = 32;
// Values that are crossed with the tiles at first, and values between them, which a search tries later.
constexpr std::array<std::int32_t, 9> kCommCus{8, 16, 24, 32, 40, 48, 64, 96, 128};
constexpr std::array<std::int32_t, 9> kMoreCommCus{4, 12, 20, 28, 36, 56, 72, 80, 112};
constexpr std::array<std::int32_t, 6> kGroups{6, 1, 2, 4, 8, 16};  // 6 is the default of ROCm/iris
constexpr std::array<std::int32_t, 4> kChunks{2, 4, 8, 16};        // 2 is the default of ROCm/aiter

// The communication tile as a part of the GEMM tile: 1/rows of its height, 1/cols of its width. A divisor of
// 0 stands for 1/2: twice as high, or as wide.
struct CommPiece {
  std::int32_t rows = 1;
  std::int32_t cols = 1;
};
// Neighbours in this list have similar shapes.
constexpr std::array<CommPiece, 20> kPieces{{{8, 4}, {4, 4}, {2, 4}, {1, 4}, {0, 4}, {8, 1}, {4, 1},
                                             {2, 1}, {1, 1}, {1, 2}, {2, 2}, {4, 2}, {8, 2}, {0, 2},
                                             {0, 1}, {0, 0}, {1, 0}, {2, 0}, {4, 0}, {8, 0}}};

std::int64_t piece_of(std::int64_t side, std::int32_t divisor) {
  return divisor == 0 ? 2 * side : side / divisor;
}

// Workgroups of the two roles; 0 where the pattern does not have the role.
struct CuSplit {
  std::int32_t gemm_cus = 0;
  std::int32_t comm_cus = 0;
  friend bool operator==(const CuSplit&, const CuSplit&) = default;
};

CuSplit pinned_split(const GemmQuestion& question) {
  const std::int32_t cus = question.machine.gpu.cu_count();
  const auto gemm_pin = question.pin("gemm_cus");
  const auto comm_pin = question.pin("comm_cus");
  if (question.pattern.roles == Roles::in_turn) {
    return {question.pattern.uses("gemm_cus") ? gemm_pin.value_or(cus) : 0,
            question.pattern.uses("comm_cus") ? comm_pin.value_or(cus) : 0};
  }
  const std::int32_t comm = comm_pin ? *comm_pin : cus - *gemm_pin;
  const std::int32_t gemm = gemm_pin ? *gemm_pin : cus - comm;
  if (gemm < 1 || comm < 1 || gemm + comm > cus) {
    throw UserError("gemm_cus, comm_cus: the split " + std::to_string(gemm) + " + " + std::to_string(comm) +
                    " is not possible; both must be at least 1 and together at most " + std::to_string(cus));
  }
  return {gemm, comm};
}

// With two kernels and one side of the split given, workgroups of the second kernel may wait for a compute
// unit. Returns the split with the same given side where no workgroup waits; none if it equals `all`.
std::optional<CuSplit> split_beside(const GemmQuestion& question, const CuSplit& all, bool comm_is_given) {
  if (question.pattern.roles != Roles::in_two_kernels) return std::nullopt;
  const std::int32_t given = comm_is_given ? all.comm_cus : all.gemm_cus;
  const std::int32_t rest = comm_is_given ? all.gemm_cus : all.comm_cus;
  const std::int32_t beside = workgroups_beside(question.machine.gpu, given);
  if (beside < 1 || beside >= rest) return std::nullopt;
  return comm_is_given ? CuSplit{beside, given} : CuSplit{given, beside};
}

// Splits by number of communication units, ascending; the split to start with, and the number of splits to
// try at first.
struct Splits {
  std::vector<CuSplit> all;
  CuSplit usual;
  std::vector<CuSplit> later;
};

Splits free_splits_side_by_side(const GemmQuestion& question) {
  const std::int32_t cus = question.machine.gpu.cu_count();
  const std::int32_t usual = default_comm_cus(cus);
  Splits splits;
  splits.usual = {cus - usual, usual};
  if (const auto beside = split_beside(question, splits.usual, true)) splits.usual = *beside;
  std::vector<std::int32_t> comm_cus(kCommCus.begin(), kCommCus.end());
  std::vector<std::int32_t> later(kMoreCommCus.begin(), kMoreCommCus.end());
  add_unique(comm_cus, usual);
  for (const std::int32_t comm : later) add_unique(comm_cus, comm);
  std::sort(comm_cus.begin(), comm_cus.end());
  for (const std::int32_t comm : comm_cus) {
    if (comm != usual && 2 * comm > cus) continue;
    const CuSplit all{cus - comm, comm};
    std::vector<CuSplit> both;
    if (const auto beside = split_beside(question, all, true)) both.push_back(*beside);
    both.push_back(all);
    const bool waits = comm != usual && std::find(later.begin(), later.end(), comm) != later.end();
    splits.all.insert(splits.all.end(), both.begin(), both.end());
    if (waits) splits.later.insert(splits.later.end(), both.begin(), both.end());
  }
  return splits;
}

Splits splits_to_try(const GemmQuestion& question) {
  const bool gemm = question.pattern.uses("gemm_cus");
  const bool comm = question.pattern.uses("comm_cus");
  const bool side_by_side = question.pattern.roles != Roles::in_turn;
  const auto gemm_pin = question.pin("gemm_cus");
  const auto comm_pin = question.pin("comm_cus");
  const std::int32_t cus = question.machine.gpu.cu_count();
  Splits splits;
  if (question.gpus == 1 && comm) {  // no rank communicates
    splits.usual = {gemm ? gemm_pin.value_or(cus) : 0, comm_pin.value_or(0)};
  } else if ((gemm && gemm_pin) || (comm && comm_pin)) {
    splits.usual = pinned_split(question);
    const bool both = gemm_pin && comm_pin;
    if (side_by_side && !both) {
      if (const auto beside = split_beside(question, splits.usual, comm_pin.has_value())) {
        splits.all.push_back(*beside);
      }
    }
  } else if (side_by_side) {
    return free_splits_side_by_side(question);
  } else {
    splits.usual = {gemm ? cus : 0, comm ? cus : 0};
    for (const std::int32_t units : kCommCus) {
      if (comm && units >= 32 && units < cus) splits.all.push_back({splits.usual.gemm_cus, units});
    }
  }
  splits.all.push_back(splits.usual);
  return splits;
}

// Axis of the split into computing and communicating compute units.
Axis split_axis(const GemmQuestion& question) {
  const Splits splits = splits_to_try(question);
  Axis axis;
  axis.name = "split";
  axis.near = Axis::Near::next;
  for (const CuSplit& split : splits.all) {
    if (std::find(splits.later.begin(), splits.later.end(), split) == splits.later.end()) {
      axis.coarse.push_back(axis.values.size());
    }
    if (split.gemm_cus == splits.usual.gemm_cus && split.comm_cus == splits.usual.comm_cus) {
      axis.start = axis.values.size();
    }
    axis.values.push_back({{split.gemm_cus, split.comm_cus}, 0, [split](Values& knobs) {
                             knobs.assume("gemm_cus", split.gemm_cus);
                             knobs.assume("comm_cus", split.comm_cus);
                             return true;
                           }});
  }
  return axis;
}

// Eighths of the allowed workgroups that multiply: fewer workgroups disturb each other less at the memory,
// and leave more power to each.
Axis share_axis(const GemmQuestion& question) {
  Axis axis;
  axis.name = "share";
  axis.relative = true;
  axis.near = Axis::Near::next;
  const bool fixed = !question.pattern.uses("gemm_cus") || question.pin("gemm_cus");
  for (std::int32_t eighths = 8; eighths >= (fixed ? 8 : 1); --eighths) {
    axis.values.push_back({{eighths}, 0, [eighths](Values& knobs) {
                             if (eighths == 8) return true;
                             knobs.assume("gemm_cus", knobs["gemm_cus"] * eighths / 8);
                             return knobs["gemm_cus"] > 0;
                           }});
  }
  return axis;
}

// Pieces of the GEMM tile that are sent as one. The whole tile, the default, comes first.
Axis piece_axis(const GemmQuestion& question) {
  Axis axis;
  axis.name = "piece";
  axis.relative = true;
  const bool pinned = question.pin("comm_tile_m") || question.pin("comm_tile_n");
  const bool fixed = !question.pattern.uses("comm_tile") || pinned || question.gpus == 1;
  axis.near = Axis::Near::next;
  for (const CommPiece& piece : kPieces) {
    const bool whole = piece.rows == 1 && piece.cols == 1;
    if (fixed && !whole) continue;
    if (whole) axis.start = axis.values.size();
    axis.values.push_back({{piece.rows, piece.cols}, 0, [piece, whole](Values& knobs) {
                             if (whole) return true;
                             const std::int64_t m = piece_of(knobs["tile_m"], piece.rows);
                             const std::int64_t n = piece_of(knobs["tile_n"], piece.cols);
                             knobs.assume("comm_tile_m", m);
                             knobs.assume("comm_tile_n", n);
                             const auto is_piece = [](std::int64_t side, std::int64_t of_tile) {
                               return side >= std::min<std::int64_t>(of_tile, kSmallestPiece) &&
                                      side % kTileStep == 0 && side <= kMaxCommTile;
                             };
                             return is_piece(m, knobs["tile_m"]) && is_piece(n, knobs["tile_n"]);
                           }});
  }
  return axis;
}

std::vector<std::int64_t> groups_to_try(const GemmQuestion& question) {
  if (!question.pattern.uses("group_m") || question.pin("group_m")) return {question.base.group_m};
  return {kGroups.begin(), kGroups.end()};
}

std::vector<std::int64_t> remaps_to_try(const GemmQuestion& question) {
  if (!question.pattern.uses("xcd_remap") || question.pin("xcd_remap")) return {question.base.xcd_remap};
  if (question.pin("xcd_chunk").value_or(0) > 0) return {1};
  if (question.machine.gpu.xcds == 1) return {0};  // the remap is the identity with one die
  return {1, 0};
}

// Axis of chunks that dies get in turn instead of their whole share. Its effect is small, so it is tried at
// the end.
Axis chunk_axis(const GemmQuestion& question) {
  std::vector<std::int64_t> chunks{question.base.xcd_chunk};
  if (question.pattern.uses("xcd_chunk") && !question.pin("xcd_chunk") && question.base.xcd_remap &&
      question.machine.gpu.xcds > 1) {
    chunks.insert(chunks.end(), kChunks.begin(), kChunks.end());
  }
  Axis axis = column_axis("xcd_chunk", chunks);
  axis.near = Axis::Near::none;
  return axis;
}

// The first order uses all links of a mesh at once, and is tried with every tile and split.
std::vector<std::int64_t> peer_orders_to_try(const GemmQuestion& question) {
  if (!question.pattern.uses("peer_order") || question.gpus == 1 || question.pin("peer_order")) {
    return {static_cast<std::int64_t>(question.base.peer_order)};
  }
  return {static_cast<std::int64_t>(PeerOrder::staggered), static_cast<std::int64_t>(PeerOrder::fixed),
          static_cast<std::int64_t>(PeerOrder::rotated)};
}

std::vector<std::int64_t> launches_to_try(const GemmQuestion& question) {
  if (!question.pattern.uses("launch") || question.pin("launch")) {
    return {static_cast<std::int64_t>(question.base.launch)};
  }
  return {static_cast<std::int64_t>(LaunchMode::stream), static_cast<std::int64_t>(LaunchMode::graph)};
}

// The default comes first. Locks have no axis: the cost of compare-and-swaps is not modelled (ROCm/iris PR
// 215: 2.5 times), and no other lock gains.
std::vector<std::int64_t> pipelines_to_try(const GemmQuestion& question) {
  std::vector<std::int64_t> values{static_cast<std::int64_t>(question.base.pipeline)};
  if (!question.pattern.uses("pipeline") || question.pin("pipeline")) return values;
  for (std::size_t i = 0; i < kFreePipelines; ++i) add_unique(values, static_cast<std::int64_t>(i));
  return values;
}

GemmKnobs pinned_base(const Machine& machine, DType dtype, const Values& table, const Values& pins) {
  Values base = table;
  assume(base, default_gemm_knobs(machine, dtype));
  GemmKnobs knobs = gemm_knobs_of(base.with(pins));
  check(knobs, machine.gpu);
  knobs.gemm_cus = knobs.comm_cus = 0;  // splits set them
  return knobs;
}

}  // namespace

KnobSpace gemm_space(const Pattern& pattern, const GemmShape& gemm, int gpus, const Machine& machine,
                     const Values& table, const Values& pins) {
  // Checked even if the pattern does not use them: a pin that no machine of this kind could hold is a
  // mistake.
  for (const char* knob : {"gemm_cus", "comm_cus"}) {
    if (pins.has(knob) && pins.given(knob)) check_cus(pins[knob], knob, machine.gpu);
  }
  const GemmQuestion question{pattern, gemm, gpus, machine, pinned_base(machine, gemm.dtype, table, pins),
                              pins};
  KnobSpace space;
  space.base = table;
  assume(space.base, question.base);
  space.axes.push_back(column_axis("group_m", groups_to_try(question)));
  space.axes.back().travels = space.axes.back().values.size() > 1;
  space.axes.push_back(column_axis("xcd_remap", remaps_to_try(question)));
  space.axes.back().travels = space.axes.back().values.size() > 1;
  if (table.has("xcd_chunk")) space.axes.push_back(chunk_axis(question));
  space.axes.push_back(piece_axis(question));
  if (table.has("peer_order")) space.axes.push_back(column_axis("peer_order", peer_orders_to_try(question)));
  space.axes.push_back(column_axis("launch", launches_to_try(question)));
  space.axes.push_back(column_axis("pipeline", pipelines_to_try(question)));
  space.axes.push_back(tile_axis(question));
  if (table.has("gemm_cus")) {
    space.axes.push_back(split_axis(question));
    space.axes.push_back(share_axis(question));
  }
  // Group heights with the same order of tiles become one value: no height exceeds the grid, and a grid of
  // one column has one order. Without a remap there are no chunks.
  const bool varies = space.axes.front().values.size() > 1;
  const bool pinned = question.pin("group_m").has_value();
  space.settle = [gemm, varies, pinned](Values& knobs) {
    if (knobs.get_or("xcd_remap", 1) == 0 && knobs.has("xcd_chunk")) knobs.assume("xcd_chunk", 0);
    if (pinned) return;
    const std::int64_t tile_m = knobs["tile_m"];
    const std::int64_t rows = (gemm.m + tile_m - 1) / tile_m;
    knobs.assume("group_m", varies && gemm.n <= knobs["tile_n"] ? 1 : std::min(knobs["group_m"], rows));
  };
  return space;
}

}  // namespace tritax
