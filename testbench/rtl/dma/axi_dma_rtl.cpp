#include "testbench/rtl/dma/axi_dma_rtl.h"

#include <stdexcept>
#include <string>
#include <vector>

#include "Vaxi_dma_16.h"
#include "Vaxi_dma_16_checked.h"
#include "Vaxi_dma_4.h"
#include "Vaxi_dma_4_checked.h"
#include "base/error.h"
#include "testbench/rtl/drive/axi_manager_pins.h"
#include "testbench/rtl/drive/ports.h"
#include "testbench/rtl/drive/verilated_dut.h"

namespace systole::testbench {
namespace {

template <typename Model>
class VerilatedDma final : public AxiDmaRtl {
 public:
  VerilatedDma(unsigned bytes, const RtlOptions& options) : bytes_(bytes), dut_(options) {
    dut_->start_i = 0;
  }

  void copy(std::uint64_t source, std::uint64_t target, std::uint64_t bytes,
            const std::uint8_t* expected) override {
    if (source >= kAddresses || target >= kAddresses || bytes > kMaxBytes) {
      throw std::invalid_argument("axi_dma RTL: addresses have 40 bits, lengths 32");
    }
    dut_->start_i = 1;
    dut_->source_i = source;
    dut_->target_i = target;
    dut_->bytes_i = static_cast<IData>(bytes);
    lane_ = target % bytes_;
    expected_ = expected;
    left_ = bytes;
    cycle_ = 0;
    dut_.show_operation(nullptr, 0);
  }

  void settle(hw::AxiPins& pins) override {
    drive_write_pins(dut_, pins);
    drive_read_pins(dut_, pins, bytes_);
    dut_.settle();
    take_write_pins(dut_, pins, bytes_);
    take_read_pins(dut_, pins);
    dut_.show_cycle(++cycle_);
    if (pins.w.valid && pins.w.ready) show_word();
  }

  // Who waits for whom is the subordinate's to say, so a cycle without progress is none of a hang.
  void edge() override {
    dut_.end_cycle(true);
    dut_->start_i = 0;
  }

  [[nodiscard]] bool active() const override { return dut_->start_i != 0 || dut_->busy_o != 0; }
  [[nodiscard]] bool error() const override { return dut_->error_o != 0; }
  [[nodiscard]] bool failed() const override { return dut_.failed(); }

 private:
  /// The bytes that this beat should have, 0 in lanes outside the range.
  void show_word() {
    if (expected_ == nullptr) return;
    std::vector<std::int32_t> words(bytes_ / sizeof(std::int32_t));
    for (; lane_ < bytes_ && left_ != 0; ++lane_, --left_) {
      set_lane<8>(words[0], lane_, *expected_++);
    }
    lane_ = 0;
    dut_.show_words(words.data(), words.size());
  }

  const unsigned bytes_;
  mutable VerilatedDut<Model> dut_;
  const std::uint8_t* expected_ = nullptr;  ///< for the waveform, of the next beat
  std::uint64_t lane_ = 0, left_ = 0, cycle_ = 0;
};

}  // namespace

std::unique_ptr<AxiDmaRtl> make_axi_dma(unsigned bytes, const RtlOptions& options) {
  if (bytes == 4) {
    return make_build<AxiDmaRtl, VerilatedDma<Vaxi_dma_4>, VerilatedDma<Vaxi_dma_4_checked>>(
        options, bytes);
  }
  if (bytes == 16) {
    return make_build<AxiDmaRtl, VerilatedDma<Vaxi_dma_16>, VerilatedDma<Vaxi_dma_16_checked>>(
        options, bytes);
  }
  throw hw::InputError("axi_dma RTL: data of " + std::to_string(bytes) +
                       " bytes, expected 4 or 16");
}

}  // namespace systole::testbench
