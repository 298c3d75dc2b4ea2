#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "tlm/ring/memory_port.h"

namespace systole::tlm_model::dfx {

/// Operands on their way from a memory: the DMA fetches them in the order in which they are used,
/// as far ahead as its buffer goes. Times are core cycles.
class OperandStream {
 public:
  /// `slots` pieces fit in the buffer. The port takes `port_bytes` in a cycle.
  OperandStream(MemoryPort& memory, std::uint32_t slots, std::uint64_t port_bytes)
      : memory_(memory), port_bytes_(port_bytes), freed_(slots, 0) {}

  /// Fetches `pieces` <= slots that lie one behind the other, `bytes` in all, not before
  /// `earliest`, and returns when they are there.
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
