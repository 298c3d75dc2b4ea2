#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/accounting.h"
#include "hw/machine/machine.h"
#include "hw/memory/dram_mapping.h"

namespace systole::hw {

/// The times of Machine::Dram in integer picoseconds.
struct DramTimes {
  std::uint64_t cl, cwl;       ///< column command to first data
  std::uint64_t rcd, rp, ras;  ///< activate to column, precharge to activate, activate to precharge
  std::uint64_t rtp, wr;       ///< read command, end of write data, to precharge
  std::uint64_t wtr;           ///< end of write data to read command
  std::uint64_t ccd_l;         ///< column to column in one bank group
  std::uint64_t rrd_s, rrd_l;  ///< activate to activate, in other and in the same bank group
  std::uint64_t faw;           ///< the first to the fifth of five activates
  std::uint64_t rfc, refi;     ///< refresh: its length, and its period (0: none)
  std::uint64_t controller;    ///< arrival to the first possible command
  std::uint64_t burst;         ///< data bus time of a burst, rounded up; also tCCD_S
  std::uint64_t read_to_write;  ///< data bus gap from read to write data: 2 clocks (JESD79-4 4.25)
  std::uint64_t turn;           ///< what a write between two reads costs on the data bus

  /// Throws std::invalid_argument if a time is negative, not finite or absurd, or if the refresh
  /// leaves no room for a single access.
  explicit DramTimes(const Machine::Dram& dram);
};

/// What became of one request.
struct DramAccess {
  /// First data on the bus, and after the last, ps. Of a write that waits in a queue: when the
  /// queue had taken its first burst, and its last.
  std::uint64_t begin, end;
  // Of all bursts that moved meanwhile, writes of a queue too:
  std::uint64_t refresh_wait;  ///< how long refreshes held back the commands, ps
  std::uint32_t hits;          ///< bursts that found their row open,
  std::uint32_t misses;        ///< ... their bank closed,
  std::uint32_t conflicts;     ///< ... another row open
};

/// A burst and the commands before it, ps.
struct DramBurst {
  DramLocation at;
  bool write;
  bool closes;                        ///< another row, with a precharge
  bool opens;                         ///< its own row, with an activate
  std::uint64_t precharge;            ///< if it closes
  std::uint64_t activate, row_ready;  ///< if it opens
  std::uint64_t begin, end;           ///< data
};

/// Watches a DRAM: told of each burst and of the refreshes that it finds, when they are planned.
class DramWatch {
 public:
  virtual ~DramWatch() = default;
  virtual void burst(const DramBurst& burst) = 0;
  /// All rows of the channel are closed from `begin` on, and none opens before `end`.
  virtual void refresh(std::uint32_t channel, std::uint64_t begin, std::uint64_t end) = 0;
  /// Of the channel's data bus.
  [[nodiscard]] virtual AccountWatch& channel(std::size_t index) = 0;
};

/// Timing of a DRAM with an open-page controller, in integer picoseconds.
///
/// A pure state machine: requests are given in the order in which they come to the controller, each
/// with its time of arrival, and it answers when their data move. Per channel, the bursts of reads
/// keep that order, and so do those of writes; the precharge and activate of a later one overlap
/// the data of an earlier one, as far as it had arrived. The command bus is taken to be free (a
/// burst needs at most three of its command slots per four data clocks).
///
/// Each channel has a queue of Machine::Dram::write_queue bursts of writes. A write is answered
/// when it is in the queue, a controller latency after its arrival or when the burst so many writes
/// before it has moved. Reads pass it. Writes move, in their order,
/// - when write_high_percent of the places are taken, until write_low_percent are: as many in a row
///   turn the data bus twice;
/// - while no request is there and, after a read, the data bus has been idle for DramTimes::turn: a
///   wait of what a turn costs takes at most twice the time of the best choice;
/// - all of them before a read of one of their bursts: one by one, before a stream of reads that
///   follows them, each would turn the data bus twice.
/// Without a queue, reads and writes move in the order in which they come.
///
/// Refresh is all-bank and punctual: commands are excluded from [k refi, k refi + rfc), k >= 1, and
/// a burst is only started if its bank can be precharged again before the next refresh. Refresh
/// closes all rows.
class DramTiming {
 public:
  /// Why a channel's data bus, with a request pending, is not moving data. The meanings are in
  /// the .cpp file. A delay of a command counts as the delay of the data that follow it.
  enum Cause : std::size_t { kLatency, kRefresh, kBankBusy, kRowMiss, kRowConflict, kTurnaround };

  /// Places of a write queue that are taken: from so many on writes have to move, until so few are.
  struct WriteMarks {
    explicit WriteMarks(const Machine::Dram& dram)
        : high(std::max(1U, dram.write_queue * dram.write_high_percent / 100)),
          low(std::min(high - 1, dram.write_queue * dram.write_low_percent / 100)) {}
    std::uint32_t high, low;
  };

  /// Throws std::invalid_argument for parameters that cannot work.
  explicit DramTiming(const Machine::Dram& dram);

  /// Serves `bytes` > 0 from `address`, which arrive at the controller at `arrival` (ps). Whole
  /// bursts are moved, also for a part of one, and a burst has a place in the queue. Throws
  /// std::invalid_argument for no bytes and std::out_of_range for a request beyond the capacity.
  DramAccess access(std::uint64_t address, std::uint64_t bytes, bool write, std::uint64_t arrival);

  /// The same for requests of a whole burst each, inside the capacity: `next()` returns their
  /// addresses one after the other, multiples of DramMapping::burst_bytes(); `times` are the
  /// arrivals, and afterwards what access() calls the end, ps. While a burst finds its row open, it
  /// costs the host about a third of access().
  template <typename Next>
  void access_bursts(bool write, std::vector<std::uint64_t>& times, Next next) {
    if (write) {
      access_bursts<true>(times, next);
    } else {
      access_bursts<false>(times, next);
    }
  }

  /// The same for as many as can be of `count` bursts, one after the other in memory, that arrive
  /// `step` ps after each other, if that is how their data end, too, from end_alone() on: none
  /// waits for another, a bank or a refresh. Returns how many were served; none while watched, of
  /// writes with a queue, or if it is not certain in advance that this is so of the first `least`.
  std::size_t access_each(std::uint64_t address, bool write, std::uint64_t arrival,
                          std::uint64_t step, std::size_t count, std::size_t least);

  /// What access() calls the end of a burst, ps, if it arrives at `arrival` and waits for nothing.
  [[nodiscard]] std::uint64_t end_alone(bool write, std::uint64_t arrival) const noexcept {
    if (write && places_ != 0) return arrival + times_.controller;
    return arrival + times_.controller + (write ? times_.cwl : times_.cl) + times_.burst;
  }

  /// From `now` ps on, time counts in the accounts or it does not. See
  /// BlockAccount::set_counting().
  void set_counting(bool on, std::uint64_t now);

  /// Tells `watch` of the accesses to come. It has to outlive them.
  void watch(DramWatch& watch);

  /// Closes the accounts at `total` ps, the end of the run, or where the last data end if that is
  /// later. Writes that had not begun to move stay in their queues.
  void finish(std::uint64_t total);

  /// No access to come moves data whose first command is before this time, ps, if all to come
  /// arrive at `now` or later.
  [[nodiscard]] std::uint64_t settled(std::uint64_t now) const noexcept;

  [[nodiscard]] const DramTimes& times() const noexcept { return times_; }
  [[nodiscard]] const DramMapping& mapping() const noexcept { return mapping_; }
  [[nodiscard]] std::uint64_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::size_t channels() const noexcept { return channels_.size(); }
  /// Of a channel.
  [[nodiscard]] std::size_t banks() const noexcept { return channels_.front().banks.size(); }
  [[nodiscard]] const BlockAccount& account(std::size_t channel) const {
    return channels_.at(channel).account;
  }
  [[nodiscard]] std::uint64_t refreshes() const noexcept;
  /// Times that a data bus turned from reads to writes.
  [[nodiscard]] std::uint64_t turns() const noexcept;
  /// Bursts of writes in the queues.
  [[nodiscard]] std::uint64_t waiting_writes() const noexcept;
  /// Bursts so far that found their row open, their bank closed, another row open.
  [[nodiscard]] const std::uint64_t& hits() const noexcept { return hits_; }
  [[nodiscard]] const std::uint64_t& misses() const noexcept { return misses_; }
  [[nodiscard]] const std::uint64_t& conflicts() const noexcept { return conflicts_; }

  /// The counters of the whole memory, and each channel's account.
  [[nodiscard]] BlockReport report(std::string name) const;

 private:
  struct Bank {
    std::uint64_t row = 0;
    std::uint64_t epoch = 0;         ///< the row is open if this is the channel's epoch
    std::uint64_t column_ok = 0;     ///< earliest column command
    std::uint64_t precharge_ok = 0;  ///< earliest precharge
  };
  struct Group {
    std::uint64_t column_ok = 0;    ///< tCCD_L
    std::uint64_t activate_ok = 0;  ///< tRRD_L
  };
  /// A burst of a write that a channel has taken.
  struct QueuedWrite {
    std::uint64_t address = 0;
    std::uint64_t taken = 0;  ///< when
    std::uint64_t moved = 0;  ///< its data, ps: the place is free again
  };
  struct Channel {
    Channel(const Machine::Dram& dram);
    /// A write has come that does not move yet.
    [[nodiscard]] bool has_writes() const noexcept { return moved_writes != taken_writes; }
    std::vector<QueuedWrite> writes;                   ///< a ring
    std::uint64_t taken_writes = 0, moved_writes = 0;  ///< so far
    std::uint64_t lowest_write = 0,
                  highest_write = 0;  ///< no address of a waiting write is outside
    bool writing = false;             ///< the last data on the bus
    std::uint64_t turns = 0;          ///< from reads to writes
    std::vector<Bank> banks;
    std::vector<Group> groups;
    std::array<std::uint64_t, 4> faw_ok{};  ///< ring: end of tFAW after each of the last activates
    std::size_t oldest_activate = 0;
    std::uint64_t activate_ok = 0;  ///< tRRD_S
    std::uint64_t bus_free = 0;
    std::uint64_t read_ok = 0;        ///< earliest read command after a write
    std::uint64_t write_data_ok = 0;  ///< earliest write data after a read
    std::uint64_t not_before = 0;     ///< end of the last refresh
    std::uint64_t next_refresh;
    std::uint64_t epoch = 1;  ///< counts the refreshes that closed the rows
    std::uint64_t refreshes = 0;
    BlockAccount account;
  };
  enum class Row { kHit, kMiss, kConflict };
  /// The commands of one burst.
  struct Plan {
    Row row;
    std::uint64_t first;         ///< the first command, whatever it is
    std::uint64_t activate;      ///< unless the row is open
    std::uint64_t row_ready;     ///< row open, column command allowed by the bank
    std::uint64_t unblocked;     ///< ... and by the bank group
    std::uint64_t begin, end;    ///< data
    std::uint64_t precharge_ok;  ///< of the bank afterwards
    std::uint64_t recovered;     ///< when a refresh could start
  };

  /// When the row of a burst whose data begin at `begin` may close.
  [[nodiscard]] std::uint64_t precharge_after(std::uint64_t begin, bool write) const noexcept {
    return write ? begin + times_.burst + times_.wr : begin - times_.cl + times_.rtp;
  }
  /// The last data of the channel so far end at `end`.
  void end_data(Channel& channel, bool write, std::uint64_t end) const noexcept {
    channel.bus_free = end;
    if (write) {
      channel.turns += channel.writing ? 0 : 1;
      channel.read_ok = end + times_.wtr;
    } else {
      channel.write_data_ok = end + times_.read_to_write;
    }
    channel.writing = write;
  }
  /// When the next write that waits moves, if no request comes before: so that its data follow
  /// those of another write.
  [[nodiscard]] std::uint64_t next_write(const Channel& channel) const noexcept {
    const std::uint64_t taken = channel.writes[channel.moved_writes % places_].taken;
    return std::max(
        taken, channel.writing ? channel.bus_free - times_.cwl : channel.bus_free + times_.turn);
  }
  /// Whether a waiting write may be of that burst.
  [[nodiscard]] static bool may_wait(const Channel& channel, std::uint64_t address) noexcept {
    return channel.has_writes() && address >= channel.lowest_write &&
           address <= channel.highest_write;
  }
  /// The bank of a group that a stream visits with the one at `at`.
  [[nodiscard]] Bank& bank_of(Channel& channel, const DramLocation& at, std::size_t group) const {
    return channel.banks[mapping_.bank_of(at, static_cast<std::uint32_t>(group))];
  }
  /// Counts requests of a burst each that found their rows open.
  void count_bursts(bool write, std::size_t count) noexcept {
    (write ? writes_ : reads_) += count;
    (write ? written_bytes_ : read_bytes_) += count * mapping_.burst_bytes();
    hits_ += count;
  }
  [[nodiscard]] Plan plan(const Channel& channel, const DramLocation& at, bool write,
                          std::uint64_t ready) const noexcept;
  void refresh(Channel& channel, std::uint64_t ready) const noexcept;
  void commit(Channel& channel, const DramLocation& at, bool write,
              const Plan& plan) const noexcept;
  void account(Channel& channel, bool write, std::uint64_t arrival, std::uint64_t ready,
               const Plan& plan) const;
  template <bool kWrite, typename Next>
  void access_bursts(std::vector<std::uint64_t>& times, Next next);
  void serve_burst(std::uint64_t address, bool write, std::uint64_t arrival, DramAccess& result);
  Plan move(const DramLocation& at, bool write, std::uint64_t arrival, std::uint64_t ready,
            DramAccess& result);
  void move_write(Channel& channel, std::uint64_t decided, DramAccess& result);
  void move_writes_until(Channel& channel, std::uint64_t now, DramAccess& result);
  void move_writes_for(Channel& channel, std::uint64_t address, std::uint64_t now,
                       DramAccess& result);
  std::uint64_t take(Channel& channel, std::uint64_t address, std::uint64_t arrival,
                     DramAccess& result);
  void count_rows(const DramAccess& access) noexcept;
  /// How many of `count` bursts from `address` on find their rows open, if no refresh comes.
  [[nodiscard]] std::size_t count_hits(std::uint64_t address, std::size_t count) const noexcept;
  DramMapping mapping_;
  DramTimes times_;
  std::uint64_t capacity_;
  std::uint64_t places_;  ///< of a channel's write queue
  WriteMarks marks_;
  std::vector<Channel> channels_;
  DramWatch* watch_ = nullptr;
  std::uint64_t reads_ = 0, writes_ = 0, read_bytes_ = 0, written_bytes_ = 0;
  std::uint64_t hits_ = 0, misses_ = 0, conflicts_ = 0;
};

// What serve_burst() does for rows that are open and stay so, with what is the same for all kept in
// registers: nearly every request of a simulation is one of these.
template <bool kWrite, typename Next>
void DramTiming::access_bursts(std::vector<std::uint64_t>& times, Next next) {
  const DramMapping mapping = mapping_;
  if (kWrite && places_ != 0) {
    DramAccess moved{};
    for (std::uint64_t& time : times) {
      const std::uint64_t address = next();
      time = take(channels_[mapping.locate(address).channel], address, time, moved);
    }
    writes_ += times.size();
    written_bytes_ += times.size() * mapping.burst_bytes();
    count_rows(moved);
    return;
  }
  const std::uint64_t latency = kWrite ? times_.cwl : times_.cl;
  const std::uint64_t controller = times_.controller, burst = times_.burst, rp = times_.rp;
  const std::uint64_t ccd = times_.ccd_l - latency;
  std::size_t served = 0;
  for (std::uint64_t& time : times) {
    const std::uint64_t address = next(), arrival = time, ready = arrival + controller;
    const DramLocation at = mapping.locate(address);
    Channel& channel = channels_[at.channel];
    Bank& bank = channel.banks[at.bank];
    Group& group = channel.groups[at.group];
    const std::uint64_t unblocked =
        std::max(std::max(ready, channel.not_before), std::max(bank.column_ok, group.column_ok));
    const std::uint64_t column = kWrite ? unblocked : std::max(unblocked, channel.read_ok);
    std::uint64_t begin = std::max(column + latency, channel.bus_free);
    if (kWrite) begin = std::max(begin, channel.write_data_ok);
    const std::uint64_t end = begin + burst;
    const std::uint64_t precharge_ok = std::max(bank.precharge_ok, precharge_after(begin, kWrite));
    if (bank.row != at.row || bank.epoch != channel.epoch ||
        std::max(precharge_ok + rp, end) > channel.next_refresh || watch_ != nullptr ||
        (channel.has_writes() && (next_write(channel) < arrival || may_wait(channel, address)))) {
      time = access(address, mapping.burst_bytes(), kWrite, arrival).end;
      continue;
    }
    time = end;
    ++served;
    bank.precharge_ok = precharge_ok;
    group.column_ok = begin + ccd;
    end_data(channel, kWrite, end);
    BlockAccount& account = channel.account;
    if (begin != ready + latency && begin > account.now()) {  // not its latency alone held it up
      account.idle_until(arrival);
      account.stall_until(ready + latency, kLatency);
      account.stall_until(channel.not_before + latency, kRefresh);
      account.stall_until(unblocked + latency, kBankBusy);
      account.stall_until(begin, kTurnaround);
    }
    account.serve(arrival, begin, end, kLatency);
  }
  count_bursts(kWrite, served);
}

}  // namespace systole::hw
