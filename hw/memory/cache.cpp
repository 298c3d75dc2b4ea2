#include "hw/memory/cache.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace systole::hw {
namespace {

std::size_t sets_of(const Machine::L2& params) {
  const std::uint64_t set_bytes = std::uint64_t{params.ways} * params.line_bytes;
  const std::uint64_t bytes = std::uint64_t{params.kib} * 1024;
  if (set_bytes == 0 || bytes % set_bytes != 0) {
    throw std::invalid_argument("a cache consists of whole sets");
  }
  return bytes / set_bytes;
}

}  // namespace

Cache::Cache(const Machine::L2& params, LineMemory& memory)
    : params_(params),
      memory_(memory),
      tags_(sets_of(params), params.ways, params.replacement),
      valid_at_(tags_.slots(), 0),
      registers_(params.mshrs, 0),
      banks_(params.banks, Calendar("cycles")) {
  if (params.mshrs == 0 || params.banks == 0 || params.bank_bytes == 0) {
    throw std::invalid_argument("a cache needs a bank and a miss register");
  }
}

Cache::Access Cache::access(std::uint64_t line, std::uint32_t bytes, bool write,
                            std::uint64_t cycle) {
  ++(write ? writes_ : reads_);
  asked_bytes_ += bytes;
  const std::uint64_t begin = reserve(line, cycle, beats(bytes));
  bank_wait_ += begin - cycle;
  const std::uint64_t looked_up = begin + params_.hit_latency;
  const CacheTags::Access place = tags_.access(line, write);
  if (!place.hit) {
    show(CacheUse::kMiss, line, begin, beats(bytes));
    const bool needs_line = !write || bytes < params_.line_bytes;
    return {miss(line, place, needs_line, looked_up), place.slot};
  }
  const std::uint64_t valid = valid_at_[place.slot];
  ++(valid <= looked_up ? hits_ : merged_);
  show(valid <= looked_up ? CacheUse::kHit : CacheUse::kMerged, line, begin, beats(bytes));
  return {std::max(looked_up, valid) + beats(bytes) - 1, place.slot};
}

std::uint64_t Cache::miss(std::uint64_t line, const CacheTags::Access& place, bool needs_line,
                          std::uint64_t cycle) {
  ++misses_;
  const std::uint64_t line_beats = beats(params_.line_bytes);
  const auto free = std::min_element(registers_.begin(), registers_.end());
  const std::uint64_t start = std::max({cycle, *free, valid_at_[place.slot]});
  register_wait_ += start - cycle;
  std::uint64_t done = start;
  // The fill goes first: the access waits for it, and not for the write-back.
  if (place.dirty_victim) memory_.set_aside(place.slot);
  if (needs_line) {
    ++fills_;
    done = memory_.fill(line, place.slot, start);
    memory_wait_ += done - start;
    show(CacheUse::kFill, line, reserve(line, done, line_beats), line_beats);
  }
  std::uint64_t over = done;
  if (place.dirty_victim) {
    ++write_backs_;
    const std::uint64_t read = reserve(*place.dirty_victim, start, line_beats);
    show(CacheUse::kWriteBack, *place.dirty_victim, read, line_beats);
    over = std::max(over, memory_.write_back(*place.dirty_victim, read + line_beats));
  }
  *free = over;
  valid_at_[place.slot] = done;
  return done;
}

void Cache::retire(std::uint64_t now) {
  for (Calendar& bank : banks_) bank.retire(now);
}

void Cache::set_counting(bool on, std::uint64_t now) {
  for (Calendar& bank : banks_) bank.set_counting(on, now);
}

void Cache::finish(std::uint64_t total) {
  for (const Calendar& bank : banks_) total = std::max(total, bank.last_end());
  for (Calendar& bank : banks_) bank.finish(total);
}

BlockReport Cache::report(std::string name) const {
  BlockReport report{
      std::move(name),
      {},
      {{"reads", "accesses", "reads of a line or part of it", reads_},
       {"writes", "accesses", "writes of a line or part of it", writes_},
       {"hits", "accesses", "that found their line", hits_},
       {"merged", "accesses", "that found their line in flight", merged_},
       {"misses", "accesses", "that did not find their line", misses_},
       {"fills", "lines", "read from memory", fills_},
       {"write_backs", "lines", "written to memory", write_backs_},
       {"dirty", "lines", "not written to memory at the end", tags_.dirty_lines()},
       {"bank_wait", "cycles", "waiting for a bank, all accesses together", bank_wait_},
       {"mshr_wait", "cycles", "waiting for a miss register or the place of a line in flight",
        register_wait_},
       {"memory_wait", "cycles", "waiting for memory, all fills together", memory_wait_}},
      {}};
  for (std::size_t i = 0; i < banks_.size(); ++i) {
    report.parts.push_back({"bank" + std::to_string(i), banks_[i].account().time(), {}, {}});
  }
  return report;
}

}  // namespace systole::hw
