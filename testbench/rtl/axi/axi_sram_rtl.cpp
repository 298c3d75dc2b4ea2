#include "testbench/rtl/axi/axi_sram_rtl.h"

#include <string>
#include <type_traits>

#include "Vaxi_sram_16_checked.h"
#include "Vaxi_sram_4_checked.h"
#include "base/error.h"
#include "testbench/rtl/drive/ports.h"
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
    dut_->aw_valid_i = pins.aw.valid;
    dut_->aw_id_i = static_cast<CData>(pins.aw.id);
    dut_->aw_addr_i = static_cast<IData>(pins.aw.address);
    dut_->aw_len_i = pins.aw.len;
    dut_->aw_size_i = pins.aw.size;
    dut_->aw_burst_i = static_cast<CData>(pins.aw.burst);
    dut_->ar_valid_i = pins.ar.valid;
    dut_->ar_id_i = static_cast<CData>(pins.ar.id);
    dut_->ar_addr_i = static_cast<IData>(pins.ar.address);
    dut_->ar_len_i = pins.ar.len;
    dut_->ar_size_i = pins.ar.size;
    dut_->ar_burst_i = static_cast<CData>(pins.ar.burst);
    dut_->w_valid_i = pins.w.valid;
    dut_->w_last_i = pins.w.last;
    for (unsigned lane = 0; lane < bytes_; ++lane) {
      set_lane<8>(dut_->w_data_i, lane, pins.w.data[lane]);
    }
    dut_->w_strb_i = static_cast<std::decay_t<decltype(dut_->w_strb_i)>>(pins.w.strobes.to_ulong());
    dut_->b_ready_i = pins.b.ready;
    dut_->r_ready_i = pins.r.ready;
    dut_.settle();
    pins.aw.ready = dut_->aw_ready_o != 0;
    pins.w.ready = dut_->w_ready_o != 0;
    pins.ar.ready = dut_->ar_ready_o != 0;
    pins.b.valid = dut_->b_valid_o != 0;
    pins.b.id = dut_->b_id_o;
    pins.b.response = static_cast<hw::AxiResponse>(dut_->b_resp_o);
    pins.r.valid = dut_->r_valid_o != 0;
    pins.r.id = dut_->r_id_o;
    pins.r.response = static_cast<hw::AxiResponse>(dut_->r_resp_o);
    pins.r.last = dut_->r_last_o != 0;
    for (unsigned lane = 0; lane < bytes_; ++lane) {
      pins.r.data[lane] = static_cast<std::uint8_t>(get_lane<8>(dut_->r_data_o, lane));
    }
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
