#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

#include "base/round.h"
#include "hw/dma/write_dma.h"
#include "hw/machine/machine.h"

/// What the queue of hw::WritePort does to results on their way to memory, request by request: the
/// stages stand still while it is full.
namespace systole::hw {

/// Beats that wait for their requests.
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
  /// A request issues in the cycle after its last beat has found room. The first such cycle if the
  /// next one had so many beats.
  [[nodiscard]] std::uint64_t room(std::uint64_t beats) const {
    const std::uint64_t end = issued_ + beats;  // beats so far
    if (end <= beats_) return 0;
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
  /// The first cycle in which it takes a piece of the next row.
  [[nodiscard]] std::uint64_t free() const noexcept { return free_; }
  void end_row(std::uint64_t free) { free_ = free; }

 private:
  struct Request {
    std::uint64_t end;   ///< beats up to it
    std::uint64_t sent;  ///< cycle of its last one
  };

  std::uint64_t beat_bytes_, beats_;
  std::uint64_t issued_ = 0, sent_ = 0, free_ = 0;
  std::deque<Request> requests_;  ///< those whose places the next one can wait for
};

/// A row of results that leaves the stages a piece a cycle, request by request: when each can
/// issue.
class PacedRow {
 public:
  PacedRow() = default;
  /// `bytes` bytes for `address` in pieces of `piece`, no longer than a beat, the last of which a
  /// request can have in cycle `ready`.
  PacedRow(std::uint64_t address, std::uint64_t bytes, std::uint64_t piece, std::uint64_t ready,
           const StoreQueue& queue)
      : address_(address),
        bytes_(bytes),
        pieces_(ceil_div(bytes, piece)),
        piece_(piece),
        ready_(ready) {
    // What its last piece has for a beat of its own goes there a cycle later.
    const std::uint64_t beat = queue.beat_bytes();
    const std::uint64_t last = address + (pieces_ - 1) * piece, end = address + bytes;
    over_ = last / beat != end / beat && end % beat != 0 ? 1 : 0;
    const std::uint64_t first = ready - std::min(ready, pieces_);
    stalled_ = queue.free() - std::min(queue.free(), first);
  }

  /// The cycle from which its request of `bytes` bytes can issue that begins with byte `at`: they
  /// are there. Where the queue has no room for one all later ones come later, too.
  std::uint64_t request(std::uint64_t at, std::uint64_t bytes, const StoreQueue& queue) {
    const std::uint64_t beats = queue.beats(address_ + at, bytes);
    // No beat waits if the last one would not if it came with the first.
    if (queue.room(beats) + pieces_in(at, at + bytes) <= ready_with(at + 1)) {
      return ready_with(at + bytes);
    }
    for (std::uint64_t beat = 1, from = at; beat <= beats; ++beat) {
      const std::uint64_t width = queue.beat_bytes();
      const std::uint64_t to =
          std::min(at + bytes, ((address_ + at) / width + beat) * width - address_);
      // All pieces of a beat have to find room for it.
      const std::uint64_t pieces = std::max(pieces_in(from, to), std::uint64_t{1});
      const std::uint64_t room = queue.room(beat) + pieces - 1;
      stalled_ += room - std::min(room, ready_with(to));
      from = to;
    }
    return ready_with(at + bytes);
  }
  /// All its requests have issued.
  void end(StoreQueue& queue) const { queue.end_row(ready_ + stalled_ + over_); }
  /// Cycles for which the stages stand still by its end.
  [[nodiscard]] std::uint64_t stalled() const noexcept { return stalled_; }

 private:
  /// Pieces that end after byte `from`, up to the one with the byte before `to`.
  [[nodiscard]] std::uint64_t pieces_in(std::uint64_t from, std::uint64_t to) const {
    return ceil_div(to, piece_) - ceil_div(from, piece_);
  }
  /// The cycle in which a request up to byte `end` can have it.
  [[nodiscard]] std::uint64_t ready_with(std::uint64_t end) const {
    const std::uint64_t left = pieces_in(end, bytes_);
    return ready_ + stalled_ + (end == bytes_ ? over_ : 0) - std::min(ready_, left);
  }

  std::uint64_t address_ = 0, bytes_ = 0, pieces_ = 0, piece_ = 1, ready_ = 0;
  std::uint64_t over_ = 0, stalled_ = 0;
};

}  // namespace systole::hw
