#include "tlm/host/host.h"

#include <stdexcept>
#include <string>
#include <utility>

#include "hw/dma/request_cut.h"
#include "tlm/core/core.h"

namespace systole::tlm_model {

Host::Host(const sc_core::sc_module_name& name, const hw::Machine& machine,
           std::uint64_t core_registers, std::uint64_t program_address, bool functional)
    : sc_module(name),
      compute(machine.host.operators == hw::HostOperators::kNone
                  ? nullptr
                  : std::make_unique<HostCompute>("compute", machine, functional)),
      params_(machine.host),
      registers_(core_registers),
      program_address_(program_address) {
  SC_HAS_PROCESS(Host);
  SC_THREAD(run);
}

void Host::set_work(Prepare prepare, Deliver deliver) {
  prepare_ = std::move(prepare);
  deliver_ = std::move(deliver);
}

void Host::transfer(tlm::tlm_command command, std::uint64_t address, std::uint8_t* data,
                    std::size_t bytes) {
  hw::kHostLines.for_each(address, bytes, [&](std::uint64_t at, std::uint64_t length) {
    tlm::tlm_generic_payload payload;
    payload.set_command(command);
    payload.set_address(address + at);
    payload.set_data_ptr(data + at);
    payload.set_data_length(static_cast<unsigned>(length));
    payload.set_streaming_width(static_cast<unsigned>(length));
    sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
    socket->b_transport(payload, delay);
    if (payload.is_response_error()) {
      SC_REPORT_ERROR(
          "/systole/host",
          (payload.get_response_string() + " at address " + std::to_string(address + at)).c_str());
    }
    wait(delay);
  });
}

void Host::debug(tlm::tlm_command command, std::uint64_t address, std::uint8_t* data,
                 std::size_t bytes) {
  tlm::tlm_generic_payload payload;
  payload.set_command(command);
  payload.set_address(address);
  payload.set_data_ptr(data);
  payload.set_data_length(static_cast<unsigned>(bytes));
  payload.set_streaming_width(static_cast<unsigned>(bytes));
  if (socket->transport_dbg(payload) != bytes) {
    throw std::out_of_range("no memory answers at address " + std::to_string(address));
  }
}

void Host::write_register(std::uint64_t offset, std::uint64_t value) {
  wait(sc_core::sc_time(params_.mmio_ns, sc_core::SC_NS));
  transfer(tlm::TLM_WRITE_COMMAND, registers_ + offset, reinterpret_cast<std::uint8_t*>(&value), 8);
}

std::uint64_t Host::read_register(std::uint64_t offset) {
  std::uint64_t value = 0;
  wait(sc_core::sc_time(params_.mmio_ns, sc_core::SC_NS));
  transfer(tlm::TLM_READ_COMMAND, registers_ + offset, reinterpret_cast<std::uint8_t*>(&value), 8);
  return value;
}

void Host::account_idle() {
  if (compute) compute->account_idle();
}

void Host::account_stall(HostCompute::Cause cause) {
  if (compute) compute->account_stall(cause);
}

void Host::sleep() {
  state_ = kSleep;
  while (!interrupt.read()) wait(interrupt.value_changed_event());
  account_idle();
  state_ = kAnswer;
  wait(sc_core::sc_time(params_.interrupt_ns, sc_core::SC_NS));
}

bool Host::answer() {
  write_register(Core::kControl, Core::kAcknowledge);
  if (!compute) return false;
  const std::uint64_t call = read_register(Core::kHostCall);
  account_stall(HostCompute::kCore);
  if (call == 0) return false;
  compute->execute(*functions_, call, state_);
  // The line must be low again before the next interrupt is waited for.
  while (interrupt.read()) wait(interrupt.value_changed_event());
  state_ = kStart;
  write_register(Core::kControl, Core::kHostDone);
  account_stall(HostCompute::kCore);
  return true;
}

void Host::run() {
  if (read_register(Core::kId) != Core::kIdValue) {
    SC_REPORT_ERROR("/systole/host", "no core answers at its registers");
  }
  write_register(Core::kProgram, program_address_);
  account_stall(HostCompute::kCore);
  for (Job job; prepare_ && prepare_(job); job = Job{}) {
    state_ = kWriteInputs;
    ++inferences_;
    for (Buffer& input : job.inputs) {
      transfer(tlm::TLM_WRITE_COMMAND, input.address, input.bytes.data(), input.bytes.size());
    }
    account_stall(HostCompute::kMemory);
    state_ = kStart;
    if (job.program) write_register(Core::kProgram, *job.program);
    write_register(Core::kControl, Core::kStart);
    account_stall(HostCompute::kCore);
    do {
      sleep();
    } while (answer());
    job.cycles = read_register(Core::kCycles);
    account_stall(HostCompute::kCore);
    state_ = kReadOutputs;
    for (Buffer& output : job.outputs) {
      transfer(tlm::TLM_READ_COMMAND, output.address, output.bytes.data(), output.bytes.size());
    }
    account_stall(HostCompute::kMemory);
    // The line must be low again before the next job waits for it.
    while (interrupt.read()) wait(interrupt.value_changed_event());
    if (deliver_) deliver_(job);
  }
  state_ = kDone;
  on_done_();
}

void Host::trace(sc_core::sc_trace_file* file) const {
  const std::string prefix = std::string(name()) + ".";
  sc_core::sc_trace(file, state_, prefix + "state", 4);
  sc_core::sc_trace(file, inferences_, prefix + "inferences");
}

}  // namespace systole::tlm_model
