#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <systemc>
#include <vector>

#include "base/accounting.h"
#include "hw/attention/timing/attention_plan.h"
#include "hw/engines.h"
#include "hw/machine/machine.h"
#include "hw/program/program.h"
#include "tlm/common/signals.h"
#include "tlm/common/time.h"
#include "tlm/common/value_queue.h"
#include "tlm/dma/dma_port.h"

namespace systole::tlm_model {

/// The denser and the sparser attention engine with their buffers. Q, K, V and the mask stream in
/// row by row from DRAM, in the order of need and as far ahead as the buffers have room; outputs
/// leave through a post-op pipeline of their own.
///
/// The lines work in step: an operand that is late holds up all of them.
class AttentionUnit final : public sc_core::sc_module, public Watched {
 public:
  const std::unique_ptr<DmaPort> query_dma, key_dma, value_dma, index_dma, write_dma;

  /// Where the cycles of one head went. Without the outputs that leave after it.
  struct HeadCycles {
    std::uint32_t op = 0;  ///< operator of the command
    std::uint32_t head = 0;
    std::uint64_t sddmm = 0, spmm = 0;  ///< both with what held them up
    std::uint64_t softmax = 0;          ///< busy cycles of the softmax
    std::uint64_t memory = 0;           ///< of sddmm and spmm: a row or the mask was late
    std::uint64_t conflict = 0;         ///< a bank was wanted too often
    std::uint64_t codes = 0;            ///< the softmax was late
    std::uint64_t output = 0;           ///< sums of earlier tiles had not left
    std::uint64_t decode = 0;           ///< a row was there, but not decoded or still in stages
    std::uint64_t decoding = 0;         ///< rows that this head was the first to need were decoded
    /// From the command's start until the last row of Q and K that this head was the first to need
    /// could be used: what the link to memory takes, decoding included.
    std::uint64_t link = 0;
    std::uint64_t lines_busy = 0, lines_conflict = 0;  ///< line cycles
    [[nodiscard]] std::uint64_t total() const { return sddmm + spmm; }
    /// Cycles in which no line could go on, whatever bank it wanted.
    [[nodiscard]] std::uint64_t waiting() const { return memory + codes + output + decode; }
    [[nodiscard]] std::uint64_t busy() const { return total() - conflict - waiting(); }
    /// Sums, of `link` the largest.
    void add(const HeadCycles& other);
  };
  /// What was done, apart from the time it took.
  struct Work {
    std::uint64_t macs = 0;  ///< of the cells that are computed, pruned ones of dense blocks too
    std::uint64_t decoder_macs = 0;
    std::uint64_t forwarded = 0;     ///< Q rows that the denser engine had for the sparser one
    std::uint64_t buffer_bytes = 0;  ///< written to and read from the buffers of Q, K, V and masks
    std::uint64_t score_bytes = 0;   ///< the same of scores and sums, in the accumulator
    std::uint64_t elements = 0;      ///< through the softmax and through stages

    void add(const Work& other);
    /// As far as it costs energy; buffers are in the scratchpad, scores and sums in the
    /// accumulator.
    [[nodiscard]] hw::EnergyEvents events() const;
  };
  /// Bytes read from and written to memory.
  struct Traffic {
    std::uint64_t query = 0, key = 0, value = 0, index = 0, written = 0;
    [[nodiscard]] std::uint64_t qkv() const { return query + key + value; }
  };
  /// Of a command: the heads in order, and the cycle at which the last output was written.
  struct Outcome {
    std::vector<HeadCycles> heads;
    std::uint64_t released = 0;   ///< lines and buffers are free
    std::uint64_t completed = 0;  ///< all outputs are in memory
    Work work;
  };

  AttentionUnit(const sc_core::sc_module_name& name, const hw::Machine& machine,
                hw::PostopEngine& postop, hw::AttentionEngine& lines, hw::HeadMixEngine& mix,
                bool functional, const DmaFactory& make_dma);

  /// Values are computed by the actions of this queue, which outlives the run.
  void share_values(ValueQueue& values) noexcept { values_ = &values; }

  /// Executes a command of operator `op` that passed check_program(). Call it from one SC_THREAD;
  /// it returns at the cycle `released`.
  Outcome execute(const hw::cmd::Attention& attention, std::uint32_t op,
                  const hw::Program& program);

  [[nodiscard]] const std::vector<HeadCycles>& heads() const noexcept { return heads_; }
  /// Of all commands together.
  [[nodiscard]] const Work& work() const noexcept { return work_; }
  [[nodiscard]] Traffic traffic() const {
    return {query_dma->stats().bytes, key_dma->stats().bytes, value_dma->stats().bytes,
            index_dma->stats().bytes, write_dma->stats().bytes};
  }
  /// All ports, to be bound to the bus.
  [[nodiscard]] std::vector<DmaPort*> ports();
  /// By its ports, so far.
  [[nodiscard]] std::uint64_t moved_bytes();
  /// From `cycle` on, time counts in the account or it does not.
  void set_counting(bool on, std::uint64_t cycle) { account_.set_counting(on, cycle); }
  [[nodiscard]] hw::BlockReport report(std::uint64_t cycles) const;

  void watch(SignalRecorder& recorder) override;
  [[nodiscard]] std::uint64_t settled_ps() const override;

 private:
  class Run;

  /// Only while a waveform is recorded.
  struct Signals {
    SignalRecorder* recorder;
    SignalRecorder::Signal state, head, query;
    SignalRecorder::Signal denser, sparser, softmax, decoder;
  };
  /// Cycles [from, to) of an engine went to this state.
  void show(SignalRecorder::Signal Signals::*engine, std::uint64_t from, std::uint64_t to,
            std::uint64_t value) const {
    if (!signals_) return;
    signals_->recorder->hold((*signals_).*engine, clock_.edge_ps(from), clock_.edge_ps(to), value);
  }

  /// What follows from a command's mask and sizes alone.
  struct Prepared {
    std::vector<hw::SparseHead> heads;
    hw::AttentionPlan plan;
  };
  /// Just these. The mask by its bytes: programs come and go, and another one may have another mask
  /// at the same index and address.
  struct Key {
    std::array<std::uint32_t, 6> sizes;  ///< heads, queries, keys, features; decoding or not
    std::vector<std::uint8_t> mask;
    bool operator<(const Key& other) const {
      return sizes != other.sizes ? sizes < other.sizes : mask < other.mask;
    }
  };
  /// Shared: actions may outlast what is prepared.
  [[nodiscard]] std::shared_ptr<const Prepared> prepare(const hw::cmd::Attention& attention,
                                                        const hw::Program& program);

  /// Rows of Q, K and V, one after the other, all heads side by side.
  using Rows = std::array<const std::uint8_t*, 3>;
  /// An operand in main memory.
  struct Operand {
    hw::DramTile tile;
    std::uint64_t rows, features;
    const std::uint8_t* data = nullptr;
    const hw::HeadMix* decoder = nullptr;  ///< memory has latent tokens that this decodes
    const hw::Chain* stages = nullptr;     ///< rows go through it on their way in
  };
  /// Its rows as the lines need them.
  [[nodiscard]] std::vector<std::uint8_t> take_rows(const Operand& operand, std::size_t heads);
  /// Posts what a command does to values; false: its requests have to move them.
  bool post(const hw::cmd::Attention& attention, const hw::Program& program,
            const std::shared_ptr<const Prepared>& prepared);
  /// The rows that leave after a step of a command.
  [[nodiscard]] std::vector<std::uint8_t> compute(const hw::cmd::Attention& attention,
                                                  const hw::Program& program,
                                                  const std::vector<hw::SparseHead>& heads,
                                                  const hw::HeadTile& part, const Rows& rows);

  /// Outputs of a tile in flight to memory.
  struct Outputs {
    std::uint64_t address, pitch, row_bytes, rows;
    std::uint64_t first_ready, interval;  ///< cycle of the first row, and from one to the next
    std::vector<std::uint8_t> data;       ///< empty without values
  };

  void write();
  void account(std::uint64_t started, const Outcome& outcome);
  [[nodiscard]] std::uint64_t now() const { return clock_.cycle_from(sc_core::sc_time_stamp()); }

  const hw::Machine machine_;
  const bool functional_;
  const Clock clock_;
  hw::PostopEngine& postop_;
  hw::AttentionEngine& lines_;
  hw::HeadMixEngine& mix_;
  ValueQueue* values_ = nullptr;
  std::map<Key, std::shared_ptr<const Prepared>> prepared_;
  std::deque<Outputs> outputs_;
  sc_core::sc_event output_added_, outputs_written_;
  std::uint64_t written_ = 0;  ///< cycle of the last acknowledgement
  std::vector<HeadCycles> heads_;
  Work work_;
  hw::BlockAccount account_;
  std::optional<Signals> signals_;
  std::optional<std::uint64_t> executes_from_;  ///< cycle; none: no command
};

}  // namespace systole::tlm_model
