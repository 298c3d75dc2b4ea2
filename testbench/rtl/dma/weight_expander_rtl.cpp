#include "testbench/rtl/dma/weight_expander_rtl.h"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "Vweight_expander_16_checked.h"
#include "Vweight_expander_4_checked.h"
#include "testbench/rtl/drive/ports.h"
#include "testbench/rtl/drive/verilated_dut.h"

namespace systole::testbench {
namespace {

constexpr std::uint32_t kExpanderWordBytes = 8;

template <typename Model, std::uint32_t kLanes>
class WeightExpander final : public WeightExpanderRtl {
 public:
  explicit WeightExpander(const RtlOptions& options) : dut_(options) {
    dut_->write_i = dut_->start_i = 0;
    dut_->format_i = 1;
    dut_->cols_i = 1;
    dut_.reset();
  }

  [[nodiscard]] std::uint32_t lanes() const override { return kLanes; }
  [[nodiscard]] std::uint32_t max_cols() const override { return 2 * kLanes + 8; }
  [[nodiscard]] std::uint64_t cycles() const override { return dut_.cycles(); }
  [[nodiscard]] bool failed() const override { return dut_.failed(); }

  std::vector<ExpandedRun> expand(const std::vector<PackedRun>& runs, std::uint64_t gap) override {
    std::vector<ExpandedRun> results(runs.size());
    std::size_t coming = 0, leaving = 0;
    std::uint64_t wait = 0;
    std::size_t at = 0;  // bytes of the run that comes in
    const std::uint64_t first = dut_.cycles();
    for (std::size_t i = 0; i < runs.size(); ++i) {
      results[i].weights.assign(std::size_t{hw::kGroupWeights} * runs[i].cols, 0);
    }
    while (leaving < runs.size()) {
      const std::uint64_t now = dut_.cycles() - first;
      dut_->write_i = dut_->start_i = 0;
      const bool there = coming < runs.size() && at >= runs[coming].bytes.size();
      if (coming < runs.size() && !there && wait == 0) {
        const PackedRun& run = runs[coming];
        dut_->write_i = 1;
        dut_->address_i = static_cast<SData>(at);
        std::uint64_t word = 0;
        for (std::size_t i = 0; i < kExpanderWordBytes && at + i < run.bytes.size(); ++i) {
          word |= std::uint64_t{run.bytes[at + i]} << (8 * i);
        }
        dut_->data_i = word;
        at += kExpanderWordBytes;
        results[coming].arrived = now;
      }
      if (wait != 0) --wait;
      dut_.settle();
      if (there && dut_->ready_o != 0) {
        dut_->start_i = 1;
        dut_->format_i = static_cast<CData>(runs[coming].format);
        dut_->cols_i = static_cast<CData>(runs[coming].cols);
        results[coming].started = now;
        ++coming;
        at = 0;
        wait = gap;
        dut_.settle();
      }
      if (dut_->valid_o != 0) take(runs[leaving], results[leaving], now, leaving);
      dut_.show_cycle(dut_.cycles());
      dut_.show_words(words_.data(), words_.size());
      dut_.end_cycle(true);
      if (now > kMostCycles) throw std::runtime_error("weight_expander: a run does not end");
    }
    dut_->write_i = dut_->start_i = 0;
    return results;
  }

 private:
  static constexpr std::uint64_t kMostCycles = 1U << 22;

  void take(const PackedRun& run, ExpandedRun& result, std::uint64_t now, std::size_t& leaving) {
    const std::uint32_t row = dut_->row_o, col = dut_->col_o;
    for (std::uint32_t l = 0; l < kLanes; ++l) {
      const bool masked = (dut_->mask_o >> l & 1U) == 0;
      const auto weight = static_cast<std::int8_t>(get_lane<8>(dut_->data_o, l));
      if (l < words_.size()) words_[l] = weight;
      if (masked != (col + l >= run.cols) || (masked && weight != 0)) {
        throw std::runtime_error("weight_expander: a lane with and without a column");
      }
      if (!masked) result.weights[std::size_t{row} * run.cols + col + l] = weight;
    }
    if (row != hw::kGroupWeights - 1 || col + kLanes < run.cols) return;
    result.placed = now;
    ++leaving;
  }

  VerilatedDut<Model> dut_;
  std::array<std::int32_t, kExpanderViewWords> words_{};
};

}  // namespace

std::unique_ptr<WeightExpanderRtl> make_weight_expander(std::uint32_t lanes,
                                                        const RtlOptions& options) {
  if (lanes == 4) {
    return std::make_unique<WeightExpander<Vweight_expander_4_checked, 4>>(options);
  }
  if (lanes == 16) {
    return std::make_unique<WeightExpander<Vweight_expander_16_checked, 16>>(options);
  }
  throw std::invalid_argument("weight_expander: " + std::to_string(lanes) + " lanes");
}

PackedRun random_run(std::mt19937_64& random, std::uint32_t max_cols) {
  PackedRun run;
  run.format = static_cast<hw::WeightFormat>(1 + random() % 3);
  run.cols = static_cast<std::uint32_t>(1 + random() % max_cols);
  run.bytes.resize(hw::packed_group_bytes(run.format, run.cols));
  for (std::uint8_t& byte : run.bytes) byte = static_cast<std::uint8_t>(random());
  // Scales of MX near those whose weights are neither zero nor saturated, but for a few.
  for (std::uint32_t c = 0; hw::is_mx(run.format) && c < run.cols; ++c) {
    if (random() % 8 != 0) run.bytes[c] = static_cast<std::uint8_t>(120 + random() % 22);
  }
  return run;
}

void check_weight_expander(WeightExpanderRtl& expander, const std::vector<PackedRun>& runs,
                           std::uint64_t gap, RtlCounts& counts) {
  const std::vector<ExpandedRun> found = expander.expand(runs, gap);
  std::uint64_t free = 0;  // when the expander has taken all of the run before
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const PackedRun& run = runs[i];
    std::vector<std::uint8_t> expected(found[i].weights.size());
    hw::expand_group(run.format, run.bytes.data(), run.cols, expected.data(), run.cols);
    bool equal = true;
    for (std::size_t j = 0; j < expected.size(); ++j) {
      equal = equal && static_cast<std::int8_t>(expected[j]) == found[i].weights[j];
    }
    // A run begins in the cycle after its last word, or as the one before ends.
    const hw::ExpansionCycles cycles = hw::expansion_cycles(run.cols, expander.lanes(), 256);
    const std::uint64_t begin = std::max(found[i].arrived + 1, free);
    free = begin + cycles.per_group;
    equal = equal && found[i].started == begin && found[i].placed == free + cycles.fill;
    ++counts.operations;
    counts.cycles += found[i].placed - found[i].started;
    counts.mismatches += equal ? 0 : 1;
  }
}

}  // namespace systole::testbench
