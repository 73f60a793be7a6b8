#include "cli/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cli/fields.hpp"
#include "model/core/error.hpp"
#include "model/machine/topology.hpp"
#include "model/schedule/op_traits.hpp"
#include "sim/account_fields.hpp"
#include "sim/run_fields.hpp"

namespace tritax::cli {

namespace {

using nlohmann::ordered_json;

double share(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

struct UsedLink {
  std::string name;
  double bytes = 0;
  double utilisation = 0;  // share of the raw rate, over the whole run
};

std::vector<UsedLink> used_links(const SimulationResult& result, const Machine& machine, int gpus) {
  std::vector<UsedLink> links;
  const Topology topology = build_topology(machine, gpus);
  TRITAX_ASSERT(result.link_bytes.size() <= topology.edges.size(),
                "the simulator counts links of the topology");
  for (std::size_t edge = 0; edge < result.link_bytes.size(); ++edge) {
    const double bytes = result.link_bytes[edge];
    if (bytes > 0) {
      const TopologyEdge& link = topology.edges[edge];
      links.push_back({link.name, bytes, bytes / (result.makespan_ns * link.raw_gb_per_s)});
    }
  }
  return links;
}

// "0-3, 5"
std::string ranges_text(const std::vector<std::size_t>& ascending) {
  std::string text;
  for (std::size_t i = 0; i < ascending.size();) {
    std::size_t end = i + 1;
    while (end < ascending.size() && ascending[end] == ascending[end - 1] + 1) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", ascending[i]);
    if (end - i > 1) text += fmt::format("-{}", ascending[end - 1]);
    i = end;
  }
  return text;
}

// Joins GPUs with equal numbers in the text form into one row that names all of them.
std::vector<GpuLine> joined(const std::vector<GpuLine>& lines) {
  const Table table = table_of(gpu_line_fields(), lines, shown::kText);
  const auto shown_as = [&table](const std::vector<Cell>& row) {
    std::string text;
    for (std::size_t i = 1; i < row.size(); ++i) {
      text += fmt::format("{:.{}f} ", std::get<double>(row[i]), table.columns[i].decimals);
    }
    return text;
  };
  std::vector<std::string> texts;
  std::vector<GpuLine> kept;
  std::vector<std::vector<std::size_t>> members;
  for (std::size_t gpu = 0; gpu < lines.size(); ++gpu) {
    const std::string text = shown_as(table.rows[gpu]);
    const auto same = static_cast<std::size_t>(std::find(texts.begin(), texts.end(), text) - texts.begin());
    if (same == texts.size()) {
      texts.push_back(text);
      kept.push_back(lines[gpu]);
      members.emplace_back();
    }
    members[same].push_back(gpu);
  }
  for (std::size_t i = 0; i < kept.size(); ++i) kept[i].gpu = ranges_text(members[i]);
  return kept;
}

}  // namespace

ordered_json json_of(const Problem& problem) {
  ordered_json json{{"name", problem.workload->name}};
  json.update(json_of(problem.values));
  return json;
}

ordered_json json_of(const Values& values) {
  ordered_json json = ordered_json::object();
  for (std::size_t i = 0; i < values.specs().size(); ++i)
    json[std::string(values.specs()[i].name)] = json_of(values, i);
  return json;
}

ordered_json json_of(const Values& values, std::size_t spec) {
  const Spec& one = values.specs()[spec];
  const std::int64_t value = values.at(values.first_column(spec));
  if (one.columns() > 1 || one.kind == ValueKind::name || one.kind == ValueKind::file)
    return text_of(values, spec);
  return one.kind == ValueKind::boolean ? ordered_json(value != 0) : ordered_json(value);
}

ordered_json json_of(const TimeAccount& account) { return json_of(account_fields(), account); }

ordered_json json_of(const Taxes& taxes) {
  return {{"critical_path", json_of(tax_fields(), taxes.account)},
          {"counterfactual", json_of(savings_fields(), taxes)}};
}

Table account_table(const TimeAccount& account) {
  Table table{
      {{"part", "along the critical path"}, {"time_us", "time", "us"}, {"share_percent", "share", "%"}}, {}};
  for (const Field<TimeAccount>& part : account_fields()) {
    const double ns = part.get(account).number();
    if (part.if_any && ns == 0) continue;
    table.add({part.label_text(), us(ns), share(ns, account.sum_ns())});
  }
  table.add({std::string("sum"), us(account.sum_ns()), account.sum_ns() > 0 ? 100.0 : 0.0});
  return table;
}

Table counterfactual_table(const Taxes& taxes) {
  Table table{
      {{"tax", "run again without"}, {"counterfactual_us", "saved", "us"}, {"share_percent", "share", "%"}},
      {}};
  const auto add = [&](const std::string& name, double saved_ns) {
    if (saved_ns < 0) {
      table.add({name, {}, {}});
    } else {
      table.add({name, us(saved_ns), share(saved_ns, taxes.makespan_ns)});
    }
  };
  for (const Field<Taxes>& tax : savings_fields()) {
    if (!tax.label.empty()) add(tax.label_text(), tax.get(taxes).number());
  }
  add("all three", taxes.makespan_ns - taxes.all_removed_ns);
  return table;
}

Table rank_table(const SimulationResult& result, const Machine& machine, Ranks shown) {
  const double cus = machine.gpu.cu_count();
  const auto busy_percent = [cus](double busy_ns, double kernels_ns) {
    return kernels_ns > 0 ? 100 * (busy_ns / (cus * kernels_ns)) : 0;
  };
  std::vector<GpuLine> lines;
  double busy_ns = 0;
  for (const RankResult& gpu : result.ranks) {
    busy_ns += gpu.cu_busy_ns / static_cast<double>(result.ranks.size());
    lines.push_back({fmt::format("{}", lines.size()), gpu.makespan_ns, gpu.kernels_ns,
                     busy_percent(gpu.cu_busy_ns, gpu.kernels_ns), gpu.account});
  }
  if (shown == Ranks::that_differ) lines = joined(lines);
  lines.push_back({"node", result.makespan_ns, result.kernels_ns, busy_percent(busy_ns, result.kernels_ns),
                   result.account});
  return table_of(gpu_line_fields(), lines, shown == Ranks::all ? shown::kCsv : shown::kText);
}

namespace {

// Columns of CacheTraffic behind the columns of its key.
Table traffic_table(std::vector<Column> columns) {
  columns.insert(columns.end(), {{"asked_megabytes", "asked", "MB"},
                                 {"l2_hit_percent", "L2 hits", "%"},
                                 {"llc_hit_percent", "last-level hits of the rest", "%"},
                                 {"hbm_read_megabytes", "HBM read", "MB"},
                                 {"hbm_written_megabytes", "HBM written", "MB"}});
  return {std::move(columns), {}};
}

void add_traffic(Table& table, std::vector<Cell> row, const CacheTraffic& traffic, bool asks_l2) {
  const double missed = traffic.asked_bytes - traffic.l2_hit_bytes;
  const auto percent = [&](double part, double whole) {
    return asks_l2 && whole > 0 ? Cell(100 * part / whole) : Cell();
  };
  row.insert(row.end(), {traffic.asked_bytes / 1e6, percent(traffic.l2_hit_bytes, traffic.asked_bytes),
                         percent(traffic.llc_hit_bytes, missed), traffic.hbm_read_bytes / 1e6,
                         traffic.hbm_written_bytes / 1e6});
  table.add(std::move(row));
}

std::string operation_name(OpKind operation) {
  return std::string(kOpKindNames[static_cast<std::size_t>(operation)]);
}

}  // namespace

std::vector<std::string> buffer_names(const Schedule& schedule) {
  std::vector<std::string> names;
  for (const Buffer& buffer : schedule.buffers) names.push_back(buffer.name);
  return names;
}

Table cache_table(const SimulationResult& result, const std::vector<std::string>& buffers) {
  std::map<std::tuple<std::int32_t, OpKind, bool>, CacheTraffic> sums;
  for (const CacheRow& row : result.caches) sums[{row.buffer, row.operation, row.die < 0}] += row.traffic;
  Table table = traffic_table({{"buffer", "buffer"}, {"operation", "operation"}, {"through", "through"}});
  for (const auto& [what, traffic] : sums) {
    const auto& [buffer, operation, past_l2] = what;
    add_traffic(table,
                {buffers[static_cast<std::size_t>(buffer)], operation_name(operation),
                 std::string(past_l2 ? "past L2s" : "L2s")},
                traffic, !past_l2);
  }
  return table;
}

Table die_table(const SimulationResult& result) {
  std::map<std::pair<std::int32_t, std::int32_t>, CacheTraffic> sums;
  for (const CacheRow& row : result.caches) sums[{row.rank, row.die}] += row.traffic;
  Table table = traffic_table({{"gpu", "GPU"}, {"die", "die"}});
  for (const auto& [place, traffic] : sums) {
    const auto& [gpu, die] = place;
    add_traffic(table, {fmt::format("{}", gpu), die < 0 ? std::string("-") : fmt::format("{}", die)}, traffic,
                die >= 0);
  }
  return table;
}

ordered_json caches_json(const SimulationResult& result, const std::vector<std::string>& buffers) {
  ordered_json rows = ordered_json::array();
  for (const CacheRow& row : result.caches) {
    rows.push_back({{"gpu", row.rank},
                    {"die", row.die < 0 ? ordered_json() : ordered_json(row.die)},
                    {"buffer", buffers[static_cast<std::size_t>(row.buffer)]},
                    {"operation", operation_name(row.operation)},
                    {"asked", row.traffic.asked_bytes},
                    {"l2_hit", row.traffic.l2_hit_bytes},
                    {"llc_hit", row.traffic.llc_hit_bytes},
                    {"hbm_read", row.traffic.hbm_read_bytes},
                    {"hbm_written", row.traffic.hbm_written_bytes}});
  }
  return {{"l2_hit", l2_hit(result.caches)},          {"llc_hit", llc_hit(result.caches)},
          {"operand_l2_hit", result.l2_hit_fraction}, {"operand_llc_hit", result.llc_hit_fraction},
          {"hbm_bytes", hbm_bytes(result.caches)},    {"rows", std::move(rows)}};
}

Table link_table(const SimulationResult& result, const Machine& machine, int gpus) {
  Table table{{{"link", "link"},
               {"megabytes", "data", "MB"},
               {"gb_per_s", "mean rate", "GB/s"},
               {"utilisation_percent", "use of the raw rate", "%"}},
              {}};
  for (const UsedLink& link : used_links(result, machine, gpus)) {
    table.add({link.name, link.bytes / 1e6, link.bytes / result.makespan_ns, 100 * link.utilisation});
  }
  return table;
}

std::string describe_links(const SimulationResult& result, const Machine& machine, int gpus) {
  const std::vector<UsedLink> links = used_links(result, machine, gpus);
  if (links.empty()) {
    return "";
  }
  double bytes = 0;
  double utilisation = 0;
  const UsedLink* busiest = &links.front();
  for (const UsedLink& link : links) {
    bytes += link.bytes;
    utilisation += link.utilisation / static_cast<double>(links.size());
    busiest = link.utilisation > busiest->utilisation ? &link : busiest;
  }
  return fmt::format(
      "{} links moved {:.1f} MB, {:.1f} % of their raw rate on average; busiest {}: {:.1f} %\n", links.size(),
      bytes / 1e6, 100 * utilisation, busiest->name, 100 * busiest->utilisation);
}

ordered_json links_json(const SimulationResult& result, const Machine& machine, int gpus) {
  ordered_json list = ordered_json::array();
  for (const UsedLink& link : used_links(result, machine, gpus)) {
    list.push_back({{"link", link.name}, {"bytes", link.bytes}, {"utilisation", link.utilisation}});
  }
  return list;
}

}  // namespace tritax::cli
