#pragma once

#include <verilated.h>
#include <verilated_fst_c.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace systole::testbench {

/// What the model says of the operation in progress, as signals in scope "model" of the waveform
/// of a block in RTL: its outputs in the beat that the RTL hands over, the cycle of the operation
/// that this is, and the cycle with which it should end.
class ModelView {
 public:
  /// `lanes`: outputs in a beat, 32 bits each.
  explicit ModelView(std::size_t lanes) : outputs_(lanes, 0) {}
  ModelView(const ModelView&) = delete;
  ModelView& operator=(const ModelView&) = delete;

  /// Adds the signals to a trace that is not open yet. The view must outlive it.
  void attach(VerilatedFst& trace);

  /// An operation begins that should give the words of `expected` (null: not known, shown as 0)
  /// and take `contract` cycles. The words must stay until the next call.
  void begin(const std::int32_t* expected, std::uint64_t contract);
  /// Cycle of the operation, the first is 1.
  void set_cycle(std::uint64_t cycle) { cycle_ = static_cast<IData>(cycle); }
  /// The beat with the words from `first` on, `count` of them.
  void set_beat(std::size_t first, std::size_t count);
  /// A beat with these words.
  void set_words(const std::int32_t* words, std::size_t count);

 private:
  template <typename Emit>
  void visit(Emit emit) const;

  std::vector<IData> outputs_;
  IData operation_ = 0;
  IData cycle_ = 0;
  IData contract_ = 0;
  const std::int32_t* expected_ = nullptr;
  std::uint32_t code_ = 0;  ///< of the first signal
};

}  // namespace systole::testbench
