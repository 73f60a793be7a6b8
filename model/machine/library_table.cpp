#include "model/machine/library_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <iterator>
#include <span>
#include <utility>

#include "model/core/csv.hpp"
#include "model/core/error.hpp"
#include "model/core/memo.hpp"
#include "model/core/read_file.hpp"
#include "model/machine/machine.hpp"

namespace tritax {

namespace embedded {
// Defined in the generated file: (file stem, file text) of model/machine/library/*.csv.
std::span<const std::pair<std::string_view, std::string_view>> library_tables();
}  // namespace embedded

namespace {

constexpr std::string_view kWriter = "a table of a library's products";
constexpr std::size_t kLargestTableBytes = 4 << 20;
constexpr std::int64_t kMostSize = std::int64_t{1} << 31;
constexpr double kLeastRatio = 0.05, kMostRatio = 20;  // beyond: wrong units, or another kernel

constexpr double kReach = 2;           // octaves
constexpr double kWeightOfLaw = 0.05;  // like a call 1.4 octaves away

// fp16 and bf16 have the same kernels and the same rate.
DType class_of(DType dtype) { return dtype == DType::bf16 ? DType::fp16 : dtype; }

double log2_of(std::int64_t size) { return std::log2(static_cast<double>(size)); }

std::size_t place(DType dtype) { return static_cast<std::size_t>(class_of(dtype)); }

DType dtype_in(const CsvRow& row) { return static_cast<DType>(row.choice("dtype", kDTypeNames)); }

MeasuredCalls<6>::Point point_of(const AttentionCall& call) {
  return {log2_of(call.sequences), log2_of(call.queries),  log2_of(call.keys),
          log2_of(call.heads),     log2_of(call.kv_heads), log2_of(call.depth)};
}

}  // namespace

template <std::size_t Sizes>
double MeasuredCalls<Sizes>::factor(const Point& at) const {
  double weights = kWeightOfLaw, sum = 0;
  for (const Call& call : calls_) {
    double squared = 0;
    for (std::size_t i = 0; i < Sizes; ++i) {
      const double apart = call.at[i] - at[i];
      squared += apart * apart;
    }
    if (squared >= kReach * kReach) continue;
    if (squared == 0) return std::exp(call.log_ratio);
    const double distance = std::sqrt(squared);
    const double weight = (kReach - distance) / (kReach * distance);
    weights += weight * weight;
    sum += weight * weight * call.log_ratio;
  }
  return std::exp(sum / weights);
}

LibraryTable::LibraryTable(std::string name, std::string_view text, const std::string& origin)
    : name_(std::move(name)) {
  UniqueRows unique("dtype,m,n,k");
  remarks_ = read_csv(text, origin, "dtype,m,n,k,us,ratio", kWriter, [&](const CsvRow& row) {
    unique.add(row);
    MeasuredProduct product;
    product.dtype = dtype_in(row);
    product.m = row.integer("m", 1, kMostSize);
    product.n = row.integer("n", 1, kMostSize);
    product.k = row.integer("k", 1, kMostSize);
    product.time_ns = 1000 * row.positive("us", "time");
    product.ratio = row.number("ratio", kLeastRatio, kMostRatio);
    products_.push_back(product);
    calls_[place(product.dtype)].add({log2_of(product.m), log2_of(product.n), log2_of(product.k)},
                                     std::log(product.ratio));
  });
}

bool LibraryTable::knows(DType dtype) const { return !calls_[place(dtype)].empty(); }

double LibraryTable::factor(DType dtype, std::int64_t m, std::int64_t n, std::int64_t k) const {
  return calls_[place(dtype)].factor({log2_of(m), log2_of(n), log2_of(k)});
}

AttentionTable::AttentionTable(std::string name, std::string_view text, const std::string& origin)
    : name_(std::move(name)) {
  UniqueRows unique("dtype,sequences,queries,keys,heads,kv_heads,head_dim");
  remarks_ = read_csv(text, origin, "dtype,sequences,queries,keys,heads,kv_heads,head_dim,us,ratio",
                      "a table of attention", [&](const CsvRow& row) {
                        unique.add(row);
                        AttentionCall call;
                        call.sequences = row.integer("sequences", 1, kMostSize);
                        call.keys = row.integer("keys", 1, kMostSize);
                        call.queries = row.integer("queries", 1, call.keys);
                        call.heads = row.integer("heads", 1, kMostSize);
                        call.kv_heads = row.integer("kv_heads", 1, call.heads);
                        call.depth = row.integer("head_dim", 1, kMostSize);
                        row.positive("us", "time");
                        const double ratio = row.number("ratio", kLeastRatio, kMostRatio);
                        calls_[place(dtype_in(row))].add(point_of(call), std::log(ratio));
                        ++size_;
                      });
}

bool AttentionTable::knows(DType dtype) const { return !calls_[place(dtype)].empty(); }

double AttentionTable::factor(DType dtype, const AttentionCall& call) const {
  return calls_[place(dtype)].factor(point_of(call));
}

CollectiveTable::CollectiveTable(std::string name, std::string_view text, const std::string& origin)
    : name_(std::move(name)) {
  UniqueRows unique("op,gpus,bytes");
  remarks_ =
      read_csv(text, origin, "op,gpus,bytes,us,ratio", "a table of collectives", [&](const CsvRow& row) {
        unique.add(row);
        const auto op = static_cast<CollectiveKind>(row.choice("op", kCollectiveNames));
        const auto gpus = static_cast<int>(row.integer("gpus", 2, kMostGpusPerNode));
        const double bytes = row.positive("bytes", "size");
        row.positive("us", "time");
        ratios_[{op, gpus}][std::log2(bytes)] = std::log(row.number("ratio", kLeastRatio, kMostRatio));
      });
}

std::size_t CollectiveTable::size() const {
  std::size_t rows = 0;
  for (const auto& [call, ratios] : ratios_) rows += ratios.size();
  return rows;
}

bool CollectiveTable::knows(CollectiveKind op) const {
  const auto found = ratios_.lower_bound({op, 0});
  return found != ratios_.end() && found->first.first == op;
}

double CollectiveTable::factor(CollectiveKind op, int gpus, double bytes) const {
  const auto found = ratios_.find({op, gpus});
  if (found == ratios_.end() || bytes <= 0) return 1;
  const double at = std::log2(bytes);
  const auto above = found->second.lower_bound(at);
  if (above == found->second.begin()) return std::exp(above->second);
  const auto below = std::prev(above);
  if (above == found->second.end()) return std::exp(below->second);
  const double share = (at - below->first) / (above->first - below->first);
  return std::exp(below->second + share * (above->second - below->second));
}

namespace {

enum class TableKind : std::uint8_t { products, collectives, attention };

TableKind kind_of_table(std::string_view name) {
  if (name.starts_with("attention-")) return TableKind::attention;
  const bool collectives =
      name.starts_with("nccl-") || name.starts_with("rccl-") || name.starts_with("custom-");
  return collectives ? TableKind::collectives : TableKind::products;
}

// Shipped tables are read once, because machines are read many times.
template <typename Table>
std::shared_ptr<const Table> find_table(const std::string& name_or_path, const std::string& folder,
                                        TableKind kind) {
  std::vector<std::string_view> shipped;
  for (const auto& [name, text] : embedded::library_tables()) {
    if (kind_of_table(name) != kind) continue;
    shipped.push_back(name);
    if (name != name_or_path) continue;
    static Memo<std::string, Table> read(embedded::library_tables().size());
    return read.get(name_or_path, [&name = name, &text = text] {
      return Table(std::string(name), text, fmt::format("{}.csv (shipped)", name));
    });
  }
  const std::filesystem::path given(name_or_path);
  if (given.extension() != ".csv") {
    std::sort(shipped.begin(), shipped.end());
    throw UserError(fmt::format("unknown table \"{}\"; shipped: {}; or give the path of a .csv file",
                                name_or_path, fmt::join(shipped, ", ")));
  }
  const std::filesystem::path place = given.is_relative() ? std::filesystem::path(folder) / given : given;
  const std::string path = std::filesystem::absolute(place).lexically_normal().string();
  return std::make_shared<Table>(
      path, read_file(path, "the path of a table of measured calls (CSV)", kLargestTableBytes), path);
}

}  // namespace

std::shared_ptr<const LibraryTable> find_library_table(const std::string& name_or_path,
                                                       const std::string& folder) {
  return find_table<LibraryTable>(name_or_path, folder, TableKind::products);
}

std::shared_ptr<const CollectiveTable> find_collective_table(const std::string& name_or_path,
                                                             const std::string& folder) {
  return find_table<CollectiveTable>(name_or_path, folder, TableKind::collectives);
}

std::shared_ptr<const AttentionTable> find_attention_table(const std::string& name_or_path,
                                                           const std::string& folder) {
  return find_table<AttentionTable>(name_or_path, folder, TableKind::attention);
}

std::vector<std::string> names_of_tables(const Machine& machine) {
  std::vector<std::string> names;
  for (const auto& table : machine.library_tables) names.push_back(table->name());
  for (const auto& table : machine.collective_tables) names.push_back(table->name());
  for (const auto& table : machine.attention_tables) names.push_back(table->name());
  return names;
}

}  // namespace tritax
