// Dispatch or combine alone, for a layer of experts that GPUs share.
//
// Dispatch: every token goes once to each GPU that has experts of its choice. Combine: every token gets the
// sum of one row from each of these GPUs, as after a sum over the experts of a GPU. The routing is known
// beforehand; the exchange of token counts is left out.
#pragma once

#include "model/machine/machine.hpp"
#include "model/parts/expert_routing.hpp"
#include "model/parts/gemm_knobs.hpp"
#include "model/schedule/builder.hpp"

namespace tritax {

enum class ExpertStep : std::uint8_t { dispatch, combine };
inline constexpr std::array<std::string_view, 2> kExpertStepNames{"dispatch", "combine"};

struct ExpertExchange {
  ExpertRouting routing;
  ExpertStep step = ExpertStep::dispatch;
  std::int64_t hidden = 1;
  DType dtype = DType::bf16;
};
ExpertExchange expert_exchange_of(const Problem& problem);

struct ExpertKnobs : GemmKnobs {
  bool pull = false;
  bool by_node = false;
  ServesPeers serves = ServesPeers::together;  // of rows that are added up
};
ExpertKnobs expert_knobs_of(const Values& values);

Schedule build_expert_library(const ExpertExchange& problem, const Machine& machine,
                              const ExpertKnobs& knobs);
Schedule build_expert_direct(const ExpertExchange& problem, const Machine& machine, const ExpertKnobs& knobs);

}  // namespace tritax
