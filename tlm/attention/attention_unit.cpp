#include "tlm/attention/attention_unit.h"

#include <algorithm>
#include <string>
#include <utility>

#include "hw/attention/mask_codec.h"
#include "hw/kernel/row_kernels.h"
#include "hw/program/program_ranges.h"
#include "tlm/attention/attention_run.h"

namespace systole::tlm_model {
namespace {

/// More than a network has layers. A decoder has new masks with every token.
constexpr std::size_t kMostPrepared = 256;

constexpr std::size_t kMemoryStall = 0, kBankConflict = 1, kSoftmax = 2, kOutput = 3, kDecode = 4;

}  // namespace

AttentionUnit::AttentionUnit(const sc_core::sc_module_name& name, const hw::Machine& machine,
                             hw::PostopEngine& postop, hw::AttentionEngine& lines,
                             hw::HeadMixEngine& mix, bool functional, const DmaFactory& make_dma)
    : sc_module(name),
      query_dma(make_dma("query_dma", machine, DmaUse::kQuery)),
      key_dma(make_dma("key_dma", machine, DmaUse::kKey)),
      value_dma(make_dma("value_dma", machine, DmaUse::kValue)),
      index_dma(make_dma("index_dma", machine, DmaUse::kMask)),
      write_dma(make_dma("write_dma", machine, DmaUse::kAttentionOutput)),
      machine_(machine),
      functional_(functional),
      clock_(machine.core.clock_mhz),
      postop_(postop),
      lines_(lines),
      mix_(mix),
      account_("cycles", {{"memory", "a row of Q, K or V, or the mask, was late"},
                          {"bank_conflict", "a buffer's bank was wanted too often"},
                          {"softmax", "the codes of a row were late"},
                          {"output", "outputs of tiles in front had not left"},
                          {"decode", "a row was there, but not decoded or still in stages"}}) {
  SC_HAS_PROCESS(AttentionUnit);
  SC_THREAD(write);
}

void AttentionUnit::HeadCycles::add(const HeadCycles& other) {
  sddmm += other.sddmm;
  spmm += other.spmm;
  softmax += other.softmax;
  memory += other.memory;
  conflict += other.conflict;
  codes += other.codes;
  output += other.output;
  decode += other.decode;
  decoding += other.decoding;
  link = std::max(link, other.link);
  lines_busy += other.lines_busy;
  lines_conflict += other.lines_conflict;
}

void AttentionUnit::Work::add(const Work& other) {
  macs += other.macs;
  decoder_macs += other.decoder_macs;
  forwarded += other.forwarded;
  buffer_bytes += other.buffer_bytes;
  score_bytes += other.score_bytes;
  elements += other.elements;
}

hw::EnergyEvents AttentionUnit::Work::events() const {
  hw::EnergyEvents events;
  events.macs = macs + decoder_macs;
  events.postop_elements = elements;
  events.scratchpad_bytes = buffer_bytes;
  events.accumulator_bytes = score_bytes;
  return events;
}

void AttentionUnit::write() {
  for (;;) {
    while (outputs_.empty()) wait(output_added_);
    const Outputs& tile = outputs_.front();
    for (std::uint64_t row = 0; row < tile.rows; ++row) {
      const std::uint8_t* const data =
          tile.data.empty() ? nullptr : tile.data.data() + row * tile.row_bytes;
      written_ =
          std::max(written_, write_dma->write(tile.address + row * tile.pitch, data, tile.row_bytes,
                                              tile.first_ready + row * tile.interval));
    }
    outputs_.pop_front();
    if (outputs_.empty()) outputs_written_.notify(sc_core::SC_ZERO_TIME);
  }
}

std::shared_ptr<const AttentionUnit::Prepared> AttentionUnit::prepare(
    const hw::cmd::Attention& attention, const hw::Program& program) {
  const std::vector<std::uint8_t>& mask = program.masks[attention.mask].bytes;
  Key key{{attention.heads, attention.queries, attention.keys, attention.k, attention.n,
           attention.decoders ? 1U : 0U},
          mask};
  if (prepared_.count(key) == 0 && prepared_.size() == kMostPrepared) prepared_.clear();
  std::shared_ptr<const Prepared>& known = prepared_[std::move(key)];
  if (known == nullptr) {
    auto made = std::make_shared<Prepared>();
    made->heads = hw::decode_mask(mask, attention.heads, attention.queries, attention.keys);
    made->plan =
        hw::plan_attention(made->heads, attention.k, attention.n, machine_,
                           attention.decoders ? hw::BufferedRow::kToken : hw::BufferedRow::kHead);
    known = std::move(made);
  }
  return known;
}

bool AttentionUnit::post(const hw::cmd::Attention& attention, const hw::Program& program,
                         const std::shared_ptr<const Prepared>& prepared) {
  if (values_ == nullptr) return false;
  const std::uint64_t heads = attention.heads;
  const auto range = [](const hw::DramTile& tile, std::uint64_t rows, std::uint64_t bytes,
                        bool write) {
    return hw::bounding_range(hw::Space::kDram, tile.address, rows, bytes, tile.pitch, write);
  };
  const auto span_of = [](const hw::Range& of) {
    return ValueQueue::Span{of.begin, of.end - of.begin};
  };
  const std::uint64_t row_bytes = attention.n * hw::bytes_of(program.chains[attention.chain].out);
  const hw::Range written = range(attention.out, attention.queries, heads * row_bytes, true);
  std::uint8_t* const out = values_->at(span_of(written));
  bool apart = out != nullptr;
  std::array<Operand, 3> operands{{{attention.query, attention.queries, attention.k},
                                   {attention.key, attention.keys, attention.k},
                                   {attention.value, attention.keys, attention.n}}};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    Operand& operand = operands[i];
    if (attention.decoders && i < 2) operand.decoder = &program.mixes[*attention.decoders + i];
    if (attention.operand_chains) operand.stages = &program.chains[attention.softmax + 1 + i];
    const std::uint64_t stored = operand.decoder == nullptr ? heads : operand.decoder->in_heads;
    const hw::Range read = range(operand.tile, operand.rows, stored * operand.features, false);
    operand.data = values_->at(span_of(read));
    apart &= operand.data != nullptr && !hw::conflict(read, written);
  }
  if (!apart) {
    // Rows are read between writes of others, or requests will be answered with an error.
    values_->await();
    return false;
  }
  values_->post(
      [this, attention, &program, prepared, operands, out, row_bytes] {
        std::array<std::vector<std::uint8_t>, 3> rows;
        for (std::size_t i = 0; i < rows.size(); ++i) {
          rows[i] = take_rows(operands[i], attention.heads);
        }
        for (const hw::AttentionStep& step : prepared->plan.steps) {
          if (!step.spmm) continue;
          const std::vector<std::uint8_t> left =
              compute(attention, program, prepared->heads, step.part,
                      {rows[0].data(), rows[1].data(), rows[2].data()});
          const hw::QueryTile& tile = step.part.tile;
          for (std::size_t row = 0; row < tile.count; ++row) {
            std::copy_n(
                left.data() + row * row_bytes, row_bytes,
                out + (tile.first + row) * attention.out.pitch + step.part.head * row_bytes);
          }
        }
      },
      span_of(written));
  return true;
}

std::vector<std::uint8_t> AttentionUnit::take_rows(const Operand& operand, std::size_t heads) {
  const std::size_t row_bytes = heads * operand.features;
  std::vector<std::uint8_t> rows(operand.rows * row_bytes);
  for (std::size_t row = 0; row < operand.rows; ++row) {
    const std::uint8_t* const from = operand.data + row * operand.tile.pitch;
    std::uint8_t* const to = rows.data() + row * row_bytes;
    if (operand.decoder == nullptr) {
      std::copy_n(from, row_bytes, to);
    } else {
      mix_.mix(*operand.decoder, reinterpret_cast<const std::int8_t*>(from), operand.features,
               reinterpret_cast<std::int8_t*>(to));
    }
  }
  if (operand.stages == nullptr || operand.stages->stages.empty()) return rows;
  std::vector<std::int32_t> values(rows.size());
  hw::row::widen(rows.data(), hw::DType::kS8, values.data(), values.size());
  hw::ChainOperands chained;
  chained.accumulator = values.data();
  chained.accumulator_pitch = chained.out_pitch = chained.cols = operand.features;
  chained.rows = rows.size() / operand.features;
  chained.out = rows.data();
  hw::apply_chain(*operand.stages, chained);
  return rows;
}

std::vector<std::uint8_t> AttentionUnit::compute(const hw::cmd::Attention& attention,
                                                 const hw::Program& program,
                                                 const std::vector<hw::SparseHead>& heads,
                                                 const hw::HeadTile& part, const Rows& rows) {
  const hw::QueryTile& tile = part.tile;
  const std::size_t scored = heads.size() * attention.k, valued = heads.size() * attention.n;
  const auto base = [](const std::uint8_t* of) { return reinterpret_cast<const std::int8_t*>(of); };
  hw::AttentionOperands operands;
  operands.q = base(rows[0] + tile.first * scored + part.head * attention.k);
  operands.k = base(rows[1] + part.head * attention.k);
  operands.v = base(rows[2] + part.head * attention.n);
  operands.q_pitch = operands.k_pitch = scored;
  operands.v_pitch = valued;
  operands.dim = attention.k;
  operands.value_dim = attention.n;
  hw::AttentionSums sums =
      lines_.sums(hw::query_tile(heads[part.head], tile.first, tile.count), operands,
                  hw::score_functions(program.chains[attention.softmax]));
  const hw::Chain& chain = program.chains[attention.chain];
  std::vector<std::uint8_t> out(tile.count * attention.n * hw::bytes_of(chain.out));
  hw::ChainOperands chained;
  chained.accumulator = sums.sums.data();
  chained.accumulator_pitch = attention.n;
  chained.row_statistics = sums.divisor.data();
  chained.out = out.data();
  chained.out_pitch = attention.n * hw::bytes_of(chain.out);
  chained.rows = tile.count;
  chained.cols = attention.n;
  postop_.apply(chain, chained);
  return out;
}

AttentionUnit::Outcome AttentionUnit::execute(const hw::cmd::Attention& attention, std::uint32_t op,
                                              const hw::Program& program) {
  const std::uint64_t started = now();
  executes_from_ = started;
  const std::shared_ptr<const Prepared> prepared = prepare(attention, program);
  const bool with_values = functional_ && !post(attention, program, prepared);
  Run run(*this, attention, op, program, *prepared, with_values);
  Outcome outcome = run.execute();
  if (outcome.released > now()) wait(clock_.edge(outcome.released) - sc_core::sc_time_stamp());
  while (!outputs_.empty()) wait(outputs_written_);
  outcome.released = now();
  outcome.completed = std::max(outcome.released, written_);
  show(&Signals::state, run.end(), outcome.released, wave_state("output"));
  executes_from_.reset();
  heads_.insert(heads_.end(), outcome.heads.begin(), outcome.heads.end());
  work_.add(outcome.work);
  account(started, outcome);
  return outcome;
}

void AttentionUnit::account(std::uint64_t started, const Outcome& outcome) {
  account_.idle_until(started);
  const auto stall = [this](std::uint64_t cycles, std::size_t cause) {
    account_.stall_until(account_.now() + cycles, cause);
  };
  for (const HeadCycles& head : outcome.heads) {
    account_.busy_until(account_.now() + head.busy());
    stall(head.memory, kMemoryStall);
    stall(head.conflict, kBankConflict);
    stall(head.codes, kSoftmax);
    stall(head.output, kOutput);
    stall(head.decode, kDecode);
  }
  account_.stall_until(outcome.released, kOutput);
}

void AttentionUnit::watch(SignalRecorder& recorder) {
  using Kind = SignalRecorder::Kind;
  const std::string prefix = std::string(name()) + ".";
  signals_ = {&recorder,
              recorder.add_state(prefix + "state"),
              recorder.add_signal(prefix + "head", 16, Kind::kLatest),
              recorder.add_signal(prefix + "query", 16, Kind::kLatest),
              recorder.add_state(prefix + "denser.state"),
              recorder.add_state(prefix + "sparser.state"),
              recorder.add_state(prefix + "softmax.state"),
              recorder.add_state(prefix + "decoder.state")};
}

// A step is shown at its end, which may lag the rows that were fetched meanwhile.
std::uint64_t AttentionUnit::settled_ps() const {
  return executes_from_ ? clock_.edge_ps(*executes_from_) : Watched::settled_ps();
}

std::vector<DmaPort*> AttentionUnit::ports() {
  return {query_dma.get(), key_dma.get(), value_dma.get(), index_dma.get(), write_dma.get()};
}

std::uint64_t AttentionUnit::moved_bytes() {
  std::uint64_t bytes = 0;
  for (const DmaPort* port : ports()) bytes += port->stats().bytes;
  return bytes;
}

hw::BlockReport AttentionUnit::report(std::uint64_t cycles) const {
  const Traffic moved = traffic();
  return account_.report(
      basename(), cycles,
      {{"macs", "MAC", "multiply-accumulates, pruned cells of dense blocks included", work_.macs},
       {"forwarded_rows", "rows", "rows of Q that the denser engine had for the sparser one",
        work_.forwarded},
       {"decoder_macs", "MAC", "multiply-accumulates that decoded Q and K", work_.decoder_macs},
       {"buffer_bytes", "bytes", "written to and read from the buffers of Q, K, V and masks",
        work_.buffer_bytes},
       {"score_bytes", "bytes", "scores, codes and sums written to and read from the accumulator",
        work_.score_bytes},
       {"elements", "elements", "through the softmax, and through stages, once for each",
        work_.elements},
       {"query_bytes", "bytes", "Q read from memory", moved.query},
       {"key_bytes", "bytes", "K read from memory", moved.key},
       {"value_bytes", "bytes", "V read from memory", moved.value},
       {"index_bytes", "bytes", "masks read from memory", moved.index},
       {"written_bytes", "bytes", "outputs written to memory", moved.written}});
}

}  // namespace systole::tlm_model
