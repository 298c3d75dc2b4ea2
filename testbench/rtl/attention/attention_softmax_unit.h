#pragma once

#include <algorithm>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "hw/postop/stage.h"
#include "testbench/rtl/attention/attention_softmax_rtl.h"
#include "testbench/rtl/drive/ports.h"
#include "testbench/rtl/drive/stream.h"
#include "testbench/rtl/drive/verilated_dut.h"
#include "testbench/rtl/postop/softmax_pins.h"

namespace systole::testbench {

/// Drives rtl/attention/systole_attention_softmax.sv, or RTL with its ports.
template <typename Model>
class AttentionSoftmaxUnit final : public AttentionSoftmaxRtl {
 public:
  AttentionSoftmaxUnit(std::uint32_t lanes, const RtlOptions& options)
      : lanes_(lanes), dut_(options) {}

  RtlCycles run(const ScoreRows& rows, const hw::SoftmaxConstants& constants,
                std::vector<std::uint8_t>& codes, std::vector<std::uint32_t>& sums,
                const std::int32_t* expected, const BackPressure& pressure) override {
    const std::vector<Beat> beats = beats_of(rows);
    codes.assign(rows.scores.size(), 0);
    sums.assign(rows.ends.size(), 1);
    if (beats.empty()) return {};
    set_softmax(dut_, constants);
    dut_.show_operation(expected, contract(rows));
    return run_stream(
        dut_, beats.size(), beats.size(), [&](std::size_t i) { drive(rows, beats[i]); },
        [&](std::size_t i) { collect(beats[i], codes, sums); }, pressure);
  }

  [[nodiscard]] std::uint64_t contract(const ScoreRows& rows) const override {
    const std::size_t beats = beats_of(rows).size();
    return beats == 0 ? 0 : beats + hw::stage_info(hw::StageOp::kSoftmax).latency;
  }
  [[nodiscard]] bool failed() const override { return dut_.failed(); }

 private:
  struct Beat {
    std::size_t row, first, count;
    std::int32_t maximum;
    bool last;
    [[nodiscard]] std::uint32_t mask() const { return (std::uint32_t{1} << count) - 1; }
  };

  [[nodiscard]] std::vector<Beat> beats_of(const ScoreRows& rows) const {
    std::vector<Beat> beats;
    for (std::size_t row = 0, begin = 0; row < rows.ends.size(); begin = rows.ends[row++]) {
      const std::size_t end = rows.ends[row];
      const std::int32_t maximum =
          hw::softmax_maximum(rows.scores.data() + begin, nullptr, end - begin);
      for (std::size_t first = begin; first < end; first += lanes_) {
        const std::size_t count = std::min<std::size_t>(lanes_, end - first);
        beats.push_back({row, first, count, maximum, first + count == end});
      }
    }
    return beats;
  }

  void drive(const ScoreRows& rows, const Beat& beat) {
    constexpr std::uint32_t kJunk = 0x5a5a5a5a;
    dut_->mask_i = static_cast<std::decay_t<decltype(dut_->mask_i)>>(beat.mask());
    dut_->last_i = beat.last;
    dut_->maximum_i = static_cast<IData>(beat.maximum);
    for (std::size_t lane = 0; lane < lanes_; ++lane) {
      set_lane<32>(
          dut_->data_i, lane,
          lane < beat.count ? static_cast<std::uint32_t>(rows.scores[beat.first + lane]) : kJunk);
    }
  }

  void collect(const Beat& beat, std::vector<std::uint8_t>& codes,
               std::vector<std::uint32_t>& sums) {
    dut_.show_beat(beat.first, beat.count);
    if (dut_->mask_o != beat.mask() || (dut_->last_o != 0) != beat.last) {
      throw std::runtime_error("attention_softmax RTL: a row ends in the wrong place");
    }
    for (std::size_t lane = 0; lane < lanes_; ++lane) {
      const std::uint64_t code = get_lane<8>(dut_->data_o, lane);
      if (lane < beat.count) {
        codes[beat.first + lane] = static_cast<std::uint8_t>(code);
      } else if (code != 0) {
        throw std::runtime_error("attention_softmax RTL: a masked lane is not 0");
      }
    }
    if (beat.last) sums[beat.row] = dut_->row_sum_o;
  }

  std::uint32_t lanes_;
  VerilatedDut<Model> dut_;
};

}  // namespace systole::testbench
