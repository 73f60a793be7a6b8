#include "sim/study/gemm_corpus.hpp"

#include <fmt/format.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "model/core/ceil_div.hpp"
#include "model/core/error.hpp"
#include "model/parts/fields.hpp"
#include "model/parts/gemm_knobs.hpp"
#include "model/parts/shared_gemm.hpp"
#include "model/scenario/toml_reader.hpp"
#include "sim/simulate.hpp"
#include "sim/study/shipped_files.hpp"

namespace tritax {

namespace embedded {
// File stem and text of scenarios/corpora/*.toml; see cmake/TritaxModule.cmake.
EmbeddedFiles corpus_files();
}  // namespace embedded

namespace {

constexpr std::int32_t kCorpusGroup = 8;  // row tiles per group; CUTLASS 2.x: cohorts of 8 x 4 tiles

MatmulTile tile_of(std::int32_t m, std::int32_t n, std::int32_t k) {
  return {m, n, k, m * n > 128 * 128 ? 8 : 4, Pipeline::overlapped};
}

// Uniform in [0, 1), from the numbers of splitmix64.
double drawn(std::uint64_t& state) {
  state += 0x9E3779B97F4A7C15u;
  return static_cast<double>(tritax_sieve::mixed(state) >> 11) * 0x1p-53;
}

ClosedForm form_of(const Machine& machine, const CorpusKernels& kernels, const MatmulTile& tile) {
  return ClosedForm(machine, kernels.element, tile, 1, kCorpusGroup);
}

// Time of the heuristic's pick: a tile and the parts of K.
double ensemble_ns(const std::vector<ClosedForm>& forms, const GemmSize& size, std::int64_t units) {
  double least = std::numeric_limits<double>::infinity();
  const ClosedForm* picked = nullptr;
  Decomposition split;
  for (const ClosedForm& form : forms) {
    const TiledGemm gemm = form.tiled(size);
    for (const std::int64_t parts : {1, 2, 4, 8}) {
      if (parts > 1 && (gemm.tiles * parts > units || parts > gemm.iterations)) break;
      const double estimate =
          static_cast<double>(ceil_div(gemm.tiles * parts, units) * ceil_div(gemm.iterations, parts)) *
          form.iteration_ns();
      if (estimate >= least) continue;
      least = estimate;
      picked = &form;
      split = fixed_split(gemm, parts);
    }
  }
  return picked->in_stream_ns(size, split);
}

// `resident`: if work is shared, all sharers run at once.
double simulated_ns(const Machine& machine, const CorpusKernels& kernels, const GemmSize& size,
                    const Decomposition& split, bool resident) {
  const DType dtype = kernels.element.dtype;
  GemmKnobs knobs = default_gemm_knobs(machine, dtype);
  knobs.tile_m = kernels.tile.m;
  knobs.tile_n = kernels.tile.n;
  knobs.tile_k = kernels.tile.k;
  knobs.waves = kernels.tile.waves;
  knobs.pipeline = kernels.tile.pipeline;
  knobs.group_m = kCorpusGroup;
  knobs.host_barriers = false;
  GemmPlan plan;
  plan.name = "corpus";
  plan.split = split;
  if (resident && split.sharers > 0) {
    plan.form = GridForm::persistent;
    plan.workgroups = split.sharers;
  }
  return simulate(build_shared_gemm(GemmShape{size.m, size.n, size.k, dtype}, machine, knobs, plan), machine)
      .kernels_ns;
}

}  // namespace

std::vector<std::string> shipped_corpora() { return names_of(embedded::corpus_files()); }

Corpus find_corpus(const std::string& name_or_path) {
  const FoundFile file = find_file(embedded::corpus_files(), name_or_path, "corpus");
  const toml::table table = parse_toml(file.text, file.origin);
  TomlReader reader({&table}, file.origin, "corpus");
  Corpus corpus;
  corpus.name = file.name;
  corpus.source = reader.text_or("source", "");
  corpus.count = reader.integer("count", 1, kMostGemms);
  corpus.least = reader.integer("least", 1, kMaxSize);
  corpus.most = reader.integer("most", corpus.least, kMaxSize);
  reader.finish();
  return corpus;
}

std::vector<GemmSize> log_sampled_gemms(std::int64_t count, std::uint64_t seed, std::int64_t least,
                                        std::int64_t most) {
  std::vector<GemmSize> sizes;
  std::uint64_t state = tritax_sieve::mixed(seed);
  const double octaves = std::log2(static_cast<double>(most) / static_cast<double>(least));
  const auto side = [&] {
    return static_cast<std::int64_t>(
        std::lround(static_cast<double>(least) * std::exp2(octaves * drawn(state))));
  };
  for (std::int64_t i = 0; i < count; ++i) {
    GemmSize& size = sizes.emplace_back();
    size.m = side();
    size.n = side();
    size.k = side();
  }
  return sizes;
}

double intensity_of(const GemmSize& size, const Element& element) {
  const auto m = static_cast<double>(size.m);
  const auto n = static_cast<double>(size.n);
  const auto k = static_cast<double>(size.k);
  return 2 * m * n * k / (element.bytes * (m * k + k * n + m * n));
}

CorpusKernels fp64_kernels(const Element& fp64) {
  return {fp64,
          tile_of(64, 64, 16),
          {tile_of(128, 128, 16), tile_of(64, 128, 16), tile_of(64, 64, 16), tile_of(32, 64, 16),
           tile_of(32, 32, 16)},
          150};
}

CorpusKernels fp16_kernels(const Element& fp16) {
  return {fp16,
          tile_of(128, 128, 32),
          {tile_of(128, 256, 32), tile_of(128, 128, 32), tile_of(64, 128, 32), tile_of(64, 64, 64)},
          400};
}

std::array<Decomposition, 4> corpus_schedules(const ClosedForm& form, const GemmSize& size,
                                              std::int64_t units) {
  const TiledGemm gemm = form.tiled(size);
  const std::int64_t parts = std::max<std::int64_t>(2, units / gemm.tiles);
  return {data_parallel(gemm), fixed_split(gemm, parts), stream_k(gemm, std::min(units, gemm.total())),
          form.stream_k(size)};
}

std::vector<CorpusTimes> corpus_times(const Machine& machine, const CorpusKernels& kernels,
                                      const std::vector<GemmSize>& sizes) {
  const ClosedForm form = form_of(machine, kernels, kernels.tile);
  std::vector<ClosedForm> forms;
  for (const MatmulTile& tile : kernels.tiles) forms.push_back(form_of(machine, kernels, tile));
  const std::int64_t units = machine.gpu.cu_count();
  std::vector<CorpusTimes> times(sizes.size());
  tbb::parallel_for(std::size_t{0}, sizes.size(), [&](std::size_t i) {
    const std::array<Decomposition, 4> schedules = corpus_schedules(form, sizes[i], units);
    for (std::size_t s = 0; s < schedules.size(); ++s) {
      times[i].schedule_ns[s] = form.in_stream_ns(sizes[i], schedules[s]);
    }
    times[i].ensemble_ns = ensemble_ns(forms, sizes[i], units);
    times[i].oracle_ns = std::numeric_limits<double>::infinity();
    for (const ClosedForm& one : forms) {
      times[i].oracle_ns =
          std::min(times[i].oracle_ns, one.in_stream_ns(sizes[i], data_parallel(one.tiled(sizes[i]))));
    }
  });
  return times;
}

Distribution distribution_of(const std::vector<double>& values) {
  Distribution found;
  found.count = values.size();
  if (values.empty()) return found;
  const auto count = static_cast<double>(values.size());
  for (const double value : values) found.mean += value / count;
  for (const double value : values) found.deviation += (value - found.mean) * (value - found.mean) / count;
  found.deviation = std::sqrt(found.deviation);
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  found.least = *least;
  found.most = *most;
  return found;
}

ChoiceTable policy_choices(const Machine& machine, const CorpusKernels& kernels,
                           const std::vector<GemmSize>& sizes) {
  constexpr std::int64_t kPartsOfWave = 16;
  const ClosedForm form = form_of(machine, kernels, kernels.tile);
  const std::int64_t units = machine.gpu.cu_count();
  ChoiceTable table;
  for (int policy = 0; policy < kPolicies; ++policy)
    table.options.push_back(fmt::format("policy {}", policy));
  table.numbers = {"full rounds of tiles", "sixteenths of the last round", "iterations of a tile"};
  table.problems.resize(sizes.size());
  table.time_ns.resize(sizes.size());
  tbb::parallel_for(std::size_t{0}, sizes.size(), [&](std::size_t i) {
    const TiledGemm gemm = form.tiled(sizes[i]);
    table.problems[i] = {gemm.tiles / units, ceil_div(gemm.tiles % units * kPartsOfWave, units),
                         gemm.iterations};
    for (int policy = 0; policy < kPolicies; ++policy) {
      const Decomposition split = composable_kernel_policy(gemm, units, policy, false);
      table.time_ns[i].push_back(form.in_stream_ns(sizes[i], split));
    }
  });
  return table;
}

std::vector<ComparedRun> compared_with_simulation(const Machine& machine, const CorpusKernels& kernels,
                                                  const std::vector<GemmSize>& sizes) {
  const ClosedForm form = form_of(machine, kernels, kernels.tile);
  const std::int64_t units = machine.gpu.cu_count();
  constexpr std::size_t kFirstResident = 2;  // whole tiles and parts of one tile are dispatched
  std::vector<ComparedRun> runs(sizes.size() * kCorpusSchedules.size());
  tbb::parallel_for(std::size_t{0}, runs.size(), [&](std::size_t i) {
    const GemmSize& size = sizes[i / kCorpusSchedules.size()];
    const std::size_t s = i % kCorpusSchedules.size();
    const Decomposition split = corpus_schedules(form, size, units)[s];
    runs[i] = {size, kCorpusSchedules[s], form.kernel_ns(size, split),
               simulated_ns(machine, kernels, size, split, s >= kFirstResident)};
  });
  return runs;
}

}  // namespace tritax
