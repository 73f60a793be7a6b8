#include "backend_hip/sparse_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <set>

#include "backend_hip/gpu_memory.hpp"
#include "backend_hip/kernels.hpp"
#include "backend_hip/table.hpp"
#include "model/core/error.hpp"
#include "model/machine/machine.hpp"

namespace tritax::gpu {

#if defined(TRITAX_GPU_NVIDIA)

namespace {

// The used part of cusparse.h, so that the header is not needed to build.
using Create = int (*)(void**);
using CreateCsr = int (*)(void**, std::int64_t, std::int64_t, std::int64_t, void*, void*, void*, int, int,
                          int, int);
using CreateVector = int (*)(void**, std::int64_t, void*, int);
using Destroy = int (*)(void*);
using BufferSize = int (*)(void*, int, const void*, void*, void*, const void*, void*, int, int, std::size_t*);
using Multiply = int (*)(void*, int, const void*, void*, void*, const void*, void*, int, int, void*);
constexpr int kNotTransposed = 0;
constexpr int kIndex32 = 2;
constexpr int kFromZero = 0;

struct Algorithm {
  std::string_view form;
  int number;  // cusparseSpMVAlg_t
};
constexpr std::array<Algorithm, 2> kAlgorithms{{{"csr-default", 0}, {"csr-alg2", 3}}};

int cuda_type_of(DType dtype) {
  switch (dtype) {
    case DType::fp32:
      return CUDA_R_32F;
    case DType::fp16:
      return CUDA_R_16F;
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::fp64:  // y is fp32 here
    case DType::fp8:
      break;
  }
  throw UserError(fmt::format("{}: cuSPARSE multiplies fp32, fp16 and bf16", name_of(dtype)));
}

class CuSparse {
 public:
  CuSparse() {
    for (const char* name : {"libcusparse.so.12", "libcusparse.so.13", "libcusparse.so"}) {
      if ((library_ = dlopen(name, RTLD_NOW)) != nullptr) break;
    }
    if (library_ == nullptr) {
      throw UserError(
          "cuSPARSE cannot be loaded: libcusparse.so.12, .13 or without number is not on the library path");
    }
    require(function<Create>("cusparseCreate")(&handle_), "cusparseCreate");
  }
  ~CuSparse() { static_cast<void>(function<Destroy>("cusparseDestroy")(handle_)); }
  CuSparse(const CuSparse&) = delete;
  CuSparse& operator=(const CuSparse&) = delete;

  template <class Function>
  Function function(const char* name) const {
    void* found = dlsym(library_, name);
    if (found == nullptr) throw UserError(fmt::format("cuSPARSE has no {}", name));
    return reinterpret_cast<Function>(found);
  }
  bool has(const char* name) const { return dlsym(library_, name) != nullptr; }
  void* handle() const { return handle_; }

  static void require(int status, const char* call) {
    if (status != 0) throw UserError(fmt::format("{} fails with status {}", call, status));
  }

 private:
  void* library_ = nullptr;
  void* handle_ = nullptr;
};

// A, x and y on the GPU, and the correct y.
class Operands {
 public:
  Operands(const CuSparse& library, const SparseMatrix& matrix, DType dtype, std::uint64_t seed)
      : rows_(matrix.rows),
        type_(cuda_type_of(dtype)),
        offsets_(upload(0, matrix.offsets)),
        columns_(upload(0, matrix.columns)),
        values_(0, static_cast<std::size_t>(matrix.nonzeros()) * static_cast<std::size_t>(bytes_of(dtype))),
        x_(0, static_cast<std::size_t>(matrix.cols) * static_cast<std::size_t>(bytes_of(dtype))),
        y_(0, static_cast<std::size_t>(rows_) * sizeof(float)),
        right_(0, static_cast<std::size_t>(rows_) * sizeof(double)),
        destroy_matrix_(library.function<Destroy>("cusparseDestroySpMat")),
        destroy_vector_(library.function<Destroy>("cusparseDestroyDnVec")) {
    const std::int32_t count = matrix.nonzeros();
    const int bytes = bytes_of(dtype);
    launch_fill_random(dtype, values_.get(), 1, count, 0, nullptr, 0, seed, nullptr);
    launch_fill_random(dtype, x_.get(), matrix.cols, 1, bytes, nullptr, 0, seed + 1, nullptr);
    const DeviceMemory wide_values(0, static_cast<std::size_t>(count) * sizeof(double));
    const DeviceMemory wide_x(0, static_cast<std::size_t>(matrix.cols) * sizeof(double));
    launch_widen(dtype, values_.get(), 0, 1, count, wide_values.as<double>(), count, false, nullptr);
    launch_widen(dtype, x_.get(), bytes, matrix.cols, 1, wide_x.as<double>(), 1, false, nullptr);
    launch_sparse_reference({offsets_.as<std::int32_t>(), columns_.as<std::int32_t>(),
                             wide_values.as<double>(), wide_x.as<double>(), rows_},
                            right_.as<double>(), nullptr);
    TRITAX_GPU_CHECK(hipDeviceSynchronize());
    CuSparse::require(library.function<CreateCsr>("cusparseCreateCsr")(
                          &csr, rows_, matrix.cols, count, offsets_.get(), columns_.get(), values_.get(),
                          kIndex32, kIndex32, kFromZero, type_),
                      "cusparseCreateCsr");
    const auto create = library.function<CreateVector>("cusparseCreateDnVec");
    CuSparse::require(create(&vector_x, matrix.cols, x_.get(), type_), "cusparseCreateDnVec");
    CuSparse::require(create(&vector_y, rows_, y_.get(), CUDA_R_32F), "cusparseCreateDnVec");
  }
  ~Operands() {
    static_cast<void>(destroy_matrix_(csr));
    static_cast<void>(destroy_vector_(vector_x));
    static_cast<void>(destroy_vector_(vector_y));
  }
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;

  void spoil() const { TRITAX_GPU_CHECK(hipMemset(y_.get(), 0xff, y_.bytes())); }

  // ‖y - correct‖ / ‖correct‖.
  double relative_error() const {
    constexpr auto kPitch = static_cast<std::int32_t>(sizeof(float));
    const DeviceMemory sums = upload(0, std::vector<Comparison>(1));
    launch_squares(rows_, 1, right_.as<double>(), 1, sums.as<Comparison>(), nullptr);
    launch_compare(DType::fp32, y_.get(), kPitch, rows_, 1, right_.as<double>(), 1, rows_,
                   sums.as<Comparison>(), nullptr);
    return relative_error_of(download<Comparison>(sums)[0]);
  }

  void* csr = nullptr;
  void* vector_x = nullptr;
  void* vector_y = nullptr;

 private:
  std::int32_t rows_;
  int type_;
  DeviceMemory offsets_, columns_, values_, x_, y_, right_;
  Destroy destroy_matrix_, destroy_vector_;
};

class EventPair {
 public:
  EventPair() {
    TRITAX_GPU_CHECK(hipEventCreate(&begin));
    TRITAX_GPU_CHECK(hipEventCreate(&end));
  }
  ~EventPair() {
    static_cast<void>(hipEventDestroy(begin));
    static_cast<void>(hipEventDestroy(end));
  }
  EventPair(const EventPair&) = delete;
  EventPair& operator=(const EventPair&) = delete;
  hipEvent_t begin{};
  hipEvent_t end{};
};

VendorSparseTimes time_algorithm(const CuSparse& library, const Operands& operands,
                                 const Algorithm& algorithm, const RunOptions& run) {
  constexpr double kMostError = 1e-4;  // of sums in fp32, as in verify.cpp
  using HostClock = std::chrono::steady_clock;
  const float one = 1, zero = 0;
  std::size_t bytes = 0;
  CuSparse::require(library.function<BufferSize>("cusparseSpMV_bufferSize")(
                        library.handle(), kNotTransposed, &one, operands.csr, operands.vector_x, &zero,
                        operands.vector_y, CUDA_R_32F, algorithm.number, &bytes),
                    "cusparseSpMV_bufferSize");
  const DeviceMemory room(0, bytes + 1);
  const DeviceMemory flush(0, static_cast<std::size_t>(run.executor.flush_bytes) + 1);
  const auto call = [&](const char* name) {
    CuSparse::require(library.function<Multiply>(name)(library.handle(), kNotTransposed, &one, operands.csr,
                                                       operands.vector_x, &zero, operands.vector_y,
                                                       CUDA_R_32F, algorithm.number, room.get()),
                      name);
  };
  if (library.has("cusparseSpMV_preprocess")) call("cusparseSpMV_preprocess");  // of CUDA 12.4 and newer
  operands.spoil();
  call("cusparseSpMV");
  VendorSparseTimes times;
  times.form = algorithm.form;
  times.relative_error = operands.relative_error();
  if (!(times.relative_error <= kMostError)) {
    throw UserError(
        fmt::format("cuSPARSE, {}: the relative error is {:.2e}", algorithm.form, times.relative_error));
  }
  const EventPair events;
  std::vector<double> device, wall;
  for (int i = 0; i < run.warmup + run.repeats; ++i) {
    TRITAX_GPU_CHECK(hipMemset(flush.get(), 1, flush.bytes()));
    TRITAX_GPU_CHECK(hipEventRecord(events.begin, nullptr));
    call("cusparseSpMV");
    TRITAX_GPU_CHECK(hipEventRecord(events.end, nullptr));
    TRITAX_GPU_CHECK(hipDeviceSynchronize());
    float ms = 0;
    TRITAX_GPU_CHECK(hipEventElapsedTime(&ms, events.begin, events.end));
    TRITAX_GPU_CHECK(hipMemset(flush.get(), 1, flush.bytes()));
    TRITAX_GPU_CHECK(hipDeviceSynchronize());
    const auto begin = HostClock::now();
    call("cusparseSpMV");
    TRITAX_GPU_CHECK(hipDeviceSynchronize());
    const auto end = HostClock::now();
    if (i < run.warmup) continue;
    device.push_back(static_cast<double>(ms) * 1e3);
    wall.push_back(std::chrono::duration<double, std::micro>(end - begin).count());
  }
  times.device_us = spread_of(device);
  times.wall_us = spread_of(wall);
  return times;
}

}  // namespace

std::vector<VendorSparseTimes> time_vendor_sparse(const SparseMatrix& matrix, DType dtype,
                                                  const RunOptions& run) {
  if (matrix.nonzeros() == 0) throw UserError("a matrix without nonzeros is none to time cuSPARSE with");
  TRITAX_GPU_CHECK(hipSetDevice(0));
  const CuSparse library;
  const Operands operands(library, matrix, dtype, run.seed);
  std::vector<VendorSparseTimes> all;
  for (const Algorithm& algorithm : kAlgorithms) {
    all.push_back(time_algorithm(library, operands, algorithm, run));
  }
  return all;
}

#else

std::vector<VendorSparseTimes> time_vendor_sparse(const SparseMatrix&, DType, const RunOptions&) {
  throw UserError("the vendor's sparse product is measured by builds for NVIDIA only");
}

#endif

namespace {

// The dtype of the matrix values.
DType dtype_of_values(const Schedule& schedule) {
  for (const ReferenceOp& op : schedule.reference) {
    if (op.kind == ReferenceKind::sparse_product)
      return schedule.buffers[static_cast<std::size_t>(op.a.buffer)].dtype;
  }
  throw UserError(fmt::format("schedule '{}' has no sparse product to compare with", schedule.name));
}

}  // namespace

void measure_vendor_sparse(const MeasureOptions& options, const RunOptions& run) {
  const std::vector<Scenario> scenarios = select_scenarios(options.selection);
  const Workload& workload = only_workload(scenarios);
  if (list_gpus().empty()) throw UserError("no GPU: the runtime finds no device on this machine");
  GrowingTable rows(options.output, options,
                    fmt::format("workload,form,launch,gpus{},repeats,device_us,device_p10_us,device_p90_us,"
                                "wall_us,wall_p10_us,wall_p90_us,relative_error",
                                column_names(workload.fields)));
  std::set<std::string> seen;
  for (const Scenario& scenario : scenarios) {
    const Problem& problem = scenario.problem;
    if (!seen.insert(key_of(problem.values)).second) continue;
    const Schedule schedule = build_scenario(scenario, find_machine(scenario.machine));
    const DType dtype = dtype_of_values(schedule);
    if (schedule.sparse.size() != 1) {
      throw UserError(fmt::format("{}{} sparse matrices; one is compared with the vendor's library",
                                  place_of(scenario), schedule.sparse.size()));
    }
    std::vector<VendorSparseTimes> all = time_vendor_sparse(*schedule.sparse[0], dtype, run);
    VendorSparseTimes best = *std::min_element(all.begin(), all.end(), [](const auto& a, const auto& b) {
      return a.device_us.median < b.device_us.median;
    });
    fmt::print("{}: {:.2f} us ({})\n", workload.size_text(problem), best.device_us.median, best.form);
    std::fflush(stdout);
    best.form = "library";
    all.push_back(best);
    for (const VendorSparseTimes& one : all) {
      rows.add(fmt::format("{},{},eager,{}{},{},{},{},{:.2e}", workload.name, one.form, problem.gpus(),
                           column_values(problem.values), run.repeats, spread_text(one.device_us),
                           spread_text(one.wall_us), one.relative_error));
    }
  }
}

}  // namespace tritax::gpu
