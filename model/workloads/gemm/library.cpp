// Library baseline: the vendor's GEMM, with the tile and the parts of K that the library picks. Products of
// fp8 leave the GEMM in bf16.
#include "model/parts/library_gemm.hpp"

#include "model/workloads/gemm/patterns.hpp"

namespace tritax {

Schedule build_gemm_library(const GemmShape& gemm, const Machine& machine, const StreamKnobs& knobs) {
  const LibraryTile library = library_tile(gemm, machine);
  const MatmulTile& tile = library.tile;
  const auto m = static_cast<std::int32_t>(gemm.m);
  const auto n = static_cast<std::int32_t>(gemm.n);
  const auto k = static_cast<std::int32_t>(gemm.k);
  ScheduleBuilder builder("library", 1);
  const std::int16_t a = builder.buffer({"A", gemm.dtype, m, k, tile.m, tile.k});
  const std::int16_t b = builder.buffer({"B", gemm.dtype, k, n, tile.k, tile.n});
  const std::int16_t c = builder.buffer({"C", product_dtype(gemm.dtype), m, n, tile.m, tile.n});
  builder.result(c);
  builder.expect_column_blocks(a, b, c);
  const std::int16_t parts = add_buffer_of_parts(builder, library, gemm.m, n);
  Graph kernels;
  for (const std::int32_t kernel :
       add_library_gemm(builder, machine, {0, a, b, k, c, {0, 0, m, n}, parts, gemm.dtype, library})) {
    kernels.push_back({kernel, 0});
  }
  GemmKnobs launched;
  launched.host_barriers = knobs.host_barriers;
  host_program(builder, 0, launched, kernels);
  return builder.finish();
}

}  // namespace tritax
