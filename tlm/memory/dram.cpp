#include "tlm/memory/dram.h"

#include <sys/mman.h>

#include <new>
#include <string>

#include "base/units.h"

namespace systole::tlm_model {

SparseMemory::SparseMemory(std::uint64_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  void* const pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<unsigned char*>(pages);
}

SparseMemory::~SparseMemory() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

Dram::Dram(const sc_core::sc_module_name& name, const hw::Machine::Dram& params, bool functional)
    : MemoryTarget(name, params.mib * hw::kMib, functional),
      timing_(params),
      clock_(1000),
      memory_(capacity()) {}

Dram::Dram(const sc_core::sc_module_name& name, const hw::Machine& machine, bool functional)
    : MemoryTarget(name, machine.dram.mib * hw::kMib, functional),
      timing_(machine.dram),
      clock_(machine.bus.clock_mhz),
      memory_(capacity()) {
  if (machine.memory.model == hw::MemoryModel::kFixed) {
    fixed_.emplace(machine.memory, machine.bus.width_bytes);
  }
}

void Dram::set_counting(bool on, const sc_core::sc_time& now) {
  timing_.set_counting(on, to_ps(now));
}

void Dram::finish(const sc_core::sc_time& total) { timing_.finish(to_ps(total)); }

void Dram::move(bool write, RequestBatch::Request& request) {
  if (request.data != nullptr) copy(write, request.address, request.data, request.bytes);
  if (fixed_) {
    const hw::FixedMemory::Answer answer =
        fixed_->accept(clock_.cycle_from_ps(request.time), write, request.bytes);
    request.time = clock_.edge_ps(answer.last - (answer.beats - 1));
    return;
  }
  const hw::DramAccess access = timing_.access(request.address, request.bytes, write, request.time);
  row_hits_ += access.hits;
  row_misses_ += access.misses;
  row_conflicts_ += access.conflicts;
  request.time = access.end;
}

void Dram::copy(bool write, std::uint64_t address, unsigned char* data, std::uint64_t bytes) {
  copy_bytes(write, memory_.data() + address, data, bytes);
}

void Dram::trace(sc_core::sc_trace_file* file) const {
  const std::string prefix = std::string(name()) + ".";
  sc_core::sc_trace(file, row_hits_, prefix + "row_hits");
  sc_core::sc_trace(file, row_misses_, prefix + "row_misses");
  sc_core::sc_trace(file, row_conflicts_, prefix + "row_conflicts");
}

bool Dram::offer(tlm::tlm_dmi& dmi) {
  if (!functional()) return false;
  const hw::DramTimes& times = timing_.times();
  dmi.allow_read_write();
  dmi.set_dmi_ptr(memory_.data());
  dmi.set_read_latency(dmi.get_read_latency() + from_ps(times.controller + times.cl + times.burst));
  dmi.set_write_latency(dmi.get_write_latency() +
                        from_ps(times.controller + times.cwl + times.burst));
  return true;
}

}  // namespace systole::tlm_model
