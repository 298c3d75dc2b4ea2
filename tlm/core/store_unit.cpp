#include "tlm/core/store_unit.h"

#include <algorithm>

#include "hw/array/accumulator.h"
#include "hw/program/bank_words.h"

namespace systole::tlm_model {
namespace {

/// Rows of a tensor operand in each half of the room for it. A half is asked for as a whole, once
/// the rows that stood in it have left: row by row, the reads would alternate with the writes of
/// results, and DRAM would turn its bus around each time. Values are computed as many rows at a
/// time. Chosen: two halves of 16 rows are 1 % faster on vit65, of 4 rows as fast.
constexpr std::uint64_t kHalfRows = hw::kOperandRows / 2;

}  // namespace

StoreUnit::StoreUnit(const sc_core::sc_module_name& name, const hw::Machine& machine,
                     CommandProcessor& processor, LocalMemory& memory, hw::PostopEngine& engine,
                     hw::HeadMixEngine& encoder, bool functional)
    : ExecutionUnit(name, hw::Unit::kStore, processor,
                    {{"fill", "pipeline fill: no result leaves yet"},
                     {"memory", "the tensor operand is late or the write queue is full"},
                     {"bank_conflict", "an accumulator bank served the array or the DMA"},
                     {"encoder", "the encoder was working on rows in front, or on the last ones"}}),
      write_dma("write_dma", machine, machine.dma.outstanding_writes),
      read_dma("read_dma", machine, machine.dma.outstanding_reads),
      functional_(functional),
      lanes_(machine.postop.lanes),
      memory_(memory),
      engine_(engine),
      encoder_engine_(encoder),
      encoder_(std::max(machine.attention.encoder_lines, 1U), machine.attention.macs_per_line) {}

StoreUnit::Flow StoreUnit::begin(const hw::Command& command, const hw::Chain& chain) {
  Flow flow{cycle(), engine_.cycles(chain, command.m, command.n), 0, cycle()};
  flow.cycles.fill += hw::kAccumulatorReadCycles;
  flow.row_done = flow.started + flow.cycles.fill;
  if (command.mix != 0) flow.encoder = &processor().program().mixes[command.mix - std::size_t{1}];
  return flow;
}

void StoreUnit::begin_operands(const hw::Command& command, const hw::Chain& chain) {
  const std::vector<hw::DType> types = hw::tensor_types(chain);
  const std::vector<hw::OperandTile> tiles = hw::operands_of(command, processor().program());
  operands_.resize(types.size());
  for (std::size_t i = 0; i < types.size(); ++i) {
    operands_[i].tile = tiles[i];
    operands_[i].row_bytes = command.n * hw::bytes_of(types[i]);
    if (functional_) operands_[i].rows.resize(command.m * operands_[i].row_bytes);
  }
  operands_at_.assign(types.empty() ? 0 : command.m, 0);
}

void StoreUnit::fetch_operands(const hw::Command& command, std::uint64_t first, std::uint64_t rows,
                               std::uint64_t not_before) {
  // One operand after the other: row by row, they would take the rows of DRAM from each other.
  const std::uint64_t end = std::min<std::uint64_t>(first + rows, command.m);
  for (OperandStream& operand : operands_) {
    for (std::uint64_t row = first; row < end; ++row) {
      const std::uint64_t arrived =
          read_dma.read(operand.tile.address + row * operand.tile.pitch,
                        functional_ ? operand.rows.data() + row * operand.row_bytes : nullptr,
                        operand.row_bytes, not_before);
      operands_at_[row] = std::max(operands_at_[row], arrived);
    }
  }
}

void StoreUnit::compute(const hw::Command& command, const hw::Chain& chain,
                        const hw::HeadMix* encoder, std::uint64_t first, std::uint64_t rows) {
  const std::uint64_t c = command.c + first * command.c_pitch;
  if (memory_.accumulator_engine != nullptr) {
    memory_.accumulator_engine->read({c, rows, command.n, command.c_pitch},
                                     memory_.accumulators() + c, command.c_pitch);
  }
  hw::ChainOperands operands;
  operands.accumulator = memory_.accumulators() + c;
  operands.accumulator_pitch = command.c_pitch;
  operands.parameters = memory_.parameters(command.parameters);
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    const std::size_t pitch = operands_[i].row_bytes;
    operands.tensors.at(i) = {operands_[i].rows.data() + first * pitch, pitch};
  }
  operands.accumulate_statistics = command.accumulate;
  if (const std::uint32_t words = hw::statistics_words(chain); words != 0) {
    operands.row_statistics = memory_.statistics.data() + command.statistics + first * words;
  }
  const std::size_t row_bytes = command.n * hw::bytes_of(chain.out);
  const bool transposed = hw::transposes(chain);
  if (command.opcode == hw::Opcode::kMove) {
    operands.out = memory_.scratchpad.data() + command.b +
                   first * (transposed ? hw::bytes_of(chain.out) : command.b_pitch);
    operands.out_pitch = command.b_pitch;
  } else {
    result_.resize(rows * row_bytes);
    operands.out = result_.data();
    operands.out_pitch = transposed ? rows * hw::bytes_of(chain.out) : row_bytes;
  }
  operands.rows = rows;
  operands.cols = command.n;
  if (command.k != 0) operands.valid_cols = command.k + first;
  engine_.apply(chain, operands);
  if (encoder == nullptr) return;
  const std::size_t features = command.n / encoder->in_heads;
  const std::size_t encoded_bytes = features * encoder->out_heads;
  encoded_.resize(rows * encoded_bytes);
  for (std::uint64_t row = 0; row < rows; ++row) {
    encoder_engine_.mix(*encoder, reinterpret_cast<const std::int8_t*>(&result_[row * row_bytes]),
                        features, reinterpret_cast<std::int8_t*>(&encoded_[row * encoded_bytes]));
  }
  result_.swap(encoded_);
}

void StoreUnit::encode(const hw::Command& command, Flow& flow) {
  const std::uint64_t wait = encoder_begun_ - std::min(encoder_begun_, flow.row_done);
  flow.encoder_wait += wait;
  flow.row_done += wait;
  const std::uint64_t features = command.n / flow.encoder->in_heads;
  const hw::HeadMixLines::Token token = encoder_.take(*flow.encoder, features, flow.row_done);
  encoder_begun_ = token.begun;
  flow.encoder_delay = token.done - flow.row_done;
  encoder_macs_ += features * hw::mix_products(*flow.encoder);
  operations_ += features * flow.encoder->out_heads;
}

void StoreUnit::advance(std::uint64_t row, Flow& flow) {
  // The pipeline takes a row per interval, but not before the row's operands have arrived, and not
  // before the row in front has found a place in the write queue.
  const std::uint64_t accepted = write_dma.next_issue();
  flow.row_done = std::max(flow.row_done, accepted - std::min(accepted, flow.encoder_delay)) +
                  flow.cycles.per_row;
  if (!operands_at_.empty()) flow.row_done = std::max(flow.row_done, operands_at_[row]);
}

void StoreUnit::put(const hw::Command& command, std::uint64_t offset, const std::uint8_t* data,
                    std::uint64_t bytes, std::uint64_t ready, Flow& flow) {
  if (command.opcode == hw::Opcode::kMove) {
    const std::uint64_t at = command.b + offset;
    const std::uint64_t words =
        (bytes + memory_.scratchpad.word_bytes() - 1) / memory_.scratchpad.word_bytes();
    memory_.scratchpad.record(at, at + bytes, words, ready - std::min(ready, words), ready);
    return;
  }
  flow.written = std::max(flow.written, write_dma.write(command.dram + offset, data, bytes, ready));
}

void StoreUnit::deliver(const hw::Command& command, std::uint64_t first, std::uint64_t row,
                        Flow& flow) {
  advance(row, flow);
  if (flow.encoder != nullptr) encode(command, flow);
  const std::uint64_t bytes = hw::stored_row_bytes(command, processor().program());
  const bool moves = command.opcode == hw::Opcode::kMove;
  put(command, row * (moves ? command.b_pitch : command.dram_pitch),
      functional_ ? result_.data() + (row - first) * bytes : nullptr, bytes,
      flow.row_done + (moves ? 0 : flow.encoder_delay), flow);
}

void StoreUnit::deliver_columns(const hw::Command& command, std::uint64_t first, std::uint64_t rows,
                                Flow& flow) {
  const std::uint64_t element = hw::stored_row_bytes(command, processor().program()) / command.m;
  const bool moves = command.opcode == hw::Opcode::kMove;
  for (std::uint64_t row = first; row < first + rows; ++row) advance(row, flow);
  for (std::uint64_t column = 0; column < command.n; ++column) {
    // The fill has the cycles in which the last columns leave.
    put(command, column * (moves ? command.b_pitch : command.dram_pitch) + first * element,
        functional_ && !moves ? result_.data() + column * rows * element : nullptr, rows * element,
        flow.row_done - command.n + column + 1, flow);
  }
}

std::uint64_t StoreUnit::execute(Entry& entry) {
  const hw::Command& command = entry.command;
  const hw::Chain& chain = processor().program().chains[command.chain];
  show_accumulator_half(memory_.accumulator_half(command.c));
  Flow flow = begin(command, chain);
  begin_operands(command, chain);
  const std::uint64_t parameter_bytes = std::uint64_t{4} * hw::parameter_words(chain) * command.n;
  const std::uint64_t parameter_words =
      (parameter_bytes + memory_.scratchpad.word_bytes() - 1) / memory_.scratchpad.word_bytes();
  memory_.scratchpad.record(command.parameters, command.parameters + parameter_bytes,
                            parameter_words, flow.started, flow.started + parameter_words);
  const bool transposed = hw::transposes(chain);
  const std::uint64_t block = transposed ? lanes_ : kHalfRows;
  fetch_operands(command, 0, block, flow.started);
  fetch_operands(command, block, block, flow.started);
  for (std::uint64_t first = 0; first < command.m; first += block) {
    const std::uint64_t rows = std::min(block, command.m - first);
    if (functional_) compute(command, chain, flow.encoder, first, rows);
    if (transposed) {
      deliver_columns(command, first, rows, flow);
    } else {
      for (std::uint64_t row = first; row < first + rows; ++row) {
        deliver(command, first, row, flow);
      }
    }
    fetch_operands(command, first + 2 * block, block, flow.row_done);
  }
  write_dma.synchronise();
  const std::uint64_t last_out = flow.row_done + flow.encoder_delay;
  wait_cycles(last_out - std::min(last_out, cycle()));

  // The array has priority at the accumulator: whatever it took from our banks comes on top.
  const hw::AccumulatorSpan span = hw::accumulator_span(command);
  const std::uint64_t reads = flow.cycles.reads;
  const std::uint64_t words =
      hw::chain_accumulator_words(reads, command.n, lanes_, memory_.accumulator.word_bytes());
  const std::uint64_t conflict =
      memory_.accumulator.shortage({{span.begin, span.end, words}}, flow.started, cycle());
  wait_cycles(conflict);
  memory_.accumulator.count(reads * lanes_ * 4);
  memory_.accumulator.prune_before(flow.started);

  const std::uint64_t elapsed = cycle() - flow.started;
  const std::uint64_t pipeline = flow.cycles.total(command.m);
  const std::uint64_t busy = pipeline - flow.cycles.fill;
  account_stall(flow.cycles.fill, kFill);
  account_busy(busy);
  account_stall(conflict, kBankConflict);
  const std::uint64_t encoder = flow.encoder_wait + flow.encoder_delay;
  account_stall(encoder, kEncoder);
  account_stall(elapsed - pipeline - conflict - encoder, kMemory);
  operations_ += std::uint64_t{command.m} * command.n * chain.stages.size();
  accumulator_reads_ += reads;
  if (hw::has_stage(chain, hw::StageOp::kSoftmax)) softmax_reads_ += reads;
  processor().release(entry);
  return std::max(cycle(), flow.written);
}

std::vector<hw::Counter> StoreUnit::counters() const {
  return {
      {"operations", "elements", "elements times stages", operations_},
      {"accumulator_reads", "vectors", "vectors of `lanes` elements, all passes",
       accumulator_reads_},
      {"softmax_reads", "vectors", "of these, by chains with a softmax", softmax_reads_},
      {"encoder_macs", "MAC", "multiply-accumulates of the encoder lines", encoder_macs_},
      {"encoder_busy", "cycles", "of all encoder lines with MACs active", encoder_.busy_cycles()},
      {"requests", "requests", "read and write requests issued",
       write_dma.stats().requests + read_dma.stats().requests},
      {"written_bytes", "bytes", "results written to memory", write_dma.stats().bytes},
      {"operand_bytes", "bytes", "tensor operands read from memory", read_dma.stats().bytes},
      {"tlb_misses", "misses", "a page that the shared table did not hold",
       write_dma.stats().tlb_misses + read_dma.stats().tlb_misses},
      {"tlb_wait", "cycles", "a request waited for its translation",
       write_dma.stats().tlb_wait_cycles + read_dma.stats().tlb_wait_cycles}};
}

}  // namespace systole::tlm_model
