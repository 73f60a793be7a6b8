// Collectives with a root, and sends between GPUs, as workloads: fields, knobs and patterns. What they do on
// the wire: draft.hpp, reduce.hpp.
#include "model/workloads/rooted/workload.hpp"

#include <array>

#include "model/workload/kernel_class.hpp"
#include "model/workload/launching.hpp"
#include "model/workloads/rooted/reduce.hpp"

namespace tritax {

namespace {

// Who passes its block on.
enum class Partners : std::uint8_t { next, pairs };
constexpr std::array<std::string_view, 2> kPartnersNames{"next", "pairs"};

const std::array<Spec, 4> kReduceFields =
    collective_fields("rows of every GPU's matrix", "columns of the matrix", 2);
const std::array<Spec, 4> kBlockFields =
    collective_fields("rows of the block of one GPU", "columns of the block", 2);
const std::array<Spec, 5> kSendFields{{
    kBlockFields[0],
    kBlockFields[1],
    kBlockFields[2],
    kBlockFields[3],
    {.name = "partners",
     .help = "who receives the block of a GPU: the next GPU, in a ring (next), or GPU 1 that of GPU 0, GPU 3 "
             "that of GPU 2 (pairs)",
     .kind = ValueKind::name,
     .names = kPartnersNames},
}};

const std::array<Spec, 10> kReduceKnobs{{
    collective_knob("comm_tile"),
    collective_knob("comm_cus"),
    collective_knob("transport"),
    collective_knob("peer_order"),
    collective_knob("peers"),
    collective_knob("lock"),
    call_knob(),
    kernels_knob(),
    processes_knob(),
    collective_knob("host_barriers"),
}};

const std::array<Spec, 10> kMoveKnobs = moving_knobs();

const std::array<Spec, 9> kSendReceiveKnobs{{
    collective_knob("comm_tile"),
    collective_knob("comm_cus"),
    collective_knob("transport"),
    collective_knob("lock"),
    form_knob(),
    call_knob(),
    kernels_knob(),
    processes_knob(),
    collective_knob("host_barriers"),
}};

// The moves of a workload; adds the buffers, and the inputs and the reference.
Moves gather_moves(RootedDraft& draft) {
  Moves moves{draft.add_blocks("own"), draft.add_blocks("gathered", draft.ranks()), {}};
  draft.builder.input(draft.builder.whole(moves.source));
  for (int rank = 0; rank < draft.ranks(); ++rank)
    moves.list.push_back({rank, kRootRank, draft.block(), draft.block(rank)});
  return moves;
}

Moves scatter_moves(RootedDraft& draft) {
  Moves moves{draft.add_blocks("blocks", draft.ranks()), draft.add_blocks("own"), {}};
  draft.builder.input(draft.builder.whole(moves.source, kRootRank));
  for (int rank = 0; rank < draft.ranks(); ++rank)
    moves.list.push_back({kRootRank, rank, draft.block(rank), draft.block()});
  return moves;
}

Moves next_moves(RootedDraft& draft) {
  Moves moves{draft.add_blocks("own"), draft.add_blocks("received"), {}};
  draft.builder.input(draft.builder.whole(moves.source));
  for (int rank = 0; rank < draft.ranks(); ++rank)
    moves.list.push_back({rank, (rank + 1) % draft.ranks(), draft.block(), draft.block()});
  return moves;
}

Moves paired_moves(RootedDraft& draft) {
  Moves moves{draft.add_blocks("own"), draft.add_blocks("received"), {}};
  draft.builder.input(draft.builder.whole(moves.source));
  for (int rank = 0; rank + 1 < draft.ranks(); rank += 2)
    moves.list.push_back({rank, rank + 1, draft.block(), draft.block()});
  return moves;
}

using MovesOf = Moves (*)(RootedDraft& draft);

// A pattern of moves by its name.
struct Mover {
  std::string_view name;
  void (*add)(RootedDraft& draft, const Moves& moves);
  int slots = 0;  // blocks of a rank's memory beside source and target
};
constexpr Mover kLibrary{"library", add_library_moves};
constexpr Mover kDirect{"direct", add_direct_moves};
constexpr Mover kMessagePassing{"message-passing", add_message_passing, 1};

Schedule moved(const Mover& mover, const Problem& problem, const Machine& machine, const Values& values,
               double blocks, MovesOf moves_of) {
  RootedDraft draft(mover.name, problem, machine, values, blocks + mover.slots);
  const Moves moves = moves_of(draft);
  draft.builder.result(moves.target);
  expect(draft, moves);
  mover.add(draft, moves);
  return draft.builder.finish();
}

template <MovesOf moves_of, const Mover& mover>
Schedule build_rooted(const Problem& problem, const Machine& machine, const Values& values) {
  return moved(mover, problem, machine, values, problem.gpus() + 1.0, moves_of);
}

MovesOf sends_of(const Problem& problem) {
  return static_cast<Partners>(problem["partners"]) == Partners::next ? next_moves : paired_moves;
}

template <const Mover& mover>
Schedule build_sends(const Problem& problem, const Machine& machine, const Values& values) {
  return moved(mover, problem, machine, values, 2, sends_of(problem));
}

template <ParentOf parent>
Schedule reduced_up(std::string_view pattern, const Problem& problem, const Machine& machine,
                    const Values& values) {
  ReduceDraft draft(pattern, problem, machine, values, most_children(problem.gpus(), parent));
  add_reduce_up(draft, parent);
  return draft.builder.finish();
}

Schedule reduced_pulled(std::string_view pattern, const Problem& problem, const Machine& machine,
                        const Values& values, bool two_phase) {
  ReduceDraft draft(pattern, problem, machine, values, 0);
  add_reduce_pulled(draft, two_phase);
  return draft.builder.finish();
}

Schedule build_reduce_direct(const Problem& problem, const Machine& machine, const Values& values) {
  if (static_cast<Transport>(values["transport"]) == Transport::pull)
    return reduced_pulled("direct", problem, machine, values, false);
  return reduced_up<parent_in_star>("direct", problem, machine, values);
}

Schedule build_reduce_two_phase(const Problem& problem, const Machine& machine, const Values& values) {
  return reduced_pulled("two-phase", problem, machine, values, true);
}

Schedule build_reduce_ring(const Problem& problem, const Machine& machine, const Values& values) {
  return reduced_up<parent_in_ring>("ring", problem, machine, values);
}

Schedule build_reduce_tree(const Problem& problem, const Machine& machine, const Values& values) {
  return reduced_up<parent_in_tree>("tree", problem, machine, values);
}

constexpr std::array<std::string_view, 6> kReduceDirectKnobs{"comm_tile",  "comm_cus", "transport",
                                                             "peer_order", "peers",    "lock"};
constexpr std::array<std::string_view, 5> kTwoPhaseKnobs{"comm_tile", "comm_cus", "peer_order", "peers",
                                                         "lock"};
constexpr std::array<std::string_view, 3> kPieceKnobs{"comm_tile", "comm_cus", "lock"};
constexpr std::array<std::string_view, 5> kDirectKnobs{"comm_tile", "comm_cus", "transport", "peer_order",
                                                       "lock"};
constexpr std::array<std::string_view, 4> kSendKnobs{"comm_tile", "comm_cus", "transport", "lock"};

const std::array<Pattern, 4> kReducePatterns{{
    {.name = "direct",
     .summary = "every GPU stores pieces into slots of GPU 0, or GPU 0 loads them; GPU 0 adds them up",
     .knobs = kReduceDirectKnobs,
     .build = build_reduce_direct},
    {.name = "two-phase",
     .summary = "every GPU loads its share of the pieces from all, adds them up and stores the sum at GPU 0",
     .knobs = kTwoPhaseKnobs,
     .build = build_reduce_two_phase},
    {.name = "ring",
     .summary = "every piece goes from the last GPU to GPU 0, and each GPU adds its own",
     .knobs = kPieceKnobs,
     .build = build_reduce_ring},
    {.name = "tree",
     .summary = "every GPU adds the sums of two others to its own, up to GPU 0",
     .knobs = kPieceKnobs,
     .build = build_reduce_tree},
}};

const std::array<Pattern, 2> kGatherPatterns{{
    {.name = kLibrary.name,
     .summary = "the sends and receives of the vendor's collective library",
     .build = build_rooted<gather_moves, kLibrary>,
     .vendor = true},
    {.name = kDirect.name,
     .summary = "every GPU stores its block at GPU 0, or GPU 0 loads it",
     .knobs = kDirectKnobs,
     .build = build_rooted<gather_moves, kDirect>},
}};

const std::array<Pattern, 2> kScatterPatterns{{
    {.name = kLibrary.name,
     .summary = "the sends and receives of the vendor's collective library",
     .build = build_rooted<scatter_moves, kLibrary>,
     .vendor = true},
    {.name = kDirect.name,
     .summary = "GPU 0 stores every block at its GPU, or each GPU loads its block",
     .knobs = kDirectKnobs,
     .build = build_rooted<scatter_moves, kDirect>},
}};

const std::array<Pattern, 3> kSendPatterns{{
    {.name = kLibrary.name,
     .summary = "a send and a receive of the vendor's collective library",
     .build = build_sends<kLibrary>,
     .vendor = true},
    {.name = kDirect.name,
     .summary = "the sender stores its block at the receiver, or the receiver loads it",
     .knobs = kSendKnobs,
     .build = build_sends<kDirect>},
    {.name = kMessagePassing.name,
     .summary = "a producer stores pieces into slots of the receiver and sets a flag for each; a consumer "
                "takes them out",
     .knobs = kPieceKnobs,
     .build = build_sends<kMessagePassing>},
}};

// Bytes that count for bus bandwidths (NVIDIA/nccl-tests doc/PERFORMANCE.md): all of a reduce and of a send;
// of a gather and a scatter what crosses links.
Work matrix_work(const Problem& problem) {
  return {.bytes_per_gpu = collective_of(problem).bytes(), .peers = problem.gpus() - 1};
}
Work blocks_work(const Problem& problem) {
  return {.bytes_per_gpu = collective_of(problem).bytes() * (problem.gpus() - 1),
          .peers = problem.gpus() - 1};
}
Work send_work(const Problem& problem) {
  return {.bytes_per_gpu = collective_of(problem).bytes(), .peers = 1};
}

Values default_knobs(const Problem& problem, const Machine& machine) {
  return default_collective_knobs(Values(problem.workload->knobs), problem, machine);
}

KnobSpace space(const Pattern& pattern, const Problem& problem, const Machine& machine, const Values& pins) {
  return collective_space(pattern, problem, machine, Values(problem.workload->knobs), pins);
}

// A gather or scatter with this name and these patterns.
Workload blocks_workload(Workload workload) {
  workload.fields = kBlockFields;
  workload.knobs = kMoveKnobs;
  workload.baseline = "library";
  workload.work = blocks_work;
  workload.size_text = collective_size_text;
  workload.default_knobs = default_knobs;
  workload.space = space;
  workload.step_rows = "rows";
  workload.message = Message::matrix_a_gpu;
  return workload;
}

}  // namespace

const Workload& rooted_reduce() {
  static const Workload workload{
      .name = "reduce",
      .title = "Reduce",
      .summary = "GPU 0 ends with the sum of the matrices of all GPUs",
      .fields = kReduceFields,
      .knobs = kReduceKnobs,
      .patterns = kReducePatterns,
      .usual_pattern = "direct",
      .work = matrix_work,
      .size_text = collective_size_text,
      .default_knobs = default_knobs,
      .space = space,
      .step_rows = "rows",
      .message = Message::matrix,
  };
  return workload;
}

const Workload& rooted_gather() {
  static const Workload workload = blocks_workload({.name = "gather",
                                                    .title = "Gather",
                                                    .summary = "GPU 0 ends with the blocks of all GPUs",
                                                    .patterns = kGatherPatterns});
  return workload;
}

const Workload& rooted_scatter() {
  static const Workload workload =
      blocks_workload({.name = "scatter",
                       .title = "Scatter",
                       .summary = "every GPU ends with its block of the matrix of GPU 0",
                       .patterns = kScatterPatterns});
  return workload;
}

const Workload& send_receive() {
  static const Workload workload{
      .name = "send-receive",
      .title = "Send and receive",
      .summary = "every GPU passes its block on to the next GPU, or GPUs pass theirs on in pairs",
      .fields = kSendFields,
      .knobs = kSendReceiveKnobs,
      .patterns = kSendPatterns,
      .baseline = "library",
      .work = send_work,
      .size_text = collective_size_text,
      .default_knobs = default_knobs,
      .space = space,
      .step_rows = "rows",
      .message = Message::matrix,
  };
  return workload;
}

}  // namespace tritax
