#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench/cpu_time.h"
#include "bench/rtl_product.h"
#include "hw/array/array.h"
#include "hw/kernel/gemm.h"
#include "testbench/rtl/array/systolic_array_rtl.h"

/// The matrix products of one BERT-Base layer on the 16 x 16 array in RTL: sums bit by bit against
/// hw::gemm(), cycles against hw::array_cycles().
namespace systole::bench {

/// Products of BERT-Base at length 128.
struct Step {
  const char* use;
  int count;
  std::size_t m, n, k;
  bool b_transposed, a_unsigned;
};
inline constexpr Step kLayer[] = {
    {"Q, K, V", 3, 128, 768, 768, false, false}, {"scores", 12, 128, 128, 64, true, false},
    {"context", 12, 128, 64, 128, false, true},  {"output", 1, 128, 768, 768, false, false},
    {"FFN 1", 1, 128, 3072, 768, false, false},  {"FFN 2", 1, 128, 768, 3072, false, false},
};

struct Totals {
  int count = 0;
  std::uint64_t cycles = 0;
  std::uint64_t contract = 0;
  std::uint64_t differing = 0;  ///< sums, and commands whose cycles differ in any part
  double cpu = 0.0;

  void add(const Totals& other) {
    count += other.count;
    cycles += other.cycles;
    contract += other.contract;
    differing += other.differing;
    cpu += other.cpu;
  }
  [[nodiscard]] nlohmann::ordered_json line(const char* use) const {
    return {{"products", use},
            {"count", count},
            {"cycles", cycles},
            {"contract", contract},
            {"differing", differing},
            {"cpu_s", cpu},
            {"mcycle_per_s", static_cast<double>(cycles) / cpu * 1e-6}};
  }
};

/// `preloaded`: the array is busy when the first product begins, as it is for all that follow.
[[nodiscard]] inline Totals run_step(const Step& step, const hw::Machine::Array& array,
                                     bool preloaded, testbench::SystolicArrayRtl& rtl) {
  Product product(step.m, step.n, step.k, step.b_transposed, step.a_unsigned);
  std::vector<std::int32_t> expected(product.c.size());
  hw::GemmArgs model = product.args;
  model.c = expected.data();
  hw::gemm(model);
  Totals totals;
  for (; totals.count < step.count; ++totals.count) {
    const bool follows = preloaded || totals.count != 0;
    const double start = cpu_seconds();
    const testbench::SystolicArrayRtl::Cycles cycles = rtl.matmul(product.args, follows);
    totals.cpu += cpu_seconds() - start;
    const hw::ArrayCycles contract = hw::array_cycles(array, step.m, step.n, step.k, follows);
    totals.cycles += cycles.measured.interval;
    totals.contract += contract.interval;
    totals.differing += cycles.meets(contract) ? 0 : 1;
    for (std::size_t at = 0; at < expected.size(); ++at) {
      totals.differing += product.c[at] != expected[at] ? 1 : 0;
    }
  }
  return totals;
}

struct LayerResult {
  nlohmann::ordered_json lines;  ///< one per kind of product, and their sum
  double wall = 0.0;             ///< seconds, operands and hw::gemm() included
  bool exact = false;
};

[[nodiscard]] inline LayerResult run_layer() {
  hw::Machine::Array array;
  array.rows = 16;
  array.cols = 16;
  array.dataflow = hw::Dataflow::kWeightStationary;
  array.overlap = hw::ArrayOverlap::kFull;
  const auto rtl = testbench::make_systolic_array(16, array.overlap);
  const auto wall_start = std::chrono::steady_clock::now();
  LayerResult result;
  Totals all;
  for (const Step& step : kLayer) {
    const Totals totals = run_step(step, array, all.count != 0, *rtl);
    result.lines.push_back(totals.line(step.use));
    all.add(totals);
  }
  result.lines.push_back(all.line("all"));
  result.wall =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - wall_start).count();
  result.exact = all.differing == 0;
  return result;
}

}  // namespace systole::bench
