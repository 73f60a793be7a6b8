// How a product or a collective of a real run looks like a workload: a library call in a trace, alone or
// directly beside a product (model/imports/trace.hpp). Sizes in a trace are per GPU; a form says which fields
// of its workload are of all GPUs together.
#pragma once

#include <cstdint>

namespace tritax {

enum class TracedCollective : std::uint8_t {
  none,
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast
};

enum class BesideProduct : std::uint8_t {
  alone,   // the collective, or the product
  behind,  // the collective sends the result of the product
  before,  // the product multiplies the result of the collective
};

struct TracedForm {
  TracedCollective collective = TracedCollective::none;
  BesideProduct beside = BesideProduct::alone;
  // For products: these fields are a GPU's value times the number of GPUs.
  bool rows_of_all = false;
  bool columns_of_all = false;
  bool depth_of_all = false;
};

}  // namespace tritax
