#include "model/imports/infragraph.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "model/core/error.hpp"

namespace tritax {

namespace {

constexpr std::int64_t kMostComponents = 1 << 20;

// "npu[0:2]": the component and a range of its numbers; without one all of them.
struct Endpoint {
  std::string component;
  std::int64_t first = 0;
  std::int64_t behind = 0;
  std::string instance;  // of edges between devices
};

struct GraphComponent {
  std::string choice;
  std::int64_t count = 1;
};

// Which GPUs a link joins to how many switches, or to each other.
struct Candidate {
  bool between_gpus = false;
  std::set<std::int64_t> gpus;
  std::int64_t switches = 0;
  bool all_to_all = true;  // no edge leaves some of the GPUs out
  std::string where;
};

std::int64_t number_in(const YamlPlace& place, std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > kMostComponents) {
    place.refuse("give NAME, NAME[3], NAME[0:2] or NAME[0:]");
  }
  return value;
}

// "name[a:b]" as name, first and behind; `count` where nothing says it.
Endpoint range_of(const YamlPlace& place, std::int64_t count) {
  const std::string text = place.text();
  const std::size_t open = text.find('[');
  Endpoint end{text.substr(0, open), 0, count, ""};
  if (open == std::string::npos) return end;
  if (!text.ends_with(']')) place.refuse("give NAME, NAME[3], NAME[0:2] or NAME[0:]");
  const std::string_view inside = std::string_view(text).substr(open + 1, text.size() - open - 2);
  const std::size_t colon = inside.find(':');
  if (colon == std::string_view::npos) {
    end.first = number_in(place, inside);
    end.behind = end.first + 1;
    return end;
  }
  const std::string_view first = inside.substr(0, colon);
  const std::string_view behind = inside.substr(colon + 1);
  if (!first.empty()) end.first = number_in(place, first);
  if (!behind.empty()) end.behind = number_in(place, behind);
  return end;
}

bool is_gpu(std::string_view choice) { return choice == "npu" || choice == "xpu" || choice == "gpu"; }

// A device of the file with its components.
class Device {
 public:
  explicit Device(const YamlPlace& place) : place_(place), name_(place.at("name").text()) {
    const YamlPlace components = place.at("components");
    for (std::size_t i = 0; i < components.size(); ++i) {
      const YamlPlace one = components.at(i);
      GraphComponent component;
      component.choice = one.has("choice") ? one.at("choice").text()
                         : one.has("type") ? one.at("type").text()
                                           : "custom";
      if (one.has("count")) component.count = one.at("count").whole(kMostComponents);
      components_[one.at("name").text()] = component;
      if (!is_gpu(component.choice)) continue;
      if (!gpus_.empty())
        one.refuse("give one component of GPUs (choice npu or xpu) a device; machines have one kind");
      gpus_ = one.at("name").text();
      gpus_where_ = one.where();
    }
  }

  const std::string& name() const { return name_; }
  const YamlPlace& place() const { return place_; }
  bool has_gpus() const { return !gpus_.empty(); }
  std::int64_t gpus() const { return components_.at(gpus_).count; }
  const std::string& gpus_where() const { return gpus_where_; }
  const GraphComponent* find(const std::string& name) const {
    const auto found = components_.find(name);
    return found == components_.end() ? nullptr : &found->second;
  }

  // The links that reach GPUs, by name.
  std::map<std::string, Candidate> candidates() const {
    std::map<std::string, Candidate> all;
    if (!place_.has("edges")) return all;
    const YamlPlace edges = place_.at("edges");
    for (std::size_t i = 0; i < edges.size(); ++i) add_edge(edges.at(i), all);
    return all;
  }

 private:
  Endpoint end_of(const YamlPlace& edge, const char* which) const {
    const YamlPlace component = edge.at(which).at("component");
    const std::string text = component.text();
    const GraphComponent* known = find(text.substr(0, text.find('[')));
    return range_of(component, known == nullptr ? 1 : known->count);
  }

  void add_edge(const YamlPlace& edge, std::map<std::string, Candidate>& all) const {
    Endpoint a = end_of(edge, "ep1");
    Endpoint b = end_of(edge, "ep2");
    if (a.component != gpus_) std::swap(a, b);
    if (a.component != gpus_) return;
    if (a.behind > gpus() || a.first >= a.behind) {
      edge.refuse(fmt::format("'{}' has the numbers 0 to {}", gpus_, gpus() - 1));
    }
    const GraphComponent* other = find(b.component);
    const bool between = b.component == gpus_;
    if (!between && (other == nullptr || other->choice != "switch")) return;
    const std::int64_t others = between ? gpus() : other->count;
    if (b.behind > others || b.first >= b.behind) {
      edge.refuse(fmt::format("'{}' has the numbers 0 to {}", b.component, others - 1));
    }
    const std::string scheme = edge.has("scheme") ? edge.at("scheme").text() : "many2many";
    Candidate& one = all[edge.at("link").text()];
    if (one.where.empty()) one.where = edge.where();
    one.between_gpus = one.between_gpus || between;
    for (std::int64_t gpu = a.first; gpu < a.behind; ++gpu) one.gpus.insert(gpu);
    if (between) {
      one.all_to_all = one.all_to_all && scheme == "many2many" && a.behind - a.first == gpus() &&
                       b.behind - b.first == gpus();
      return;
    }
    const bool every = scheme == "many2many" && a.behind - a.first == gpus();
    one.all_to_all = one.all_to_all && every;
    if (every) one.switches += b.behind - b.first;
  }

  YamlPlace place_;
  std::string name_;
  std::map<std::string, GraphComponent> components_;
  std::string gpus_;
  std::string gpus_where_;
};

// Reads one file.
class GraphReader {
 public:
  GraphReader(const YamlPlace& root, std::string origin, std::string link)
      : root_(root), origin_(std::move(origin)), link_(std::move(link)) {}

  TopologyFile read() {
    const YamlPlace devices = root_.at("devices");
    for (std::size_t i = 0; i < devices.size(); ++i) devices_.emplace_back(devices.at(i));
    const Device& node = device_of_gpus();
    TopologyFile file;
    file.file = origin_;
    file.form = "InfraGraph";
    if (node.gpus() > kMostGpusPerNode)
      node.place().refuse(fmt::format("a node has at most {} GPUs", kMostGpusPerNode));
    file.gpus_per_node = static_cast<int>(node.gpus());
    file.size_source = node.gpus_where();
    file.nodes = count_nodes(node);
    if (file.gpus_per_node > 1) read_node_link(node, file);
    if (file.nodes > 1) read_network(node, file);
    return file;
  }

 private:
  const Device& device_of_gpus() const {
    const Device* found = nullptr;
    for (const Device& device : devices_) {
      if (!device.has_gpus()) continue;
      if (found != nullptr)
        device.place().refuse(
            fmt::format("'{}' has GPUs too; a machine has one kind of node", found->name()));
      found = &device;
    }
    if (found == nullptr)
      root_.at("devices").refuse("give a device with a component of GPUs: choice npu or xpu");
    return *found;
  }

  int count_nodes(const Device& node) {
    if (!root_.has("instances")) return 1;
    std::int64_t nodes = 0;
    const YamlPlace instances = root_.at("instances");
    for (std::size_t i = 0; i < instances.size(); ++i) {
      const YamlPlace one = instances.at(i);
      if (one.at("device").text() != node.name()) continue;
      nodes += one.has("count") ? one.at("count").whole(kMostNodes) : 1;
      instances_.insert(one.at("name").text());
    }
    if (nodes < 1 || nodes > kMostNodes) {
      instances.refuse(
          fmt::format("give instances of the device '{}', 1 to {} of them", node.name(), kMostNodes));
    }
    return static_cast<int>(nodes);
  }

  // The link of the node that all GPUs have, chosen by name, or the only one; of several a mesh goes ahead.
  void read_node_link(const Device& node, TopologyFile& file) const {
    std::map<std::string, Candidate> all = node.candidates();
    std::erase_if(all, [&](const auto& one) {
      return !one.second.all_to_all || static_cast<std::int64_t>(one.second.gpus.size()) != node.gpus();
    });
    std::vector<std::string> names;
    for (const auto& [name, one] : all) names.push_back(name);
    const auto mesh =
        std::find_if(all.begin(), all.end(), [](const auto& one) { return one.second.between_gpus; });
    auto chosen = all.end();
    if (!link_.empty()) {
      chosen = all.find(link_);
    } else if (mesh != all.end()) {
      chosen = mesh;
    } else if (all.size() == 1) {
      chosen = all.begin();
    }
    if (chosen == all.end()) {
      node.place().refuse(
          names.empty()
              ? "no edge joins all its GPUs to each other, or all of them to switches (many2many)"
              : fmt::format("name the link that joins its GPUs with --link: {}", fmt::join(names, ", ")));
    }
    const Candidate& one = chosen->second;
    file.kind = one.between_gpus ? LinkKind::mesh : LinkKind::node_switch;
    file.kind_source = one.where;
    const YamlPlace link = find_link(node.place(), chosen->first, one.where);
    file.link = rate_of(link, one.between_gpus ? 1 : static_cast<double>(one.switches));
    file.link_latency = latency_of(link, one.between_gpus ? 1 : 2);
  }

  // Edges of the infrastructure from network cards of nodes; each GPU gets its share of them.
  void read_network(const Device& node, TopologyFile& file) const {
    if (!root_.has("edges")) return;
    const YamlPlace edges = root_.at("edges");
    for (std::size_t i = 0; i < edges.size(); ++i) {
      const YamlPlace edge = edges.at(i);
      for (const char* which : {"ep1", "ep2"}) {
        const YamlPlace end = edge.at(which);
        if (!end.has("instance")) continue;
        const std::string instance = end.at("instance").text();
        const std::string component = end.at("component").text();
        const GraphComponent* nic = node.find(component.substr(0, component.find('[')));
        if (instances_.count(instance.substr(0, instance.find('['))) == 0 || nic == nullptr) continue;
        const YamlPlace link = find_link(root_, edge.at("link").text(), edge.where());
        const double share = static_cast<double>(nic->count) / static_cast<double>(node.gpus());
        file.network = rate_of(link, share);
        file.network_latency = latency_of(link, 2);
        return;
      }
    }
  }

  static YamlPlace find_link(const YamlPlace& owner, const std::string& name, const std::string& where) {
    const YamlPlace links = owner.at("links");
    for (std::size_t i = 0; i < links.size(); ++i) {
      if (links.at(i).at("name").text() == name) return links.at(i);
    }
    throw UserError(fmt::format("{}: the link '{}' is missing among {}", where, name, links.where()));
  }

  // {choice: KEY, KEY: number}, with the factor of the key; a choice may be left out.
  struct Unit {
    std::string_view key;
    double factor;
  };
  static std::optional<TopologyValue> quantity(const YamlPlace& link, const char* what,
                                               const std::vector<Unit>& units, double times) {
    if (!link.has("physical") || !link.at("physical").has(what)) return std::nullopt;
    const YamlPlace place = link.at("physical").at(what);
    for (const Unit& unit : units) {
      const std::string key(unit.key);
      if (!place.has(key)) continue;
      const YamlPlace value = place.at(key);
      return TopologyValue{value.above_0() * unit.factor * times,
                           value.where() + (times == 1 ? "" : fmt::format(", times {:.6g}", times))};
    }
    std::vector<std::string_view> keys;
    for (const Unit& unit : units) keys.push_back(unit.key);
    place.refuse(fmt::format("give one of {}", fmt::join(keys, ", ")));
  }

  static std::optional<TopologyValue> rate_of(const YamlPlace& link, double times) {
    constexpr double kBytesPerBit = 1.0 / 8;
    return quantity(link, "bandwidth",
                    {{"gigabytes_per_second", 1},
                     {"g_bytes_per_second", 1},
                     {"gigabits_per_second", kBytesPerBit},
                     {"g_bits_per_second", kBytesPerBit}},
                    times);
  }

  static std::optional<TopologyValue> latency_of(const YamlPlace& link, double times) {
    return quantity(link, "latency", {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}}, times);
  }

  YamlPlace root_;
  std::string origin_;
  std::string link_;
  std::vector<Device> devices_;
  std::set<std::string> instances_;  // of nodes
};

}  // namespace

TopologyFile read_infragraph(const YamlPlace& root, const std::string& origin, const std::string& link) {
  return GraphReader(root, origin, link).read();
}

}  // namespace tritax
