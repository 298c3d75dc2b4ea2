#include "tlm/attention/attention_unit.h"

#include <algorithm>
#include <string>
#include <utility>

#include "hw/attention/mask_codec.h"
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

const AttentionUnit::Prepared& AttentionUnit::prepare(const hw::cmd::Attention& attention,
                                                      const hw::Program& program) {
  const std::vector<std::uint8_t>& mask = program.masks[attention.mask].bytes;
  Key key{{attention.heads, attention.queries, attention.keys, attention.k, attention.n,
           attention.decoders ? 1U : 0U},
          mask};
  if (prepared_.count(key) == 0 && prepared_.size() == kMostPrepared) prepared_.clear();
  const auto [known, is_new] = prepared_.try_emplace(std::move(key));
  if (is_new) {
    Prepared& prepared = known->second;
    prepared.heads = hw::decode_mask(mask, attention.heads, attention.queries, attention.keys);
    prepared.plan =
        hw::plan_attention(prepared.heads, attention.k, attention.n, machine_,
                           attention.decoders ? hw::BufferedRow::kToken : hw::BufferedRow::kHead);
  }
  return known->second;
}

AttentionUnit::Outcome AttentionUnit::execute(const hw::cmd::Attention& attention, std::uint32_t op,
                                              const hw::Program& program) {
  const std::uint64_t started = now();
  executes_from_ = started;
  Run run(*this, attention, op, program, prepare(attention, program));
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
