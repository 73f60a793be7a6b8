#include "sim/functional_memory.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace tritax {

FunctionalMemory::FunctionalMemory(const Schedule& schedule) : buffers_(schedule.buffers.size()), writes_(1) {
  for (int rank = 0; rank < schedule.ranks; ++rank) {
    for (const Buffer& buffer : schedule.buffers) {
      Memory memory;
      // Not a number, so that the value of a stale read cannot pass for a result.
      if (buffer.dtype == DType::fp64) {
        memory.wide.setConstant(buffer.rows, buffer.cols, std::numeric_limits<double>::quiet_NaN());
      } else {
        memory.elements.setConstant(buffer.rows, buffer.cols, std::numeric_limits<float>::quiet_NaN());
      }
      memory.last_write.setConstant(buffer.rows, buffer.cols, kUnwritten);
      memory_.push_back(std::move(memory));
    }
  }
}

FunctionalMemory::Memory& FunctionalMemory::at(std::int16_t buffer, int rank) {
  return memory_[static_cast<std::size_t>(rank) * buffers_ + static_cast<std::size_t>(buffer)];
}

const FunctionalMemory::Memory& FunctionalMemory::at(std::int16_t buffer, int rank) const {
  return memory_[static_cast<std::size_t>(rank) * buffers_ + static_cast<std::size_t>(buffer)];
}

void FunctionalMemory::fill(const Region& region, const WideElements& values) {
  const Rect& rect = region.rect;
  Memory& memory = at(region.buffer, region.rank);
  if (memory.wide.size() > 0) {
    memory.wide.block(rect.row, rect.col, rect.rows, rect.cols) = values;
  } else {
    memory.elements.block(rect.row, rect.col, rect.rows, rect.cols) = values.cast<float>();
  }
  memory.last_write.block(rect.row, rect.col, rect.rows, rect.cols).setConstant(kInitial);
}

Eigen::MatrixXd FunctionalMemory::read(const Region& region) const {
  const Rect& rect = region.rect;
  const Memory& memory = at(region.buffer, region.rank);
  if (memory.wide.size() > 0) return memory.wide.block(rect.row, rect.col, rect.rows, rect.cols);
  return memory.elements.block(rect.row, rect.col, rect.rows, rect.cols).cast<double>();
}

std::optional<FunctionalMemory::Fault> FunctionalMemory::find_record_fault(
    std::int32_t record, bool for_add, const std::function<bool(Epoch)>& is_before) const {
  while (record != kInitial) {
    if (record == kUnwritten) {
      return Fault{};
    }
    const Write& write = writes_[static_cast<std::size_t>(record)];
    if (!(for_add && write.add)) {
      if (write.in_flight) {
        return Fault{Fault::Kind::in_flight, 0, 0, write.writer};
      }
      if (!is_before(write.epoch)) {
        return Fault{Fault::Kind::unordered, 0, 0, write.writer};
      }
    }
    if (!write.add) {
      return std::nullopt;
    }
    record = write.beneath;
  }
  return std::nullopt;
}

std::optional<FunctionalMemory::Fault> FunctionalMemory::find_fault(
    const Region& region, bool for_add, const std::function<bool(Epoch)>& is_before) const {
  const auto& last_write = at(region.buffer, region.rank).last_write;
  const Rect& rect = region.rect;
  std::int32_t sound =
      kInitial;  // neighbours mostly share their write, so one comparison covers most elements
  for (std::int32_t row = rect.row; row < rect.row + rect.rows; ++row) {
    for (std::int32_t col = rect.col; col < rect.col + rect.cols; ++col) {
      const std::int32_t record = last_write(row, col);
      if (record == sound) {
        continue;
      }
      if (auto fault = find_record_fault(record, for_add, is_before)) {
        fault->row = row;
        fault->col = col;
        return fault;
      }
      sound = record;
    }
  }
  return std::nullopt;
}

FunctionalMemory::OpenWrite FunctionalMemory::begin_write(const Region& region, bool add, Epoch epoch,
                                                          const OpPlace& writer) {
  OpenWrite open{region, add, {}};
  std::vector<std::pair<std::int32_t, std::int32_t>> record_over;  // write beneath, record of this write
  auto& last_write = at(region.buffer, region.rank).last_write;
  const Rect& rect = region.rect;
  for (std::int32_t row = rect.row; row < rect.row + rect.rows; ++row) {
    for (std::int32_t col = rect.col; col < rect.col + rect.cols; ++col) {
      // A store forgets the previous value, an add keeps it: one record per write that it adds to.
      const std::int32_t beneath = add ? last_write(row, col) : kUnwritten;
      auto known = std::find_if(record_over.begin(), record_over.end(),
                                [&](const auto& entry) { return entry.first == beneath; });
      if (known == record_over.end()) {
        const auto record = static_cast<std::int32_t>(writes_.size());
        writes_.push_back({epoch, writer, beneath, add, true});
        open.records.push_back(record);
        known = record_over.insert(record_over.end(), {beneath, record});
      }
      last_write(row, col) = known->second;
    }
  }
  return open;
}

void FunctionalMemory::end_write(const OpenWrite& write, const Eigen::MatrixXd& values) {
  const Rect& rect = write.region.rect;
  Memory& memory = at(write.region.buffer, write.region.rank);
  const auto put = [&](auto block, const auto& elements) {
    if (write.add) {
      block += elements;
    } else {
      block = elements;
    }
  };
  if (memory.wide.size() > 0) {
    put(memory.wide.block(rect.row, rect.col, rect.rows, rect.cols), values);
  } else {
    put(memory.elements.block(rect.row, rect.col, rect.rows, rect.cols), values.cast<float>());
  }
  for (const std::int32_t record : write.records) {
    writes_[static_cast<std::size_t>(record)].in_flight = false;
  }
}

bool FunctionalMemory::complete(const Region& region) const {
  const auto& last_write = at(region.buffer, region.rank).last_write;
  const Rect& rect = region.rect;
  std::int32_t sound = kInitial;  // as in find_fault
  for (std::int32_t row = rect.row; row < rect.row + rect.rows; ++row) {
    for (std::int32_t col = rect.col; col < rect.col + rect.cols; ++col) {
      const std::int32_t record = last_write(row, col);
      if (record == sound) continue;
      if (record == kUnwritten || writes_[static_cast<std::size_t>(record)].in_flight) return false;
      sound = record;
    }
  }
  return true;
}

}  // namespace tritax
