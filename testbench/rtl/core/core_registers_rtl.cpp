#include "testbench/rtl/core/core_registers_rtl.h"

#include "Vcore_registers_4_checked.h"
#include "testbench/rtl/drive/axi_responder_pins.h"
#include "testbench/rtl/drive/verilated_dut.h"

namespace systole::testbench {
namespace {

class VerilatedRegisters final : public CoreRegistersRtl {
 public:
  explicit VerilatedRegisters(const RtlOptions& options) : dut_(options) {
    drive_responder_pins(dut_, {}, kBytes);
    set({});
    dut_.settle();
  }

  void set(const Core& core) override {
    dut_->finish_i = core.finish;
    dut_->fault_i = core.fault;
    dut_->stuck_i = core.stuck;
    dut_->call_i = core.call;
    dut_->call_address_i = core.call_address;
  }

  void settle(hw::AxiPins& pins) override {
    drive_responder_pins(dut_, pins, kBytes);
    dut_.settle();
    take_responder_pins(dut_, pins, kBytes);
  }
  void edge() override {
    dut_.show_cycle(++cycle_);
    dut_.end_cycle(true);
  }

  [[nodiscard]] Outputs outputs() const override {
    return {dut_->interrupt_o != 0, dut_->start_o != 0,     dut_->running_o != 0,
            dut_->called_o != 0,    dut_->host_done_o != 0, dut_->program_o};
  }
  [[nodiscard]] bool failed() const override { return dut_.failed(); }

 private:
  mutable VerilatedDut<Vcore_registers_4_checked> dut_;
  std::uint64_t cycle_ = 0;
};

}  // namespace

std::unique_ptr<CoreRegistersRtl> make_core_registers(const RtlOptions& options) {
  return std::make_unique<VerilatedRegisters>(options);
}

}  // namespace systole::testbench
