/// Speed of the Verilated RTL, and the matrix products of one BERT-Base layer on the 16 x 16 array
/// in RTL: sums bit by bit against hw::gemm(), cycles against hw::array_cycles().
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <systemc>
#include <vector>

#include "hw/array.h"
#include "hw/gemm.h"
#include "testbench/rtl/systolic_array_rtl.h"

namespace systole::bench {
namespace {

using testbench::SystolicArrayRtl;

// The SystemC library prints a banner before it calls sc_main().
[[maybe_unused]] const int kNoBanner = ::setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Operands of a product, seeded, and room for its result.
struct Product {
  Product(std::size_t m, std::size_t n, std::size_t k, bool b_transposed, bool a_unsigned)
      : a(m * k), b(k * n), c(m * n) {
    std::minstd_rand random(1);
    for (std::int8_t& value : a) value = static_cast<std::int8_t>(random() >> 7);
    for (std::int8_t& value : b) value = static_cast<std::int8_t>(random() >> 7);
    args.a = a.data();
    args.lda = k;
    args.a_unsigned = a_unsigned;
    args.b = b.data();
    args.ldb = b_transposed ? k : n;
    args.b_transposed = b_transposed;
    args.c = c.data();
    args.ldc = n;
    args.m = m;
    args.n = n;
    args.k = k;
  }

  std::vector<std::int8_t> a, b;
  std::vector<std::int32_t> c;
  hw::GemmArgs args;
};

// ------------------------------------------------------------------------------ clock rates
/// One line of the table: a block in one of its sizes, and an operation that returns the cycles of
/// the clock it took.
struct Subject {
  const char* block;
  const char* size;
  std::function<std::uint64_t()> operation;
};

std::vector<Subject> subjects() {
  std::vector<Subject> all;
  const auto add_array = [&all](const char* size, std::uint32_t dim) {
    const auto rtl = std::make_shared<SystolicArrayRtl>(dim, hw::ArrayOverlap::kFull);
    const auto product = std::make_shared<Product>(128, 16 * dim, 16 * dim, false, false);
    all.push_back(
        {"systolic_array", size, [=] { return rtl->matmul(product->args, true).cycles; }});
  };
  add_array("4x4", 4);
  add_array("8x8", 8);
  add_array("16x16", 16);
  return all;
}

/// Cycles per second of CPU time: the best of some samples, because other programs take their share
/// of caches and clock.
double rate(const std::function<std::uint64_t()>& operation) {
  constexpr int kSamples = 5;
  constexpr double kSampleSeconds = 0.2;
  double best = 0.0;
  for (int i = 0; i < kSamples; ++i) {
    const double start = cpu_seconds();
    double elapsed = 0.0;
    std::uint64_t cycles = 0;
    while (elapsed < kSampleSeconds) {
      cycles += operation();
      elapsed = cpu_seconds() - start;
    }
    best = std::max(best, static_cast<double>(cycles) / elapsed);
  }
  return best;
}

void print_rates() {
  std::printf("%-18s %-6s %9s\n", "block", "size", "Mcycle/s");
  for (const Subject& subject : subjects()) {
    std::printf("%-18s %-6s %9.2f\n", subject.block, subject.size, rate(subject.operation) * 1e-6);
    std::fflush(stdout);
  }
}

// ------------------------------------------------------------------------------ a layer
/// Products of BERT-Base at length 128.
struct Step {
  const char* use;
  int count;
  std::size_t m, n, k;
  bool b_transposed, a_unsigned;
};
constexpr Step kLayer[] = {
    {"Q, K, V", 3, 128, 768, 768, false, false}, {"scores", 12, 128, 128, 64, true, false},
    {"context", 12, 128, 64, 128, false, true},  {"output", 1, 128, 768, 768, false, false},
    {"FFN 1", 1, 128, 3072, 768, false, false},  {"FFN 2", 1, 128, 768, 3072, false, false},
};

struct Totals {
  std::uint64_t cycles = 0;
  std::uint64_t contract = 0;
  std::uint64_t differing = 0;  ///< sums, and commands whose cycles differ in any part
  double cpu = 0.0;

  void add(const Totals& other) {
    cycles += other.cycles;
    contract += other.contract;
    differing += other.differing;
    cpu += other.cpu;
  }
  void print(const char* use, int count) const {
    std::printf("%-9s %5d %12llu %12llu %10llu %8.3f %9.2f\n", use, count,
                static_cast<unsigned long long>(cycles), static_cast<unsigned long long>(contract),
                static_cast<unsigned long long>(differing), cpu,
                static_cast<double>(cycles) / cpu * 1e-6);
    std::fflush(stdout);
  }
};

/// `preloaded`: the array is at work when the first product begins, as it is for all that follow.
Totals run(const Step& step, const hw::Machine::Array& array, bool preloaded,
           SystolicArrayRtl& rtl) {
  Product product(step.m, step.n, step.k, step.b_transposed, step.a_unsigned);
  std::vector<std::int32_t> expected(product.c.size());
  hw::GemmArgs model = product.args;
  model.c = expected.data();
  hw::gemm(model);
  Totals totals;
  for (int i = 0; i < step.count; ++i) {
    const bool follows = preloaded || i != 0;
    const double start = cpu_seconds();
    const SystolicArrayRtl::Cycles cycles = rtl.matmul(product.args, follows);
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

bool layer_is_exact() {
  hw::Machine::Array array;
  array.rows = 16;
  array.cols = 16;
  array.dataflow = hw::Dataflow::kWeightStationary;
  array.overlap = hw::ArrayOverlap::kFull;
  SystolicArrayRtl rtl(16, array.overlap);
  std::printf(
      "\nOne BERT-Base layer of length 128 on systolic_array 16x16\n%-9s %5s %12s %12s %10s "
      "%8s %9s\n",
      "products", "count", "cycles", "contract", "differing", "cpu_s", "Mcycle/s");
  const auto wall_start = std::chrono::steady_clock::now();
  Totals all;
  int count = 0;
  for (const Step& step : kLayer) {
    const Totals totals = run(step, array, count != 0, rtl);
    totals.print(step.use, step.count);
    all.add(totals);
    count += step.count;
  }
  all.print("all", count);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - wall_start;
  std::printf("wall_s %.3f, operands and hw::gemm() included\n", wall.count());
  return all.differing == 0;
}

}  // namespace
}  // namespace systole::bench

int sc_main(int, char*[]) {
  systole::bench::print_rates();
  return systole::bench::layer_is_exact() ? 0 : 1;
}
