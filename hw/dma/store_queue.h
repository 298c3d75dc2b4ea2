#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/round.h"
#include "hw/dma/write_dma.h"
#include "hw/machine/machine.h"

namespace systole::hw {

/// The queue of hw::WritePort, request by request: beats that wait for their requests. The stages
/// stand still while it is full.
class StoreQueue {
 public:
  explicit StoreQueue(const Machine& machine)
      : beat_bytes_(machine.bus.width_bytes),
        beats_(
            std::max(store_queue_beats(machine.dma.request_bytes, machine.bus.width_bytes), 2U)) {}

  [[nodiscard]] std::uint64_t beat_bytes() const noexcept { return beat_bytes_; }
  /// Beats of a request.
  [[nodiscard]] std::uint64_t beats(std::uint64_t address, std::uint64_t bytes) const {
    return blocks_touched(address, bytes, beat_bytes_);
  }
  /// Beats of the requests that have issued.
  [[nodiscard]] std::uint64_t issued() const noexcept { return issued_; }
  /// The first cycle in which it takes something when `beats` beats have come, if that is known:
  /// the requests of those that have to leave for it have issued.
  [[nodiscard]] std::optional<std::uint64_t> takes(std::uint64_t beats) const {
    if (beats < beats_) return 0;
    const std::uint64_t gone = beats - beats_ + 1;  // that have to have left
    for (const Request& request : requests_) {
      if (request.end >= gone) return request.sent - (request.end - gone) + 1;
    }
    return std::nullopt;
  }
  /// The next request issues in that cycle. Its beats follow from the next one on, behind those of
  /// the one before.
  void issue(std::uint64_t cycle, std::uint64_t beats) {
    issued_ += beats;
    sent_ = std::max(cycle, sent_) + beats;
    requests_.push_back({issued_, sent_});
    auto kept = requests_.begin();
    while (kept->end + beats_ <= issued_) ++kept;
    requests_.erase(requests_.begin(), kept);
  }

 private:
  struct Request {
    std::uint64_t end;   ///< beats up to it
    std::uint64_t sent;  ///< cycle of its last one
  };

  std::uint64_t beat_bytes_, beats_;
  std::uint64_t issued_ = 0, sent_ = 0;
  std::vector<Request> requests_;  ///< those few whose places the next one can wait for
};

}  // namespace systole::hw
