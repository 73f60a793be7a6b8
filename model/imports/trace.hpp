// What a run of PyTorch multiplied and sent, from a trace of one of its ranks:
//
//   Kineto           JSON of torch.profiler with record_shapes=True: {"traceEvents": [...]}. Products are
//                    operators such as aten::mm with "Input Dims" and "Input type"; collectives are
//                    record_param_comms, or where there is none kernels, with "Collective name", "In msg
//                    nelems", "Out msg nelems", "Group size" and "dtype"
//                    (pytorch/pytorch, torch/csrc/distributed/c10d/ParamCommsUtils.hpp)
//   execution trace  JSON of torch.profiler.ExecutionTraceObserver: {"schema": ..., "nodes": [...]}, from
//                    which Chakra makes its traces; the same in "inputs" and "attrs" of nodes
//   Chakra           JSON of chakra_jsonizer (mlcommons/chakra): one object per node, one behind the other,
//                    with "attr" comm_type and comm_size
//
// A product counts once: of nested operators the one that calls the library. Batched products, other element
// types and other collectives are counted in `left_out`.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/core/dtype.hpp"
#include "model/workload/traced_form.hpp"

namespace tritax {

// A product of one GPU: rows × depth by depth × columns.
struct TracedProduct {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t depth = 0;
};

struct TracedCall {
  TracedCollective collective = TracedCollective::none;  // none: it is a product
  DType dtype = DType::fp16;
  TracedProduct product;
  // Elements of one GPU: what it gives, and what it has then.
  std::int64_t given = 0;
  std::int64_t received = 0;  // 0: not known
  int gpus = 0;               // in the group of a collective; 0: not known
  std::string place;          // "aten::mm at ts 1200.5"
};

struct Trace {
  std::string file;
  std::string_view form;                         // "Kineto", "execution trace", "Chakra"
  std::vector<TracedCall> calls;                 // in the order of the run
  std::map<std::string, std::int64_t> left_out;  // how many of what, by what and why
};

// Throws UserError with file, and line or event, key, value and what is allowed: no JSON, none of these
// forms, shapes that are no product, a trace without shapes, one without products and collectives.
Trace read_trace(const std::string& path);
Trace parse_trace(std::string_view text, const std::string& origin);

}  // namespace tritax
