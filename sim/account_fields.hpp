// The fields of the accounts of time (sim/simulate.hpp): by parts along the critical path, and by what runs
// without a tax save.
#pragma once

#include "model/core/fields.hpp"
#include "sim/simulate.hpp"

namespace tritax {

// The parts that sum to the time, in the order in which tables and figures show them.
const Fields<TimeAccount>& account_fields();

// What is left of the time on the critical path without taxes, contention and the barriers of a harness:
// products, memory traffic and link traffic that the work needs.
double useful_ns(const TimeAccount& account);

// The same sum with the three useful parts as one.
const Fields<TimeAccount>& summary_fields();

// The three taxes alone.
const Fields<TimeAccount>& tax_fields();

// What the run saves without each of the taxes, and without all.
const Fields<Taxes>& savings_fields();

}  // namespace tritax
