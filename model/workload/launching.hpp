// How the kernels of a run are launched: the forms of a vendor's library, host time of calls, and the one
// mode in which a question compares both with own kernels.
//
// A pattern of libraries is built as a framework calls it eagerly, with all the host does. Its knob `form`
// says what is left of that:
//
//   eager-slices  all of it
//   eager         no gather into a list of slices
//   stream        one stream after another: no host work of a framework, no wait before the last. What comes
//                 behind a wait for a stream goes into that stream instead.
//   graph         the same kernels in one launch: no calls either
//   custom-graph  the same, with a serving engine's own all-reduce instead of the collective library's
//
// For example, of host programs (GEMM, wait, 264 us, 405 us, call, GATHER, COPY, wait) the stream form is
// (GEMM, call, GATHER, COPY, wait), and the graph form ({GEMM, GATHER, COPY}, wait).
//
// A process per GPU launches on its own, as under torchrun and mpirun; the launches of one process that
// drives all GPUs take turns (knob `processes`).
//
// Own patterns have a knob `launch`. A question compares both in one mode: as graphs where a step has so few
// rows that serving systems replay graphs, else in streams. `call_us` is host time of every launch of an own
// pattern outside a graph, beyond the machine's: Triton's from Python takes a host 17 to 19 us in all (own
// measurement, one H200, 2026-11-29, driver 580, torch 2.11, Triton 3.6).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "model/schedule/schedule.hpp"
#include "model/workload/values.hpp"

namespace tritax {

struct Machine;
struct Pattern;
struct Problem;

enum class CallForm : std::uint8_t { stream, graph, eager, eager_slices, custom_graph };

// Engines whose all-reduces the form custom-graph has.
enum class Engine : std::uint8_t { vllm, sglang, trtllm };
inline constexpr std::array<std::string_view, 3> kEngineNames{"vllm", "sglang", "trtllm"};
inline constexpr std::string_view kEngineKnob = "engine";

inline constexpr std::string_view kFormKnob = "form";
inline constexpr std::string_view kLaunchKnob = "launch";
inline constexpr std::string_view kCallKnob = "call_us";
inline constexpr std::string_view kProcessesKnob = "processes";

// Rows of more than that are not replayed as graphs: vLLM captures batches of up to so many tokens
// (vllm-project/vllm vllm/config, max_cudagraph_capture_size).
inline constexpr std::int64_t kMostGraphRows = 512;

enum class LaunchMode : std::uint8_t { stream, graph };
inline constexpr std::array<std::string_view, 2> kLaunchModeNames{"stream", "graph"};

// Rows for the tables of workloads. `last`: the form that a workload has beyond stream, graph and eager.
Spec form_knob(CallForm last = CallForm::eager);
Spec engine_knob();

// The form that knobs say. They have the knob.
CallForm call_form_of(const Values& knobs);
Spec call_knob();
Spec processes_knob();

// The mode in which a question is answered whose problem, and whose knobs that are held fixed, are these.
LaunchMode launch_mode_of(const Problem& problem, const Values& pins);

// `pins` with what holds all patterns in that mode: `launch` and `form`, where there are such knobs and
// nobody gave them. Of graphs, custom-graph where calls of the engine's all-reduce were measured on the
// machine: who replays graphs there has it.
Values in_mode(const Values& pins, LaunchMode mode, const Machine& machine);

// The schedule as the knobs have it launched. Throws UserError for the form graph of what no graph can hold.
void launch_as(Schedule& schedule, const Pattern& pattern, const Values& knobs);

}  // namespace tritax
