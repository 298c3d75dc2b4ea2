// Host time of writing transactions in the format FTR: what the file costs a run that asks for it.
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <systemc>

#include "base/atomic_file.h"
#include "bench/cpu_time.h"
#include "testbench/wave/ftr_file.h"

using systole::testbench::FtrFile;

int sc_main(int argc, char* argv[]) {
  constexpr std::uint64_t kTransactions = 1'000'000;
  const std::string path = argc > 1 ? argv[1] : "/dev/null";
  const double begin = systole::bench::cpu_seconds();
  systole::hw::AtomicFile out(path);
  FtrFile file(out.stream());
  const FtrFile::Generator read = file.add_generator("read", file.add_stream("bus", "requests"));
  const FtrFile::Text address = file.text("address"), bytes = file.text("bytes"),
                      initiator = file.text("initiator"), name = file.text("core.load.dma"),
                      next = file.text("next");
  FtrFile::Transaction last{};
  for (std::uint64_t i = 0; i < kTransactions; ++i) {
    const FtrFile::Transaction added =
        file.add(read, 1000 * i, 1000 * i + 90'000,
                 {{address, false, 64 * i}, {bytes, false, 64}, {initiator, true, name}});
    if (i != 0) file.relate(next, last, added);
    last = added;
  }
  file.close();
  out.commit();
  fmt::print("{} transactions and as many relations: {:.3f} CPU s\n", kTransactions,
             systole::bench::cpu_seconds() - begin);
  return 0;
}
