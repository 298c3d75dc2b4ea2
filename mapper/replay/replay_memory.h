#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "hw/machine/machine.h"
#include "mapper/replay/replay_ports.h"
#include "mapper/replay/replay_tlb.h"

namespace systole::mapper {

/// Bus and DRAM as a few scalars: when each channel is free, which rows are open, which direction
/// its data had. Serves requests by the chunk: all requests of a chunk follow each other
/// evenly.
///
/// The order of the calls is that in which requests come to the controller of
/// hw/memory/dram_timing.h, whose queue of writes moves by the chunk, too.
/// Times are cycles of the core clock, requests and responses on edges of the bus clock.
class ReplayMemory {
 public:
  explicit ReplayMemory(const hw::Machine& machine);

  /// When the chunk's requests are wanted, and what became of them.
  struct Chunk {
    std::uint64_t requests = 0;
    std::uint64_t rows = 0;  ///< that it ends
    std::uint64_t bytes = 0;
    std::uint64_t beats = 0;  ///< on the bus
    double first_issue = 0, last_issue = 0;
    double first_done = 0, last_done = 0;
  };
  /// Moves the next requests of `rows`, at most `limit`, more than the port's window only if it is
  /// alone: none before `ready`; a row, unless it is the first, not within `interval` cycles of the
  /// one before. Some request is moved unless no row is left.
  Chunk move(bool write, ReplayPort& port, ReplayRows& rows, double ready, double interval,
             std::uint64_t limit);

  /// Cycles from request to request of a port that is alone, with so many in flight.
  [[nodiscard]] double pace(std::uint32_t window) const noexcept;

  /// Cycle in which the bus has carried the data of all reads so far.
  [[nodiscard]] double reads_free() const noexcept { return read_bus_free_; }

  /// Requests of a row from `address` on.
  [[nodiscard]] std::uint64_t requests_of(std::uint64_t address,
                                          std::uint64_t bytes) const noexcept {
    return ((address & (request_bytes_ - 1)) + bytes + request_bytes_ - 1) >> request_shift_;
  }

 private:
  ReplayMemory(const hw::Machine& machine, const hw::Machine::Dram& dram);

  struct Bank {
    std::uint64_t area = 0;  ///< 1 + area whose row is open, if the epoch is the channel's
    std::uint64_t epoch = 0;
    double precharge_ok = 0;
  };
  /// The requests of a chunk that open the same rows of DRAM.
  struct Segment {
    std::uint64_t area = 0;
    std::uint64_t groups = 0;               ///< bank groups that they go to, a bit each
    std::uint64_t first = 0, requests = 0;  ///< of the chunk
  };
  static constexpr std::size_t kSegments = 8;  ///< of a chunk
  /// Bursts of writes that a channel has taken and not yet moved.
  struct QueuedWrites {
    Segment segment;
    std::uint32_t bursts = 0;
    double taken = 0;  ///< the last
  };
  struct Channel {
    std::vector<QueuedWrites> writes;  ///< a ring
    std::size_t oldest_writes = 0, queued_writes = 0;
    std::uint32_t queued_bursts = 0;
    bool writing = false;  ///< the last data on the bus
    double bus_free = 0;
    double read_ok = 0;        ///< earliest read command after a write
    double write_data_ok = 0;  ///< earliest write data after a read
    double activate_ok = 0;
    double not_before = 0;  ///< end of the last refresh
    double next_refresh = 0;
    std::uint64_t epoch = 1;
    std::array<double, 4> faw_ok{};
    unsigned oldest_activate = 0;
  };
  struct Shape {
    std::uint64_t requests = 0, beats = 0;
  };

  [[nodiscard]] Shape shape(std::uint64_t address, std::uint64_t bytes) const noexcept;
  [[nodiscard]] double spacing_of(std::uint64_t groups) const noexcept;
  [[nodiscard]] std::uint64_t groups_of(std::uint64_t block, std::uint64_t blocks) const noexcept;
  void add_bursts(std::uint64_t address, std::uint64_t pitch, std::uint64_t blocks,
                  std::uint64_t count, std::uint32_t* counts, std::uint64_t& groups) const;
  bool gather(ReplayRows& rows, std::uint64_t limit, std::uint64_t page_end, std::uint32_t* counts,
              Chunk& chunk, Segment& segment);
  [[nodiscard]] double on_bus(double cycle) const noexcept;
  void serve(std::size_t number, bool write, std::uint32_t bursts, const Segment& segment,
             double first, double last, double& first_end, double& last_end);
  void take(std::size_t number, std::uint32_t bursts, const Segment& segment, double first,
            double last, double& first_end, double& last_end);
  void move_writes(std::size_t number, double decided, std::uint32_t left);
  /// Moves the writes of a channel that begin to move before a request comes at `now`.
  void move_writes_until(std::size_t number, double now) {
    const Channel& channel = channels_[number];
    if (channel.queued_writes == 0) return;
    const double decided = channel.bus_free + (channel.writing ? -cwl_ : turn_);
    if (decided >= now) return;
    const double moved = std::min<double>(channel.queued_bursts, (now - decided) / burst_ + 1);
    move_writes(number, decided, channel.queued_bursts - static_cast<std::uint32_t>(moved));
  }
  double open_rows(Channel& channel, std::size_t number, std::uint64_t groups, std::uint64_t area,
                   double start, double latency);

  [[nodiscard]] double translate(ReplayPort& port, std::uint64_t address, double ready);

  // Sizes, powers of two as shifts.
  std::uint64_t request_bytes_, burst_bytes_;
  unsigned request_shift_, width_shift_, burst_shift_, channel_bits_, group_bits_, bank_bits_,
      area_shift_;
  std::uint64_t word_mask_ = 0;   ///< of the bus
  std::uint64_t header_ = 0;      ///< bytes of a packet's header on a mesh
  std::uint64_t all_groups_ = 0;  ///< a bit for each bank group
  // Core cycles.
  double bus_cycle_, request_latency_, response_latency_;
  double cl_, cwl_, rcd_, rp_, ras_, rtp_, wr_, wtr_, ccd_l_, rrd_s_, faw_, rfc_, refi_;
  double controller_, burst_, read_to_write_, turn_;
  std::uint32_t places_ = 0;  ///< of a channel's write queue
  std::uint32_t high_ = 0, low_ = 0;
  double channel_share_;  ///< of a channel's burst that one of all bursts takes
  double least_spacing_;  ///< of bursts of a channel, in turn to all bank groups
  double pace_;           ///< cycles from request to request, without the latency
  double latency_;        ///< of a read of no data, its row open
  double write_bus_free_ = 0, read_bus_free_ = 0;
  bool fixed_;  ///< a write takes one burst, and the data of a read pass as they come
  std::uint64_t piece_bytes_;  ///< dma.row_bytes; 0: whole rows
  std::optional<ReplayTlb> tlb_;
  std::vector<Channel> channels_;
  std::vector<Bank> banks_;  ///< by channel, bank group, bank of the group
  // Scratch of a chunk.
  std::array<Segment, kSegments> segments_;
  std::vector<std::uint32_t> counts_;  ///< bursts by segment and channel
};

}  // namespace systole::mapper
