#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/error.h"
#include "testbench/rtl/attention/head_mix_line_rtl.h"
#include "testbench/rtl/attention/line_work.h"
#include "testbench/rtl/drive/back_pressure.h"
#include "testbench/rtl/drive/ports.h"
#include "testbench/rtl/drive/verilated_dut.h"

/// Drives rtl/attention/systole_head_mix_line.sv, or RTL with its ports.
namespace systole::testbench {

/// The beats of tokens of `heads` heads: each group of `macs` features with all heads.
struct MixBeats {
  std::size_t features, heads, macs;

  [[nodiscard]] std::size_t groups() const { return (features + macs - 1) / macs; }
  [[nodiscard]] std::size_t head(std::size_t beat) const { return beat % heads; }
  [[nodiscard]] std::size_t group(std::size_t beat) const { return beat / heads; }
  /// First byte of a beat in [tokens][heads][features], and number of bytes.
  [[nodiscard]] std::size_t first(std::size_t beat) const {
    return (group(beat) / groups() * heads + head(beat)) * features + group(beat) % groups() * macs;
  }
  [[nodiscard]] std::size_t count(std::size_t beat) const {
    return std::min(macs, features - group(beat) % groups() * macs);
  }
};

template <typename Model>
class HeadMixUnit final : public HeadMixLineRtl {
 public:
  explicit HeadMixUnit(const RtlOptions& options) : dut_(options) {}

  Cycles mix(const hw::HeadMix& mix, const std::int8_t* in, std::size_t features,
             std::size_t tokens, std::int8_t* out, const std::int8_t* expected,
             const BackPressure& pressure) override {
    configure(mix);
    const MixBeats from{features, mix.in_heads, kLineMacs};
    const MixBeats to{features, mix.out_heads, kLineMacs};
    const std::size_t groups = tokens * from.groups();
    Cycles cycles;
    cycles.groups.resize(groups);
    BackPressureInjector injector(pressure);
    OfferedBeat beat;
    std::size_t taken = 0;
    std::size_t delivered = 0;
    while (delivered < groups * mix.out_heads) {
      beat.offer(taken < groups * mix.in_heads, cycles.total.cycles == 0 ? nullptr : &injector,
                 [&] { drive(in + from.first(taken), from.count(taken)); });
      dut_->in_valid_i = beat.offered();
      dut_->out_ready_i = !injector.refuses();
      dut_.settle();
      ++cycles.total.cycles;
      dut_.show_cycle(cycles.total.cycles);
      if (dut_->out_valid_o && !dut_->out_ready_i) ++cycles.total.stalled;
      const std::uint64_t now = cycles.total.cycles - cycles.total.stalled;
      const bool took = beat.take(dut_->in_ready_o);
      if (took) cycles.groups[from.group(taken++)].arrival = now;
      const bool delivers = dut_->out_valid_o && dut_->out_ready_i;
      if (delivers) {
        if (dut_->out_head_o != to.head(delivered)) fail("delivers another head");
        collect(out, to.first(delivered), to.count(delivered), expected);
        cycles.groups[to.group(delivered++)].done = now;
      }
      dut_.end_cycle(took || delivers);
    }
    dut_->in_valid_i = 0;
    dut_.end_operation();
    return cycles;
  }

  [[nodiscard]] bool failed() const override { return dut_.failed(); }

 private:
  static constexpr std::uint8_t kJunk = 0x5a;

  [[noreturn]] static void fail(const char* what) {
    throw std::runtime_error(std::string("head_mix_line RTL: ") + what);
  }

  void write(MixField field, std::size_t o, std::size_t i, std::int32_t data) {
    dut_->config_field_i = static_cast<CData>(field);
    dut_->config_out_i = static_cast<CData>(o);
    dut_->config_in_i = static_cast<CData>(i);
    dut_->config_data_i = static_cast<IData>(data);
    dut_.tick();
  }

  void configure(const hw::HeadMix& mix) {
    if (std::max(mix.in_heads, mix.out_heads) > kMaxHeads) {
      throw hw::InputError("head_mix_line RTL: " + std::to_string(mix.in_heads) + " to " +
                           std::to_string(mix.out_heads) + " heads, expected at most " +
                           std::to_string(kMaxHeads));
    }
    dut_->in_valid_i = 0;
    dut_->in_heads_i = static_cast<CData>(mix.in_heads);
    dut_->out_heads_i = static_cast<CData>(mix.out_heads);
    dut_->rounding_i = static_cast<CData>(mix.rounding);
    dut_->config_valid_i = 1;
    for (std::size_t o = 0; o < mix.out_heads; ++o) {
      for (std::size_t i = 0; i < mix.in_heads; ++i) {
        write(MixField::kWeight, o, i, mix.weights[o * mix.in_heads + i]);
      }
      write(MixField::kBias, o, 0, mix.bias[o]);
      write(MixField::kMultiplier, o, 0, mix.factors[o].multiplier);
      write(MixField::kShift, o, 0, mix.factors[o].shift);
    }
    dut_->config_valid_i = 0;
  }

  void drive(const std::int8_t* data, std::size_t count) {
    for (std::size_t lane = 0; lane < kLineMacs; ++lane) {
      set_lane<8>(dut_->in_i, lane, lane < count ? static_cast<std::uint8_t>(data[lane]) : kJunk);
    }
  }

  void collect(std::int8_t* out, std::size_t first, std::size_t count,
               const std::int8_t* expected) {
    for (std::size_t lane = 0; lane < count; ++lane) {
      out[first + lane] = static_cast<std::int8_t>(get_lane<8>(dut_->out_o, lane));
    }
    if (!dut_.is_shown() || expected == nullptr) return;
    const std::vector<std::int32_t> words(expected + first, expected + first + count);
    dut_.show_words(words.data(), count);
  }

  VerilatedDut<Model> dut_;
};

}  // namespace systole::testbench
