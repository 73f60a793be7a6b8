#include "model/parts/staged_sums.hpp"

#include "model/parts/library_collectives.hpp"

namespace tritax {

Spec staged_knob() {
  Spec spec;
  spec.name = kStagedKnob;
  spec.help =
      "copy the input into a symmetric buffer before the kernel and the sum out of it behind, in one graph, "
      "as vLLM does with PyTorch's kernels";
  spec.kind = ValueKind::boolean;
  spec.shown = "staged";
  spec.not_shown = 0;
  spec.value_if_column_missing = 0;
  return spec;
}

void stage(SumDraft& draft) {
  const auto rows = static_cast<std::int32_t>(draft.problem.m);
  const auto cols = static_cast<std::int32_t>(draft.problem.n);
  ScheduleBuilder& builder = draft.builder;
  draft.knobs.launch = LaunchMode::graph;
  draft.own = draft.partial;
  draft.partial = builder.buffer({"symmetric", draft.problem.dtype, rows, cols, draft.tile.m, draft.tile.n});
  draft.out = builder.buffer({"out", draft.problem.dtype, rows, cols, draft.tile.m, draft.tile.n});
  builder.result(draft.out);
  for (int rank = 0; rank < draft.ranks(); ++rank)
    builder.expect_copy(builder.whole(draft.out, rank), builder.whole(draft.c, rank), false);
}

Graph staged_launches(SumDraft& draft, int rank, std::int32_t kernel) {
  if (draft.own < 0) return {{kernel, 0}};
  const std::vector<Rect> blocks = blocks_of(draft.problem);
  const auto copy = [&](std::int16_t from, std::int16_t to) {
    return add_block_copy(draft.builder, draft.machine, {rank, from, to, blocks, blocks, true});
  };
  return {{copy(draft.own, draft.partial), 0}, {kernel, 0}, {copy(draft.c, draft.out), 0}};
}

}  // namespace tritax
