#include "tlm/core/array_unit.h"

#include <algorithm>
#include <utility>

#include "hw/array/accumulator.h"
#include "hw/core/bank_words.h"

namespace systole::tlm_model {
namespace {

/// The products of the tiles before and after a split. Both together are `args`.
std::pair<hw::GemmArgs, hw::GemmArgs> parts_of(const hw::GemmArgs& args, const MatmulSplit& split,
                                               const hw::Machine::Array& array) {
  hw::GemmArgs before = args, after = args;
  const auto* const a = static_cast<const std::uint8_t*>(args.a);
  switch (split.tiles) {
    case hw::ArrayTiles::kRows: {
      const std::size_t at = split.tile * array.rows;
      before.m = at;
      after.m -= at;
      after.a = a + at * args.lda;
      after.c += at * args.ldc;
      break;
    }
    case hw::ArrayTiles::kColumns: {
      const std::size_t at = split.tile * array.cols;
      before.n = at;
      after.n -= at;
      after.b += args.b_transposed ? at * args.ldb : at;
      after.c += at;
      break;
    }
    case hw::ArrayTiles::kDepth: {
      const std::size_t at = split.tile * array.rows;
      before.k = at;
      after.k -= at;
      after.a = a + at;
      after.b += args.b_transposed ? at : at * args.ldb;
      after.accumulate = true;
      break;
    }
    case hw::ArrayTiles::kNone:
      before.m = 0;
      break;
  }
  return {before, after};
}

}  // namespace

ArrayUnit::ArrayUnit(const sc_core::sc_module_name& name, const hw::Machine& machine,
                     CommandProcessor& processor, LocalMemory& memory, hw::ArrayEngine& engine,
                     AttentionUnit* attention, bool functional)
    : ExecutionUnit(
          name, hw::Unit::kCompute, processor,
          {{"weight_preload", "weights shift in and nothing hides it"},
           {"drain", "skew and shift-out that the next fold does not hide"},
           {"bank_conflict", "a bank had no port left: operands in one bank, the DMA, or moves"},
           {"attention", "the attention engines were held up: see block attention"}}),
      machine_(machine),
      functional_(functional),
      memory_(memory),
      engine_(engine),
      attention_(attention) {
  SC_HAS_PROCESS(ArrayUnit);
  SC_METHOD(complete_due);
  sensitive << leave_;
  dont_initialize();
  memory_.advance_array = [this] { (void)advance_reads(); };
}

hw::GemmArgs ArrayUnit::operands(const hw::cmd::Matmul& matmul) {
  hw::GemmArgs args;
  args.m = matmul.m;
  args.n = matmul.n;
  args.k = matmul.k;
  args.a_unsigned = matmul.a_unsigned;
  args.b_transposed = matmul.b_transposed;
  args.a_int4 = matmul.a_int4;
  args.b_int4 = matmul.b_int4;
  args.accumulate = matmul.accumulate;
  args.lda = matmul.a.pitch;
  args.ldb = matmul.b.pitch;
  args.ldc = matmul.c.pitch;
  if (functional_) {
    args.a = memory_.scratchpad.data() + matmul.a.address;
    args.b = reinterpret_cast<const std::int8_t*>(memory_.scratchpad.data() + matmul.b.address);
    args.c = memory_.accumulators() + matmul.c.address;
  }
  return args;
}

// An accumulator engine adds by itself: it gets the product alone.
hw::ArrayCycles ArrayUnit::compute(const hw::cmd::Matmul& matmul, bool preloaded,
                                   std::uint64_t exposed) {
  hw::GemmArgs args = operands(matmul);
  if (memory_.values != nullptr) {
    memory_.values->post([this, args] { static_cast<void>(engine_.matmul(args, false)); });
    args.c = nullptr;
  }
  engine_.begin_at(cycle() + exposed);
  if (functional_ && memory_.observer != nullptr) {
    const hw::ArraySchedule schedule(array_, matmul.m, matmul.n, matmul.k, preloaded, exposed);
    return compute_observed(matmul, args, schedule, preloaded);
  }
  if (!functional_ || memory_.accumulator_engine == nullptr) return engine_.matmul(args, preloaded);
  product_.resize(std::size_t{matmul.m} * matmul.n);
  args.accumulate = false;
  args.c = product_.data();
  args.ldc = matmul.n;
  const hw::ArrayCycles cycles = engine_.matmul(args, preloaded);
  memory_.accumulator_engine->begin_at(cycle() + exposed);
  memory_.accumulator_engine->write({matmul.c.address, matmul.m, matmul.n, matmul.c.pitch},
                                    product_.data(), matmul.n, matmul.accumulate);
  return cycles;
}

hw::ArrayCycles ArrayUnit::compute_observed(const hw::cmd::Matmul& matmul, hw::GemmArgs args,
                                            const hw::ArraySchedule& schedule, bool preloaded) {
  UseObserver& observer = *memory_.observer;
  const std::uint64_t step = observer.step();
  observe_uses(matmul, step, schedule);
  observer.product({step, static_cast<std::int64_t>(cycle()), matmul.m, schedule});
  if (const auto split = observer.split()) {
    const auto [before, after] = parts_of(args, *split, array_);
    if (before.m != 0 && before.n != 0 && before.k != 0) {
      static_cast<void>(engine_.matmul(before, preloaded));
    }
    observer.between_parts();
    static_cast<void>(engine_.matmul(after, preloaded));
    args.c = nullptr;
    return engine_.matmul(args, preloaded);
  }
  const hw::ArrayCycles cycles = engine_.matmul(args, preloaded);
  if (const auto flip = observer.array_flip()) {
    hw::apply_array_flip(args, array_, schedule, *flip);
  }
  return cycles;
}

std::uint64_t ArrayUnit::read_delay(const hw::cmd::Matmul& matmul) const {
  return hw::matmul_read_delay(array_, matmul, memory_.scratchpad_code, memory_.accumulator_code);
}

void ArrayUnit::observe_uses(const hw::cmd::Matmul& matmul, std::uint64_t step,
                             const hw::ArraySchedule& schedule) {
  const std::uint64_t rows = array_.rows, cols = array_.cols;
  const auto started = static_cast<std::int64_t>(cycle());
  StoredUse use;
  use.first_step = use.last_step = step;
  const auto report = [&](hw::Space space, const hw::LocalTile& tile, std::uint64_t row,
                          std::uint64_t col, std::uint64_t height, std::uint64_t width,
                          std::int64_t from) {
    const std::uint64_t scale = space == hw::Space::kAccumulator ? 4 : 1;
    use.space = space;
    use.pitch = tile.pitch * scale;
    use.address = (tile.address + col) * scale + row * use.pitch;
    use.rows = height;
    use.bytes = width * scale;
    use.cycle = started + from;
    memory_.observer->use(use);
  };
  const auto last_row = static_cast<std::int64_t>(rows) - 1;
  const bool weights = schedule.weight_stationary();
  const std::uint64_t outer = schedule.outer(), inner = schedule.inner();
  // A, again for each column tile.
  use.tiles = hw::ArrayTiles::kColumns;
  use.repeats = outer;
  use.repeat_cycles = inner * schedule.interval();
  (weights ? use.per_row : use.per_byte) = 1;
  for (std::uint64_t tile = 0; tile < inner; ++tile) {
    if (weights) {
      report(hw::Space::kScratchpad, matmul.a, 0, tile * rows, matmul.m,
             std::min(rows, matmul.k - tile * rows), schedule.begin(tile));
    } else {
      report(hw::Space::kScratchpad, matmul.a, tile * rows, 0,
             std::min(rows, matmul.m - tile * rows), matmul.k, schedule.begin(tile));
    }
  }
  // B: weights from the bottom row up, or streamed again for each row tile.
  use.tiles = weights ? hw::ArrayTiles::kNone : hw::ArrayTiles::kRows;
  use.repeats = weights ? 1 : inner;
  use.repeat_cycles = schedule.interval();
  use.per_row = use.per_byte = 0;
  (matmul.b_transposed ? use.per_byte : use.per_row) = weights ? -1 : 1;
  for (std::uint64_t col = 0; col < outer; ++col) {
    const std::uint64_t width = std::min(cols, matmul.n - col * cols);
    for (std::uint64_t tile = 0; tile < (weights ? inner : 1); ++tile) {
      const std::uint64_t fold = col * inner + tile;
      const std::uint64_t depth = weights ? std::min(rows, matmul.k - tile * rows) : matmul.k;
      const std::int64_t from = weights ? schedule.weights(fold) + last_row : schedule.begin(fold);
      if (matmul.b_transposed) {
        report(hw::Space::kScratchpad, matmul.b, col * cols, tile * rows, width, depth, from);
      } else {
        report(hw::Space::kScratchpad, matmul.b, tile * rows, col * cols, depth, width, from);
      }
    }
  }
  // C, again for each tile of k.
  use.write = !matmul.accumulate;
  use.modifies = matmul.accumulate;
  use.tiles = weights ? hw::ArrayTiles::kDepth : hw::ArrayTiles::kNone;
  use.repeats = weights ? inner : 1;
  use.repeat_cycles = schedule.interval();
  use.per_row = 1;
  use.per_byte = 0;
  for (std::uint64_t col = 0; col < outer; ++col) {
    const std::uint64_t width = std::min(cols, matmul.n - col * cols);
    for (std::uint64_t tile = 0; tile < (weights ? 1 : inner); ++tile) {
      const std::uint64_t height = weights ? matmul.m : std::min(rows, matmul.m - tile * rows);
      report(hw::Space::kAccumulator, matmul.c, tile * rows, col * cols, height, width,
             schedule.begin(col * inner + tile) + schedule.result_delay() +
                 static_cast<std::int64_t>(read_delay(matmul)));
    }
  }
}

BankedSram::Demand ArrayUnit::result_demand(const hw::cmd::Matmul& matmul,
                                            const hw::ArrayCycles& cycles) const {
  const hw::AccumulatorSpan span = hw::accumulator_span(matmul.c, matmul.m, matmul.n);
  return {span.begin, span.end, hw::matmul_accumulator_words(array_, matmul, cycles.folds)};
}

void ArrayUnit::show_reads(const hw::cmd::Matmul& matmul, const hw::ArrayReads& reads,
                           std::uint64_t started) {
  if (recorder() == nullptr) return;
  const std::uint64_t a_end = matmul.a.address + std::uint64_t{matmul.m} * matmul.a.pitch;
  const std::uint64_t b_end =
      matmul.b.address + std::uint64_t{hw::b_shape(matmul).rows} * matmul.b.pitch;
  memory_.scratchpad.show(BankedSram::Client::kArray,
                          {{matmul.a.address, a_end, reads.a}, {matmul.b.address, b_end, reads.b}},
                          started, cycle());
}

void ArrayUnit::account_matmul(const hw::ArrayCycles& cycles, std::uint64_t moved,
                               std::uint64_t lead, std::uint64_t started) {
  // With stationary weights what comes between two folds is counted with the second one.
  const bool weights = array_.dataflow == hw::Dataflow::kWeightStationary;
  const std::uint64_t gaps = cycles.folds - (weights && cycles.folds != 0 ? 1 : 0);
  const std::uint64_t idle = moved - cycles.stream;
  lead = std::min(lead, idle);
  const std::uint64_t drained = std::min(memory_.array.drained(), lead);
  if (recorder() == nullptr || cycles.folds == 0) {
    const std::uint64_t drain = std::min(idle, drained + gaps * cycles.fold_drain);
    account_stall(idle - drain, kPreload);
    account_busy(cycles.stream);
    account_stall(drain, kDrain);
    return;
  }
  // The same cycles in their order.
  const std::uint64_t stream = cycles.stream / cycles.folds;
  std::uint64_t begun = started;
  account_stall(drained, kDrain);
  account_stall(lead - drained, kPreload);
  const std::uint64_t waits = idle - lead;
  for (std::uint64_t fold = 0; fold < cycles.folds; ++fold) {
    account_busy(stream);
    if (fold < gaps) {
      const std::uint64_t gap = waits * (fold + 1) / gaps - waits * fold / gaps;
      const std::uint64_t drain = std::min(gap, cycles.fold_drain);
      account_stall(drain, kDrain);
      account_stall(gap - drain, kPreload);
    }
    const std::uint64_t ended = account().now();
    recorder()->hold(fold_, ps(begun), ps(ended), fold);
    begun = ended;
  }
}

void ArrayUnit::watch(SignalRecorder& recorder) {
  ExecutionUnit::watch(recorder);
  fold_ = recorder.add_signal(std::string(name()) + ".fold", 20, SignalRecorder::Kind::kLatest);
}

std::uint64_t ArrayUnit::attend(Entry& entry, const hw::cmd::Attention& attention) {
  const std::uint64_t started = cycle();
  const AttentionUnit::Outcome outcome =
      attention_->execute(attention, entry.command.op, processor().program());
  std::uint64_t busy = 0;
  for (const AttentionUnit::HeadCycles& head : outcome.heads) busy += head.busy();
  account_busy(busy);
  account_stall(outcome.released - started - busy, kAttention);
  events() = outcome.work.events();
  processor().release(entry);
  return outcome.completed;
}

std::uint64_t ArrayUnit::run_reads() {
  for (;;) {
    const std::uint64_t end = advance_reads();
    if (end <= cycle()) break;
    if (const auto bank = memory_.array.bank()) memory_.scratchpad.show_wait(*bank, cycle(), end);
    wait_cycles(end - cycle());
  }
  return memory_.array.moved();
}

std::uint64_t ArrayUnit::advance_reads() {
  // What others have used of the scratchpad's banks is known up to now.
  using Next = hw::OperandStream::Next;
  return memory_.array.advance(memory_.scratchpad.service(), cycle(),
                               [this](std::size_t ahead) -> std::optional<Next> {
                                 const Entry* const next = upcoming(ahead - 1);
                                 if (next == nullptr || !next->is_ready()) return std::nullopt;
                                 const auto* const matmul = next->command.as<hw::cmd::Matmul>();
                                 if (matmul == nullptr) return std::nullopt;
                                 return Next{matmul, next->ready};
                               });
}

void ArrayUnit::complete_due() {
  if (!leaving_.empty()) (void)advance_reads();
  for (; !leaving_.empty(); leaving_.pop_front()) {
    const Leaving& first = leaving_.front();
    const std::uint64_t left = memory_.array.leaves(first.ended, cycle());
    if (left > cycle()) {
      leave_.notify(processor().clock().edge(left) - sc_core::sc_time_stamp());
      return;
    }
    processor().complete_at(*first.entry, first.started, first.released, left + first.after);
  }
}

std::optional<std::uint64_t> ArrayUnit::execute(Entry& entry) {
  if (const auto* const attention = entry.command.as<hw::cmd::Attention>()) {
    return attend(entry, *attention);
  }
  const auto& matmul = *entry.command.as<hw::cmd::Matmul>();
  show_accumulator_half(memory_.accumulator_half(matmul.c.address));
  const std::uint64_t started = cycle();
  memory_.array.begin(matmul, started, entry.ready);
  const std::uint64_t exposed = memory_.array.exposed();
  const std::uint64_t lead = memory_.array.before_rows();
  const hw::ArrayCycles cycles = compute(matmul, memory_.array.continues(), exposed);

  const std::uint64_t moved = run_reads();
  const BankedSram::Demand results = result_demand(matmul, cycles);
  memory_.accumulator.show(BankedSram::Client::kArray, {results}, started, cycle());
  events().accumulator_bytes =
      memory_.accumulator.count(results.words * memory_.accumulator.word_bytes());
  account_matmul(cycles, moved, lead, started);
  account_stall(cycle() - started - moved, kBankConflict);

  const hw::ArrayReads reads = hw::matmul_reads(array_, matmul);
  events().scratchpad_bytes =
      memory_.scratchpad.count(reads.a * array_.rows + reads.b * array_.cols);
  show_reads(matmul, reads, started);
  memory_.forget_before(started - std::min(started, hw::kKeptBankCycles));
  folds_ += cycles.folds;
  events().macs = std::uint64_t{matmul.m} * matmul.n * matmul.k;
  if (matmul.b_int4) events().int4_macs = events().macs;
  if (matmul.a_int4) events().int4_int4_macs = events().macs;
  macs_ += events().macs;
  int4_macs_ += events().int4_macs;
  int4_int4_macs_ += events().int4_int4_macs;
  processor().release_at(entry, cycle() + hw::kMatmulReleaseCycles);
  const std::uint64_t ended = memory_.array.end(cycle());
  const std::uint64_t after =
      hw::kMatmulRegisterCycles + hw::kAccumulatorWriteCycles + read_delay(matmul);
  if (memory_.array.leaves(ended, cycle()) == cycle()) return cycle() + after;
  leaving_.push_back({&entry, started, cycle(), ended, after});
  if (leaving_.size() == 1) complete_due();
  return std::nullopt;
}

std::vector<hw::Counter> ArrayUnit::counters() const {
  std::vector<hw::Counter> all = {
      {"macs", "MAC", "multiply-accumulates of the network, without padding", macs_},
      {"folds", "folds", "passes of a streamed operand past a resident one", folds_}};
  if (array_.split != hw::ArraySplit::kNone) {
    all.push_back({"int4_macs", "MAC", "multiply-accumulates by int4 weights", int4_macs_});
  }
  if (array_.split == hw::ArraySplit::kBoth) {
    all.push_back({"int4_int4_macs", "MAC", "of these, of int4 activations", int4_int4_macs_});
  }
  return all;
}

}  // namespace systole::tlm_model
