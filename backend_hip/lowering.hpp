// Lowers the workgroups of one rank; keeps the state of the accumulator while it walks a workgroup's
// operations. Internal to lower*.cpp.
#pragma once

#include <map>
#include <unordered_map>

#include "backend_hip/lower.hpp"
#include "model/schedule/items.hpp"

namespace tritax::gpu {

// How often each counter is changed during one run, to tell counters with a single signal from shared ones.
using CounterUses = std::unordered_map<std::uint64_t, int>;

class Lowering {
 public:
  Lowering(const Schedule& schedule, const HeapLayout& heap, const DeviceTraits& device, int rank,
           const std::vector<std::uint64_t>& heap_base);
  RankProgram run();

 private:
  // A rectangle of memory that an operation reads or writes.
  struct Access {
    Region region;
    bool writes = false;
  };
  struct Accumulator {
    bool empty = true;      // nothing was ever put in
    bool stored = false;    // written out since the last change
    bool staged = false;    // its converted form lies in the staging area
    std::int32_t cols = 0;  // without log-sum-exps, which are beside them; 0: no attention
  };
  [[noreturn]] void refuse(std::uint32_t number, const std::string& why) const;
  void lower_kernel(std::size_t k);
  bool is_lean(const Kernel& kernel) const;
  // Whether computing threads of the kernel store anything, which a signal then has to cover.
  bool team_may_write(const Kernel& kernel) const;
  // Whether the copy engine brings the operands of the kernel, and senders carry its tiles out.
  bool fed_by_boxes() const;
  bool goes_to_senders(const Op& store) const;
  // The hardware runs whole waves; 64 lanes suit both makers.
  static std::int32_t vector_threads(const Kernel& kernel);
  void lower_workgroup(const Workgroup& workgroup);
  void lower_item(std::size_t k, std::size_t number, const ItemQueue& queue, std::uint32_t first_item);
  // Behind another program of the same kernel, whichever that was.
  void follow_other_program();
  std::uint64_t counter_address(int rank, std::int16_t flag, std::int32_t index) const;
  // Whether the operation is asynchronous and not followed by one of the same kind and type, which the same
  // threads carry out.
  bool ends_run(std::uint32_t number, const Workgroup& workgroup) const;
  // Two paths meet here, so that nothing may be known about the accumulator.
  void forget_accumulator(std::uint32_t number);
  DeviceOp lower_op(std::uint32_t number);
  bool runs_sparse(const Kernel& kernel) const;
  void lower_sparse_product(const Op& op, std::uint32_t number, DeviceOp& out);
  void lower_rms_norm(const Op& op, std::uint32_t number, DeviceOp& out);
  // What writes its rows: the operation behind the last of them.
  std::uint32_t lower_sparse_writes(const Op& op, std::uint32_t number, DeviceOp& out);
  // A load or reduce of one element, and the loads behind it.
  void lower_probes(const Op& op, std::uint32_t number, DeviceOp& out);
  void lower_single_write(const Op& op, std::uint32_t number, DeviceOp& out);
  bool is_skip_target(std::uint32_t begin, std::uint32_t end) const;
  void lower_attend(const Op& op, std::uint32_t number, DeviceOp& out);
  void lower_combine(const Op& op, std::uint32_t number, DeviceOp& out);
  void lower_matmul(const Op& op, std::uint32_t number, DeviceOp& out);
  void require_aligned(const Buffer& buffer, std::int32_t at, std::uint32_t number, const char* what) const;
  // A K range that ends inside the operands is clipped by the maps: the copy engine fills in zeros behind it.
  // Rows of A and columns of B that a tile has no use for are not clipped but read, whatever lies there, for
  // they are never stored: a step whose box of B was half clipped took twice as long.
  void add_operand_maps(const Op& op, bool transposed, DeviceOp& out);
  void lower_store(const Op& op, std::uint32_t number, DeviceOp& out);
  void lower_atomic_add(const Op& op, std::uint32_t number, DeviceOp& out);
  void lower_copy(const Op& op, std::uint32_t number, DeviceOp& out);
  void lower_flag(const Op& op, std::uint32_t number, DeviceOp& out);
  // Whether an earlier operation of this workgroup touches the same memory, and one of the two writes it.
  // Threads of a workgroup run apart and divide tiles differently, so that such operations need a barrier
  // between them.
  bool conflicts(const Access& access) const;
  // At a join every earlier store of the workgroup is done.
  void all_waves_meet();
  void touch(const Access& access, DeviceOp& out);
  // Destination of a store, copy or atomic addition.
  const Buffer& write_to(const Op& op, std::uint32_t number, DeviceOp& out);
  void place(std::int16_t buffer, std::int32_t row, std::int32_t col, int rank, DeviceOp& out) const;
  static std::uint8_t width_of(std::uint64_t address, std::int32_t pitch);
  static void set_width(DeviceOp& out, bool with_source);
  void require_content(std::uint32_t number) const;
  void require_partial_type(const Buffer& buffer, std::uint32_t number) const;
  void require_fits(const Op& op, std::uint32_t number) const;
  std::int32_t map_index(const TensorMapSpec& spec);

  const Schedule& schedule_;
  const HeapLayout& heap_;
  const DeviceTraits& device_;
  int rank_;
  const std::vector<std::uint64_t>& heap_base_;
  CounterUses uses_;
  RankProgram program_;
  std::map<TensorMapSpec, std::int32_t> maps_;
  const TileTraits* tile_ = nullptr;    // of a kernel that multiplies
  const TileTraits* attend_ = nullptr;  // of one that attends
  bool sparse_ = false;                 // one of sparse products
  std::int32_t row_ends_ = 0;           // that LDS holds, of such a one
  std::uint32_t program_end_ = 0;       // of the workgroup or item, in the schedule
  std::uint32_t done_until_ = 0;        // operations that one before them carries out
  std::int32_t box_rows_of_a_ = 0;
  std::int32_t threads_ = 0;
  Accumulator accumulator_;
  std::vector<Access> accesses_;  // of this workgroup since all its waves last met with their stores done
  std::size_t last_staged_store_ = 0;  // into the program's operations
  bool team_wrote_ = false;            // computing threads have stored since the last signal or join
  bool unknown_before_ = false;  // what was stored before, by another program, may be what is touched next
  bool items_conflict_ = false;  // of the kernel, see programs_conflict()
  bool team_may_write_ = false;  // likewise
  std::vector<std::uint32_t> skip_targets_;
};

}  // namespace tritax::gpu
