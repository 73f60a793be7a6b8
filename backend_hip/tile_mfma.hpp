// matmul tiles on AMD: all waves load operands through LDS and multiply with MFMA instructions.
//
// A workgroup is 256 or 512 threads, all of them the team. The K loop keeps two LDS stages: while one is
// multiplied, the next one is on its way from memory to registers, and is written to LDS afterwards.
//
//   A stage   kM rows of kK elements, K as the fast axis, rows padded by 16 bytes against bank conflicts
//   B stage   the same with columns as rows: B is row-major K×N in memory and transposed on its way to LDS,
//             because a lane of MFMA takes neighbouring k of one column
//
// v_mfma_f32_32x32x8 (16-bit), 32x32x16 (fp8) and twice 32x32x2 (fp32): lane l holds 8 bytes of A row l mod
// 32 and of B column l mod 32, k in the half l div 32; accumulator i of lane l is row 8·(i div 4) + 4·(l div
// 32) + i mod 4, column l mod 32 (AMD Instinct MI300 ISA, "Matrix Arithmetic Instructions").
#pragma once

#include "backend_hip/interpreter.hpp"

namespace tritax::gpu {

template <DType dtype_, int m_, int n_>
struct MfmaShape {
  static constexpr DType dtype = dtype_;
  static constexpr int kM = m_;
  static constexpr int kN = n_;
  static constexpr int kElement = bytes_of(dtype_);
  static constexpr int kK = 64 / kElement;  // K step: 64 bytes
  static constexpr int kThreads = m_ * n_ >= 256 * 128 ? 512 : 256;
  static constexpr int kWaves = kThreads / 64;
  static constexpr int kWaveRows = m_ >= 128 ? (kWaves == 8 && m_ >= 256 ? 4 : 2) : 2;  // waves along M
  static constexpr int kWaveCols = kWaves / kWaveRows;
  static constexpr int kBlocksM = m_ / (32 * kWaveRows);  // 32×32 blocks of a wave
  static constexpr int kBlocksN = n_ / (32 * kWaveCols);
  static constexpr int kRowBytes = 64 + 16;  // per row of a stage
  static constexpr int kStageBytes = (m_ + n_) * kRowBytes;
  static constexpr int kStages = 2 * kStageBytes <= 64 * 1024 - 8192 ? 2 : 1;
  static constexpr int kSharedBytes = kStages * kStageBytes;
  static constexpr int kStoreCols = 0;
  static constexpr int kStoreRows = 0;
  static_assert(kBlocksM >= 1 && kBlocksN >= 1 && kBlocksM * 32 * kWaveRows == m_ &&
                kBlocksN * 32 * kWaveCols == n_);
};

using Accumulator32x32 = float __attribute__((ext_vector_type(16)));

template <DType dtype>
__device__ inline Accumulator32x32 mfma(std::uint64_t a, std::uint64_t b, Accumulator32x32 c) {
  if constexpr (dtype == DType::bf16) {
    using Vec = short __attribute__((ext_vector_type(4)));
    return __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(__builtin_bit_cast(Vec, a), __builtin_bit_cast(Vec, b), c,
                                                    0, 0, 0);
  } else if constexpr (dtype ==
                       DType::fp32) {  // k of a lane's half and, with it, the next: any order adds up
    using Vec = float __attribute__((ext_vector_type(2)));
    const Vec row = __builtin_bit_cast(Vec, a);
    const Vec col = __builtin_bit_cast(Vec, b);
    return __builtin_amdgcn_mfma_f32_32x32x2f32(
        row[1], col[1], __builtin_amdgcn_mfma_f32_32x32x2f32(row[0], col[0], c, 0, 0, 0), 0, 0, 0);
  } else if constexpr (dtype == DType::fp16) {
    using Vec = _Float16 __attribute__((ext_vector_type(4)));
    return __builtin_amdgcn_mfma_f32_32x32x8f16(__builtin_bit_cast(Vec, a), __builtin_bit_cast(Vec, b), c, 0,
                                                0, 0);
  } else {
#if defined(__gfx942__) || defined(__gfx950__)
    return __builtin_amdgcn_mfma_f32_32x32x16_fp8_fp8(static_cast<long>(a), static_cast<long>(b), c, 0, 0, 0);
#else
    return c;  // gfx90a has no fp8; the host refuses such schedules
#endif
  }
}

// In scalar registers, which the accumulators do not use: all lanes of a wave run the same operation.
__device__ __forceinline__ DeviceOp uniform(const DeviceOp& op) {
  struct Words {
    std::uint32_t word[sizeof(DeviceOp) / 4];
  };
  auto words = __builtin_bit_cast(Words, op);
#pragma unroll
  for (std::uint32_t& word : words.word) word = __builtin_amdgcn_readfirstlane(word);
  return __builtin_bit_cast(DeviceOp, words);
}

// Everything that uses the accumulators is force-inlined: a call would move them to memory.
template <class Shape>
class MfmaEngine {
 public:
  __device__ explicit MfmaEngine(unsigned char* stages) : stages_(stages) {
    const int wave = static_cast<int>(threadIdx.x) / 64;
    row_ = __builtin_amdgcn_readfirstlane(wave / Shape::kWaveCols * Shape::kBlocksM * 32);
    col_ = __builtin_amdgcn_readfirstlane(wave % Shape::kWaveCols * Shape::kBlocksN * 32);
  }

  static constexpr int kCopiesInFlight = 8;

  // Opaque to the compiler, so that values derived from the number for every piece of a tile are computed
  // when needed. Kept between operations, they would have no room beside the accumulators.
  __device__ static int thread() {
    int number = static_cast<int>(threadIdx.x);
    asm volatile("" : "+v"(number));
    return number;
  }
  __device__ int threads() const { return Shape::kThreads; }
  __device__ void team_barrier() const { workgroup_barrier(); }
  __device__ void meet() const { workgroup_barrier(); }
  __device__ void join() const { workgroup_barrier(); }
  __device__ bool stamps(const DeviceOp&) const { return true; }
  __device__ void signal(const DeviceOp& op) const { raise_signal(*this, op); }
  __device__ void finish() const {}

  __device__ __forceinline__ void matmul(const DeviceOp& shared_op) {
    const DeviceOp op = uniform(shared_op);
    if ((op.bits & kFresh) != 0) clear();
    const int steps = (op.k_end - op.k_begin + Shape::kK - 1) / Shape::kK;
    const bool wide = op.width == 16;
    if (steps < 1) return;
    Fetched fetched;
    fetch(op, 0, wide, fetched);
    for (int step = 0; step < steps; ++step) {
      unsigned char* stage = stages_ + step % Shape::kStages * Shape::kStageBytes;
      // With one stage, the waves must have read the stage; with two, the barrier of the step in between
      // guards the stage that was read two steps ago.
      if (Shape::kStages == 1) workgroup_barrier();
      write_stage(stage, fetched);
      workgroup_barrier();
      if (step + 1 < steps) fetch(op, step + 1, wide, fetched);
      multiply_stage(stage);
    }
    workgroup_barrier();  // the next matmul overwrites the stages
  }

  // The accumulators change in one place, whatever is added, and without a branch: with two places the
  // compiler keeps them twice.
  __device__ __forceinline__ void accumulate(const DeviceOp& shared_op) {
    const DeviceOp op = uniform(shared_op);
    const bool fresh = (op.bits & kFresh) != 0;
#pragma unroll
    for (int i = 0; i < Shape::kBlocksM; ++i) {
#pragma unroll
      for (int j = 0; j < Shape::kBlocksN; ++j) {
#pragma unroll
        for (int half = 0; half < 16; half += 8) {
          std::uint32_t bits[8];
          if (static_cast<DType>(op.dtype) == DType::fp32) {
            load_half<DType::fp32>(op, i, j, half, bits);
          } else {
            load_half<Shape::dtype>(op, i, j, half, bits);
          }
#pragma unroll
          for (int e = 0; e < 8; ++e) {
            asm volatile("" : "+v"(bits[e]));
            const float old = acc_[i][j][half + e];
            acc_[i][j][half + e] = (fresh ? 0.0F : old) + __uint_as_float(bits[e]);
          }
        }
      }
    }
  }

  __device__ __forceinline__ void store(const DeviceOp& shared_op) {
    const DeviceOp op = uniform(shared_op);
    if (static_cast<DType>(op.dtype) == DType::fp32) {
      store_as<DType::fp32>(op);
    } else {
      store_as<Shape::dtype>(op);
    }
  }

  __device__ __forceinline__ void atomic_add(const DeviceOp& shared_op) {
    const DeviceOp op = uniform(shared_op);
    if (static_cast<DType>(op.dtype) == DType::fp32) {
      atomic_add_as<DType::fp32>(op);
    } else if constexpr (Shape::dtype != DType::fp8) {
      atomic_add_as<Shape::dtype>(op);
    }
  }

 private:
  // A: pieces of 16 bytes along K. B: patches of 8 bytes of k by 16 bytes of columns, turned in registers.
  static constexpr int kPiecesA = Shape::kM * 4 / Shape::kThreads;
  static constexpr int kPatchK = 8 / Shape::kElement;
  static constexpr int kPatchCols = 16 / Shape::kElement;
  static constexpr int kPatchesB = (Shape::kK / kPatchK) * (Shape::kN / kPatchCols);
  static constexpr int kPatchesOfThread = (kPatchesB + Shape::kThreads - 1) / Shape::kThreads;
  static_assert(kPiecesA >= 1);

  // Operands on their way to the next stage.
  struct Fetched {
    uint4 a[kPiecesA];
    uint4 b[kPatchesOfThread][kPatchK];
  };

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < Shape::kBlocksM; ++i) {
#pragma unroll
      for (int j = 0; j < Shape::kBlocksN; ++j) acc_[i][j] = Accumulator32x32{};
    }
  }

  // 16 bytes of a row; only `count` elements belong to the operand, the rest is zero.
  __device__ static uint4 load_row(const unsigned char* from, int count, bool wide) {
    constexpr int kElements = 16 / Shape::kElement;
    if (wide && count >= kElements) return *reinterpret_cast<const uint4*>(from);
    std::uint32_t words[4] = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < kElements; ++i) {
      if (i >= count) continue;
      words[i * Shape::kElement / 4] |= load_element<Shape::dtype>(from + i * Shape::kElement)
                                        << (8 * (i * Shape::kElement % 4));
    }
    return {words[0], words[1], words[2], words[3]};
  }

  __device__ __forceinline__ static void fetch(const DeviceOp& op, int step, bool wide, Fetched& to) {
    constexpr int kElements = 16 / Shape::kElement;
    const int k_left = op.k_end - op.k_begin - step * Shape::kK;
    const int me = thread();
    const auto* a = reinterpret_cast<const unsigned char*>(op.address) + std::int64_t{step} * 64;
#pragma unroll
    for (int i = 0; i < kPiecesA; ++i) {
      const int piece = i * Shape::kThreads + me;
      const int row = piece / 4;
      const int k = piece % 4 * kElements;
      const int count = row < op.rows ? k_left - k : 0;
      to.a[i] = load_row(a + std::int64_t{row} * op.pitch + k * Shape::kElement, count, wide);
    }
    const auto* b =
        reinterpret_cast<const unsigned char*>(op.source) + std::int64_t{step} * Shape::kK * op.source_pitch;
#pragma unroll
    for (int i = 0; i < kPatchesOfThread; ++i) {
      const int patch = i * Shape::kThreads + me;
      const int k = patch / (Shape::kN / kPatchCols) * kPatchK;
      const int col = patch % (Shape::kN / kPatchCols) * kPatchCols;
#pragma unroll
      for (int j = 0; j < kPatchK; ++j) {
        const int count = patch < kPatchesB && k + j < k_left ? op.cols - col : 0;
        to.b[i][j] = load_row(b + std::int64_t{k + j} * op.source_pitch + col * Shape::kElement, count, wide);
      }
    }
  }

  __device__ static std::uint32_t word_of(const uint4& v, int i) {
    return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
  }

  // Element `col` of row `k` of a patch.
  __device__ static std::uint64_t element_of(const uint4 (&patch)[kPatchK], int k, int col) {
    const int bit = col * Shape::kElement * 8;
    constexpr std::uint32_t mask = 0xffffffffU >> (32 - 8 * Shape::kElement);
    return (word_of(patch[k], bit / 32) >> (bit % 32)) & mask;
  }

  __device__ __forceinline__ static void write_stage(unsigned char* stage, const Fetched& from) {
    const int me = thread();
#pragma unroll
    for (int i = 0; i < kPiecesA; ++i) {
      const int piece = i * Shape::kThreads + me;
      *reinterpret_cast<uint4*>(stage + piece / 4 * Shape::kRowBytes + piece % 4 * 16) = from.a[i];
    }
    unsigned char* stage_b = stage + Shape::kM * Shape::kRowBytes;
#pragma unroll
    for (int i = 0; i < kPatchesOfThread; ++i) {
      const int patch = i * Shape::kThreads + me;
      if (patch >= kPatchesB) continue;
      const int k = patch / (Shape::kN / kPatchCols) * kPatchK;
      const int col = patch % (Shape::kN / kPatchCols) * kPatchCols;
#pragma unroll
      for (int c = 0; c < kPatchCols; ++c) {
        std::uint64_t column = 0;
#pragma unroll
        for (int j = 0; j < kPatchK; ++j) column |= element_of(from.b[i], j, c) << (8 * Shape::kElement * j);
        *reinterpret_cast<std::uint64_t*>(stage_b + (col + c) * Shape::kRowBytes + k * Shape::kElement) =
            column;
      }
    }
  }

  __device__ __forceinline__ void multiply_stage(const unsigned char* stage) {
    const int lane = thread() % 64;
    const unsigned char* a = stage + (row_ + lane % 32) * Shape::kRowBytes + lane / 32 * 8;
    const unsigned char* b = stage + (Shape::kM + col_ + lane % 32) * Shape::kRowBytes + lane / 32 * 8;
#pragma unroll
    for (int k = 0; k < 64; k += 16) {
      std::uint64_t rows[Shape::kBlocksM];
      std::uint64_t cols[Shape::kBlocksN];
#pragma unroll
      for (int i = 0; i < Shape::kBlocksM; ++i) {
        rows[i] = *reinterpret_cast<const std::uint64_t*>(a + i * 32 * Shape::kRowBytes + k);
      }
#pragma unroll
      for (int j = 0; j < Shape::kBlocksN; ++j) {
        cols[j] = *reinterpret_cast<const std::uint64_t*>(b + j * 32 * Shape::kRowBytes + k);
      }
#pragma unroll
      for (int i = 0; i < Shape::kBlocksM; ++i) {
#pragma unroll
        for (int j = 0; j < Shape::kBlocksN; ++j)
          acc_[i][j] = mfma<Shape::dtype>(rows[i], cols[j], acc_[i][j]);
      }
    }
  }

  // The first element of this thread in the tile; element e of block (i, j) is 32·i + row_step(e) rows and
  // 32·j columns behind it.
  struct Position {
    int row;
    int col;
  };

  static constexpr int row_step(int e) { return 8 * (e / 4) + e % 4; }

  __device__ __forceinline__ Position first() const {
    const int lane = thread() % 64;
    return {row_ + lane / 32 * 4, col_ + lane % 32};
  }

  // Calls visit(row, col, value) for every element of this thread that lies in the tile. The accumulators are
  // only read: with a branch that writes some of sixteen in a row, the compiler keeps the row twice, in
  // scratch memory.
  template <class Visit>
  __device__ __forceinline__ void for_each_element(const DeviceOp& op, Visit visit) const {
#pragma unroll
    for (int i = 0; i < Shape::kBlocksM; ++i) {
#pragma unroll
      for (int j = 0; j < Shape::kBlocksN; ++j) {
        const Position at = first();
        const int col = at.col + 32 * j;
#pragma unroll
        for (int e = 0; e < 16; ++e) {
          const int row = at.row + 32 * i + row_step(e);
          if (row < op.rows && col < op.cols) visit(row, col, acc_[i][j][e]);
        }
      }
    }
  }

  template <DType dtype>
  __device__ static unsigned char* place(const DeviceOp& op, int row, int col) {
    return reinterpret_cast<unsigned char*>(op.address) + std::int64_t{row} * op.pitch +
           col * bytes_of(dtype);
  }

  // Loads the eight summands of block (i, j), as fp32. Beyond an edge the last element inside is loaded and
  // dropped, so that eight loads are on their way together.
  template <DType dtype>
  __device__ __forceinline__ void load_half(const DeviceOp& op, int i, int j, int half,
                                            std::uint32_t (&bits)[8]) const {
    const Position at = first();
    const int col = at.col + 32 * j;
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const int row = at.row + 32 * i + row_step(half + e);
      bits[e] = load_element<dtype>(
          place<dtype>(op, row < op.rows ? row : op.rows - 1, col < op.cols ? col : op.cols - 1));
    }
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const bool in = at.row + 32 * i + row_step(half + e) < op.rows && col < op.cols;
      bits[e] = in ? __float_as_uint(to_float<dtype>(bits[e])) : 0;
    }
  }

  // 32 lanes write 32 neighbouring elements of a row.
  template <DType dtype>
  __device__ __forceinline__ void store_as(const DeviceOp& op) const {
    for_each_element(op, [&](int row, int col, float value) {
      store_element<dtype>(place<dtype>(op, row, col), from_float<dtype>(value));
    });
  }

  template <DType dtype>
  __device__ __forceinline__ void atomic_add_as(const DeviceOp& op) const {
    for_each_element(op, [&](int row, int col, float value) {
      atomic_add_element<dtype>(place<dtype>(op, row, col), value);
    });
  }

  unsigned char* stages_;
  int row_ = 0;  // first row and column of this wave in the tile
  int col_ = 0;
  Accumulator32x32 acc_[Shape::kBlocksM][Shape::kBlocksN];
};

template <class Shape>
__global__ void __launch_bounds__(Shape::kThreads) matmul_kernel(const LaunchParams params) {
  extern __shared__ __attribute__((aligned(16))) unsigned char stages[];
  __shared__ SharedRoom<DeviceOp, 2 * Shape::kWaves> slots;
  __shared__ SharedRoom<Mailbox> mailbox;
  OpReader reader(params, slots.get() + 2 * (threadIdx.x / kWaveLanes));
  MfmaEngine<Shape> engine(stages);
  interpret(params, engine, reader, *mailbox.get());
}

}  // namespace tritax::gpu
