#include "sim/run_fields.hpp"

#include "sim/account_fields.hpp"

namespace tritax {

namespace {

Fields<SimulationResult> times_of_run() {
  Fields<SimulationResult> all{
      {{.name = "time",
        .unit = FieldUnit::time,
        .meaning = "the whole run",
        .shows = shown::kText | shown::kJson},
       &SimulationResult::makespan_ns},
      {{.name = "makespan", .unit = FieldUnit::time, .meaning = "the whole run", .shows = shown::kPython},
       &SimulationResult::makespan_ns},
      {{.name = "kernels",
        .unit = FieldUnit::time,
        .meaning = "from the start of the first workgroup to the end of the last",
        .shows = shown::kText | shown::kJson | shown::kPython},
       &SimulationResult::kernels_ns},
  };
  include(all, account_fields(), &SimulationResult::account,
          {.shows = shown::kJson, .object = "critical_path"});
  include(all, account_fields(), &SimulationResult::account, {.shows = shown::kRow});
  return all;
}

Fields<SimulationResult> traffic_of_run() {
  constexpr unsigned kBoth = shown::kJson | shown::kPython;
  return {
      {{.name = "matrix_flops",
        .meaning = "flops that the matrix cores executed, without padding",
        .shows = shown::kPython},
       &SimulationResult::matrix_flops},
      {{.name = "hbm",
        .unit = FieldUnit::bytes,
        .meaning = "HBM traffic in bytes read; a written byte counts by its cost",
        .shows = kBoth},
       &SimulationResult::hbm_bytes},
      {{.name = "l2_hit_fraction",
        .type = FieldType::share,
        .meaning = "share of operand bytes that hit in an L2",
        .shows = kBoth},
       &SimulationResult::l2_hit_fraction},
      {{.name = "llc_hit_fraction",
        .type = FieldType::share,
        .meaning = "share of L2 misses that hit in the last-level cache",
        .shows = kBoth},
       &SimulationResult::llc_hit_fraction},
      {{.name = "tile_operations",
        .type = FieldType::size,
        .meaning = "operations of the schedule that were simulated",
        .shows = shown::kJson | shown::kProperty},
       &SimulationResult::tile_operations},
  };
}

}  // namespace

const Fields<SimulationResult>& run_fields() {
  static const Fields<SimulationResult> fields = [] {
    Fields<SimulationResult> all = times_of_run();
    append(all, traffic_of_run());
    return all;
  }();
  return fields;
}

const Fields<RankedResult>& rank_fields() {
  static const Fields<RankedResult> fields = [] {
    const auto account = [](const RankedResult& one) { return one.result->account; };
    Fields<RankedResult> all{
        {{.name = "rank", .type = FieldType::size, .meaning = "number of the GPU", .shows = shown::kRow},
         &RankedResult::rank},
        {{.name = "time",
          .unit = FieldUnit::time,
          .meaning = "until its last operation ends",
          .shows = shown::kJson},
         [](const RankedResult& one) { return one.result->makespan_ns; }},
        {{.name = "makespan",
          .unit = FieldUnit::time,
          .meaning = "until its last operation ends",
          .shows = shown::kRow},
         [](const RankedResult& one) { return one.result->makespan_ns; }},
        {{.name = "kernels",
          .unit = FieldUnit::time,
          .meaning = "from the start of its first workgroup to the end of its last",
          .shows = shown::kJson | shown::kRow},
         [](const RankedResult& one) { return one.result->kernels_ns; }},
        {{.name = "cu_busy",
          .unit = FieldUnit::time,
          .meaning = "time with a workgroup, summed over its compute units",
          .shows = shown::kJson | shown::kRow},
         [](const RankedResult& one) { return one.result->cu_busy_ns; }},
        {{.name = "matrix_busy",
          .unit = FieldUnit::time,
          .meaning = "time in which a product runs, mean over its compute units",
          .shows = shown::kRow},
         [](const RankedResult& one) { return one.result->matrix_busy_ns; }},
        {{.name = "matrix_clock_ghz",
          .meaning = "clock of its matrix cores at the end; 0: none worked",
          .shows = shown::kRow},
         [](const RankedResult& one) { return one.result->matrix_clock_ghz; }},
    };
    include(all, account_fields(), account, {.shows = shown::kJson, .object = "critical_path"});
    include(all, account_fields(), account, {.shows = shown::kRow});
    return all;
  }();
  return fields;
}

const Fields<GpuLine>& gpu_line_fields() {
  static const Fields<GpuLine> fields = [] {
    Fields<GpuLine> all{
        {{.name = "gpu",
          .type = FieldType::text,
          .meaning = "number of the GPU, or node for all together",
          .shows = shown::kColumns,
          .title = "GPU"},
         &GpuLine::gpu},
        {{.name = "time",
          .unit = FieldUnit::time,
          .meaning = "until its last operation ends",
          .shows = shown::kColumns},
         &GpuLine::makespan_ns},
        {{.name = "kernels",
          .unit = FieldUnit::time,
          .meaning = "from the start of the first workgroup to the end of the last",
          .shows = shown::kColumns},
         &GpuLine::kernels_ns},
        {{.name = "busy",
          .unit = FieldUnit::percent,
          .meaning = "share of kernel time with a workgroup, mean over compute units",
          .shows = shown::kColumns,
          .title = "CUs busy"},
         &GpuLine::busy_percent},
    };
    include(all, account_fields(), &GpuLine::account, {.shows = shown::kColumns});
    return all;
  }();
  return fields;
}

}  // namespace tritax
