#include "model/schedule/reference.hpp"

#include <algorithm>
#include <utility>

#include "model/schedule/op_traits.hpp"

namespace tritax {

namespace {

std::uint64_t scrambled(std::uint64_t x) {  // SplitMix64
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

Region whole_of(const Schedule& schedule, std::int16_t buffer) {
  const Buffer& whole = schedule.buffers[static_cast<std::size_t>(buffer)];
  return {buffer, kEveryRank, {0, 0, whole.rows, whole.cols}};
}

// The first buffer of this name, or -1.
std::int16_t buffer_called(const Schedule& schedule, std::string_view name) {
  const auto at = std::find_if(schedule.buffers.begin(), schedule.buffers.end(),
                               [&](const Buffer& buffer) { return buffer.name == name; });
  return at == schedule.buffers.end() ? std::int16_t{-1}
                                      : static_cast<std::int16_t>(at - schedule.buffers.begin());
}

bool anywhere(const std::vector<bool>& ranks) {
  return std::find(ranks.begin(), ranks.end(), true) != ranks.end();
}

bool multiply(const Buffer& a, const Buffer& b, const Buffer& c, std::int32_t ranks) {
  const std::int32_t widest = c.cols / ranks + (c.cols % ranks != 0 ? 1 : 0);
  return a.rows == c.rows && a.cols == b.rows && b.cols >= widest && c.cols >= ranks;
}

// The products of expect_column_blocks.
void add_column_blocks(Schedule& schedule, std::int16_t a, std::int16_t b, std::int16_t c) {
  const Region product = whole_of(schedule, c);
  const std::int32_t share = product.rect.cols / schedule.ranks;
  const std::int32_t wider = product.rect.cols % schedule.ranks;
  std::int32_t begin = 0;
  for (std::int32_t rank = 0; rank < schedule.ranks; ++rank) {
    const std::int32_t cols = share + (rank < wider ? 1 : 0);
    ReferenceOp op{ReferenceKind::product, false, product, whole_of(schedule, a), whole_of(schedule, b)};
    op.to.rect = {0, begin, product.rect.rows, cols};
    op.a.rank = op.b.rank = rank;
    op.b.rect.cols = cols;
    schedule.reference.push_back(op);
    begin += cols;
  }
}

}  // namespace

std::vector<std::vector<bool>> written_buffers(const Schedule& schedule) {
  const std::vector<bool> nowhere(static_cast<std::size_t>(schedule.ranks), false);
  std::vector<std::vector<bool>> written(schedule.buffers.size(), nowhere);
  const auto add = [&](const Op& op) {
    for_each_write(op, [&](const Region& to, bool) {
      const bool known = to.buffer >= 0 && static_cast<std::size_t>(to.buffer) < written.size() &&
                         to.rank >= 0 && to.rank < schedule.ranks;
      if (known) written[static_cast<std::size_t>(to.buffer)][static_cast<std::size_t>(to.rank)] = true;
    });
  };
  for (const Op& op : schedule.ops) add(op);
  for (const Op& op : schedule.transfers) add(op);
  return written;
}

std::uint64_t seed_of(const Input& input, std::uint64_t seed, std::int32_t rank) {
  const auto group = static_cast<std::uint64_t>(input.group);
  const auto own = static_cast<std::uint64_t>(input.values == InputValues::own ? rank + 1 : 0);
  return scrambled(scrambled(seed ^ scrambled(group)) + own);
}

std::vector<Input> inputs_of(const Schedule& schedule) {
  if (!schedule.inputs.empty()) return schedule.inputs;
  const auto written = written_buffers(schedule);
  std::vector<Input> inputs;
  for (std::size_t buffer = 0; buffer < written.size(); ++buffer) {
    Region region = whole_of(schedule, static_cast<std::int16_t>(buffer));
    const auto add = [&] { inputs.push_back({region, static_cast<std::int32_t>(buffer), InputValues::own}); };
    if (!anywhere(written[buffer])) {
      add();
      continue;
    }
    for (region.rank = 0; region.rank < schedule.ranks; ++region.rank) {
      if (!written[buffer][static_cast<std::size_t>(region.rank)]) add();
    }
  }
  return inputs;
}

void subtract_inputs(const Schedule& schedule, std::int16_t buffer, std::int32_t rank,
                     std::vector<Rect>& rests) {
  for (const Input& input : schedule.inputs) {
    if (rests.empty()) return;
    if (input.region.buffer == buffer && is_on(input.region, rank)) subtract(rests, input.region.rect);
  }
}

std::vector<Region> operands_of(const ReferenceOp& op) {
  std::vector<Region> operands{op.a};
  if (has_b(op.kind)) operands.push_back(op.b);
  if (has_c(op.kind)) operands.push_back(op.c);
  if (op.kind == ReferenceKind::attention_backward) operands.push_back(op.d);
  if (op.add) operands.push_back(op.to);
  return operands;
}

std::vector<ExpectedPart> expected_on(const Schedule& schedule, std::int32_t rank) {
  std::vector<ExpectedPart> parts;
  for (std::size_t op = 0; op < schedule.reference.size(); ++op) {
    const Region& to = schedule.reference[op].to;
    if (!is_on(to, rank)) continue;
    std::vector<Rect> rests{to.rect};
    for (std::size_t later = op + 1; later < schedule.reference.size() && !rests.empty(); ++later) {
      const Region& over = schedule.reference[later].to;
      if (over.buffer == to.buffer && is_on(over, rank)) subtract(rests, over.rect);
    }
    for (const Rect& rest : rests) parts.push_back({op, rest});
  }
  return parts;
}

void expect_column_blocks(Schedule& schedule, std::int16_t a, std::int16_t b, std::int16_t c) {
  const auto inputs = static_cast<std::int32_t>(schedule.inputs.size());
  schedule.inputs.push_back({whole_of(schedule, a), inputs, InputValues::same});
  schedule.inputs.push_back({whole_of(schedule, b), inputs + 1, InputValues::own});
  add_column_blocks(schedule, a, b, c);
}

void infer_reference(Schedule& schedule) {
  const std::int16_t a = buffer_called(schedule, "A");
  const std::int16_t b = buffer_called(schedule, "B");
  const std::int32_t c = schedule.result_buffer;
  const bool known = c >= 0 && static_cast<std::size_t>(c) < schedule.buffers.size();
  if (a < 0 || b < 0 || !known || c == a || c == b) return;
  const auto buffer = [&](std::int32_t index) -> const Buffer& {
    return schedule.buffers[static_cast<std::size_t>(index)];
  };
  if (!multiply(buffer(a), buffer(b), buffer(c), schedule.ranks)) return;
  std::vector<Input> inputs = inputs_of(schedule);
  const auto of_all_ranks = [&](std::int16_t operand) {
    return std::find_if(inputs.begin(), inputs.end(), [&](const Input& input) {
      return input.region.buffer == operand && input.region.rank == kEveryRank;
    });
  };
  if (of_all_ranks(a) == inputs.end() || of_all_ranks(b) == inputs.end()) return;
  of_all_ranks(a)->values = InputValues::same;
  schedule.inputs = std::move(inputs);
  add_column_blocks(schedule, a, b, static_cast<std::int16_t>(c));
}

}  // namespace tritax
