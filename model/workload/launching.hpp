// Decides how the kernels of a run are launched: the forms of a vendor's library, host time of calls, and the
// one mode in which a question compares libraries and own kernels.
//
// A library pattern is built like an eager call by a framework, with all host work. Its knob `form` says how
// much of the host work remains:
//
//   eager-slices  all of it
//   eager         no gather into a list of slices
//   stream        all in streams: no host work of a framework, and only the last wait. Work after a removed
//                 wait for a stream goes into that stream.
//   graph         the same kernels in one graph launch: also without calls
//   custom-graph  the same, with a serving engine's own all-reduce instead of the collective library's
//
// For example, for the host program (GEMM, wait, 264 us, 405 us, call, GATHER, COPY, wait) the stream form is
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

// Engines whose all-reduces the form custom-graph can use.
enum class Engine : std::uint8_t { vllm, sglang, trtllm };
inline constexpr std::array<std::string_view, 3> kEngineNames{"vllm", "sglang", "trtllm"};
inline constexpr std::string_view kEngineKnob = "engine";

inline constexpr std::string_view kFormKnob = "form";
inline constexpr std::string_view kLaunchKnob = "launch";
inline constexpr std::string_view kCallKnob = "call_us";
inline constexpr std::string_view kProcessesKnob = "processes";

// Most rows of a step that is replayed as a graph: vLLM captures batches of up to this number of tokens
// (vllm-project/vllm vllm/config, max_cudagraph_capture_size).
inline constexpr std::int64_t kMostGraphRows = 512;

enum class LaunchMode : std::uint8_t { stream, graph };
inline constexpr std::array<std::string_view, 2> kLaunchModeNames{"stream", "graph"};

// Rows of the knobs for the tables of workloads. `last`: the form that a workload has besides stream, graph
// and eager.
Spec form_knob(CallForm last = CallForm::eager);
Spec engine_knob();

// Whether calls of that engine's all-reduce were measured on the machine. By the law alone they are off by a
// third in the median (docs/support.md).
bool engine_is_measured(const Machine& machine, Engine engine);

// The form in the knobs, which must have the knob `form`.
CallForm call_form_of(const Values& knobs);
Spec call_knob();
Spec processes_knob();

// The mode for a question with this problem and these pinned knobs.
LaunchMode launch_mode_of(const Problem& problem, const Values& pins);

// `pins` with `launch` and `form` set to that mode for all patterns, if these knobs exist and are not given.
// Of the graph forms, custom-graph if calls of the engine's all-reduce were measured on the machine, because
// users who replay graphs there have this all-reduce.
Values in_mode(const Values& pins, LaunchMode mode, const Machine& machine);

// Changes the schedule to the launches that the knobs ask for. Throws UserError for the form graph if a graph
// cannot hold the schedule.
void launch_as(Schedule& schedule, const Pattern& pattern, const Values& knobs);

}  // namespace tritax
