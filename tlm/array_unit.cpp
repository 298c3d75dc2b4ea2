#include "tlm/array_unit.h"

#include <algorithm>

namespace systole::tlm_model {

ArrayUnit::ArrayUnit(const sc_core::sc_module_name& name, const hw::Machine& machine,
                     CommandProcessor& processor, LocalMemory& memory, hw::ArrayEngine& engine,
                     bool functional)
    : ExecutionUnit(name, hw::Unit::kCompute, processor,
                    {{"weight_preload", "weights shift in and nothing hides it"},
                     {"drain", "skew and shift-out that the next fold does not hide"},
                     {"bank_conflict", "a scratchpad bank served the DMA or the post-op unit"}}),
      array_(machine.array),
      functional_(functional),
      memory_(memory),
      engine_(engine) {}

hw::GemmArgs ArrayUnit::operands(const hw::Command& command) {
  hw::GemmArgs args;
  args.m = command.m;
  args.n = command.n;
  args.k = command.k;
  args.a_unsigned = command.a_unsigned;
  args.b_transposed = command.b_transposed;
  args.accumulate = command.accumulate;
  args.lda = command.a_pitch;
  args.ldb = command.b_pitch;
  args.ldc = command.c_pitch;
  if (functional_) {
    args.a = memory_.scratchpad.data() + command.a;
    args.b = reinterpret_cast<const std::int8_t*>(memory_.scratchpad.data() + command.b);
    args.c = memory_.accumulators() + command.c;
  }
  return args;
}

std::uint64_t ArrayUnit::conflicts(const hw::Command& command, std::uint64_t from,
                                   std::uint64_t to) const {
  const hw::ArrayReads reads = hw::array_reads(array_, command.m, command.n, command.k);
  const std::uint64_t a_end = command.a + std::uint64_t{command.m} * command.a_pitch;
  const std::uint64_t b_rows = command.b_transposed ? command.n : command.k;
  const std::uint64_t b_end = command.b + b_rows * command.b_pitch;
  return std::max(memory_.scratchpad.shortage(command.a, a_end, reads.streamed, from, to),
                  memory_.scratchpad.shortage(command.b, b_end, reads.resident, from, to));
}

std::uint64_t ArrayUnit::execute(Entry& entry) {
  const hw::Command& command = entry.command;
  show_accumulator_half(memory_.accumulator_half(command.c));
  const std::uint64_t started = cycle();
  // The weights of the first fold go in behind the previous command as far as they were there.
  const bool overlap = array_.overlap != hw::ArrayOverlap::kNone;
  const std::uint64_t ahead = overlap ? started - std::min(started, entry.ready) : 0;
  const std::uint64_t exposed =
      overlap && free_ == started ? array_.rows - std::min<std::uint64_t>(array_.rows, ahead) : 0;
  const bool continues = overlap && free_ == started;
  const hw::ArrayCycles cycles = engine_.matmul(operands(command), continues);
  const std::uint64_t interval = cycles.interval + exposed;

  // Accumulating reads and writes a word a row, plain results only write.
  const std::uint64_t rows = cycles.folds * command.m;
  const std::uint64_t c_begin = std::uint64_t{command.c} * 4;
  const std::uint64_t c_end =
      c_begin + (std::uint64_t{command.m - 1} * command.c_pitch + command.n) * 4;
  memory_.accumulator.record(c_begin, c_end, command.accumulate ? 2 * rows : rows, started,
                             started + interval);

  wait_cycles(interval);
  // Cycles lost to conflicts can meet further conflicts.
  std::uint64_t stalled = 0;
  while (const std::uint64_t more = conflicts(command, started, cycle())) {
    stalled += more;
    wait_cycles(more);
  }
  spend_stalled(cycles.preload + exposed, kPreload);
  spend_busy(cycles.stream);
  spend_stalled(cycles.drain, kDrain);
  spend_stalled(stalled, kBankConflict);

  const hw::ArrayReads reads = hw::array_reads(array_, command.m, command.n, command.k);
  memory_.scratchpad.count(reads.streamed + reads.resident);
  memory_.scratchpad.forget_before(started);
  free_ = cycle();
  folds_ += cycles.folds;
  macs_ += std::uint64_t{command.m} * command.n * command.k;
  processor().release(entry);
  return started + cycles.latency + exposed + stalled;
}

std::vector<hw::Counter> ArrayUnit::counters() const {
  return {{"macs", "MAC", "multiply-accumulates of the network, without padding", macs_},
          {"folds", "folds", "passes of a streamed operand past a resident one", folds_}};
}

}  // namespace systole::tlm_model
