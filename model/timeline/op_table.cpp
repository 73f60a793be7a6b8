#include "model/timeline/op_table.hpp"

#include <fmt/format.h>

#include <array>

#include "model/core/csv.hpp"
#include "model/schedule/op_traits.hpp"

namespace tritax {

namespace {

constexpr std::string_view kColumns =
    "id,pattern,gpus,kernel,operation,side,size,count,median_us,p10_us,p90_us,sum_us,device_us,"
    "stamped_device_us";
constexpr std::string_view kWriter = "a file of 'tritax measure --ops'";
constexpr std::array<std::string_view, 2> kSides{"local", "remote"};
constexpr std::string_view kNoSize = "-";

MeasuredOps read_row(const CsvRow& line) {
  constexpr std::int64_t kMaxGpus = 1024;
  constexpr std::int64_t kMaxCount = std::int64_t{1} << 40;
  MeasuredOps row;
  row.where = line.where();
  row.id = line.text("id");
  row.pattern = line.text("pattern");
  row.gpus = static_cast<int>(line.integer("gpus", 1, kMaxGpus));
  OpGroup& group = row.times.group;
  group.kernel = line.text("kernel");
  group.kind = static_cast<OpKind>(line.choice("operation", kOpKindNames));
  group.remote = line.choice("side", kSides) == 1;
  group.size = line.text("size");
  if (group.size == kNoSize) group.size.clear();
  row.times.count = line.integer("count", 1, kMaxCount);
  row.times.p10_us = line.number("p10_us");
  row.times.p90_us = line.number("p90_us");
  row.times.median_us = line.number("median_us", row.times.p10_us, row.times.p90_us);
  row.times.sum_us = line.number("sum_us");
  row.device_us = line.positive("device_us", "a time in us");
  row.stamped_device_us = line.positive("stamped_device_us", "a time in us");
  if (line.has("flush_bytes")) row.flush_bytes = line.number("flush_bytes");
  return row;
}

}  // namespace

std::string op_table_header() { return fmt::format("{},flush_bytes", kColumns); }

std::string op_table_row(const MeasuredOps& row) {
  const OpGroup& group = row.times.group;
  return fmt::format("{},{},{},{},{},{},{},{},{:.3f},{:.3f},{:.3f},{:.3f},{:.2f},{:.2f},{:.0f}", row.id,
                     row.pattern, row.gpus, group.kernel, name_of(group.kind), kSides[group.remote ? 1 : 0],
                     group.size.empty() ? kNoSize : group.size, row.times.count, row.times.median_us,
                     row.times.p10_us, row.times.p90_us, row.times.sum_us, row.device_us,
                     row.stamped_device_us, row.flush_bytes.value_or(0));
}

MeasuredOpsFile parse_op_table(std::string_view csv, const std::string& origin) {
  MeasuredOpsFile file;
  file.origin = origin;
  UniqueRows once("id,gpus,kernel,operation,side,size,median_us,sum_us");
  file.remarks = read_csv(csv, origin, kColumns, kWriter, [&file, &once](const CsvRow& line) {
    file.rows.push_back(read_row(line));
    once.add(line);
  });
  return file;
}

MeasuredOpsFile read_op_table(const std::string& path) {
  return parse_op_table(read_csv_file(path, kWriter), path);
}

}  // namespace tritax
