/// How good the mapper's choices are: cycles over the lower bound, expected against simulated, and
/// whether more hardware is ever slower, over a grid of machines off the presets.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <systemc>
#include <vector>

#include "base/atomic_file.h"
#include "base/error.h"
#include "bench/doublings.h"
#include "bench/mapping_grid.h"
#include "bench/mapping_run.h"
#include "bench/spread.h"
#include "testbench/common/progress.h"
#include "testbench/common/side_by_side.h"
#include "testbench/report/plot.h"

namespace systole::bench {
namespace {

using nlohmann::ordered_json;

// The SystemC library prints a banner before it calls sc_main().
[[maybe_unused]] const int kNoBanner = ::setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);

struct Options {
  std::uint32_t bases = 24, layers = 2, every = 1;
  std::uint64_t seed = 1;
  std::string network, csv, plots;
  bool pairs = false, json = false;
};

/// The first of every `n` machines, or with `pairs` of every `n` bases, with what is doubled of it.
std::vector<GridMachine> every(const std::vector<GridMachine>& grid, std::size_t n, bool pairs) {
  std::vector<GridMachine> some;
  for (std::size_t i = 0; i < grid.size(); ++i) {
    if ((pairs ? grid[i].base : i) % n == 0) some.push_back(grid[i]);
  }
  return some;
}

class MappingBench {
 public:
  explicit MappingBench(const Options& options)
      : options_(options),
        grid_(every(make_grid(options.bases, options.seed), options.every, options.pairs)) {
    for (const Network& network : kNetworks) {
      if (options.network.empty() || network.label == options.network) networks_.push_back(network);
    }
    if (networks_.empty()) throw hw::InputError("--network: found '" + options.network + "'");
    const testbench::PlotWriter check(options.plots);
  }

  void run() {
    results_.assign(networks_.size(), std::vector<ordered_json>(grid_.size()));
    const testbench::BatchProgress progress;
    testbench::ExperimentBatch batch;
    for (std::size_t n = 0; n < networks_.size(); ++n) {
      for (std::size_t i = 0; i < grid_.size(); ++i) {
        batch.add(results_[n][i], [this, n, i] {
          return run_mapping(networks_[n], grid_[i].machine, options_.layers);
        });
      }
    }
    batch.run();
  }

  [[nodiscard]] ordered_json figures() const {
    ordered_json document{{"machines", grid_.size()}, {"layers", options_.layers}};
    Spread all, all_held;
    ordered_json not_held = ordered_json::object();  // networks by machine
    double slowest = 0;
    std::size_t unfit = 0;
    for (std::size_t n = 0; n < networks_.size(); ++n) {
      Spread over, held, cycles, bytes;
      for (std::size_t i = 0; i < grid_.size(); ++i) {
        const ordered_json& result = results_[n][i];
        if (result.contains("unfit")) {
          ++unfit;
          continue;
        }
        const std::string place = name_of(grid_[i].machine);
        const double ratio = number(result, "cycles") / number(result, "bound");
        over.add(ratio, place);
        all.add(ratio, networks_[n].label + " on " + place);
        if (result.at("double_buffers").get<bool>()) {
          held.add(ratio, place);
          all_held.add(ratio, networks_[n].label + " on " + place);
        } else if (grid_[i].doubled == nullptr) {
          not_held[place].push_back(networks_[n].label);
        }
        cycles.add(off(number(result, "expected_cycles"), number(result, "cycles")), place);
        bytes.add(off(number(result, "expected_loads"), number(result, "loads")), place);
        slowest = std::max(slowest, number(result, "mapping_seconds"));
      }
      document["networks"].push_back({{"network", networks_[n].label},
                                      {"over_bound", over.mean()},
                                      {"over_bound_worst", over.worst},
                                      {"worst_machine", over.worst_place},
                                      {"held", held.count},
                                      {"over_bound_held", held.mean()},
                                      {"over_bound_held_worst", held.worst},
                                      {"expected_cycles_off", cycles.mean() - 1},
                                      {"expected_cycles_off_worst", cycles.worst - 1},
                                      {"expected_bytes_off", bytes.mean() - 1},
                                      {"expected_bytes_off_worst", bytes.worst - 1}});
    }
    document["over_bound"] = all.mean();
    document["over_bound_worst"] = all.worst;
    document["worst"] = all.worst_place;
    document["held"] = all_held.count;
    document["over_bound_held"] = all_held.mean();
    document["over_bound_held_worst"] = all_held.worst;
    document["worst_held"] = all_held.worst_place;
    document["not_held"] = not_held;
    document["unfit"] = unfit;
    document["mapping_seconds_worst"] = slowest;
    document["doublings"] = doublings().figures();
    return document;
  }

  void write_files() const {
    if (!options_.csv.empty()) {
      hw::write_file_atomically(options_.csv, csv());
    }
    testbench::PlotWriter(options_.plots).write({plot()});
  }

 private:
  static double number(const ordered_json& result, const char* name) {
    return result.at(name).get<double>();
  }
  /// 1 for equal figures, else their quotient above 1.
  static double off(double expected, double found) {
    if (expected == found) return 1;
    return std::max(expected, found) / std::max(1.0, std::min(expected, found));
  }

  /// The machine that this one has a resource doubled of, if both can run the network; else null.
  [[nodiscard]] const ordered_json* base_of(std::size_t network, std::size_t machine) const {
    if (grid_[machine].doubled == nullptr) return nullptr;
    std::size_t base = machine;
    while (base != 0 && grid_[base].doubled != nullptr) --base;
    const std::vector<ordered_json>& results = results_[network];
    const bool both = !results[base].contains("unfit") && !results[machine].contains("unfit");
    return grid_[base].base == grid_[machine].base && both ? &results[base] : nullptr;
  }

  [[nodiscard]] Doublings doublings() const {
    Doublings doublings;
    for (std::size_t n = 0; n < networks_.size(); ++n) {
      for (std::size_t i = 0; i < grid_.size(); ++i) {
        const ordered_json* const base = base_of(n, i);
        if (base == nullptr) continue;
        const auto cost = [&](const char* cycles) {
          return number(results_[n][i], cycles) / number(*base, cycles) - 1;
        };
        doublings.add(grid_[i].doubled->name,
                      networks_[n].label + " on " + name_of(grid_[i].machine), cost("cycles"),
                      cost("expected_cycles"));
      }
    }
    return doublings;
  }

  [[nodiscard]] std::string csv() const {
    std::string text =
        "network,base,doubled,rows,cols,scratchpad_kib,scratchpad_banks,scratchpad_ports,"
        "accumulator_kib,accumulator_banks,channels,bus_bytes,outstanding_reads,lanes,cycles,bound,"
        "expected_cycles,loads,expected_loads,mapping_seconds,simulation_seconds,by_chunk,"
        "by_chunk_seconds,by_request,by_request_seconds,bound_by,double_buffers,over_base\n";
    for (std::size_t n = 0; n < networks_.size(); ++n) {
      for (std::size_t i = 0; i < grid_.size(); ++i) {
        const ordered_json& result = results_[n][i];
        const hw::Machine& m = grid_[i].machine;
        text += networks_[n].label + "," + std::to_string(grid_[i].base) + "," +
                (grid_[i].doubled == nullptr ? "" : grid_[i].doubled->name);
        for (const std::uint32_t key :
             {m.array.rows, m.array.cols, m.scratchpad.kib, m.scratchpad.banks, m.scratchpad.ports,
              m.accumulator.kib, m.accumulator.banks, m.dram.channels, m.bus.width_bytes,
              m.dma.outstanding_reads, m.postop.lanes}) {
          text += "," + std::to_string(key);
        }
        for (const char* name : {"cycles", "bound", "expected_cycles", "loads", "expected_loads",
                                 "mapping_seconds", "simulation_seconds", "by_chunk",
                                 "by_chunk_seconds", "by_request", "by_request_seconds"}) {
          text += "," + (result.contains("unfit") ? "" : result.at(name).dump());
        }
        text += "," + result.value("bound_by", "");
        text += "," + (result.contains("unfit") ? "" : result.at("double_buffers").dump());
        const ordered_json* const base = base_of(n, i);
        text += ",";
        if (base != nullptr) {
          text += ordered_json(number(result, "cycles") / number(*base, "cycles")).dump();
        }
        text += "\n";
      }
    }
    return text;
  }

  /// Cycles over bound by number of PEs, a point per machine and network.
  [[nodiscard]] testbench::Plot plot() const {
    std::string data, plots;
    for (std::size_t n = 0; n < networks_.size(); ++n) {
      data += "$n" + std::to_string(n) + " << EOD\n";
      for (std::size_t i = 0; i < grid_.size(); ++i) {
        const ordered_json& result = results_[n][i];
        if (result.contains("unfit")) continue;
        const hw::Machine& m = grid_[i].machine;
        data += std::to_string(m.array.rows * m.array.cols) + " " +
                std::to_string(number(result, "cycles") / number(result, "bound")) + "\n";
      }
      data += "EOD\n";
      // Side by side, so that the networks do not cover each other.
      plots += (n == 0 ? "" : ", ") + ("$n" + std::to_string(n)) + " using ($1*" +
               std::to_string(1 + 0.08 * static_cast<double>(n)) +
               "):2 with points pt 7 ps 0.7 title " + testbench::gnuplot_quoted(networks_[n].label);
    }
    testbench::Plot plot;
    plot.file = "mapping.png";
    plot.script = data +
                  "set logscale x 2\nset grid lc rgb '#dddddd'\nset border 3\nset tics nomirror\n"
                  "set key outside\nset yrange [0.9:*]\nset xlabel 'PEs of the array'\n"
                  "set ylabel 'cycles over the lower bound'\nplot " +
                  plots + "\n";
    return plot;
  }

  const Options& options_;
  const std::vector<GridMachine> grid_;
  std::vector<Network> networks_;
  std::vector<std::vector<ordered_json>> results_;  ///< by network and machine
};

/// Over bound without the machines that do not hold double buffers, and which these are.
void print_held(const ordered_json& document) {
  std::printf("\nof machines that hold the smallest tiles of the network twice\n\n");
  std::printf("%-16s %10s %10s %8s\n", "network", "machines", "over bound", "worst");
  for (const ordered_json& row : document["networks"]) {
    std::printf("%-16s %10u %10.3f %8.2f\n", row["network"].get<std::string>().c_str(),
                row["held"].get<unsigned>(), row["over_bound_held"].get<double>(),
                row["over_bound_held_worst"].get<double>());
  }
  std::printf("%-16s %10u %10.3f %8.2f   %s\n", "all", document["held"].get<unsigned>(),
              document["over_bound_held"].get<double>(),
              document["over_bound_held_worst"].get<double>(),
              document["worst_held"].get<std::string>().c_str());
  std::printf("\nmachines, none doubled, that do not:\n");
  for (const auto& [machine, networks] : document["not_held"].items()) {
    std::printf("%s\n ", machine.c_str());
    for (const ordered_json& network : networks) {
      std::printf(" %s", network.get<std::string>().c_str());
    }
    std::printf("\n");
  }
}

void print(const ordered_json& document, bool pairs) {
  std::printf("%u machines, %u do not fit; %u layers of each network but vit65\n\n",
              document["machines"].get<unsigned>(), document["unfit"].get<unsigned>(),
              document["layers"].get<unsigned>());
  std::printf("%-16s %10s %8s %14s %8s %14s %8s\n", "network", "over bound", "worst",
              "cycles off %", "worst", "bytes off %", "worst");
  for (const ordered_json& row : document["networks"]) {
    std::printf("%-16s %10.3f %8.2f %14.1f %8.1f %14.2f %8.1f\n",
                row["network"].get<std::string>().c_str(), row["over_bound"].get<double>(),
                row["over_bound_worst"].get<double>(),
                100 * row["expected_cycles_off"].get<double>(),
                100 * row["expected_cycles_off_worst"].get<double>(),
                100 * row["expected_bytes_off"].get<double>(),
                100 * row["expected_bytes_off_worst"].get<double>());
  }
  std::printf("%-16s %10.3f %8.2f   %s\n", "all", document["over_bound"].get<double>(),
              document["over_bound_worst"].get<double>(),
              document["worst"].get<std::string>().c_str());
  print_held(document);
  std::printf("\nmapping takes at most %.2f s\n\n",
              document["mapping_seconds_worst"].get<double>());
  Doublings::print(document["doublings"], pairs);
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("The mapper's choices over a grid of machines.", "mapping_bench");
  app.option_defaults()->always_capture_default();
  app.add_option("--bases", options.bases, "machines, each with every resource doubled in turn")
      ->check(CLI::Range(1, 1000));
  app.add_option("--every", options.every, "only every n-th of these machines")
      ->check(CLI::Range(1, 1000));
  app.add_flag("--pairs", options.pairs,
               "--every counts machines together with what is doubled of them; list slower ones");
  app.add_option("--layers", options.layers, "blocks of each network, 0: all");
  app.add_option("--seed", options.seed, "of the machines");
  app.add_option("--network", options.network, "one of them only");
  app.add_option("--csv", options.csv, "a row per machine and network");
  app.add_option("--plots", options.plots, "draw cycles over bound there");
  app.add_flag("--json", options.json, "print a JSON document");
  try {
    app.parse(argc, argv);
    sc_core::sc_report_handler::set_actions(sc_core::SC_INFO, sc_core::SC_DO_NOTHING);
    MappingBench bench(options);
    bench.run();
    bench.write_files();
    const ordered_json figures = bench.figures();
    if (options.json) {
      std::printf("%s\n", figures.dump(2).c_str());
    } else {
      print(figures, options.pairs);
    }
    return 0;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "mapping_bench: %s\n", error.what());
    return 2;
  }
}

}  // namespace
}  // namespace systole::bench

int sc_main(int argc, char* argv[]) { return systole::bench::run(argc, argv); }
