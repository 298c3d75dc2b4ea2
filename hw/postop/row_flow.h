#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "hw/postop/postop.h"

/// The stages of a chain cycle by cycle, for whoever feeds them from a memory and hands on what
/// they deliver: the cycle contracts of rtl/store/systole_row_passes.sv, systole_chain_stages.sv
/// systole_row_reciprocals.sv and systole_row_norms.sv. What a tile takes where nothing is late is
/// chain_cycles().
namespace systole::hw {

/// How often a chain reads each row: once, unless it has a row-wise stage.
[[nodiscard]] std::uint32_t row_passes(const Chain& chain);

/// The order in which a chain reads the vectors of a tile. In an interval a row is read for the
/// first time, the one before it for the second and the one before that for the third time; with
/// two passes a row is read twice in its interval.
class RowOrder {
 public:
  RowOrder() = default;
  /// `rows` rows of `vectors` vectors, at least one each; `passes`: 1 to 3.
  RowOrder(std::uint64_t rows, std::uint64_t vectors, std::uint32_t passes)
      : rows_(rows), vectors_(vectors), passes_(passes) {}

  [[nodiscard]] bool over() const { return interval_ == intervals(); }
  [[nodiscard]] std::uint64_t row() const { return passes_ == 3 ? interval_ - slot_ : interval_; }
  [[nodiscard]] std::uint64_t vector() const { return vector_; }
  void next();

 private:
  [[nodiscard]] std::uint64_t intervals() const { return passes_ == 3 ? rows_ + 2 : rows_; }
  /// Whether the slot has a row in this interval.
  [[nodiscard]] bool has_row() const {
    return passes_ != 3 || (slot_ <= interval_ && interval_ - slot_ < rows_);
  }

  std::uint64_t rows_ = 0, vectors_ = 1;
  std::uint32_t passes_ = 1;
  std::uint64_t interval_ = 0, vector_ = 0;
  std::uint32_t slot_ = 0;
};

/// Stages that move as one: a line of so many cycles.
class StageLine {
 public:
  explicit StageLine(std::uint64_t cycles = 0) : cycles_(cycles), at_(cycles) {}

  /// A vector is at its end; `offered`: one is at its begin. They are the same in a line of none.
  [[nodiscard]] bool has_result(bool offered) const {
    return cycles_ == 0 ? offered : count_ != 0 && at_[first_] + cycles_ == moves_;
  }
  /// All vectors move on; what is at the end leaves. `in`: one comes.
  void move(bool in) {
    if (cycles_ == 0) return;
    if (has_result(false)) {
      first_ = first_ + 1 == cycles_ ? 0 : first_ + 1;
      --count_;
    }
    if (in) {
      const std::uint64_t last = first_ + count_;
      at_[last < cycles_ ? last : last - cycles_] = moves_;
      ++count_;
    }
    ++moves_;
  }

 private:
  std::uint64_t cycles_, moves_ = 0;
  std::vector<std::uint64_t> at_;  ///< in a ring: moves before each vector in it came
  std::uint64_t first_ = 0, count_ = 0;
};

/// A row-wise stage: slots of as many cycles as a row has vectors, one for each pass, in intervals
/// of stage_interval(). It stands still while a result is not taken, and while a slot waits for its
/// vector (rtl/common/systole_row_sequencer.sv).
class RowStage {
 public:
  /// Of a tile of `rows` rows of `vectors` vectors, in intervals of `interval` cycles, with
  /// `behind` cycles of stages behind it.
  RowStage(const Stage& stage, std::uint64_t rows, std::uint64_t vectors, std::uint64_t interval,
           std::uint64_t behind);

  [[nodiscard]] bool has_result() const { return line_.has_result(false) && !taken_; }
  /// Whether a vector that is offered in this cycle goes in; `refused`: a result that is there is
  /// not taken.
  [[nodiscard]] bool takes(bool refused) const { return active() && !refused; }
  void step(bool offered, bool refused);

 private:
  [[nodiscard]] bool active() const;
  void next_slot();

  std::uint64_t rows_, vectors_, slots_, gap_;
  StageLine line_;  ///< between a vector of the last pass and its result
  bool busy_ = false, taken_ = false;
  bool row_b_ = false, row_c_ = false;  ///< slots with a row: the row after that of the next one
  std::uint64_t row_ = 0, slot_ = 0, at_ = 0;
};

/// What a stage needs of each row, made of the row statistics ahead of the rows by serial units,
/// one after the other: the reciprocal by which it divides, or mean and factor of a LayerNorm. What
/// a unit has waits in it until the next one is free, and after the last one until all vectors of
/// the row before have come.
class RowFactors {
 public:
  RowFactors() = default;
  /// `stage`, which has serial units. At the end of the cycle in which a command starts.
  RowFactors(const Stage& stage, std::uint64_t rows, std::uint64_t vectors);

  [[nodiscard]] bool valid() const { return valid_; }
  /// `taken`: a vector has taken it in this cycle.
  void step(bool taken);

 private:
  static constexpr std::int64_t kNoRow = INT64_MIN;

  std::size_t count_ = 0;                                               ///< units
  std::array<std::int64_t, std::tuple_size_v<FactorCycles>> cycles_{};  ///< that each takes
  /// Cycles so far of the row in it; less than none of the first one, which takes longer.
  std::array<std::int64_t, std::tuple_size_v<FactorCycles>> at_{};
  std::uint64_t rows_ = 0, vectors_ = 1, left_ = 0;
  bool valid_ = false;
};

/// A chain's stages. In each cycle: has_result(), and step() with what becomes of it. Those of
/// chains that the gates do not have move like those that these have: what is behind a stage that
/// waits for its row moves with it.
class StageFlow {
 public:
  StageFlow() = default;
  /// Of a tile of `rows` x `cols`, at the end of the cycle in which its command starts. `before`:
  /// latency of a line ahead of them.
  StageFlow(const Chain& chain, std::uint64_t rows, std::uint64_t cols, std::uint64_t lanes,
            std::uint64_t before = 0);

  /// A vector of results is there; `offered`: one of sums is.
  [[nodiscard]] bool has_result(bool offered) const;
  /// Returns whether the vector that is offered goes in. `refused`: the result is not taken.
  bool step(bool offered, bool refused);

 private:
  /// A vector is where it needs what the serial units make.
  [[nodiscard]] bool wants_factor(bool offered) const {
    return waits_ && before_.has_result(offered);
  }
  /// What leaves the line, if it has a factor where it needs one.
  [[nodiscard]] bool line_result(bool offered) const {
    return line_.has_result(waits_ ? wants_factor(offered) && factors_.valid() : offered);
  }
  /// Whether what comes after the line takes a vector.
  [[nodiscard]] bool last_takes(bool refused) const;

  bool waits_ = false;  ///< a stage of the line needs a factor, and holds what is before it
  StageLine before_;    ///< of these
  StageLine line_;      ///< the others, up to one that knows rows
  RowFactors factors_;
  bool has_factors_ = false;
  std::optional<RowStage> row_;
  std::optional<StageLine> norm_;  ///< of a stage with factors that has no stage before it hold
};

}  // namespace systole::hw
