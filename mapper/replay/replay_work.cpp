#include "mapper/replay/replay_work.h"

#include <algorithm>

#include "base/round.h"
#include "hw/array/accumulator.h"
#include "hw/program/bank_words.h"
#include "hw/program/program_ranges.h"
#include "mapper/tile/host_cost.h"

namespace systole::mapper {
namespace {

void decode_chain(const hw::Command& command, const hw::Program& program, const hw::Chain& chain,
                  std::uint32_t lanes, ReplayWork& work) {
  work.has_chain = true;
  const hw::ChainCycles cycles = hw::chain_cycles(chain, command.m, command.n, lanes);
  work.fill = cycles.fill;
  work.per_row = cycles.per_row;
  work.sums.words = cycles.reads;
  hw::for_each_operand(command, program, [&](const hw::OperandTile& tile, hw::DType type) {
    if (work.operands == work.operand.size()) return;
    work.operand[work.operands++] = {tile.address, tile.pitch, command.n * hw::bytes_of(type), 0,
                                     command.m};
  });
}

void decode_load(const hw::Command& command, const hw::Program& program, const hw::Machine& machine,
                 ReplayWork& work) {
  work.to_accumulator = command.opcode == hw::Opcode::kLoadAccumulator;
  work.rows = {command.dram, command.dram_pitch, command.n * hw::bytes_of(command.type), 0,
               command.m};
  const std::uint64_t scale = work.to_accumulator ? 4 : 1;
  const std::uint32_t word = work.to_accumulator ? hw::accumulator_word_bytes(machine)
                                                 : hw::scratchpad_word_bytes(machine);
  work.local_bytes = command.n * scale;
  work.local_pitch = (work.to_accumulator ? command.c_pitch : command.a_pitch) * scale;
  work.local.begin = (work.to_accumulator ? command.c : command.a) * scale;
  work.row_words = ceil_div(work.local_bytes, std::uint64_t{word});
  if (const hw::Chain* const chain = hw::chain_of(command, program)) {
    decode_chain(command, program, *chain, std::max(machine.preop.lanes, 1U), work);
  }
}

void decode_matmul(const hw::Command& command, const hw::Machine& machine, ReplayWork& work) {
  work.cycles = hw::array_cycles(machine.array, command.m, command.n, command.k, false);
  // As in hw/array/array.h: what the weights of the first fold take is not hidden, or hidden.
  work.preload = machine.array.dataflow == hw::Dataflow::kWeightStationary ? machine.array.rows : 0;
  const hw::ArrayReads reads = hw::array_reads(machine.array, command.m, command.n, command.k);
  work.sources[0] = {command.a, command.a + std::uint64_t{command.m} * command.a_pitch, reads.a, 0,
                     0};
  work.sources[1] = {
      command.b,
      command.b + std::uint64_t{command.b_transposed ? command.n : command.k} * command.b_pitch,
      reads.b, 0, 0};
  const hw::AccumulatorSpan span = hw::accumulator_span(command);
  work.sums = {span.begin, span.end,
               hw::matmul_accumulator_words(machine.array, command, work.cycles.folds), 0, 0};
}

void decode_store(const hw::Command& command, const hw::Program& program,
                  const hw::Machine& machine, ReplayWork& work) {
  const hw::Chain& chain = program.chains[command.chain];
  const std::uint32_t lanes = machine.postop.lanes;
  decode_chain(command, program, chain, lanes, work);
  work.fill += hw::kAccumulatorReadCycles;
  work.m = command.m;
  const hw::AccumulatorSpan span = hw::accumulator_span(command);
  work.sums = {span.begin, span.end,
               hw::chain_accumulator_words(work.sums.words, command.n, lanes,
                                           hw::accumulator_word_bytes(machine)),
               0, 0};
  work.transposed = hw::transposes(chain);
  const std::uint64_t bytes = hw::stored_row_bytes(command, program);
  const std::uint64_t rows = hw::stored_rows(command, program);
  const std::uint32_t word = hw::scratchpad_word_bytes(machine);
  if (command.opcode == hw::Opcode::kMove) {
    work.local_pitch = command.b_pitch;
    work.local_bytes = bytes;
    work.local.begin = command.b;
    work.row_words = ceil_div(bytes, std::uint64_t{word});
    work.local.end = command.b + (rows - 1) * command.b_pitch + bytes;
  } else {
    work.rows = {command.dram, command.dram_pitch, bytes, 0, rows};
  }
  work.columns = command.n;
  work.element = work.transposed ? bytes / command.m : 0;
  const std::uint64_t parameters = std::uint64_t{4} * hw::parameter_words(chain) * command.n;
  work.sources[0] = {command.parameters, command.parameters + parameters,
                     ceil_div(parameters, std::uint64_t{word}), 0, 0};
  if (command.mix != 0) {
    const hw::HeadMix& mix = program.mixes[command.mix - std::size_t{1}];
    work.per_row =
        std::max(work.per_row, hw::mix_interval(mix, command.n / mix.in_heads,
                                                std::max(machine.attention.encoder_lines, 1U),
                                                machine.attention.macs_per_line));
    work.fill += hw::mix_products(mix) + hw::kHeadMixLatency;
  }
}

}  // namespace

void decode_work(const hw::Command& command, const hw::Program& program, const hw::Machine& machine,
                 std::uint64_t attention, ReplayWork& work) {
  work = ReplayWork{};
  work.opcode = command.opcode;
  work.op = command.op;
  hw::for_each_range(command, program, [&](const hw::Range& range) { work.ranges.add(range); });
  switch (command.opcode) {
    case hw::Opcode::kEnd:
    case hw::Opcode::kLoop:  // loops are timed by call: ReplayLoops
      break;
    case hw::Opcode::kLoad:
    case hw::Opcode::kLoadAccumulator:
      decode_load(command, program, machine, work);
      break;
    case hw::Opcode::kMatmul:
      decode_matmul(command, machine, work);
      break;
    case hw::Opcode::kStore:
    case hw::Opcode::kMove:
      decode_store(command, program, machine, work);
      break;
    case hw::Opcode::kAttention:
      work.duration = attention;
      break;
    case hw::Opcode::kHost:
      work.duration = static_cast<std::uint64_t>(
          host_cost(program.host_functions[command.chain], command.m, command.n, machine).total());
      break;
  }
}

}  // namespace systole::mapper
