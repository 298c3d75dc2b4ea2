// Host time of a bus trace: what writing a million transactions costs a run, and what reading and
// playing them takes.
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>
#include <systemc>
#include <vector>

#include "bench/cpu_time.h"
#include "hw/description/machine_file.h"
#include "testbench/trace/bus_trace.h"
#include "testbench/trace/trace_play.h"

namespace systole {
namespace {

using testbench::BusTraceWriter;

// The SystemC library prints a banner before it calls sc_main().
[[maybe_unused]] const int kNoBanner = ::setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);

constexpr std::uint64_t kTransactions = 1'000'000;

void report(const char* what, const std::function<void()>& work) {
  const double begin = bench::cpu_seconds();
  work();
  fmt::print("{:<28}{:.3f} CPU s\n", what, bench::cpu_seconds() - begin);
}

/// A stream through memory, a request in every fourth cycle.
void write(const std::string& path, const hw::Machine& machine) {
  BusTraceWriter writer(path, machine);
  std::vector<tlm_model::BusObserver> observers;
  writer.observe(observers);
  const std::string name = "system.core.load.dma.socket";
  for (std::uint64_t i = 0; i < kTransactions; ++i) {
    observers.front()({64 * i % (std::uint64_t{machine.dram.mib} << 20), 4 * i, 4 * i, 4 * i + 55,
                       64, 0, i % 4 == 3},
                      name);
  }
  writer.commit();
}

}  // namespace
}  // namespace systole

int sc_main(int argc, char* argv[]) {
  using namespace systole;
  const std::string folder = argc > 1 ? argv[1] : "/tmp";
  const hw::Machine machine = hw::find_machine("transformer");
  const std::string plain = folder + "/bench.csv", compressed = plain + ".gz";
  fmt::print("{} transactions\n", kTransactions);
  report("write .csv", [&] { write(plain, machine); });
  report("write .csv.gz", [&] { write(compressed, machine); });
  testbench::BusTrace trace;
  report("read .csv", [&] { trace = testbench::read_bus_trace(plain, machine); });
  report("read .csv.gz", [&] { trace = testbench::read_bus_trace(compressed, machine); });
  report("play", [&] { static_cast<void>(testbench::play_trace(trace, machine, {})); });
  return 0;
}
