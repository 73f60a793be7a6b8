// Random well-formed schedules for the laws of the JSON form: every field is in the range of the format,
// references exist, but nobody promises that the schedule is sound.
#pragma once

#include <rapidcheck.h>

#include <tuple>
#include <vector>

#include "model/schedule/builder.hpp"
#include "model/schedule/op_traits.hpp"

namespace tritax {

inline auto fields_of(const Op& op) {
  return std::tuple(op.kind, op.scope, op.protocol, op.change, op.order, op.with_previous, op.multimem,
                    op.by_engine, op.rank, op.src_rank, op.buffer, op.src_buffer, op.b_buffer, op.flag,
                    op.rect.row, op.rect.col, op.rect.rows, op.rect.cols, op.src_row, op.src_col, op.k_begin,
                    op.k_end, op.index, op.value);
}

inline int below(int limit) { return *rc::gen::inRange(0, limit); }
inline int natural() { return *rc::gen::oneOf(rc::gen::inRange(0, 1000), rc::gen::just(2147483647)); }
inline Rect random_rect() { return {natural(), natural(), 1 + below(300), 1 + below(300)}; }

inline void add_random_op(ScheduleBuilder& builder, int ranks, int buffers, int flags) {
  const auto buffer = [&] { return static_cast<std::int16_t>(below(buffers)); };
  const auto flag = [&] { return static_cast<std::int16_t>(below(flags)); };
  const auto scope = [&] { return static_cast<Scope>(below(3)); };
  const auto protocol = [&] { return static_cast<LockProtocol>(below(3)); };
  switch (static_cast<OpKind>(below(static_cast<int>(kOpTraits.size())))) {
    case OpKind::matmul:
      return builder.matmul_of(below(ranks), buffer(), buffer(), random_rect(), natural(), natural());
    case OpKind::load:
      return builder.load(buffer(), random_rect(), below(ranks));
    case OpKind::store:
      return builder.store(buffer(), random_rect(), below(ranks));
    case OpKind::copy:
      if (below(2) == 1)
        return builder.post(buffer(), random_rect(), below(ranks), buffer(), natural(), natural(),
                            below(ranks));
      return builder.copy(buffer(), random_rect(), below(ranks), buffer(), natural(), natural(),
                          below(ranks));
    case OpKind::reduce:
      if (below(2) == 1) {
        return builder.multimem([&] {
          builder.load(buffer(), random_rect(), below(ranks));
          builder.reduce(buffer(), random_rect(), below(ranks));
        });
      }
      return builder.reduce(buffer(), random_rect(), below(ranks));
    case OpKind::attend:
      return builder.attend(buffer(), random_rect(), buffer(), buffer(), natural(), natural(), natural(),
                            {natural(), 1 + below(9)});
    case OpKind::row_dot:
      return builder.row_dot(buffer(), random_rect(), below(ranks));
    case OpKind::attend_backward:
      return builder.attend_backward({buffer(), buffer(), buffer(), buffer(), buffer()}, random_rect(),
                                     natural(), natural(), natural(), natural());
    case OpKind::combine:
      return builder.combine(buffer(), random_rect(), below(ranks));
    case OpKind::rms_norm:
      return builder.rms_norm(buffer(), random_rect(), below(ranks));
    case OpKind::atomic_add:
      return builder.atomic_add(buffer(), random_rect(), below(ranks));
    case OpKind::signal: {
      const auto order = static_cast<MemoryOrder>(below(2));
      if (below(3) == 0) {
        return builder.set_flag(flag(), natural(), natural(), below(ranks), scope(), protocol(), order);
      }
      return builder.signal(flag(), natural(), natural(), below(ranks), scope(), protocol(), order);
    }
    case OpKind::wait:
      return builder.together([&] {
        for (int waits = 1 + below(2); waits > 0; --waits)
          builder.wait(flag(), natural(), natural(), scope(), protocol());
      });
    case OpKind::claim:
      if (below(2) == 1) return builder.claim_items(flag(), natural(), below(1000), 1 + below(1000));
      return builder.claim(flag(), natural(), natural(), natural());
    default:
      return builder.barrier();
  }
}

inline Region random_region(int ranks, int buffers) {
  return {static_cast<std::int16_t>(below(buffers)), below(ranks + 1) - 1, random_rect()};
}

inline void add_random_reference(ScheduleBuilder& builder, int ranks, int buffers) {
  const auto region = [&] { return random_region(ranks, buffers); };
  for (int inputs = below(3); inputs > 0; --inputs) {
    builder.input(region(), static_cast<InputValues>(below(3)));
  }
  for (int ops = below(3); ops > 0; --ops) {
    const bool add = below(2) == 1;
    switch (static_cast<ReferenceKind>(below(static_cast<int>(kReferenceKindNames.size())))) {
      case ReferenceKind::product:
        builder.expect_product(region(), region(), region(), add);
        break;
      case ReferenceKind::copy:
        builder.expect_copy(region(), region(), add);
        break;
      case ReferenceKind::sum:
        builder.expect_sum(region(), region(), add);
        break;
      case ReferenceKind::attention:
        builder.expect_attention(region(), region(), region(), region(), natural(), 1 + below(9));
        break;
      case ReferenceKind::row_dot:
        builder.expect_row_dot(region(), region(), region());
        break;
      case ReferenceKind::attention_backward:
        builder.expect_attention_backward(region(), region(), region(), region(), region(), natural(), add);
        break;
      case ReferenceKind::rms_norm:
        builder.expect_rms_norm(region(), region(), region());
        break;
      case ReferenceKind::sparse_product:
        builder.expect_sparse_product(region(), static_cast<std::int16_t>(below(9)), region(), region());
        break;
    }
  }
}

inline Kernel random_kernel(int ranks) {
  Kernel kernel;
  kernel.name = *rc::gen::element<std::string>("gemm", "scatter", "", "a \"quoted\"\n name", "käse");
  kernel.rank = below(ranks);
  kernel.resources = {1 + natural() / 2, natural(), natural()};
  kernel.tile = {natural(), below(300), below(300), below(16), static_cast<Pipeline>(below(2))};
  kernel.placement = static_cast<Placement>(below(3));
  kernel.profile = static_cast<KernelProfile>(below(kKernelProfileCount));
  kernel.cu_begin = below(100);
  kernel.cu_end = below(300);
  kernel.library.routine = static_cast<LibraryRoutine>(below(static_cast<int>(kLibraryRoutineNames.size())));
  if (kernel.library.routine != LibraryRoutine::none) {
    kernel.library.bytes = *rc::gen::element(0.0, 1024.0, 0.1, 1e15);
    for (const LibraryKernelCount& count : kLibraryKernelCounts) kernel.library.*count.member = below(300);
  }
  kernel.payload_share = *rc::gen::element(1.0, 0.5, 0.9375);
  kernel.start_ns = *rc::gen::element(0.0, 7150.0, 0.1);
  kernel.clk_per_stored_byte = *rc::gen::element(0.0, 0.25, 3.0);
  kernel.registers_filled = below(2) == 1;
  return kernel;
}

inline rc::Gen<Schedule> random_schedule() {
  return rc::gen::exec([] {
    const int ranks = 1 + below(4);
    ScheduleBuilder builder(*rc::gen::element<std::string>("", "random", "ünï\\code"), ranks);
    const int buffers = 1 + below(4);
    for (int i = 0; i < buffers; ++i) {
      const auto name = *rc::gen::element<std::string>("A", "B", "C", "");
      builder.buffer({name, static_cast<DType>(below(kDTypeCount)), 1 + below(900), 1 + below(900),
                      1 + below(300), 1 + below(300)});
    }
    const int flags = 1 + below(3);
    for (int i = 0; i < flags; ++i) {
      builder.flags(*rc::gen::element<std::string>("ready", "done", ""), 1 + natural() / 2);
    }
    if (below(2) == 1) {
      builder.result(static_cast<std::int16_t>(below(buffers)));
    }
    add_random_reference(builder, ranks, buffers);
    const int kernels = 1 + below(4);
    for (int i = 0; i < kernels; ++i) {
      const auto kernel = builder.kernel(random_kernel(ranks));
      for (int programs = below(6); programs > 0; --programs) {
        if (below(3) == 0) {
          builder.item(kernel);
        } else {
          builder.workgroup(kernel);
        }
        for (int ops = below(5); ops > 0; --ops) {
          add_random_op(builder, ranks, buffers, flags);
        }
      }
    }
    for (int rank = 0; rank < ranks; ++rank) {
      for (int ops = below(4); ops > 0; --ops) {
        const auto kind = static_cast<HostOpKind>(below(static_cast<int>(kHostOpTraits.size())));
        if (kind == HostOpKind::launch) {
          builder.launch(rank, below(kernels), below(3));
        } else if (kind == HostOpKind::graph_launch) {
          builder.graph_launch(rank, {{below(kernels), below(3)}, {below(kernels), 0}});
        } else if (kind == HostOpKind::copy) {
          builder.host_copy(rank, below(3), 0, {below(9), 0, 1 + below(5), 4}, below(ranks), 0, 3, below(4),
                            below(ranks));
        } else if (kind == HostOpKind::event_record) {
          builder.record_event(rank, below(3), below(3));
        } else if (kind == HostOpKind::event_wait) {
          builder.wait_event(rank, below(3), below(3));
        } else if (kind == HostOpKind::host_work) {
          builder.host_work(rank, "some \"work\"", below(3) - 1);
        } else {
          builder.host(rank, kind, kind == HostOpKind::stream_synchronize ? below(3) : 0);
        }
      }
    }
    Schedule schedule = builder.finish();
    schedule.one_process = below(2) == 1;
    return schedule;
  });
}

}  // namespace tritax
