// What a generated token costs on the host: bit-exact, without values, and beside the same FP16
// products done natively. See README.md.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "hw/ring/half_gemv.h"
#include "model/float/gpt.h"
#include "testbench/common/child_process.h"
#include "testbench/generation/generation.h"

namespace systole::bench {
namespace {

using testbench::Generation;
using testbench::GenerationTask;

struct Options {
  std::string model = "gpt2-medium";
  std::uint32_t cores = 4;
  std::uint32_t tokens = 16;
  bool json = false;
};

/// Of one run.
struct Cost {
  double seconds = 0.0;
  std::uint64_t passes = 0;
  std::uint64_t events = 0;  ///< delta cycles
  std::uint64_t cycles = 0;

  [[nodiscard]] double per_token() const { return seconds / static_cast<double>(passes); }
};

/// A prompt of one token and `tokens` generated, in a separate process.
Cost run(const Options& options, const model::Gpt* gpt, std::uint32_t tokens) {
  const testbench::Bytes bytes = testbench::run_in_child([&] {
    hw::Machine machine = hw::find_machine("dfx");
    machine.dfx.cores = options.cores;
    GenerationTask task;
    task.shape = model::gpt_shape(options.model);
    task.gpt = gpt;
    task.prompt = {1};
    task.tokens = tokens;
    const Generation result = testbench::generate(machine, task);
    const Cost cost{result.wall_seconds, result.passes, result.kernel_events,
                    result.total_ps * machine.core.clock_mhz / 1'000'000};
    testbench::Bytes copy(sizeof cost);
    std::memcpy(copy.data(), &cost, sizeof cost);
    return copy;
  });
  Cost cost;
  std::memcpy(&cost, bytes.data(), sizeof cost);
  return cost;
}

/// Seconds that the products of one token take with the kernel of the matrix unit alone: all
/// weights once, in the tiles of one core.
double native_seconds(const model::TextShape& shape) {
  constexpr std::size_t kDepth = 64, kLanes = 16;
  const std::size_t width = shape.encoder.width, hidden = shape.encoder.hidden;
  struct Product {
    std::size_t inputs, outputs, count;
  };
  const Product products[] = {{width, width, 4 * std::size_t{shape.encoder.layers}},
                              {width, hidden, shape.encoder.layers},
                              {hidden, width, shape.encoder.layers},
                              {width, shape.vocabulary, 1}};
  double seconds = 0.0;
  for (const Product& product : products) {
    hw::HalfGemv gemv;
    gemv.k_tiles = (product.inputs + kDepth - 1) / kDepth;
    gemv.slices = (product.outputs + kLanes - 1) / kLanes;
    gemv.k_stride = gemv.slices;
    gemv.slice_stride = 1;
    const std::vector<hw::Half> x(gemv.k_tiles * kDepth, hw::to_half(0.5F));
    // As many matrices as there are, since each is read from memory once a token.
    const std::size_t elements = gemv.k_tiles * gemv.slices * kDepth * kLanes;
    const std::vector<hw::Half> weights(elements * product.count, hw::to_half(0.25F));
    std::vector<hw::Half> y(gemv.slices * kLanes);
    gemv.x = x.data();
    gemv.y = y.data();
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < product.count; ++i) {
      gemv.tiles = weights.data() + i * elements;
      hw::half_gemv(gemv);
    }
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  return seconds;
}

int measure(const Options& options) {
  const model::TextShape shape = model::gpt_shape(options.model);
  nlohmann::ordered_json report;
  report["native_s_per_token"] = native_seconds(shape);
  {
    const model::Gpt gpt = model::seeded_gpt(options.model, shape, 1);
    report["bit_exact_s_per_token"] = run(options, &gpt, options.tokens).per_token();
  }
  const Cost timing = run(options, nullptr, options.tokens);
  const Cost longer = run(options, nullptr, 4 * options.tokens);
  report["bit_exact_over_native"] =
      report["bit_exact_s_per_token"].get<double>() / report["native_s_per_token"].get<double>();
  report["timing_only_s_per_token"] = timing.per_token();
  report["timing_only_s_per_token_of_4x_tokens"] = longer.per_token();
  report["delta_cycles_per_token"] = timing.events / timing.passes;
  report["simulated_cycles_per_s_timing_only"] =
      static_cast<double>(timing.cycles) / timing.seconds;
  if (options.json) {
    fmt::print("{}\n", report.dump(2));
    return 0;
  }
  fmt::print("{}, {} cores, {} tokens\n", options.model, options.cores, options.tokens);
  for (const auto& [name, value] : report.items()) {
    if (value.is_number_float()) {
      fmt::print("{:<40} {:>12.4g}\n", name, value.get<double>());
    } else {
      fmt::print("{:<40} {:>12}\n", name, value.get<std::uint64_t>());
    }
  }
  return 0;
}

}  // namespace
}  // namespace systole::bench

int sc_main(int argc, char** argv) {
  systole::bench::Options options;
  CLI::App app("Host time of a generated token.");
  app.add_option("--model", options.model, "shape; default: gpt2-medium");
  app.add_option("--cores", options.cores, "default: 4");
  app.add_option("--tokens", options.tokens, "generated; default: 16");
  app.add_flag("--json", options.json, "print JSON");
  CLI11_PARSE(app, argc, argv);
  return systole::bench::measure(options);
}
