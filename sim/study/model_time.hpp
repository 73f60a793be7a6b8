// Time to first token and time per output token of a language model on a node: passes (model_pass.hpp)
// composed of runs of their blocks (block_runs.hpp), with the share of each tax and the effect of fusing.
//
// There are two forms of launching. In a *graph* a pass is one launch, and kernels follow each other by the
// gap of its nodes:
//
//   T = call + latency + Σ (gpu + gaps in a graph) + synchronisation
//
// Every GPU has a process of its own, as serving engines have: no call waits for the launches of other GPUs.
//
// A pattern in which a host waits cuts the graph in two, each with call, latency and synchronisation. In a
// *stream* the host runs ahead as far as it can. Let h be the time when it has called block i, g the time
// when the GPUs have finished it, f the first call of a block and last the share of its last kernel:
//
//   h_i = h_{i-1} + calls        g_i = max(max(g_{i-1}, h_{i-1} + f + latency) + gpu + gaps,
//                                          h_i + latency + last · gpu)
//
// so the slower of host and GPUs decides. The part of T beyond the GPUs' own time is launch tax. For example
// 80 layers of 12 kernels of 2 us, 4 us per call, gaps of 1 us: 80·12·3 us = 2.9 ms in a graph, 80·12·4 us =
// 3.8 ms in a stream; the GPUs are idle for half of this time.
//
// Between two passes a serving engine may keep the GPUs waiting (engine_ns); that is launch tax, too.
//
// Communication is the link time along the critical path (TimeAccount::wire_ns): hidden transfers do not
// count. A *roofline* is below every time: for each block its weights, cache and flops at the rates of HBM
// and of the matrix cores.
//
// The usual pattern of every block is the library's. The effect of fusing is the time of the pass with
// another pattern for one block, and the usual patterns for the others. If the band of the predictions cannot
// separate the two times, it is a tie (sim/study/trust.hpp) and does not count.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/study/block_runs.hpp"
#include "sim/study/layer.hpp"
#include "sim/study/model_pass.hpp"

namespace tritax {

// Limits of a question: combinations of batch, context and deployment, sequences of a batch, and microseconds
// of engine_ns.
inline constexpr std::size_t kMostModelPoints = 10'000;
inline constexpr std::int64_t kMostModelSequences = 1 << 16;
inline constexpr std::int64_t kMostEngineUs = 10'000'000;

enum class LaunchForm : std::uint8_t { graph, stream };
inline constexpr std::array<std::string_view, 2> kLaunchFormNames{"graph", "stream"};

// `runs`: one per block of the pass. The account sums to the time.
TimeAccount account_of(const ModelPass& pass, const std::vector<const BlockRun*>& runs, LaunchForm form,
                       const Machine& machine);

struct BlockAnswer {
  std::shared_ptr<const BlockRuns> found;  // owns the runs
  const BlockRun* usual = nullptr;
  const BlockRun* best = nullptr;  // the fastest other run; the usual run if there is no other
  double usual_ns = 0;             // one execution of the block: GPUs and gaps in the form of the phase …
  double best_ns = 0;              // … the same with `best`
  double change = 0;               // relative change of the pass with `best` for `usual`
  Verdict verdict = Verdict::alone;
};

// Sum of all passes of a phase.
struct PhaseAnswer {
  ModelPass pass;
  LaunchForm form = LaunchForm::graph;  // the form of account() and of the effect of fusing
  std::array<TimeAccount, 2> usual;     // by LaunchForm
  TimeAccount fused;                    // the best pattern wherever it pays, in `form`
  double least_ns = 0;                  // roofline
  std::vector<BlockAnswer> blocks;      // in the order of the pass

  const TimeAccount& account() const { return usual[static_cast<std::size_t>(form)]; }
  double time_ns() const { return account().sum_ns(); }
  double fused_change() const { return fused.sum_ns() / time_ns() - 1; }
};

// The account of one execution of a block with its usual pattern, on the GPUs.
TimeAccount account_of_block(const PhaseAnswer& phase, std::size_t index);

struct ModelPoint {
  std::int64_t batch = 1;
  std::int64_t context = 1;
  ModelDeployment deployment;
};

struct ModelAnswer {
  ModelPoint point;
  std::optional<ModelMemory> memory;  // empty if unknown
  std::string refusal;                // why there is no answer; "" if there is
  std::optional<PhaseAnswer> decode;
  std::optional<PhaseAnswer> prefill;

  // Of decode, per GPU.
  double tokens_per_s() const;
};

struct ModelQuestion {
  LanguageModel model;
  Machine machine;
  DType dtype = DType::bf16;
  std::vector<ModelPoint> points;
  std::int64_t pass_tokens = 8192;             // per pass of prefill
  double engine_ns = 0;                        // host time between two passes
  const Selector* decode_selector = nullptr;   // null: `bounds`
  const Selector* prefill_selector = nullptr;  // null: `defaults`
  std::uint64_t seed = 1;
  int threads = 0;
  // How messages name batch, context, pass_tokens, tp, ep and engine_us.
  FieldPlace place = own_name;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(std::size_t done, std::size_t all)> progress;  // problems; may be empty
};

struct ModelAnswers {
  std::vector<ModelAnswer> points;  // as asked; the last ones are missing if the run was stopped
  std::size_t problems = 0;         // different problems that were evaluated
  std::vector<std::string> cautions;
  bool interrupted = false;
};

// Evaluates each different problem once. An impossible point is refused in its own answer. Throws UserError
// if all points are impossible.
ModelAnswers answer_model(const ModelQuestion& question);

// The default selectors.
const Selector& usual_selector(Phase phase);

}  // namespace tritax
