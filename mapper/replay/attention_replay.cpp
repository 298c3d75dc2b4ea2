#include "mapper/replay/attention_replay.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <utility>
#include <vector>

#include "base/round.h"
#include "base/units.h"
#include "hw/attention/mask_codec.h"
#include "hw/attention/timing/attention_cycles.h"
#include "hw/attention/timing/attention_plan.h"
#include "hw/attention/timing/mask_stream.h"
#include "mapper/replay/replay_memory.h"

namespace systole::mapper {
namespace {

constexpr std::size_t kOperands = 3;
/// Operands begin at addresses so far apart at least, each in its own rows of DRAM.
constexpr std::uint64_t kAlignment = 4096;

/// An attention in progress. Times are cycles from its start.
class AttentionReplay {
 public:
  AttentionReplay(const AttentionGroup& group, const hw::Machine& machine)
      : group_(group),
        machine_(machine),
        plan_(hw::plan_attention(
            group.heads, group.dim, group.value_dim, machine,
            group.decoders.empty() ? hw::BufferedRow::kHead : hw::BufferedRow::kToken)),
        memory_(machine),
        index_port_(machine.dma.outstanding_reads),
        decoder_lines_(
            decodes_on_array() ? machine.attention.lines : machine.attention.decoder_lines,
            machine.attention.macs_per_line),
        score_latency_(hw::score_latency(group.softmax)) {
    add_operands();
    add_output_cycles();
  }

  [[nodiscard]] std::uint64_t run() {
    read_masks();
    for (const hw::AttentionFetch& next : plan_.fetches) fetch(next);
    while (step_ < plan_.steps.size()) go_on();
    return leaving_.empty() ? end_ : std::max(end_, leaving_.back().until);
  }

 private:
  struct Operand {
    std::uint64_t address, pitch, head_bytes;
    std::uint64_t token_bytes;  ///< that a decoder reads; 0: rows of heads are read
    const hw::HeadMix* decoder;
    ReplayPort port;
    std::vector<std::uint64_t> over{};  ///< by access: cycle from which its row is not needed
    std::size_t open = 0;               ///< accesses after these, of the window in progress
  };
  struct Arrival {
    std::uint64_t ready;
    bool decoded;
  };
  struct Leaving {
    std::uint64_t bytes, until;
  };

  [[nodiscard]] bool decodes_on_array() const { return machine_.attention.decoder_lines == 0; }

  void add_operands() {
    const std::array<const model::View*, kOperands> views = {&group_.query, &group_.key,
                                                             &group_.value};
    std::uint64_t address = 0;
    for (std::size_t i = 0; i < kOperands; ++i) {
      const bool decoded = i < group_.decoders.size();
      const std::uint64_t head_bytes = i == 2 ? group_.value_dim : group_.dim;
      const std::uint64_t pitch = round_up(views[i]->cols, machine_.array.rows);
      operands_.push_back({address, pitch, head_bytes, decoded ? views[i]->cols : 0,
                           decoded ? &group_.decoders[i].mix : nullptr,
                           ReplayPort(machine_.dma.outstanding_reads)});
      address += round_up(views[i]->rows * pitch, kAlignment);
    }
    mask_address_ = address;
  }

  /// Several rows divide side by side, but leave one after the other.
  void add_output_cycles() {
    const std::uint64_t lanes = machine_.result_lanes();
    const hw::ChainCycles cycles =
        hw::chain_cycles(group_.chain, 1, group_.value_dim, machine_.result_lanes());
    output_fill_ = cycles.fill;
    output_interval_ = std::max<std::uint64_t>(
        ceil_div(std::uint64_t{group_.value_dim}, lanes),
        ceil_div(cycles.per_row, std::uint64_t{machine_.attention.dividers}));
  }

  std::uint64_t read(ReplayPort& port, std::uint64_t address, std::uint64_t bytes,
                     std::uint64_t not_before) {
    ReplayRows rows{address, bytes, bytes, 0, 1};
    double done = 0;
    while (rows.left != 0) {
      done = memory_.move(false, port, rows, static_cast<double>(not_before), 0, port.window())
                 .last_done;
    }
    return static_cast<std::uint64_t>(std::ceil(done));
  }

  /// Masks that reside come in one after the other, as if the buffer held all.
  void read_masks() {
    mask_arrived_.resize(group_.heads.size());
    if (hw::masks_stream(group_.heads, machine_.attention)) return;
    for (const std::size_t head : hw::head_order(group_.heads)) {
      const std::uint64_t bytes = hw::mask_bytes(group_.heads[head]);
      if (bytes != 0) mask_arrived_[head] = read(index_port_, mask_address_, bytes, 0);
      mask_address_ += bytes;
    }
  }

  void fetch(const hw::AttentionFetch& fetch) {
    Operand& operand = operands_[static_cast<std::size_t>(fetch.operand)];
    const bool value = fetch.operand == hw::AttentionOperand::kValue;
    const std::uint64_t earlier = value ? scores_requested_ : values_requested_;
    const std::uint64_t from = std::max(place_free(fetch), earlier);
    const std::uint64_t row = operand.address + fetch.row * operand.pitch;
    const std::uint64_t arrived =
        operand.decoder != nullptr
            ? read(operand.port, row, operand.token_bytes, from)
            : read(operand.port, row + fetch.head * operand.head_bytes, operand.head_bytes, from);
    std::uint64_t& requested = value ? values_requested_ : scores_requested_;
    requested = std::max(requested, static_cast<std::uint64_t>(operand.port.next_issue()) - 1);
    const bool waits = operand.decoder != nullptr && decodes_on_array();
    const bool decodes = operand.decoder != nullptr && !waits;
    arrivals_.push_back({decodes ? decode(operand, arrived) : arrived, !waits});
  }

  std::uint64_t decode(const Operand& operand, std::uint64_t from) {
    const std::uint64_t done = decoder_lines_.take(*operand.decoder, operand.head_bytes, from).done;
    decoded_ = std::max(decoded_, done);
    return done;
  }

  std::uint64_t place_free(const hw::AttentionFetch& fetch) {
    if (fetch.free_after == 0) return 0;
    const Operand& operand = operands_[static_cast<std::size_t>(fetch.operand)];
    while (operand.over.size() < fetch.free_after &&
           (step_ < fetch.step || !in_step_ || access_ < fetch.access)) {
      go_on();
    }
    return operand.over.size() < fetch.free_after ? start_ + window_end_ + shift_
                                                  : operand.over[fetch.free_after - 1];
  }

  void go_on() {
    if (!in_step_) {
      begin_step();
    } else if (access_ < plan_.steps[step_].phase.accesses.size()) {
      take_access();
    } else {
      end_step();
    }
  }

  void hold(std::uint64_t offset, std::uint64_t cycle) {
    const std::uint64_t planned = start_ + offset + shift_;
    if (cycle > planned) shift_ += cycle - planned;
  }

  void begin_step() {
    const hw::AttentionStep& step = plan_.steps[step_];
    in_step_ = true;
    access_ = code_ = 0;
    shift_ = window_end_ = 0;
    start_ = end_;
    if (step.spmm) {
      claim(step.part.sum_bytes);
      softmax_start_ = std::max(scored_.front() + score_latency_, softmax_free_);
      scored_.pop_front();
      return;
    }
    hold(0, mask_arrived_[step.part.head]);
    claim(step.part.score_bytes);
    if (step_ == 0 && decodes_on_array()) decode_on_array();
  }

  void claim(std::uint64_t bytes) {
    claimed_ += bytes;
    for (; claimed_ > machine_.accumulator.kib * hw::kKib; leaving_.pop_front()) {
      hold(0, leaving_.front().until);
      claimed_ -= leaving_.front().bytes;
    }
  }

  void take_codes_until(std::uint64_t offset) {
    const hw::AttentionStep& step = plan_.steps[step_];
    for (; code_ < step.phase.codes.size() && step.phase.codes[code_].cycle <= offset; ++code_) {
      hold(step.phase.codes[code_].cycle, softmax_start_ + step.codes_ready[code_]);
    }
  }

  void take_access() {
    const hw::RowAccess& access = plan_.steps[step_].phase.accesses[access_];
    if (access.end != window_end_) end_window();
    window_end_ = access.end;
    take_codes_until(access.cycle);
    if (taken_ < plan_.fetches.size() && plan_.fetches[taken_].step == step_ &&
        plan_.fetches[taken_].access == access_) {
      Arrival& row = arrivals_[taken_];
      hold(access.cycle, row.ready);
      if (!row.decoded) {
        const Operand& operand = operands_[static_cast<std::size_t>(plan_.fetches[taken_].operand)];
        hold(access.cycle, decode(operand, start_ + access.cycle + shift_));
        row.decoded = true;
      }
      ++taken_;
    }
    ++operands_[static_cast<std::size_t>(access.operand)].open;
    ++access_;
  }

  void end_window() {
    for (Operand& operand : operands_) {
      operand.over.resize(operand.over.size() + std::exchange(operand.open, 0),
                          start_ + window_end_ + shift_);
    }
  }

  void end_step() {
    const hw::AttentionStep& step = plan_.steps[step_];
    end_window();
    take_codes_until(step.phase.cycles);
    end_ = start_ + step.phase.cycles + shift_;
    if (step.spmm) {
      if (!step.codes_ready.empty()) {
        softmax_free_ = softmax_start_ + step.codes_ready.back() -
                        hw::stage_info(hw::StageOp::kSoftmax).latency;
      }
      claimed_ -= step.part.score_bytes;
      const std::uint64_t start = std::max(end_, output_free_);
      output_free_ = start + step.part.tile.count * output_interval_;
      leaving_.push_back({step.part.sum_bytes, output_free_ + output_fill_});
    } else {
      scored_.push_back(end_);
    }
    ++step_;
    in_step_ = false;
  }

  /// A phase of the array before the scores: of all rows in flight.
  void decode_on_array() {
    for (const Arrival& arrival : arrivals_) {
      if (!arrival.decoded) hold(0, arrival.ready);
    }
    const std::uint64_t from = start_ + shift_;
    for (std::size_t i = 0; i < arrivals_.size(); ++i) {
      if (arrivals_[i].decoded) continue;
      arrivals_[i] = {decode(operands_[static_cast<std::size_t>(plan_.fetches[i].operand)], from),
                      true};
    }
    hold(0, decoded_);
  }

  const AttentionGroup& group_;
  const hw::Machine& machine_;
  const hw::AttentionPlan plan_;
  ReplayMemory memory_;
  std::vector<Operand> operands_;
  ReplayPort index_port_;
  std::uint64_t mask_address_ = 0;
  std::vector<std::uint64_t> mask_arrived_;  ///< by head
  std::vector<Arrival> arrivals_;            ///< by fetch
  hw::HeadMixLines decoder_lines_;
  std::uint64_t decoded_ = 0;
  std::uint64_t scores_requested_ = 0, values_requested_ = 0;

  std::size_t step_ = 0, access_ = 0, code_ = 0;
  std::size_t taken_ = 0;
  bool in_step_ = false;
  std::uint64_t start_ = 0, shift_ = 0, window_end_ = 0, end_ = 0;
  std::deque<std::uint64_t> scored_;  ///< ends of scores whose products with V are to come
  const std::uint64_t score_latency_;
  std::uint64_t softmax_start_ = 0, softmax_free_ = 0;
  std::uint64_t claimed_ = 0;
  std::deque<Leaving> leaving_;
  std::uint64_t output_free_ = 0, output_fill_ = 0, output_interval_ = 0;
};

}  // namespace

std::uint64_t replay_attention(const AttentionGroup& group, const hw::Machine& machine) {
  return AttentionReplay(group, machine).run();
}

}  // namespace systole::mapper
