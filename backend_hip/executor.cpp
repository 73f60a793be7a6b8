#include "backend_hip/executor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>

#include "backend_hip/clock.hpp"
#include "backend_hip/executor_impl.hpp"
#include "backend_hip/lower_items.hpp"
#include "backend_hip/verify.hpp"
#include "model/core/error.hpp"
#include "model/schedule/op_traits.hpp"

namespace tritax::gpu {

namespace {

using Clock = std::chrono::steady_clock;

// Buffers that operations add onto.
std::vector<bool> summed_buffers(const Schedule& schedule) {
  std::vector<bool> summed(schedule.buffers.size(), false);
  for (const Op& op : schedule.ops) {
    for_each_write(op, [&](const Region& to, bool adds) {
      if (adds) summed[static_cast<std::size_t>(to.buffer)] = true;
    });
  }
  return summed;
}

}  // namespace

double RunTimes::longest_device_us() const {
  return device_us.empty() ? 0 : *std::max_element(device_us.begin(), device_us.end());
}

std::vector<GpuInfo> list_gpus() {
  int count = 0;
  if (hipGetDeviceCount(&count) != hipSuccess) {
    static_cast<void>(hipGetLastError());
    return {};
  }
  std::vector<GpuInfo> gpus;
  for (int device = 0; device < count; ++device) {
    hipDeviceProp_t properties{};
    TRITAX_GPU_CHECK(hipGetDeviceProperties(&properties, device));
    gpus.push_back(
        {properties.name, properties.multiProcessorCount, static_cast<double>(properties.totalGlobalMem)});
  }
  return gpus;
}

std::string runtime_versions() {
  int driver = 0;
  int runtime = 0;
  TRITAX_GPU_CHECK(hipDriverGetVersion(&driver));
  TRITAX_GPU_CHECK(hipRuntimeGetVersion(&runtime));
#if defined(TRITAX_GPU_NVIDIA)
  return fmt::format("CUDA driver {}.{}, runtime {}.{}", driver / 1000, driver % 1000 / 10, runtime / 1000,
                     runtime % 1000 / 10);
#else
  return fmt::format("HIP driver {}, runtime {}", driver, runtime);
#endif
}

void Executor::Impl::on_every_rank(const std::function<void(int)>& work) {
  std::vector<std::exception_ptr> errors(ranks_.size());
  std::vector<std::thread> threads;
  for (int r = 0; r < schedule_.ranks; ++r) {
    threads.emplace_back([&, r] {
      try {
        TRITAX_GPU_CHECK(hipSetDevice(device_of(r)));
        work(r);
      } catch (...) {
        errors[static_cast<std::size_t>(r)] = std::current_exception();
        board_->stop = 1;  // kernels that wait for this rank leave
        barrier_.abandon();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  throw_failure();
  for (const auto& error : errors) {
    if (!error) continue;
    try {
      std::rethrow_exception(error);
    } catch (const HostBarrier::Abandoned&) {
      // the failing rank reports the error
    }
  }
}

void Executor::Impl::throw_failure() const {
  std::string text;
  for (int r = 0; r < schedule_.ranks; ++r) {
    const Failure& failure = board_->of_rank[r];
    if (failure.raised == 0) continue;
    text += fmt::format("{}{}", text.empty() ? "" : "; ", describe_operation(schedule_, failure.number));
    text += failure.cause == kFlagTimeout ? fmt::format(", is {}", failure.seen)
                                          : std::string(": the copy engine did not deliver a tile");
  }
  if (text.empty()) return;
  throw UserError(fmt::format("schedule '{}' gave up after waiting {} s: {}", schedule_.name,
                              options_.spin_limit_s, text));
}

void Executor::Impl::fill(std::uint64_t seed) {
  seed_ = seed;
  const std::vector<bool> added = summed_buffers(schedule_);
  const std::vector<Input> inputs = inputs_of(schedule_);
  on_every_rank([&](int r) {
    for (std::size_t i = 0; i < schedule_.buffers.size(); ++i) {
      const Buffer& buffer = schedule_.buffers[i];
      const BufferPlace& place = heap_.buffers[i];
      const auto bytes = [](std::int32_t pitch, std::int32_t rows) {
        return static_cast<std::size_t>(pitch) * static_cast<std::size_t>(rows);
      };
      TRITAX_GPU_CHECK(hipMemset(at(r, place.offset), added[i] ? 0 : 0xff, bytes(place.pitch, buffer.rows)));
      if (place.transposed_pitch == 0) continue;
      TRITAX_GPU_CHECK(
          hipMemset(at(r, place.transposed_offset), 0xff, bytes(place.transposed_pitch, buffer.cols)));
    }
    for (const Input& input : inputs) {
      if (is_on(input.region, r)) fill_input(r, input);
    }
    TRITAX_GPU_CHECK(hipDeviceSynchronize());
  });
}

void Executor::Impl::fill_input(int r, const Input& input) {
  const Rect& rect = input.region.rect;
  const auto buffer = static_cast<std::size_t>(input.region.buffer);
  const DType dtype = schedule_.buffers[buffer].dtype;
  const BufferPlace& place = heap_.buffers[buffer];
  unsigned char* matrix = at(r, place_of(place, dtype, rect));
  unsigned char* transposed =
      place.transposed_pitch > 0 ? at(r, transposed_place_of(place, dtype, rect)) : nullptr;
  if (input.values != InputValues::zero) {
    launch_fill_random(dtype, matrix, rect.rows, rect.cols, place.pitch, transposed, place.transposed_pitch,
                       seed_of(input, seed_, r), nullptr);
    return;
  }
  const auto clear = [dtype](unsigned char* at, std::int32_t pitch, std::int32_t rows, std::int32_t cols) {
    TRITAX_GPU_CHECK(hipMemset2D(at, static_cast<std::size_t>(pitch), 0,
                                 static_cast<std::size_t>(cols) * static_cast<std::size_t>(bytes_of(dtype)),
                                 static_cast<std::size_t>(rows)));
  };
  clear(matrix, place.pitch, rect.rows, rect.cols);
  if (transposed != nullptr) clear(transposed, place.transposed_pitch, rect.cols, rect.rows);
}

void Executor::Impl::reset_rank(int r) {
  Rank& rank = ranks_[static_cast<std::size_t>(r)];
  if (heap_.flags_end > heap_.flags_begin) {
    TRITAX_GPU_CHECK(hipMemset(at(r, heap_.flags_begin), 0, heap_.flags_end - heap_.flags_begin));
  }
  TRITAX_GPU_CHECK(hipMemset(rank.spans.get(), 0, spans_bytes()));
  if (options_.stamps) TRITAX_GPU_CHECK(hipMemset(rank.stamps.get(), 0, rank.stamps.bytes()));
  if (options_.flush_bytes > 0) TRITAX_GPU_CHECK(hipMemset(rank.flush.get(), 1, rank.flush.bytes()));
  TRITAX_GPU_CHECK(hipDeviceSynchronize());
}

void Executor::Impl::launch_kernel(Rank& rank, std::int32_t kernel, std::int32_t stream) {
  Launch& launch = rank.launches[static_cast<std::size_t>(kernel)];
  if (launch.function == nullptr) return;  // a kernel without workgroups
  void* arguments[] = {&launch.params};
  const dim3 grid(launch.blocks);
  const dim3 block(launch.threads);
  const hipStream_t on = rank.streams.at(stream);
  if (launch.gang) {
    TRITAX_GPU_CHECK(
        hipLaunchCooperativeKernel(launch.function, grid, block, arguments, launch.shared_bytes, on));
  } else {
    TRITAX_GPU_CHECK(hipLaunchKernel(launch.function, grid, block, arguments, launch.shared_bytes, on));
  }
}

// Copies between two addresses that every GPU can access; the runtime chooses the engine.
void Executor::Impl::copy(Rank& rank, const HostOp& op) {
  const Op& copy = schedule_.transfers[static_cast<std::size_t>(op.transfer)];
  const auto place = [&](std::int32_t of, std::int32_t buffer, std::int32_t row, std::int32_t col) {
    const BufferPlace& it = heap_.buffers[static_cast<std::size_t>(buffer)];
    const int bytes = bytes_of(schedule_.buffers[static_cast<std::size_t>(buffer)].dtype);
    return at(of, it.offset + static_cast<std::size_t>(row) * static_cast<std::size_t>(it.pitch) +
                      static_cast<std::size_t>(col) * static_cast<std::size_t>(bytes));
  };
  const auto pitch = [&](std::int32_t buffer) {
    return static_cast<std::size_t>(heap_.buffers[static_cast<std::size_t>(buffer)].pitch);
  };
  const auto width =
      static_cast<std::size_t>(copy.rect.cols) *
      static_cast<std::size_t>(bytes_of(schedule_.buffers[static_cast<std::size_t>(copy.buffer)].dtype));
  TRITAX_GPU_CHECK(hipMemcpy2DAsync(
      place(copy.rank, copy.buffer, copy.rect.row, copy.rect.col), pitch(copy.buffer),
      place(copy.src_rank, copy.src_buffer, copy.src_row, copy.src_col), pitch(copy.src_buffer), width,
      static_cast<std::size_t>(copy.rect.rows), hipMemcpyDefault, rank.streams.at(op.stream)));
}

void Executor::Impl::run_host_program(int r) {
  Rank& rank = ranks_[static_cast<std::size_t>(r)];
  bool pending = false;  // work without a later synchronisation in the program
  for (const HostOp& op : schedule_.host[static_cast<std::size_t>(r)]) {
    switch (op.kind) {
      case HostOpKind::launch:
        launch_kernel(rank, op.kernel, op.stream);
        pending = true;
        break;
      case HostOpKind::graph_launch:
        TRITAX_GPU_CHECK(hipGraphLaunch(rank.graphs.at(op.graph), rank.streams.at(op.stream)));
        pending = true;
        break;
      case HostOpKind::stream_synchronize:
        TRITAX_GPU_CHECK(hipStreamSynchronize(rank.streams.at(op.stream)));
        break;
      case HostOpKind::device_synchronize:
        TRITAX_GPU_CHECK(hipDeviceSynchronize());
        pending = false;
        break;
      case HostOpKind::barrier:
        barrier_.arrive_and_wait();
        break;
      case HostOpKind::event_record:
        TRITAX_GPU_CHECK(hipEventRecord(rank.events.at(op.event), rank.streams.at(op.stream)));
        pending = true;
        break;
      case HostOpKind::event_wait:
        TRITAX_GPU_CHECK(hipStreamWaitEvent(rank.streams.at(op.stream), rank.events.at(op.event), 0));
        break;
      case HostOpKind::copy:
        copy(rank, op);
        pending = true;
        break;
      case HostOpKind::host_work:
        break;  // see notes()
    }
  }
  if (pending) TRITAX_GPU_CHECK(hipDeviceSynchronize());
}

void Executor::Impl::read_spans(int r, RunTimes& times) {
  std::vector<KernelSpan> spans(schedule_.kernels.size());
  TRITAX_GPU_CHECK(hipMemcpy(spans.data(), ranks_[static_cast<std::size_t>(r)].spans.get(),
                             spans.size() * sizeof(KernelSpan), hipMemcpyDeviceToHost));
  const auto us = [](unsigned long long ticks) { return static_cast<double>(ticks) / kTicksPerSecond * 1e6; };
  unsigned long long begin = ~0ULL;
  unsigned long long end = 0;
  for (std::size_t k = 0; k < spans.size(); ++k) {
    if (spans[k].end == 0) continue;
    times.kernel_us[k] = us(spans[k].end - ~spans[k].inverted_begin);
    if (spans[k].ticks > 0)
      times.clock_ghz[k] = static_cast<double>(spans[k].cycles) / (us(spans[k].ticks) * 1e3);
    begin = std::min(begin, ~spans[k].inverted_begin);
    end = std::max(end, spans[k].end);
  }
  times.device_us[static_cast<std::size_t>(r)] = end == 0 ? 0 : us(end - begin);
}

RunTimes Executor::Impl::run() {
  *board_.get() = FailureBoard();
  std::vector<Clock::time_point> begin(ranks_.size());
  std::vector<Clock::time_point> end(ranks_.size());
  RunTimes times;
  times.device_us.resize(ranks_.size());
  times.kernel_us.resize(schedule_.kernels.size());
  times.clock_ghz.resize(schedule_.kernels.size());
  on_every_rank([&](int r) {
    const auto i = static_cast<std::size_t>(r);
    reset_rank(r);
    barrier_.arrive_and_wait();
    begin[i] = Clock::now();
    run_host_program(r);
    end[i] = Clock::now();
    read_spans(r, times);
  });
  const auto longest =
      *std::max_element(end.begin(), end.end()) - *std::min_element(begin.begin(), begin.end());
  times.wall_us = std::chrono::duration<double, std::micro>(longest).count();
  return times;
}

CheckResult Executor::Impl::check() {
  ReferenceOnGpus reference(schedule_, seed_, device_count_);
  for (std::size_t level = 0; level < reference.levels(); ++level) {
    on_every_rank([&](int r) { reference.evaluate(level, r); });
  }
  std::vector<std::vector<BufferComparison>> found(ranks_.size());
  on_every_rank([&](int r) { found[static_cast<std::size_t>(r)] = reference.compare(r, heap_, at(r, 0)); });
  return judge(found);
}

namespace {

// Mean clock of the compute unit during an operation. The device's clock may advance in steps of 32 ns
// (NVIDIA H200), which is too coarse for operations under a microsecond.
double clock_of(const OpStamp& stamp) {
  constexpr double kLeastNs = 1000;
  const double ns = static_cast<double>(stamp.end.ticks - stamp.begin.ticks) / kTicksPerSecond * 1e9;
  if (ns < kLeastNs) return 0;
  return static_cast<double>(stamp.end.cycles - stamp.begin.cycles) / ns;
}

}  // namespace

// The stamp of an item's own claim counts as another execution of its workgroup's claim.
std::vector<StampedOp> Executor::Impl::stamps() {
  struct Raw {
    std::int32_t number;
    std::int32_t cu;
    OpStamp stamp;
    std::int32_t workgroup;
  };
  std::vector<StampedOp> all;
  if (!options_.stamps) return all;
  unsigned long long first = ~0ULL;
  std::vector<Raw> raw;
  for (int r = 0; r < schedule_.ranks; ++r) {
    const Rank& rank = ranks_[static_cast<std::size_t>(r)];
    TRITAX_GPU_CHECK(hipSetDevice(device_of(r)));
    const std::vector<OpStamp> stamps = download<OpStamp>(rank.stamps);
    const std::vector<std::uint32_t> units = download<std::uint32_t>(rank.compute_units);
    const auto offset = static_cast<unsigned long long>(rank.clock_offset);
    const std::vector<std::uint32_t> drawn_by = download<std::uint32_t>(rank.item_workgroups);
    const auto add = [&](std::size_t at, std::uint32_t op, std::uint32_t unit, std::int32_t workgroup) {
      OpStamp stamp = stamps[at];
      if (stamp.begin.ticks == 0 || stamp.end.ticks == 0) return;
      stamp.begin.ticks -= offset;
      stamp.end.ticks -= offset;
      raw.push_back({static_cast<std::int32_t>(op), static_cast<std::int32_t>(unit), stamp, workgroup});
      first = std::min(first, stamp.begin.ticks);
    };
    std::size_t number = 0;  // of the workgroup on this rank
    std::size_t item_number = 0;
    for (std::size_t k = 0; k < schedule_.kernels.size(); ++k) {
      const Kernel& kernel = schedule_.kernels[k];
      if (kernel.rank != r) continue;
      for (std::size_t w = 0; w < kernel.workgroups.size(); ++w) {
        const Workgroup& workgroup = kernel.workgroups[w];
        for (std::uint32_t i = workgroup.first_op; i < workgroup.first_op + workgroup.op_count; ++i) {
          add(i, i, units[number + w], -1);
        }
      }
      for (std::size_t i = 0; i < kernel.items.size(); ++i) {
        const Item& item = kernel.items[i];
        const std::uint32_t w = drawn_by[item_number++];
        for (std::uint32_t o = item.first_op; o < item.first_op + item.op_count; ++o) {
          add(o, o, units[number + w], static_cast<std::int32_t>(w));
        }
        const std::uint32_t claim =
            claim_of_item(schedule_, kernel.workgroups[w], static_cast<std::int32_t>(i));
        add(static_cast<std::size_t>(number_of_item_claim(schedule_, k, i)), claim, units[number + w], -1);
      }
      number += kernel.workgroups.size();
    }
  }
  const auto us = [](unsigned long long ticks) { return static_cast<double>(ticks) / kTicksPerSecond * 1e6; };
  for (const Raw& one : raw) {
    const auto& [begin, end] = one.stamp;
    all.push_back({one.number, one.cu, us(begin.ticks - first), us(end.ticks - first), clock_of(one.stamp),
                   one.workgroup});
  }
  return all;
}

Executor::Executor(const Schedule& schedule, const ExecutorOptions& options)
    : impl_(std::make_unique<Impl>(schedule, options)) {}
Executor::~Executor() = default;
void Executor::fill(std::uint64_t seed) { impl_->fill(seed); }
RunTimes Executor::run() { return impl_->run(); }
CheckResult Executor::check() { return impl_->check(); }
std::vector<StampedOp> Executor::stamps() { return impl_->stamps(); }
double Executor::clock_error_us() const { return impl_->clock_error_us_; }
const std::vector<std::string>& Executor::notes() const { return impl_->notes_; }

}  // namespace tritax::gpu
