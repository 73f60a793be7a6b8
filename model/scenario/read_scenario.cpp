#include "model/scenario/read_scenario.hpp"

#include <fmt/format.h>

#include <limits>
#include <map>

#include "model/core/error.hpp"
#include "model/scenario/toml_reader.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kMaxSize = std::int64_t{1} << 20;   // of a matrix side, as in model/workload
constexpr std::int64_t kMaxCount = std::int64_t{1} << 16;  // compute units, workgroups
constexpr std::int64_t kMaxGpus = 1024;
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 40;
constexpr std::int64_t kMaxBlocks = std::int64_t{1} << 30;  // rows of a buffer of a schedule
constexpr std::int64_t kMaxPosted = std::int64_t{1} << 30;

std::int32_t small(std::int64_t value) { return static_cast<std::int32_t>(value); }

DType read_dtype(TomlReader& reader, std::string_view fallback) {
  const std::string name = reader.text_or("dtype", std::string(fallback));
  return parse_dtype(name, reader.where("dtype"));
}

GemmAllScatter read_gemm_all_scatter(TomlReader& reader) {
  GemmAllScatter workload;
  workload.m = reader.integer("m", 1, kMaxSize);
  workload.n = reader.integer("n", 1, kMaxSize);
  workload.k = reader.integer("k", 1, kMaxSize);
  workload.dtype = read_dtype(reader, "fp16");
  workload.gpus = small(reader.integer("gpus", 1, kMaxGpus));
  check(workload, reader.where());
  return workload;
}

GemmCaller read_caller(TomlReader& reader) {
  const bool binding = reader.boolean_or("binding", false);
  const bool framework = reader.boolean_or("framework", !binding);
  if (binding && framework) {
    throw UserError(
        fmt::format("{}: binding = true and framework = true; a GEMM is called through one of them",
                    reader.where("binding")));
  }
  if (binding) return GemmCaller::binding;
  return framework ? GemmCaller::framework : GemmCaller::loop;
}

MatmulTile read_library_tile(TomlReader& reader) {
  MatmulTile tile;
  tile.waves = small(reader.integer_or("waves", 1, 64, 8));
  if (!reader.has("tile")) {
    if (reader.has("waves")) {
      throw UserError(
          fmt::format("{}: waves are those of a 'tile', and there is none", reader.where("waves")));
    }
    return {};
  }
  const auto edges = reader.integers("tile", 3, 1, kMaxCommTile);
  tile.m = small(edges[0]);
  tile.n = small(edges[1]);
  tile.k = small(edges[2]);
  tile.pipeline = Pipeline::overlapped;
  return tile;
}

LibraryGemm read_library_gemm(TomlReader& reader) {
  LibraryGemm workload;
  workload.m = reader.integer("m", 1, kMaxSize);
  workload.n = reader.integer("n", 1, kMaxSize);
  workload.k = reader.integer("k", 1, kMaxSize);
  workload.dtype = read_dtype(reader, "bf16");
  workload.caller = read_caller(reader);
  workload.tile = read_library_tile(reader);
  return workload;
}

RemoteAccess read_remote_access(TomlReader& reader) {
  RemoteAccess workload;
  workload.operation = static_cast<RemoteOperation>(reader.choice("operation", kRemoteOperationNames));
  workload.peers = static_cast<Peers>(reader.choice("peers", kPeersNames));
  workload.block_bytes = reader.has("block_bytes") ? reader.bytes("block_bytes", 4, 1 << 20) : 1024;
  workload.bytes = reader.bytes("bytes", workload.block_bytes, kMaxBytes);
  if (workload.block_bytes % 4 != 0 || workload.bytes % workload.block_bytes != 0) {
    throw UserError(fmt::format("{}: bytes = {} must be a multiple of block_bytes = {}, and that of 4",
                                reader.where("bytes"), workload.bytes, workload.block_bytes));
  }
  const int gpus = workload.peers == Peers::self ? 1 : 2;
  workload.gpus = workload.peers == Peers::all ? small(reader.integer("gpus", 2, kMaxGpus)) : gpus;
  if (workload.bytes / workload.block_bytes > kMaxBlocks / workload.gpus) {
    throw UserError(fmt::format("{}: bytes = {} are more than 2^30 blocks of {} bytes over all GPUs",
                                reader.where("bytes"), workload.bytes, workload.block_bytes));
  }
  return workload;
}

AllGather read_all_gather(TomlReader& reader) {
  AllGather workload;
  workload.rows = reader.integer("rows", 1, kMaxSize);
  workload.cols = reader.integer("cols", 1, kMaxSize);
  workload.dtype = read_dtype(reader, "fp16");
  workload.gpus = small(reader.integer("gpus", 2, kMaxGpus));
  workload.library = reader.boolean_or("library", false);
  if (reader.has("posted_bytes_per_peer")) {
    workload.posted_bytes_per_peer = reader.bytes("posted_bytes_per_peer", 1, kMaxPosted);
    if (workload.library) {
      throw UserError(
          fmt::format("{}: posted_bytes_per_peer and library = true; what the library's kernel posts "
                      "is part of the machine (library.channel_bandwidth)",
                      reader.where("posted_bytes_per_peer")));
    }
  }
  return workload;
}

Workload read_workload(TomlReader& reader) {
  switch (reader.choice("workload", kWorkloadNames)) {
    case 0:
      return read_gemm_all_scatter(reader);
    case 1:
      return read_library_gemm(reader);
    case 2:
      return read_remote_access(reader);
    default:
      return read_all_gather(reader);
  }
}

void read_gemm_knobs(TomlReader& reader, Knobs& knobs) {
  if (reader.has("tile")) {
    const auto tile =
        reader.integers("tile", 3, kTileStep, kMaxGemmTile,
                        fmt::format("an array of 3 multiples of {} up to {}", kTileStep, kMaxGemmTile));
    knobs.tile_m = small(tile[0]);
    knobs.tile_n = small(tile[1]);
    knobs.tile_k = small(tile[2]);
  }
  knobs.waves = small(reader.integer_or("waves", 1, kMaxWaves, knobs.waves, kAllowedWaves));
  knobs.pipeline =
      static_cast<Pipeline>(reader.choice("pipeline", kPipelineNames, static_cast<int>(knobs.pipeline)));
  knobs.gemm_cus = small(reader.integer_or("gemm_cus", 1, kMaxCount, knobs.gemm_cus, kAllowedCus));
  knobs.group_m = small(reader.integer_or("group_m", 1, kMaxCount, knobs.group_m));
  knobs.xcd_remap = reader.boolean_or("xcd_remap", knobs.xcd_remap);
  knobs.lock =
      static_cast<LockProtocol>(reader.choice("lock", kLockProtocolNames, static_cast<int>(knobs.lock)));
  knobs.launch =
      static_cast<LaunchMode>(reader.choice("launch", kLaunchModeNames, static_cast<int>(knobs.launch)));
  knobs.host_barriers = reader.boolean_or("host_barriers", knobs.host_barriers);
}

void read_comm_knobs(TomlReader& reader, Knobs& knobs) {
  if (reader.has("comm_tile")) {
    const auto tile =
        reader.integers("comm_tile", 2, kTileStep, kMaxCommTile,
                        fmt::format("an array of 2 multiples of {} up to {}", kTileStep, kMaxCommTile));
    knobs.comm_tile_m = small(tile[0]);
    knobs.comm_tile_n = small(tile[1]);
  }
  knobs.comm_cus = small(reader.integer_or("comm_cus", 1, kMaxCount, knobs.comm_cus, kAllowedCus));
  knobs.peer_order = static_cast<PeerOrder>(
      reader.choice("peer_order", kPeerOrderNames, static_cast<int>(knobs.peer_order)));
}

void read_knobs(TomlReader& file, const std::string& origin, Scenario& scenario) {
  const auto tables = file.tables("knobs");
  if (tables.empty()) return;
  TomlReader reader(tables, origin, "table of knobs");
  const bool gemm = std::holds_alternative<GemmAllScatter>(scenario.workload);
  if (gemm) read_gemm_knobs(reader, scenario.knobs);
  if (gemm || std::holds_alternative<AllGather>(scenario.workload)) read_comm_knobs(reader, scenario.knobs);
  if (gemm) scenario.tile_given = reader.has("tile");
  if (gemm) scenario.pipeline_given = reader.has("pipeline");
  reader.finish();
}

// Ids tell the rows of `tritax measure` apart, in a table without quotes.
void check_id(const Scenario& scenario) {
  if (scenario.id.empty()) throw UserError(fmt::format("{}: this scenario has no 'id'", scenario.where));
  if (scenario.id.front() == '#' || scenario.id.find_first_of(",\"") != std::string::npos) {
    throw UserError(fmt::format(
        "{}: id '{}' is not allowed; ids have no commas and no quotation marks, and do not begin with #",
        scenario.where, scenario.id));
  }
}

}  // namespace

std::vector<Scenario> scenarios_from_tables(std::vector<const toml::table*> chain,
                                            const std::string& origin) {
  TomlReader reader(std::move(chain), origin, "scenario");
  Scenario scenario;
  scenario.where = reader.where();
  scenario.id = reader.text_or("id", "");
  scenario.title = reader.text_or("title", "");
  scenario.machine = reader.text("machine");
  if (scenario.machine.empty()) {
    throw UserError(scenario.where + ": machine is empty; give the name of a shipped one or a path");
  }
  scenario.workload = read_workload(reader);
  read_knobs(reader, origin, scenario);
  std::vector<std::string> patterns;
  if (std::holds_alternative<GemmAllScatter>(scenario.workload) && reader.has("pattern")) {
    patterns = reader.texts("pattern");
  }
  reader.finish();
  if (const auto* gather = std::get_if<AllGather>(&scenario.workload)) {
    if (!gather->library && scenario.knobs.comm_cus == 0) {
      throw UserError(fmt::format("{}: an all-gather needs knobs.comm_cus, the number of its workgroups",
                                  scenario.where));
    }
  }
  if (patterns.empty()) return {scenario};
  std::vector<Scenario> scenarios;
  for (const std::string& pattern : patterns) {
    find_pattern(pattern, reader.where("pattern"));
    Scenario& one = scenarios.emplace_back(scenario);
    one.pattern = pattern;
    if (patterns.size() > 1) one.id += "/" + pattern;
  }
  return scenarios;
}

std::vector<Scenario> parse_scenarios(std::string_view toml, const std::string& origin) {
  const toml::table root = parse_toml(toml, origin);
  TomlReader file({&root}, origin, "scenario file");
  const auto defaults = file.tables("defaults");
  const toml::node* list = file.find("scenario");
  file.finish();
  const toml::array* tables = list == nullptr ? nullptr : list->as_array();
  if (tables == nullptr || tables->empty()) {
    throw UserError(fmt::format("{}: a scenario file holds at least one [[scenario]] table", origin));
  }
  std::vector<Scenario> scenarios;
  std::map<std::string, std::string> places;  // of the ids
  for (const toml::node& node : *tables) {
    const toml::table* table = node.as_table();
    if (table == nullptr)
      throw UserError(fmt::format("{}: scenario must be written as [[scenario]]", file.where(node)));
    std::vector<const toml::table*> chain{table};
    chain.insert(chain.end(), defaults.begin(), defaults.end());
    for (Scenario& scenario : scenarios_from_tables(std::move(chain), origin)) {
      check_id(scenario);
      const auto [place, fresh] = places.emplace(scenario.id, scenario.where);
      if (!fresh) {
        throw UserError(fmt::format("{}: id \"{}\" is already used at {}; ids must differ", scenario.where,
                                    scenario.id, place->second));
      }
      scenarios.push_back(std::move(scenario));
    }
  }
  return scenarios;
}

std::vector<Scenario> read_scenarios(const std::string& path) {
  return parse_scenarios(read_text_file(path), path);
}

}  // namespace tritax
