/// A memory and a CPU of one's own around a core of Systole: the machine's bus, its core, and a
/// memory that answers every request after a fixed time, one after another. Prints cycles by
/// latency.
#include <tlm_utils/simple_target_socket.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <systemc>
#include <vector>

#include "base/error.h"
#include "cpu.h"
#include "encoder.h"
#include "hw/description/machine_file.h"
#include "tlm/bus/system_bus.h"
#include "version.h"

namespace {

using systole::tlm_model::Core;

// The SystemC library prints a banner before it calls sc_main().
[[maybe_unused]] const int kNoBanner = ::setenv("SYSTEMC_DISABLE_COPYRIGHT_MESSAGE", "1", 1);

/// 16 bytes a nanosecond, each request `latency` after the one before it has been served, or after
/// it came. Any TLM-2.0 target that answers b_transport serves a core.
class OwnMemory : public sc_core::sc_module {
 public:
  tlm_utils::simple_target_socket<OwnMemory> socket{"socket"};

  OwnMemory(const sc_core::sc_module_name& name, std::size_t bytes, sc_core::sc_time latency)
      : sc_module(name), bytes_(bytes), latency_(latency) {
    socket.register_b_transport(this, &OwnMemory::b_transport);
    socket.register_transport_dbg(this, &OwnMemory::transport_dbg);
  }

 private:
  void b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
    const bool served = transport_dbg(payload) == payload.get_data_length();
    payload.set_response_status(served ? tlm::TLM_OK_RESPONSE : tlm::TLM_ADDRESS_ERROR_RESPONSE);
    const sc_core::sc_time begin = std::max(free_, sc_core::sc_time_stamp() + delay);
    free_ = begin + sc_core::sc_time(payload.get_data_length() / 16.0, sc_core::SC_NS);
    delay = free_ + latency_ - sc_core::sc_time_stamp();
  }

  unsigned transport_dbg(tlm::tlm_generic_payload& payload) {
    const std::uint64_t address = payload.get_address(), length = payload.get_data_length();
    if (address > bytes_.size() || length > bytes_.size() - address) return 0;
    if (payload.is_read()) {
      std::memcpy(payload.get_data_ptr(), &bytes_[address], length);
    } else {
      std::memcpy(&bytes_[address], payload.get_data_ptr(), length);
    }
    return static_cast<unsigned>(length);
  }

  std::vector<unsigned char> bytes_;
  const sc_core::sc_time latency_;
  sc_core::sc_time free_;
};

struct OwnSystem : sc_core::sc_module {
  systole::tlm_model::SystemBus bus;
  OwnMemory memory;
  Core core;
  Cpu cpu;
  sc_core::sc_signal<bool> interrupt{"interrupt"};

  OwnSystem(const sc_core::sc_module_name& name, const systole::hw::Machine& machine,
            const Encoder& encoder, sc_core::sc_time latency)
      : sc_module(name),
        bus("bus", machine.bus),
        memory("memory", encoder.mapping.dram_bytes, latency),
        core("core", machine, systole::tlm_model::make_models(machine), true),
        cpu("cpu", encoder, systole::hw::kRegistersBase, systole::hw::kDramBase) {
    bus.connect_target(memory.socket, systole::hw::kDramBase, encoder.mapping.dram_bytes);
    bus.connect_target(core.registers, systole::hw::kRegistersBase, Core::kRegisterBytes);
    bus.connect_initiator(cpu.socket);
    for (systole::tlm_model::DmaPort* port : core.ports()) bus.connect_initiator(port->socket);
    core.interrupt(interrupt);
    cpu.interrupt(interrupt);
  }
};

}  // namespace

int sc_main(int argc, char* argv[]) try {
  const int latency = argc > 1 ? std::atoi(argv[1]) : 50;
  const systole::hw::Machine machine = systole::hw::find_machine("transformer");
  const Encoder encoder(machine);
  OwnSystem system("system", machine, encoder, sc_core::sc_time(latency, sc_core::SC_NS));
  sc_core::sc_start();
  std::printf("Systole %d.%d: %llu cycles with a memory of %d ns, output %s\n",
              SYSTOLE_VERSION_MAJOR, SYSTOLE_VERSION_MINOR,
              static_cast<unsigned long long>(system.cpu.cycles), latency,
              system.cpu.correct ? "as expected" : "WRONG");
  return system.cpu.correct ? 0 : 1;
} catch (const systole::hw::InputError& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
