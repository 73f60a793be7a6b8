#include "sim/account_fields.hpp"

namespace tritax {

const Fields<TimeAccount>& account_fields() {
  static const Fields<TimeAccount> fields{
      {{.name = "compute",
        .unit = FieldUnit::time,
        .meaning = "products at the unobstructed rate of the matrix cores",
        .label = "useful compute"},
       &TimeAccount::compute_ns},
      {{.name = "memory",
        .unit = FieldUnit::time,
        .meaning = "local memory traffic that the work needs",
        .label = "useful memory"},
       &TimeAccount::memory_ns},
      {{.name = "wire",
        .unit = FieldUnit::time,
        .meaning = "link traffic and latency that the work needs",
        .label = "useful wire"},
       &TimeAccount::wire_ns},
      {{.name = "launch",
        .unit = FieldUnit::time,
        .meaning = "launch tax: launches, host calls and gaps between kernels",
        .label = "launch tax"},
       &TimeAccount::launch_ns},
      {{.name = "bulk_synchronous",
        .unit = FieldUnit::time,
        .meaning = "bulk-synchronous tax: waiting at the ends of kernels and at barriers for work that is "
                   "not needed yet",
        .title = "bulk-sync",
        .label = "bulk-synchronous tax"},
       &TimeAccount::bulk_synchronous_ns},
      {{.name = "locality",
        .unit = FieldUnit::time,
        .meaning = "locality tax: reading again what an earlier kernel had on chip",
        .label = "locality tax"},
       &TimeAccount::locality_ns},
      {{.name = "contention", .unit = FieldUnit::time, .meaning = "slowdown by others on a shared resource"},
       &TimeAccount::contention_ns},
      {{.name = "harness",
        .unit = FieldUnit::time,
        .meaning = "host barriers around the timed region",
        .if_any = true},
       &TimeAccount::harness_ns},
  };
  return fields;
}

double useful_ns(const TimeAccount& account) {
  return account.compute_ns + account.memory_ns + account.wire_ns;
}

const Fields<TimeAccount>& summary_fields() {
  static const Fields<TimeAccount> fields = [] {
    Fields<TimeAccount> all{{{.name = "useful",
                              .unit = FieldUnit::time,
                              .meaning = "products, memory traffic and link traffic that the work needs"},
                             useful_ns}};
    append(all, pick(account_fields(), {"launch", "bulk_synchronous", "locality", "contention", "harness"}));
    return all;
  }();
  return fields;
}

const Fields<TimeAccount>& tax_fields() {
  static const Fields<TimeAccount> fields =
      pick(account_fields(), {"launch", "bulk_synchronous", "locality"});
  return fields;
}

const Fields<Taxes>& savings_fields() {
  constexpr unsigned kBoth = shown::kJson | shown::kProperty;
  static const Fields<Taxes> fields{
      {{.name = "makespan", .unit = FieldUnit::time, .meaning = "the whole run", .shows = shown::kProperty},
       &Taxes::makespan_ns},
      {{.name = "launch",
        .unit = FieldUnit::time,
        .meaning = "saving with free launches; below 0 where the run takes longer",
        .shows = kBoth,
        .label = "launch tax"},
       &Taxes::launch_ns},
      {{.name = "bulk_synchronous",
        .unit = FieldUnit::time,
        .meaning = "saving with tile dependences in place of barriers and kernel boundaries",
        .shows = kBoth,
        .label = "bulk-synchronous tax"},
       &Taxes::bulk_synchronous_ns},
      {{.name = "locality",
        .unit = FieldUnit::time,
        .meaning = "saving with written tiles kept on chip",
        .shows = kBoth,
        .label = "locality tax"},
       &Taxes::locality_ns},
      {{.name = "remainder",
        .unit = FieldUnit::time,
        .meaning = "saving without all three beyond the sum of the three savings",
        .shows = kBoth},
       &Taxes::remainder_ns},
      {{.name = "time_without_taxes",
        .unit = FieldUnit::time,
        .meaning = "time of the run without all three",
        .shows = shown::kJson},
       &Taxes::all_removed_ns},
      {{.name = "all_removed",
        .unit = FieldUnit::time,
        .meaning = "time of the run without all three",
        .shows = shown::kProperty},
       &Taxes::all_removed_ns},
  };
  return fields;
}

}  // namespace tritax
