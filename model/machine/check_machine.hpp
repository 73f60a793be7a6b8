// Checks the laws that the parameters of a machine must satisfy together, beyond the range of each parameter.
//
// A user's file with a slipped digit usually breaks one of these laws: no part exceeds the whole, no cache is
// larger than the memory behind it, no GPU sends more than its links carry.
#pragma once

#include <string>
#include <vector>

#include "model/machine/machine.hpp"

namespace tritax {

struct Inconsistency {
  std::string key;      // the parameter to blame, dotted
  std::string problem;  // what is wrong and what is allowed
};

// All broken laws; empty for a consistent machine.
std::vector<Inconsistency> find_inconsistencies(const Machine& machine);

// Raw rate of all links of one GPU within its node, one direction: its links to every peer, or its switch
// port.
double raw_gpu_gb_per_s(const Machine& machine);

// Throws UserError if a parameter of the copy engines is missing. `user` names in the message what needs copy
// engines.
void require_copy_engines(const Machine& machine, const std::string& user);

// Whether one switch that multicasts (fabric.multicast) connects the first `gpus` GPUs.
bool has_multicast(const Machine& machine, int gpus);

// Throws UserError where it does not, unless there is only one GPU. `user` names in the message what needs
// the switch, and `instead` what to do without it.
void require_multicast(const Machine& machine, int gpus, const std::string& user, const std::string& instead);

}  // namespace tritax
