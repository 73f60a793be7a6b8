// Units that numbers of machine files may have, with their factors to the internal units.
#include <array>

#include "model/machine/parameters.hpp"

namespace tritax {

namespace {

using D = Dimension;

struct Unit {
  Dimension dimension;
  std::string_view name;
  double factor;  // to the internal unit
};

constexpr double kKi = 1024;
constexpr double kMi = kKi * kKi;
constexpr double kGi = kKi * kMi;

constexpr std::array kUnits{
    Unit{D::count, "", 1},
    Unit{D::boolean, "", 1},
    Unit{D::share, "share", 1},
    Unit{D::share, "%", 0.01},
    Unit{D::time, "ns", 1},
    Unit{D::time, "us", 1e3},
    Unit{D::time, "ms", 1e6},
    Unit{D::time, "s", 1e9},
    Unit{D::data, "B", 1},
    Unit{D::data, "KB", 1e3},
    Unit{D::data, "MB", 1e6},
    Unit{D::data, "GB", 1e9},
    Unit{D::data, "TB", 1e12},
    Unit{D::data, "KiB", kKi},
    Unit{D::data, "MiB", kMi},
    Unit{D::data, "GiB", kGi},
    Unit{D::rate, "B/s", 1e-9},
    Unit{D::rate, "KB/s", 1e-6},
    Unit{D::rate, "MB/s", 1e-3},
    Unit{D::rate, "GB/s", 1},
    Unit{D::rate, "TB/s", 1e3},
    Unit{D::rate, "MiB/s", kMi * 1e-9},
    Unit{D::rate, "GiB/s", kGi * 1e-9},
    Unit{D::clock, "Hz", 1e-9},
    Unit{D::clock, "MHz", 1e-3},
    Unit{D::clock, "GHz", 1},
    Unit{D::cycles, "clk", 1},
    Unit{D::bytes_per_clk, "B/clk", 1},
    Unit{D::flop_per_clk, "flop/clk", 1},
    Unit{D::power, "W", 1},
    Unit{D::power, "kW", 1e3},
    Unit{D::energy_per_byte, "pJ/B", 1},
};

}  // namespace

std::string unit_names(Dimension dimension) {
  std::string names;
  for (const Unit& unit : kUnits) {
    if (unit.dimension != dimension) continue;
    if (!names.empty()) names += ", ";
    names += unit.name.empty() ? std::string("\"\"") : std::string(unit.name);
  }
  return names;
}

double unit_factor(Dimension dimension, std::string_view unit) {
  for (const Unit& candidate : kUnits) {
    if (candidate.dimension == dimension && candidate.name == unit) return candidate.factor;
  }
  return 0;
}

}  // namespace tritax
