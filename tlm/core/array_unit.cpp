#include "tlm/core/array_unit.h"

#include <algorithm>

#include "hw/array/accumulator.h"
#include "hw/program/bank_words.h"

namespace systole::tlm_model {

ArrayUnit::ArrayUnit(const sc_core::sc_module_name& name, const hw::Machine& machine,
                     CommandProcessor& processor, LocalMemory& memory, hw::ArrayEngine& engine,
                     AttentionUnit* attention, bool functional)
    : ExecutionUnit(
          name, hw::Unit::kCompute, processor,
          {{"weight_preload", "weights shift in and nothing hides it"},
           {"drain", "skew and shift-out that the next fold does not hide"},
           {"bank_conflict",
            "a bank had no port left: operands in one bank, the DMA, moves, or accumulation"},
           {"attention", "the attention engines were held up: see block attention"}}),
      array_(machine.array),
      functional_(functional),
      memory_(memory),
      engine_(engine),
      attention_(attention) {}

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

// An accumulator engine adds by itself: it gets the product alone.
hw::ArrayCycles ArrayUnit::compute(const hw::Command& command, bool preloaded) {
  hw::GemmArgs args = operands(command);
  if (!functional_ || memory_.accumulator_engine == nullptr) return engine_.matmul(args, preloaded);
  product_.resize(std::size_t{command.m} * command.n);
  args.accumulate = false;
  args.c = product_.data();
  args.ldc = command.n;
  const hw::ArrayCycles cycles = engine_.matmul(args, preloaded);
  memory_.accumulator_engine->write({command.c, command.m, command.n, command.c_pitch},
                                    product_.data(), command.n, command.accumulate);
  return cycles;
}

BankedSram::Demand ArrayUnit::result_demand(const hw::Command& command,
                                            const hw::ArrayCycles& cycles) const {
  const hw::AccumulatorSpan span = hw::accumulator_span(command);
  return {span.begin, span.end, hw::matmul_accumulator_words(array_, command, cycles.folds)};
}

std::uint64_t ArrayUnit::conflicts(const hw::Command& command, const hw::ArrayReads& reads,
                                   const BankedSram::Demand& results, std::uint64_t from,
                                   std::uint64_t to) const {
  const std::uint64_t a_end = command.a + std::uint64_t{command.m} * command.a_pitch;
  const std::uint64_t b_rows = command.b_transposed ? command.n : command.k;
  const std::uint64_t b_end = command.b + b_rows * command.b_pitch;
  // The scratchpad serves the DMA first; at the accumulator the array comes first, and only its
  // own reads and writes can be too many for the ports.
  return std::max(memory_.scratchpad.shortage(
                      {{command.a, a_end, reads.a}, {command.b, b_end, reads.b}}, from, to),
                  memory_.accumulator.shortage({results}, from, to, BankedSram::Yield::kToNobody));
}

std::uint64_t ArrayUnit::attend(Entry& entry) {
  const std::uint64_t started = cycle();
  const AttentionUnit::Outcome outcome = attention_->execute(entry.command, processor().program());
  std::uint64_t busy = 0;
  for (const AttentionUnit::HeadCycles& head : outcome.heads) busy += head.busy();
  account_busy(busy);
  account_stall(outcome.released - started - busy, kAttention);
  processor().release(entry);
  return outcome.completed;
}

std::uint64_t ArrayUnit::execute(Entry& entry) {
  const hw::Command& command = entry.command;
  if (command.opcode == hw::Opcode::kAttention) return attend(entry);
  show_accumulator_half(memory_.accumulator_half(command.c));
  const std::uint64_t started = cycle();
  // Stationary weights of the first fold go in after the previous command as far as they were
  // there. Stationary outputs have nothing to go in ahead.
  const bool continues = array_.overlap != hw::ArrayOverlap::kNone &&
                         array_.dataflow == hw::Dataflow::kWeightStationary && free_ == started;
  const std::uint64_t ahead = started - std::min(started, entry.ready);
  const std::uint64_t exposed =
      continues ? array_.rows - std::min<std::uint64_t>(array_.rows, ahead) : 0;
  const hw::ArrayCycles cycles = compute(command, continues);
  const std::uint64_t interval = cycles.interval + exposed;

  const hw::ArrayReads reads = hw::array_reads(array_, command.m, command.n, command.k);
  const BankedSram::Demand results = result_demand(command, cycles);
  memory_.accumulator.record(results.begin, results.end, results.words, started,
                             started + interval);

  wait_cycles(interval);
  // Cycles lost to conflicts can meet further conflicts.
  std::uint64_t stalled = 0;
  while (const std::uint64_t more = conflicts(command, reads, results, started, cycle())) {
    stalled += more;
    wait_cycles(more);
  }
  account_stall(cycles.preload + exposed, kPreload);
  account_busy(cycles.stream);
  account_stall(cycles.drain, kDrain);
  account_stall(stalled, kBankConflict);

  memory_.scratchpad.count(reads.a * array_.rows + reads.b * array_.cols);
  memory_.scratchpad.prune_before(started);
  free_ = cycle();
  folds_ += cycles.folds;
  macs_ += std::uint64_t{command.m} * command.n * command.k;
  processor().release(entry);
  return started + cycles.latency + hw::kAccumulatorWriteCycles + exposed + stalled;
}

std::vector<hw::Counter> ArrayUnit::counters() const {
  return {{"macs", "MAC", "multiply-accumulates of the network, without padding", macs_},
          {"folds", "folds", "passes of a streamed operand past a resident one", folds_}};
}

}  // namespace systole::tlm_model
