#include "tlm/core/store_unit.h"

#include <algorithm>
#include <set>
#include <utility>

#include "hw/array/accumulator.h"
#include "hw/core/bank_words.h"
#include "hw/number/int4.h"
#include "hw/program/program_ranges.h"

namespace systole::tlm_model {
namespace {

/// Values are computed so many rows at a time.
constexpr std::uint64_t kRowsAtOnce = 8;

}  // namespace

StoreUnit::StoreUnit(const sc_core::sc_module_name& name, const hw::Machine& machine,
                     CommandProcessor& processor, LocalMemory& memory, hw::PostopEngine& engine,
                     hw::HeadMixEngine& encoder, bool functional, const DmaFactory& make_dma)
    : ExecutionUnit(name, hw::Unit::kStore, processor,
                    {{"fill", "pipeline fill: no result leaves yet"},
                     {"memory", "the tensor operand is late or the write queue is full"},
                     {"bank_conflict", "an accumulator bank served the array or the DMA"},
                     {"encoder", "the encoder was working on rows in front, or on the last ones"}}),
      write_dma(make_dma("write_dma", machine, DmaUse::kStore)),
      read_dma(make_dma("read_dma", machine, DmaUse::kOperands)),
      functional_(functional),
      lanes_(machine.postop.lanes),
      piece_bytes_{hw::result_piece_bytes(machine, false), hw::result_piece_bytes(machine, true)},
      memory_(memory),
      engine_(engine),
      encoder_engine_(encoder),
      encoder_(std::max(machine.attention.encoder_lines, 1U), machine.attention.macs_per_line),
      loads_known_(hw::loads_known_cycles(machine)),
      machine_units_(machine.postop),
      has_encoder_(machine.attention.encoder_lines != 0) {
  SC_HAS_PROCESS(StoreUnit);
  SC_THREAD(fetch_ahead);
}

StoreUnit::Flow StoreUnit::begin(const Entry& entry, const hw::Chain& chain) {
  const hw::Program& program = processor().program();
  const hw::Command& command = entry.command;
  const auto& result = *command.as<hw::cmd::Result>();
  const bool moves = command.as<hw::cmd::Move>() != nullptr;
  const hw::ResultCycles cycles = hw::result_cycles(
      engine_.cycles(chain, result.m, result.n), chain, result.m, result.n, lanes_,
      piece_bytes_.at(moves), hw::kAccumulatorReadCycles + memory_.accumulator_code.read_delay());
  Flow flow{cycle(), cycles, {}, cycle()};
  flow.has_operands = hw::tensor_operands(chain) != 0;
  flow.rows = {cycles, flow.started, set_up_cycles(entry, chain)};
  flow.cycles.fill = flow.rows.done() - flow.started;
  flow.chain = &chain;
  flow.block = hw::transposes(chain) ? lanes_ : kRowsAtOnce;
  flow.result = &result;
  flow.move = command.as<hw::cmd::Move>();
  flow.store = command.as<hw::cmd::Store>();
  if (flow.store != nullptr) {
    flow.row_bytes = hw::written_rows(*flow.store, program).bytes;
    flow.pitch = flow.store->to.pitch;
    if (flow.store->encoder) flow.encoder = &program.mixes[*flow.store->encoder];
  } else {
    flow.row_bytes = hw::written_rows(*flow.move, program).bytes;
    flow.pitch = flow.move->to.pitch;
  }
  return flow;
}

std::uint64_t StoreUnit::set_up_cycles(const Entry& entry, const hw::Chain& chain) {
  BankedSram& scratchpad = memory_.scratchpad;
  const auto& result = *entry.command.as<hw::cmd::Result>();
  const hw::StoreSetUp::Command command = hw::set_up_command(
      chain, result.n, lanes_, scratchpad.word_bytes(), entry.dispatched, cycle(), entry.readable);
  events().scratchpad_bytes += scratchpad.count(command.parameter_words * scratchpad.word_bytes());
  const std::uint64_t begin = result.chain.parameters;
  const std::uint64_t end = begin + std::uint64_t{4} * hw::parameter_words(chain) * result.n;
  const auto left = [&](std::uint64_t from, std::uint64_t to) {
    memory_.advance_array();
    return memory_.array.words_left(scratchpad.service(), begin / scratchpad.bank_bytes(), from,
                                    to);
  };
  return set_up_.cycles(command, left, [&](std::uint64_t late) {
    const std::uint64_t ahead = command.parameter_words - late;
    scratchpad.show(BankedSram::Client::kStore, {{begin, end, ahead}},
                    cycle() - std::min(cycle(), ahead), cycle());
    return scratchpad.serve(BankedSram::Client::kStore, begin, end, late, cycle() + 1);
  });
}

bool StoreUnit::moves_apart(const Entry& entry, hw::ChainOperands& operands,
                            hw::Range& written) const {
  ValueQueue& queue = *memory_.values;
  const hw::Program& program = processor().program();
  const auto& result = *entry.command.as<hw::cmd::Result>();
  const auto span_of = [](const hw::Range& range) {
    return ValueQueue::Span{range.begin, range.end - range.begin};
  };
  written = {hw::Space::kDram, 0, 0, true};
  if (const auto* const store = entry.command.as<hw::cmd::Store>()) {
    const hw::WrittenRows rows = hw::written_rows(*store, program);
    written = hw::bounding_range(hw::Space::kDram, store->to.address, rows.rows, rows.bytes,
                                 store->to.pitch, true);
    operands.out = queue.at(span_of(written));
    operands.out_pitch = store->to.pitch;
  } else {
    const auto& move = *entry.command.as<hw::cmd::Move>();
    operands.out = memory_.scratchpad.data() + move.to.address;
    operands.out_pitch = move.to.pitch;
  }
  bool apart = operands.out != nullptr;
  std::size_t count = 0;
  hw::for_each_operand(result.chain, program, [&](const hw::DramTile& tile, hw::DType type) {
    const hw::Range read = hw::bounding_range(hw::Space::kDram, tile.address, result.m,
                                              result.n * hw::bytes_of(type), tile.pitch, false);
    operands.tensors.at(count) = {queue.at(span_of(read)), tile.pitch};
    apart &= operands.tensors.at(count).data != nullptr && !hw::conflict(read, written);
    ++count;
  });
  operands.rows = result.m;
  return apart;
}

bool StoreUnit::post(const Entry& entry, const Flow& flow, const hw::Chain& chain) {
  if (memory_.values == nullptr) return false;
  ValueQueue& queue = *memory_.values;
  hw::ChainOperands operands;
  hw::Range written;
  if (!moves_apart(entry, operands, written)) {
    // Rows are read between writes of others, or requests will be answered with an error.
    queue.await();
    return false;
  }
  queue.post([this, result = *flow.result, &chain, encoder = flow.encoder,
              operands] { apply(result, chain, encoder, operands, 0, {}); },
             ValueQueue::Span{written.begin, written.end - written.begin});
  return true;
}

void StoreUnit::apply(const hw::cmd::Result& result, const hw::Chain& chain,
                      const hw::HeadMix* encoder, hw::ChainOperands operands, std::uint64_t first,
                      const RowTimes& times) {
  operands.accumulator = memory_.accumulators() + result.from.address + first * result.from.pitch;
  operands.accumulator_pitch = result.from.pitch;
  operands.parameters = memory_.parameters(result.chain.parameters);
  operands.accumulate_statistics = result.chain.continues;
  if (const std::uint32_t words = hw::statistics_words(chain); words != 0) {
    operands.row_statistics = memory_.statistics.data() + result.chain.statistics + first * words;
  }
  operands.cols = result.n;
  if (result.chain.valid_cols != 0) operands.valid_cols = result.chain.valid_cols + first;
  if (!result.int4 && encoder == nullptr) return engine_.apply(chain, operands);

  auto* const to = static_cast<std::uint8_t*>(operands.out);
  const std::size_t pitch = std::exchange(operands.out_pitch, result.n * hw::bytes_of(chain.out));
  chained_.resize(operands.rows * operands.out_pitch);
  operands.out = chained_.data();
  engine_.apply(chain, operands);
  if (result.int4) {
    for (std::uint8_t& value : chained_) value = hw::saturate_int4(value);
    return hw::pack_int4(chained_.data(), result.n, operands.rows, result.n, true, to, pitch);
  }
  const std::size_t features = result.n / encoder->in_heads;
  for (std::uint64_t row = 0; row < operands.rows; ++row) {
    encoder_engine_.begin_at(times.row_done + (row + 1) * times.per_row);
    encoder_engine_.mix(*encoder,
                        reinterpret_cast<const std::int8_t*>(&chained_[row * operands.out_pitch]),
                        features, reinterpret_cast<std::int8_t*>(to + row * pitch));
  }
}

void StoreUnit::compute(Flow& flow, std::uint64_t end, std::uint64_t row_done) {
  const hw::cmd::Result& result = *flow.result;
  const hw::Chain& chain = *flow.chain;
  const std::uint64_t first = std::exchange(flow.computed, end), rows = end - first;
  if (flow.observed) flow.steps.push_back({first, memory_.observer->step()});
  // The first row enters the chain as the row before it leaves, a fill earlier.
  const std::uint64_t begins = row_done - flow.cycles.fill;
  engine_.begin_at(begins);
  if (memory_.accumulator_engine != nullptr) {
    const std::uint64_t c = result.from.address + first * result.from.pitch;
    memory_.accumulator_engine->begin_at(begins);
    memory_.accumulator_engine->read({c, rows, result.n, result.from.pitch},
                                     memory_.accumulators() + c, result.from.pitch);
  }
  hw::ChainOperands operands;
  for (std::size_t i = 0; flow.has_operands && i < operands_.size(); ++i) {
    const std::size_t pitch = operands_[i].row_bytes;
    operands.tensors.at(i) = {operands_[i].rows.data() + first * pitch, pitch};
  }
  const bool transposed = hw::transposes(chain);
  if (flow.move != nullptr) {
    operands.out = memory_.scratchpad.data() + flow.move->to.address +
                   first * (transposed ? hw::bytes_of(chain.out) : flow.pitch);
    operands.out_pitch = flow.pitch;
  } else {
    operands.out_pitch = transposed ? rows * hw::bytes_of(chain.out) : flow.row_bytes;
    operands.out = result_.data() + first * flow.computed_bytes;
  }
  operands.rows = rows;
  apply(result, chain, flow.encoder, operands, first, {row_done, flow.cycles.per_row});
}

void StoreUnit::encode(std::uint64_t row, Flow& flow) {
  const std::uint64_t wait = encoder_begun_ - std::min(encoder_begun_, flow.rows.done());
  flow.encoder_wait += wait;
  flow.rows.hold(wait);
  keep_step(flow.rows.done(), kEncoder);
  const std::uint64_t features = flow.result->n / flow.encoder->in_heads;
  const hw::HeadMixLines::Token token = encoder_.take(*flow.encoder, features, flow.rows.done());
  encoder_begun_ = token.begun;
  if (recorder() != nullptr) {
    recorder()->hold(encoder_state_, ps(flow.rows.done()), ps(token.done), wave_state("busy"));
    recorder()->hold(encoder_row_, ps(flow.rows.done()), ps(token.done), row);
  }
  flow.encoder_delay = token.done - flow.rows.done();
  const std::uint64_t macs = features * hw::mix_products(*flow.encoder);
  const std::uint64_t outputs = features * flow.encoder->out_heads;
  encoder_macs_ += macs;
  operations_ += outputs;
  events().macs += macs;
  events().postop_elements += outputs;
}

void StoreUnit::advance(std::uint64_t row, Flow& flow) {
  // The pipeline takes a row per interval, but not before the row's operands have arrived.
  const std::uint64_t unhindered = flow.rows.done() + flow.cycles.per_row;
  if (flow.has_operands) {
    // A tile that is written where it is read comes as a whole.
    await_operands(flow.whole ? operands_at_.size() : row + 1);
    flow.rows.next(flow.whole ? operands_at_.back() : operands_at_[row], flow.whole);
  } else {
    flow.rows.next();
  }
  keep_step(std::min(unhindered, flow.rows.done()), kWork);
  keep_step(flow.rows.done(), kMemory);
  if (flow.observed) flow.read.push_back(flow.rows.done() - flow.cycles.fill - 1);
  if (flow.has_operands) use_operands(row + 1, flow.rows.done());
  release_sums(row, flow);
}

// The rows after this one are read while this one, and those before it, are in the stages: their
// writes hold up this process, and what it knows of them by then is too late.
void StoreUnit::release_sums(std::uint64_t row, Flow& flow) {
  if (flow.released) return;
  const std::uint64_t last = flow.result->m - 1;
  std::uint64_t end = 0;
  if (flow.has_operands) {
    if (operands_known_ <= last) return;
    end = operands_at_[last] + flow.cycles.after_operands;
  }
  const std::optional<std::uint64_t> read = flow.rows.sums_read(last - row, end);
  if (!read) return;
  flow.released = true;
  // What is left of them may be written over before this process comes to it.
  std::uint64_t row_done = flow.rows.done() + (flow.computed - row - 1) * flow.cycles.per_row;
  while (flow.with_values && flow.computed < flow.result->m) {
    const std::uint64_t rows = std::min(flow.block, flow.result->m - flow.computed);
    compute(flow, flow.computed + rows, row_done);
    row_done += rows * flow.cycles.per_row;
  }
  processor().release_at(*flow.entry, std::max(cycle(), *read));
}

// Loads have the banks first: what they write by then has to be known.
std::uint64_t StoreUnit::write_words(std::uint64_t address, std::uint64_t bytes,
                                     std::uint64_t words, std::uint64_t from) {
  BankedSram& scratchpad = memory_.scratchpad;
  if (from > cycle() + loads_known_) wait_cycles(from - cycle());
  if (from + words <= cycle() + loads_known_ &&
      scratchpad.is_left_alone(address, address + bytes, from, from + words)) {
    return scratchpad.serve(BankedSram::Client::kStore, address, address + bytes, words, from);
  }
  for (std::uint64_t word = 0; word < words; ++word) {
    const std::uint64_t at = address + word * bytes / words;
    std::uint64_t free = 0;
    while ((free = hw::first_free(scratchpad.service(), scratchpad.bank_bytes(), at, from)) >
           cycle() + loads_known_) {
      wait_cycles(free - cycle());
    }
    from = scratchpad.serve(BankedSram::Client::kStore, at, at + 1, 1, free);
  }
  return from;
}

void StoreUnit::put(std::uint64_t offset, const std::uint8_t* data, std::uint64_t bytes,
                    std::uint64_t ready, Flow& flow) {
  if (flow.move != nullptr) {
    const std::uint64_t at = flow.move->to.address + offset;
    const std::uint64_t words = hw::accesses_to_write(memory_.scratchpad_code, at, at + bytes,
                                                      memory_.scratchpad.word_bytes());
    const std::uint64_t from = ready - std::min(ready, words + hw::kBankWriteCycles);
    const std::uint64_t end = write_words(at, bytes, words, from);
    flow.written = std::max(flow.written, end + hw::kBankWriteCycles);
    flow.rows.hold(end - (from + words));
    keep_step(flow.rows.done(), kMemory);
    events().scratchpad_bytes += memory_.scratchpad.count(words * memory_.scratchpad.word_bytes());
    if (flow.observed) {
      StoredUse& use = flow.writes.emplace_back();
      use.space = hw::Space::kScratchpad;
      use.write = true;
      use.first_step = use.last_step = flow.steps.back().step;
      use.address = at;
      use.pitch = use.bytes = bytes;
      use.cycle = static_cast<std::int64_t>(ready);
    }
    return;
  }
  const DmaPort::Written row = write_dma->write_row(flow.store->to.address + offset, data, bytes,
                                                    piece_bytes_.at(false), ready);
  flow.written = std::max(flow.written, row.done);
  flow.rows.hold(row.stalled);
  keep_step(flow.rows.done(), kMemory);
}

void StoreUnit::deliver(std::uint64_t row, Flow& flow) {
  advance(row, flow);
  if (flow.encoder != nullptr) encode(row, flow);
  const std::uint64_t bytes = flow.row_bytes;
  put(row * flow.pitch,
      flow.with_values && flow.move == nullptr ? result_.data() + row * bytes : nullptr, bytes,
      flow.rows.done() + flow.encoder_delay, flow);
}

void StoreUnit::deliver_columns(std::uint64_t first, std::uint64_t rows, Flow& flow) {
  const std::uint64_t columns = flow.result->n;
  const std::uint64_t element = flow.row_bytes / flow.result->m;
  for (std::uint64_t row = first; row < first + rows; ++row) advance(row, flow);
  for (std::uint64_t column = 0; column < columns; ++column) {
    // The fill has the cycles in which the last columns leave.
    put(column * flow.pitch + first * element,
        flow.with_values && flow.move == nullptr
            ? result_.data() + first * flow.computed_bytes + column * rows * element
            : nullptr,
        rows * element, flow.rows.done() - columns + column + 1, flow);
  }
}

void StoreUnit::account_steps(const Flow& flow) {
  account_stall(flow.cycles.fill, kFill);
  std::uint64_t row = 0, begun = flow.started;
  rows_left_.clear();
  for (const Step& step : steps_) {
    if (step.cause != kWork) {
      account().stall_until(step.until, step.cause);
      continue;
    }
    account().busy_until(step.until);
    recorder()->hold(row_, ps(begun), ps(step.until), row++);
    rows_left_.push_back(begun = step.until);
  }
  steps_.clear();
}

void StoreUnit::show_units(const Flow& flow, const hw::Chain& chain, const Entry& entry) {
  const std::uint64_t from = ps(flow.started), to = ps(cycle());
  std::uint64_t after = 0;  // cycles that a row still takes in the stages after this one
  std::set<hw::StageUnit> shown;
  for (auto stage = chain.stages.rbegin(); stage != chain.stages.rend(); ++stage) {
    const std::uint64_t still = after;
    after += hw::stage_latency(*stage);
    const auto known = units_.find(hw::stage_info(stage->op).unit);
    if (known == units_.end() || !shown.insert(known->first).second) continue;
    const UnitSignals& signals = known->second;
    std::uint64_t begun = flow.started;
    for (std::size_t row = 0; row < rows_left_.size(); ++row) {
      const std::uint64_t left = std::max(rows_left_[row] - still, begun);
      recorder()->hold(signals.row, ps(begun), ps(left), row);
      begun = left;
    }
    recorder()->hold(signals.state, from, to, wave_state("busy"));
    recorder()->hold(signals.op, from, to, entry.command.op + processor().shown_operator());
    recorder()->hold(signals.command, from, to, entry.index + processor().shown_command());
  }
}

void StoreUnit::watch(SignalRecorder& recorder) {
  using Kind = SignalRecorder::Kind;
  ExecutionUnit::watch(recorder);
  const std::string prefix = std::string(name()) + ".";
  row_ = recorder.add_signal(prefix + "row", 24, Kind::kLatest);
  const auto add = [&](hw::StageUnit unit, bool has, const char* unit_name) {
    if (!has) return;
    const std::string path = prefix + unit_name + ".";
    units_[unit] = {recorder.add_state(path + "state"),
                    recorder.add_signal(path + "operator", 32, Kind::kLatest),
                    recorder.add_signal(path + "command", 32, Kind::kLatest),
                    recorder.add_signal(path + "row", 24, Kind::kLatest)};
  };
  add(hw::StageUnit::kGelu, machine_units_.gelu != 0, "gelu");
  add(hw::StageUnit::kExponential, machine_units_.exponential != 0, "exponential");
  add(hw::StageUnit::kNorm, machine_units_.norm != 0, "norm");
  add(hw::StageUnit::kRope, machine_units_.rope != 0, "rope");
  add(hw::StageUnit::kTransposer, machine_units_.transposer != 0, "transposer");
  add(hw::StageUnit::kDivider, machine_units_.divider != 0, "divider");
  if (!has_encoder_) return;
  encoder_state_ = recorder.add_state(prefix + "encoder.state");
  encoder_row_ = recorder.add_signal(prefix + "encoder.row", 24, Kind::kLatest);
}

void StoreUnit::observe_uses(Flow& flow, const hw::Chain& chain) {
  const hw::cmd::Result& result = *flow.result;
  // The chain has its own copy of the parameters once it has read them.
  for (StoredUse& use : memory_.parameter_uses(result.chain, chain, result.n, flow.started)) {
    use.first_step = flow.steps.front().step;
    use.last_step = flow.steps.back().step;
    memory_.observer->use(std::move(use));
  }
  for (std::size_t i = 0; i < flow.steps.size(); ++i) {
    const std::uint64_t first = flow.steps[i].row;
    const std::uint64_t end = i + 1 < flow.steps.size() ? flow.steps[i + 1].row : result.m;
    StoredUse use;
    use.space = hw::Space::kAccumulator;
    use.first_step = use.last_step = flow.steps[i].step;
    use.pitch = std::uint64_t{4} * result.from.pitch;
    use.address = std::uint64_t{4} * result.from.address + first * use.pitch;
    use.rows = end - first;
    use.bytes = std::uint64_t{4} * result.n;
    use.cycles.assign(flow.read.begin() + static_cast<std::ptrdiff_t>(first),
                      flow.read.begin() + static_cast<std::ptrdiff_t>(end));
    memory_.observer->use(std::move(use));
  }
  for (StoredUse& use : flow.writes) memory_.observer->use(std::move(use));
}

std::optional<std::uint64_t> StoreUnit::execute(Entry& entry) {
  const auto& result = *entry.command.as<hw::cmd::Result>();
  const hw::Chain& chain = hw::chain_of(result.chain, processor().program());
  show_accumulator_half(memory_.accumulator_half(result.from.address));
  Flow flow = begin(entry, chain);
  flow.entry = running_ = &entry;
  started_ = flow.started;
  started_or_ended_.notify();
  flow.with_values = functional_ && !post(entry, flow, chain);
  flow.observed = flow.with_values && memory_.observer != nullptr;
  const bool transposed = hw::transposes(chain);
  if (flow.with_values) {
    flow.computed_bytes = transposed ? result.n * hw::bytes_of(chain.out) : flow.row_bytes;
    result_.resize(flow.move == nullptr ? result.m * flow.computed_bytes : 0);
  }
  if (flow.has_operands) {
    await_operands(1);
    flow.whole = operand_block_ == result.m &&
                 hw::writes_what_it_reads(hw::ranges_of(entry.command, processor().program()));
  }
  for (std::uint64_t first = 0, rows = 0; first < result.m; first += rows) {
    rows = std::min(flow.block, result.m - first);
    if (flow.with_values && first >= flow.computed) {
      // Those that are there: a row leaves when its own operands have come.
      if (flow.has_operands) {
        await_operands(transposed ? first + rows : first + 1);
        rows = std::min(rows, operands_known_ - first);
      }
      compute(flow, first + rows, flow.rows.done());
    }
    if (transposed) {
      deliver_columns(first, rows, flow);
      continue;
    }
    for (std::uint64_t row = first; row < first + rows; ++row) deliver(row, flow);
  }
  if (flow.observed) observe_uses(flow, chain);
  write_dma->synchronise();
  const std::uint64_t last_out = flow.rows.done() + flow.encoder_delay;
  wait_cycles(last_out - std::min(last_out, cycle()));

  // The array has priority at the accumulator: whatever it took from our banks comes on top.
  const hw::AccumulatorSpan span = hw::accumulator_span(result.from, result.m, result.n);
  const std::uint64_t reads = flow.cycles.reads;
  const std::uint64_t words =
      hw::chain_accumulator_words(reads, result.n, lanes_, memory_.accumulator.word_bytes());
  const BankedSram::Demand demand{span.begin, span.end, words};
  memory_.accumulator.show(BankedSram::Client::kStore, {demand}, flow.started, cycle());
  // What it waits for can meet further sums.
  std::uint64_t conflict = 0;
  while (const std::uint64_t more = memory_.accumulator.shortage({demand}, flow.started, cycle())) {
    memory_.accumulator.show_conflict({demand}, flow.started, cycle(), more);
    conflict += more;
    wait_cycles(more);
  }
  events().accumulator_bytes += memory_.accumulator.count(reads * lanes_ * 4);
  memory_.accumulator.prune_before(flow.started);
  set_up_.end(last_out + conflict);
  const std::uint64_t side_there = last_out + conflict + flow.cycles.side;
  const std::uint64_t side = side_there - std::min(side_there, cycle());
  wait_cycles(side);
  running_ = nullptr;
  if (flow.has_operands) {
    operands_of_ = nullptr;
    operand_bytes_ = read_dma->stats().bytes;
  }
  started_or_ended_.notify();

  const std::uint64_t elapsed = cycle() - flow.started;
  const std::uint64_t pipeline = flow.cycles.fill + flow.rows.busy();
  const std::uint64_t encoder = flow.encoder_wait + flow.encoder_delay;
  if (recorder() != nullptr) {
    keep_step(last_out, kEncoder);
    keep_step(cycle() - side - conflict, kMemory);
    keep_step(cycle() - side, kBankConflict);
    keep_step(cycle(), kFill);
    account_steps(flow);
    show_units(flow, chain, entry);
  } else {
    account_stall(flow.cycles.fill + side, kFill);
    account_busy(flow.rows.busy());
    account_stall(conflict, kBankConflict);
    account_stall(encoder, kEncoder);
    account_stall(elapsed - pipeline - side - conflict - encoder, kMemory);
  }
  const std::uint64_t operations = std::uint64_t{result.m} * result.n * chain.stages.size();
  operations_ += operations;
  events().postop_elements += operations;
  accumulator_reads_ += reads;
  if (hw::has_stage(chain, hw::StageOp::kSoftmax)) softmax_reads_ += reads;
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
       write_dma->stats().requests + read_dma->stats().requests},
      {"written_bytes", "bytes", "results written to memory", write_dma->stats().bytes},
      {"operand_bytes", "bytes", "tensor operands read from memory", read_dma->stats().bytes},
      {"tlb_misses", "misses", "a page that the shared table did not hold",
       write_dma->stats().tlb_misses + read_dma->stats().tlb_misses},
      {"tlb_wait", "cycles", "a request waited for its translation",
       write_dma->stats().tlb_wait_cycles + read_dma->stats().tlb_wait_cycles}};
}

}  // namespace systole::tlm_model
