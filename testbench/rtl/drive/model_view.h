#pragma once

#include <verilated.h>
#include <verilated_fst_c.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "testbench/rtl/drive/system_time.h"

namespace systole::testbench {

/// What the model says of the operation in progress, as signals in scope "model" of the waveform
/// of a block in RTL: its outputs in the beat that the RTL hands over, the cycle of the operation
/// that this is, and the cycle with which it should end.
///
/// In a system it says as well when that is. The RTL does one operation after the other, and the
/// system may overlap them: one that begins before the last one shown has ended is not shown, so
/// that each has the cycles that it has in the system. The signal `operation` counts all of them.
class ModelView {
 public:
  /// `lanes`: outputs in a beat, 32 bits each. `time`: of the system, or null: operations follow
  /// one another, with all that is between them.
  ModelView(std::size_t lanes, std::shared_ptr<const SystemTime> time)
      : time_(std::move(time)), outputs_(lanes, 0) {}
  ModelView(const ModelView&) = delete;
  ModelView& operator=(const ModelView&) = delete;

  /// Adds the signals to a trace that is not open yet. The view must outlive it.
  void attach(VerilatedFst& trace);

  /// An operation begins that should give the words of `expected` (null: not known, shown as 0)
  /// and take `contract` cycles. The words must stay until the next call.
  void begin(const std::int32_t* expected, std::uint64_t contract);
  /// Cycle of the operation, the first is 1.
  void set_cycle(std::uint64_t cycle);
  /// The beat with the words from `first` on, `count` of them.
  void set_beat(std::size_t first, std::size_t count);
  /// A beat with these words.
  void set_words(const std::int32_t* words, std::size_t count);

  [[nodiscard]] bool has_time() const { return time_ != nullptr; }
  /// When the clock falls (0) or rises (1) in the cycle in progress, ps; nothing if that is not
  /// shown. A cycle begins with the falling edge.
  [[nodiscard]] std::optional<std::uint64_t> edge_ps(int level) const;
  /// What follows set_cycle() is over.
  void end_cycle() { in_cycle_ = false; }
  /// The operation is over. Its end, ps, if it is shown.
  std::optional<std::uint64_t> end_operation();

 private:
  template <typename Emit>
  void visit(Emit emit) const;

  const std::shared_ptr<const SystemTime> time_;
  std::vector<IData> outputs_;
  IData operation_ = 0;
  IData cycle_ = 0;
  IData contract_ = 0;
  const std::int32_t* expected_ = nullptr;
  std::uint32_t code_ = 0;  ///< of the first signal
  // Of the operation in progress.
  bool shown_ = false, in_cycle_ = false;
  std::uint64_t first_cycle_ = 0;  ///< of the system
  std::uint64_t now_ = 0;          ///< cycle of the system
  std::uint64_t free_ps_ = 0;      ///< the waveform has changes from before
};

}  // namespace systole::testbench
