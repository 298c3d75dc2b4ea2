#include "tlm/ring/ring_host.h"

#include <algorithm>
#include <string>
#include <utility>

#include "hw/ring/pass_image.h"
#include "tlm/bus/core_registers.h"
#include "tlm/bus/request_batch.h"
#include "tlm/common/time.h"

namespace systole::tlm_model::dfx {

RingHost::RingHost(const sc_core::sc_module_name& name, const hw::Machine& machine,
                   std::vector<HostedCore> cores, Next next, More more)
    : sc_module(name),
      interrupts("interrupts", cores.size()),
      machine_(machine),
      cores_(std::move(cores)),
      next_(std::move(next)),
      more_(std::move(more)) {
  SC_HAS_PROCESS(RingHost);
  SC_THREAD(run);
}

void RingHost::spend(std::uint64_t ps) {
  host_ps_ += ps;
  wait(from_ps(ps));
}

std::uint64_t RingHost::transfer(Socket& by, tlm::tlm_command command, const Range& range) {
  tlm::tlm_generic_payload payload;
  payload.set_command(command);
  describe_request(payload, range.address, range.data, range.bytes);
  sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
  by->b_transport(payload, delay);
  if (!payload.is_response_ok()) {
    SC_REPORT_ERROR(
        "/systole/ring",
        ("nothing of a card answers at address " + std::to_string(range.address)).c_str());
  }
  return to_ps(delay);
}

std::uint64_t RingHost::access(Socket& by, tlm::tlm_command command, std::uint64_t address,
                               std::uint64_t& value) {
  return transfer(by, command, {address, reinterpret_cast<std::uint8_t*>(&value), sizeof value});
}

void RingHost::write(std::uint64_t address, std::uint64_t value) {
  access(card, tlm::TLM_WRITE_COMMAND, address, value);
}

void RingHost::read(const std::vector<Range>& ranges) {
  std::uint64_t last = 0;
  for (const Range& range : ranges) {
    last = std::max(last, transfer(pcie, tlm::TLM_READ_COMMAND, range));
  }
  spend(last);
}

bool RingHost::write_program(const HostedCore& of, const hw::dfx::Pass& pass) {
  std::vector<std::uint8_t> image = hw::dfx::encode_pass(pass, machine_.dfx.cores);
  tlm::tlm_generic_payload payload;
  payload.set_command(tlm::TLM_WRITE_COMMAND);
  describe_request(payload, of.on_bus, image.data(), static_cast<std::uint32_t>(image.size()));
  if (image.size() <= of.room && card->transport_dbg(payload) == image.size()) return true;
  problem_ = "dram.mib: found " + std::to_string(of.room) +
             " bytes after the tables of a core, expected " + std::to_string(image.size()) +
             " for its program";
  return false;
}

bool RingHost::start(const std::vector<const hw::dfx::Pass*>& passes) {
  for (std::size_t i = 0; i < cores_.size(); ++i) {
    if (!write_program(cores_[i], *passes[i])) return false;
  }
  for (const HostedCore& core : cores_) {
    write(core.registers + CoreRegisters::kProgram, core.program);
    write(core.registers + CoreRegisters::kControl, CoreRegisters::kStart);
  }
  return true;
}

std::uint64_t RingHost::finish(std::size_t core) {
  const std::uint64_t registers = cores_[core].registers;
  sc_core::sc_in<bool>& interrupt = interrupts[core];
  while (!interrupt.read()) wait(interrupt.value_changed_event());
  write(registers + CoreRegisters::kControl, CoreRegisters::kAcknowledge);
  // It must be low again before the next pass ends.
  while (interrupt.read()) wait(interrupt.value_changed_event());
  std::uint64_t status = 0;
  access(card, tlm::TLM_READ_COMMAND, registers + CoreRegisters::kStatus, status);
  return status;
}

bool RingHost::work() {
  // Configuration and start.
  std::uint64_t program = cores_.front().program;
  const std::uint64_t first = cores_.front().registers;
  spend(access(pcie, tlm::TLM_WRITE_COMMAND, first + CoreRegisters::kProgram, program));
  ends_.push_back(to_ps(sc_core::sc_time_stamp()));
  bool faulty = false;
  while (!faulty) {
    const std::vector<const hw::dfx::Pass*> passes = next_(*this);
    if (passes.empty()) break;
    if (!start(passes)) {
      faulty = true;
      break;
    }
    for (std::size_t i = 0; i < cores_.size(); ++i) {
      faulty = (finish(i) & CoreRegisters::kFault) != 0 || faulty;
    }
    ends_.push_back(to_ps(sc_core::sc_time_stamp()));
  }
  // What tells the host that it is done.
  std::uint64_t status = 0;
  spend(access(pcie, tlm::TLM_READ_COMMAND, first + CoreRegisters::kStatus, status));
  return !faulty;
}

void RingHost::run() {
  if (more_) {
    while (more_() && work()) {
    }
  } else {
    work();
  }
  done_ = true;
}

}  // namespace systole::tlm_model::dfx
