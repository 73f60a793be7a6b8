// Which workload a product or a collective of a real run is: what a library was called for, alone or right
// beside a product, as it stands in traces (model/imports/trace.hpp). The sizes in a trace are those of one
// GPU; a form says which fields of its workload are of all GPUs together.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "model/workload/workload.hpp"

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
  behind,  // the collective sends what the product has made
  before,  // the product multiplies what the collective has brought
};

struct TracedForm {
  TracedCollective collective = TracedCollective::none;
  BesideProduct beside = BesideProduct::alone;
  const Workload* workload = nullptr;
  // Of products: these fields are a GPU's times the number of GPUs.
  bool rows_of_all = false;
  bool columns_of_all = false;
  bool depth_of_all = false;
};

std::span<const TracedForm> traced_forms();

// Null if no workload is that.
const TracedForm* find_traced_form(TracedCollective collective, BesideProduct beside);

}  // namespace tritax
