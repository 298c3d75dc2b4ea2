#include "tlm/memory/dram.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "base/round.h"
#include "base/units.h"
#include "tlm/memory/dram_signals.h"

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

void SparseMemory::forget(std::uint64_t begin, std::uint64_t end) {
  if (begin >= end) return;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t first = std::min(end, round_up(begin, page));
  const std::uint64_t last = std::max(first, end / page * page);
  std::fill(data_ + begin, data_ + first, 0);
  std::fill(data_ + last, data_ + end, 0);
  if (first == last || ::madvise(data_ + first, last - first, MADV_DONTNEED) == 0) return;
  std::fill(data_ + first, data_ + last, 0);
}

Dram::Dram(const sc_core::sc_module_name& name, const hw::Machine::Dram& params, bool functional)
    : MemoryTarget(name, params.mib * hw::kMib, functional),
      timing_(params),
      clock_(1000),
      cached_(false),
      memory_(capacity()) {}

Dram::Dram(const sc_core::sc_module_name& name, const hw::Machine& machine, bool functional)
    : MemoryTarget(name, machine.dram.mib * hw::kMib, functional),
      timing_(machine.dram),
      clock_(machine.bus.clock_mhz),
      cached_(machine.l2.kib != 0),
      memory_(capacity()) {
  if (hw::has_fixed_memory(machine)) {
    fixed_.emplace(machine.memory, machine.bus.width_bytes);
  }
}

void Dram::set_counting(bool on, const sc_core::sc_time& now) {
  timing_.set_counting(on, to_ps(now));
  if (fixed_) fixed_->set_counting(on, clock_.cycle_from(now));
}

void Dram::finish(const sc_core::sc_time& total) {
  timing_.finish(to_ps(total));
  if (fixed_) fixed_->finish(clock_.cycle_from(total));
}

hw::BlockReport Dram::report() const {
  return with_rejected(fixed_ ? fixed_->report("memory") : timing_.report(basename()));
}

void Dram::move(bool write, RequestBatch::Request& request) {
  const std::uint64_t step = use_observer_ == nullptr ? 0 : use_observer_->step();
  if (request.data != nullptr) copy(write, request.address, request.data, request.bytes);
  spend(write, request);
  if (use_observer_ == nullptr) return;
  StoredUse use;
  use.write = write;
  use.first_step = use.last_step = step;
  use.address = request.address;
  use.pitch = use.bytes = request.bytes;
  use.cycle = static_cast<std::int64_t>(core_clock_->cycle_from_ps(request.time));
  use_observer_->use(std::move(use));
}

bool Dram::move_in_one(bool write, RequestBatch& batch) {
  RequestBatch::Request& first = batch.requests.front();
  if (fixed_ || use_observer_ != nullptr || first.bytes != timing_.mapping().burst_bytes()) {
    return false;
  }
  const std::uint64_t end = timing_.end_alone(write, first.time);
  if (end < batch.answer_from || end > batch.answer_by) batch.leave_uncertain();
  const std::uint64_t least = std::min<std::uint64_t>(batch.size(), batch.certain);
  const std::uint64_t count =
      timing_.access_each(first.address, write, first.time, batch.step, batch.size(), least);
  if (count == 0) return false;
  if (first.data != nullptr) copy(write, first.address, first.data, count * first.bytes);
  first.time = end;
  batch.more = count - 1;
  batch.certain = RequestBatch::kAll;
  return true;
}

bool Dram::move_rows(bool write, RequestBatch& batch) {
  RequestBatch::Request& first = batch.requests.front();
  RequestRows at = batch.rows;
  at.address = first.address;
  // Rows begin at whole bursts, if the first does and so far apart.
  if (!is_bursts(first) || (at.gap & (first.bytes - 1)) != 0) return false;
  if (first.data != nullptr) {
    RequestRows of = at;
    for (std::size_t i = 0; i < batch.times.size(); ++i, of.pass()) {
      copy(write, of.address, of.data, first.bytes);
    }
  }
  timing_.access_bursts(write, batch.times, [&at] {
    const std::uint64_t address = at.address;
    at.pass();
    return address;
  });
  first.time = batch.times.front();
  return true;
}

void Dram::move_all(bool write, std::vector<RequestBatch::Request>& requests) {
  for (std::size_t first = 0; first < requests.size();) {
    times_.clear();
    std::size_t end = first;
    for (; end < requests.size() && is_bursts(requests[end]); ++end) {
      const RequestBatch::Request& request = requests[end];
      if (request.data != nullptr) copy(write, request.address, request.data, request.bytes);
      times_.push_back(request.time);
    }
    if (end == first) {
      move(write, requests[first++]);
      continue;
    }
    std::size_t next = first;
    timing_.access_bursts(write, times_, [&] { return requests[next++].address; });
    for (const std::uint64_t time : times_) requests[first++].time = time;
  }
}

void Dram::spend(bool write, RequestBatch::Request& request) {
  if (fixed_) {
    const std::uint64_t cycle = clock_.cycle_from_ps(request.time);
    const std::uint64_t last = fixed_->accept(cycle, write, request.address, request.bytes).last;
    const std::uint64_t passed_on =
        write || cached_ ? 0 : fixed_->beats(request.address, request.bytes) - 1;
    request.time = clock_.edge_ps(last - passed_on);
    return;
  }
  request.time = timing_.access(request.address, request.bytes, write, request.time).end;
}

void Dram::copy(bool write, std::uint64_t address, unsigned char* data, std::uint64_t bytes) {
  if (values_ != nullptr) {
    if (write) {
      values_->await();  // actions may still read what was there before
    } else {
      values_->await_written({address, bytes});
    }
  }
  copy_bytes(write, memory_.data() + address, data, bytes);
}

void Dram::trace(sc_core::sc_trace_file* file) const {
  const std::string prefix = std::string(name()) + ".";
  sc_core::sc_trace(file, timing_.hits(), prefix + "row_hits");
  sc_core::sc_trace(file, timing_.misses(), prefix + "row_misses");
  sc_core::sc_trace(file, timing_.conflicts(), prefix + "row_conflicts");
}

void Dram::watch(SignalRecorder& recorder) {
  const std::string prefix = std::string(name()) + ".";
  if (fixed_) {
    answers_ =
        std::make_unique<AccountSignal>(recorder, prefix + "answers", fixed_->answers(), &clock_);
    fixed_->watch(*answers_);
    return;
  }
  signals_ = std::make_unique<DramSignals>(recorder, prefix, timing_);
  timing_.watch(*signals_);
}

bool Dram::offer(std::uint64_t, tlm::tlm_dmi& dmi) {
  if (!functional()) return false;
  dmi.allow_read_write();
  dmi.set_dmi_ptr(memory_.data());
  dmi.set_read_latency(dmi.get_read_latency() + from_ps(timing_.end_alone(false, 0)));
  dmi.set_write_latency(dmi.get_write_latency() + from_ps(timing_.end_alone(true, 0)));
  return true;
}

}  // namespace systole::tlm_model
