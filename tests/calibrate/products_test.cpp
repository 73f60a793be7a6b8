// The model's caches and clock against plain products whose DRAM reads a profiler counted. Of
// these rows only the L2's capacity was read off; the energies come from microbenchmarks on other nodes,
// where the slowest of four GPUs counts: its clock is some 2 % lower.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "model/core/quantile.hpp"
#include "model/machine/machine.hpp"
#include "model/microbench/schedules.hpp"
#include "sim/simulate.hpp"

namespace tritax {
namespace {

struct Product {
  PlainGemm gemm;
  double time_us = 0, clock_ghz = 0, dram_read_bytes = 0;
  std::string text;
};

std::vector<Product> products(const std::string& file) {
  std::ifstream in(std::string(TRITAX_SOURCE_DIR) + "/scenarios/measured/" + file);
  std::vector<Product> all;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#' || line[0] == 'm') continue;
    std::vector<std::string> cells;
    std::istringstream stream(line);
    for (std::string cell; std::getline(stream, cell, ',');) cells.push_back(cell);
    EXPECT_EQ(cells.size(), 9u) << line;
    Product p;
    p.text = line;
    const std::size_t x = cells[4].find('x');
    p.gemm = {parse_dtype(cells[3], file),
              std::stoi(cells[0]),
              std::stoi(cells[1]),
              std::stoi(cells[2]),
              std::stoi(cells[4].substr(0, x)),
              std::stoi(cells[4].substr(x + 1)),
              std::stoi(cells[5])};
    p.time_us = std::stod(cells[6]);
    p.clock_ghz = std::stod(cells[7]);
    p.dram_read_bytes = std::stod(cells[8]);
    all.push_back(p);
  }
  return all;
}

struct Errors {
  std::vector<double> reads, clock, time;
};

Errors errors_of(const std::string& file, const std::string& machine_name, std::size_t count) {
  const Machine machine = find_machine(machine_name);
  const std::vector<Product> all = products(file);
  EXPECT_EQ(all.size(), count) << file;
  Errors errors;
  for (const Product& p : all) {
    const SimulationResult result = simulate(plain_gemm(p.gemm, machine.gpu.cu_count()), machine);
    const double result_bytes = 1.0 * p.gemm.m * p.gemm.n * bytes_of(p.gemm.dtype);
    const double writes = result_bytes * machine.gpu.hbm_gb_per_s / machine.gpu.hbm_write_gb_per_s;
    const double reads = std::log((result.hbm_bytes - writes) / p.dram_read_bytes);
    EXPECT_LE(std::abs(reads), std::log(3.2)) << p.text;
    errors.reads.push_back(std::abs(reads));
    errors.clock.push_back(std::abs(result.ranks[0].matrix_clock_ghz / p.clock_ghz - 1));
    errors.time.push_back(std::abs(result.ranks[0].kernels_ns * 1e-3 / p.time_us - 1));
  }
  return errors;
}

TEST(MeasuredProducts, OnH200ReadAndClockAsTheModelSays) {
  const Errors errors = errors_of("h200-dram-reads.csv", "h200-4", 30);
  EXPECT_LE(quantile(errors.reads, 0.5), 0.15);
  EXPECT_LE(quantile(errors.clock, 0.5), 0.03);
  EXPECT_LE(quantile(errors.clock, 0.9), 0.065);
  EXPECT_LE(quantile(errors.time, 0.5), 0.025);
}

// Deep products with small tiles and few row tiles in a group, where memory is what limits.
TEST(MeasuredProducts, OfNarrowGroupsOnH200ReadAsTheModelSays) {
  const Errors errors = errors_of("h200-dram-reads-2.csv", "h200-4", 15);
  EXPECT_LE(quantile(errors.reads, 0.5), 0.12);
  EXPECT_LE(quantile(errors.clock, 0.5), 0.055);
  EXPECT_LE(quantile(errors.time, 0.5), 0.045);
}

TEST(MeasuredProducts, OnH100ReadAndClockAsTheModelSays) {
  const Errors errors = errors_of("h100-dram-reads.csv", "h100-4", 9);
  EXPECT_LE(quantile(errors.reads, 0.5), 0.25);
  EXPECT_LE(quantile(errors.clock, 0.5), 0.05);
}

}  // namespace
}  // namespace tritax
