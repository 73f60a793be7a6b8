// What the patterns of a layer of experts share: buffers, tiles of the grouped products, and kernels.
//
// GPU r has `tokens` tokens of `hidden` elements and a share of the experts (model/parts/expert_routing.hpp).
// Expert e computes X_e·U_e (ffn columns, or twice as many where a gate is computed with them) and then
// H_e·D_e of the first ffn columns; what lies between, an activation, costs nothing here and is left out, as
// are the weights of the choices: a token's result is the plain sum of its experts'.
//
//   tokens -> at owner -> H -> results -> back -> sums      rows of an expert are contiguous at its owner
//
// Runs follow each other without a barrier: no rank ends before the results of all peers have come, so all
// have multiplied by then; and nobody sends a result before the token it belongs to has come.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "model/parts/expert_moves.hpp"

namespace tritax {

struct Moe {
  ExpertRouting routing;
  std::int64_t hidden = 1;
  std::int64_t ffn = 1;
  bool gated = true;
  DType dtype = DType::bf16;
};
Moe moe_of(const Problem& problem);

struct MoeKnobs : GemmKnobs {
  bool pull = false;
};
MoeKnobs moe_knobs_of(const Values& values);

// The products of one layer: of tokens, or of what has come of those.
enum class ExpertProduct : std::uint8_t { up, down };

struct ExpertTile {
  Rect rect;  // rows at the owner; columns of the product
  int expert = 0;
  std::int32_t group = 0;  // tiles of the same rows have the same number
};

struct MoeDraft {
  // Adds buffers, inputs and what must come out. Throws UserError for what is too large.
  MoeDraft(std::string_view pattern, const Moe& problem, const Machine& machine, const MoeKnobs& knobs);

  int ranks() const { return problem.routing.gpus; }
  bool sends() const { return ranks() > 1; }
  std::int16_t add(const char* name, DType dtype, std::int32_t rows, std::int64_t cols);
  void add_back();  // of results that are sent before they are added

  std::vector<ExpertTile> tiles(int rank, ExpertProduct product) const;
  std::int32_t groups() const;                                             // of tiles, the most of a rank
  std::int32_t tiles_of_group() const;                                     // of the first product
  void multiply(int rank, ExpertProduct product, const ExpertTile& tile);  // and store
  // Copies the pieces of a finished tile to their sources.
  void send_back(int rank, const ExpertTile& tile);

  Kernel product_kernel(int rank, std::string_view name) const;
  void launch_product(int rank, ExpertProduct product);
  // Workgroups of a persistent kernel that multiply, beside `others`. Throws UserError if there is no room.
  std::int32_t multiplying(std::int32_t others) const;

  Moe problem;
  const Machine& machine;
  MoeKnobs knobs;
  Routes routes;
  ScheduleBuilder builder;
  ExpertBuffers buffers;  // `cols` of tokens and of results alike
  std::int16_t up = -1, down = -1, h = -1;

 private:
  std::int32_t up_columns() const;
  Rect weights(int expert, ExpertProduct product) const;
};

}  // namespace tritax
