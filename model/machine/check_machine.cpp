#include "model/machine/check_machine.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "model/core/error.hpp"

namespace tritax {

namespace {

using Findings = std::vector<Inconsistency>;

// Payload rates are quoted with three or four digits, so a rate may exceed its bound by rounding.
constexpr double kRounding = 1.001;

void check_at_most(Findings& findings, std::string key, double value, double limit,
                   std::string_view limit_name) {
  if (value <= limit * kRounding) return;
  findings.push_back({std::move(key), fmt::format("{:.10g} exceeds {} ({:.10g})", value, limit_name, limit)});
}

// Kernels have one workgroup per compute unit, and a search simulates some hundreds of kernels.
constexpr int kMostComputeUnits = 4096;

void check_compute(const Gpu& gpu, Findings& findings) {
  if (gpu.cu_count() > kMostComputeUnits) {
    findings.push_back(
        {"gpu.cus_per_xcd", fmt::format("{} on each of {} dies are {} compute units; a GPU has at most {}",
                                        gpu.cus_per_xcd, gpu.xcds, gpu.cu_count(), kMostComputeUnits)});
  }
  check_at_most(findings, "gpu.registers_per_thread_max", gpu.registers_per_thread_max, gpu.registers_per_cu,
                "gpu.registers_per_cu");
  check_at_most(findings, "gpu.lds_per_workgroup_max", gpu.lds_bytes_per_workgroup_max, gpu.lds_bytes_per_cu,
                "gpu.lds_per_cu");
  for (std::size_t i = 0; i < gpu.matrix.size(); ++i) {
    check_at_most(findings, fmt::format("gpu.matrix.{}.load_clock", kDTypeNames[i]),
                  gpu.matrix[i].load_clock_ghz, gpu.boost_clock_ghz, "gpu.boost_clock");
    check_at_most(findings, fmt::format("gpu.matrix.{}.sustained_clock", kDTypeNames[i]),
                  gpu.matrix[i].sustained_clock_ghz, gpu.matrix[i].load_clock_ghz,
                  fmt::format("gpu.matrix.{}.load_clock", kDTypeNames[i]));
    if (gpu.matrix[i].light_clock_ghz <= 0) continue;
    const std::string light = fmt::format("gpu.matrix.{}.light_clock", kDTypeNames[i]);
    check_at_most(findings, light, gpu.matrix[i].light_clock_ghz, gpu.boost_clock_ghz, "gpu.boost_clock");
    // With known energies the load clock applies to matrix cores without any data movement.
    if (gpu.knows_energies()) continue;
    check_at_most(findings, fmt::format("gpu.matrix.{}.load_clock", kDTypeNames[i]),
                  gpu.matrix[i].load_clock_ghz, gpu.matrix[i].light_clock_ghz, light);
  }
}

void check_power(const Gpu& gpu, Findings& findings) {
  if (gpu.operand_pj_per_byte > 0 && gpu.power_limit_w <= 0) {
    findings.push_back({"gpu.operand_energy", "says nothing without gpu.power_limit"});
  }
  if (gpu.miss_pj_per_byte > 0 && gpu.operand_pj_per_byte <= 0) {
    findings.push_back({"gpu.miss_energy", "says nothing without gpu.operand_energy"});
  }
  for (const auto& [key, value] :
       {std::pair{"gpu.load_power", gpu.load_power_w}, std::pair{"gpu.idle_power", gpu.idle_power_w},
        std::pair{"gpu.flat_voltage_clock", gpu.flat_voltage_ghz}}) {
    if (value > 0 && gpu.power_limit_w <= 0)
      findings.push_back({key, "says nothing without gpu.power_limit"});
  }
  constexpr double kLeastLeft = 0.01;  // share of a limit left for all work; with less a run would never end
  for (const auto& [name, limit_w] :
       {std::pair{"gpu.power_limit", gpu.power_limit_w}, std::pair{"gpu.load_power", gpu.load_power_w}}) {
    if (limit_w <= 0) continue;
    check_at_most(findings, "gpu.idle_power", gpu.idle_power_w, (1 - kLeastLeft) * limit_w,
                  fmt::format("99 % of {}", name));
  }
}

void check_memory(const Machine& machine, Findings& findings) {
  const Gpu& gpu = machine.gpu;
  const bool has_llc = gpu.llc_bytes > 0;
  if (has_llc != (gpu.llc_gb_per_s > 0)) {
    findings.push_back({"gpu.llc_bandwidth", "must be 0 exactly if gpu.llc_size is 0"});
  }
  if (has_llc != (gpu.llc_latency_ns > 0)) {
    findings.push_back({"gpu.llc_latency", "must be 0 exactly if gpu.llc_size is 0"});
  }
  if ((gpu.l2_ports > 0) != (machine.interpreter.l2_coalescing_ns > 0)) {
    findings.push_back({"gpu.l2_ports", "says nothing without gpu.l2_coalescing_time, nor that without it"});
  }
  check_at_most(findings, "gpu.l2_ports", gpu.l2_ports, gpu.cus_per_xcd, "gpu.cus_per_xcd");
  check_at_most(findings, "gpu.shader_engines", gpu.shader_engines, gpu.cus_per_xcd, "gpu.cus_per_xcd");
  check_at_most(findings, "gpu.l2_size", gpu.l2_bytes * gpu.xcds, gpu.hbm_bytes,
                "gpu.hbm_size, over all dies,");
  check_at_most(findings, "gpu.llc_size", gpu.llc_bytes, gpu.hbm_bytes, "gpu.hbm_size");
  check_at_most(findings, "gpu.l2_latency", gpu.l2_latency_ns, gpu.hbm_latency_ns, "gpu.hbm_latency");
  check_at_most(findings, "gpu.llc_latency", gpu.llc_latency_ns, gpu.hbm_latency_ns, "gpu.hbm_latency");
}

void check_fabric(const Machine& machine, Findings& findings) {
  const Fabric& fabric = machine.fabric;
  if (machine.gpus_per_node > 1) {
    const double raw = raw_gpu_gb_per_s(machine);
    constexpr std::string_view kLinks = "the raw rate of all links of a GPU";
    check_at_most(findings, "fabric.store_egress", fabric.store_egress_gb_per_s, raw, kLinks);
    check_at_most(findings, "fabric.store_ingress", fabric.store_ingress_gb_per_s, raw, kLinks);
    check_at_most(findings, "fabric.load_ingress", fabric.load_ingress_gb_per_s, raw, kLinks);
    check_at_most(findings, "fabric.load_egress", fabric.load_egress_gb_per_s, raw, kLinks);
  }
  check_at_most(findings, "fabric.store_latency", fabric.store_latency_ns, fabric.load_round_trip_ns,
                "fabric.load_round_trip");
}

void check_network(const Machine& machine, Findings& findings) {
  const NodeNetwork& network = machine.network;
  if (network.kind != NetworkKind::one_switch) return;
  for (const auto& [key, says] : {std::pair{"network.nodes_per_leaf", network.nodes_per_leaf > 0},
                                  std::pair{"network.uplink_share", network.uplink_share != 1},
                                  std::pair{"network.spine_latency", network.spine_latency_ns > 0}}) {
    if (says) findings.push_back({key, "says nothing of a network of one switch; kind: rails or fat-tree"});
  }
}

}  // namespace

double raw_gpu_gb_per_s(const Machine& machine) {
  const int peers = std::max(machine.gpus_per_node - 1, 0);
  const int links = machine.fabric.kind == LinkKind::mesh   ? peers
                    : machine.fabric.kind == LinkKind::ring ? std::min(peers, 2)
                                                            : 1;
  return links * machine.fabric.link_raw_gb_per_s;
}

void require_copy_engines(const Machine& machine, const std::string& user) {
  const CopyEngines& engines = machine.copy_engine;
  const auto require = [&](double value, const char* parameter, const char* meaning) {
    if (value > 0) return;
    throw UserError(
        fmt::format("{}: copy engines move data in it, but machine '{}' does not say {}; give {} in its file "
                    "(docs/machines.md)",
                    user, machine.name, meaning, parameter));
  };
  require(engines.engines, "copy_engine.engines", "how many a GPU has");
  require(engines.gb_per_s, "copy_engine.rate", "how fast one is");
  require(engines.packet_ns, "copy_engine.packet", "what a transfer takes before data moves");
}

bool has_multicast(const Machine& machine, int gpus) {
  return machine.fabric.multicast && gpus > 1 && gpus <= machine.gpus_per_node;
}

void require_multicast(const Machine& machine, int gpus, const std::string& user,
                       const std::string& instead) {
  if (gpus == 1 || has_multicast(machine, gpus)) return;
  if (!machine.fabric.multicast) {
    throw UserError(fmt::format(
        "{} needs a switch that multicasts (fabric.multicast), which machine '{}' does not have; {}", user,
        machine.name, instead));
  }
  throw UserError(fmt::format("{} on {} GPUs: a switch of machine '{}' reaches the {} GPUs of a node; {}",
                              user, gpus, machine.name, machine.gpus_per_node, instead));
}

std::vector<Inconsistency> find_inconsistencies(const Machine& machine) {
  Findings findings;
  check_compute(machine.gpu, findings);
  check_power(machine.gpu, findings);
  check_memory(machine, findings);
  check_fabric(machine, findings);
  check_network(machine, findings);
  return findings;
}

}  // namespace tritax
