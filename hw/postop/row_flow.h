#pragma once

#include <cstdint>
#include <deque>
#include <optional>
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

/// A row-wise stage: slots of as many cycles as a row has vectors, one for each pass, in intervals
/// of stage_interval(). It stands still while a result is not taken, and while a slot waits for its
/// vector (rtl/common/systole_row_sequencer.sv).
class RowStage {
 public:
  /// Of a tile of `rows` rows of `vectors` vectors.
  RowStage(const Stage& stage, std::uint64_t rows, std::uint64_t vectors);

  [[nodiscard]] bool has_result() const { return line_.back() && !taken_; }
  /// Whether a vector that is offered in this cycle goes in; `refused`: a result that is there is
  /// not taken.
  [[nodiscard]] bool takes(bool refused) const { return active() && !refused; }
  void step(bool offered, bool refused);

 private:
  [[nodiscard]] bool active() const;
  void next_slot();

  std::uint64_t rows_, vectors_, slots_, gap_;
  std::deque<bool> line_;  ///< cycles between a vector of the last pass and its result
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
  /// `stage`, which reads row statistics. At the end of the cycle in which a command starts.
  RowFactors(const Stage& stage, std::uint64_t rows, std::uint64_t vectors);

  [[nodiscard]] bool valid() const { return valid_; }
  /// `taken`: a vector has taken it in this cycle.
  void step(bool taken);

 private:
  std::vector<std::uint64_t> cycles_;             ///< that each unit takes
  std::vector<std::optional<std::uint64_t>> at_;  ///< cycles so far of the row in it
  std::uint64_t rows_ = 0, vectors_ = 1, left_ = 0;
  bool valid_ = false;
};

/// A chain's stages. In each cycle: has_result(), and step() with what becomes of it.
class StageFlow {
 public:
  StageFlow() = default;
  /// Of a tile of `rows` x `cols`, at the end of the cycle in which its command starts.
  StageFlow(const Chain& chain, std::uint64_t rows, std::uint64_t cols, std::uint64_t lanes);

  /// A vector of results is there; `offered`: one of sums is.
  [[nodiscard]] bool has_result(bool offered) const;
  /// Returns whether the vector that is offered goes in. `refused`: the result is not taken.
  bool step(bool offered, bool refused);

 private:
  /// The vectors that leave the pipeline, or the one that is offered if it has no stage.
  [[nodiscard]] bool pipeline_result(bool offered) const;
  /// A vector is where it has to be divided, and its reciprocal is not there.
  [[nodiscard]] bool divides_late(bool offered) const;
  [[nodiscard]] bool wants_reciprocal(bool offered) const;

  /// Whether the last stage takes a vector that the pipeline has for it.
  [[nodiscard]] bool last_takes(bool refused) const;

  std::deque<bool> pipeline_;               ///< cycles in it that hold a vector
  std::optional<std::uint64_t> divide_at_;  ///< cycles of the stages before the one that divides
  RowFactors factors_;
  std::optional<RowStage> row_;
  std::optional<std::deque<bool>> norm_;  ///< the same of a layer_norm_apply at the end
};

}  // namespace systole::hw
