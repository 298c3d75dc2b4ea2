/// How rows and masks come in: the part of AttentionUnit::Run that asks the memory.

#include <algorithm>

#include "base/units.h"
#include "hw/attention/mask_codec.h"
#include "hw/kernel/row_kernels.h"
#include "tlm/attention/attention_run.h"

namespace systole::tlm_model {
void AttentionUnit::Run::prepare_masks() {
  mask_of_.resize(heads_.size());
  for (const std::size_t head : hw::head_order(heads_)) {
    mask_of_[head] = masks_.size();
    masks_.emplace_back();
  }
  std::uint64_t offset = 0;
  for (std::size_t head = 0; head < heads_.size(); ++head) {
    HeadMask& mask = mask_of(head);
    mask.offset = offset;
    mask.bytes = hw::mask_bytes(heads_[head]);
    offset += mask.bytes;
  }
  for (std::size_t s = 0; s < plan_.steps.size(); ++s)
    mask_of(plan_.steps[s].part.head).steps = s + 1;
}

void AttentionUnit::Run::start_mask_stream() {
  for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
    const hw::AttentionStep& step = plan_.steps[s];
    for (const hw::MaskChunk& chunk : hw::mask_chunks(
             mask_of(step.part.head).bytes, step.phase.cycles, unit_.machine_.attention)) {
      chunks_.push_back({s, chunk});
    }
  }
  for (std::size_t i = 0; i < std::min<std::size_t>(chunks_.size(), 2); ++i) {
    fetch_chunk(chunks_[i], 0);
  }
  masks_fetched_ = masks_.size();  // none resides
}

void AttentionUnit::Run::fetch_chunk(StreamedChunk& streamed, std::uint64_t not_before) {
  const hw::MaskChunk& chunk = streamed.chunk;
  const std::uint64_t offset = mask_of(plan_.steps[streamed.step].part.head).offset + chunk.offset;
  outcome_.work.buffer_bytes += 2 * chunk.bytes;  // comes in, is walked
  std::uint8_t* const data = mask_bytes_.empty() ? nullptr : mask_bytes_.data() + offset;
  streamed.arrived = unit_.index_dma->read(program_.masks[attention_.mask].address + offset, data,
                                           chunk.bytes, not_before);
}

// When a chunk is begun, the one before it is over: the next but one takes that half.
void AttentionUnit::Run::take_chunks_until(std::uint64_t offset) {
  while (chunks_begun_ < chunks_.size() && chunks_[chunks_begun_].step == step_ &&
         chunks_[chunks_begun_].chunk.cycle <= offset) {
    const StreamedChunk& begun = chunks_[chunks_begun_];
    hold(begun.chunk.cycle, begun.arrived, current().memory);
    ++chunks_begun_;
    if (chunks_begun_ >= 2 && chunks_begun_ < chunks_.size()) {
      fetch_chunk(chunks_[chunks_begun_], start_ + begun.chunk.cycle + shift_);
    }
  }
}

// A mask comes in as soon as those before it leave it room.
void AttentionUnit::Run::fetch_next_mask() {
  HeadMask& mask = masks_[masks_fetched_];
  const std::uint64_t buffer = unit_.machine_.attention.index_kib * hw::kKib;
  std::uint64_t together = mask.bytes;
  std::size_t first = masks_fetched_;  // of those that are in the buffer together with this one
  while (first > 0 && together + masks_[first - 1].bytes <= buffer) {
    together += masks_[--first].bytes;
  }
  std::uint64_t not_before = values_requested_;
  if (first > 0) {
    advance(masks_[first - 1].steps);
    not_before = std::max(not_before, masks_[first - 1].over);
  }
  outcome_.work.buffer_bytes += 2 * mask.bytes;  // comes in, is walked once
  const hw::LayerMask& layer = program_.masks[attention_.mask];
  // The walk over the columns was planned when the command was fetched: this is for the time.
  std::uint8_t* const data = mask_bytes_.empty() ? nullptr : mask_bytes_.data() + mask.offset;
  mask.arrived = unit_.index_dma->read(layer.address + mask.offset, data, mask.bytes, not_before);
  ++masks_fetched_;
}

std::uint64_t AttentionUnit::Run::place_free(const hw::AttentionFetch& fetch) {
  if (fetch.free_after == 0) return 0;
  const Operand& operand = operands_[static_cast<std::size_t>(fetch.operand)];
  while (operand.over.size() < fetch.free_after &&
         (step_ < fetch.step || !in_step_ || access_ < fetch.access)) {
    go_on();
  }
  // A window whose rows have no place together takes them one after the other.
  return operand.over.size() < fetch.free_after ? window_end() : operand.over[fetch.free_after - 1];
}

// Q and K come side by side. But no row of V is asked for before those of Q and K that are needed
// earlier, nor they before it: the bandwidth belongs to what is needed first.
void AttentionUnit::Run::fetch(const hw::AttentionFetch& fetch) {
  const Operand& operand = operands_[static_cast<std::size_t>(fetch.operand)];
  const bool value = fetch.operand == hw::AttentionOperand::kValue;
  const std::uint64_t earlier = value ? scores_requested_ : values_requested_;
  const std::uint64_t arrived = read(fetch, std::max(place_free(fetch), earlier));
  std::uint64_t& requested = value ? values_requested_ : scores_requested_;
  requested = std::max(requested, operand.dma->next_issue() - 1);
  outcome_.work.buffer_bytes += operand.features * fetch.kept;
  Arrival arrival{arrived, pass_stages(fetch, arrived)};
  if (operand.decoder != nullptr) {
    const bool on_array = unit_.machine_.attention.decoder_lines == 0;
    arrival.ready = on_array ? Arrival::kNotDecoded : decode(fetch, arrived);
  } else if (!value) {
    note_link(fetch, arrival.ready);
  }
  arrivals_.push_back(arrival);
}

std::uint64_t AttentionUnit::Run::read(const hw::AttentionFetch& fetch, std::uint64_t not_before) {
  Operand& operand = operands_[static_cast<std::size_t>(fetch.operand)];
  const std::uint64_t address = operand.address + fetch.row * operand.pitch;
  const std::uint64_t row_bytes = heads_.size() * operand.features;
  std::uint8_t* const row =
      operand.data.empty() ? nullptr : operand.data.data() + fetch.row * row_bytes;
  if (operand.decoder == nullptr) {
    const std::uint64_t column = fetch.head * operand.features;
    return operand.dma->read(address + column, row == nullptr ? nullptr : row + column,
                             operand.features, not_before);
  }
  latent_.resize(operand.decoder->in_heads * operand.features);
  const std::uint64_t arrived = operand.dma->read(
      address, row == nullptr ? nullptr : reinterpret_cast<std::uint8_t*>(latent_.data()),
      latent_.size(), not_before);
  if (row != nullptr) {
    unit_.mix_.begin_at(arrived);
    unit_.mix_.mix(*operand.decoder, latent_.data(), operand.features,
                   reinterpret_cast<std::int8_t*>(row));
  }
  return arrived;
}

// An operand whose chain is empty has no pipeline on its way.
void AttentionUnit::Run::add_stages(const hw::Program& program) {
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    const hw::Chain& chain = program.chains[attention_.softmax + 1 + i];
    if (chain.stages.empty()) continue;
    Operand& operand = operands_[i];
    operand.stages.emplace(chain);
    operand.stage_cycles = hw::chain_cycles(chain, 1, operand.features, unit_.machine_.preop.lanes);
  }
}

std::uint64_t AttentionUnit::Run::pass_stages(const hw::AttentionFetch& fetch, std::uint64_t from) {
  Operand& operand = operands_[static_cast<std::size_t>(fetch.operand)];
  if (!operand.stages) return from;
  outcome_.work.elements += operand.features * operand.stages->chain().stages.size();
  if (!operand.data.empty()) {
    std::uint8_t* const row =
        operand.data.data() + (fetch.row * heads_.size() + fetch.head) * operand.features;
    std::vector<std::int32_t> values(operand.features);
    hw::row::widen(row, hw::DType::kS8, values.data(), values.size());
    hw::ChainOperands operands;
    operands.accumulator = values.data();
    operands.out = row;
    operands.rows = 1;
    operands.cols = values.size();
    operand.stages->apply(operands);
  }
  operand.stages_free = std::max(operand.stages_free, from) + operand.stage_cycles.per_row;
  return operand.stages_free + operand.stage_cycles.fill;
}

std::uint64_t AttentionUnit::Run::decode(const hw::AttentionFetch& fetch, std::uint64_t from) {
  const Operand& operand = operands_[static_cast<std::size_t>(fetch.operand)];
  const std::uint64_t done = decoder_lines_.take(*operand.decoder, operand.features, from).done;
  outcome_.work.decoder_macs += hw::mix_products(*operand.decoder) * operand.features;
  const std::uint64_t begin = std::max(from, decoded_);
  decoded_ = std::max(decoded_, done);
  outcome_.heads[fetch.head].decoding += decoded_ - std::min(begin, decoded_);
  unit_.show(&Signals::decoder, begin, decoded_, wave_state("busy"));
  note_link(fetch, done);
  return done;
}

void AttentionUnit::Run::note_link(const hw::AttentionFetch& fetch, std::uint64_t ready) {
  std::uint64_t& link = outcome_.heads[fetch.head].link;
  link = std::max(link, ready - started_);
}

// Decoding is a phase of the array before the scores: of all rows in flight.
void AttentionUnit::Run::decode_on_array() {
  const auto waiting = [](const Arrival& arrival) { return arrival.ready == Arrival::kNotDecoded; };
  for (const Arrival& arrival : arrivals_) {
    if (waiting(arrival)) hold(0, arrival.arrived, current().memory);
  }
  const std::uint64_t from = start_ + shift_;
  for (std::size_t i = 0; i < arrivals_.size(); ++i) {
    if (waiting(arrivals_[i])) arrivals_[i].ready = decode(plan_.fetches[i], from);
  }
  hold(0, decoded_, current().decode);
}

}  // namespace systole::tlm_model
