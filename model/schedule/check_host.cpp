// Checks host programs and graphs for references out of range and operations without meaning.
#include <fmt/format.h>

#include <cstdint>
#include <set>

#include "model/schedule/findings.hpp"
#include "model/schedule/op_traits.hpp"

namespace tritax {

namespace {

using Kind = Finding::Kind;

constexpr std::int32_t kMaxStreams = 65536;
constexpr std::int32_t kMaxEvents = 1 << 20;
constexpr double kMostWorkNs = 3.6e12;  // an hour: the clock still resolves a thousandth of a ns

bool in_range(std::int64_t index, std::size_t size) {
  return index >= 0 && index < static_cast<std::int64_t>(size);
}

class HostChecker {
 public:
  HostChecker(const Schedule& schedule, Findings& findings) : schedule_(schedule), findings_(findings) {}

  void check() {
    check_graphs();
    check_programs();
  }

 private:
  void check_graphs() {
    for (std::size_t i = 0; i < schedule_.graphs.size(); ++i) {
      for (std::size_t node = 0; node < schedule_.graphs[i].size(); ++node) {
        const GraphNode& entry = schedule_.graphs[i][node];
        check_launch(fmt::format("graph {} node {}", i, node), entry.kernel, entry.stream);
      }
    }
  }

  bool check_launch(const std::string& where, std::int32_t kernel, std::int32_t stream) {
    if (!in_range(kernel, schedule_.kernels.size())) {
      findings_.add(Kind::out_of_range, where,
                    fmt::format("kernel {}; the schedule has {} kernels", kernel, schedule_.kernels.size()));
      return false;
    }
    if (stream < 0 || stream >= kMaxStreams) {
      findings_.add(Kind::out_of_range, where,
                    fmt::format("stream {}; give 0 to {}", stream, kMaxStreams - 1));
      return false;
    }
    return true;
  }

  void check_programs() {
    std::vector<char> launched(schedule_.kernels.size(), 0);
    for (std::size_t rank = 0; rank < schedule_.host.size(); ++rank) {
      recorded_.clear();
      for (std::size_t i = 0; i < schedule_.host[rank].size(); ++i) {
        check_host_op(rank, i, launched);
      }
    }
    for (std::size_t i = 0; i < launched.size(); ++i) {
      if (launched[i] == 0) {
        findings_.add(Kind::meaningless, describe_kernel(schedule_, i), "is never launched");
      }
    }
  }

  void check_host_op(std::size_t rank, std::size_t index, std::vector<char>& launched) {
    const HostOp& op = schedule_.host[rank][index];
    const std::string where = describe_host_op(schedule_, rank, index);
    const auto launch = [&](std::int32_t kernel, std::int32_t stream) {
      if (!check_launch(where, kernel, stream)) {
        return;
      }
      launched[static_cast<std::size_t>(kernel)] = 1;
      const std::int32_t its_rank = schedule_.kernels[static_cast<std::size_t>(kernel)].rank;
      if (its_rank != static_cast<std::int32_t>(rank)) {
        findings_.add(Kind::out_of_range, where,
                      fmt::format("launches a kernel of rank {}; a host launches on its own rank", its_rank));
      }
    };
    if (op.kind == HostOpKind::graph_launch && !in_range(op.graph, schedule_.graphs.size())) {
      findings_.add(Kind::out_of_range, where,
                    fmt::format("graph {}; the schedule has {} graphs", op.graph, schedule_.graphs.size()));
      return;
    }
    for_each_launch(schedule_, op, [&](const GraphNode& node) { launch(node.kernel, node.stream); });
    if (op.kind == HostOpKind::graph_launch) return;
    if (op.stream < 0 || op.stream >= kMaxStreams) {
      findings_.add(Kind::out_of_range, where,
                    fmt::format("stream {}; give 0 to {}", op.stream, kMaxStreams - 1));
    }
    if (op.kind == HostOpKind::event_record || op.kind == HostOpKind::event_wait) {
      check_event(op, where);
    } else if (op.kind == HostOpKind::copy) {
      check_transfer(op, where);
    } else if (op.kind == HostOpKind::host_work && !(op.duration_ns <= kMostWorkNs)) {
      findings_.add(Kind::out_of_range, where,
                    fmt::format("duration_ns is {}; give a time of at most {:.3g} (an hour)", op.duration_ns,
                                kMostWorkNs));
    }
  }

  void check_event(const HostOp& op, const std::string& where) {
    if (op.event < 0 || op.event >= kMaxEvents) {
      findings_.add(Kind::out_of_range, where,
                    fmt::format("event {}; give 0 to {}", op.event, kMaxEvents - 1));
    } else if (op.kind == HostOpKind::event_record) {
      recorded_.insert(op.event);
    } else if (recorded_.count(op.event) == 0) {
      findings_.add(
          Kind::meaningless, where,
          fmt::format("waits for event {}, which no operation of this host program before it records",
                      op.event));
    }
  }

  void check_transfer(const HostOp& op, const std::string& where) {
    if (!in_range(op.transfer, schedule_.transfers.size())) {
      findings_.add(Kind::out_of_range, where,
                    fmt::format("transfer {}; the schedule has {}", op.transfer, schedule_.transfers.size()));
      return;
    }
    const Op& copy = schedule_.transfers[static_cast<std::size_t>(op.transfer)];
    Finding fault = fault_of_copy(schedule_, copy);
    if (copy.kind != OpKind::copy) {
      findings_.add(Kind::meaningless, where, "is a transfer that is not a copy");
    } else if (!fault.message.empty()) {
      findings_.add(fault.kind, where, std::move(fault.message));
    } else if (copy.with_previous || copy.multimem) {
      findings_.add(Kind::meaningless, where,
                    "starts with an operation before it; only workgroups have groups");
    }
  }

  const Schedule& schedule_;
  Findings& findings_;
  std::set<std::int32_t> recorded_;  // events of the current host program
};

}  // namespace

void check_host(const Schedule& schedule, Findings& findings) { HostChecker(schedule, findings).check(); }

}  // namespace tritax
