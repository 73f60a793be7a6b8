// Lowers the workgroups of one rank, and tracks the state of the accumulator over a workgroup's operations.
// Internal to lower*.cpp.
#pragma once

#include <map>
#include <unordered_map>

#include "backend_hip/lower.hpp"
#include "model/schedule/items.hpp"

namespace tritax::gpu {

// Number of changes of each counter in one run, which tells counters with a single signal from shared ones.
using CounterUses = std::unordered_map<std::uint64_t, int>;

class Lowering {
 public:
  Lowering(const Schedule& schedule, const HeapLayout& heap, const DeviceTraits& device, int rank,
           const std::vector<std::uint64_t>& heap_base, std::uint64_t multicast);
  RankProgram run();

 private:
  // A rectangle of memory that an operation reads or writes.
  struct Access {
    Region region;
    bool writes = false;
  };
  struct Accumulator {
    bool empty = true;      // nothing is in it yet
    bool stored = false;    // written out since the last change
    bool staged = false;    // its converted form lies in the staging area
    std::int32_t cols = 0;  // without log-sum-exps, which are stored beside; 0: no attention
  };
  [[noreturn]] void refuse(std::uint32_t number, const std::string& why) const;
  void lower_kernel(std::size_t k);
  bool is_lean(const Kernel& kernel) const;
  // Whether computing threads of the kernel store anything, so that a signal must cover these stores.
  bool team_may_write(const Kernel& kernel) const;
  // Whether the copy engine brings the operands of the kernel, and senders carry its tiles out.
  bool fed_by_boxes() const;
  bool goes_to_senders(const Op& store) const;
  // The hardware runs whole waves; 64 lanes suit both makers.
  static std::int32_t vector_threads(const Kernel& kernel);
  void lower_workgroup(const Workgroup& workgroup);
  void join_groups(std::size_t first_lowered, const Workgroup& program);
  // Makes a group of the switch its first operation, at the multicast address.
  void send_to_switch(const Op& op, std::uint32_t number, DeviceOp& first) const;
  void lower_item(std::size_t k, std::size_t number, const ItemQueue& queue, std::uint32_t first_item);
  // Marks that another program of the same kernel, unknown which, may have run before.
  void follow_other_program();
  std::uint64_t counter_address(int rank, std::int16_t flag, std::int32_t index) const;
  // Whether the operation is asynchronous and not followed by an operation of the same kind and type, which
  // the same threads would carry out.
  bool ends_run(std::uint32_t number, const Workgroup& workgroup) const;
  // Two control paths meet here, so that the state of the accumulator is unknown.
  void forget_accumulator(std::uint32_t number);
  DeviceOp lower_op(std::uint32_t number);
  bool runs_sparse(const Kernel& kernel) const;
  void lower_sparse_product(const Op& op, std::uint32_t number, DeviceOp& out);
  void lower_rms_norm(const Op& op, std::uint32_t number, DeviceOp& out);
  // Lowers the writes behind a sparse product; returns the operation behind the last of them.
  std::uint32_t lower_sparse_writes(const Op& op, std::uint32_t number, DeviceOp& out);
  // A load or reduce of one element, and the loads behind it.
  void lower_probes(const Op& op, std::uint32_t number, DeviceOp& out);
  void lower_single_write(const Op& op, std::uint32_t number, DeviceOp& out);
  bool is_skip_target(std::uint32_t begin, std::uint32_t end) const;
  void lower_attend(const Op& op, std::uint32_t number, DeviceOp& out);
  void lower_combine(const Op& op, std::uint32_t number, DeviceOp& out);
  void lower_matmul(const Op& op, std::uint32_t number, DeviceOp& out);
  void require_aligned(const Buffer& buffer, std::int32_t at, std::uint32_t number, const char* what) const;
  // The maps clip a K range that ends inside the operands: the copy engine fills in zeros behind it. Rows of
  // A and columns of B beyond the tile are not clipped but read, whatever they contain, because their results
  // are never stored: a step with a half-clipped box of B took twice as long.
  void add_operand_maps(const Op& op, bool transposed, DeviceOp& out);
  void lower_store(const Op& op, std::uint32_t number, DeviceOp& out);
  void lower_atomic_add(const Op& op, std::uint32_t number, DeviceOp& out);
  void lower_copy(const Op& op, std::uint32_t number, DeviceOp& out);
  void lower_flag(const Op& op, std::uint32_t number, DeviceOp& out);
  // Whether an earlier operation of this workgroup accesses the same memory, and at least one of the two
  // writes it. Threads of a workgroup run independently and divide tiles differently, so that such operations
  // need a barrier between them.
  bool conflicts(const Access& access) const;
  // At a join all earlier stores of the workgroup are complete.
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
  std::uint64_t multicast_;  // address of all heaps; 0: operations of the switch go peer by peer
  CounterUses uses_;
  RankProgram program_;
  std::map<TensorMapSpec, std::int32_t> maps_;
  const TileTraits* tile_ = nullptr;    // of a multiplying kernel
  const TileTraits* attend_ = nullptr;  // of an attending kernel
  bool sparse_ = false;                 // whether the kernel has sparse products
  std::int32_t row_ends_ = 0;           // row ends in LDS, for sparse products
  std::uint32_t program_end_ = 0;       // of the workgroup or item, in the schedule
  std::uint32_t done_until_ = 0;        // operations that an earlier operation carries out
  std::int32_t box_rows_of_a_ = 0;
  std::int32_t threads_ = 0;
  Accumulator accumulator_;
  std::vector<Access> accesses_;  // of this workgroup since all its waves last met with their stores complete
  std::size_t last_staged_store_ = 0;  // into the program's operations
  bool team_wrote_ = false;            // computing threads have stored since the last signal or join
  bool unknown_before_ = false;  // the next access may be to memory that another program stored to before
  bool items_conflict_ = false;  // of the kernel, see programs_conflict()
  bool team_may_write_ = false;  // of the kernel, see team_may_write()
  std::vector<std::uint32_t> skip_targets_;
};

}  // namespace tritax::gpu
