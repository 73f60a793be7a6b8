#include "model/machine/library_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <span>
#include <utility>

#include "model/core/csv.hpp"
#include "model/core/error.hpp"
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

}  // namespace

LibraryTable::LibraryTable(std::string name, std::string_view text, const std::string& origin)
    : name_(std::move(name)) {
  UniqueRows unique("dtype,m,n,k");
  remarks_ = read_csv(text, origin, "dtype,m,n,k,us,ratio", kWriter, [&](const CsvRow& row) {
    unique.add(row);
    MeasuredProduct product;
    product.dtype = static_cast<DType>(row.choice("dtype", kDTypeNames));
    product.m = row.integer("m", 1, kMostSize);
    product.n = row.integer("n", 1, kMostSize);
    product.k = row.integer("k", 1, kMostSize);
    product.time_ns = 1000 * row.positive("us", "time");
    product.ratio = row.number("ratio", kLeastRatio, kMostRatio);
    products_.push_back(product);
    points_[static_cast<std::size_t>(class_of(product.dtype))].push_back(
        {std::log2(static_cast<double>(product.m)), std::log2(static_cast<double>(product.n)),
         std::log2(static_cast<double>(product.k)), std::log(product.ratio)});
  });
}

bool LibraryTable::knows(DType dtype) const { return !points(class_of(dtype)).empty(); }

double LibraryTable::factor(DType dtype, std::int64_t m, std::int64_t n, std::int64_t k) const {
  const double log_m = std::log2(static_cast<double>(m)), log_n = std::log2(static_cast<double>(n)),
               log_k = std::log2(static_cast<double>(k));
  double weights = kWeightOfLaw, sum = 0;
  for (const Point& point : points(class_of(dtype))) {
    const double dm = point.m - log_m, dn = point.n - log_n, dk = point.k - log_k;
    const double squared = dm * dm + dn * dn + dk * dk;
    if (squared >= kReach * kReach) continue;
    if (squared == 0) return std::exp(point.log_ratio);
    const double distance = std::sqrt(squared);
    const double weight = (kReach - distance) / (kReach * distance);
    weights += weight * weight;
    sum += weight * weight * point.log_ratio;
  }
  return std::exp(sum / weights);
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

bool is_of_collectives(std::string_view name) {
  return name.starts_with("nccl-") || name.starts_with("rccl-") || name.starts_with("custom-");
}

// Shipped tables are read once, because machines are read many times.
template <typename Table>
std::shared_ptr<const Table> find_table(const std::string& name_or_path, const std::string& folder,
                                        bool of_collectives) {
  std::vector<std::string_view> shipped;
  for (const auto& [name, text] : embedded::library_tables()) {
    if (is_of_collectives(name) != of_collectives) continue;
    shipped.push_back(name);
    if (name != name_or_path) continue;
    static std::mutex guard;
    static std::map<std::string, std::shared_ptr<const Table>, std::less<>> read;
    const std::lock_guard<std::mutex> lock(guard);
    std::shared_ptr<const Table>& table = read[name_or_path];
    if (!table) table = std::make_shared<Table>(name_or_path, text, fmt::format("{}.csv (shipped)", name));
    return table;
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
  return find_table<LibraryTable>(name_or_path, folder, false);
}

std::shared_ptr<const CollectiveTable> find_collective_table(const std::string& name_or_path,
                                                             const std::string& folder) {
  return find_table<CollectiveTable>(name_or_path, folder, true);
}

}  // namespace tritax
