#include "tlm/core/store_unit.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/round.h"
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
      lanes_(machine.result_lanes()),
      beat_bytes_(machine.bus.width_bytes),
      piece_bytes_{hw::result_piece_bytes(machine, false), hw::result_piece_bytes(machine, true)},
      memory_(memory),
      engine_(engine),
      encoder_engine_(encoder),
      encoder_(std::max(machine.attention.encoder_lines, 1U), machine.attention.macs_per_line),
      queue_(machine),
      loads_known_(hw::loads_known_cycles(machine)),
      machine_units_(machine.postop),
      has_encoder_(machine.attention.encoder_lines != 0) {
  memory_.read_ahead = [this](std::uint64_t until) { read_ahead(until); };
  SC_HAS_PROCESS(StoreUnit);
  SC_THREAD(fetch_ahead);
  SC_METHOD(follow_inputs);
  sensitive << follow_ << operands_arrive_;
  dont_initialize();
}

StoreUnit::Flow StoreUnit::begin(const Entry& entry, const hw::Chain& chain) {
  const hw::Program& program = processor().program();
  const hw::Command& command = entry.command;
  const auto& result = *command.as<hw::cmd::Result>();
  const bool moves = command.as<hw::cmd::Move>() != nullptr;
  const std::uint64_t read = hw::kAccumulatorReadCycles + memory_.accumulator_code.read_delay();
  const hw::ChainCycles stages = engine_.cycles(chain, result.m, result.n);
  const hw::ResultCycles cycles =
      hw::result_cycles(stages, chain, result.m, result.n, lanes_, piece_bytes_.at(moves), read);
  Flow flow{cycle(), cycles};
  flow.written = flow.started;
  flow.has_operands = hw::tensor_operands(chain) != 0;
  flow.chain = &chain;
  flow.block = hw::transposes(chain) ? lanes_ : kRowsAtOnce;
  flow.columns = hw::transposes(chain) ? result.n : 0;
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
  const std::uint64_t set_up = set_up_cycles(entry, chain);
  // Serial units work meanwhile.
  flow.fill = cycles.fill + std::max(set_up, cycles.lead) - cycles.lead;
  flow.row_done = flow.started + flow.fill;
  // A tile that is written where it is read comes as a whole.
  const bool whole = flow.has_operands &&
                     hw::operand_block(result, chain, machine_units_) == result.m &&
                     hw::writes_what_it_reads(hw::ranges_of(command, program));
  const hw::ResultFlow::Tile tile{result.m, result.n, result.from.address, result.from.pitch};
  hw::ResultFlow leaves(stages, chain, tile, lanes_, read,
                        whole ? hw::ResultFlow::Inputs::kWhole : hw::ResultFlow::Inputs::kSums);
  leaves.start(flow.started, set_up);
  flow.bits = result.int4 ? 4 : 8 * hw::bytes_of(chain.out);
  const std::uint64_t to = moves ? flow.move->to.address : flow.store->to.address;
  flow.rows = hw::ResultRows(leaves, {result.n, lanes_, flow.bits, piece_bytes_.at(moves)},
                             {to, flow.pitch, result.m, flow.row_bytes});
  return flow;
}

hw::StoreSetUp::Command StoreUnit::set_up_of(const Entry& entry, const hw::Chain& chain) const {
  const auto& result = *entry.command.as<hw::cmd::Result>();
  return hw::set_up_command(chain, result.n, lanes_, memory_.scratchpad.word_bytes(),
                            entry.dispatched, cycle(), entry.readable);
}

hw::ParameterWords StoreUnit::parameters_of(const hw::cmd::Result& result,
                                            const hw::Chain& chain) const {
  return {result.chain.parameters, hw::parameter_words(chain), result.n, lanes_,
          memory_.scratchpad.word_bytes()};
}

void StoreUnit::read_ahead(std::uint64_t until) {
  const Entry* const next = upcoming();
  if (next == nullptr || !next->is_readable()) return;
  const hw::Chain& chain = chain_of(*next);
  set_up_.read_ahead(set_up_of(*next, chain), until,
                     reads_of(parameters_of(*next->command.as<hw::cmd::Result>(), chain)));
}

std::uint64_t StoreUnit::set_up_cycles(const Entry& entry, const hw::Chain& chain) {
  BankedSram& scratchpad = memory_.scratchpad;
  const auto& result = *entry.command.as<hw::cmd::Result>();
  const hw::StoreSetUp::Command command = set_up_of(entry, chain);
  events().scratchpad_bytes += scratchpad.count(command.parameter_words * scratchpad.word_bytes());
  const std::uint64_t begin = result.chain.parameters;
  const std::uint64_t end = begin + std::uint64_t{4} * hw::parameter_words(chain) * result.n;
  const hw::ParameterWords parameters = parameters_of(result, chain);
  const std::uint64_t started = command.started, words = command.parameter_words;
  const std::uint64_t late = set_up_.late_words(command, reads_of(parameters));
  const std::uint64_t ahead = words - late;
  scratchpad.show(BankedSram::Client::kStore, {{begin, end, ahead}},
                  started - std::min(started, ahead), started);
  // Like what moves write (hw::kBankWriteCycles) they are read a cycle after the one that is asked
  // for.
  std::uint64_t asked = started;
  for (std::uint64_t word = ahead; word < words; word += parameters.run(word)) {
    const std::uint64_t at = parameters.address(word), run = parameters.run(word);
    const std::uint64_t bytes = std::min(run * parameters.bytes(), scratchpad.size() - at);
    asked = serve_words(at, bytes, run, asked);
  }
  return set_up_.begin(command, asked + 1) - started;
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

void StoreUnit::compute(Flow& flow, std::uint64_t end) {
  std::uint64_t row_done = flow.row_done;
  while (flow.computed < end) {
    const std::uint64_t rows = std::min(flow.block, end - flow.computed);
    compute_rows(rows, row_done, flow);
    row_done += rows * flow.cycles.per_row;
  }
}

void StoreUnit::compute_rows(std::uint64_t rows, std::uint64_t row_done, Flow& flow) {
  const hw::cmd::Result& result = *flow.result;
  const hw::Chain& chain = *flow.chain;
  const std::uint64_t first = flow.computed;
  flow.computed += rows;
  flow.valued = 0;
  if (flow.observed) flow.steps.push_back({first, memory_.observer->step()});
  // The first row enters the chain as the row before it leaves, a fill earlier.
  const std::uint64_t begins = row_done - flow.fill;
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

void StoreUnit::compute_known(std::uint64_t row, Flow& flow) {
  if (row < flow.computed) return;
  std::uint64_t known = flow.result->m, vectors = 0;
  if (flow.has_operands) {
    const std::uint64_t in_row = ceil_div(flow.result->n, lanes_);
    known = operands_known() / in_row;
    vectors = operands_known() % in_row;
  }
  if (known > row) return compute(flow, std::min(known, row + flow.block));
  // Requests may leave before the last operands of their row come: those values are not used yet.
  const std::uint64_t valued = vectors * lanes_ * flow.bits / 8;
  if (valued <= flow.valued) return;
  const std::uint64_t words = hw::statistics_words(*flow.chain);
  const auto at = memory_.statistics.begin() +
                  static_cast<std::ptrdiff_t>(flow.result->chain.statistics + row * words);
  const std::vector<std::uint32_t> statistics(at, at + static_cast<std::ptrdiff_t>(words));
  compute(flow, row + 1);
  std::copy(statistics.begin(), statistics.end(), at);
  if (flow.observed) flow.steps.pop_back();
  flow.computed = row;
  flow.valued = valued;
}

void StoreUnit::account_steps(const Flow& flow) {
  account_stall(flow.fill, kFill);
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
  running_ = &entry;
  started_ = cycle();
  uses_operands_ = hw::tensor_operands(chain) != 0;
  started_or_ended_.notify();
  Flow flow = begin(entry, chain);
  flow.entry = &entry;
  memory_.sums.keep_from(cycle());
  memory_.advance_sums(cycle());
  flow.with_values = functional_ && !post(entry, flow, chain);
  flow.observed = flow.with_values && memory_.observer != nullptr;
  const bool transposed = hw::transposes(chain);
  if (flow.with_values) {
    flow.computed_bytes = transposed ? result.n * hw::bytes_of(chain.out) : flow.row_bytes;
    result_.resize(flow.move == nullptr ? result.m * flow.computed_bytes : 0);
  }
  for (std::uint64_t row = 0; row < result.m;) {
    const std::uint64_t rows = transposed ? std::min<std::uint64_t>(lanes_, result.m - row) : 1;
    if (transposed) {
      transpose(row, rows, flow);
    } else if (flow.encoder != nullptr) {
      encode(row, flow);
    } else {
      put(row, row * flow.pitch, row * flow.row_bytes, flow.row_bytes, flow);
    }
    row += rows;
  }
  learn(flow);
  memory_.sums.keep_from(hw::SumTraffic::kNever);
  followed_ = nullptr;
  follow_.cancel();
  if (flow.observed) observe_uses(flow, chain);
  write_dma->synchronise();
  const bool is_made = transposed || flow.encoder != nullptr;
  const std::uint64_t last_out = is_made ? flow.rows.free() : flow.row_done;
  wait_cycles(last_out - std::min(last_out, cycle()));

  const hw::AccumulatorSpan span = hw::accumulator_span(result.from, result.m, result.n);
  const std::uint64_t reads = flow.cycles.reads;
  const std::uint64_t words =
      hw::chain_accumulator_words(reads, result.n, lanes_, memory_.accumulator.word_bytes());
  memory_.accumulator.show(BankedSram::Client::kStore, {{span.begin, span.end, words}},
                           flow.started, cycle());
  events().accumulator_bytes += memory_.accumulator.count(reads * lanes_ * 4);
  set_up_.end(last_out);
  const std::uint64_t side_there = last_out + flow.cycles.side;
  const std::uint64_t side = side_there - std::min(side_there, cycle());
  wait_cycles(side);
  running_ = nullptr;
  for (const hw::DType type : hw::tensor_types(chain)) {
    operand_bytes_ += std::uint64_t{result.m} * result.n * hw::bytes_of(type);
  }
  started_or_ended_.notify();

  const std::uint64_t elapsed = cycle() - flow.started;
  const std::uint64_t pipeline = flow.fill + flow.busy;
  const std::uint64_t encoder = flow.encoder_wait + flow.encoder_delay;
  if (recorder() != nullptr) {
    keep_step(last_out, kEncoder);
    keep_step(cycle() - side, kMemory);
    keep_step(cycle(), kFill);
    account_steps(flow);
    show_units(flow, chain, entry);
  } else {
    account_stall(flow.fill + side, kFill);
    account_busy(flow.busy);
    account_stall(flow.refused, kBankConflict);
    account_stall(encoder, kEncoder);
    account_stall(elapsed - pipeline - side - flow.refused - encoder, kMemory);
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
