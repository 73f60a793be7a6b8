// Common parts of the patterns of a layer of experts: buffers, tiles of the grouped products, and kernels.
//
// GPU r has `tokens` tokens of `hidden` elements and a share of the experts (model/parts/expert_routing.hpp).
// Expert e computes X_e·U_e (ffn columns, or twice as many with a gate) and then H_e·D_e of the first ffn
// columns. The activation in between costs nothing and is left out, and so are the weights of the choices:
// the result of a token is the plain sum over its experts.
//
//   tokens -> at owner -> H -> results -> back -> sums      rows of an expert are contiguous at its owner
//
// Runs follow each other without a barrier. No rank ends before the results of all peers have arrived, so all
// ranks have multiplied by then; and no rank sends a result before the token of this result has arrived.
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

// The two products of a layer: of the tokens, and of the results of the first product.
enum class ExpertProduct : std::uint8_t { up, down };

struct ExpertTile {
  Rect rect;  // rows at the owner; columns of the product
  int expert = 0;
  std::int32_t group = 0;  // tiles of the same rows have the same number
};

struct MoeDraft {
  // Adds buffers, inputs and expected results. Throws UserError for too large problems.
  MoeDraft(std::string_view pattern, const Moe& problem, const Machine& machine, const MoeKnobs& knobs);

  int ranks() const { return problem.routing.gpus; }
  bool sends() const { return ranks() > 1; }
  std::int16_t add(const char* name, DType dtype, std::int32_t rows, std::int64_t cols);
  void add_back();  // buffer of results that are sent before they are added

  std::vector<ExpertTile> tiles(int rank, ExpertProduct product) const;
  std::int32_t groups() const;                                             // of tiles: the most of any rank
  std::int32_t tiles_of_group() const;                                     // of the first product
  void multiply(int rank, ExpertProduct product, const ExpertTile& tile);  // and stores
  // Copies the rows of a finished tile to their sources.
  void send_back(int rank, const ExpertTile& tile);

  Kernel product_kernel(int rank, std::string_view name) const;
  void launch_product(int rank, ExpertProduct product);
  // Number of multiplying workgroups of a persistent kernel, beside `others`. Throws UserError if there is no
  // room.
  std::int32_t multiplying(std::int32_t others) const;

  Moe problem;
  const Machine& machine;
  MoeKnobs knobs;
  Routes routes;
  ScheduleBuilder builder;
  ExpertBuffers buffers;  // `cols` for both tokens and results
  std::int16_t up = -1, down = -1, h = -1;

 private:
  std::int32_t up_columns() const;
  Rect weights(int expert, ExpertProduct product) const;
};

}  // namespace tritax
