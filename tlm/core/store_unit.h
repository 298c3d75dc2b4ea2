#pragma once

#include <array>
#include <map>
#include <vector>

#include "hw/attention/head_mix.h"
#include "hw/dma/operand_arrivals.h"
#include "hw/dma/result_rows.h"
#include "hw/engines.h"
#include "hw/postop/result_cycles.h"
#include "hw/postop/store_set_up.h"
#include "tlm/core/execution_unit.h"
#include "tlm/core/local_memory.h"
#include "tlm/dma/dma_port.h"

namespace systole::tlm_model {

/// Accumulator -> post-op chain -> DRAM or scratchpad, `lanes` elements a cycle. Tensor operands (a
/// residual) come from DRAM into a buffer ahead of their use: those of the next command as soon as
/// they may be read (hw/dma/store_schedule.h), unless rows of the command before need some. A tile
/// that the buffer has no room for comes in halves of it.
///
/// A chain that transposes collects `lanes` rows, which leave as columns, one per cycle, while the
/// next rows come in.
///
/// Rows of a store with a mix go through the encoder lines (hw/attention/head_mix.h) after the
/// chain. Their input register holds one row: a row leaves the chain when work on the last group of
/// the previous row has begun, which is later by what a full write queue holds up its results.
class StoreUnit final : public ExecutionUnit {
 public:
  const std::unique_ptr<DmaPort> write_dma;
  const std::unique_ptr<DmaPort> read_dma;  ///< tensor operands

  StoreUnit(const sc_core::sc_module_name& name, const hw::Machine& machine,
            CommandProcessor& processor, LocalMemory& memory, hw::PostopEngine& engine,
            hw::HeadMixEngine& encoder, bool functional, const DmaFactory& make_dma);

  /// Elements times stages; an encoder's outputs are one stage more.
  [[nodiscard]] std::uint64_t operations() const noexcept { return operations_; }
  [[nodiscard]] std::uint64_t encoder_macs() const noexcept { return encoder_macs_; }

  void watch(SignalRecorder& recorder) override;
  /// A program begins.
  void forget_chain() noexcept { set_up_.forget(); }

 private:
  static constexpr std::size_t kFill = kOwnCauses;
  static constexpr std::size_t kMemory = kOwnCauses + 1;
  static constexpr std::size_t kBankConflict = kOwnCauses + 2;
  static constexpr std::size_t kEncoder = kOwnCauses + 3;

  /// Timing of one command in progress.
  struct Flow {
    std::uint64_t started;
    hw::ResultCycles cycles;
    hw::ResultRows rows = {};    ///< on their way out
    std::uint64_t written = 0;   ///< cycle of the last acknowledgement
    std::uint64_t fill = 0;      ///< cycles until the first row begins to leave
    std::uint64_t columns = 0;   ///< of a transposition, which leave after the last row
    std::uint64_t row_done = 0;  ///< the cycle after that in which the last row has left the chain
    std::uint64_t busy = 0;      ///< cycles in which it worked on rows: of each, per_row at most
    std::uint64_t refused = 0;   ///< cycles for which others at the accumulator held it up
    std::uint64_t learnt = 0;    ///< rows of which that is accounted for
    const hw::cmd::Result* result = nullptr;
    const hw::cmd::Store* store = nullptr;  ///< the same; null: it is a move
    const hw::cmd::Move* move = nullptr;
    std::uint64_t row_bytes = 0, pitch = 0;  ///< of what is written
    std::uint64_t bits = 8;                  ///< of a result
    const hw::HeadMix* encoder = nullptr;    ///< the rows' mix, if they have one
    std::uint64_t encoder_wait = 0;          ///< cycles for which it held up the chain
    std::uint64_t encoder_delay = 0;  ///< between a row's end in the chain and in the encoder
    std::uint64_t encoder_free = 0;   ///< cycle in which it can take the next row
    bool has_operands = false;        ///< tensors
    bool released = false;            ///< it is known when the sums are read
    Entry* entry = nullptr;
    const hw::Chain* chain = nullptr;
    bool with_values = false;  ///< requests move values
    // Of these:
    std::uint64_t block = 0;           ///< rows that are computed at once
    std::uint64_t computed = 0;        ///< rows of which they are known
    std::uint64_t valued = 0;          ///< bytes of the row after these, if it is known in part
    std::uint64_t computed_bytes = 0;  ///< of a row's results
    bool observed = false;             ///< steps and cycles are kept for an observer of memory
    /// Of an observer, for the rows from `row` on.
    struct Rows {
      std::uint64_t row, step;
    };
    std::vector<Rows> steps = {};
    std::vector<std::uint64_t> read = {};  ///< cycle in which each row was read for the last time
    std::vector<StoredUse> writes = {};    ///< of a move

    /// Something is known that others have to learn().
    [[nodiscard]] bool has_news() const;
  };
  class Pace;

  [[nodiscard]] Flow begin(const Entry& entry, const hw::Chain& chain);
  /// Until the first sums of a command are read, from its start on: micro-code and parameters.
  std::uint64_t set_up_cycles(const Entry& entry, const hw::Chain& chain);
  [[nodiscard]] hw::StoreSetUp::Command set_up_of(const Entry& entry, const hw::Chain& chain) const;
  [[nodiscard]] hw::ParameterWords parameters_of(const hw::cmd::Result& result,
                                                 const hw::Chain& chain) const;
  /// What StoreSetUp wants to know of them.
  [[nodiscard]] auto reads_of(const hw::ParameterWords& parameters) const {
    return [this, parameters](std::uint64_t word, std::uint64_t from, std::uint64_t to) {
      memory_.advance_array();
      return memory_.array.read_words(memory_.scratchpad.service(), parameters, word, from, to);
    };
  }
  /// Reads parameters of the next command with what the scratchpad had left before a cycle.
  void read_ahead(std::uint64_t until);
  std::optional<std::uint64_t> execute(Entry& entry) override;
  std::vector<hw::Counter> counters() const override;
  [[nodiscard]] std::uint64_t moved_bytes() const override {
    return write_dma->stats().bytes + operand_bytes_;
  }
  /// What the encoder needs to know of time.
  struct RowTimes {
    std::uint64_t row_done = 0, per_row = 0;
  };
  /// Posts what the command does to values; false: its requests have to move them.
  bool post(const Entry& entry, const Flow& flow, const hw::Chain& chain);
  /// Rows of a result from the accumulator through the chain and what comes after it, to where they
  /// go. `operands` has what is not the same for all rows of a command.
  void apply(const hw::cmd::Result& result, const hw::Chain& chain, const hw::HeadMix* encoder,
             hw::ChainOperands operands, std::uint64_t first, const RowTimes& times);
  /// Whether values of the command can move apart from its requests; where they are then.
  bool moves_apart(const Entry& entry, hw::ChainOperands& operands, hw::Range& written) const;

  /// A process: asks for tensor operands.
  void fetch_ahead();
  /// The command whose operands can be asked for now, which have not been; null: there is none.
  [[nodiscard]] Entry* wants_operands() const;
  [[nodiscard]] const hw::Chain& chain_of(const Entry& entry) const;
  void begin_operands(const Entry& entry);
  void fetch_operands(std::uint64_t first, std::uint64_t rows, std::uint64_t not_before);
  /// Of the command in progress, as far as is known.
  [[nodiscard]] hw::InputTimes input_times(const Flow& flow) const;
  /// Vectors of which that is.
  [[nodiscard]] std::uint64_t operands_known() const {
    return operands_of_ == running_ ? arrivals_.known() : 0;
  }
  /// Waits until more is known of what rows are made of: operands of more vectors than `known`, or
  /// that those to come do not matter for a cycle more; who uses the accumulator.
  void await_inputs(const Flow& flow, std::uint64_t known);
  void await_sums(const Flow& flow);
  /// A process: sums of a store are read while its requests wait for their slots.
  void follow_inputs();
  /// It does so for this one, as more is known of its operands and of who uses the accumulator.
  void follow(Flow& flow);
  /// Cycle in which more is known of who uses the accumulator.
  [[nodiscard]] std::uint64_t sums_known_at(const Flow& flow) const;
  /// The first `rows` rows have left the chain, in cycles before `cycle`.
  void use_operands(std::uint64_t rows, std::uint64_t cycle);
  /// Values of the rows up to `end` of which they are not known, as requests of the command bring
  /// and take them.
  void compute(Flow& flow, std::uint64_t end);
  void compute_rows(std::uint64_t rows, std::uint64_t row_done, Flow& flow);
  /// The same of row `row`, and of rows after it, as far as their operands are there.
  void compute_known(std::uint64_t row, Flow& flow);

  /// Accounts for rows that have left the chain, and lets others write over the sums once they are
  /// read, as far as that is known.
  void learn(Flow& flow);
  /// The next row leaves the chain for something that takes all of it at once. Returns the cycle
  /// after that in which its last vector leaves, not before `not_before`.
  std::uint64_t leave(std::uint64_t not_before, Flow& flow);
  /// A row of `bytes` bytes leaves the chain, or what has been made of rows, the first of them row
  /// `number`. It goes to byte `offset` of what the command writes; its values are in `result_`
  /// from byte `at` on.
  void put(std::uint64_t number, std::uint64_t offset, std::uint64_t at, std::uint64_t bytes,
           Flow& flow);
  void write_row(std::uint64_t number, std::uint64_t offset, const std::uint8_t* data,
                 std::uint64_t bytes, Flow& flow);
  void move_row(std::uint64_t number, std::uint64_t offset, std::uint64_t bytes, Flow& flow);
  /// Words of the scratchpad, one a cycle from `from` on, each when its bank is free. Returns the
  /// cycle after the last one.
  std::uint64_t serve_words(std::uint64_t address, std::uint64_t bytes, std::uint64_t words,
                            std::uint64_t from);
  /// A row through the encoder.
  void encode(std::uint64_t row, Flow& flow);
  /// `rows` rows through the transposer, which holds as many.
  void transpose(std::uint64_t first, std::uint64_t rows, Flow& flow);

  /// Reports which bytes the command used.
  void observe_uses(Flow& flow, const hw::Chain& chain);

  /// The time until `until` went to a cause, or to work.
  struct Step {
    std::uint64_t until;
    std::size_t cause;
  };
  static constexpr std::size_t kWork = ~std::size_t{0};
  /// Keeps a step of the command in progress while a waveform is recorded.
  void keep_step(std::uint64_t until, std::size_t cause) {
    if (recorder() != nullptr) steps_.push_back({until, cause});
  }
  /// Accounts for the steps in their order, and shows the rows.
  void account_steps(const Flow& flow);
  /// Shows the functional units that the chain needs as busy until now, and their rows.
  void show_units(const Flow& flow, const hw::Chain& chain, const Entry& entry);

  const bool functional_;
  const std::uint32_t lanes_;
  const std::uint64_t beat_bytes_;                  ///< of the bus
  const std::array<std::uint64_t, 2> piece_bytes_;  ///< of a result: of a store, of a move
  LocalMemory& memory_;
  hw::PostopEngine& engine_;
  hw::HeadMixEngine& encoder_engine_;
  /// A tensor operand: its rows of the whole tile.
  struct OperandStream {
    hw::DramTile tile;
    std::uint64_t element, row_bytes;
    std::vector<std::uint8_t> rows;
  };
  std::vector<OperandStream> operands_;
  hw::OperandArrivals arrivals_;
  std::uint64_t operand_block_ = 0;           ///< rows of them that are asked for at a time
  std::vector<std::uint64_t> operands_used_;  ///< by block of rows that have been used: cycle
  std::uint64_t operand_bytes_ = 0;           ///< of the commands that have ended
  const Entry* operands_of_ = nullptr;        ///< whose operands are in the buffer, or on their way
  std::uint64_t operands_free_ = 0;           ///< cycle in which the rows of those before had left
  Entry* running_ = nullptr;                  ///< the command that has started
  bool uses_operands_ = false;                ///< it has some, and not all of its rows have left
  std::uint64_t started_ = 0;                 ///< cycle in which the last command has
  sc_core::sc_event operands_arrive_, operands_go_, started_or_ended_;
  Flow* followed_ = nullptr;  ///< of the store in progress, until its sums have been read
  sc_core::sc_event follow_;
  std::vector<std::uint8_t> result_;   ///< rows of the current store
  std::vector<std::uint8_t> chained_;  ///< rows between the chain and what comes after it
  hw::HeadMixLines encoder_;
  hw::StoreSetUp set_up_;
  hw::StoreQueue queue_;
  const std::uint64_t loads_known_;  ///< cycles ahead, of what they write: no request ends sooner
  std::uint64_t encoder_begun_ = 0;  ///< cycle in which its input register was free again
  std::vector<Step> steps_;
  std::vector<std::uint64_t> rows_left_;  ///< cycle in which each row left the chain, if recorded
  /// Shown of a functional unit that the machine has.
  struct UnitSignals {
    SignalRecorder::Signal state, op, command, row;
  };
  const hw::Machine::Postop machine_units_;  ///< which it has
  const bool has_encoder_;
  std::map<hw::StageUnit, UnitSignals> units_;
  SignalRecorder::Signal row_ = 0, encoder_state_ = 0, encoder_row_ = 0;  ///< shown
  std::uint64_t operations_ = 0;
  std::uint64_t accumulator_reads_ = 0;
  std::uint64_t softmax_reads_ = 0;
  std::uint64_t encoder_macs_ = 0;
};

}  // namespace systole::tlm_model
