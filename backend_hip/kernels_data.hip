// Random data, the fp64 reference and the comparison: everything that checks a run. Plain code on purpose; it
// shares nothing with the tile kernels.
#include "backend_hip/device.hpp"
#include "backend_hip/kernels.hpp"

namespace tritax::gpu {

namespace {

constexpr int kThreads = 256;
constexpr int kReferenceTile = 64;
constexpr int kReferenceK = 16;
constexpr int kMostDepth = 512;

template <DType dtype>
__device__ double number_at(const unsigned char* at) {
  if constexpr (dtype == DType::fp64)
    return *reinterpret_cast<const double*>(at);
  else
    return to_float<dtype>(load_element<dtype>(at));
}

__device__ std::uint64_t mixed(std::uint64_t x) {  // SplitMix64
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

template <DType dtype>
__global__ void fill_random(unsigned char* matrix, std::int32_t rows, std::int32_t cols, std::int32_t pitch,
                            unsigned char* transposed, std::int32_t transposed_pitch, std::uint64_t seed) {
  const std::int64_t total = std::int64_t{rows} * cols;
  for (std::int64_t i = blockIdx.x * std::int64_t{kThreads} + threadIdx.x; i < total;
       i += std::int64_t{gridDim.x} * kThreads) {
    const std::int64_t row = i / cols;
    const std::int64_t col = i % cols;
    const std::uint64_t bits = mixed(seed ^ mixed(static_cast<std::uint64_t>(i)));
    if constexpr (dtype == DType::fp64) {  // all 53 digits, so that a loss of digits is detected
      *reinterpret_cast<double*>(matrix + row * pitch + col * 8) =
          static_cast<double>(bits >> 11) * (2.0 / 9007199254740992.0) - 1.0;
    } else {
      const float value = static_cast<float>(bits >> 40) * (2.0F / 16777216.0F) - 1.0F;
      const std::uint32_t element = from_float<dtype>(value);
      store_element<dtype>(matrix + row * pitch + col * bytes_of(dtype), element);
      if (transposed != nullptr) {
        store_element<dtype>(transposed + col * transposed_pitch + row * bytes_of(dtype), element);
      }
    }
  }
}

// One workgroup per 64×64 tile, 4×4 elements per thread.
template <DType dtype>
__global__ void __launch_bounds__(kThreads)
    multiply_fp64(const unsigned char* a, std::int32_t a_pitch, const unsigned char* b, std::int32_t b_pitch,
                  std::int32_t rows, std::int32_t cols, std::int32_t k_count, double* reference) {
  __shared__ double tile_a[kReferenceK][kReferenceTile + 1];
  __shared__ double tile_b[kReferenceK][kReferenceTile + 1];
  const int first_row = static_cast<int>(blockIdx.y) * kReferenceTile;
  const int first_col = static_cast<int>(blockIdx.x) * kReferenceTile;
  const int thread = static_cast<int>(threadIdx.x);
  double sums[4][4] = {};
  for (int k0 = 0; k0 < k_count; k0 += kReferenceK) {
    for (int i = thread; i < kReferenceK * kReferenceTile; i += kThreads) {
      const int k = i % kReferenceK;
      const int row = first_row + i / kReferenceK;
      const bool in = row < rows && k0 + k < k_count;
      tile_a[k][i / kReferenceK] =
          in ? number_at<dtype>(a + std::int64_t{row} * a_pitch + std::int64_t{k0 + k} * bytes_of(dtype))
             : 0.0;
    }
    for (int i = thread; i < kReferenceK * kReferenceTile; i += kThreads) {
      const int k = i / kReferenceTile;
      const int col = first_col + i % kReferenceTile;
      const bool in = col < cols && k0 + k < k_count;
      tile_b[k][i % kReferenceTile] =
          in ? number_at<dtype>(b + std::int64_t{k0 + k} * b_pitch + std::int64_t{col} * bytes_of(dtype))
             : 0.0;
    }
    workgroup_barrier();
#pragma unroll
    for (int k = 0; k < kReferenceK; ++k) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          sums[i][j] += tile_a[k][thread / 16 + 16 * i] * tile_b[k][thread % 16 + 16 * j];
        }
      }
    }
    workgroup_barrier();
  }
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) {
      const int row = first_row + thread / 16 + 16 * i;
      const int col = first_col + thread % 16 + 16 * j;
      if (row < rows && col < cols) reference[std::int64_t{row} * cols + col] = sums[i][j];
    }
  }
}

// One workgroup per query. It takes as many keys at a time as it has threads: one score per thread, then one
// column of the values per thread.
__global__ void __launch_bounds__(kThreads) attend_fp64(AttentionOperands of, double* reference) {
  __shared__ double weights[kThreads];
  __shared__ double reduced[kThreads];
  const int thread = static_cast<int>(threadIdx.x);
  const std::int64_t query = blockIdx.x;
  const double* const q = of.queries + query * of.depth;
  std::int64_t seen = of.key_count;
  if (of.limit > 0) seen = min(seen, of.limit + query / of.group);
  double most = -1e300, sum = 0;
  double out[kMostDepth / kThreads] = {};
  for (std::int64_t first = 0; first < seen; first += kThreads) {
    const std::int64_t key = first + thread;
    double score = -1e300;
    if (key < seen) {
      score = 0;
      for (int i = 0; i < of.depth; ++i) score += q[i] * of.keys[key * of.depth + i];
      score /= sqrt(static_cast<double>(of.depth));
    }
    reduced[thread] = score;
    workgroup_barrier();
    for (int half = kThreads / 2; half > 0; half /= 2) {
      if (thread < half) reduced[thread] = fmax(reduced[thread], reduced[thread + half]);
      workgroup_barrier();
    }
    const double before = most;
    most = fmax(most, reduced[0]);
    const double factor = exp(before - most);
    weights[thread] = key < seen ? exp(score - most) : 0;
    workgroup_barrier();
    const int count = static_cast<int>(min(std::int64_t{kThreads}, seen - first));
    sum *= factor;
    for (int i = 0; i < count; ++i) sum += weights[i];
    for (int part = 0; part < kMostDepth / kThreads; ++part) {
      const int col = part * kThreads + thread;
      if (col >= of.depth) break;
      double more = 0;
      for (int i = 0; i < count; ++i) more += weights[i] * of.values[(first + i) * of.depth + col];
      out[part] = out[part] * factor + more;
    }
    workgroup_barrier();
  }
  for (int part = 0; part < kMostDepth / kThreads; ++part) {
    const int col = part * kThreads + thread;
    if (col < of.depth) reference[query * of.depth + col] = sum > 0 ? out[part] / sum : 0;
  }
}

template <DType dtype>
__global__ void widen(const unsigned char* matrix, std::int32_t pitch, std::int32_t rows, std::int32_t cols,
                      double* values, std::int32_t values_cols, bool add) {
  const std::int64_t total = std::int64_t{rows} * cols;
  for (std::int64_t i = blockIdx.x * std::int64_t{kThreads} + threadIdx.x; i < total;
       i += std::int64_t{gridDim.x} * kThreads) {
    const std::int64_t row = i / cols;
    const std::int64_t col = i % cols;
    const double value = number_at<dtype>(matrix + row * pitch + col * bytes_of(dtype));
    double& sum = values[row * values_cols + col];
    sum = add ? sum + value : value;
  }
}

__device__ double sum_of_workgroup(double value, double* room) {
  room[threadIdx.x] = value;
  workgroup_barrier();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (static_cast<int>(threadIdx.x) < half) room[threadIdx.x] += room[threadIdx.x + half];
    workgroup_barrier();
  }
  const double sum = room[0];
  workgroup_barrier();
  return sum;
}

__device__ double squares_of_row(const double* reference, std::int32_t cols, double* room) {
  double squares = 0;
  for (int col = static_cast<int>(threadIdx.x); col < cols; col += kThreads)
    squares += reference[col] * reference[col];
  return sum_of_workgroup(squares, room);
}

__global__ void __launch_bounds__(kThreads)
    add_squares(std::int32_t rows, std::int32_t cols, const double* reference, std::int32_t reference_cols,
                Comparison* sums) {
  __shared__ double room[kThreads];
  double squares = 0;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x)
    squares += squares_of_row(reference + row * reference_cols, cols, room);
  if (threadIdx.x == 0) atomicAdd(&sums->reference_squared, squares);
}

// One workgroup per row.
template <DType dtype>
__global__ void __launch_bounds__(kThreads)
    compare(const unsigned char* result, std::int32_t pitch, std::int32_t rows, std::int32_t cols,
            const double* reference, std::int32_t reference_cols, double elements, Comparison* sums) {
  __shared__ double room[kThreads];
  double error_squared = 0;
  double largest = 0;
  unsigned long long unordered = 0;
  const double all = sums->reference_squared / elements;
  for (std::int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
    const double* const wanted_row = reference + row * reference_cols;
    const double of_row = squares_of_row(wanted_row, cols, room) / cols;
    const double scale = sqrt(of_row > all ? of_row : all);
    for (int col = static_cast<int>(threadIdx.x); col < cols; col += kThreads) {
      const double value = number_at<dtype>(result + row * pitch + std::int64_t{col} * bytes_of(dtype));
      const double wanted = wanted_row[col];
      const double error = value > wanted ? value - wanted : wanted - value;
      if (!(error < 1e300)) {
        ++unordered;
        continue;
      }
      error_squared += error * error;
      if (error > largest * scale) largest = error / scale;
    }
  }
  if (unordered > 0) atomicAdd(&sums->unordered, unordered);
  unsigned long long largest_bits;
  memcpy(&largest_bits, &largest, sizeof(largest_bits));
  atomicMax(&sums->largest_error_bits, largest_bits);
  error_squared = sum_of_workgroup(error_squared, room);
  if (threadIdx.x == 0) atomicAdd(&sums->error_squared, error_squared);
}

// Calls run.template operator()<dtype>() for a dtype known at run time.
template <class Run>
void with_dtype(DType dtype, Run run) {
  switch (dtype) {
    case DType::fp64:
      return run.template operator()<DType::fp64>();
    case DType::fp32:
      return run.template operator()<DType::fp32>();
    case DType::fp16:
      return run.template operator()<DType::fp16>();
    case DType::bf16:
      return run.template operator()<DType::bf16>();
    case DType::fp8:
      return run.template operator()<DType::fp8>();
  }
}

unsigned int grid_for(std::int64_t elements) {
  const std::int64_t blocks = (elements + kThreads - 1) / kThreads;
  return static_cast<unsigned int>(blocks < 1 ? 1 : blocks > 4096 ? 4096 : blocks);
}

// One workgroup per row.
__global__ void __launch_bounds__(kThreads)
    normalise_fp64(const double* a, const double* weights, std::int32_t cols, double* reference) {
  __shared__ double sums[kThreads];
  const double* const row = a + static_cast<std::int64_t>(blockIdx.x) * cols;
  double sum = 0;
  for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x); i < cols; i += kThreads)
    sum += row[i] * row[i];
  sums[threadIdx.x] = sum;
  for (unsigned int half = kThreads / 2; half > 0; half /= 2) {
    workgroup_barrier();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  workgroup_barrier();
  const double root = sqrt(sums[0] / cols + kNormEpsilon);
  double* const to = reference + static_cast<std::int64_t>(blockIdx.x) * cols;
  for (std::int32_t i = static_cast<std::int32_t>(threadIdx.x); i < cols; i += kThreads)
    to[i] = row[i] / root * weights[i];
}

}  // namespace

void launch_fill_random(DType dtype, void* matrix, std::int32_t rows, std::int32_t cols, std::int32_t pitch,
                        void* transposed, std::int32_t transposed_pitch, std::uint64_t seed,
                        hipStream_t stream) {
  with_dtype(dtype, [&]<DType type>() {
    fill_random<type><<<grid_for(std::int64_t{rows} * cols), kThreads, 0, stream>>>(
        static_cast<unsigned char*>(matrix), rows, cols, pitch, static_cast<unsigned char*>(transposed),
        transposed_pitch, seed);
  });
  TRITAX_GPU_CHECK(hipGetLastError());
}

void launch_reference(DType dtype, const void* a, std::int32_t a_pitch, const void* b, std::int32_t b_pitch,
                      std::int32_t rows, std::int32_t cols, std::int32_t k, double* reference,
                      hipStream_t stream) {
  const dim3 grid(static_cast<unsigned int>((cols + kReferenceTile - 1) / kReferenceTile),
                  static_cast<unsigned int>((rows + kReferenceTile - 1) / kReferenceTile));
  with_dtype(dtype, [&]<DType type>() {
    multiply_fp64<type><<<grid, kThreads, 0, stream>>>(static_cast<const unsigned char*>(a), a_pitch,
                                                       static_cast<const unsigned char*>(b), b_pitch, rows,
                                                       cols, k, reference);
  });
  TRITAX_GPU_CHECK(hipGetLastError());
}

void launch_attention_reference(const AttentionOperands& operands, double* reference, hipStream_t stream) {
  attend_fp64<<<static_cast<unsigned int>(operands.query_count), kThreads, 0, stream>>>(operands, reference);
  TRITAX_GPU_CHECK(hipGetLastError());
}

void launch_norm_reference(const double* a, const double* weights, std::int32_t rows, std::int32_t cols,
                           double* reference, hipStream_t stream) {
  normalise_fp64<<<static_cast<unsigned int>(rows), kThreads, 0, stream>>>(a, weights, cols, reference);
  TRITAX_GPU_CHECK(hipGetLastError());
}

void launch_widen(DType dtype, const void* matrix, std::int32_t pitch, std::int32_t rows, std::int32_t cols,
                  double* values, std::int32_t values_cols, bool add, hipStream_t stream) {
  with_dtype(dtype, [&]<DType type>() {
    widen<type><<<grid_for(std::int64_t{rows} * cols), kThreads, 0, stream>>>(
        static_cast<const unsigned char*>(matrix), pitch, rows, cols, values, values_cols, add);
  });
  TRITAX_GPU_CHECK(hipGetLastError());
}

void launch_squares(std::int32_t rows, std::int32_t cols, const double* reference,
                    std::int32_t reference_cols, Comparison* sums, hipStream_t stream) {
  add_squares<<<grid_for(std::int64_t{rows} * kThreads), kThreads, 0, stream>>>(rows, cols, reference,
                                                                                reference_cols, sums);
  TRITAX_GPU_CHECK(hipGetLastError());
}

void launch_compare(DType dtype, const void* result, std::int32_t pitch, std::int32_t rows, std::int32_t cols,
                    const double* reference, std::int32_t reference_cols, double elements, Comparison* sums,
                    hipStream_t stream) {
  with_dtype(dtype, [&]<DType type>() {
    compare<type><<<grid_for(std::int64_t{rows} * kThreads), kThreads, 0, stream>>>(
        static_cast<const unsigned char*>(result), pitch, rows, cols, reference, reference_cols, elements,
        sums);
  });
  TRITAX_GPU_CHECK(hipGetLastError());
}

}  // namespace tritax::gpu
