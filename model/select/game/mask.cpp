#include "model/select/game/mask.hpp"

#include <algorithm>
#include <array>

#include "model/schedule/op_traits.hpp"

namespace tritax {

namespace {

bool meet(const Region& a, const Region& b) {
  return a.buffer == b.buffer && a.rank == b.rank && overlap(a.rect, b.rect);
}

// Whether `writer` writes data that `reader` reads.
bool writes_what_is_read(const Op& writer, const Op& reader, std::int32_t own_rank) {
  bool found = false;
  for_each_write(writer, [&](const Region& written, bool) {
    for_each_read(reader, own_rank, [&](const Region& read) { found = found || meet(written, read); });
  });
  return found;
}

bool share_data(const Op& first, const Op& second, std::int32_t own_rank) {
  bool found = writes_what_is_read(first, second, own_rank) || writes_what_is_read(second, first, own_rank);
  for_each_write(first, [&](const Region& one, bool) {
    for_each_write(second, [&](const Region& other, bool) { found = found || meet(one, other); });
  });
  return found;
}

bool same_tile(const Rect& a, const Rect& b) {
  return a.row == b.row && a.col == b.col && a.rows == b.rows && a.cols == b.cols;
}

// Whether two consecutive uses of the accumulator commute.
bool commute(const Op& first, const Op& second) {
  const AccumulatorUse use = traits_of(first.kind).accumulator;
  if (use != traits_of(second.kind).accumulator) return false;
  switch (use) {
    case AccumulatorUse::none:
    case AccumulatorUse::written_out:
      return true;
    case AccumulatorUse::replaced:
      return false;
    case AccumulatorUse::multiplied_into:
      return first.kind == second.kind && same_tile(first.rect, second.rect);
    case AccumulatorUse::added_to:
      return first.kind == second.kind;
  }
  return false;
}

bool is_sync(const Op& op) { return op.kind == OpKind::signal || op.kind == OpKind::wait; }
bool is_wall(const Op& op) { return op.kind == OpKind::barrier || op.kind == OpKind::claim; }

std::vector<std::uint32_t> step_starts(std::span<const Op> program) {
  std::vector<std::uint32_t> starts;
  for (std::uint32_t i = 0; i < program.size(); ++i) {
    if (i == 0 || (program[i].kind != OpKind::signal && program[i - 1].kind != OpKind::wait)) {
      starts.push_back(i);
    }
  }
  return starts;
}

bool same_source(const Op& a, const Op& b) {
  return a.src_rank == b.src_rank && a.src_buffer == b.src_buffer && a.src_row == b.src_row &&
         a.src_col == b.src_col;
}

std::vector<std::uint32_t> tile_starts(std::span<const Op> program) {
  const std::vector<char> anew = begins_anew(program);
  std::vector<std::uint32_t> starts;
  const Op* copied = nullptr;  // last in the tile
  bool used = false;           // the tile has something besides waits
  for (std::uint32_t i = 0; i < program.size(); ++i) {
    const Op& op = program[i];
    bool starts_here = i == 0 || is_wall(op) || is_wall(program[i - 1]);
    if (!starts_here && anew[i] != 0 && used) {
      starts_here = op.kind == OpKind::wait || fills_accumulator(op.kind) ||
                    (op.kind == OpKind::copy && copied != nullptr && !same_source(op, *copied));
    }
    if (starts_here) {
      starts.push_back(i);
      copied = nullptr;
      used = false;
    }
    used = used || op.kind != OpKind::wait;
    if (op.kind == OpKind::copy) copied = &op;
  }
  return starts;
}

}  // namespace

Passing may_pass(const Op& first, const Op& second, std::int32_t own_rank, bool whole) {
  if (is_wall(first) || is_wall(second)) return Passing::refused;
  const bool both_use = traits_of(first.kind).accumulator != AccumulatorUse::none &&
                        traits_of(second.kind).accumulator != AccumulatorUse::none;
  if (!whole && both_use && !commute(first, second)) return Passing::refused;
  if (share_data(first, second, own_rank)) return Passing::refused;
  return is_sync(first) || is_sync(second) ? Passing::ask : Passing::free;
}

std::vector<char> begins_anew(std::span<const Op> program) {
  std::vector<char> fills_anew(program.size() + 1, 1);  // the next use of the accumulator replaces it,
  std::vector<char> written(program.size() + 1, 1);     // and all earlier contents are written out
  bool empty = true;
  for (std::size_t i = 0; i < program.size(); ++i) {
    const AccumulatorUse use = traits_of(program[i].kind).accumulator;
    written[i + 1] = use == AccumulatorUse::none ? written[i] : use == AccumulatorUse::written_out;
    fills_anew[i] = use == AccumulatorUse::replaced ||
                    (use == AccumulatorUse::multiplied_into && (empty || written[i] != 0));
    if (use != AccumulatorUse::none) empty = false;
  }
  for (std::size_t i = program.size(); i-- > 0;) {
    if (traits_of(program[i].kind).accumulator == AccumulatorUse::none) fills_anew[i] = fills_anew[i + 1];
  }
  for (std::size_t i = 0; i < fills_anew.size(); ++i) fills_anew[i] = fills_anew[i] && written[i];
  return fills_anew;
}

std::vector<std::uint32_t> unit_starts(std::span<const Op> program, Grain grain) {
  switch (grain) {
    case Grain::step:
      return step_starts(program);
    case Grain::tile:
      return tile_starts(program);
    case Grain::operation:
      break;
  }
  std::vector<std::uint32_t> starts(program.size());
  for (std::uint32_t i = 0; i < program.size(); ++i) starts[i] = i;
  return starts;
}

}  // namespace tritax
