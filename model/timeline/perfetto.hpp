// Timelines as Chrome traces ("traceEvents"), to open in ui.perfetto.dev or chrome://tracing.
//
// One process a GPU with a track for the host, each stream, each compute unit and, beside it, its stores,
// copies and atomic adds (they overlap the operations that follow them); one process with a counter a link;
// in those of GPUs the clock of the matrix cores and what is read from each cache and from memory.
// Of simulations also arrows ("flow events") from each signal to the wait that had to wait for it, and a
// process "critical path" with one track (model/timeline/causes.hpp), which beside a measurement is a track
// of GPU 0. Times are in microseconds with nanosecond digits. Compute units that hold several workgroups at
// once get a track for each ("CU 7 slot 2"). Several asynchronous operations of a workgroup may be under way
// at once: each is drawn from where the one before it ended, so that the track adds up (see op_times.hpp).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/timeline/counters.hpp"
#include "model/timeline/timeline.hpp"

namespace tritax {

struct Topology;

// Of a simulation: processes "GPU 0", …, "links". `about`: members of a JSON object, without its braces, for
// the file's "otherData". `counters`: those of the timeline, if there are any.
std::string timeline_to_perfetto_json(const Timeline& timeline, const Schedule& schedule,
                                      const Topology& topology, const std::string& about = "",
                                      const Counters& counters = {});

// Of a measurement: processes "GPU 0 measured", …. Signals lie on the track of the stores that they release,
// because a GPU may send both beside the next matmul. Where the mean clock of the compute unit during an
// operation is known, it is among its arguments as "clock_ghz". `remark` goes into the file's "otherData".
std::string measured_timeline_to_perfetto_json(const Timeline& timeline, const Schedule& schedule,
                                               const std::string& remark);

// A measured timeline, read back.
struct MeasuredTrace {
  struct Event {
    int rank = 0;
    int track = 0;
    std::string name;      // escaped for JSON
    std::string category;  // likewise
    double begin_ns = 0;
    double end_ns = 0;
    std::string arguments;  // members of a JSON object, without its braces
  };

  std::string schedule;  // its name
  int ranks = 0;
  std::int64_t operations = 0;  // of the schedule
  std::vector<Event> events;
  std::map<std::pair<int, int>, std::string> tracks;  // names by rank and track, escaped for JSON
  std::string origin;
};

// Reads what measured_timeline_to_perfetto_json wrote. Throws UserError that names the file and what is
// wrong.
MeasuredTrace parse_measured_trace(std::string_view json, const std::string& origin);
MeasuredTrace read_measured_trace(const std::string& path);

// A simulation and a measurement of the same schedule in one trace: "GPU 0 simulated" above "GPU 0 measured"
// and so on. The measurement is shifted so that the first kernels begin at the same time. Throws UserError
// when the measurement is one of another schedule.
std::string side_by_side_perfetto_json(const Timeline& simulated, const Schedule& schedule,
                                       const Topology& topology, const MeasuredTrace& measured,
                                       const std::string& about = "", const Counters& counters = {});

}  // namespace tritax
