// The steps of a layer and their sums, as tables of fields for `tritax layer`.
#pragma once

#include <cstdint>
#include <string>

#include "model/core/fields.hpp"
#include "sim/study/layer.hpp"

namespace tritax {

// One product. The pointers must stay valid.
struct LayerStep {
  const Step* step = nullptr;
  const Problem* problem = nullptr;
  const StepAnswer* answer = nullptr;  // null: not searched
};
const Fields<LayerStep>& layer_step_fields();

// One layer of a kind, or the whole model.
struct NamedLayerSum {
  std::string name;
  std::int64_t layers = 1;
  LayerSum sum;
};
const Fields<NamedLayerSum>& layer_sum_fields();

}  // namespace tritax
