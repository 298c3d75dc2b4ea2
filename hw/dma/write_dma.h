#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "hw/dma/request_cut.h"
#include "hw/machine/machine.h"

/// The cycle contract of a DMA port that writes rows of bytes to memory: which requests it makes,
/// and when. rtl/dma/systole_write_dma.sv meets it.
namespace systole::hw {

/// Beats of the queue between the stages and a port: those of two whole requests.
[[nodiscard]] constexpr std::uint32_t store_queue_beats(std::uint32_t request_bytes,
                                                        std::uint32_t beat_bytes) {
  return 2 * request_bytes / beat_bytes;
}

/// What a port is built for.
struct WriteParams {
  RequestCut cut;  ///< without pieces of rows
  std::uint64_t beat_bytes;
  std::uint32_t outstanding;  ///< requests in flight
  SlotOrder slots;
  std::uint32_t queue_words;  ///< beats that wait, at least those of a request
};

/// `rows` rows of `bytes` bytes, at least one each, `pitch` apart in memory.
struct RowWrite {
  std::uint64_t address = 0, pitch = 0, rows = 1, bytes = 1;
};

struct WriteRequest {
  std::size_t command = 0;  ///< position
  std::uint64_t address = 0, bytes = 0;
  std::uint64_t issued = 0;
  std::uint64_t sent = 0;  ///< cycle of its last beat
  std::uint64_t done = 0;  ///< cycle with which it is answered
};

/// What is at the other side of a port.
struct WriteMemory {
  /// Whether it takes a request, and a beat, in a cycle. There has to be one again and again.
  std::function<bool(std::uint64_t cycle)> takes, takes_data;
  /// The cycle with which a request is done, whose other fields say what it is: at least two after
  /// its last beat, another one for each. Called once for each, in their order.
  std::function<std::uint64_t(const WriteRequest& request)> done;
};

/// A port, cycle by cycle. Pieces of a row, of up to a beat, become aligned beats in a queue. One
/// that ends a row and reaches into a second beat takes a cycle more, in which no piece is taken. A
/// request issues when all of its beats are in the queue, one a cycle, when the memory takes it and
/// it has a slot, as those of hw::ReadPort. Its beats follow from the next cycle on, those of an
/// earlier one first, and leave one a cycle.
class WritePort {
 public:
  WritePort(const WriteParams& params, WriteMemory memory);

  /// All requests of the command before have been issued.
  [[nodiscard]] bool can_start() const { return next_ == cut_.size(); }
  /// A command that starts in the cycle that is next. Its pieces follow.
  void start(const RowWrite& command, std::size_t position);
  /// A piece can come in the next cycle.
  [[nodiscard]] bool takes() const { return !flush_ && words_ < params_.queue_words; }
  /// The next cycle. `piece`: bytes that come in it, 0: none.
  void step(std::uint64_t cycle, std::uint64_t piece, bool row_end);

  [[nodiscard]] bool idle() const { return can_start() && to_send_ == requests_.size(); }
  /// Those that have been issued.
  [[nodiscard]] const std::vector<WriteRequest>& requests() const { return requests_; }

 private:
  [[nodiscard]] bool has_slot(std::uint64_t cycle) const;
  void send(std::uint64_t cycle);
  void issue(std::uint64_t cycle);
  void push(bool last_of_request);

  const WriteParams params_;
  const WriteMemory memory_;
  RowWrite command_;
  std::vector<WriteRequest> cut_;   ///< of the command
  std::size_t next_ = 0;            ///< of these, to be issued
  std::uint64_t row_ = 0, at_ = 0;  ///< addresses: of the row, of its next byte
  bool flush_ = false;
  std::uint64_t words_ = 0, complete_ = 0;  ///< in the queue: beats, whole requests not issued
  std::vector<WriteRequest> requests_;
  std::size_t to_send_ = 0;  ///< of these, the one whose beats leave next
  std::uint64_t beats_ = 0;  ///< of it that have left
};

}  // namespace systole::hw
