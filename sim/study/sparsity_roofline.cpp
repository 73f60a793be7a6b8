#include "sim/study/sparsity_roofline.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <optional>

#include "model/core/error.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kLargestBlock = 4096;

std::optional<std::int64_t> whole(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 1 || value > kLargestBlock)
    return {};
  return value;
}

// The two numbers of "AxB" or "A:B".
bool read_pair(std::string_view text, char between, std::int64_t& first, std::int64_t& second) {
  const std::size_t at = text.find(between);
  if (at == std::string_view::npos) return false;
  const auto a = whole(text.substr(0, at));
  const auto b = whole(text.substr(at + 1));
  if (!a || !b) return false;
  first = *a;
  second = *b;
  return true;
}

double density_of(const NetworkLayer& layer, const SparsityPattern& pattern, double density) {
  if (layer.dense || pattern.kind == SparsityKind::dense) return 1;
  if (pattern.kind == SparsityKind::n_of_m)
    return static_cast<double>(pattern.n) / static_cast<double>(pattern.m);
  return density;
}

// Expected length of the longest of `rows` rows that keep each of `places` places with equal probability: the
// mean plus the expected largest of that many normal draws, in standard deviations.
double longest_row(double rows, double places, double density) {
  const double mean = places * density;
  const double deviation = std::sqrt(mean * (1 - density));
  return std::min(places, mean + deviation * std::sqrt(2 * std::log(std::max(rows, 1.0))));
}

// Bytes of values and of indices.
struct Stored {
  double values = 0;
  double indices = 0;
};

Stored stored(const NetworkLayer& layer, const SparsityPattern& pattern, SparseFormat format, double density,
              const SparsityOptions& options) {
  const auto weights = static_cast<double>(layer.weights());
  const double value_bytes = bytes_of(options.dtype);
  const double kept = weights * density;
  if (layer.dense || pattern.kind == SparsityKind::dense) return {weights * value_bytes, 0};
  if (format == SparseFormat::bits) {
    const double bits = pattern.kind == SparsityKind::n_of_m ? std::ceil(std::log2(pattern.m)) : 0;
    return {kept * value_bytes, kept * bits / 8};
  }
  // Blocks at the edges are stored whole.
  const double block = static_cast<double>(pattern.rows * pattern.cols);
  const double rows = std::ceil(static_cast<double>(layer.outputs) / static_cast<double>(pattern.rows));
  const double places = std::ceil(static_cast<double>(layer.depth()) / static_cast<double>(pattern.cols));
  double blocks = rows * places * density;
  double per_block = options.index_bytes;
  double offsets = 0;
  if (format == SparseFormat::csr) offsets = (rows + 1) * options.index_bytes;
  if (format == SparseFormat::coo) per_block *= 2;
  // Rows of n of m and of dropped outputs are equally long.
  const bool uneven = pattern.kind == SparsityKind::unstructured || pattern.kind == SparsityKind::block;
  if (format == SparseFormat::ell && uneven) blocks = rows * longest_row(rows, places, density);
  return {blocks * block * value_bytes, blocks * per_block + offsets};
}

}  // namespace

SparsityPattern parse_sparsity_pattern(std::string_view text, const std::string& place) {
  SparsityPattern pattern;
  pattern.name = std::string(text);
  constexpr std::string_view kBlock = "block";
  if (text == "dense") return pattern;
  if (text == "unstructured") {
    pattern.kind = SparsityKind::unstructured;
    return pattern;
  }
  if (text == "outputs") {
    pattern.kind = SparsityKind::outputs;
    return pattern;
  }
  if (text.substr(0, kBlock.size()) == kBlock &&
      read_pair(text.substr(kBlock.size()), 'x', pattern.rows, pattern.cols)) {
    pattern.kind = SparsityKind::block;
    return pattern;
  }
  if (read_pair(text, ':', pattern.n, pattern.m) && pattern.n <= pattern.m) {
    pattern.kind = SparsityKind::n_of_m;
    return pattern;
  }
  throw UserError(
      fmt::format("{}unknown pattern \"{}\"; give dense, unstructured, outputs, N:M (2:4), or "
                  "blockRxC (block16x16) with sides of up to {}",
                  place, text, kLargestBlock));
}

RooflinePeaks peaks_of(const Machine& machine, DType dtype) {
  const Gpu& gpu = machine.gpu;
  const MatrixRate& rate = gpu.rate(dtype);
  if (rate.flop_per_clk_per_cu <= 0) {
    throw UserError(fmt::format("{} has no matrix instruction for {}", gpu.name,
                                kDTypeNames[static_cast<std::size_t>(dtype)]));
  }
  const double clock_ghz = rate.load_clock_ghz > 0 ? rate.load_clock_ghz : gpu.boost_clock_ghz;
  const double efficiency = rate.issue_efficiency > 0 ? rate.issue_efficiency : 1;
  return {rate.flop_per_clk_per_cu * gpu.cu_count() * clock_ghz * efficiency, gpu.hbm_gb_per_s};
}

LayerRoofline roofline_of(const NetworkLayer& layer, const SparsityPattern& pattern, SparseFormat format,
                          double density, const SparsityOptions& options, const RooflinePeaks& peaks) {
  const double left = density_of(layer, pattern, density);
  const auto batch = static_cast<double>(options.batch);
  const double element = bytes_of(options.dtype);
  const double outputs =
      static_cast<double>(layer.outputs) * (pattern.kind == SparsityKind::outputs && !layer.dense ? left : 1);
  LayerRoofline roofline;
  roofline.flops =
      2 * batch * static_cast<double>(layer.positions) * static_cast<double>(layer.weights()) * left;
  const Stored weights = stored(layer, pattern, format, left, options);
  roofline.value_bytes = weights.values;
  roofline.index_bytes = weights.indices;
  roofline.activation_bytes = batch * element *
                              (static_cast<double>(layer.from) * static_cast<double>(layer.inputs) +
                               static_cast<double>(layer.positions) * outputs);
  roofline.compute_ns = roofline.flops / peaks.gflop_per_s;
  roofline.memory_ns = roofline.bytes() / peaks.gb_per_s;
  return roofline;
}

NetworkRoofline roofline_of(const Network& network, const SparsityPattern& pattern, SparseFormat format,
                            double density, const SparsityOptions& options, const RooflinePeaks& peaks) {
  const SparsityPattern dense;
  NetworkRoofline all;
  double dense_ns = 0;
  for (const NetworkLayer& layer : network.layers) {
    const auto count = static_cast<double>(layer.count);
    all.layers.push_back(roofline_of(layer, pattern, format, density, options, peaks));
    all.time_ns += count * all.layers.back().time_ns();
    dense_ns += count * roofline_of(layer, dense, format, 1, options, peaks).time_ns();
  }
  all.speedup = dense_ns / all.time_ns;
  return all;
}

}  // namespace tritax
