// Line codecs (model/core/codec.hpp) on real numbers, and what they do to the results of a schedule.
#pragma once

#include <Eigen/Core>
#include <vector>

#include "model/schedule/schedule.hpp"

namespace tritax {

// What a reader finds of `values`, whose first column begins a group.
Eigen::MatrixXd after_codec(Codec codec, Eigen::MatrixXd values);

// By buffer: the largest error of an element that the codecs of the schedule explain. Inputs are below 1 in
// magnitude. A load hands on its buffer's largest magnitude M and error E, a reduce adds them, and a store
// into a buffer with codec c adds error_of(c)·(M + E) to E. Empty without codecs. Throws UserError where
// coded values enter another operation, or return to a buffer that they came from: no bound follows then.
std::vector<double> codec_errors(const Schedule& schedule);

}  // namespace tritax
