#include "hw/silicon/area.h"

#include "base/units.h"
#include "hw/core/bank_words.h"
#include "hw/memory/word_code.h"

namespace systole::hw {
namespace {

constexpr double kUm2 = 1e-6;  ///< in square millimetres
constexpr double kBitsPerByte = 8;

double or_by_size(double given_mm2, const SramSize& size) {
  return given_mm2 != 0 ? given_mm2 : sram_mm2(size);
}

/// Lanes with a multiplier for each stage of a chain, and each of their units once. What the host
/// computes needs none.
double lanes_mm2(const Machine& machine, std::uint32_t lanes) {
  const Machine::Area& area = machine.area;
  double lane = machine.postop.max_stages * area.stage_um2;
  if (machine.host.operators != HostOperators::kFloat) {
    lane += machine.postop.gelu * area.gelu_um2 + machine.postop.exponential * area.softmax_um2 +
            machine.postop.norm * area.norm_um2;
  }
  lane += machine.postop.divider * area.divider_um2;
  return lanes * lane * kUm2;
}

/// Two buffers of weights in latches, multipliers and adders, partial sums of a tile in SRAM, a
/// lane of requantisation per unit (hw/stream/stream_core.h).
void add_stream(const Machine& machine, AreaReport& report) {
  const Machine::Stream& stream = machine.stream;
  const double macs = double{1} * stream.units * stream.length;
  constexpr double kBuffers = 2;
  const double sums = sram_mm2(partial_sums_size(machine));
  report.stream =
      (macs * (machine.area.mac_um2 + kBuffers * kBitsPerByte * machine.area.latch_um2) +
       stream.units * machine.area.stage_um2) *
          kUm2 +
      sums;
  report.memory += sums;
}

}  // namespace

SramSize scratchpad_size(const Machine& machine) {
  const double growth = scratchpad_code(machine).growth();
  return {growth * kKib * machine.scratchpad.kib, growth * scratchpad_word_bytes(machine),
          machine.scratchpad.banks, machine.scratchpad.ports};
}

SramSize accumulator_size(const Machine& machine) {
  const double growth = accumulator_code(machine).growth();
  return {growth * kKib * machine.accumulator.kib, growth * accumulator_word_bytes(machine),
          machine.accumulator.banks * machine.accumulator.memories, machine.accumulator.ports};
}

SramSize l2_size(const Machine& machine) {
  return {double{kKib} * machine.l2.kib, double{1} * machine.l2.bank_bytes, machine.l2.banks, 1};
}

SramSize partial_sums_size(const Machine& machine) {
  const Machine::Stream& stream = machine.stream;
  constexpr double kSumBytes = 26 / kBitsPerByte;
  return {double{1} * stream.length * stream.length * kSumBytes, stream.units * kSumBytes, 1, 1};
}

AreaReport area_of(const Machine& machine) {
  AreaReport report;
  if (machine.dfx.cores != 0 || machine.dynamic.kind != DynamicKind::kNone) return report;
  const Machine::Area& area = machine.area;
  report.rest = area.rest_mm2;
  if (machine.stream.units != 0) {
    add_stream(machine, report);
    return report;
  }
  const double pe_um2 = machine.array.split == ArraySplit::kNone      ? area.pe_um2
                        : machine.array.split == ArraySplit::kWeights ? area.split_pe_um2
                                                                      : area.int4_pe_um2;
  report.array = double{1} * machine.array.rows * machine.array.cols * pe_um2 * kUm2;
  report.scratchpad = or_by_size(area.scratchpad_mm2, scratchpad_size(machine));
  const double sums = or_by_size(area.accumulator_mm2, accumulator_size(machine));
  report.accumulator = sums + machine.array.cols * area.sum_um2 * kUm2;
  report.postop = lanes_mm2(machine, machine.postop.lanes);
  // An expander's lane is a product of 4 by 8 bits and a sum: less than a MAC.
  report.preop =
      lanes_mm2(machine, machine.preop.lanes) + machine.dma.expander_lanes * area.mac_um2 * kUm2;
  if (machine.attention.lines != 0) {
    // The engines' own MACs are the array's, and their buffers are in the scratchpad.
    const Machine::Attention& attention = machine.attention;
    report.attention = (double{1} * (attention.encoder_lines + attention.decoder_lines) *
                            attention.macs_per_line * area.mix_um2 +
                        attention.softmax_lanes * area.softmax_um2) *
                       kUm2;
  }
  if (machine.l2.kib != 0) report.l2 = or_by_size(area.l2_mm2, l2_size(machine));
  report.memory = report.scratchpad + sums + report.l2;
  return report;
}

}  // namespace systole::hw
