#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>

#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// Streams of operands that a unit takes in the middle of its pipeline: none.
struct NoOperands {
  /// Puts the next beat on the ports of each stream, unless `withhold()` says no.
  template <typename Withhold>
  void offer(Withhold) {}
  /// Whether a stream with beats left offers none in this cycle.
  [[nodiscard]] static bool late() { return false; }
  /// Behind settle(): the beats that the unit takes are gone.
  void take() {}
};

/// Drives one operation through a unit's ready/valid streams: `drive(i)` puts input beat i on the
/// ports, `collect(i)` reads output beat i. Throws if the unit stops moving.
///
/// A cycle is stalled if an output was refused, or if the unit was ready for a beat that was
/// withheld; never both at once, because a unit that waits for its output is not ready. Nor is one
/// that waits for an operand.
template <typename Dut, typename Drive, typename Collect, typename Operands = NoOperands>
RtlCycles run_stream(Dut& dut, std::size_t inputs, std::size_t outputs, Drive drive,
                     Collect collect, const BackPressure& pressure = {}, Operands operands = {}) {
  constexpr std::uint64_t kHang = 100'000;  // no unit takes longer for one row of 65536 elements
  std::mt19937_64 random(pressure.seed);
  const auto withhold = [&random](unsigned per_mille) {
    return per_mille != 0 && random() % 1000 < per_mille;
  };
  RtlCycles result;
  std::size_t in = 0;
  std::size_t out = 0;
  bool offered = false;  // a beat once valid stays so until it is taken
  std::uint64_t idle = 0;
  while (out < outputs) {
    // The operation begins with its first beat, so that one is never withheld.
    if (!offered && in < inputs && (result.cycles == 0 || !withhold(pressure.input_per_mille))) {
      drive(in);
      offered = true;
    }
    operands.offer([&] { return withhold(pressure.input_per_mille); });
    dut->valid_i = offered;
    dut->ready_i = !withhold(pressure.output_per_mille);
    dut.settle();
    const bool refused = dut->valid_o && !dut->ready_i;
    const bool withheld = dut->ready_o ? !offered && in < inputs : !refused && operands.late();
    result.stalled += refused || withheld ? 1 : 0;
    ++result.cycles;
    if (dut.view() != nullptr) dut.view()->set_cycle(result.cycles);
    bool moved = refused || withheld;
    if (offered && dut->ready_o) {
      ++in;
      offered = false;
      moved = true;
    }
    if (dut->valid_o && dut->ready_i) {
      collect(out++);
      moved = true;
    }
    operands.take();
    dut.tick();
    idle = moved ? 0 : idle + 1;
    if (idle > kHang) {
      throw std::runtime_error("RTL unit hangs: " + std::to_string(in) + " of " +
                               std::to_string(inputs) + " beats in, " + std::to_string(out) +
                               " of " + std::to_string(outputs) + " out");
    }
  }
  dut->valid_i = 0;
  return result;
}

}  // namespace systole::testbench
