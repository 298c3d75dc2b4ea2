#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

#include "base/round.h"
#include "hw/machine/machine.h"

/// What the queue of hw::WritePort does to results on their way to memory, request by request: the
/// stages stand still while it is full.
namespace systole::hw {

/// Beats that wait for their requests: room for those of two whole ones.
class StoreQueue {
 public:
  explicit StoreQueue(const Machine& machine)
      : beat_bytes_(machine.bus.width_bytes),
        beats_(std::max(2 * std::uint64_t{machine.dma.request_bytes} / beat_bytes_,
                        std::uint64_t{2})) {}

  /// Beats of a request.
  [[nodiscard]] std::uint64_t beats(std::uint64_t address, std::uint64_t bytes) const {
    return ceil_div(address % beat_bytes_ + bytes, beat_bytes_);
  }
  /// The first cycle in which the next request, of so many beats, can issue: a cycle after its last
  /// beat has found room.
  [[nodiscard]] std::uint64_t room(std::uint64_t beats) const {
    const std::uint64_t end = issued_ + beats;  // beats so far
    for (const Request& request : requests_) {
      if (request.end + beats_ >= end) return request.sent - (request.end + beats_ - end) + 2;
    }
    return 0;
  }
  /// It issues in that cycle. Its beats follow from the next one on, behind those of the one
  /// before.
  void issue(std::uint64_t cycle, std::uint64_t beats) {
    issued_ += beats;
    sent_ = std::max(cycle, sent_) + beats;
    requests_.push_back({issued_, sent_});
    while (requests_.front().end + beats_ <= issued_) requests_.pop_front();
  }

 private:
  struct Request {
    std::uint64_t end;   ///< beats up to it
    std::uint64_t sent;  ///< cycle of its last one
  };

  std::uint64_t beat_bytes_, beats_;
  std::uint64_t issued_ = 0, sent_ = 0;
  std::deque<Request> requests_;  ///< those whose places the next one can wait for
};

/// A row of results that leaves the stages a piece a cycle, request by request: when each can
/// issue.
class PacedRow {
 public:
  PacedRow() = default;
  /// `bytes` bytes in pieces of `piece`, the last of which a request can have in cycle `ready`.
  PacedRow(std::uint64_t bytes, std::uint64_t piece, std::uint64_t ready)
      : pieces_(ceil_div(bytes, piece)), piece_(piece), ready_(ready) {}

  /// The cycle from which the request up to byte `end` can issue, of so many beats: its own bytes
  /// are there. Where the queue has no room for them all later pieces come later, too.
  std::uint64_t request(std::uint64_t end, std::uint64_t beats, const StoreQueue& queue) {
    const std::uint64_t left = pieces_ - ceil_div(end, piece_);
    const std::uint64_t there = ready_ + stalled_ - std::min(ready_, left);
    const std::uint64_t room = std::max(there, queue.room(beats));
    stalled_ += room - there;
    return room;
  }
  /// Cycles for which the stages have stood still.
  [[nodiscard]] std::uint64_t stalled() const noexcept { return stalled_; }

 private:
  std::uint64_t pieces_ = 0, piece_ = 1, ready_ = 0, stalled_ = 0;
};

}  // namespace systole::hw
