#include <fmt/format.h>

#include <array>

#include "model/core/error.hpp"
#include "model/parts/fields.hpp"
#include "model/parts/kernels.hpp"
#include "model/workload/launching.hpp"
#include "model/workloads/remote_access/workload.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 40;
constexpr std::int64_t kMaxBlock = std::int64_t{1} << 20;
constexpr std::int64_t kMaxBlocks = std::int64_t{1} << 30;  // rows of a buffer of a schedule

RemoteAccess remote_access_of(const Problem& problem) {
  return {static_cast<RemoteOperation>(problem["operation"]), static_cast<Peers>(problem["peers"]),
          problem["bytes"], problem["block_bytes"], problem.gpus()};
}

// Own data and one slot per rank.
Schedule build(const Problem& problem, const Machine& machine, const Values&) {
  const RemoteAccess access = remote_access_of(problem);
  check_memory("this scenario", static_cast<double>(access.bytes) * (access.gpus + 1), machine.gpu);
  return remote_access_schedule(access, machine);
}

const std::array<Spec, 1> kKnobs{{call_knob()}};

const std::array<Pattern, 1> kPatterns{{
    {.name = "grid", .summary = "one workgroup per block, as in ROCm/iris examples 00 to 05", .build = build},
}};

const std::array<Spec, 5> kFields{{
    {.name = "operation",
     .help = "operation of a workgroup on a block",
     .kind = ValueKind::name,
     .required = true,
     .names = kRemoteOperationNames},
    {.name = "peers",
     .help = "pairs of GPUs: GPU 0 with itself, GPU 0 with GPU 1, or every GPU with all its peers at once",
     .kind = ValueKind::name,
     .required = true,
     .names = kPeersNames},
    {.name = "block_bytes",
     .help = "bytes per block",
     .kind = ValueKind::bytes,
     .low = 4,
     .high = kMaxBlock,
     .usual = {1024}},
    {.name = "bytes",
     .help = "bytes per peer",
     .kind = ValueKind::bytes,
     .high = kMaxBytes,
     .required = true},
    {.name = "gpus",
     .help = "GPUs that take part, with peers = all",
     .low = 2,
     .high = kMaxGpus,
     .counts_gpus = true},
}};

void complete(Problem& problem, const FieldPlace& place) {
  const auto peers = static_cast<Peers>(problem["peers"]);
  if (peers != Peers::all) {
    const int gpus = peers == Peers::self ? 1 : 2;
    if (problem.values.given("gpus") && problem.gpus() != gpus) {
      throw UserError(fmt::format("{}: gpus = {} is not allowed with peers = \"{}\"; {} take part",
                                  place("gpus"), problem.gpus(), kPeersNames[static_cast<std::size_t>(peers)],
                                  gpus));
    }
    problem.values.assume("gpus", gpus);
  } else if (problem.gpus() < 2) {
    throw UserError(
        fmt::format("{}: gpus is missing; with peers = \"all\" give how many take part", place("gpus")));
  }
  const RemoteAccess access = remote_access_of(problem);
  if (access.bytes < access.block_bytes || access.block_bytes % 4 != 0 ||
      access.bytes % access.block_bytes != 0) {
    throw UserError(fmt::format("{}: bytes = {} must be a multiple of block_bytes = {}, and that of 4",
                                place("bytes"), access.bytes, access.block_bytes));
  }
  if (access.bytes / access.block_bytes > kMaxBlocks / access.gpus) {
    throw UserError(fmt::format("{}: bytes = {} are more than 2^30 blocks of {} bytes over all GPUs",
                                place("bytes"), access.bytes, access.block_bytes));
  }
}

Work work(const Problem& problem) {
  const RemoteAccess access = remote_access_of(problem);
  const int peers = access.peers == Peers::all ? access.gpus - 1 : 1;
  return {.bytes_per_gpu = static_cast<double>(access.bytes) * peers, .peers = peers};
}

std::string size_text(const Problem& problem) {
  return fmt::format("{} of {} bytes, peers {}",
                     kRemoteOperationNames[static_cast<std::size_t>(problem["operation"])], problem["bytes"],
                     kPeersNames[static_cast<std::size_t>(problem["peers"])]);
}

}  // namespace

const Workload& remote_access() {
  static const Workload workload{
      .name = "remote-access",
      .title = "Remote access",
      .summary = "every workgroup moves one block per peer",
      .fields = kFields,
      .knobs = kKnobs,
      .patterns = kPatterns,
      .usual_pattern = "grid",
      .complete = complete,
      .work = work,
      .size_text = size_text,
  };
  return workload;
}

}  // namespace tritax
