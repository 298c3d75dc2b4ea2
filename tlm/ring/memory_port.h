#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <vector>

#include "tlm/common/time.h"

namespace systole::tlm_model::dfx {

/// A memory that a core reaches through one of its ports.
class PortMemory {
 public:
  virtual ~PortMemory() = default;
  /// Serves `bytes` from `address`, which leave the core at `ps`, and returns when all of them have
  /// been moved. Calls may go back in time: the DMA asks for operands as soon as it has room.
  virtual std::uint64_t access(std::uint64_t address, std::uint64_t bytes, bool write,
                               std::uint64_t ps) = 0;
};

/// A core's way to its HBM: reads are served as they are asked for, writes of the caches when their
/// time has come, between reads that were asked for later. Times are core cycles.
class MemoryPort {
 public:
  /// Both must outlive it.
  MemoryPort(PortMemory& memory, const Clock& clock) : memory_(memory), clock_(clock) {}

  /// Reads `bytes`, asked for at `cycle`, and returns when they have arrived.
  std::uint64_t read(std::uint64_t address, std::uint64_t bytes, std::uint64_t cycle) {
    write_until(cycle);
    return access(address, bytes, false, cycle);
  }

  /// Keys or values of a text in a layer, `bytes` from `address` on, are written from now on.
  void open_cache(std::uint64_t address, std::uint64_t bytes) {
    write_until(kForever);
    caches_[address] = {bytes, 0};
  }
  /// A part of the cache that begins at `cache`, in flight from `cycle` on.
  void write(std::uint64_t cache, std::uint64_t address, std::uint64_t bytes, std::uint64_t cycle) {
    writes_.push_back({cache, address, bytes, cycle});
  }
  /// When what was written to the cache at `address` can be read: 0 if there is none.
  std::uint64_t cache_ready(std::uint64_t address) {
    const auto after = caches_.upper_bound(address);
    if (after == caches_.begin()) return 0;
    const auto& [begin, cache] = *std::prev(after);
    if (address - begin >= cache.bytes) return 0;
    write_until(kForever);
    return cache.ready;
  }

 private:
  static constexpr std::uint64_t kForever = ~std::uint64_t{0};
  struct Cache {
    std::uint64_t bytes = 0, ready = 0;
  };
  struct Write {
    std::uint64_t cache, address, bytes, cycle;
  };

  std::uint64_t access(std::uint64_t address, std::uint64_t bytes, bool write,
                       std::uint64_t cycle) {
    return clock_.cycle_from_ps(memory_.access(address, bytes, write, clock_.edge_ps(cycle)));
  }
  void write_until(std::uint64_t cycle) {
    for (; !writes_.empty() && writes_.front().cycle <= cycle; writes_.pop_front()) {
      const Write& write = writes_.front();
      Cache& cache = caches_[write.cache];
      cache.ready = std::max(cache.ready, access(write.address, write.bytes, true, write.cycle));
    }
  }

  PortMemory& memory_;
  const Clock& clock_;
  std::map<std::uint64_t, Cache> caches_;  ///< by address
  std::deque<Write> writes_;               ///< in order of time
};

/// Operands in flight from a memory: the DMA fetches them in the order in which they are used,
/// as far ahead as its buffer goes. Times are core cycles.
class OperandStream {
 public:
  /// `slots` pieces fit in the buffer. The port takes `port_bytes` in a cycle.
  OperandStream(MemoryPort& memory, std::uint32_t slots, std::uint64_t port_bytes)
      : memory_(memory), port_bytes_(port_bytes), freed_(slots, 0) {}

  /// Fetches `pieces` <= slots that lie one after the other, `bytes` in all, not before
  /// `earliest`, and returns when they have arrived.
  std::uint64_t fetch(std::uint64_t address, std::uint64_t bytes, std::uint32_t pieces,
                      std::uint64_t earliest) {
    const std::size_t last = (next_ + pieces - 1) % freed_.size();
    const std::uint64_t asked = std::max(earliest, freed_[last]);
    const std::uint64_t transfer = (bytes + port_bytes_ - 1) / port_bytes_;
    port_free_ = std::max(port_free_ + transfer, memory_.read(address, bytes, asked));
    bytes_ += bytes;
    return port_free_;
  }

  /// The pieces that were fetched last leave the buffer at `cycle`.
  void release(std::uint32_t pieces, std::uint64_t cycle) {
    for (std::uint32_t i = 0; i < pieces; ++i) {
      freed_[next_] = cycle;
      next_ = next_ + 1 == freed_.size() ? 0 : next_ + 1;
    }
  }

  [[nodiscard]] std::uint32_t slots() const { return static_cast<std::uint32_t>(freed_.size()); }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  MemoryPort& memory_;
  const std::uint64_t port_bytes_;
  std::vector<std::uint64_t> freed_;  ///< when each slot was given back, a ring
  std::size_t next_ = 0;
  std::uint64_t port_free_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace systole::tlm_model::dfx
