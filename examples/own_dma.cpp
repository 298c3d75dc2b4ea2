/// A DMA of one's own in a core of Systole: for loads it asks for one piece after the other,
/// without overlap. All other ports are the core's. Prints cycles by the size of a piece; 0 leaves
/// Systole's DMA in its place.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <systemc>
#include <vector>

#include "base/error.h"
#include "cpu.h"
#include "encoder.h"
#include "hw/description/machine_file.h"
#include "tlm/bus/system_bus.h"
#include "tlm/common/time.h"
#include "tlm/dma/dma_port.h"
#include "tlm/memory/dram.h"

namespace {

using systole::tlm_model::Core;
using systole::tlm_model::DmaPort;
using systole::tlm_model::DmaUse;

// The SystemC library prints a banner before it calls sc_main().
[[maybe_unused]] const int kNoBanner = ::setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);

class OwnDma final : public DmaPort {
 public:
  OwnDma(const sc_core::sc_module_name& name, const systole::hw::Machine& machine,
         std::uint64_t piece)
      : DmaPort(name), clock_(machine.core.clock_mhz), piece_(piece) {}

  std::uint64_t move(tlm::tlm_command command, const Rows& rows, std::uint64_t not_before,
                     const OnArrival& on_arrival) override {
    std::uint64_t done = not_before;
    for (std::uint64_t row = 0; row < rows.count; ++row) {
      std::uint8_t* const data = rows.data == nullptr ? nullptr : rows.data + row * rows.data_pitch;
      done = transfer(command, rows.address + row * rows.pitch, data, rows.bytes, done);
      if (on_arrival) on_arrival({row, rows.bytes, done, done, true});
    }
    return done;
  }

  std::uint64_t read_runs(const std::vector<Run>& runs, const OnArrival& on_arrival) override {
    std::uint64_t done = 0, row = 0;
    for (const Run& run : runs) {
      done = transfer(tlm::TLM_READ_COMMAND, run.address, run.data, run.bytes, done);
      if (on_arrival) on_arrival({row, run.bytes, done, done, run.ends_row});
      row += run.ends_row ? 1 : 0;
    }
    return done;
  }

  std::uint64_t next_issue() const noexcept override { return next_; }
  void synchronise() override { clock_.wait_until(next_); }

 private:
  /// Each piece is asked for when the one before has arrived. Returns the cycle in which the last
  /// has.
  std::uint64_t transfer(tlm::tlm_command command, std::uint64_t address, std::uint8_t* data,
                         std::uint64_t bytes, std::uint64_t not_before) {
    next_ = std::max({next_, not_before, clock_.cycle_from(sc_core::sc_time_stamp())});
    for (std::uint64_t at = 0; at < bytes;) {
      const auto length =
          static_cast<unsigned>(std::min(piece_ - (address + at) % piece_, bytes - at));
      clock_.wait_until(next_);
      tlm::tlm_generic_payload payload;
      payload.set_command(command);
      payload.set_address(address + at);
      payload.set_data_ptr(data == nullptr ? nullptr : data + at);
      payload.set_data_length(length);
      payload.set_streaming_width(length);
      sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
      socket->b_transport(payload, delay);
      if (!payload.is_response_ok()) SC_REPORT_ERROR("/own/dma", "refused by the bus");
      next_ = clock_.cycle_from(sc_core::sc_time_stamp() + delay);
      ++stats_.requests;
      stats_.bytes += length;
      at += length;
    }
    return next_;
  }

  const systole::tlm_model::Clock clock_;
  const std::uint64_t piece_;
  std::uint64_t next_ = 0;
};

struct OwnSystem : sc_core::sc_module {
  systole::tlm_model::SystemBus bus;
  systole::tlm_model::Dram dram;
  Core core;
  Cpu cpu;
  sc_core::sc_signal<bool> interrupt{"interrupt"};

  /// `piece`: bytes, or 0 for Systole's DMA.
  OwnSystem(const sc_core::sc_module_name& name, const systole::hw::Machine& machine,
            const Encoder& encoder, std::uint64_t piece)
      : sc_module(name),
        bus("bus", machine.bus),
        dram("dram", machine, true),
        core("core", machine, systole::tlm_model::make_models(machine), true,
             [piece](const char* port, const systole::hw::Machine& of,
                     DmaUse use) -> std::unique_ptr<DmaPort> {
               if (use == DmaUse::kLoad && piece != 0) {
                 return std::make_unique<OwnDma>(port, of, piece);
               }
               return systole::tlm_model::make_request_dma(port, of, use);
             }),
        cpu("cpu", encoder, systole::hw::kRegistersBase, systole::hw::kDramBase) {
    bus.connect_target(dram.socket, systole::hw::kDramBase, dram.capacity());
    bus.connect_target(core.registers, systole::hw::kRegistersBase, Core::kRegisterBytes);
    bus.connect_initiator(cpu.socket);
    for (DmaPort* port : core.ports()) bus.connect_initiator(port->socket);
    core.interrupt(interrupt);
    cpu.interrupt(interrupt);
  }
};

}  // namespace

int sc_main(int argc, char* argv[]) try {
  const std::uint64_t piece = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 64;
  const systole::hw::Machine machine = systole::hw::find_machine("transformer");
  const Encoder encoder(machine);
  OwnSystem system("system", machine, encoder, piece);
  sc_core::sc_start();
  std::printf("%llu cycles, %llu requests for loads, output %s\n",
              static_cast<unsigned long long>(system.cpu.cycles),
              static_cast<unsigned long long>(system.core.load.dma->stats().requests),
              system.cpu.correct ? "as expected" : "WRONG");
  return system.cpu.correct ? 0 : 1;
} catch (const systole::hw::InputError& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
