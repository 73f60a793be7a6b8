// What a machine's parameters must satisfy together, beyond the range of each.
//
// A user's file with a slipped digit usually breaks one of these laws: no part of a share exceeds the whole,
// no cache is larger than what it caches, no GPU sends more than its links carry.
#pragma once

#include <string>
#include <vector>

#include "model/machine/machine.hpp"

namespace tritax {

struct Inconsistency {
  std::string key;      // the parameter to blame, dotted
  std::string problem;  // what is wrong and what is allowed
};

// All broken laws; empty for a machine that makes sense.
std::vector<Inconsistency> find_inconsistencies(const Machine& machine);

// Raw rate of all links of one GPU within its node, one direction: its links to every peer, or its switch
// port.
double raw_gpu_gb_per_s(const Machine& machine);

// Throws UserError if the machine does not say all that copies by copy engines take; `user` wants them.
void require_copy_engines(const Machine& machine, const std::string& user);

}  // namespace tritax
