#include "testbench/rtl/core/core_ports.h"

#include <optional>
#include <stdexcept>
#include <string>

#include "Vcore_4_checked.h"
#include "testbench/rtl/core/core_watch.h"
#include "testbench/rtl/drive/axi_manager_pins.h"
#include "testbench/rtl/drive/verilated_dut.h"

namespace systole::testbench {
namespace {

class BridgedCore final : public CorePorts {
 public:
  explicit BridgedCore(const RtlOptions& options) : dut_(options) {}

  hw::AxiManager& port(Port port) override { return ports_.at(port); }

  void start(const CoreCase& test) override {
    dut_->in_order_i = test.slots == hw::SlotOrder::kIssue;
    dut_->overlap_i = static_cast<CData>(test.overlap);
    dut_->address_i = test.address;
    dut_->row_bytes_i = 0;
    dut_->fetch_ar_ready_i = dut_->fetch_r_valid_i = dut_->ar_ready_i = dut_->r_valid_i = 0;
    dut_->operand_ar_ready_i = dut_->operand_r_valid_i = 0;
    dut_->aw_ready_i = dut_->w_ready_i = dut_->b_valid_i = dut_->start_i = 0;
    dut_.reset();
    dut_->start_i = 1;
    run_ = {};
    run_.commands.resize(test.program.commands.size() - 1);
    watch_.emplace(run_.commands);
    edges_ = moved_ = 0;
    stopped_at_.reset();
    hangs_ = false;
    active_ = true;
  }

  [[nodiscard]] const CoreRun& run() const override {
    if (stopped_at_) {
      throw std::invalid_argument("command " + std::to_string(*stopped_at_) +
                                  " is none for the RTL");
    }
    if (hangs_) {
      throw std::runtime_error("the core in RTL hangs at command " +
                               std::to_string(watch_->next()));
    }
    if (active_) throw std::logic_error("the core has not finished");
    return run_;
  }
  [[nodiscard]] bool failed() const override { return dut_.failed() || dut_->error_o != 0; }

 private:
  /// Cycles without a start or an end of a command, more than any of them takes.
  static constexpr std::uint64_t kHang = 10'000'000;

  class ManagerPort final : public hw::AxiManager {
   public:
    ManagerPort(BridgedCore& core, Port port) : core_(core), port_(port) {}
    void settle(hw::AxiPins& pins) override { core_.settle(port_, pins); }
    void edge() override { core_.edge(); }
    [[nodiscard]] bool active() const override { return core_.active_; }

   private:
    BridgedCore& core_;
    const Port port_;
  };

  void settle(Port port, hw::AxiPins& pins) {
    if (port == kStores) {
      settle_stores(pins);
    } else if (port == kLoads) {
      settle_reads(dut_, pins);
    } else {
      ReadPins read = port == kProgram ? fetch_pins(*dut_) : operand_pins(*dut_);
      settle_reads(read, pins);
    }
  }

  template <typename Pins>
  void settle_reads(Pins& read, hw::AxiPins& pins) {
    drive_read_pins(read, pins, CoreRtl::kBeatBytes);
    dut_.settle();
    take_read_pins(read, pins);
  }

  void settle_stores(hw::AxiPins& pins) {
    drive_write_pins(dut_, pins);
    dut_.settle();
    take_write_pins(dut_, pins, CoreRtl::kBeatBytes);
  }

  void edge() {
    if (++edges_ % kPorts != 0 || !active_) return;
    const std::uint64_t now = dut_.cycles();
    if (dut_->fault_o) stopped_at_ = watch_->next();
    if (watch_->cycle(*dut_, now, [](std::size_t) {})) moved_ = now;
    // Who waits for whom is for the bridges to say, so a cycle without progress is none of a hang.
    dut_.end_cycle(true);
    dut_->start_i = 0;
    dut_.settle();
    run_.done = dut_.cycles();
    hangs_ = now - moved_ > kHang;
    active_ = dut_->done_o == 0 && !stopped_at_ && !hangs_;
  }

  mutable VerilatedDut<Vcore_4_checked> dut_;
  std::array<ManagerPort, kPorts> ports_{ManagerPort{*this, kProgram}, ManagerPort{*this, kLoads},
                                         ManagerPort{*this, kOperands},
                                         ManagerPort{*this, kStores}};
  CoreRun run_;
  std::optional<CoreWatch> watch_;
  std::optional<std::size_t> stopped_at_;
  std::uint64_t edges_ = 0;
  std::uint64_t moved_ = 0;  ///< cycle in which something happened to a command
  bool hangs_ = false;
  bool active_ = false;
};

}  // namespace

std::unique_ptr<CorePorts> make_core_ports(const RtlOptions& options) {
  return std::make_unique<BridgedCore>(options);
}

}  // namespace systole::testbench
