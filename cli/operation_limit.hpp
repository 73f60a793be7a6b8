// Refuses simulations that would take too long, before they begin.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

#include "cli/terminal.hpp"
#include "model/schedule/schedule.hpp"
#include "sim/observer.hpp"

namespace CLI {
class App;
}

namespace tritax::cli {

// Limit for all runs of one schedule together; a minute or less on one core.
inline constexpr std::int64_t kUsualMaxOperations = 32'000'000;

// --max-operations.
void add_max_operations_option(CLI::App& app, std::optional<std::int64_t>& most);

// Throws UserError with the number of operations (model/schedule/operations.hpp) if `runs` runs of the
// schedule have more than `most`, or than the usual limit without `most`. `fewer`: other ways to reduce the
// number.
void require_few_operations(const Schedule& schedule, int runs, const std::optional<std::int64_t>& most,
                            std::string_view fewer);

// Advances a progress bar by the operations of the simulations that it observes, on any thread.
class ProgressOfOperations final : public SimulationObserver {
 public:
  explicit ProgressOfOperations(Progress& bar) : bar_(bar) {}
  void expect(std::uint64_t operations) { expected_ += operations; }
  void op_finished(const OpPlace& place, double time_ns) override;

 private:
  Progress& bar_;
  std::atomic<std::uint64_t> expected_{0};
  std::atomic<std::uint64_t> done_{0};
};

}  // namespace tritax::cli
