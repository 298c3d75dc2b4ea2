#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "testbench/rtl/drive/model_view.h"
#include "testbench/rtl/drive/rtl_counts.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// Compares what a block in RTL does with its model, and counts.
class RtlCheck {
 public:
  /// `counts` must outlive this. Of `options` it takes the view of the waveform.
  RtlCheck(RtlCounts& counts, const RtlOptions& options) : counts_(&counts), view_(options.view) {}

  void operation() { ++counts_->operations; }
  /// A run of the block begins that should take `contract` cycles. `expected`: its words for the
  /// waveform, or null.
  void begin(std::uint64_t contract, const std::int32_t* expected = nullptr) {
    contract_ = contract;
    if (view_) view_->begin(expected, contract);
  }
  void end(std::uint64_t cycles) { end(cycles, cycles == contract_); }
  /// `meets`: the cycles are those of the contract.
  void end(std::uint64_t cycles, bool meets) {
    counts_->cycles += cycles;
    mismatch(!meets);
  }
  template <typename T>
  void values(const T* found, const T* expected, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) mismatch(found[i] != expected[i]);
  }
  void mismatch(bool differs) { counts_->mismatches += differs ? 1 : 0; }
  /// Counts failed assertions, once for all.
  void assertions(bool failed) { mismatch(failed && !std::exchange(failed_, true)); }

 private:
  RtlCounts* counts_;
  std::shared_ptr<ModelView> view_;
  std::uint64_t contract_ = 0;
  bool failed_ = false;
};

}  // namespace systole::testbench
