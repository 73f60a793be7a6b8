// matmul tiles in fp64, on GPUs of both vendors: all waves load operands and multiply with double-precision
// matrix instructions, because neither TMA nor wgmma supports fp64.
//
// A workgroup is four or eight waves, all of them the team. A wave owns a rectangle of the tile, as
// *fragments*; a fragment is the accumulator of one instruction, 4 numbers per lane.
//
//   NVIDIA   mma.sync m16n8k8: of lane l element e is row l div 4 + 8·(e div 2), column 2·(l mod 4) +
//            e mod 2 (PTX ISA, "Matrix fragments for mma.m16n8k8" of .f64); stages arrive by cp.async
//   AMD      v_mfma_f64_16x16x4: row l div 16 + 4·e, column l mod 16 (AMD Instinct MI300 ISA, "Matrix
//            Arithmetic Instructions"); one stage in LDS, the next on its way in registers
//
//   A stage   kM rows of kK elements, K as the fast axis
//   B stage   kK rows of kN elements, as in memory
//
// Rows are padded so that lanes that are served together find their elements in different banks.
#pragma once

#include "backend_hip/interpreter.hpp"
#if !defined(TRITAX_GPU_NVIDIA)
#include "backend_hip/tile_mfma.hpp"
#endif

namespace tritax::gpu {

#if defined(TRITAX_GPU_NVIDIA)

inline constexpr int kFp64FragmentCols = 8;
inline constexpr int kFp64Neighbours = 2;  // adjacent columns of a fragment per lane
inline constexpr int kFp64Stages = 4;      // as in model/cost/matmul_cost.hpp
inline constexpr int kFp64PaddingA = 32;
using Fp64Fragment = double[4];

__device__ inline int fp64_row(int lane, int e) { return lane / 4 + e / 2 * 8; }
__device__ inline int fp64_col(int lane, int e) { return lane % 4 * 2 + e % 2; }
__device__ inline DeviceOp op_of_wave(const DeviceOp& op) { return op; }

__device__ __forceinline__ void multiply_fp64(Fp64Fragment& d, const double (&a)[4], const double (&b)[2]) {
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
}

// Starts the copy of the first `count` of two elements, with zeros for the others.
__device__ __forceinline__ void begin_two(std::uint32_t to, const unsigned char* from, int count, bool wide) {
  if (wide) {
    const int bytes = count < 1 ? 0 : count < 2 ? 8 : 16;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
    return;
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int bytes = count > i ? 8 : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], 8, %2;" ::"r"(to + 8 * i), "l"(from + 8 * i),
                 "r"(bytes)
                 : "memory");
  }
}

#else

inline constexpr int kFp64FragmentCols = 16;
inline constexpr int kFp64Neighbours = 1;
inline constexpr int kFp64Stages = 1;
inline constexpr int kFp64PaddingA = 16;
using Fp64Fragment = double __attribute__((ext_vector_type(4)));

__device__ inline int fp64_row(int lane, int e) { return lane / 16 + 4 * e; }
__device__ inline int fp64_col(int lane, int) { return lane % 16; }
__device__ __forceinline__ DeviceOp op_of_wave(const DeviceOp& op) { return uniform(op); }

#endif

// `wave_rows` × `wave_cols` waves share a tile.
template <int m_, int n_, int wave_rows_, int wave_cols_>
struct Fp64Shape {
  static constexpr DType dtype = DType::fp64;
  static constexpr int kM = m_;
  static constexpr int kN = n_;
  static constexpr int kK = 16;  // per stage: 128 bytes
  static constexpr int kWaveCols = wave_cols_;
  static constexpr int kWaves = wave_rows_ * wave_cols_;
  static constexpr int kThreads = kWaves * kWaveLanes;
  static constexpr int kBlocksM = m_ / wave_rows_ / 16;  // fragments of a wave
  static constexpr int kBlocksN = n_ / wave_cols_ / kFp64FragmentCols;
  static constexpr int kPitchA = kK * 8 + kFp64PaddingA;
  static constexpr int kPitchB = n_ * 8 + 32;
  static constexpr int kBytesA = m_ * kPitchA;
  static constexpr int kStageBytes = kBytesA + kK * kPitchB;
  static constexpr int kSharedBytes = kFp64Stages * kStageBytes;
  static constexpr int kPiecesA = m_ * kK / 2 / kThreads;  // pieces of two elements per thread
  static constexpr int kPiecesB = kK * n_ / 2 / kThreads;
  // Workgroups that share a compute unit; the registers must allow them.
  static constexpr int kResidents = kBlocksM * kBlocksN <= 8 ? 3 : kThreads <= 128 ? 2 : 1;
  static constexpr int kStoreCols = 0;
  static constexpr int kStoreRows = 0;
  static_assert(kBlocksM * 16 * wave_rows_ == m_ && kBlocksN * kFp64FragmentCols * wave_cols_ == n_);
  static_assert(kPiecesA * 2 * kThreads == m_ * kK && kPiecesB * 2 * kThreads == kK * n_);
};

// Everything that uses the accumulators is force-inlined: a call would move them to memory.
template <class Shape>
class Fp64Engine {
 public:
  static constexpr int kCopiesInFlight = 8;

  __device__ explicit Fp64Engine(unsigned char* stages) : stages_(stages) {
    const int wave = static_cast<int>(threadIdx.x) / kWaveLanes;
    row_ = wave / Shape::kWaveCols * Shape::kBlocksM * 16;
    col_ = wave % Shape::kWaveCols * Shape::kBlocksN * kFp64FragmentCols;
    clear();
  }

  // Opaque to the compiler, so that values derived from the number for every fragment are computed when
  // needed. Kept between operations, they would have no room beside the accumulators.
  __device__ static int thread() {
    int number = static_cast<int>(threadIdx.x);
#if defined(TRITAX_GPU_NVIDIA)
    asm volatile("" : "+r"(number));
#else
    asm volatile("" : "+v"(number));
#endif
    return number;
  }
  __device__ static int threads() { return Shape::kThreads; }
  __device__ void team_barrier() const { workgroup_barrier(); }
  __device__ void meet() const { workgroup_barrier(); }
  __device__ void join() const { workgroup_barrier(); }
  __device__ bool stamps(const DeviceOp&) const { return true; }
  __device__ void signal(const DeviceOp& op) const { raise_signal(*this, op); }
  __device__ void finish() const {}

  __device__ __forceinline__ void matmul(const DeviceOp& shared_op) {
    const DeviceOp op = op_of_wave(shared_op);
    if ((op.bits & kFresh) != 0) clear();
    const int steps = (op.k_end - op.k_begin + Shape::kK - 1) / Shape::kK;
    if (steps >= 1) multiply(op, steps);
  }

  // All numbers of a row of fragments are on their way before the first is added.
  __device__ __forceinline__ void accumulate(const DeviceOp& shared_op) {
    const DeviceOp op = op_of_wave(shared_op);
    const bool fresh = (op.bits & kFresh) != 0;
#pragma unroll
    for (int i = 0; i < Shape::kBlocksM; ++i) {
      const int lane = thread() % kWaveLanes;
      double more[Shape::kBlocksN][4];
#pragma unroll
      for (int j = 0; j < Shape::kBlocksN; ++j) {
#pragma unroll
        for (int e = 0; e < 4; e += kFp64Neighbours) load_neighbours(op, lane, i, j, e, more[j]);
      }
#pragma unroll
      for (int j = 0; j < Shape::kBlocksN; ++j) {
#pragma unroll
        for (int e = 0; e < 4; ++e) acc_[i][j][e] = (fresh ? 0.0 : acc_[i][j][e]) + more[j][e];
      }
    }
  }

  __device__ __forceinline__ void store(const DeviceOp& shared_op) {
    const DeviceOp op = op_of_wave(shared_op);
#pragma unroll
    for (int i = 0; i < Shape::kBlocksM; ++i) {
      const int lane = thread() % kWaveLanes;
#pragma unroll
      for (int j = 0; j < Shape::kBlocksN; ++j) {
#pragma unroll
        for (int e = 0; e < 4; e += kFp64Neighbours) store_neighbours(op, lane, i, j, e);
      }
    }
  }

  __device__ __forceinline__ void atomic_add(const DeviceOp& shared_op) {
    const DeviceOp op = op_of_wave(shared_op);
#pragma unroll
    for (int i = 0; i < Shape::kBlocksM; ++i) {
      const int lane = thread() % kWaveLanes;
#pragma unroll
      for (int j = 0; j < Shape::kBlocksN; ++j) {
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int row = row_of(lane, i, e), col = col_of(lane, j, e);
          if (row < op.rows && col < op.cols) add_to_double(place(op, row, col), acc_[i][j][e]);
        }
      }
    }
  }

 private:
  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < Shape::kBlocksM; ++i) {
#pragma unroll
      for (int j = 0; j < Shape::kBlocksN; ++j) {
#pragma unroll
        for (int e = 0; e < 4; ++e) acc_[i][j][e] = 0;
      }
    }
  }

  // Places of two neighbours of an operand, in memory and in the stage, and how many of them belong to the
  // operand.
  struct Piece {
    const unsigned char* from;
    int place;
    int count;
  };

  __device__ __forceinline__ static Piece piece_of_a(const DeviceOp& op, int step, int i) {
    const int piece = i * Shape::kThreads + thread();
    const int row = piece / (Shape::kK / 2);
    const int k = piece % (Shape::kK / 2) * 2;
    const int left = op.k_end - op.k_begin - step * Shape::kK - k;
    const auto* base = reinterpret_cast<const unsigned char*>(op.address);
    return {base + std::int64_t{row} * op.pitch + (std::int64_t{step} * Shape::kK + k) * 8,
            row * Shape::kPitchA + k * 8, row < op.rows ? left : 0};
  }

  __device__ __forceinline__ static Piece piece_of_b(const DeviceOp& op, int step, int i) {
    const int piece = i * Shape::kThreads + thread();
    const int k = piece / (Shape::kN / 2);
    const int col = piece % (Shape::kN / 2) * 2;
    const bool in = step * Shape::kK + k < op.k_end - op.k_begin;
    const auto* base = reinterpret_cast<const unsigned char*>(op.source);
    return {base + (std::int64_t{step} * Shape::kK + k) * op.source_pitch + std::int64_t{col} * 8,
            Shape::kBytesA + k * Shape::kPitchB + col * 8, in ? op.cols - col : 0};
  }

  __device__ __forceinline__ static double element(const unsigned char* at) {
    return *reinterpret_cast<const double*>(at);
  }

#if defined(TRITAX_GPU_NVIDIA)
  // Beyond the last step no data arrive, but a group ends all the same, because waits count groups.
  __device__ __forceinline__ void begin_stage(const DeviceOp& op, int step, int steps) const {
    const auto stage = static_cast<std::uint32_t>(
        __cvta_generic_to_shared(stages_ + step % kFp64Stages * Shape::kStageBytes));
    if (step < steps) {
      const bool wide = op.width == 16;
#pragma unroll
      for (int i = 0; i < Shape::kPiecesA; ++i) {
        const Piece piece = piece_of_a(op, step, i);
        begin_two(stage + piece.place, piece.from, piece.count, wide);
      }
#pragma unroll
      for (int i = 0; i < Shape::kPiecesB; ++i) {
        const Piece piece = piece_of_b(op, step, i);
        begin_two(stage + piece.place, piece.from, piece.count, wide);
      }
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  }

  __device__ __forceinline__ void multiply(const DeviceOp& op, int steps) {
#pragma unroll 1
    for (int step = 0; step < kFp64Stages - 1; ++step) begin_stage(op, step, steps);
    for (int step = 0; step < steps; ++step) {
      asm volatile("cp.async.wait_group %0;" ::"n"(kFp64Stages - 2) : "memory");
      workgroup_barrier();  // the stage has arrived for all, and all have read the stage to be overwritten
                            // next
      begin_stage(op, step + kFp64Stages - 1, steps);
      multiply_stage(stages_ + step % kFp64Stages * Shape::kStageBytes);
    }
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    workgroup_barrier();  // the next matmul overwrites the stages
  }

  __device__ __forceinline__ void multiply_stage(const unsigned char* stage) {
    const int lane = thread() % kWaveLanes;
    const unsigned char* a = stage + (row_ + lane / 4) * Shape::kPitchA + lane % 4 * 8;
    const unsigned char* b = stage + Shape::kBytesA + lane % 4 * Shape::kPitchB + (col_ + lane / 4) * 8;
#pragma unroll
    for (int k = 0; k < Shape::kK; k += 8) {
      double cols[Shape::kBlocksN][2];
#pragma unroll
      for (int j = 0; j < Shape::kBlocksN; ++j) {
        const unsigned char* from = b + k * Shape::kPitchB + j * kFp64FragmentCols * 8;
        cols[j][0] = element(from);
        cols[j][1] = element(from + 4 * Shape::kPitchB);
      }
#pragma unroll
      for (int i = 0; i < Shape::kBlocksM; ++i) {
        const unsigned char* from = a + i * 16 * Shape::kPitchA + k * 8;
        const double rows[4] = {element(from), element(from + 8 * Shape::kPitchA), element(from + 32),
                                element(from + 8 * Shape::kPitchA + 32)};
#pragma unroll
        for (int j = 0; j < Shape::kBlocksN; ++j) multiply_fp64(acc_[i][j], rows, cols[j]);
      }
    }
  }
#else
  struct Two {
    double value[2];
  };
  struct Fetched {
    Two a[Shape::kPiecesA];
    Two b[Shape::kPiecesB];
  };

  __device__ __forceinline__ static Two fetch(const Piece& piece) {
    Two two;
    two.value[0] = piece.count > 0 ? element(piece.from) : 0.0;
    two.value[1] = piece.count > 1 ? element(piece.from + 8) : 0.0;
    return two;
  }
  __device__ __forceinline__ static void fetch(const DeviceOp& op, int step, Fetched& to) {
#pragma unroll
    for (int i = 0; i < Shape::kPiecesA; ++i) to.a[i] = fetch(piece_of_a(op, step, i));
#pragma unroll
    for (int i = 0; i < Shape::kPiecesB; ++i) to.b[i] = fetch(piece_of_b(op, step, i));
  }
  __device__ __forceinline__ void write_stage(const DeviceOp& op, const Fetched& from) const {
#pragma unroll
    for (int i = 0; i < Shape::kPiecesA; ++i)
      *reinterpret_cast<Two*>(stages_ + piece_of_a(op, 0, i).place) = from.a[i];
#pragma unroll
    for (int i = 0; i < Shape::kPiecesB; ++i)
      *reinterpret_cast<Two*>(stages_ + piece_of_b(op, 0, i).place) = from.b[i];
  }

  __device__ __forceinline__ void multiply(const DeviceOp& op, int steps) {
    Fetched fetched;
    fetch(op, 0, fetched);
    for (int step = 0; step < steps; ++step) {
      workgroup_barrier();  // all have read the stage
      write_stage(op, fetched);
      workgroup_barrier();
      if (step + 1 < steps) fetch(op, step + 1, fetched);
      multiply_stage(stages_);
    }
    workgroup_barrier();
  }

  __device__ __forceinline__ void multiply_stage(const unsigned char* stage) {
    const int lane = thread() % kWaveLanes;
    const unsigned char* a = stage + (row_ + lane % 16) * Shape::kPitchA + lane / 16 * 8;
    const unsigned char* b = stage + Shape::kBytesA + lane / 16 * Shape::kPitchB + (col_ + lane % 16) * 8;
#pragma unroll
    for (int k = 0; k < Shape::kK; k += 4) {
      double rows[Shape::kBlocksM];
      double cols[Shape::kBlocksN];
#pragma unroll
      for (int i = 0; i < Shape::kBlocksM; ++i) rows[i] = element(a + i * 16 * Shape::kPitchA + k * 8);
#pragma unroll
      for (int j = 0; j < Shape::kBlocksN; ++j) cols[j] = element(b + k * Shape::kPitchB + j * 16 * 8);
#pragma unroll
      for (int i = 0; i < Shape::kBlocksM; ++i) {
#pragma unroll
        for (int j = 0; j < Shape::kBlocksN; ++j)
          acc_[i][j] = __builtin_amdgcn_mfma_f64_16x16x4f64(rows[i], cols[j], acc_[i][j], 0, 0, 0);
      }
    }
  }
#endif

  __device__ int row_of(int lane, int i, int e) const { return row_ + i * 16 + fp64_row(lane, e); }
  __device__ int col_of(int lane, int j, int e) const {
    return col_ + j * kFp64FragmentCols + fp64_col(lane, e);
  }
  __device__ static unsigned char* place(const DeviceOp& op, int row, int col) {
    return reinterpret_cast<unsigned char*>(op.address) + std::int64_t{row} * op.pitch +
           std::int64_t{col} * 8;
  }

  // Element e and the adjacent ones behind it; 0 beyond an edge.
  __device__ __forceinline__ void load_neighbours(const DeviceOp& op, int lane, int i, int j, int e,
                                                  double (&to)[4]) const {
    const int row = row_of(lane, i, e), col = col_of(lane, j, e);
    const int count = row < op.rows ? op.cols - col : 0;
    const unsigned char* from = place(op, row, col);
#if defined(TRITAX_GPU_NVIDIA)
    if (count >= 2 && op.width == 16) {
      const uint4 words = load_16(from);
      to[e] = __hiloint2double(static_cast<int>(words.y), static_cast<int>(words.x));
      to[e + 1] = __hiloint2double(static_cast<int>(words.w), static_cast<int>(words.z));
      return;
    }
#endif
#pragma unroll
    for (int n = 0; n < kFp64Neighbours; ++n)
      to[e + n] = count > n ? *reinterpret_cast<const volatile double*>(from + n * 8) : 0.0;
  }

  __device__ __forceinline__ void store_neighbours(const DeviceOp& op, int lane, int i, int j, int e) const {
    const int row = row_of(lane, i, e), col = col_of(lane, j, e);
    const int count = row < op.rows ? op.cols - col : 0;
    unsigned char* to = place(op, row, col);
#if defined(TRITAX_GPU_NVIDIA)
    if (count >= 2 && op.width == 16) {
      *reinterpret_cast<double2*>(to) = make_double2(acc_[i][j][e], acc_[i][j][e + 1]);
      return;
    }
#endif
#pragma unroll
    for (int n = 0; n < kFp64Neighbours; ++n) {
      if (count > n) *reinterpret_cast<double*>(to + n * 8) = acc_[i][j][e + n];
    }
  }

  unsigned char* stages_;
  int row_ = 0;  // first row and column of this wave in the tile
  int col_ = 0;
  Fp64Fragment acc_[Shape::kBlocksM][Shape::kBlocksN];
};

template <class Shape>
__global__ void __launch_bounds__(Shape::kThreads, Shape::kResidents) fp64_kernel(const LaunchParams params) {
  extern __shared__ __align__(128) unsigned char fp64_stages[];
  __shared__ SharedRoom<DeviceOp, 2 * Shape::kWaves> slots;
  __shared__ SharedRoom<Mailbox> mailbox;
  OpReader reader(params, slots.get() + 2 * (threadIdx.x / kWaveLanes));
  Fp64Engine<Shape> engine(fp64_stages);
  interpret(params, engine, reader, *mailbox.get());
}

}  // namespace tritax::gpu
