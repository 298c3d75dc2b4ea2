#pragma once

#include <cstddef>

#include "testbench/rtl/drive/back_pressure.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// Streams of operands that a unit takes in the middle of its pipeline: none.
struct NoOperands {
  /// Puts the next beat on the ports of each stream, unless it is withheld.
  void offer(BackPressureInjector&) {}
  /// Whether a stream with beats left offers none in this cycle.
  [[nodiscard]] static bool late() { return false; }
  /// After settle(): the beats that the unit takes are gone.
  void take() {}
};

/// Drives one operation through a unit's ready/valid streams: `drive(i)` puts input beat i on the
/// ports, once and in order, `collect(i)` reads output beat i. Throws if the unit stops moving.
///
/// A cycle is stalled if an output was refused, or if the unit was ready for a beat that was
/// withheld; never both at once, because a unit that waits for its output is not ready. Nor is one
/// that waits for an operand.
template <typename Dut, typename Drive, typename Collect, typename Operands = NoOperands>
RtlCycles run_stream(Dut& dut, std::size_t inputs, std::size_t outputs, Drive drive,
                     Collect collect, const BackPressure& pressure = {}, Operands operands = {}) {
  BackPressureInjector injector(pressure);
  OfferedBeat beat;
  RtlCycles result;
  std::size_t driven = 0, in = 0, out = 0;
  while (out < outputs) {
    // What a unit is ready for may depend on the beat, so it is on the pins before it is valid.
    if (driven == in && in < inputs) drive(driven++);
    // The operation begins with its first beat, so that one is never withheld.
    beat.offer(in < inputs, result.cycles == 0 ? nullptr : &injector, [] {});
    operands.offer(injector);
    dut->valid_i = beat.offered();
    dut->ready_i = !injector.refuses();
    dut.settle();
    const bool refused = dut->valid_o && !dut->ready_i;
    const bool withheld =
        dut->ready_o ? !beat.offered() && in < inputs : !refused && operands.late();
    result.stalled += refused || withheld ? 1 : 0;
    ++result.cycles;
    dut.show_cycle(result.cycles);
    const bool taken = beat.take(dut->ready_o);
    in += taken ? 1 : 0;
    const bool delivers = dut->valid_o && dut->ready_i;
    if (delivers) collect(out++);
    operands.take();
    dut.end_cycle(refused || withheld || taken || delivers);
  }
  dut->valid_i = 0;
  dut.end_operation();
  return result;
}

}  // namespace systole::testbench
