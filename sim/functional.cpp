#include "sim/functional.hpp"

#include <fmt/format.h>

#include <Eigen/Core>
#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "model/core/error.hpp"
#include "model/schedule/check.hpp"
#include "model/schedule/findings.hpp"
#include "model/schedule/items.hpp"
#include "model/schedule/op_traits.hpp"
#include "model/schedule/op_views.hpp"
#include "model/timeline/op_name.hpp"
#include "sim/functional_attention.hpp"
#include "sim/functional_codec.hpp"
#include "sim/functional_memory.hpp"
#include "sim/functional_reference.hpp"
#include "sim/happens_before.hpp"
#include "sim/simulate.hpp"

namespace tritax {

namespace {

constexpr std::size_t kMaxStaleReads = 20;
constexpr std::uint32_t kCopyEngine =
    ~std::uint32_t{0};  // in place of a kernel: the operation belongs to the host
constexpr std::int64_t kMaxElements = std::int64_t{1} << 28;  // of all buffers and ranks: 2 GB

constexpr double kRightInFp32 = 1e-6;
constexpr double kRightInFp64 = 1e-12;

// Every buffer of every rank, and every expected value, is held in memory.
void check_size(const Schedule& schedule) {
  std::int64_t elements = 0;
  for (const Buffer& buffer : schedule.buffers) {
    const std::int64_t own = std::int64_t{buffer.rows} * buffer.cols;
    if (own > kMaxElements / schedule.ranks - elements) {
      throw UserError(
          fmt::format("schedule '{}': '{}' is {} x {} on each of {} ranks, too much to execute functionally; "
                      "all buffers of all ranks together may have {} elements",
                      schedule.name, buffer.name, buffer.rows, buffer.cols, schedule.ranks, kMaxElements));
    }
    elements += own;
  }
  std::int64_t expected = 0;
  for (const ReferenceOp& op : schedule.reference) {
    expected += std::int64_t{op.to.rect.rows} * op.to.rect.cols;
    if (expected > kMaxElements) {
      throw UserError(fmt::format(
          "schedule '{}': its reference operations write more than the {} elements that functional execution "
          "holds",
          schedule.name, kMaxElements));
    }
  }
}

const Schedule& executable(const Schedule& schedule) {
  check_size(schedule);
  if (schedule.reference.empty()) {
    throw UserError(
        fmt::format("schedule '{}': no reference, so there is nothing to compare with; give what the buffers "
                    "must hold at the end (docs/schedule-format.md: inputs, reference)",
                    schedule.name));
  }
  return schedule;
}

// Which buffers values flow from and to, and which writes into buffers lose digits.
class DigitsKept {
 public:
  explicit DigitsKept(const Schedule& schedule)
      : schedule_(schedule), rounds_(schedule.buffers.size(), 0), counts_(schedule.buffers.size(), 0) {
    for (const Kernel& kernel : schedule.kernels) {
      for (std::size_t p = 0; p < program_count(kernel); ++p) add(kernel.rank, program_of(kernel, p));
    }
    for (const Op& op : schedule.transfers) add_copy(op);
    for (const ReferenceOp& op : schedule.reference) count(op.to.buffer);
  }

  // Whether all expected values are computed in fp64 alone.
  bool all_of_fp64() const {
    for (std::size_t b = 0; b < rounds_.size(); ++b) {
      if (counts_[b] != 0 && rounds_[b] != 0) return false;
    }
    return true;
  }

 private:
  bool is_wide(std::int16_t buffer) const {
    return schedule_.buffers[static_cast<std::size_t>(buffer)].dtype == DType::fp64;
  }
  // The writes of a program depend on all its reads.
  void add(std::int32_t rank, const Workgroup& program) {
    std::set<std::int16_t> read;
    std::set<std::int16_t> written;
    for (const Op& op : ops_of(schedule_, program)) {
      if (op.kind == OpKind::copy) {
        add_copy(op);
        continue;
      }
      for_each_read(op, rank, [&](const Region& region) { read.insert(region.buffer); });
      for_each_write(op, [&](const Region& region, bool) { written.insert(region.buffer); });
    }
    for (const std::int16_t to : written) {
      if (!is_wide(to)) rounds_[static_cast<std::size_t>(to)] = 1;
      for (const std::int16_t from : read) sources_[to].insert(from);
    }
  }
  void add_copy(const Op& op) {
    if (is_wide(op.src_buffer) && !is_wide(op.buffer)) rounds_[static_cast<std::size_t>(op.buffer)] = 1;
    sources_[op.buffer].insert(op.src_buffer);
  }
  void count(std::int16_t buffer) {
    char& counts = counts_[static_cast<std::size_t>(buffer)];
    if (counts != 0) return;
    counts = 1;
    for (const std::int16_t source : sources_[buffer]) count(source);
  }

  const Schedule& schedule_;
  std::map<std::int16_t, std::set<std::int16_t>> sources_;  // by buffer that is written
  std::vector<char> rounds_;                                // by buffer: some write into it loses digits
  std::vector<char> counts_;                                // by buffer: expected values depend on it
};

// The largest error that a right schedule can have against its reference.
double right_within(const Schedule& schedule) {
  return DigitsKept(schedule).all_of_fp64() ? kRightInFp64 : kRightInFp32;
}

// Effects at its end of an operation that has started.
struct OpenOp {
  std::uint32_t op = 0;
  Eigen::MatrixXd values;
  Eigen::MatrixXd sums;  // attend_backward: what it writes, beside the accumulator
  std::optional<FunctionalMemory::OpenWrite> write;  // store, copy, atomic_add
  bool ended = false;                                // … but waits for those before it in its group
};

struct WorkgroupState {
  Eigen::MatrixXd accumulator;  // 0 x 0: empty
  bool merges = false;  // the accumulator is a partial of attention: its last column holds log-sum-exps
  bool stored = false;  // a matmul starts from zero
  std::int32_t first_row = -1;  // of a sparse_product, parts of whose result may be written out
  std::vector<OpenOp> open;     // the store in flight, and the current operation or group, in program order
};

}  // namespace

struct FunctionalExecutor::State {
  State(const Schedule& s, std::uint64_t seed)
      : schedule(executable(s)),
        memory(filled(s, seed)),
        order(s),
        reference(s, memory),
        errors_of_codecs(codec_errors(s)) {
    copies.resize(schedule.host.size());
    for (const Kernel& kernel : schedule.kernels) workgroups.emplace_back(kernel.workgroups.size());
  }

  static FunctionalMemory filled(const Schedule& schedule, std::uint64_t seed) {
    FunctionalMemory memory(schedule);
    fill_inputs(schedule, seed, memory);
    return memory;
  }

  const Op& op_at(const OpPlace& place) const { return op_of(schedule, place); }
  WorkgroupState& workgroup_at(const OpPlace& place) { return workgroups[place.kernel][place.workgroup]; }
  int rank_of(const OpPlace& place) const { return schedule.kernels[place.kernel].rank; }
  std::string describe(const OpPlace& place) const {
    if (place.kernel == kCopyEngine)
      return describe_host_op(schedule, static_cast<std::size_t>(place.rank), place.op);
    return describe_op(schedule, place.kernel, place.workgroup, place.op);
  }

  Eigen::MatrixXd read(const OpPlace& place, const Region& region, bool for_add);
  void report(const OpPlace& reader, const Region& region, const FunctionalMemory::Fault& fault);
  const Eigen::MatrixXd& accumulator_for(const OpPlace& place, std::int32_t rows, std::int32_t cols);
  Eigen::MatrixXd written_out(const OpPlace& place, const Rect& rect);
  Eigen::MatrixXd sparse_rows(const OpPlace& place, const Op& op);
  void start(const OpPlace& place);
  void finish(const OpPlace& place);
  void take_effect(const OpPlace& place, OpenOp open);
  void start_copy(int rank, std::uint32_t host_op);
  void finish_copy(int rank, std::uint32_t host_op);
  void add_to_accumulator(const OpPlace& place, Eigen::MatrixXd values);

  const Schedule& schedule;
  FunctionalMemory memory;
  HappensBefore order;
  FunctionalReference reference;
  std::vector<double> errors_of_codecs;                 // by buffer
  std::vector<std::vector<WorkgroupState>> workgroups;  // by kernel
  std::vector<std::map<std::uint32_t, OpenOp>>
      copies;  // of copy engines that have started, by rank and operation
  std::vector<std::string> stale_reads;
};

void FunctionalExecutor::State::report(const OpPlace& reader, const Region& region,
                                       const FunctionalMemory::Fault& fault) {
  if (stale_reads.size() >= kMaxStaleReads) {
    return;
  }
  const Buffer& buffer = schedule.buffers[static_cast<std::size_t>(region.buffer)];
  std::string why;
  switch (fault.kind) {
    case FunctionalMemory::Fault::Kind::unwritten:
      why = "was never written";
      break;
    case FunctionalMemory::Fault::Kind::in_flight:
      why = fmt::format("is still being written by {}", describe(fault.writer));
      break;
    case FunctionalMemory::Fault::Kind::unordered:
      why = fmt::format(
          "was written by {}, which no signal and wait, kernel end, stream or barrier orders before it",
          describe(fault.writer));
      break;
  }
  stale_reads.push_back(fmt::format("{} reads tile {} ({}) of rank {}: element ({}, {}) {}", describe(reader),
                                    tile_name(buffer, region.rect), region_name(buffer, region.rect),
                                    region.rank, fault.row, fault.col, why));
}

Eigen::MatrixXd FunctionalExecutor::State::read(const OpPlace& place, const Region& region, bool for_add) {
  const auto is_before = [&](Epoch write) {
    return place.kernel == kCopyEngine ? order.is_before_copy(write, place.rank, place.op)
                                       : order.is_before(write, place.kernel, place.workgroup, place.op);
  };
  if (const auto fault = memory.find_fault(region, for_add, is_before)) {
    report(place, region, *fault);
  }
  return memory.read(region);
}

// The accumulator, which must have rows × cols, log-sum-exps included.
const Eigen::MatrixXd& FunctionalExecutor::State::accumulator_for(const OpPlace& place, std::int32_t rows,
                                                                  std::int32_t cols) {
  const Eigen::MatrixXd& accumulator = workgroup_at(place).accumulator;
  if (accumulator.rows() != rows || accumulator.cols() != cols) {
    throw UserError(
        fmt::format("{}: the rectangle is {} x {}, the accumulator {} x {}; they must be the same",
                    describe(place), rows, cols, accumulator.rows(), accumulator.cols()));
  }
  return accumulator;
}

// Values that a store or an atomic addition writes.
Eigen::MatrixXd FunctionalExecutor::State::written_out(const OpPlace& place, const Rect& rect) {
  WorkgroupState& workgroup = workgroup_at(place);
  if (workgroup.accumulator.size() == 0 && schedule.kernels[place.kernel].registers_filled) {
    // Unspecified values must not pass for a result.
    return Eigen::MatrixXd::Constant(rect.rows, rect.cols, std::numeric_limits<double>::quiet_NaN());
  }
  workgroup.stored = true;
  if (workgroup.first_row >= 0) {
    return workgroup.accumulator.middleRows(rect.row - workgroup.first_row, rect.rows);
  }
  const bool result_alone = workgroup.merges && workgroup.accumulator.cols() == rect.cols + 1;
  if (result_alone) return accumulator_for(place, rect.rows, rect.cols + 1).leftCols(rect.cols);
  return accumulator_for(place, rect.rows, rect.cols);
}

// Result of a sparse_product: for every row the sum over its nonzeros in the range of the operation. The
// elements of x that the nonzeros name must be written; other elements are not read.
Eigen::MatrixXd FunctionalExecutor::State::sparse_rows(const OpPlace& place, const Op& op) {
  const SparseMatrix& matrix = matrix_of(schedule, op);
  Eigen::MatrixXd sums = Eigen::MatrixXd::Zero(op.rect.rows, 1);
  if (op.k_end == op.k_begin) return sums;
  const int rank = rank_of(place);
  const Eigen::MatrixXd values = read(place, nonzeros_of(op, rank), false);
  std::int32_t row = op.rect.row;
  for (std::int32_t k = op.k_begin; k < op.k_end; ++k) {
    while (k >= matrix.end(row)) ++row;
    const Region element{SparseView(op).x(), rank, {matrix.columns[static_cast<std::size_t>(k)], 0, 1, 1}};
    sums(row - op.rect.row, 0) += values(0, k - op.k_begin) * read(place, element, false)(0, 0);
  }
  return sums;
}

void FunctionalExecutor::State::start(const OpPlace& place) {
  const Epoch epoch = order.op_started(place.kernel, place.workgroup, place.op);
  const Op& op = op_at(place);
  const int rank = rank_of(place);
  OpenOp open;
  open.op = place.op;
  switch (traits_of(op.kind).reads) {
    case Reads::nothing:
      if (!is_asynchronous(op.kind)) return;  // synchronisation has no data of its own
      open.values = written_out(place, op.rect);
      break;
    case Reads::operands: {
      const auto a = read(place, a_of(op, rank), false);
      const auto b = read(place, b_of(op, rank), false);
      open.values = a * b;
      break;
    }
    case Reads::heads: {
      const auto q = read(place, {op.buffer, rank, op.rect}, false);
      const auto k = read(place, keys_of(op, rank), false);
      const auto v = read(place, values_of(op, rank), false);
      std::optional<VisibleKeys> visible;
      const AttendView view(op);
      if (view.is_masked()) visible = {std::int64_t{view.first_unseen()} - op.k_begin, view.rows_alike()};
      open.values = attention_partial(q, k, v, visible);
      break;
    }
    case Reads::backward: {
      const BackwardView view(op);
      std::optional<std::int64_t> visible;
      if (view.is_masked()) visible = std::int64_t{view.limit()} + op.k_begin - op.rect.row;
      AttentionGradients gradients =
          attention_gradients(read(place, queries_of_backward(op, rank, op.src_buffer), false),
                              read(place, {op.buffer, rank, op.rect}, false),
                              read(place, queries_of_backward(op, rank, op.b_buffer), false),
                              read(place, statistics_of(op, rank), false), visible);
      open.values = std::move(gradients.kv);
      open.sums = std::move(gradients.q);
      break;
    }
    case Reads::sparse:
      open.values = sparse_rows(place, op);
      break;
    case Reads::tile:
      open.values = read(place, tile_of(op), false);
      break;
    case Reads::source:
      open.values = read(place, source_of(op), false);
      break;
  }
  for_each_write(op, [&](const Region& to, bool adds) {
    if (adds) read(place, to, true);
    const Codec codec = schedule.buffers[static_cast<std::size_t>(to.buffer)].codec;
    open.values = after_codec(codec, std::move(open.values));
    open.write = memory.begin_write(to, adds, epoch, place);
  });
  workgroup_at(place).open.push_back(std::move(open));
}

void FunctionalExecutor::State::add_to_accumulator(const OpPlace& place, Eigen::MatrixXd values) {
  WorkgroupState& workgroup = workgroup_at(place);
  const OpKind kind = op_at(place).kind;
  const bool from_zero = multiplies(kind) && workgroup.stored;
  if (from_zero || workgroup.accumulator.size() == 0) {
    workgroup.accumulator = std::move(values);
    workgroup.merges = merges(kind);
    workgroup.first_row = -1;
  } else {
    const auto& held = accumulator_for(place, static_cast<std::int32_t>(values.rows()),
                                       static_cast<std::int32_t>(values.cols()));
    if (kind == OpKind::rms_norm) {
      workgroup.accumulator = normalised_rows(held).cwiseProduct(values);
    } else if (kind == OpKind::row_dot) {
      const Eigen::MatrixXd products = held.cwiseProduct(values).rowwise().sum();
      workgroup.accumulator = products;
    } else {
      workgroup.accumulator = merges(kind) ? merged_partials(held, values) : held + values;
    }
  }
  workgroup.stored = false;
}

// The values of an operation that fills the accumulator enter it.
void FunctionalExecutor::State::take_effect(const OpPlace& place, OpenOp open) {
  const Op& op = op_at(place);
  if (traits_of(op.kind).accumulator != AccumulatorUse::replaced)
    return add_to_accumulator(place, std::move(open.values));
  WorkgroupState& workgroup = workgroup_at(place);
  workgroup.accumulator = std::move(open.values);
  workgroup.merges = workgroup.stored = false;
  workgroup.first_row = op.kind == OpKind::sparse_product ? op.rect.row : -1;
}

void FunctionalExecutor::State::finish(const OpPlace& place) {
  WorkgroupState& workgroup = workgroup_at(place);
  const auto at = std::find_if(workgroup.open.begin(), workgroup.open.end(),
                               [&](const OpenOp& open) { return open.op == place.op; });
  if (at != workgroup.open.end() && multiplies(op_at(place).kind) && at->write) {
    memory.end_write(*at->write, at->sums);
    at->write.reset();
  }
  if (at != workgroup.open.end() && at->write) {
    memory.end_write(*at->write, at->values);
    workgroup.open.erase(at);
  } else if (at != workgroup.open.end()) {
    // What a group leaves in the accumulator does not depend on which of its operations ends first.
    at->ended = true;
    const auto fills = [](const OpenOp& open) { return !open.write; };
    while (true) {
      const auto next = std::find_if(workgroup.open.begin(), workgroup.open.end(), fills);
      if (next == workgroup.open.end() || !next->ended) break;
      OpenOp open = std::move(*next);
      workgroup.open.erase(next);
      OpPlace of = place;
      of.op = open.op;
      take_effect(of, std::move(open));
    }
  }
  if (draws_items(op_at(place))) {  // registers start empty, whatever was drawn
    workgroup.accumulator = Eigen::MatrixXd();
    workgroup.merges = workgroup.stored = false;
    workgroup.first_row = -1;
  }
  order.op_finished(place.kernel, place.workgroup, place.op);
}

void FunctionalExecutor::State::start_copy(int rank, std::uint32_t host_op) {
  const Epoch epoch = order.copy_started(rank, host_op);
  const HostOp& posted = schedule.host[static_cast<std::size_t>(rank)][host_op];
  const Op& op = schedule.transfers[static_cast<std::size_t>(posted.transfer)];
  const OpPlace place{kCopyEngine, 0, host_op, rank, 0};
  OpenOp open;
  open.values = read(place, source_of(op), false);
  open.write = memory.begin_write(tile_of(op), false, epoch, place);
  copies[static_cast<std::size_t>(rank)].emplace(host_op, std::move(open));
}

void FunctionalExecutor::State::finish_copy(int rank, std::uint32_t host_op) {
  const auto open = copies[static_cast<std::size_t>(rank)].find(host_op);
  memory.end_write(*open->second.write, open->second.values);
  copies[static_cast<std::size_t>(rank)].erase(open);
  order.copy_finished(rank, host_op);
}

FunctionalExecutor::FunctionalExecutor(const Schedule& schedule, std::uint64_t seed)
    : state_(std::make_unique<State>(schedule, seed)) {}

FunctionalExecutor::~FunctionalExecutor() = default;

void FunctionalExecutor::op_started(const OpPlace& place, double /*time_ns*/) { state_->start(place); }

void FunctionalExecutor::op_finished(const OpPlace& place, double /*time_ns*/) { state_->finish(place); }

void FunctionalExecutor::kernel_started(std::uint32_t kernel, double /*time_ns*/) {
  state_->order.kernel_started(kernel);
  // Registers do not outlive a launch.
  auto& workgroups = state_->workgroups[kernel];
  std::fill(workgroups.begin(), workgroups.end(), WorkgroupState{});
}

void FunctionalExecutor::kernel_finished(std::uint32_t kernel, double /*time_ns*/) {
  state_->order.kernel_finished(kernel);
}

void FunctionalExecutor::copy_started(int rank, std::uint32_t host_op, int /*engine*/, double /*time_ns*/) {
  state_->start_copy(rank, host_op);
}

void FunctionalExecutor::copy_finished(int rank, std::uint32_t host_op, double /*time_ns*/) {
  state_->finish_copy(rank, host_op);
}

void FunctionalExecutor::host_op_started(int rank, std::uint32_t host_op, double /*time_ns*/) {
  state_->order.host_op_started(rank, host_op);
}

void FunctionalExecutor::host_op_finished(int rank, std::uint32_t host_op, double /*time_ns*/) {
  state_->order.host_op_finished(rank, host_op);
}

FunctionalResult FunctionalExecutor::result() const {
  FunctionalResult result;
  result.stale_reads = state_->stale_reads;
  result.right_within =
      right_within(state_->schedule) + state_->reference.largest_share(state_->errors_of_codecs);
  for (int rank = 0; rank < state_->schedule.ranks; ++rank) {
    result.error_of_rank.push_back(state_->reference.error_on(rank, state_->memory));
    result.max_relative_error = std::max(result.max_relative_error, result.error_of_rank.back());
  }
  return result;
}

FunctionalResult execute_functionally(const Schedule& schedule, const Machine& machine, std::uint64_t seed,
                                      const std::atomic<bool>* stop) {
  // The execution itself finds unordered reads and deadlocks; only schedules that cannot be executed at all
  // are refused here.
  std::vector<Finding> refused = check_schedule(schedule, std::numeric_limits<std::size_t>::max());
  std::erase_if(refused, [](const Finding& finding) {
    return finding.kind != Finding::Kind::out_of_range && finding.kind != Finding::Kind::meaningless;
  });
  require_sound(refused, fmt::format("schedule '{}'", schedule.name));
  FunctionalExecutor executor(schedule, seed);
  SimulationOptions options;
  options.observer = &executor;
  options.stop = stop;
  simulate(schedule, machine, options);
  return executor.result();
}

}  // namespace tritax
