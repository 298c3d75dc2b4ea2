#include "tlm/dma/tlb.h"

#include <algorithm>

#include "tlm/dma/dma_port.h"

namespace systole::tlm_model {
namespace {

/// A table of Sv39 has 512 entries of 8 bytes.
constexpr std::uint64_t kEntryBytes = 8;
constexpr unsigned kLevelBits = 9;

}  // namespace

Tlb::Tlb(const hw::Machine& machine)
    : params_(machine.tlb),
      capacity_(std::uint64_t{machine.dram.mib} << 20),
      table_(1, params_.entries),
      known_(params_.entries) {
  if (params_.second_entries != 0) second_.emplace(params_.second_entries, 1);
}

// Level after level, downwards from the end of memory.
std::uint64_t Tlb::entry_address(std::uint64_t page, std::uint32_t level) const {
  std::uint64_t pages = (capacity_ + params_.page_bytes - 1) / params_.page_bytes;
  std::uint64_t end = capacity_;
  for (std::uint32_t i = 0; i < level; ++i) {
    end -= pages * kEntryBytes;
    pages = (pages >> kLevelBits) + 1;
    page >>= kLevelBits;
  }
  return end - (page + 1) * kEntryBytes;
}

void Tlb::watch(SignalRecorder& recorder, const std::string& path, const Clock& clock) {
  using Kind = SignalRecorder::Kind;
  signals_ = {&recorder, &clock, recorder.add_state(path + ".state"),
              recorder.add_signal(path + ".page", 40, Kind::kLatest),
              recorder.add_signal(path + ".misses", 32, Kind::kNumber)};
}

void Tlb::show(std::uint64_t page, std::uint64_t from, const Answer& answer) const {
  if (!signals_) return;
  SignalRecorder& recorder = *signals_->recorder;
  const std::uint64_t begin = signals_->clock->edge_ps(from);
  const std::uint64_t end = signals_->clock->edge_ps(answer.cycle);
  recorder.hold(signals_->state, begin, end, answer.hit ? wave_state("hit") : wave_state("miss"));
  recorder.hold(signals_->page, begin, end, page);
  if (!answer.hit) recorder.add(signals_->misses, begin, 1);
}

std::uint64_t Tlb::walk(std::uint64_t page, std::uint64_t begin, DmaPort& walker) {
  while (walks_) sc_core::wait(walked_);
  walks_ = true;
  std::uint64_t known = std::max(begin, walker_free_) + params_.miss_cycles;
  const bool walks = !second_ || !second_->access(page, false).hit;
  for (std::uint32_t level = walks ? params_.walk_reads : 0; level-- > 0;) {
    std::uint8_t entry[kEntryBytes];
    known = walker.read(entry_address(page, level), entry, kEntryBytes, known);
  }
  walker_free_ = std::max(walker_free_, known);
  walks_ = false;
  return known;
}

Tlb::Answer Tlb::translate(std::uint64_t page, std::uint64_t cycle, DmaPort& walker) {
  const hw::CacheTags::Access place = table_.access(page, false);
  Known& entry = known_[place.slot];
  Answer answer{place.hit, cycle + params_.hit_cycles};
  if (place.hit) {
    // Unless another page takes its entry meanwhile.
    while (entry.is_walked && entry.page == page) sc_core::wait(walked_);
    if (entry.page == page) answer.cycle = std::max(answer.cycle, entry.from);
  } else {
    entry = {page, 0, true};
    answer.cycle = walk(page, answer.cycle, walker);
    if (entry.page == page) entry = {page, answer.cycle, false};
    walked_.notify();
  }
  show(page, cycle, answer);
  return answer;
}

}  // namespace systole::tlm_model
