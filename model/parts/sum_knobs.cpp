#include <fmt/format.h>

#include "model/core/error.hpp"
#include "model/machine/check_machine.hpp"
#include "model/parts/partial_sums.hpp"
#include "model/workload/launching.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kMaxChunks = 1024;
constexpr std::int64_t kMaxRings = 1024;

// "usual", followed by kCommonDTypeNames.
constexpr std::array<std::string_view, 1 + kCommonDTypeCount> kWireNames{"usual", "fp32", "fp16", "bf16",
                                                                         "fp8"};

constexpr std::array<Spec, 8> kSumKnobs{{
    {.name = "transport",
     .help =
         "who moves partial sums: the GPU that has them stores them (push), the owner loads them (pull), or "
         "the switch adds them up for the owner and sends the sum to all (multimem, NVLink SHARP)",
     .kind = ValueKind::name,
     .names = kSumTransportNames,
     .shown = "{}"},
    {.name = "chunks",
     .help =
         "pieces per peer block for copy engines; the GEMM computes one piece of every block after the other",
     .high = kMaxChunks,
     .usual = {2},
     .varies_by_doubling = true,
     .shown = "{} chunks"},
    {.name = "rings",
     .help = "rings of different strides on which tiles travel; at most as many as strides that reach all "
             "GPUs",
     .high = kMaxRings,
     .usual = {1},
     .shown = "{} rings",
     .not_shown = 1},
    {.name = "wire_dtype",
     .help = "element type of partial sums on the wire; usual: that of C, or fp32 for fp8 operands",
     .kind = ValueKind::name,
     .names = kWireNames,
     .shown = "{} on the wire",
     .not_shown = 0},
    {.name = "result_dtype",
     .help = "element type of C and of the sums that all GPUs get; usual: that of the operands",
     .kind = ValueKind::name,
     .names = kWireNames,
     .shown = "C in {}",
     .not_shown = 0},
    {.name = "wire",
     .help = "how data are held as they cross links: as they are (same), or as fp8 or integers of 8, 6 or 4 "
             "bits with a scale for every 32 elements of a row; with push",
     .kind = ValueKind::name,
     .names = kCodecNames,
     .value_if_column_missing = static_cast<std::int64_t>(Codec::same),
     .shown = "{} on the wire",
     .not_shown = static_cast<std::int64_t>(Codec::same)},
    {.name = "peers",
     .help =
         "how a workgroup serves its peers: all at the same time, as kernels do that give each peer a thread "
         "or have its loads in flight at once, or one after the other (in-turn)",
     .kind = ValueKind::name,
     .names = kServesPeersNames,
     .value_if_column_missing = static_cast<std::int64_t>(ServesPeers::in_turn),
     .shown = "peers {}",
     .not_shown = 0},
    {.name = "posts",
     .help =
         "who posts copies to copy engines: the host, behind a GEMM kernel per piece, or a kernel, while one "
         "GEMM kernel computes piece after piece",
     .kind = ValueKind::name,
     .names = kPostsNames,
     .value_if_column_missing = static_cast<std::int64_t>(Posts::host),
     .shown = "posted by the {}",
     .not_shown = 0},
}};

// The dtype of a knob, if the knob gives one.
std::optional<DType> dtype_of_knob(const Values& values, std::string_view name) {
  const std::int64_t value = values.get_or(name, 0);
  if (value == 0) return std::nullopt;
  return static_cast<DType>(value - 1);
}

LibraryRoutine custom_of(const Values& values) {
  if (!values.has(kEngineKnob) || call_form_of(values) != CallForm::custom_graph) return LibraryRoutine::none;
  return static_cast<LibraryRoutine>(static_cast<std::int64_t>(LibraryRoutine::vllm_all_reduce) +
                                     values[kEngineKnob]);
}

}  // namespace

SumKnobs sum_knobs_of(const Values& values) {
  SumKnobs knobs;
  static_cast<SharingKnobs&>(knobs) = sharing_knobs_of(values);
  knobs.transport =
      static_cast<Transport>(values.get_or("transport", static_cast<std::int64_t>(knobs.transport)));
  knobs.chunks = static_cast<std::int32_t>(values.get_or("chunks", knobs.chunks));
  knobs.rings = static_cast<std::int32_t>(values.get_or("rings", knobs.rings));
  knobs.wire = dtype_of_knob(values, "wire_dtype");
  knobs.result = dtype_of_knob(values, "result_dtype");
  knobs.codec = static_cast<Codec>(values.get_or("wire", static_cast<std::int64_t>(knobs.codec)));
  knobs.custom = custom_of(values);
  knobs.posts = static_cast<Posts>(values.get_or("posts", static_cast<std::int64_t>(knobs.posts)));
  knobs.serves = static_cast<ServesPeers>(values.get_or("peers", static_cast<std::int64_t>(knobs.serves)));
  return knobs;
}

const Spec& sum_knob(std::string_view name) {
  const Spec* found = find_spec(kSumKnobs, name);
  TRITAX_ASSERT(found != nullptr, "no such knob of partial sums");
  return *found;
}

void check_transport(Transport transport, const Machine& machine, int gpus, DType dtype) {
  if (transport != Transport::multimem || gpus == 1 || has_multimem(machine, gpus, dtype)) return;
  require_multicast(machine, gpus, "transport: multimem", "use push or pull");
  throw UserError(
      fmt::format("transport: multimem and sums in {}; switches add fp16, bf16 and fp32; use push or pull",
                  name_of(dtype)));
}

void check_sum_knobs(const SumKnobs& knobs) {
  if (knobs.chunks < 1)
    throw UserError(fmt::format("chunks: {} is not allowed; it must be at least 1", knobs.chunks));
  if (knobs.rings < 1)
    throw UserError(fmt::format("rings: {} is not allowed; it must be at least 1", knobs.rings));
}

}  // namespace tritax
