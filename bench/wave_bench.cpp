// Host time and bytes of a waveform: what --wave costs a run of one inference, and the simulation
// alone, in both formats.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>
#include <systemc>
#include <utility>
#include <vector>

#include "bench/cpu_time.h"
#include "hw/description/machine_file.h"
#include "mapper/mapping.h"
#include "testbench/common/child_process.h"
#include "testbench/network/networks.h"
#include "testbench/run/simulation.h"
#include "tlm/core/core.h"

namespace systole {
namespace {

// The SystemC library prints a banner before it calls sc_main().
[[maybe_unused]] const int kNoBanner = ::setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);

/// CPU seconds of a run without values, and in it of its simulation; bytes of its waveform.
struct Times {
  double whole = std::numeric_limits<double>::infinity();
  double simulation = std::numeric_limits<double>::infinity();
  std::uintmax_t bytes = 0;
  void keep_shorter(const Times& other) {
    whole = std::min(whole, other.whole);
    simulation = std::min(simulation, other.simulation);
    bytes = other.bytes;
  }
};

Times run(const std::string& machine_name, const std::string& network_name,
          const std::string& wave) {
  return testbench::in_child([&] {
    sc_core::sc_report_handler::set_actions(sc_core::SC_INFO, sc_core::SC_DO_NOTHING);
    const double begin = bench::cpu_seconds();
    const hw::Machine machine = hw::find_machine(machine_name);
    const testbench::Network network = testbench::load_network(network_name, machine);
    const mapper::Mapping mapping = mapper::map_graph(network.graph, machine);
    testbench::SimulationOptions options;
    options.functional = false;
    options.bounds = false;
    options.wave.path = wave;
    const double mapped = bench::cpu_seconds();
    static_cast<void>(testbench::simulate(network.graph, mapping, machine,
                                          tlm_model::make_models(machine), {{}}, options));
    const double end = bench::cpu_seconds();
    return Times{end - begin, end - mapped, wave.empty() ? 0 : std::filesystem::file_size(wave)};
  });
}

}  // namespace
}  // namespace systole

int sc_main(int argc, char* argv[]) {
  using namespace systole;
  const std::string stem = argc > 1 ? argv[1] : "/tmp/bench";
  constexpr int kRepeats = 5;
  constexpr double kMega = 1e6;
  struct Case {
    const char *machine, *network;
  };
  constexpr Case kCases[] = {{"transformer", "vit65"},
                             {"tiny", "vit17"},
                             {"gemmini", "vit65"},
                             {"vitcod", "vit65"},
                             {"transformer", "bert-base"}};
  fmt::print("{:<12} {:<10} {:>7} {:>5}  {:>7} {:>6} {:>8} {:>7}\n", "machine", "network", "run s",
             "wave", "wave s", "ratio", "of sim.", "MB");
  for (const Case& c : kCases) {
    Times plain, fst, vcd;
    for (int i = 0; i < kRepeats; ++i) {
      plain.keep_shorter(run(c.machine, c.network, ""));
      fst.keep_shorter(run(c.machine, c.network, stem + ".fst"));
      vcd.keep_shorter(run(c.machine, c.network, stem + ".vcd"));
    }
    for (const auto& [name, wave] : {std::pair{".fst", fst}, {".vcd", vcd}}) {
      fmt::print("{:<12} {:<10} {:>7.3f} {:>5}  {:>7.3f} {:>6.2f} {:>8.2f} {:>7.2f}\n", c.machine,
                 c.network, plain.whole, name, wave.whole, wave.whole / plain.whole,
                 wave.simulation / plain.simulation, static_cast<double>(wave.bytes) / kMega);
    }
  }
  return 0;
}
