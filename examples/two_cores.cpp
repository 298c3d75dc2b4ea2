/// Two cores on one bus and one DRAM, each with a CPU: how much longer does one take beside the
/// other? The second core's ports go through a network of one's own, which adds latency and moves
/// what the core calls address 0 to its own half of the memory.
#include <tlm_utils/multi_passthrough_initiator_socket.h>
#include <tlm_utils/multi_passthrough_target_socket.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <systemc>

#include "base/error.h"
#include "cpu.h"
#include "encoder.h"
#include "hw/description/machine_file.h"
#include "tlm/bus/system_bus.h"
#include "tlm/memory/dram.h"

namespace {

using systole::tlm_model::Core;
using systole::tlm_model::DmaPort;

// The SystemC library prints a banner before it calls sc_main().
[[maybe_unused]] const int kNoBanner = ::setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);

/// Passes on what comes at its target sockets to the initiator socket of the same number.
class OwnNetwork : public sc_core::sc_module {
 public:
  tlm_utils::multi_passthrough_target_socket<OwnNetwork> ports{"ports"};
  tlm_utils::multi_passthrough_initiator_socket<OwnNetwork> bus{"bus"};

  OwnNetwork(const sc_core::sc_module_name& name, std::uint64_t offset, sc_core::sc_time latency)
      : sc_module(name), offset_(offset), latency_(latency) {
    ports.register_b_transport(this, &OwnNetwork::b_transport);
  }

 private:
  void b_transport(int port, tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
    const std::uint64_t address = payload.get_address();
    payload.set_address(address + offset_);
    delay += latency_;
    bus[port]->b_transport(payload, delay);
    delay += latency_;
    payload.set_address(address);
  }

  const std::uint64_t offset_;
  const sc_core::sc_time latency_;
};

struct TwoCores : sc_core::sc_module {
  static constexpr std::uint64_t kRegisters2 = systole::hw::kRegistersBase + 0x1000;

  systole::tlm_model::SystemBus bus;
  systole::tlm_model::Dram dram;
  Core first, second;
  OwnNetwork network;
  Cpu first_cpu, second_cpu;
  sc_core::sc_signal<bool> first_interrupt{"first_interrupt"}, second_interrupt{"second_interrupt"};

  TwoCores(const sc_core::sc_module_name& name, const systole::hw::Machine& machine,
           const Encoder& encoder, int latency_ns)
      : sc_module(name),
        bus("bus", machine.bus),
        dram("dram", machine, true),
        first("first", machine, systole::tlm_model::make_models(machine), true),
        second("second", machine, systole::tlm_model::make_models(machine), true),
        network("network", dram.capacity() / 2, sc_core::sc_time(latency_ns, sc_core::SC_NS)),
        first_cpu("first_cpu", encoder, systole::hw::kRegistersBase, 0),
        second_cpu("second_cpu", encoder, kRegisters2, dram.capacity() / 2) {
    bus.connect_target(dram.socket, systole::hw::kDramBase, dram.capacity());
    bus.connect_target(first.registers, systole::hw::kRegistersBase, Core::kRegisterBytes);
    bus.connect_target(second.registers, kRegisters2, Core::kRegisterBytes);
    bus.connect_initiator(first_cpu.socket);
    bus.connect_initiator(second_cpu.socket);
    for (DmaPort* port : first.ports()) bus.connect_initiator(port->socket);
    for (DmaPort* port : second.ports()) {
      port->socket.bind(network.ports);
      bus.connect_initiator(network.bus);
    }
    first.interrupt(first_interrupt);
    first_cpu.interrupt(first_interrupt);
    second.interrupt(second_interrupt);
    second_cpu.interrupt(second_interrupt);
  }
};

}  // namespace

int sc_main(int argc, char* argv[]) try {
  const int latency = argc > 1 ? std::atoi(argv[1]) : 0;
  const systole::hw::Machine machine = systole::hw::find_machine("transformer");
  const Encoder encoder(machine);
  TwoCores system("system", machine, encoder, latency);
  sc_core::sc_start();
  for (const Cpu* cpu : {&system.first_cpu, &system.second_cpu}) {
    std::printf("%s: %llu cycles, output %s\n", cpu->basename(),
                static_cast<unsigned long long>(cpu->cycles),
                cpu->correct ? "as expected" : "WRONG");
  }
  std::uint64_t waited = 0;
  for (const auto& initiator : system.bus.core().initiators()) waited += initiator.data_wait;
  std::printf("%llu bus cycles of waiting for a data channel\n",
              static_cast<unsigned long long>(waited));
  return system.first_cpu.correct && system.second_cpu.correct ? 0 : 1;
} catch (const systole::hw::InputError& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
