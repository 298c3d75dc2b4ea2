#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <vector>

#include "hw/attention/head_mix.h"
#include "hw/attention/sparse_attention.h"
#include "hw/attention/sparse_head.h"
#include "hw/attention/timing/attention_plan.h"
#include "hw/attention/timing/mask_stream.h"
#include "tlm/attention/attention_unit.h"

namespace systole::tlm_model {

/// One attention command in progress: walks the plan, brings in rows, and finds out how long each
/// step is held up.
///
/// Arithmetic on cycle numbers rather than simulated events: a row's arrival is known as soon as it
/// has been asked for, and it is asked for in the order of need, so only the DMA ports wait.
class AttentionUnit::Run {
 public:
  /// `with_values`: requests move them.
  Run(AttentionUnit& unit, const hw::cmd::Attention& attention, std::uint32_t op,
      const hw::Program& program, const Prepared& prepared, bool with_values);

  Outcome execute();
  /// Cycle in which the last step was over.
  [[nodiscard]] std::uint64_t end() const noexcept { return end_; }

 private:
  static constexpr std::size_t kOperands = 3;

  /// Rows of an operand in memory and, as far as they have come in, in the buffer.
  struct Operand {
    DmaPort* dma;
    std::uint64_t address, pitch, features;
    std::vector<std::uint8_t> data;   ///< [rows][heads * features]; empty without values
    std::vector<std::uint64_t> over;  ///< by access: cycle from which its row is no longer needed
    std::size_t open = 0;             ///< accesses after these, of the window in progress
    const hw::HeadMix* decoder = nullptr;     ///< memory has latent tokens that this decodes
    std::optional<hw::ChainKernel> stages{};  ///< rows go through it on their way in
    hw::ChainCycles stage_cycles{};           ///< of a row
    std::uint64_t stages_free = 0;            ///< cycle from which they take a row
  };
  /// Cycles from which a row has arrived, and from which it can be used.
  struct Arrival {
    /// `ready` of a row that waits for the array's lines to decode it.
    static constexpr std::uint64_t kNotDecoded = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t arrived, ready;
  };
  /// A head's part of the mask.
  struct HeadMask {
    std::uint64_t offset = 0, bytes = 0;
    std::size_t steps = 0;                ///< until the head is over
    std::uint64_t arrived = 0, over = 0;  ///< cycles of the mask and of the head's end
  };
  /// A part of a mask that streams through half of the index buffer.
  struct StreamedChunk {
    std::size_t step;  ///< that walks it
    hw::MaskChunk chunk;
    std::uint64_t arrived = 0;
  };
  /// Sums that have not left.
  struct Leaving {
    std::uint64_t bytes, until;
  };

  void fetch(const hw::AttentionFetch& fetch);
  /// Cycle from which a row that comes in has a place.
  std::uint64_t place_free(const hw::AttentionFetch& fetch);
  std::uint64_t read(const hw::AttentionFetch& fetch, std::uint64_t not_before);
  void prepare_masks();
  void fetch_next_mask();
  /// Plans the walks of all steps, and asks for what the two halves of the index buffer hold.
  void start_mask_stream();
  void fetch_chunk(StreamedChunk& streamed, std::uint64_t not_before);
  /// With masks that stream: walks until the cycle at which this row can be asked for.
  void keep_up_with(const hw::AttentionFetch& next);
  /// Begins the chunks that the step in progress walks until its cycle `offset`.
  void take_chunks_until(std::uint64_t offset);
  void add_stages(const hw::Program& program);
  /// Sends a row that came in, from this cycle on, through the stages of its operand, and says when
  /// it is done.
  std::uint64_t pass_stages(const hw::AttentionFetch& fetch, std::uint64_t from);
  /// Decodes a row that came in, from this cycle on, and says when it is done.
  std::uint64_t decode(const hw::AttentionFetch& fetch, std::uint64_t from);
  void decode_on_array();
  void note_link(const hw::AttentionFetch& fetch, std::uint64_t ready);
  /// Goes through all steps before this one.
  void advance(std::size_t step);
  void go_on();
  void begin_step();
  void take_access();
  void end_window();
  void end_step();
  void claim(std::uint64_t bytes);
  void count_work(const hw::AttentionStep& step);
  /// Shows the step that is over.
  void show_step(const hw::AttentionStep& step);
  void show_hold(std::uint64_t from, std::uint64_t to, const std::uint64_t& cause);
  void emit(const hw::AttentionStep& step);
  /// The step in progress cannot go on in its cycle `offset` before `cycle`.
  void hold(std::uint64_t offset, std::uint64_t cycle, std::uint64_t& cause);
  void take_codes_until(std::uint64_t offset);
  [[nodiscard]] std::uint64_t window_end() const { return start_ + window_end_ + shift_; }
  [[nodiscard]] std::vector<std::uint8_t> values(const hw::AttentionStep& step);
  [[nodiscard]] HeadMask& mask_of(std::size_t head) { return masks_[mask_of_[head]]; }
  [[nodiscard]] HeadCycles& current() { return outcome_.heads[plan_.steps[step_].part.head]; }

  AttentionUnit& unit_;
  const hw::cmd::Attention& attention_;
  const hw::Program& program_;
  const std::vector<hw::SparseHead>& heads_;
  const hw::AttentionPlan& plan_;
  const bool with_values_;
  const std::uint64_t score_latency_;  ///< of stages before the softmax
  const std::uint64_t started_;
  std::array<Operand, kOperands> operands_;
  std::vector<Arrival> arrivals_;     ///< by fetch
  std::vector<HeadMask> masks_;       ///< of the heads as the engines take them
  std::vector<std::size_t> mask_of_;  ///< [heads] place in masks_
  std::size_t masks_fetched_ = 0;
  std::vector<StreamedChunk> chunks_;  ///< in the order of the walks; empty if masks reside
  std::size_t chunks_begun_ = 0;
  std::vector<std::uint8_t> mask_bytes_;  ///< what came in; empty without values
  std::vector<std::int8_t> latent_;       ///< the token that comes in
  hw::HeadMixLines decoder_lines_;
  std::uint64_t decoded_ = 0;  ///< cycle in which all rows that came in are decoded
  Outcome outcome_;

  std::uint64_t scores_requested_ = 0;  ///< cycle in which the last row of Q and K was asked for
  std::uint64_t values_requested_ = 0;  ///< and of V

  std::size_t step_ = 0, access_ = 0, code_ = 0;  ///< next to happen
  std::size_t taken_ = 0;                         ///< fetches that an access has waited for
  bool in_step_ = false;
  std::uint64_t start_ = 0;       ///< of the step in progress
  std::uint64_t shift_ = 0;       ///< cycles for which it has been held up
  std::uint64_t window_end_ = 0;  ///< of the step's window in progress, not counting these
  std::uint64_t end_ = 0;         ///< of the previous step
  /// Of the step in progress, shown: from this cycle of the phase on, it is held up so much more.
  struct Hold {
    std::uint64_t offset, cycles;
  };
  std::vector<Hold> holds_;

  /// An SDDMM whose SpMM is to come.
  struct Scored {
    std::uint64_t begin, end;
  };
  std::deque<Scored> scored_;
  std::uint64_t scores_begun_ = 0;   ///< those of the SpMM in progress
  std::uint64_t softmax_start_ = 0;  ///< of the SpMM in progress
  std::uint64_t softmax_free_ = 0;   ///< it has taken the rows of the previous tile
  std::uint64_t claimed_ = 0;        ///< bytes of the accumulator
  std::deque<Leaving> leaving_;      ///< oldest first
  std::uint64_t output_free_ = 0;    ///< the pipeline has taken the sums of the previous tile
};

}  // namespace systole::tlm_model
