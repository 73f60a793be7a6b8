// The parts that a time is accounted by, in the order in which tables and figures show them.
#pragma once

#include <array>
#include <string_view>

#include "sim/simulate.hpp"

namespace tritax::cli {

struct AccountPart {
  std::string_view key;    // of JSON
  std::string_view title;  // for people
  double TimeAccount::*ns;
};

inline constexpr std::array<AccountPart, 8> kAccountParts{{
    {"compute", "useful compute", &TimeAccount::compute_ns},
    {"memory", "useful memory", &TimeAccount::memory_ns},
    {"wire", "useful wire", &TimeAccount::wire_ns},
    {"launch", "launch tax", &TimeAccount::launch_ns},
    {"bulk_synchronous", "bulk-synchronous tax", &TimeAccount::bulk_synchronous_ns},
    {"locality", "locality tax", &TimeAccount::locality_ns},
    {"contention", "contention", &TimeAccount::contention_ns},
    {"harness", "harness", &TimeAccount::harness_ns},
}};

}  // namespace tritax::cli
