#include "testbench/rtl/axi/axi_sram_rtl.h"

#include <string>

#include "Vaxi_sram_16_checked.h"
#include "Vaxi_sram_4_checked.h"
#include "base/error.h"
#include "testbench/rtl/drive/axi_responder_pins.h"
#include "testbench/rtl/drive/verilated_dut.h"

namespace systole::testbench {
namespace {

template <typename Model>
class VerilatedSram final : public AxiSramRtl {
 public:
  VerilatedSram(unsigned bytes, const RtlOptions& options) : bytes_(bytes), dut_(options) {
    settle(none_);
  }

  void settle(hw::AxiPins& pins) override {
    drive_responder_pins(dut_, pins, bytes_);
    dut_->aw_burst_i = static_cast<CData>(pins.aw.burst);
    dut_->ar_burst_i = static_cast<CData>(pins.ar.burst);
    dut_.settle();
    take_responder_pins(dut_, pins, bytes_);
    dut_.show_cycle(++cycle_);
  }

  // Who waits for whom is the manager's to say, so a cycle without progress is none of a hang.
  void edge() override { dut_.end_cycle(true); }

  [[nodiscard]] bool failed() const override { return dut_.failed(); }

 private:
  const unsigned bytes_;
  hw::AxiPins none_;
  VerilatedDut<Model> dut_;
  std::uint64_t cycle_ = 0;
};

}  // namespace

std::unique_ptr<AxiSramRtl> make_axi_sram(unsigned bytes, const RtlOptions& options) {
  if (bytes == 4) return std::make_unique<VerilatedSram<Vaxi_sram_4_checked>>(bytes, options);
  if (bytes == 16) return std::make_unique<VerilatedSram<Vaxi_sram_16_checked>>(bytes, options);
  throw hw::InputError("axi_sram RTL: data of " + std::to_string(bytes) +
                       " bytes, expected 4 or 16");
}

}  // namespace systole::testbench
