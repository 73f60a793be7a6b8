// The Sparsity Roofline: an upper bound of the gain from pruning a network's weights, before any sparse
// kernel is written (the idea is from arXiv:2310.00496; the formulas here are our own, since the paper's are
// not public in this form).
//
// A layer with weights of `n` outputs by `k` inputs and `m` positions of a batch takes the longer of
//
//   flops / peak        flops = 2 m k n · density; peak of the matrix cores, however a kernel feeds them
//   bytes / bandwidth   bytes = values + indices + activations read and written
//
// Each byte is moved once, from or to memory. Values are density · n · k. Indices depend on pattern and
// format: see SparseFormat. A pattern that drops whole outputs writes only the remaining ones. The speedup of
// a network is the sum of the times of its dense layers over the sum of the times of its sparse layers;
// layers that are never pruned count in both.
//
// This is a bound: no kernel on the machine is faster than the sparse time, and the dense time belongs to a
// perfect dense kernel.
//
// Example: a layer of 1024×1024 fp16 weights with one position reads 2 MiB of weights. Half of the weights as
// CSR with 32-bit columns are 1 MiB of values and 2 MiB of indices: slower than dense; in blocks of 16×16
// they are almost twice as fast.
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
  unstructured,  // any weights
  n_of_m,        // n of every m inputs of an output
  block,         // blocks of rows × cols weights, outputs × inputs
  outputs,       // whole outputs (channels, neurons)
};

enum class SparseFormat : std::uint8_t {
  csr,   // a column index per value (for blocks: per block), an offset per row and one more
  coo,   // a row and a column index per value or block
  ell,   // a column index per value or block, rows padded to the longest; no offsets
  bits,  // n of m: the place of each value among the m, in as few bits as possible; outputs: no indices
};
inline constexpr std::string_view kSparseFormatNames[] = {"csr", "coo", "ell", "bits"};

struct SparsityPattern {
  std::string name;  // as given: "2:4", "block16x16"
  SparsityKind kind = SparsityKind::dense;
  std::int64_t n = 1;  // of n_of_m
  std::int64_t m = 1;
  std::int64_t rows = 1;  // of block
  std::int64_t cols = 1;

  // The format of a pattern if none is asked for.
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
  double index_bytes = 4;     // of a column, row or offset index
};

// Sustained rates of one GPU of the machine.
struct RooflinePeaks {
  double gflop_per_s = 0;
  double gb_per_s = 0;
};
// Throws UserError if the GPU has no matrix instruction of the dtype.
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

// One layer that keeps `density` of its weights, in [0, 1]; a layer that is never pruned, and pattern
// `dense`, keep all weights. n_of_m keeps n / m whatever `density` says.
LayerRoofline roofline_of(const NetworkLayer& layer, const SparsityPattern& pattern, SparseFormat format,
                          double density, const SparsityOptions& options, const RooflinePeaks& peaks);

struct NetworkRoofline {
  std::vector<LayerRoofline> layers;  // as the layers of the network, one per kind
  double time_ns = 0;                 // sum over all layers, kinds by their counts
  double speedup = 1;                 // over the dense network
};
NetworkRoofline roofline_of(const Network& network, const SparsityPattern& pattern, SparseFormat format,
                            double density, const SparsityOptions& options, const RooflinePeaks& peaks);

}  // namespace tritax
