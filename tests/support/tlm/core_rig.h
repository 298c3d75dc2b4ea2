#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <systemc>
#include <utility>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/program/program.h"
#include "hw/program/program_image.h"
#include "support/network/commands.h"
#include "support/tlm/tlm_driver.h"
#include "tlm/system.h"

namespace systole::test {

/// A machine whose registers the test drives in the place of a host.
class CoreRig : public tlm_model::Board {
 public:
  using Core = tlm_model::Core;
  static constexpr std::uint64_t kProgramAddress = 1 << 20;

  TlmDriver host{"host"};

  std::map<std::uint32_t, tlm_model::CommandTrace> traces;  ///< by index, of the last run
  std::vector<std::uint32_t> completion_order;              ///< of commands

  std::vector<hw::HostFunction> host_functions;  ///< of the next program
  std::vector<hw::LayerMask> masks;              ///< likewise

  explicit CoreRig(const hw::Machine& machine, bool functional = true)
      : CoreRig(machine, functional, tlm_model::make_models(machine)) {}
  CoreRig(const hw::Machine& machine, bool functional, tlm_model::Engines engines)
      : Board("system", machine, std::move(engines), functional) {
    connect_host(host.socket);
    core.processor.observe([this](const tlm_model::CommandTrace& trace) {
      traces[trace.index] = trace;
      completion_order.push_back(trace.index);
    });
  }

  /// Stores commands, adds kEnd, starts the core and waits until it is done. To be called in run().
  void execute(std::vector<hw::Command> commands, std::vector<hw::Chain> chains = {},
               std::vector<hw::HeadMix> mixes = {}) {
    begin(std::move(commands), std::move(chains), std::move(mixes));
    sc_core::wait(interrupt.posedge_event());
  }
  void begin(std::vector<hw::Command> commands, std::vector<hw::Chain> chains = {},
             std::vector<hw::HeadMix> mixes = {}) {
    traces.clear();
    completion_order.clear();
    program_.commands = std::move(commands);
    program_.commands.emplace_back();
    program_.chains = std::move(chains);
    program_.mixes = std::move(mixes);
    program_.host_functions = host_functions;
    program_.masks = masks;
    program_.operators.resize(1);
    for (const hw::Command& command : program_.commands) {
      program_.operators.resize(std::max<std::size_t>(program_.operators.size(), command.op + 1));
    }
    std::vector<std::uint8_t> bytes = hw::encode_program(program_);
    host.debug(tlm::TLM_WRITE_COMMAND, kProgramAddress, bytes.data(), bytes.size());
    for (hw::LayerMask& mask : program_.masks) {
      host.debug(tlm::TLM_WRITE_COMMAND, mask.address, mask.bytes.data(), mask.bytes.size());
    }
    set(Core::kProgram, kProgramAddress);
    set(Core::kControl, Core::kStart);
  }

  void run(std::function<void()> body) { run_body(std::move(body)); }

  void set(std::uint64_t offset, std::uint64_t value) {
    host.write(hw::kRegistersBase + offset, &value, sizeof value);
  }
  [[nodiscard]] std::uint64_t get(std::uint64_t offset) {
    std::uint64_t value = 0;
    host.read(hw::kRegistersBase + offset, &value, sizeof value);
    return value;
  }
  /// Cycles between the first and the last moment of a command.
  [[nodiscard]] const tlm_model::CommandTrace& operator[](std::uint32_t index) const {
    return traces.at(index);
  }

 private:
  hw::Program program_;
};

/// The 16 x 16 preset, 4 banks of 64 KiB, with ports to spare.
inline hw::Machine roomy() {
  hw::Machine machine;
  machine.scratchpad.ports = 4;
  machine.accumulator.ports = 4;
  return machine;
}

/// Bytes of a bank of it.
inline constexpr std::uint32_t kBank = 64 * 1024;

inline const hw::Chain kNoStages{{}, hw::DType::kS8};

}  // namespace systole::test
