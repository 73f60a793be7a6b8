// The fields of the accounts of time (sim/simulate.hpp): the parts of the critical path, and the time that a
// run saves without each tax.
#pragma once

#include "model/core/fields.hpp"
#include "sim/simulate.hpp"

namespace tritax {

// The parts that sum to the makespan, in the order of tables and figures.
const Fields<TimeAccount>& account_fields();

// Time on the critical path that the work itself needs: products, memory traffic and link traffic, without
// taxes, contention and the barriers of a harness.
double useful_ns(const TimeAccount& account);

// The parts of the makespan, with the three useful parts as one.
const Fields<TimeAccount>& summary_fields();

// The three taxes alone.
const Fields<TimeAccount>& tax_fields();

// Time that the run saves without each tax, and without all three.
const Fields<Taxes>& savings_fields();

}  // namespace tritax
