/// Host speed of the whole simulator: an encoder, bit-exact and timing only, over the time that the
/// same integer operators take when they run natively on this host.
#include <sys/resource.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <systemc>
#include <utility>

#include "bench/native_encoder.h"
#include "hw/description/machine_file.h"
#include "hw/kernel/gemm.h"
#include "mapper/mapping.h"
#include "model/graph/graph_builder.h"
#include "testbench/common/child_process.h"
#include "testbench/network/networks.h"
#include "testbench/run/simulation.h"

namespace systole::bench {
namespace {

using testbench::Bytes;

// The SystemC library prints a banner before it calls sc_main().
[[maybe_unused]] const int kNoBanner = ::setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);

constexpr std::uint32_t kMaxLength = 65536;

struct Options {
  std::string model = "bert-base";
  std::uint32_t length = 512;
  std::uint32_t layers = 12;
  std::string machine = "transformer";
  std::uint32_t repeats = 3;
  unsigned threads = 2;
  bool by_length = false;
  bool json = false;
};

/// Seconds. CPU time does not count what other programs take from this one.
struct Time {
  double cpu = 0.0;
  double wall = 0.0;
};

Time time_of(const std::function<void()>& work) {
  const auto cpu_seconds = [] {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  };
  const auto wall_start = std::chrono::steady_clock::now();
  const double cpu_start = cpu_seconds();
  work();
  Time time;
  time.cpu = cpu_seconds() - cpu_start;
  time.wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - wall_start).count();
  return time;
}

/// The times of repeated runs, of which the fastest is least disturbed.
class Timer {
 public:
  void run(const std::function<void()>& work) { add(time_of(work)); }
  void add(Time time) {
    best_ =
        runs_++ == 0 ? time : Time{std::min(best_.cpu, time.cpu), std::min(best_.wall, time.wall)};
  }
  [[nodiscard]] Time best() const { return best_; }

 private:
  Time best_;
  unsigned runs_ = 0;
};

/// What a simulation in its own process reports, before the bytes of the output tensor.
struct Report {
  Time time;  ///< construction and one inference
  std::uint64_t cycles = 0;
  std::uint64_t commands = 0;
  std::uint64_t kernel_events = 0;
  std::uint64_t requests = 0;
  std::uint64_t peak_bytes = 0;
};

Bytes simulate(const model::Graph& graph, const mapper::Mapping& mapping,
               const hw::Machine& machine, const Bytes& input, bool functional, unsigned threads) {
  // Standard output belongs to the figures.
  sc_core::sc_report_handler::set_actions(sc_core::SC_INFO, sc_core::SC_DO_NOTHING);
  testbench::SimulationOptions options;
  options.functional = functional;
  options.threads = threads;
  testbench::SimulationResult result;
  Report report;
  report.time = time_of([&] {
    result = testbench::simulate(graph, mapping, machine, tlm_model::make_models(machine), {input},
                                 options);
  });
  report.cycles = result.cycles.front();
  report.commands = result.commands;
  report.kernel_events = result.kernel_events;
  report.requests = hw::counter_of(result.blocks, "dram", "reads") +
                    hw::counter_of(result.blocks, "dram", "writes");
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  report.peak_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;

  const Bytes& output = result.outputs.front();
  Bytes bytes(sizeof report + (functional ? output.size() : 0));
  std::memcpy(bytes.data(), &report, sizeof report);
  if (functional) std::memcpy(&bytes[sizeof report], output.data(), output.size());
  return bytes;
}

/// Everything measured about one network on one machine.
class Comparison {
 public:
  explicit Comparison(const Options& options)
      : options_(options), machine_(hw::find_machine(options.machine)) {
    // Long texts: the late division needs the sum of each row of scores.
    machine_.postop.row_statistics = std::max(machine_.postop.row_statistics, options.length);
    testbench::SizeOptions size;
    size.length = options.length;
    size.layers = options.layers;
    testbench::Network network = testbench::seeded_network(
        testbench::network_size(options.model, size, kMaxLength), machine_);
    input_ = testbench::seeded_inputs(network, 1).front();
    graph_ = std::move(network.graph);
  }

  void run() {
    mapper::Mapping mapping;
    mapping_.run([&] { mapping = mapper::map_graph(graph_, machine_); });
    NativeEncoder native(graph_, mapping.groups);
    expected_ = native.run(input_);
    // In turns, so that a busy host slows all of them.
    for (std::uint32_t i = 0; i < options_.repeats; ++i) {
      native_.run([&] { native.run(input_); });
      report_ = run_child(mapping, true, 1, exact_);
      static_cast<void>(run_child(mapping, true, options_.threads, beside_));
      static_cast<void>(run_child(mapping, false, 1, timing_));
    }
  }

  /// What a command and a request cost without values.
  [[nodiscard]] nlohmann::ordered_json cost_of_timing() {
    const mapper::Mapping mapping = mapper::map_graph(graph_, machine_);
    for (std::uint32_t i = 0; i < options_.repeats; ++i) {
      report_ = run_child(mapping, false, 1, timing_);
    }
    const double us = timing_.best().cpu * 1e6;
    return {{"length", options_.length},
            {"commands", report_.commands},
            {"requests", report_.requests},
            {"timing_only_cpu_s", timing_.best().cpu},
            {"us_per_command", us / static_cast<double>(report_.commands)},
            {"us_per_request", us / static_cast<double>(report_.requests)}};
  }

  [[nodiscard]] bool equal() const { return differing_bytes_ == 0; }

  [[nodiscard]] nlohmann::ordered_json figures() const {
    const auto cycles = static_cast<double>(report_.cycles);
    const auto requests = static_cast<double>(report_.requests);
    const auto commands = static_cast<double>(report_.commands);
    return {
        {"gemm_backend", hw::gemm_backend_name(hw::default_gemm_backend())},
        {"macs", model::count_macs(graph_)},
        {"native_cpu_s", native_.best().cpu},
        {"native_wall_s", native_.best().wall},
        {"bit_exact_cpu_s", exact_.best().cpu},
        {"bit_exact_wall_s", exact_.best().wall},
        {"threads", options_.threads},
        {"bit_exact_threads_cpu_s", beside_.best().cpu},
        {"bit_exact_threads_wall_s", beside_.best().wall},
        {"timing_only_cpu_s", timing_.best().cpu},
        {"timing_only_wall_s", timing_.best().wall},
        {"mapping_cpu_s", mapping_.best().cpu},
        {"bit_exact_over_native_cpu", exact_.best().cpu / native_.best().cpu},
        {"bit_exact_over_native_wall", exact_.best().wall / native_.best().wall},
        {"bit_exact_threads_over_native_wall", beside_.best().wall / native_.best().wall},
        {"timing_only_over_native_cpu", timing_.best().cpu / native_.best().cpu},
        {"output_bytes", expected_.size()},
        {"differing_bytes", differing_bytes_},
        {"cycles", report_.cycles},
        {"commands", report_.commands},
        {"requests", report_.requests},
        {"simulated_cycles_per_cpu_s", cycles / exact_.best().cpu},
        {"simulated_cycles_per_cpu_s_timing_only", cycles / timing_.best().cpu},
        {"requests_per_cpu_s", requests / exact_.best().cpu},
        {"requests_per_cpu_s_timing_only", requests / timing_.best().cpu},
        {"delta_cycles_per_command", static_cast<double>(report_.kernel_events) / commands},
        {"peak_memory_mib", static_cast<double>(report_.peak_bytes) / (1 << 20)},
    };
  }

 private:
  Report run_child(const mapper::Mapping& mapping, bool functional, unsigned threads,
                   Timer& timer) {
    const Bytes bytes = testbench::run_in_child(
        [&] { return simulate(graph_, mapping, machine_, input_, functional, threads); });
    Report report;
    std::memcpy(&report, bytes.data(), sizeof report);
    timer.add(report.time);
    if (functional) {
      differing_bytes_ += bytes.size() - sizeof report != expected_.size();
      for (std::size_t i = 0; i < expected_.size() && i + sizeof report < bytes.size(); ++i) {
        differing_bytes_ += bytes[sizeof report + i] != expected_[i];
      }
    }
    return report;
  }

  const Options& options_;
  hw::Machine machine_;
  model::Graph graph_;
  Bytes input_;
  Bytes expected_;
  Timer mapping_, native_, exact_, beside_, timing_;
  Report report_;
  std::uint64_t differing_bytes_ = 0;
};

void print(const Options& options, const nlohmann::ordered_json& figures) {
  std::printf("%s, length %u, %u layers, machine %s\n", options.model.c_str(), options.length,
              options.layers, options.machine.c_str());
  for (const auto& [name, value] : figures.items()) {
    if (value.is_number_float()) {
      const auto number = value.get<double>();
      std::printf("%-40s %16.*f\n", name.c_str(), number < 1000.0 ? 3 : 0, number);
    } else {
      std::printf("%-40s %16s\n", name.c_str(),
                  value.is_string() ? value.get<std::string>().c_str() : value.dump().c_str());
    }
  }
}

/// The cost of a command over the length of the text.
void print_by_length(Options options) {
  nlohmann::ordered_json all;
  for (const std::uint32_t length : {128U, 256U, 512U, 1024U, 2048U}) {
    options.length = length;
    all.push_back(Comparison(options).cost_of_timing());
  }
  if (options.json) {
    std::printf("%s\n", all.dump(2).c_str());
    return;
  }
  std::printf("%8s %12s %12s %18s %16s %16s\n", "length", "commands", "requests",
              "timing_only_cpu_s", "us_per_command", "us_per_request");
  for (const auto& row : all) {
    std::printf("%8u %12u %12u %18.3f %16.2f %16.4f\n", row["length"].get<unsigned>(),
                row["commands"].get<unsigned>(), row["requests"].get<unsigned>(),
                row["timing_only_cpu_s"].get<double>(), row["us_per_command"].get<double>(),
                row["us_per_request"].get<double>());
  }
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Speed of the simulator on an encoder with seeded weights.", "encoder_bench");
  app.option_defaults()->always_capture_default();
  app.add_option("--model", options.model, "an encoder known by name");
  app.add_option("--length", options.length, "tokens")->check(CLI::Range(1U, kMaxLength));
  app.add_option("--layers", options.layers, "encoder blocks")->check(CLI::Range(1, 65536));
  app.add_option("--machine", options.machine, "preset or TOML file");
  app.add_option("--repeats", options.repeats, "runs of which the fastest counts")
      ->check(CLI::Range(1, 65536));
  app.add_option("--threads", options.threads, "of one of the bit-exact runs")
      ->check(CLI::Range(1, 64));
  app.add_flag("--by-length", options.by_length,
               "only the cost of a command without values, for lengths of 128 to 2048");
  app.add_flag("--json", options.json, "print a JSON document");
  try {
    app.parse(argc, argv);
    if (options.by_length) {
      print_by_length(options);
      return 0;
    }
    Comparison comparison(options);
    comparison.run();
    if (options.json) {
      std::printf("%s\n", comparison.figures().dump(2).c_str());
    } else {
      print(options, comparison.figures());
    }
    return comparison.equal() ? 0 : 1;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "encoder_bench: %s\n", error.what());
    return 2;
  }
}

}  // namespace
}  // namespace systole::bench

int sc_main(int argc, char* argv[]) { return systole::bench::run(argc, argv); }
