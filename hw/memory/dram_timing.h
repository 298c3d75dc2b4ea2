#pragma once

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

  /// Throws std::invalid_argument if a time is negative, not finite or absurd, or if the refresh
  /// leaves no room for a single access.
  explicit DramTimes(const Machine::Dram& dram);
};

/// What became of one request.
struct DramAccess {
  std::uint64_t begin;         ///< first data on the bus, ps
  std::uint64_t end;           ///< after the last data, ps
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

/// Timing of a DRAM with an open-page, first-come-first-served controller, in integer picoseconds.
///
/// A pure state machine: requests are given in the order in which the controller serves them, each
/// with its time of arrival, and it answers when their data move. Per channel, data bursts keep
/// that order; the precharge and activate of a later request overlap the data of an earlier one,
/// as far as it had arrived. The command bus is taken to be free (a burst needs at most three of
/// its command slots per four data clocks).
///
/// Refresh is all-bank and punctual: commands are excluded from [k refi, k refi + rfc), k >= 1, and
/// a burst is only started if its bank can be precharged again before the next refresh. Refresh
/// closes all rows.
class DramTiming {
 public:
  /// Why a channel's data bus, with a request pending, is not moving data. The meanings are in
  /// the .cpp file. A delay of a command counts as the delay of the data that follow it.
  enum Cause : std::size_t { kLatency, kRefresh, kBankBusy, kRowMiss, kRowConflict, kTurnaround };

  /// Throws std::invalid_argument for parameters that cannot work.
  explicit DramTiming(const Machine::Dram& dram);

  /// Serves `bytes` > 0 from `address`, which arrive at the controller at `arrival` (ps). Whole
  /// bursts are moved, also for a part of one. Throws std::invalid_argument for no bytes and
  /// std::out_of_range for a request beyond the capacity.
  DramAccess access(std::uint64_t address, std::uint64_t bytes, bool write, std::uint64_t arrival);

  /// Serves requests of a burst each, one after the other in memory, as far as it is certain in
  /// advance that all find their rows open before the next refresh, and as access() would one by
  /// one. `address` is that of the first, a multiple of DramMapping::burst_bytes(); `times` are the
  /// arrivals, and of what was served the ends of the data, ps. Returns how many were served:
  /// none while watched. It costs the host about a third of as many calls of access().
  std::size_t access_open_rows(std::uint64_t address, bool write, std::uint64_t* times,
                               std::size_t count);

  /// The same for as many as can be of `count` such requests that arrive `step` ps after each
  /// other, if that is how their data end, too, from end_alone() on: none waits for another, a bank
  /// or a refresh. Returns how many were served; none if it is not certain in advance that this is
  /// so of the first `least`.
  std::size_t access_each(std::uint64_t address, bool write, std::uint64_t arrival,
                          std::uint64_t step, std::size_t count, std::size_t least);

  /// When the data of a burst end, ps, if it arrives at `arrival` and waits for nothing.
  [[nodiscard]] std::uint64_t end_alone(bool write, std::uint64_t arrival) const noexcept {
    return arrival + times_.controller + (write ? times_.cwl : times_.cl) + times_.burst;
  }

  /// From `now` ps on, time counts in the accounts or it does not. See
  /// BlockAccount::set_counting().
  void set_counting(bool on, std::uint64_t now);

  /// Tells `watch` of the accesses to come. It has to outlive them.
  void watch(DramWatch& watch);

  /// Closes the accounts at `total` ps, the end of the run, or where the last data end if the run
  /// was cut off before that.
  void finish(std::uint64_t total);

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
  struct Channel {
    Channel(const Machine::Dram& dram);
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
  [[nodiscard]] std::uint64_t precharge_after(std::uint64_t begin, bool write) const noexcept;
  /// The last data of the channel so far end at `end`.
  void end_data(Channel& channel, bool write, std::uint64_t end) const noexcept;
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
  void account(Channel& channel, bool write, std::uint64_t arrival, const Plan& plan) const;
  void serve_burst(std::uint64_t address, bool write, std::uint64_t arrival, DramAccess& result);
  /// How many of `count` bursts from `address` on find their rows open, if no refresh comes.
  [[nodiscard]] std::size_t count_hits(std::uint64_t address, std::size_t count) const noexcept;
  /// When the last of `count` bursts of a channel, which find their rows open, has recovered at the
  /// latest, if all have arrived by `arrival`.
  [[nodiscard]] std::uint64_t recovered_by(const Channel& channel, std::size_t count, bool write,
                                           std::uint64_t arrival) const noexcept;
  /// Serves every channels()-th of `count` bursts, all in `channel`, the first of them at `at`.
  void serve_hits(Channel& channel, const DramLocation& at, bool write, std::uint64_t* times,
                  std::size_t count);

  DramMapping mapping_;
  DramTimes times_;
  std::uint64_t capacity_;
  std::vector<Channel> channels_;
  DramWatch* watch_ = nullptr;
  std::uint64_t reads_ = 0, writes_ = 0, read_bytes_ = 0, written_bytes_ = 0;
  std::uint64_t hits_ = 0, misses_ = 0, conflicts_ = 0;
};

}  // namespace systole::hw
