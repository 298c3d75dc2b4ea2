// What a token of a decoder costs on the host: bit-exact, checked, without values, and beside its
// integer products done natively. See README.md.

#include <fmt/format.h>
#include <sys/resource.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <systemc>
#include <utility>
#include <vector>

#include "hw/description/machine_file.h"
#include "hw/kernel/gemm.h"
#include "mapper/mapping.h"
#include "testbench/common/child_process.h"
#include "testbench/network/decoder_run.h"
#include "testbench/network/network_size.h"
#include "testbench/run/simulation.h"

namespace systole::bench {
namespace {

using testbench::DecoderRun;

// The SystemC library prints a banner before it calls sc_main().
[[maybe_unused]] const int kNoBanner = ::setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);

struct Options {
  std::string model = "smollm2-135m";
  std::string machine = "transformer";
  std::uint32_t past = 63;
  std::uint32_t batch = 1;
  std::uint32_t tokens = 12;
  std::uint32_t layers = 0;
  unsigned threads = 2;
  bool timing_only = false;
  bool json = false;
};

/// Seconds of this process.
struct Time {
  double cpu = 0.0, wall = 0.0;

  static Time now() {
    timespec cpu{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    const auto wall = std::chrono::steady_clock::now().time_since_epoch();
    return {static_cast<double>(cpu.tv_sec) + 1e-9 * static_cast<double>(cpu.tv_nsec),
            std::chrono::duration<double>(wall).count()};
  }
  friend Time operator-(Time a, Time b) { return {a.cpu - b.cpu, a.wall - b.wall}; }
  friend Time operator+(Time a, Time b) { return {a.cpu + b.cpu, a.wall + b.wall}; }
  friend Time operator/(Time a, double n) { return {a.cpu / n, a.wall / n}; }
};

/// What a process that decodes took.
struct Cost {
  Time start;    ///< until the second token
  Time token;    ///< each after the first
  Time mapping;  ///< of it, to map a step and write its program
  std::uint64_t cycles = 0, commands = 0, requests = 0, mismatches = 0, peak_bytes = 0;
};

enum class Mode { kTiming, kExact, kChecked };

/// The machine with room for the network.
hw::Machine machine_of(const Options& options) {
  hw::Machine machine = hw::find_machine(options.machine);
  machine.dram.mib = 16384;
  return machine;
}

testbench::NetworkSize size_of(const Options& options) {
  testbench::SizeOptions size;
  size.decode = true;
  size.past = options.past;
  size.length = options.tokens;
  size.batch = options.batch;
  if (options.layers != 0) size.layers = options.layers;
  return testbench::network_size(options.model, size);
}

Cost decode(const Options& options, Mode mode, unsigned threads) {
  sc_core::sc_report_handler::set_actions(sc_core::SC_INFO, sc_core::SC_DO_NOTHING);
  const Time begin = Time::now();
  const hw::Machine machine = machine_of(options);
  DecoderRun run(testbench::seeded_work(size_of(options), machine, mode != Mode::kTiming), machine);
  if (threads > 1) run.map_ahead();
  Cost cost;
  Time second = begin;
  testbench::SimulationOptions simulation;
  simulation.functional = mode != Mode::kTiming;
  simulation.check = mode == Mode::kChecked;
  simulation.threads = threads;
  simulation.bounds = simulation.keep_outputs = false;
  simulation.next_step = [&](std::size_t step) -> const mapper::Mapping& {
    const Time before = Time::now();
    if (step == 1) second = before;
    const mapper::Mapping& mapping = run.step(step);
    if (step != 0) cost.mapping = cost.mapping + (Time::now() - before);
    return mapping;
  };
  const testbench::SimulationResult result = testbench::simulate(
      run.graph(), run.first(), machine, tlm_model::make_models(machine), run.inputs(), simulation);
  const double tokens = options.tokens - 1;
  cost.start = second - begin;
  cost.token = (Time::now() - second) / tokens;
  cost.mapping = cost.mapping / tokens;
  cost.cycles = result.cycles.back();
  cost.commands = result.commands / options.tokens;
  cost.requests = (hw::counter_of(result.blocks, "dram", "reads") +
                   hw::counter_of(result.blocks, "dram", "writes")) /
                  options.tokens;
  cost.mismatches = result.check.mismatches;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  cost.peak_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  return cost;
}

/// The products of one step with weights, each of whole matrices, with the kernel that the
/// simulated array calls. Weights are stored by output, as checkpoints have them.
struct Native {
  Time time;  ///< of the fastest of three
  std::uint64_t weight_bytes = 0, macs = 0;
};

Native native(const Options& options) {
  const hw::Machine machine = machine_of(options);
  // Shapes alone: a matrix of any numbers takes as long.
  testbench::DecoderWork work = testbench::seeded_work(size_of(options), machine, false);
  work.move(work.graph, options.past);
  struct Layer {
    std::uint32_t m, n, k;
    std::vector<std::int8_t> weights;
  };
  std::vector<Layer> layers;
  Native result;
  for (const model::Node& node : work.graph.nodes) {
    if (node.product() == nullptr) continue;
    const model::TensorId weight = node.product()->b.tensor;
    if (work.graph.tensors[weight].kind != model::Tensor::Kind::kConstant) continue;
    Layer layer{node.in.rows, node.out.cols, node.in.cols, {}};
    layer.weights.assign(std::size_t{layer.n} * layer.k, 1);
    result.weight_bytes += layer.weights.size();
    result.macs += layer.weights.size() * layer.m;
    layers.push_back(std::move(layer));
  }
  for (int repeat = 0; repeat < 3; ++repeat) {
    Time sum;
    for (const Layer& layer : layers) {
      const std::vector<std::int8_t> rows(std::size_t{layer.m} * layer.k, 1);
      std::vector<std::int32_t> sums(std::size_t{layer.m} * layer.n);
      hw::GemmArgs args;
      args.a = rows.data();
      args.b = layer.weights.data();
      args.b_transposed = true;
      args.c = sums.data();
      args.lda = args.ldb = args.k = layer.k;
      args.ldc = args.n = layer.n;
      args.m = layer.m;
      const Time before = Time::now();
      hw::gemm(args);
      sum = sum + (Time::now() - before);
    }
    if (repeat == 0 || sum.cpu < result.time.cpu) result.time = sum;
  }
  return result;
}

nlohmann::ordered_json figures_of(const Options& options) {
  const auto run = [&](Mode mode, unsigned threads = 1) {
    return testbench::in_child([&] { return decode(options, mode, threads); });
  };
  const Native products = testbench::in_child([&] { return native(options); });
  const Cost timing = run(Mode::kTiming), ahead = run(Mode::kTiming, options.threads);
  nlohmann::ordered_json json{{"threads", options.threads},
                              {"commands_per_token", timing.commands},
                              {"requests_per_token", timing.requests},
                              {"cycles_of_last_token", timing.cycles},
                              {"native_cpu_s_per_token", products.time.cpu},
                              {"native_wall_s_per_token", products.time.wall},
                              {"timing_only_cpu_s_per_token", timing.token.cpu},
                              {"timing_only_wall_s_per_token", timing.token.wall},
                              {"timing_only_threads_wall_s_per_token", ahead.token.wall},
                              {"mapping_cpu_s", timing.mapping.cpu},
                              {"timing_cpu_s", timing.token.cpu - timing.mapping.cpu}};
  if (options.timing_only) {
    json["first_token_cpu_s"] = timing.start.cpu;
    json["peak_memory_mib"] = static_cast<double>(timing.peak_bytes) / (1 << 20);
    return json;
  }
  const Cost exact = run(Mode::kExact), checked = run(Mode::kChecked);
  json["values_cpu_s"] = exact.token.cpu - timing.token.cpu;
  json["check_cpu_s"] = checked.token.cpu - exact.token.cpu;
  json["bit_exact_cpu_s_per_token"] = exact.token.cpu;
  json["bit_exact_wall_s_per_token"] = exact.token.wall;
  json["checked_cpu_s_per_token"] = checked.token.cpu;
  json["checked_wall_s_per_token"] = checked.token.wall;
  const Cost beside = run(Mode::kExact, options.threads);
  const Cost checked_beside = run(Mode::kChecked, options.threads);
  json["bit_exact_threads_cpu_s_per_token"] = beside.token.cpu;
  json["bit_exact_threads_wall_s_per_token"] = beside.token.wall;
  json["checked_threads_wall_s_per_token"] = checked_beside.token.wall;
  json["bit_exact_over_native_cpu"] = exact.token.cpu / products.time.cpu;
  json["bit_exact_over_native_wall"] = exact.token.wall / products.time.wall;
  json["first_token_cpu_s"] = exact.start.cpu;
  json["mismatched_bytes"] = checked.mismatches + checked_beside.mismatches;
  json["peak_memory_mib"] = static_cast<double>(exact.peak_bytes) / (1 << 20);
  json["peak_memory_over_weights"] =
      static_cast<double>(exact.peak_bytes) / static_cast<double>(products.weight_bytes);
  return json;
}

int measure(const Options& options) {
  const nlohmann::ordered_json json = figures_of(options);
  const bool equal = json.value("mismatched_bytes", 0) == 0;
  if (options.json) {
    fmt::print("{}\n", json.dump(2));
    return equal ? 0 : 1;
  }
  fmt::print("{}, {} sequences, {} tokens after {}, machine {}\n", options.model, options.batch,
             options.tokens, options.past, options.machine);
  for (const auto& [name, value] : json.items()) {
    if (value.is_number_float()) {
      fmt::print("{:<36} {:>12.4g}\n", name, value.get<double>());
    } else {
      fmt::print("{:<36} {:>12}\n", name, value.get<std::uint64_t>());
    }
  }
  return equal ? 0 : 1;
}

}  // namespace
}  // namespace systole::bench

int sc_main(int argc, char** argv) {
  systole::bench::Options options;
  CLI::App app("Host time of a token of a decoder.", "token_bench");
  app.option_defaults()->always_capture_default();
  app.add_option("--model", options.model, "a decoder known by name");
  app.add_option("--machine", options.machine, "preset or TOML file");
  app.add_option("--past", options.past, "tokens in the cache");
  app.add_option("--batch", options.batch, "sequences");
  app.add_option("--tokens", options.tokens, "steps")->check(CLI::Range(2U, 4096U));
  app.add_option("--layers", options.layers, "0: those of the model");
  app.add_option("--threads", options.threads, "of some of the runs")->check(CLI::Range(1, 64));
  app.add_flag("--timing-only", options.timing_only, "without values");
  app.add_flag("--json", options.json, "print JSON");
  CLI11_PARSE(app, argc, argv);
  try {
    return systole::bench::measure(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "token_bench: %s\n", error.what());
    return 2;
  }
}
