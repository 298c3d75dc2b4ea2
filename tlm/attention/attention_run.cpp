#include "tlm/attention/attention_run.h"

#include <algorithm>
#include <utility>

#include "base/units.h"
#include "hw/attention/timing/attention_cycles.h"

namespace systole::tlm_model {
namespace {

std::vector<std::uint8_t> buffer(bool with_values, std::uint64_t rows, std::uint64_t row_bytes) {
  return std::vector<std::uint8_t>(with_values ? rows * row_bytes : 0);
}

}  // namespace

AttentionUnit::Run::Run(AttentionUnit& unit, const hw::cmd::Attention& attention, std::uint32_t op,
                        const hw::Program& program, const Prepared& prepared, bool with_values)
    : unit_(unit),
      attention_(attention),
      program_(program),
      heads_(prepared.heads),
      plan_(prepared.plan),
      with_values_(with_values),
      score_latency_(hw::score_latency(program.chains[attention.softmax])),
      started_(unit.now()),
      decoder_lines_(unit.machine_.attention.decoder_lines == 0
                         ? unit.machine_.attention.lines
                         : unit.machine_.attention.decoder_lines,
                     unit.machine_.attention.macs_per_line) {
  const std::uint64_t heads = heads_.size();
  operands_ = {{{unit.query_dma.get(),
                 attention.query.address,
                 attention.query.pitch,
                 attention.k,
                 buffer(with_values, attention.queries, heads * attention.k),
                 {}},
                {unit.key_dma.get(),
                 attention.key.address,
                 attention.key.pitch,
                 attention.k,
                 buffer(with_values, attention.keys, heads * attention.k),
                 {}},
                {unit.value_dma.get(),
                 attention.value.address,
                 attention.value.pitch,
                 attention.n,
                 buffer(with_values, attention.keys, heads * attention.n),
                 {}}}};
  if (attention.decoders) {
    operands_[0].decoder = &program.mixes[*attention.decoders];
    operands_[1].decoder = &program.mixes[*attention.decoders + std::size_t{1}];
  }
  if (attention.operand_chains) add_stages(program);
  mask_bytes_ = buffer(with_values, program.masks[attention.mask].bytes.size(), 1);
  arrivals_.reserve(plan_.fetches.size());
  outcome_.heads.resize(heads);
  for (std::size_t h = 0; h < heads; ++h) {
    outcome_.heads[h].op = op;
    outcome_.heads[h].head = static_cast<std::uint32_t>(h);
  }
  prepare_masks();
  end_ = started_;
}

AttentionUnit::Outcome AttentionUnit::Run::execute() {
  if (hw::masks_stream(heads_, unit_.machine_.attention)) start_mask_stream();
  for (const hw::AttentionFetch& next : plan_.fetches) {
    while (masks_fetched_ <= mask_of_[next.head]) fetch_next_mask();
    if (!chunks_.empty()) keep_up_with(next);
    fetch(next);
  }
  while (masks_fetched_ < masks_.size()) fetch_next_mask();
  advance(plan_.steps.size());
  outcome_.released = leaving_.empty() ? end_ : std::max(end_, leaving_.back().until);
  outcome_.work.forwarded = plan_.forwarded;
  return std::move(outcome_);
}

void AttentionUnit::Run::advance(std::size_t step) {
  while (step_ < step) go_on();
}

void AttentionUnit::Run::go_on() {
  if (!in_step_) {
    begin_step();
  } else if (access_ < plan_.steps[step_].phase.accesses.size()) {
    take_access();
  } else {
    end_step();
  }
}

// Memory serves requests in the order of the calls, so a chunk must not be asked for after rows of
// a later time. Where the array decodes, its phase takes all rows in flight.
void AttentionUnit::Run::keep_up_with(const hw::AttentionFetch& next) {
  if (unit_.machine_.attention.decoder_lines == 0 && step_ == 0 && !in_step_) return;
  const std::uint64_t issue = operands_[static_cast<std::size_t>(next.operand)].dma->next_issue();
  while (step_ < plan_.steps.size()) {
    std::uint64_t now = end_;
    if (in_step_) {
      const hw::AttentionPhase& phase = plan_.steps[step_].phase;
      const bool is_over = access_ == phase.accesses.size();
      if (!is_over && arrivals_.size() == taken_ && plan_.fetches[taken_].step == step_ &&
          plan_.fetches[taken_].access == access_) {
        return;  // needs the next row
      }
      now = start_ + (is_over ? phase.cycles : phase.accesses[access_].cycle) + shift_;
    }
    if (now > issue) return;
    go_on();
  }
}

void AttentionUnit::Run::hold(std::uint64_t offset, std::uint64_t cycle, std::uint64_t& cause) {
  const std::uint64_t planned = start_ + offset + shift_;
  if (cycle <= planned) return;
  shift_ += cycle - planned;
  cause += cycle - planned;
  if (!unit_.signals_) return;
  holds_.push_back({offset, cycle - planned});
  show_hold(planned, cycle, cause);
}

void AttentionUnit::Run::show_hold(std::uint64_t from, std::uint64_t to,
                                   const std::uint64_t& cause) {
  const HeadCycles& head = current();
  const auto state = [&] {
    if (&cause == &head.codes) return wave_state("softmax");
    if (&cause == &head.output) return wave_state("output");
    return &cause == &head.decode ? wave_state("decode") : wave_state("memory");
  };
  unit_.show(&Signals::state, from, to, state());
}

// An engine is busy until the work of its last line is over, with what holds up all lines.
void AttentionUnit::Run::show_step(const hw::AttentionStep& step) {
  if (!unit_.signals_) return;
  unit_.show(&Signals::state, start_, end_, step.spmm ? wave_state("spmm") : wave_state("sddmm"));
  unit_.show(&Signals::head, start_, end_, step.part.head);
  unit_.show(&Signals::query, start_, end_, step.part.tile.first);
  std::uint64_t last[] = {0, 0};  // cycles of the phase, of either engine
  for (std::size_t line = 0; line < step.phase.busy.size(); ++line) {
    std::uint64_t& of = last[line < step.phase.split.dense ? 0 : 1];
    of = std::max(of, step.phase.busy[line] + step.phase.conflict[line]);
  }
  const auto show = [&](SignalRecorder::Signal Signals::*engine, std::uint64_t cycles) {
    std::uint64_t to = start_ + cycles;
    for (const Hold& hold : holds_) to += hold.offset < cycles ? hold.cycles : 0;
    unit_.show(engine, start_, to, wave_state("busy"));
  };
  show(&Signals::denser, last[0]);
  show(&Signals::sparser, last[1]);
  holds_.clear();
}

void AttentionUnit::Run::begin_step() {
  const hw::AttentionStep& step = plan_.steps[step_];
  in_step_ = true;
  access_ = code_ = 0;
  shift_ = window_end_ = 0;
  start_ = end_;
  if (step.spmm) {
    claim(step.part.sum_bytes);
    softmax_start_ = std::max(scored_.front().end + score_latency_, softmax_free_);
    scores_begun_ = scored_.front().begin;
    scored_.pop_front();
  } else {
    hold(0, mask_of(step.part.head).arrived, current().memory);
    claim(step.part.score_bytes);
    if (step_ == 0 && unit_.machine_.attention.decoder_lines == 0) decode_on_array();
  }
}

// Scores are gone when their SpMM is over, so that a step only ever waits for sums.
void AttentionUnit::Run::claim(std::uint64_t bytes) {
  claimed_ += bytes;
  for (; claimed_ > unit_.machine_.accumulator.kib * hw::kKib; leaving_.pop_front()) {
    hold(0, leaving_.front().until, current().output);
    claimed_ -= leaving_.front().bytes;
  }
}

void AttentionUnit::Run::take_codes_until(std::uint64_t offset) {
  const hw::AttentionStep& step = plan_.steps[step_];
  for (; code_ < step.phase.codes.size() && step.phase.codes[code_].cycle <= offset; ++code_) {
    hold(step.phase.codes[code_].cycle, softmax_start_ + step.codes_ready[code_], current().codes);
  }
}

void AttentionUnit::Run::take_access() {
  const hw::RowAccess& access = plan_.steps[step_].phase.accesses[access_];
  if (access.end != window_end_) end_window();
  window_end_ = access.end;
  take_chunks_until(access.cycle);
  take_codes_until(access.cycle);
  if (taken_ < plan_.fetches.size() && plan_.fetches[taken_].step == step_ &&
      plan_.fetches[taken_].access == access_) {
    Arrival& row = arrivals_[taken_];
    hold(access.cycle, row.arrived, current().memory);
    if (row.ready == Arrival::kNotDecoded) {
      row.ready = decode(plan_.fetches[taken_], start_ + access.cycle + shift_);
    }
    hold(access.cycle, row.ready, current().decode);
    ++taken_;
  }
  ++operands_[static_cast<std::size_t>(access.operand)].open;
  ++access_;
}

// Its rows are no longer needed: another can be in their places.
void AttentionUnit::Run::end_window() {
  for (Operand& operand : operands_) {
    operand.over.resize(operand.over.size() + std::exchange(operand.open, 0), window_end());
  }
}

void AttentionUnit::Run::end_step() {
  const hw::AttentionStep& step = plan_.steps[step_];
  end_window();
  take_chunks_until(step.phase.cycles);
  take_codes_until(step.phase.cycles);
  const std::uint64_t length = step.phase.cycles + shift_;
  HeadCycles& head = current();
  (step.spmm ? head.spmm : head.sddmm) += length;
  const auto& conflict = step.phase.conflict;
  if (!conflict.empty()) head.conflict += *std::max_element(conflict.begin(), conflict.end());
  for (const std::uint64_t cycles : step.phase.busy) head.lines_busy += cycles;
  for (const std::uint64_t cycles : conflict) head.lines_conflict += cycles;
  mask_of(step.part.head).over = end_ = start_ + length;
  count_work(step);
  show_step(step);
  if (step.spmm) {
    if (!step.codes_ready.empty()) {
      unit_.show(&Signals::softmax, softmax_start_, softmax_start_ + step.codes_ready.back(),
                 wave_state("busy"));
      head.softmax += step.codes_ready.back();
      softmax_free_ =
          softmax_start_ + step.codes_ready.back() - hw::stage_info(hw::StageOp::kSoftmax).latency;
    }
    claimed_ -= step.part.score_bytes;
    emit(step);
  } else {
    scored_.push_back({start_, end_});
  }
  ++step_;
  in_step_ = false;
}

void AttentionUnit::Run::count_work(const hw::AttentionStep& step) {
  constexpr std::uint64_t kWordBytes = 4;
  AttentionUnit::Work& work = outcome_.work;
  const std::uint64_t cells = step.part.score_bytes / kWordBytes;
  work.macs += cells * (step.spmm ? attention_.n : attention_.k);
  work.buffer_bytes += step.phase.operand_words * unit_.machine_.attention.macs_per_line;
  work.score_bytes += step.phase.score_words * kWordBytes;
  if (!step.spmm) return;
  // The softmax reads scores and leaves codes in their places; sums are written and read once.
  work.score_bytes += 2 * step.part.score_bytes + 2 * step.part.sum_bytes;
  work.elements +=
      step.kept + cells * (program_.chains[attention_.softmax].stages.size() - 1) +
      step.part.sum_bytes / kWordBytes * program_.chains[attention_.chain].stages.size();
}

// The pipeline takes a tile's rows one after the other when all of its sums have arrived.
void AttentionUnit::Run::emit(const hw::AttentionStep& step) {
  const hw::Chain& chain = program_.chains[attention_.chain];
  const hw::QueryTile& tile = step.part.tile;
  const std::uint64_t row_bytes = attention_.n * hw::bytes_of(chain.out);
  hw::ChainCycles cycles = unit_.postop_.cycles(chain, tile.count, attention_.n);
  // Several rows divide side by side, but leave one after the other.
  const hw::Machine& machine = unit_.machine_;
  const std::uint64_t vectors =
      (attention_.n + std::uint64_t{machine.result_lanes()} - 1) / machine.result_lanes();
  const std::uint64_t dividers = machine.attention.dividers;
  cycles.per_row = std::max(vectors, (cycles.per_row + dividers - 1) / dividers);
  const std::uint64_t start = std::max(end_, output_free_);
  output_free_ = start + tile.count * cycles.per_row;
  leaving_.push_back({step.part.sum_bytes, start + cycles.total(tile.count)});
  unit_.outputs_.push_back(
      {attention_.out.address + tile.first * attention_.out.pitch + step.part.head * row_bytes,
       attention_.out.pitch, row_bytes, tile.count, start + cycles.fill + cycles.per_row,
       cycles.per_row, values(step)});
  unit_.output_added_.notify(sc_core::SC_ZERO_TIME);
}

std::vector<std::uint8_t> AttentionUnit::Run::values(const hw::AttentionStep& step) {
  if (!with_values_) return {};
  unit_.lines_.begin_at(scores_begun_);
  unit_.lines_.begin_rest_at(softmax_start_, start_);
  unit_.postop_.begin_at(end_);
  const auto rows = [&](std::size_t operand) { return operands_[operand].data.data(); };
  return unit_.compute(attention_, program_, heads_, step.part, {rows(0), rows(1), rows(2)});
}

}  // namespace systole::tlm_model
