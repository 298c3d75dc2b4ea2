/// Speed of every GEMM backend this host can run, packing included, as a table or with --json.
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "hw/kernel/gemm.h"

namespace systole {
namespace {

struct Shape {
  const char* use;
  std::size_t m, n, k;
  bool b_transposed;
};

constexpr Shape kShapes[] = {
    {"projection", 512, 768, 768, false}, {"FFN 1", 512, 3072, 768, false},
    {"FFN 2", 512, 768, 3072, false},     {"FFN 2, l=128", 128, 768, 3072, false},
    {"scores", 512, 512, 64, true},       {"context", 512, 64, 512, false},
    {"tile", 176, 176, 80, false},        {"tile", 17, 64, 64, false},
    {"tile", 64, 64, 64, false},          {"tile", 65, 65, 16, false},
    {"tile", 16, 16, 16, false},          {"tile, B^T", 16, 16, 16, true},
    {"vector", 1, 768, 768, false},       {"vector, B^T", 1, 768, 768, true},
    {"4 rows", 4, 768, 768, false},
};

/// CPU time of this thread, so that a busy machine does not count against the kernel.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Median seconds of one call over `kSamples` samples of at least `kSampleSeconds` each.
double seconds_per_call(const hw::GemmArgs& args, hw::GemmBackend backend) {
  constexpr int kSamples = 9;
  constexpr double kSampleSeconds = 0.01;
  std::size_t calls = 1;
  std::vector<double> samples;
  while (samples.size() < kSamples) {
    const double start = cpu_seconds();
    for (std::size_t i = 0; i < calls; ++i) hw::gemm(args, backend);
    const double elapsed = cpu_seconds() - start;
    if (elapsed < kSampleSeconds) {
      calls *= 2;  // too short to trust, or a first call that still warmed up
      continue;
    }
    samples.push_back(elapsed / static_cast<double>(calls));
  }
  std::nth_element(samples.begin(), samples.begin() + kSamples / 2, samples.end());
  return samples[kSamples / 2];
}

std::vector<std::int8_t> random_bytes(std::size_t count) {
  std::minstd_rand random(1);
  std::vector<std::int8_t> bytes(count);
  for (std::int8_t& byte : bytes) byte = static_cast<std::int8_t>(random() & 0xff);
  return bytes;
}

class Report {
 public:
  explicit Report(bool json) : json_(json) {
    if (json_) {
      std::printf("[");
    } else {
      std::printf("%-13s %4s %5s %5s  %-10s %9s %12s %8s\n", "use", "m", "n", "k", "backend",
                  "GMAC/s", "us per call", "x ref");
    }
  }
  ~Report() {
    if (json_) std::printf("\n]\n");
  }
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  void line(const Shape& shape, const char* backend, double seconds, double reference_seconds) {
    const double macs = static_cast<double>(shape.m * shape.n * shape.k);
    const double gmacs = macs / seconds * 1e-9;
    const double ratio = reference_seconds / seconds;
    if (json_) {
      std::printf(
          "%s\n  {\"use\": \"%s\", \"m\": %zu, \"n\": %zu, \"k\": %zu, \"backend\": \"%s\", "
          "\"gmac_per_s\": %.3f, \"us_per_call\": %.4f, \"ratio_to_reference\": %.3f}",
          first_ ? "" : ",", shape.use, shape.m, shape.n, shape.k, backend, gmacs, seconds * 1e6,
          ratio);
    } else {
      std::printf("%-13s %4zu %5zu %5zu  %-10s %9.1f %12.3f %8.1f\n", shape.use, shape.m, shape.n,
                  shape.k, backend, gmacs, seconds * 1e6, ratio);
    }
    std::fflush(stdout);
    first_ = false;
  }

 private:
  bool json_;
  bool first_ = true;
};

void run(const Shape& shape, Report& report) {
  const std::vector<std::int8_t> a = random_bytes(shape.m * shape.k);
  const std::vector<std::int8_t> b = random_bytes(shape.k * shape.n);
  std::vector<std::int32_t> c(shape.m * shape.n);
  hw::GemmArgs args;
  args.a = a.data();
  args.lda = shape.k;
  args.b = b.data();
  args.b_transposed = shape.b_transposed;
  args.ldb = shape.b_transposed ? shape.k : shape.n;
  args.c = c.data();
  args.ldc = shape.n;
  args.m = shape.m;
  args.n = shape.n;
  args.k = shape.k;
  const double reference = seconds_per_call(args, hw::GemmBackend::kReference);
  report.line(shape, hw::gemm_backend_name(hw::GemmBackend::kReference), reference, reference);
  for (const hw::GemmBackend backend : hw::kGemmBackends) {
    if (backend == hw::GemmBackend::kReference || !hw::gemm_supported(backend)) continue;
    report.line(shape, hw::gemm_backend_name(backend), seconds_per_call(args, backend), reference);
  }
}

}  // namespace
}  // namespace systole

int main(int argc, char** argv) {
  const bool json = argc == 2 && std::strcmp(argv[1], "--json") == 0;
  if (argc > 1 && !json) {
    std::fprintf(stderr, "usage: %s [--json]\n", argv[0]);
    return 2;
  }
  systole::Report report(json);
  for (const systole::Shape& shape : systole::kShapes) systole::run(shape, report);
  return 0;
}
