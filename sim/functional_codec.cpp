#include "sim/functional_codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/core/error.hpp"
#include "model/schedule/items.hpp"
#include "model/schedule/op_traits.hpp"

namespace tritax {

namespace {

constexpr double kLargestFp8 = 240;  // e4m3 of CDNA3
constexpr int kLeastExponent = -7;   // of its normal numbers
constexpr int kFraction = 3;         // bits

double fp16_of(double value) {
  return static_cast<double>(static_cast<float>(Eigen::half(static_cast<float>(value))));
}

double e4m3_of(double value) {
  if (value == 0) return 0;
  const double step = std::ldexp(1.0, std::max(std::ilogb(value), kLeastExponent) - kFraction);
  return std::clamp(std::nearbyint(value / step) * step, -kLargestFp8, kLargestFp8);
}

using Group = Eigen::Ref<Eigen::RowVectorXd, 0, Eigen::InnerStride<>>;

void code_group(Codec codec, Group group) {
  Eigen::Index at = 0;
  group.cwiseAbs().maxCoeff(&at);
  const double steps = codec == Codec::fp8 ? kLargestFp8 : std::ldexp(1.0, bits_of(codec) - 1);
  const double scale =
      codec == Codec::fp8 ? fp16_of(std::abs(group(at)) / steps) : fp16_of(-group(at) / steps);
  for (double& value : group) {
    if (scale == 0) {
      value = 0;
    } else if (codec == Codec::fp8) {
      value = scale * e4m3_of(value / scale);
    } else {
      value = scale * std::clamp(std::nearbyint(value / scale), -steps, steps - 1);
    }
  }
}

struct Bound {
  double magnitude = 0;
  double error = 0;
};

// One pass over all programs; says whether a bound grew.
class BoundsPass {
 public:
  BoundsPass(const Schedule& schedule, std::vector<Bound>& bounds) : schedule_(schedule), bounds_(bounds) {}

  bool grew() {
    for (const Kernel& kernel : schedule_.kernels) {
      for (std::size_t p = 0; p < program_count(kernel); ++p) {
        accumulator_ = {};
        for (const Op& op : ops_of(schedule_, program_of(kernel, p))) visit(op, kernel.rank);
      }
    }
    for (const Op& op : schedule_.transfers) visit(op, op.rank);
    return grew_;
  }

 private:
  Bound& at(std::int16_t buffer) { return bounds_[static_cast<std::size_t>(buffer)]; }

  void visit(const Op& op, std::int32_t rank) {
    if (op.kind == OpKind::load) accumulator_ = at(op.buffer);
    if (op.kind == OpKind::reduce) {
      accumulator_.magnitude += at(op.buffer).magnitude;
      accumulator_.error += at(op.buffer).error;
    }
    if (op.kind == OpKind::store) write(op.buffer, accumulator_);
    if (op.kind == OpKind::copy) write(op.buffer, at(op.src_buffer));
    const bool bounded = op.kind == OpKind::load || op.kind == OpKind::reduce || op.kind == OpKind::store ||
                         op.kind == OpKind::copy;
    if (bounded) return;
    for_each_read(op, rank, [&](const Region& read) { require_exact(at(read.buffer), op); });
    for_each_write(op, [&](const Region&, bool) { require_exact(accumulator_, op); });
    if (fills_accumulator(op.kind)) accumulator_ = {};  // of values without errors, whose size nobody asks
  }

  void require_exact(const Bound& bound, const Op& op) const {
    if (bound.error == 0) return;
    throw UserError(
        fmt::format("schedule '{}': {} of values that a codec has held; functional execution knows their "
                    "error only through load, reduce, store and copy; use these, or a buffer without codec",
                    schedule_.name, name_of(op.kind)));
  }

  void write(std::int16_t buffer, Bound bound) {
    const Codec codec = schedule_.buffers[static_cast<std::size_t>(buffer)].codec;
    bound.error += error_of(codec) * (bound.magnitude + bound.error);
    Bound& to = at(buffer);
    grew_ = grew_ || bound.magnitude > to.magnitude || bound.error > to.error;
    to = {std::max(to.magnitude, bound.magnitude), std::max(to.error, bound.error)};
  }

  const Schedule& schedule_;
  std::vector<Bound>& bounds_;
  Bound accumulator_;
  bool grew_ = false;
};

}  // namespace

Eigen::MatrixXd after_codec(Codec codec, Eigen::MatrixXd values) {
  if (codec == Codec::same) return values;
  for (Eigen::Index row = 0; row < values.rows(); ++row) {
    for (Eigen::Index col = 0; col < values.cols(); col += kCodecGroup)
      code_group(codec,
                 values.row(row).segment(col, std::min<Eigen::Index>(kCodecGroup, values.cols() - col)));
  }
  return values;
}

std::vector<double> codec_errors(const Schedule& schedule) {
  const bool codes = std::any_of(schedule.buffers.begin(), schedule.buffers.end(),
                                 [](const Buffer& buffer) { return buffer.codec != Codec::same; });
  if (!codes) return {};
  std::vector<Bound> bounds(schedule.buffers.size());
  for (const Input& input : inputs_of(schedule))
    bounds[static_cast<std::size_t>(input.region.buffer)].magnitude = 1;
  // Values pass every buffer at most once, and each pass takes them one buffer further.
  std::size_t passes = 0;
  while (BoundsPass(schedule, bounds).grew()) {
    if (++passes <= bounds.size()) continue;
    throw UserError(fmt::format(
        "schedule '{}': values return to a buffer that they came from, so the errors of its codecs have no "
        "bound; store them into a buffer of their own",
        schedule.name));
  }
  std::vector<double> errors;
  for (const Bound& bound : bounds) errors.push_back(bound.error);
  return errors;
}

}  // namespace tritax
