#include "sim/functional_reference.hpp"

#include <Eigen/SparseCore>
#include <algorithm>
#include <limits>
#include <map>
#include <random>

#include "sim/functional_attention.hpp"

namespace tritax {

namespace {

// Uniform in [-1, 1), equal on every platform, with the digits that the dtype keeps here.
FunctionalMemory::WideElements random_elements(const Rect& rect, DType dtype, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  FunctionalMemory::WideElements elements(rect.rows, rect.cols);
  const bool wide = dtype == DType::fp64;
  for (Eigen::Index i = 0; i < elements.size(); ++i) {
    const std::uint64_t bits = random();
    elements.data()[i] =
        wide ? static_cast<double>(bits >> 11) * 0x1p-52 - 1 : static_cast<double>(bits >> 40) * 0x1p-23 - 1;
  }
  return elements;
}

FunctionalMemory::WideElements values_of(const Input& input, DType dtype, std::uint64_t seed, int rank) {
  const Rect& rect = input.region.rect;
  if (input.values == InputValues::zero) return FunctionalMemory::WideElements::Zero(rect.rows, rect.cols);
  return random_elements(rect, dtype, seed_of(input, seed, rank));
}

// The block of the values of `region` that lies at `part`.
auto block_at(const Eigen::MatrixXd& values, const Region& region, const Rect& part) {
  return values.block(part.row - region.rect.row, part.col - region.rect.col, part.rows, part.cols);
}

}  // namespace

void fill_inputs(const Schedule& schedule, std::uint64_t seed, FunctionalMemory& memory) {
  for (const Input& input : schedule.inputs) {
    FunctionalMemory::WideElements values;
    const DType dtype = schedule.buffers[static_cast<std::size_t>(input.region.buffer)].dtype;
    for (std::int32_t rank = 0; rank < schedule.ranks; ++rank) {
      if (!is_on(input.region, rank)) continue;
      if (values.size() == 0 || input.values == InputValues::own)
        values = values_of(input, dtype, seed, rank);
      memory.fill({input.region.buffer, rank, input.region.rect}, values);
    }
  }
}

Eigen::MatrixXd normalised_rows(const Eigen::MatrixXd& values) {
  const Eigen::ArrayXd roots = (values.array().square().rowwise().mean() + kNormEpsilon).sqrt();
  return values.array().colwise() / roots;
}

FunctionalReference::FunctionalReference(const Schedule& schedule, const FunctionalMemory& memory)
    : schedule_(schedule) {
  for (const ReferenceOp& op : schedule.reference) {
    values_.push_back(value_of(op, values_.size(), memory));
  }
}

Eigen::MatrixXd FunctionalReference::value_of(const ReferenceOp& op, std::size_t index,
                                              const FunctionalMemory& memory) const {
  Eigen::MatrixXd value;
  switch (op.kind) {
    case ReferenceKind::product:
      value = read(op.a, op.a.rank, index, memory) * read(op.b, op.b.rank, index, memory);
      break;
    case ReferenceKind::attention: {
      std::optional<VisibleKeys> visible;
      if (op.limit > 0) visible = {op.limit, op.group};
      value = attention_partial(read(op.a, op.a.rank, index, memory), read_all(op.b, index, memory),
                                read_all(op.c, index, memory), visible)
                  .leftCols(op.to.rect.cols);
      break;
    }
    case ReferenceKind::sparse_product: {
      const SparseMatrix& matrix = *schedule_.sparse[static_cast<std::size_t>(op.index)];
      const Eigen::MatrixXd values = read(op.a, op.a.rank, index, memory);
      const Eigen::Map<const Eigen::SparseMatrix<double, Eigen::RowMajor, std::int32_t>> a(
          matrix.rows, matrix.cols, matrix.nonzeros(), matrix.offsets.data(), matrix.columns.data(),
          values.data());
      value = a * read(op.b, op.b.rank, index, memory);
      break;
    }
    case ReferenceKind::rms_norm: {
      const Eigen::RowVectorXd weights = read(op.b, op.b.rank, index, memory);
      value = normalised_rows(read(op.a, op.a.rank, index, memory)).array().rowwise() * weights.array();
      break;
    }
    case ReferenceKind::row_dot:
      value = read(op.a, op.a.rank, index, memory)
                  .cwiseProduct(read(op.b, op.b.rank, index, memory))
                  .rowwise()
                  .sum();
      break;
    case ReferenceKind::attention_backward: {
      std::optional<std::int64_t> visible;
      if (op.limit > 0) visible = op.limit;
      const auto of = [&](const Region& region) { return read(region, region.rank, index, memory); };
      AttentionGradients gradients = attention_gradients(of(op.a), of(op.b), of(op.c), of(op.d), visible);
      value = op.to.rect.cols == op.a.rect.cols ? std::move(gradients.q) : std::move(gradients.kv);
      break;
    }
    case ReferenceKind::copy:
      value = read(op.a, op.a.rank, index, memory);
      break;
    case ReferenceKind::sum:
      value = Eigen::MatrixXd::Zero(op.to.rect.rows, op.to.rect.cols);
      for (int rank = 0; rank < schedule_.ranks; ++rank) value += read(op.a, rank, index, memory);
      break;
  }
  // On every rank it adds to the same values.
  if (op.add) value += read(op.to, std::max(op.to.rank, 0), index, memory);
  return value;
}

Eigen::MatrixXd FunctionalReference::read(const Region& region, int rank, std::size_t before,
                                          const FunctionalMemory& memory) const {
  Eigen::MatrixXd values = memory.read({region.buffer, rank, region.rect});
  for (std::size_t i = 0; i < before; ++i) {
    const Region& to = schedule_.reference[i].to;
    if (!overlap(to, {region.buffer, rank, region.rect})) continue;
    const Rect part = common_part(to.rect, region.rect);
    values.block(part.row - region.rect.row, part.col - region.rect.col, part.rows, part.cols) =
        block_at(values_[i], to, part);
  }
  return values;
}

Eigen::MatrixXd FunctionalReference::read_all(const Region& region, std::size_t before,
                                              const FunctionalMemory& memory) const {
  if (region.rank != kEveryRank) return read(region, region.rank, before, memory);
  Eigen::MatrixXd values(Eigen::Index{schedule_.ranks} * region.rect.rows, region.rect.cols);
  for (int rank = 0; rank < schedule_.ranks; ++rank) {
    values.middleRows(Eigen::Index{rank} * region.rect.rows, region.rect.rows) =
        read(region, rank, before, memory);
  }
  return values;
}

double FunctionalReference::error_on(int rank, const FunctionalMemory& memory) const {
  struct Largest {
    double difference = 0;
    double expected = 0;
  };
  std::map<std::int16_t, Largest> of_buffer;
  for (const ExpectedPart& part : expected_on(schedule_, rank)) {
    const Region& to = schedule_.reference[part.op].to;
    const Region region{to.buffer, rank, part.rect};
    const Eigen::MatrixXd values = memory.read(region);
    // NaN comes from a read of unwritten elements; a comparison must not lose it.
    if (!memory.complete(region) || values.hasNaN()) return std::numeric_limits<double>::infinity();
    const auto expected = block_at(values_[part.op], to, part.rect);
    Largest& largest = of_buffer[to.buffer];
    largest.difference = std::max(largest.difference, (values - expected).cwiseAbs().maxCoeff());
    largest.expected = std::max(largest.expected, expected.cwiseAbs().maxCoeff());
  }
  double error = 0;
  for (const auto& [buffer, largest] : of_buffer) {
    if (largest.difference > 0) error = std::max(error, largest.difference / largest.expected);
  }
  return error;
}

double FunctionalReference::largest_share(const std::vector<double>& errors) const {
  double share = 0;
  for (int rank = 0; rank < schedule_.ranks && !errors.empty(); ++rank) {
    std::map<std::int16_t, double> largest;
    for (const ExpectedPart& part : expected_on(schedule_, rank)) {
      const Region& to = schedule_.reference[part.op].to;
      double& of_buffer = largest[to.buffer];
      of_buffer = std::max(of_buffer, block_at(values_[part.op], to, part.rect).cwiseAbs().maxCoeff());
    }
    for (const auto& [buffer, expected] : largest) {
      const double error = errors[static_cast<std::size_t>(buffer)];
      if (error > 0) share = std::max(share, error / expected);
    }
  }
  return share;
}

}  // namespace tritax
