// Operands of matmuls: the slabs that an operation reads, and the caches that hold them.
//
// OperandIndex names slabs and finds matmuls of equal cost, before the run; it fills Run::shapes and
// Run::inputs_of_op. Operands owns which slabs overlap; it changes the caches of a GPU, displaces their
// dirty data, and counts the bytes that links carry.
#pragma once

#include <boost/unordered_map.hpp>
#include <cstdint>
#include <map>
#include <tuple>

#include "sim/engine_attend.hpp"
#include "sim/engine_resources.hpp"
#include "sim/engine_run.hpp"
#include "sim/engine_write_back.hpp"
#include "sim/slab_overlaps.hpp"

namespace tritax::engine {

class Operands {
 public:
  Operands(Run& run, WriteBack& write_back, SharedResources& resources)
      : run_(run), write_back_(write_back), resources_(resources) {}

  // Before the run; see OperandIndex.
  SlabOverlaps& overlaps() { return overlaps_; }
  // Operands that a matmul of `duration_ns`, which starts now, does not find in the caches.
  Missed look_up(std::int32_t rank, std::int32_t die, const Op& op, const MatmulInputs& inputs,
                 const MatmulShape& shape, double duration_ns, double now);

 private:
  void fetch_from_peer(std::int32_t rank, std::int32_t die, const Op& op, const MatmulInputs& inputs,
                       const MatmulShape& shape, double duration_ns, bool no_l2, Missed& missed, double now);
  void fetch(GpuState& gpu, std::int32_t rank, std::int32_t die, const Op& op, const MatmulInputs& inputs,
             const MatmulShape& shape, Missed& missed, double now);

  Run& run_;
  WriteBack& write_back_;
  SharedResources& resources_;
  SlabOverlaps overlaps_;
};

class OperandIndex {
 public:
  OperandIndex(Run& run, Operands& operands, Attention& attention);

  void begin_kernel(std::uint32_t kernel);
  void begin_program() { before_ = nullptr; }
  // The next operation of the program, with its index; operations of all kinds.
  void see(const Op& op, std::uint32_t index) {
    if (multiplies(op.kind)) add(op, index);
    before_ = &op;
  }
  void finish();

 private:
  struct SlabKey {
    std::uint64_t where = 0;  // buffer and first row or column
    std::uint64_t k = 0;      // begin and end
    std::int32_t size = 0;    // rows or columns
    std::int32_t peer = -1;   // owner; -1: the own rank
    bool operator==(const SlabKey&) const = default;
  };
  struct SlabKeyHash {
    std::size_t operator()(const SlabKey& key) const {
      const std::uint64_t extent =
          key.k ^ static_cast<std::uint64_t>(key.size) << 20 ^ static_cast<std::uint64_t>(key.peer + 1) << 50;
      return (key.where ^ extent * 0x9e3779b97f4a7c15ULL) * 0xbf58476d1ce4e5b9ULL >> 16;
    }
  };
  enum class AttendForm : std::uint8_t { none, begins, goes_on };  // begins or continues a tile
  using ShapeKey = std::tuple<OpKind, std::int32_t, std::int32_t, std::int32_t, AttendForm, std::int32_t>;

  void add(const Op& op, std::uint32_t index);
  AttendForm form_of(const Op& op) const;
  std::uint32_t slab_of(std::int32_t buffer, std::int32_t origin, std::int32_t size, const Op& op,
                        std::int32_t peer = -1);
  std::uint32_t shape_id_of(const Op& op);
  MatmulShape shape_of(const Op& op) const;
  void add_peer(const Op& op, double steps, std::int32_t stages, MatmulShape& shape) const;
  MatmulShape attend_shape_of(const Op& op, AttendForm form) const;

  Run& run_;
  Operands& operands_;
  Attention& attention_;
  boost::unordered_map<SlabKey, std::uint32_t, SlabKeyHash> slab_ids_;
  std::uint32_t kernel_ = 0;
  std::map<ShapeKey, std::uint32_t> shape_ids_;  // of the kernel
  ShapeKey last_key_;                            // most kernels have one shape
  std::uint32_t last_shape_ = 0;
  const Op* before_ = nullptr;  // of the same program
};

}  // namespace tritax::engine
