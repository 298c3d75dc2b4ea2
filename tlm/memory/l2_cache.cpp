#include "tlm/memory/l2_cache.h"

#include <algorithm>
#include <string>

namespace systole::tlm_model {
namespace {

/// Calls visit(line, offset in the line, offset in the range, bytes) for each line of a range.
template <typename Visit>
void for_lines(std::uint64_t address, std::uint64_t bytes, std::uint32_t line_bytes, Visit visit) {
  for (std::uint64_t at = 0; at < bytes;) {
    const std::uint64_t offset = (address + at) % line_bytes;
    const std::uint64_t length = std::min(line_bytes - offset, bytes - at);
    visit((address + at) / line_bytes, offset, at, length);
    at += length;
  }
}

}  // namespace

/// What the banks do, with which line.
class L2Cache::Signals final : public hw::CacheWatch {
 public:
  Signals(SignalRecorder& recorder, const std::string& prefix, const L2Cache& cache)
      : recorder_(recorder), clock_(cache.clock_), line_bytes_(cache.line_bytes_) {
    using Kind = SignalRecorder::Kind;
    for (std::size_t b = 0; b < cache.cache_.banks(); ++b) {
      const std::string path = prefix + "bank" + std::to_string(b) + ".";
      banks_.push_back({recorder.add_state(path + "state"),
                        recorder.add_signal(path + "address", 48, Kind::kLatest)});
    }
    hits_ = recorder.add_signal(prefix + "hits", 32, Kind::kNumber);
    misses_ = recorder.add_signal(prefix + "misses", 32, Kind::kNumber);
  }

  void use(std::size_t bank, hw::CacheUse use, std::uint64_t line, std::uint64_t begin,
           std::uint64_t end) override {
    const std::uint64_t from = clock_.edge_ps(begin), to = clock_.edge_ps(end);
    recorder_.hold(banks_[bank].state, from, to, state_of(use));
    recorder_.hold(banks_[bank].address, from, to, line * line_bytes_);
    if (use == hw::CacheUse::kHit) recorder_.add(hits_, from, 1);
    if (use == hw::CacheUse::kMiss) recorder_.add(misses_, from, 1);
  }

 private:
  struct Bank {
    SignalRecorder::Signal state, address;
  };

  static std::uint8_t state_of(hw::CacheUse use) {
    switch (use) {
      case hw::CacheUse::kHit:
        return wave_state("hit");
      case hw::CacheUse::kMerged:
        return wave_state("merged");
      case hw::CacheUse::kMiss:
        return wave_state("miss");
      case hw::CacheUse::kFill:
        return wave_state("fill");
      case hw::CacheUse::kWriteBack:
        break;
    }
    return wave_state("write_back");
  }

  SignalRecorder& recorder_;
  const Clock& clock_;
  const std::uint32_t line_bytes_;
  std::vector<Bank> banks_;
  SignalRecorder::Signal hits_, misses_;
};

L2Cache::L2Cache(const sc_core::sc_module_name& name, const hw::Machine& machine,
                 std::uint64_t capacity, bool functional)
    : MemoryTarget(name, capacity, functional),
      line_bytes_(machine.l2.line_bytes),
      values_end_(capacity),
      clock_(machine.bus.clock_mhz),
      cache_(machine.l2, *this),
      lines_(functional ? cache_.tags().slots() * line_bytes_ : 0),
      victim_(functional ? line_bytes_ : 0) {}

void L2Cache::move(bool write, RequestBatch::Request& request) {
  cache_.retire(clock_.cycle_from(sc_core::sc_time_stamp()));
  const std::uint64_t arrival = clock_.cycle_from_ps(request.time);
  std::uint64_t done = arrival;
  for_lines(request.address, request.bytes, line_bytes_,
            [&](std::uint64_t line, std::uint64_t offset, std::uint64_t at, std::uint64_t length) {
              const hw::Cache::Access access =
                  cache_.access(line, static_cast<std::uint32_t>(length), write, arrival);
              if (holds_values(line)) {
                copy_bytes(write, bytes_of(access.slot) + offset, request.data + at, length);
              } else if (request.data != nullptr) {  // what data there are, memory has
                copy(write, request.address + at, request.data + at, length);
              }
              done = std::max(done, access.done);
            });
  request.time = clock_.edge_ps(done);
}

void L2Cache::copy(bool write, std::uint64_t address, unsigned char* data, std::uint64_t bytes) {
  payload_.set_command(write ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND);
  payload_.set_address(address);
  payload_.set_data_ptr(data);
  payload_.set_data_length(static_cast<unsigned>(bytes));
  memory->transport_dbg(payload_);
  if (!functional()) return;
  for_lines(address, bytes, line_bytes_,
            [&](std::uint64_t line, std::uint64_t offset, std::uint64_t at, std::uint64_t length) {
              if (!holds_values(line)) return;
              if (const auto slot = cache_.tags().find(line)) {
                copy_bytes(write, bytes_of(*slot) + offset, data + at, length);
              }
            });
}

bool L2Cache::offer(std::uint64_t address, tlm::tlm_dmi& dmi) {
  if (address < values_end_) return false;
  payload_.set_command(tlm::TLM_WRITE_COMMAND);
  payload_.set_address(address);
  if (!memory->get_direct_mem_ptr(payload_, dmi) || dmi.get_start_address() > values_end_) {
    return false;
  }
  dmi.set_dmi_ptr(dmi.get_dmi_ptr() + (values_end_ - dmi.get_start_address()));
  dmi.set_start_address(values_end_);
  return true;
}

void L2Cache::watch(SignalRecorder& recorder) {
  signals_ = std::make_unique<Signals>(recorder, std::string(name()) + ".", *this);
  cache_.watch(*signals_);
}

void L2Cache::set_aside(hw::CacheTags::Slot slot) {
  if (functional()) std::copy_n(bytes_of(slot), line_bytes_, victim_.begin());
}

std::uint64_t L2Cache::fill(std::uint64_t line, hw::CacheTags::Slot slot, std::uint64_t cycle) {
  return transport(tlm::TLM_READ_COMMAND, line, holds_values(line) ? bytes_of(slot) : nullptr,
                   cycle);
}

std::uint64_t L2Cache::write_back(std::uint64_t line, std::uint64_t cycle) {
  return transport(tlm::TLM_WRITE_COMMAND, line, holds_values(line) ? victim_.data() : nullptr,
                   cycle);
}

std::uint64_t L2Cache::transport(tlm::tlm_command command, std::uint64_t line, unsigned char* data,
                                 std::uint64_t cycle) {
  payload_.set_command(command);
  request_.direct = data == nullptr;
  request_.requests.assign(1, {line * line_bytes_, data, clock_.edge_ps(cycle), line_bytes_,
                               tlm::TLM_INCOMPLETE_RESPONSE});
  transport_batch(request_, payload_,
                  [this](auto& payload, auto& delay) { memory->b_transport(payload, delay); });
  const RequestBatch::Request& done = request_.requests.front();
  if (!done.is_ok()) {
    payload_.set_response_status(done.status);
    SC_REPORT_ERROR("/systole/l2_cache", (payload_.get_response_string() + " at address " +
                                          std::to_string(line * line_bytes_))
                                             .c_str());
  }
  return clock_.cycle_from_ps(done.time);
}

}  // namespace systole::tlm_model
