#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
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
  /// What `work` returns. Our blocks keep the protocol, or it is our error. A user's may not: then
  /// it is an InputError that names the folder.
  template <typename Work>
  auto run(Work work) const {
    try {
      return work();
    } catch (const hw::InputError&) {
      throw;
    } catch (const std::runtime_error& error) {
      if (counts_->source.empty()) throw;
      throw hw::InputError(hw::printable(counts_->source) + ": " + error.what());
    }
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
