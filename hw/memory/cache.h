#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/accounting.h"
#include "base/calendar.h"
#include "hw/machine/machine.h"
#include "hw/memory/cache_tags.h"

namespace systole::hw {

/// The memory below a cache, which moves its lines. Cycles are the cache's.
class LineMemory {
 public:
  virtual ~LineMemory() = default;
  /// The line in `slot` is evicted: its bytes are needed until write_back().
  virtual void set_aside(CacheTags::Slot slot) = 0;
  /// Brings a line to `slot`; requested in `cycle`, it is valid in the cycle returned.
  virtual std::uint64_t fill(std::uint64_t line, CacheTags::Slot slot, std::uint64_t cycle) = 0;
  /// Writes the line that was set aside; sent in `cycle`, acknowledged in the cycle returned.
  virtual std::uint64_t write_back(std::uint64_t line, std::uint64_t cycle) = 0;
};

/// What a bank of a cache is busy with.
enum class CacheUse : std::uint8_t {
  kHit = 1,        ///< an access that finds its line
  kMerged = 2,     ///< one that finds it in flight
  kMiss = 3,       ///< one that does not find it
  kFill = 4,       ///< a line comes in
  kWriteBack = 5,  ///< a line is read for memory
};

/// Watches a cache: told how long a bank is busy with a line, in cycles, when that is planned.
class CacheWatch {
 public:
  virtual ~CacheWatch() = default;
  virtual void use(std::size_t bank, CacheUse use, std::uint64_t line, std::uint64_t begin,
                   std::uint64_t end) = 0;
};

/// Timing of a shared write-back cache with banks and miss registers (MSHRs), in bus cycles.
///
/// A pure state machine: accesses are given in the order in which the cache serves them, each with
/// its cycle of arrival. Line n resides in bank n mod `banks`, which moves `bank_bytes` a cycle.
/// With B = ceil(bytes / bank_bytes) cycles of a bank for the requested data:
///
///     hit:  done hit_latency + B - 1 cycles after its bank began with it; a line in flight is a
///           hit as well (`merged`), done B - 1 cycles after it is valid if that is later
///     miss: after hit_latency cycles it takes a miss register and requests the line from memory;
///           done when the line is valid. A write of a whole line needs no fill and is done at once
///
/// A dirty line is written back when another needs its place: its bank reads it, and the write
/// follows the fill. The register is held until both are acknowledged; a line in flight cannot be
/// evicted before its fill completes. A fill takes its bank's cycles as well.
class Cache {
 public:
  /// Throws std::invalid_argument for a cache of 0 KiB, or without whole sets, banks or registers.
  Cache(const Machine::L2& params, LineMemory& memory);

  struct Access {
    std::uint64_t done;    ///< cycle of the last byte or the acknowledgement
    CacheTags::Slot slot;  ///< where the line resides
  };
  /// Reads or writes `bytes` > 0 of one line, arriving at `cycle`.
  Access access(std::uint64_t line, std::uint32_t bytes, bool write, std::uint64_t cycle);

  /// Tells `watch` of the accesses to come. It has to outlive them.
  void watch(CacheWatch& watch) noexcept { watch_ = &watch; }
  /// No access will arrive before cycle `now`.
  void retire(std::uint64_t now);
  /// From cycle `now` on, time counts in the accounts or it does not. See Calendar::set_counting().
  void set_counting(bool on, std::uint64_t now);
  /// Ends the accounts at cycle `total`, the end of the run.
  void finish(std::uint64_t total);

  [[nodiscard]] std::size_t banks() const noexcept { return banks_.size(); }
  [[nodiscard]] const CacheTags& tags() const noexcept { return tags_; }
  /// Bytes moved between the cache and the memory below it.
  [[nodiscard]] std::uint64_t memory_bytes() const noexcept {
    return (fills_ + write_backs_) * params_.line_bytes;
  }
  /// Bytes that the banks read or wrote.
  [[nodiscard]] std::uint64_t bank_bytes() const noexcept { return asked_bytes_ + memory_bytes(); }

  /// The counters of the whole cache, and each bank's account.
  [[nodiscard]] BlockReport report(std::string name) const;

 private:
  [[nodiscard]] std::uint64_t beats(std::uint64_t bytes) const {
    return (bytes + params_.bank_bytes - 1) / params_.bank_bytes;
  }
  /// Reserves the bank of a line from `earliest` on, and returns the cycle in which it begins.
  std::uint64_t reserve(std::uint64_t line, std::uint64_t earliest, std::uint64_t length) {
    return banks_[line % banks_.size()].reserve(earliest, length);
  }
  void show(CacheUse use, std::uint64_t line, std::uint64_t begin, std::uint64_t length) const {
    if (watch_ != nullptr) watch_->use(line % banks_.size(), use, line, begin, begin + length);
  }
  /// Serves the miss that was noticed in `cycle`. Returns when it is done.
  std::uint64_t miss(std::uint64_t line, const CacheTags::Access& place, bool needs_line,
                     std::uint64_t cycle);

  const Machine::L2 params_;
  LineMemory& memory_;
  CacheTags tags_;
  std::vector<std::uint64_t> valid_at_;   ///< per slot: cycle from which its line is valid
  std::vector<std::uint64_t> registers_;  ///< cycle from which each is free
  std::vector<Calendar> banks_;
  CacheWatch* watch_ = nullptr;
  std::uint64_t reads_ = 0, writes_ = 0, hits_ = 0, merged_ = 0, misses_ = 0;
  std::uint64_t fills_ = 0, write_backs_ = 0, asked_bytes_ = 0;
  std::uint64_t bank_wait_ = 0, register_wait_ = 0, memory_wait_ = 0;
};

}  // namespace systole::hw
