// Stream-K over a corpus of GEMMs, as in arXiv:2301.03598 §6: sides are drawn evenly in their logarithms, on
// one GPU, with all times by the closed form (model/select/closed_form.hpp).
//
// A corpus is a TOML file of scenarios/corpora: `count` GEMMs with sides from `least` to `most`, and
// `source`. The paper does not list its shapes: distributions can be compared, single shapes cannot. The
// tiles are those of the paper: fp64 64×64×16 and fp16 128×128×32 for Stream-K and for data-parallel, and for
// the oracle the best of five or four tiles, data-parallel.
//
//   Stream-K             ClosedForm::stream_k
//   ensemble             by a heuristic of our own, as libraries have: of all tiles and splits of K by 1, 2,
//                        4 and 8 that fit into one round, the one with the least rounds · steps · time of a
//                        step at full rate; larger tiles and fewer parts win ties. cuBLAS' heuristic is not
//                        known
//   oracle               the fastest of all tiles, data-parallel
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/machine/machine.hpp"
#include "model/select/closed_form.hpp"
#include "sim/study/choices.hpp"

namespace tritax {

struct Corpus {
  std::string name;  // name of the file, without its ending
  std::string source;
  std::int64_t count = 0;
  std::int64_t least = 0;  // of m, n and k
  std::int64_t most = 0;
};
inline constexpr std::int64_t kMostGemms = 10'000'000;  // per corpus

// Names of the shipped corpora, in order.
std::vector<std::string> shipped_corpora();

// A shipped corpus or the corpus of a file. Throws UserError.
Corpus find_corpus(const std::string& name_or_path);

// Equal seeds give equal shapes.
std::vector<GemmSize> log_sampled_gemms(std::int64_t count, std::uint64_t seed, std::int64_t least,
                                        std::int64_t most);

// Useful operations per byte of both operands and the result.
double intensity_of(const GemmSize& size, const Element& element);

// Element type and tiles of the products.
struct CorpusKernels {
  Element element;
  MatmulTile tile;                // for Stream-K
  std::vector<MatmulTile> tiles;  // for ensemble and oracle, the largest first
  double compute_bound = 0;       // intensity from which on the paper calls a GEMM compute-bound
};
CorpusKernels fp64_kernels(const Element& fp64);
CorpusKernels fp16_kernels(const Element& fp16);

// The schedules of one tile, as named in tables. Selectors share work by decompositions, without a workload.
inline constexpr std::array<std::string_view, 4> kCorpusSchedules{"data-parallel tiles", "split-K",
                                                                  "Stream-K of all iterations", "Stream-K"};
// The decompositions of kCorpusSchedules: data-parallel; as many parts as fill the units, at least 2; all
// iterations shared among all units; and as the paper runs Stream-K.
std::array<Decomposition, 4> corpus_schedules(const ClosedForm& form, const GemmSize& size,
                                              std::int64_t units);

struct CorpusTimes {
  std::array<double, 4> schedule_ns{};  // by kCorpusSchedules
  double ensemble_ns = 0;
  double oracle_ns = 0;
};

// Side by side on all cores; in the order of the sizes.
std::vector<CorpusTimes> corpus_times(const Machine& machine, const CorpusKernels& kernels,
                                      const std::vector<GemmSize>& sizes);

struct Distribution {
  std::size_t count = 0;
  double mean = 0, deviation = 0, least = 0, most = 0;
};
Distribution distribution_of(const std::vector<double>& values);

// Choices among the seven policies of composable_kernel (model/parts/decomposition.hpp), with partial sums
// added by the owner. The features of a problem are our own: full rounds of tiles, sixteenths of the last
// round, and iterations per tile.
ChoiceTable policy_choices(const Machine& machine, const CorpusKernels& kernels,
                           const std::vector<GemmSize>& sizes);

// One schedule of one GEMM, by closed form and by simulation.
struct ComparedRun {
  GemmSize size;
  std::string_view schedule;
  double closed_ns = 0;
  double simulated_ns = 0;  // from the first workgroup to the end of the last kernel
};
// Side by side on all cores.
std::vector<ComparedRun> compared_with_simulation(const Machine& machine, const CorpusKernels& kernels,
                                                  const std::vector<GemmSize>& sizes);

}  // namespace tritax
