// The Sparsity Roofline: what pruning a network's weights can gain at most, before anybody has written a
// sparse kernel (the idea is that of arXiv:2310.00496; the formulas here are ours, since the paper's are not
// public in this form).
//
// A layer with weights of `n` outputs by `k` inputs and `m` positions of a batch takes the longer of
//
//   flops / peak        flops = 2 m k n · density; peak of the matrix cores, however a kernel feeds them
//   bytes / bandwidth   bytes = values + indices + what it reads and writes of activations
//
// each moved once, from and to memory. Values are density · n · k. Indices depend on pattern and format: see
// SparseFormat. A pattern that drops whole outputs writes only those that are left. The speedup of a network
// is the sum of the times of its dense layers over the sum of the times of its sparse ones; layers that are
// never pruned count in both.
//
// It is a bound: no kernel is faster on the machine than the sparse time, and the dense time is that of a
// perfect dense kernel.
//
// Example: a layer of 1024×1024 fp16 weights with one position reads 2 MiB of weights; half of them as CSR
// with 32-bit columns are 1 MiB of values and 2 MiB of indices: slower than dense, and in blocks of 16×16
// almost twice as fast.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/core/dtype.hpp"
#include "model/machine/machine.hpp"
#include "sim/study/network.hpp"

namespace tritax {

enum class SparsityKind : std::uint8_t {
  dense,         // all weights
  unstructured,  // any of them
  n_of_m,        // n of every m inputs of an output
  block,         // blocks of rows × cols weights, outputs × inputs
  outputs,       // whole outputs (channels, neurons)
};

enum class SparseFormat : std::uint8_t {
  csr,   // a column index a value (of blocks: a block), an offset a row and one more
  coo,   // a row and a column index a value or block
  ell,   // a column index a value or block, rows padded to the longest; no offsets
  bits,  // n of m: the place among the m of each value, in as few bits as that takes; outputs: nothing
};
inline constexpr std::string_view kSparseFormatNames[] = {"csr", "coo", "ell", "bits"};

struct SparsityPattern {
  std::string name;  // as it was given: "2:4", "block16x16"
  SparsityKind kind = SparsityKind::dense;
  std::int64_t n = 1;  // of n_of_m
  std::int64_t m = 1;
  std::int64_t rows = 1;  // of block
  std::int64_t cols = 1;

  // What a pattern stores without being asked for a format.
  SparseFormat usual_format() const {
    return kind == SparsityKind::unstructured || kind == SparsityKind::block ? SparseFormat::csr
                                                                             : SparseFormat::bits;
  }
};

// "dense", "unstructured", "N:M", "blockRxC" or "outputs". Throws UserError that begins with `place`.
SparsityPattern parse_sparsity_pattern(std::string_view text, const std::string& place);

struct SparsityOptions {
  DType dtype = DType::fp16;  // of weights and activations
  std::int64_t batch = 1;     // samples
  double index_bytes = 4;     // of a column, row or offset
};

// What the machine has: sustained rates of one GPU.
struct RooflinePeaks {
  double gflop_per_s = 0;
  double gb_per_s = 0;
};
// Throws UserError when its GPU has no matrix instruction of the dtype.
RooflinePeaks peaks_of(const Machine& machine, DType dtype);

struct LayerRoofline {
  double flops = 0;
  double value_bytes = 0;
  double index_bytes = 0;
  double activation_bytes = 0;
  double compute_ns = 0;
  double memory_ns = 0;

  double bytes() const { return value_bytes + index_bytes + activation_bytes; }
  double time_ns() const { return compute_ns > memory_ns ? compute_ns : memory_ns; }
};

// One layer of which `density` of the weights are left, in [0, 1]; a layer that is never pruned, and pattern
// `dense`, have all of them. n_of_m has n / m whatever `density` says.
LayerRoofline roofline_of(const NetworkLayer& layer, const SparsityPattern& pattern, SparseFormat format,
                          double density, const SparsityOptions& options, const RooflinePeaks& peaks);

struct NetworkRoofline {
  std::vector<LayerRoofline> layers;  // as the network's, one of each kind
  double time_ns = 0;                 // of all, kinds by their counts
  double speedup = 1;                 // over the dense network
};
NetworkRoofline roofline_of(const Network& network, const SparsityPattern& pattern, SparseFormat format,
                            double density, const SparsityOptions& options, const RooflinePeaks& peaks);

}  // namespace tritax
