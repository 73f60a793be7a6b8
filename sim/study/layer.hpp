// A layer of a language model on several GPUs: its products, each with its communication, the best pattern of
// every pair, and whether it pays to write it.
//
// Tensor parallelism splits the weights W of Y = X·W (arXiv:1909.08053 §3): queries, keys, values, gate and
// up by columns, with all of X on every GPU; the attention's output and down by rows, so that the products
// have to be summed over the GPUs. Sequence parallelism (arXiv:2205.05198 §4.2) splits rows between the
// pairs: rows are gathered before a split by columns, and summed and scattered after a split by rows. For
// example Llama 3 70B on 8 GPUs, sizes of one GPU:
//
//   qkv            N = (64 + 2·8)·128 / 8 = 1280   K = 8192                   by columns
//   attention-out  N = 8192                        K = 64·128 / 8 = 1024      by rows
//   gate-up        N = 2·28672 / 8 = 7168          K = 8192                   by columns
//   down           N = 8192                        K = 28672 / 8 = 3584       by rows
//
// If there are fewer key-value heads than GPUs, several GPUs hold the same head. Latent attention multiplies
// down to its ranks on every GPU (with sequence parallelism only the GPU's own rows), and up from them split
// by columns; in decode the product up to keys and values is part of the attention products (arXiv:2405.04434
// §2.1.2). Of the experts, only those that all tokens share are products of this form; their sums go with the
// sums of the routed experts.
//
// Each workload states which split it serves (Workload::projection).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/workload/workload.hpp"
#include "sim/study/advise.hpp"
#include "sim/study/language_model.hpp"
#include "sim/study/trust.hpp"
#include "sim/study/verdict.hpp"

namespace tritax {

// Decode multiplies one token per sequence, prefill all tokens.
enum class Phase : std::uint8_t { decode, prefill };
inline constexpr std::array<std::string_view, 2> kPhaseNames{"decode", "prefill"};

struct Deployment {
  int gpus = 8;  // GPUs that share every product
  Phase phase = Phase::decode;
  std::int64_t tokens = 1;  // rows of X
  bool sequence_parallel = false;
};

// One product of a layer, in sizes of one GPU.
struct Step {
  std::string_view name;  // "attention-out"
  Projection projection = Projection::columns;
  std::int64_t rows = 0;  // of the product
  std::int64_t columns = 0;
  std::int64_t depth = 0;
  std::int64_t layers = 0;  // layers of the model with this product
};

// Equal layers.
struct LayerKind {
  std::string_view name;  // "layer", or "dense layer" and "expert layer" of a model with both
  std::int64_t count = 0;
  std::vector<std::size_t> steps;  // places in Layers::steps
};

struct Layers {
  std::vector<Step> steps;  // equal steps once
  std::vector<LayerKind> kinds;
  std::vector<std::string> left_out;  // operations of a layer that are no such product
};

// Throws UserError that begins with `where` ("--tp") if the GPUs cannot split the model evenly.
Layers layers_of(const LanguageModel& model, const Deployment& deployment, const std::string& where);

// The problem of the workload that serves the step. Throws UserError that begins with `where` if a field is
// out of range.
Problem problem_of(const Step& step, const Deployment& deployment, DType dtype, const std::string& where);

// The launch mode of a phase: decode is replayed as a graph, prefill runs in streams. Pins for a search.
Values pins_of(Phase phase, const Problem& problem, const Machine& machine);

struct StepAnswer {
  Problem problem;
  Advice advice;
  Trust trust;
  double band = 0;       // of the ratio of the rivals, spread included; 0: unknown
  double best_band = 0;  // of the time of the best, spread included; 0: unknown
  Verdict verdict = Verdict::alone;
  double libraries_ns = 0;  // the fastest of the baseline and the vendor-library patterns

  const Candidate& best() const { return advice.candidates.front(); }
  // The libraries' time unless another pattern pays.
  double chosen_ns() const { return verdict == Verdict::pays ? best().time_ns : libraries_ns; }
};

// `found` is the search's answer to the problem, not interrupted.
StepAnswer judge(Problem problem, Advice found, const Machine& machine,
                 const std::vector<ComparedSet>& compared = shipped_comparisons());

// Times of the steps of a kind of layer, one after the other.
struct LayerSum {
  double libraries_ns = 0;
  double best_ns = 0;    // the best pattern of every step
  double chosen_ns = 0;  // … if it pays, else the libraries
  TimeAccount account;   // of the best patterns
};
LayerSum sum_of(const LayerKind& kind, const std::vector<StepAnswer>& answers);

// All layers of the model.
LayerSum sum_of(const Layers& layers, const std::vector<StepAnswer>& answers);

}  // namespace tritax
