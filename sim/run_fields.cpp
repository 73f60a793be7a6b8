#include "sim/run_fields.hpp"

#include "sim/account_fields.hpp"

namespace tritax {

namespace {

using shown::kColumns;
using shown::kJson;
using shown::kPython;
using shown::kRow;
using shown::kText;

Fields<SimulationResult> times_of_run() {
  Fields<SimulationResult> all{
      {{.name = "time", .unit = Unit::time, .meaning = "the whole run", .shows = kText | kJson},
       &SimulationResult::makespan_ns},
      {{.name = "makespan", .unit = Unit::time, .meaning = "the whole run", .shows = kPython},
       &SimulationResult::makespan_ns},
      {{.name = "kernels",
        .unit = Unit::time,
        .meaning = "from the start of the first workgroup to the end of the last",
        .shows = kText | kJson | kPython},
       &SimulationResult::kernels_ns},
  };
  include(all, account_fields(), &SimulationResult::account, {.shows = kJson, .object = "critical_path"});
  include(all, account_fields(), &SimulationResult::account, {.shows = kRow});
  return all;
}

Fields<SimulationResult> traffic_of_run() {
  constexpr unsigned kBoth = kJson | kPython;
  return {
      {{.name = "matrix_flops",
        .meaning = "that the matrix cores executed, without padding",
        .shows = kPython},
       &SimulationResult::matrix_flops},
      {{.name = "hbm",
        .unit = Unit::bytes,
        .meaning = "what takes as long to read: a byte written counts as often as it costs",
        .shows = kBoth},
       &SimulationResult::hbm_bytes},
      {{.name = "l2_hit_fraction",
        .type = FieldType::share,
        .meaning = "of the bytes of operands, what an L2 had",
        .shows = kBoth},
       &SimulationResult::l2_hit_fraction},
      {{.name = "llc_hit_fraction",
        .type = FieldType::share,
        .meaning = "of those that missed the L2, what the last-level cache had",
        .shows = kBoth},
       &SimulationResult::llc_hit_fraction},
      {{.name = "tile_operations",
        .type = FieldType::size,
        .meaning = "of the schedule, that were simulated",
        .shows = kJson | shown::kProperty},
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
        {{.name = "rank", .type = FieldType::size, .meaning = "number of the GPU", .shows = kRow},
         &RankedResult::rank},
        {{.name = "time", .unit = Unit::time, .meaning = "until its last operation ends", .shows = kJson},
         [](const RankedResult& one) { return one.result->makespan_ns; }},
        {{.name = "makespan", .unit = Unit::time, .meaning = "until its last operation ends", .shows = kRow},
         [](const RankedResult& one) { return one.result->makespan_ns; }},
        {{.name = "kernels",
          .unit = Unit::time,
          .meaning = "from the start of its first workgroup to the end of its last",
          .shows = kJson | kRow},
         [](const RankedResult& one) { return one.result->kernels_ns; }},
        {{.name = "cu_busy",
          .unit = Unit::time,
          .meaning = "with a workgroup, summed over its compute units",
          .shows = kJson | kRow},
         [](const RankedResult& one) { return one.result->cu_busy_ns; }},
        {{.name = "matrix_busy",
          .unit = Unit::time,
          .meaning = "in which a product runs, in the mean over its compute units",
          .shows = kRow},
         [](const RankedResult& one) { return one.result->matrix_busy_ns; }},
        {{.name = "matrix_clock_ghz",
          .meaning = "of its matrix cores at the end; 0: none worked",
          .shows = kRow},
         [](const RankedResult& one) { return one.result->matrix_clock_ghz; }},
    };
    include(all, account_fields(), account, {.shows = kJson, .object = "critical_path"});
    include(all, account_fields(), account, {.shows = kRow});
    return all;
  }();
  return fields;
}

const Fields<GpuLine>& gpu_line_fields() {
  static const Fields<GpuLine> fields = [] {
    Fields<GpuLine> all{
        {{.name = "gpu",
          .type = FieldType::text,
          .meaning = "its number, or node for all together",
          .shows = kColumns,
          .title = "GPU"},
         &GpuLine::gpu},
        {{.name = "time", .unit = Unit::time, .meaning = "until its last operation ends", .shows = kColumns},
         &GpuLine::makespan_ns},
        {{.name = "kernels",
          .unit = Unit::time,
          .meaning = "from the start of the first workgroup to the end of the last",
          .shows = kColumns},
         &GpuLine::kernels_ns},
        {{.name = "busy",
          .unit = Unit::percent,
          .meaning = "of the time of kernels, with a workgroup, in the mean over compute units",
          .shows = kColumns,
          .title = "CUs busy"},
         &GpuLine::busy_percent},
    };
    include(all, account_fields(), &GpuLine::account, {.shows = kColumns});
    return all;
  }();
  return fields;
}

}  // namespace tritax
