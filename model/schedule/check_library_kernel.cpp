// Checks the values by which a library kernel is looked up: model/cost/kernel_rates.hpp divides by some of
// these values and relies on the others.
#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "model/schedule/findings.hpp"
#include "model/schedule/library_kernel.hpp"

namespace tritax {

namespace {

constexpr double kMostBytes = 1e18;

// Routines whose rate needs bytes.
bool needs_bytes(LibraryRoutine routine) {
  return routine == LibraryRoutine::posts || routine == LibraryRoutine::dispatches;
}

// Counts that a routine needs: the ranks of a collective share its bytes, the channels share its rate;
// attention is looked up by its sizes.
bool needs(LibraryRoutine routine, std::int32_t LibraryKernel::*count) {
  if (count == &LibraryKernel::ranks) return is_collective(routine) || routine == LibraryRoutine::posts;
  if (count == &LibraryKernel::channels) {
    return is_collective(routine) || routine == LibraryRoutine::block_copy;
  }
  if (count == &LibraryKernel::chunks) return is_all_reduce(routine);
  const bool size = count == &LibraryKernel::rows || count == &LibraryKernel::columns ||
                    count == &LibraryKernel::depth || count == &LibraryKernel::sequences ||
                    count == &LibraryKernel::heads || count == &LibraryKernel::kv_heads;
  return size && routine == LibraryRoutine::attention;
}

}  // namespace

void check_library_kernel(const Schedule& schedule, std::size_t index, Findings& findings) {
  const Kernel& kernel = schedule.kernels[index];
  const LibraryKernel& library = kernel.library;
  const LibraryRoutine routine = library.routine;
  const auto refuse = [&](const std::string& message) {
    findings.add(Finding::Kind::out_of_range, describe_kernel(schedule, index), "library: " + message);
  };
  if (routine == LibraryRoutine::none) {
    if (library != LibraryKernel{}) refuse("it has no routine, and so needs nothing else");
    return;
  }
  if (kernel.start_ns != 0) {
    refuse(fmt::format("start_ns is {} beside it; the start of such a kernel is looked up", kernel.start_ns));
  }
  if ((is_collective(routine) || routine == LibraryRoutine::all_pairs) && kernel.payload_share != 1) {
    refuse(fmt::format("payload_share is {} beside it; that of a collective is looked up",
                       kernel.payload_share));
  }
  const double least_bytes = needs_bytes(routine) ? 1 : 0;
  if (!(library.bytes >= least_bytes && library.bytes <= kMostBytes)) {
    refuse(fmt::format("bytes is {}; give a number from {} to {:g}", library.bytes, least_bytes, kMostBytes));
  }
  for (const LibraryKernelCount& count : kLibraryKernelCounts) {
    const std::int32_t value = library.*count.member;
    const std::int32_t least = needs(routine, count.member) ? 1 : 0;
    const std::int32_t most = count.member == &LibraryKernel::ranks ? schedule.ranks : count.most;
    if (value >= least && value <= most) continue;
    refuse(fmt::format("{} is {}; give a number from {} to {}", count.name, value, least, most));
  }
}

}  // namespace tritax
