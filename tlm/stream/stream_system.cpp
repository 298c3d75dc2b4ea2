#include "tlm/stream/stream_system.h"

#include <cstring>
#include <stdexcept>
#include <utility>

namespace systole::tlm_model {
namespace {

/// Cycles between two looks of the simulation kernel: those of a tile of ITA.
constexpr std::uint64_t kQuantum = 256;

}  // namespace

SharedMemory::SharedMemory(const sc_core::sc_module_name& name, std::uint64_t bytes)
    : MemoryTarget(name, bytes, true), bytes_(bytes) {}

void SharedMemory::peek(std::uint64_t address, void* data, std::size_t bytes) const {
  std::memcpy(data, &bytes_.at(address), bytes);
}

void SharedMemory::poke(std::uint64_t address, const void* data, std::size_t bytes) {
  std::memcpy(&bytes_.at(address), data, bytes);
}

void SharedMemory::move(bool write, RequestBatch::Request& request) {
  copy(write, request.address, request.data, request.bytes);
}

void SharedMemory::copy(bool write, std::uint64_t address, unsigned char* data,
                        std::uint64_t bytes) {
  copy_bytes(write, &bytes_[address], data, bytes);
}

bool SharedMemory::offer(std::uint64_t /*address*/, tlm::tlm_dmi& /*dmi*/) { return false; }

StreamUnit::StreamUnit(const sc_core::sc_module_name& name, const hw::Machine& machine, Next next)
    : sc_module(name),
      machine_(machine),
      clock_(machine.core.clock_mhz),
      next_(std::move(next)),
      core_(machine.stream) {
  SC_HAS_PROCESS(StreamUnit);
  SC_THREAD(run);
}

void StreamUnit::transfer(tlm::tlm_command command, std::uint64_t address, void* data,
                          std::size_t bytes) {
  tlm::tlm_generic_payload payload;
  payload.set_command(command);
  payload.set_address(address);
  payload.set_data_ptr(static_cast<unsigned char*>(data));
  payload.set_data_length(static_cast<unsigned>(bytes));
  payload.set_streaming_width(static_cast<unsigned>(bytes));
  sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
  socket->b_transport(payload, delay);
  if (!payload.is_response_ok()) {
    SC_REPORT_ERROR(
        "/systole/stream",
        (payload.get_response_string() + " at address " + std::to_string(address)).c_str());
  }
}

void StreamUnit::read(std::uint64_t address, void* data, std::size_t bytes) {
  transfer(tlm::TLM_READ_COMMAND, address, data, bytes);
  read_bytes_ += bytes;
}

void StreamUnit::write(std::uint64_t address, const void* data, std::size_t bytes) {
  transfer(tlm::TLM_WRITE_COMMAND, address, const_cast<void*>(data), bytes);
  written_bytes_ += bytes;
}

void StreamUnit::run() {
  for (Job job; next_(job); job = Job{}) {
    // A start is seen in the cycle after it, and not before the last result has left.
    if (!times_.empty()) core_.step({});
    Times times;
    times.begin = core_.cycle();
    core_.begin(job.works, job.begin ? job.begin(*this) : nullptr);
    for (bool left = true; left;) {
      for (std::uint64_t i = 0; i < kQuantum && left; ++i) left = core_.step({});
      phase_ = static_cast<std::uint8_t>(core_.phase());
      beats_ = core_.beats();
      clock_.wait_until(core_.cycle());
    }
    times.end = core_.cycle();
    times.phases = core_.phases();
    times_.push_back(std::move(times));
    if (job.end) job.end(*this);
  }
  phase_ = hw::stream::kPhases;
  done_ = true;
  sc_core::sc_stop();
}

hw::BlockReport StreamUnit::report() const {
  return core_.account().report(
      basename(), core_.cycle(),
      {{"input_beats", "beats", "of the input stream, stream.length bytes each", core_.beats()},
       {"output_beats", "beats", "of results, stream.units bytes each", core_.outputs()},
       {"read_bytes", "bytes", "operands read from the shared memory, each once", read_bytes_},
       {"written_bytes", "bytes", "results written to the shared memory", written_bytes_}});
}

void StreamUnit::trace(sc_core::sc_trace_file* file) const {
  const std::string prefix = std::string(name()) + ".";
  sc_core::sc_trace(file, phase_, prefix + "phase", 4);
  sc_core::sc_trace(file, beats_, prefix + "beats");
}

StreamSystem::StreamSystem(const sc_core::sc_module_name& name, const hw::Machine& machine,
                           std::uint64_t memory_bytes, StreamUnit::Next next)
    : sc_module(name), memory("memory", memory_bytes), unit("stream", machine, std::move(next)) {
  unit.socket.bind(memory.socket);
}

}  // namespace systole::tlm_model
