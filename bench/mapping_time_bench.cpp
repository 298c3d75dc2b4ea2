/// How long the mapper takes, and a fingerprint of every program: an older build prints the same
/// ones if the mapper still decides the same.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <systemc>
#include <vector>

#include "base/error.h"
#include "bench/cpu_time.h"
#include "bench/mapping_grid.h"
#include "mapper/mapping.h"
#include "mapper/step_mapper.h"
#include "testbench/network/run_subject.h"

namespace systole::bench {
namespace {

using nlohmann::ordered_json;

// The SystemC library prints a banner before it calls sc_main().
[[maybe_unused]] const int kNoBanner = ::setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);

struct Options {
  std::uint32_t runs = 3, every = 0, layers = 0;
  std::string network;
  bool json = false;
};

struct NamedMachine {
  std::string name;
  hw::Machine machine;
};

/// `transformer`, and the same with larger arrays and memories to match; or machines of the grid.
std::vector<NamedMachine> machines(std::uint32_t every) {
  std::vector<NamedMachine> all;
  if (every == 0) {
    for (const std::uint32_t side : {16U, 32U, 128U}) {
      hw::Machine machine = hw::find_machine("transformer");
      const std::uint32_t times = side / machine.array.rows;
      machine.array.rows = machine.array.cols = side;
      machine.scratchpad.kib *= times;
      machine.accumulator.kib *= times;
      all.push_back({times == 1 ? "transformer" : std::to_string(side) + "x" + std::to_string(side),
                     machine});
    }
    return all;
  }
  const std::vector<GridMachine> grid = make_grid(24, 1);
  for (std::size_t i = 0; i < grid.size(); i += every) {
    all.push_back({name_of(grid[i].machine), grid[i].machine});
  }
  return all;
}

/// Of the program and of all constants.
std::uint64_t fingerprint(const mapper::Mapping& mapping) {
  std::uint64_t sum = mapping.dram_bytes;
  for (const auto& piece : mapping.image) {
    const std::string_view bytes(reinterpret_cast<const char*>(piece.bytes.data()),
                                 piece.bytes.size());
    sum = 31 * (31 * sum + piece.address) + std::hash<std::string_view>()(bytes);
  }
  return sum;
}

/// CPU seconds, the least of several runs; {"unfit": why} for a machine that cannot run it.
ordered_json map_one(const Network& network, hw::Machine machine, const Options& options) {
  testbench::RunRequest request;
  request.model = network.model;
  request.limit = network.past == 0 ? 1 : 0;  // of a decoder the length says it
  request.functional = false;
  if (network.model != "vit65" && options.layers != 0) request.size.layers = options.layers;
  if (network.length != 0) request.size.length = network.length;
  request.size.decode = network.past != 0;
  if (network.past != 0) request.size.past = network.past;
  try {
    const testbench::RunSubject subject(request, machine);
    double seconds = 0;
    mapper::Mapping mapping;
    for (std::uint32_t run = 0; run < options.runs; ++run) {
      const double before = cpu_seconds();
      if (network.past != 0) {
        mapping = mapper::StepMapper(subject.graph(), machine).map(subject.graph(), true);
      } else {
        mapping = mapper::map_graph(subject.graph(), machine);
      }
      const double spent = cpu_seconds() - before;
      seconds = run == 0 ? spent : std::min(seconds, spent);
    }
    char program[17];
    std::snprintf(program, sizeof program, "%016llx",
                  static_cast<unsigned long long>(fingerprint(mapping)));
    return {{"seconds", seconds},
            {"commands", mapping.program.commands.size()},
            {"expected_cycles", mapping.expected_cycles},
            {"program", program}};
  } catch (const hw::InputError& error) {
    return {{"unfit", error.what()}};
  }
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("CPU time of the mapper, and a fingerprint of its programs.", "mapping_time_bench");
  app.option_defaults()->always_capture_default();
  app.add_option("--runs", options.runs, "of each mapping; the fastest counts")
      ->check(CLI::Range(1, 1000));
  app.add_option("--every", options.every,
                 "every n-th machine of mapping_bench's grid, 0: transformer and two larger ones")
      ->check(CLI::Range(0, 1000));
  app.add_option("--layers", options.layers, "blocks of each network, 0: all");
  app.add_option("--network", options.network, "one of them only");
  app.add_flag("--json", options.json, "print a JSON document");
  try {
    app.parse(argc, argv);
    sc_core::sc_report_handler::set_actions(sc_core::SC_INFO, sc_core::SC_DO_NOTHING);
    ordered_json rows = ordered_json::array();
    double worst = 0, sum = 0;
    if (!options.json) {
      std::printf("%-16s %9s %10s %14s  %-16s  %s\n", "network", "CPU s", "commands", "cycles",
                  "program", "machine");
    }
    for (const NamedMachine& machine : machines(options.every)) {
      for (const Network& network : kNetworks) {
        if (!options.network.empty() && options.network != network.label) continue;
        ordered_json row = map_one(network, machine.machine, options);
        row["network"] = network.label;
        row["machine"] = machine.name;
        if (!row.contains("unfit")) {
          worst = std::max(worst, row["seconds"].get<double>());
          sum += row["seconds"].get<double>();
        }
        if (!options.json && row.contains("unfit")) {
          std::printf("%-16s %s\n", network.label.c_str(), row["unfit"].get<std::string>().c_str());
        } else if (!options.json) {
          std::printf("%-16s %9.3f %10zu %14llu  %-16s  %s\n", network.label.c_str(),
                      row["seconds"].get<double>(), row["commands"].get<std::size_t>(),
                      row["expected_cycles"].get<unsigned long long>(),
                      row["program"].get<std::string>().c_str(), machine.name.c_str());
        }
        rows.push_back(std::move(row));
      }
    }
    if (options.json) {
      std::printf("%s\n", ordered_json{{"mappings", rows}, {"worst", worst}}.dump(2).c_str());
    } else {
      std::printf("%zu mappings, %.2f s of CPU in all, the slowest %.3f s\n", rows.size(), sum,
                  worst);
    }
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mapping_time_bench: %s\n", error.what());
    return 2;
  }
}

}  // namespace
}  // namespace systole::bench

int sc_main(int argc, char* argv[]) { return systole::bench::run(argc, argv); }
