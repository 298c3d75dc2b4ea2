#include "hw/memory/dram_timing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

namespace systole::hw {
namespace {

// A second: far above every DRAM time, far below the overflow of sums of them.
constexpr double kLongestNs = 1e9;

/// Collects the complaints about a Machine::Dram while its times are converted.
class TimeReader {
 public:
  std::uint64_t ps(const char* field, double ns) {
    if (std::isfinite(ns) && ns >= 0.0 && ns <= kLongestNs) {
      return static_cast<std::uint64_t>(std::llround(ns * 1000.0));
    }
    problems_ +=
        "\n  " + std::string(field) + " = " + std::to_string(ns) + ": must be in 0 .. 1e9 ns";
    return 0;
  }

  /// Time of `transfers` data bus transfers, rounded up so that no bandwidth exceeds the bus.
  std::uint64_t transfers(std::uint64_t transfers, std::uint64_t mega_transfers) {
    if (mega_transfers == 0) {
      problems_ += "\n  mega_transfers = 0: must be > 0";
      return 0;
    }
    return (transfers * 1'000'000 + mega_transfers - 1) / mega_transfers;
  }

  void finish(const DramTimes& t) {
    const std::uint64_t access = t.rcd + t.cl + t.cwl + t.burst + t.ras + t.rtp + t.wr + t.wtr +
                                 t.rp + t.ccd_l + t.rrd_l + t.rrd_s + t.faw + t.read_to_write;
    if (t.refi != 0 && t.refi <= t.rfc + access) {
      problems_ += "\n  t_refi_ns = " + std::to_string(static_cast<double>(t.refi) / 1000.0) +
                   ": must be 0 (no refresh) or exceed t_rfc_ns and all access times together";
    }
    if (!problems_.empty()) throw std::invalid_argument("DRAM times:" + problems_);
  }

 private:
  std::string problems_;
};

// Unlike std::max of a list, stays in registers.
std::uint64_t latest(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  return std::max(std::max(a, b), c);
}

std::vector<BlockAccount::Cause> causes() {  // in the order of DramTiming::Cause
  return {{"latency", "controller and column latency of a request that found no work before it"},
          {"refresh", "commands held back by a refresh"},
          {"bank_busy", "bank or bank group not ready for the next command"},
          {"row_miss", "activating a row in a closed bank"},
          {"row_conflict", "closing another row and activating this one"},
          {"turnaround", "data bus changing direction, or write to read delay"}};
}

}  // namespace

DramTimes::DramTimes(const Machine::Dram& dram) {
  TimeReader read;
  cl = read.ps("t_cl_ns", dram.t_cl_ns);
  cwl = read.ps("t_cwl_ns", dram.t_cwl_ns);
  rcd = read.ps("t_rcd_ns", dram.t_rcd_ns);
  rp = read.ps("t_rp_ns", dram.t_rp_ns);
  ras = read.ps("t_ras_ns", dram.t_ras_ns);
  rtp = read.ps("t_rtp_ns", dram.t_rtp_ns);
  wr = read.ps("t_wr_ns", dram.t_wr_ns);
  wtr = read.ps("t_wtr_ns", dram.t_wtr_ns);
  ccd_l = read.ps("t_ccd_l_ns", dram.t_ccd_l_ns);
  rrd_s = read.ps("t_rrd_s_ns", dram.t_rrd_s_ns);
  rrd_l = read.ps("t_rrd_l_ns", dram.t_rrd_l_ns);
  faw = read.ps("t_faw_ns", dram.t_faw_ns);
  rfc = read.ps("t_rfc_ns", dram.t_rfc_ns);
  refi = read.ps("t_refi_ns", dram.t_refi_ns);
  controller = read.ps("controller_ns", dram.controller_ns);
  burst = read.transfers(dram.burst_length, dram.mega_transfers);
  read_to_write = read.transfers(4, dram.mega_transfers);  // two clocks of two transfers
  turn = read_to_write + burst + wtr + cl;
  read.finish(*this);
}

DramTiming::Channel::Channel(const Machine::Dram& dram)
    : writes(dram.write_queue),
      banks(dram.banks),
      groups(dram.bank_groups),
      next_refresh(0),
      account("ps", causes()) {}

DramTiming::DramTiming(const Machine::Dram& dram)
    : mapping_(dram),
      times_(dram),
      capacity_(std::uint64_t{dram.mib} << 20),
      places_(dram.write_queue),
      marks_(dram),
      channels_(dram.channels, Channel(dram)) {
  for (Channel& channel : channels_) {
    channel.next_refresh =
        times_.refi == 0 ? std::numeric_limits<std::uint64_t>::max() : times_.refi;
  }
}

// Takes the next refresh, and with it all later ones that are over when the request is ready.
void DramTiming::refresh(Channel& channel, std::uint64_t ready) const noexcept {
  std::uint64_t count = 1;
  if (ready > channel.next_refresh) count += (ready - channel.next_refresh) / times_.refi;
  channel.refreshes += count;
  channel.next_refresh += count * times_.refi;
  channel.not_before = channel.next_refresh - times_.refi + times_.rfc;
  ++channel.epoch;
}

inline DramTiming::Plan DramTiming::plan(const Channel& channel, const DramLocation& at, bool write,
                                         std::uint64_t ready) const noexcept {
  const Bank& bank = channel.banks[at.bank];
  const Group& group = channel.groups[at.group];
  const std::uint64_t start = std::max(ready, channel.not_before);
  Plan p{};
  std::uint64_t precharge_ok = 0;
  if (bank.epoch == channel.epoch && bank.row == at.row) {
    p.row = Row::kHit;
    p.first = p.row_ready = std::max(start, bank.column_ok);
    precharge_ok = bank.precharge_ok;
  } else {
    const std::uint64_t allowed =
        latest(channel.activate_ok, group.activate_ok, channel.faw_ok[channel.oldest_activate]);
    if (bank.epoch == channel.epoch) {
      p.row = Row::kConflict;
      p.first = std::max(start, bank.precharge_ok);
      p.activate = std::max(p.first + times_.rp, allowed);
    } else {
      p.row = Row::kMiss;
      p.first = p.activate = std::max(start, allowed);
    }
    p.row_ready = p.activate + times_.rcd;
    precharge_ok = p.activate + times_.ras;
  }
  p.unblocked = std::max(p.row_ready, group.column_ok);
  const std::uint64_t column = write ? p.unblocked : std::max(p.unblocked, channel.read_ok);
  const std::uint64_t latency = write ? times_.cwl : times_.cl;
  p.begin = latest(column + latency, channel.bus_free, write ? channel.write_data_ok : 0);
  p.end = p.begin + times_.burst;
  p.precharge_ok = std::max(precharge_ok, precharge_after(p.begin, write));
  p.recovered = std::max(p.precharge_ok + times_.rp, p.end);
  return p;
}

inline void DramTiming::commit(Channel& channel, const DramLocation& at, bool write,
                               const Plan& p) const noexcept {
  Bank& bank = channel.banks[at.bank];
  Group& group = channel.groups[at.group];
  if (p.row != Row::kHit) {
    bank.row = at.row;
    bank.epoch = channel.epoch;
    bank.column_ok = p.row_ready;
    channel.activate_ok = p.activate + times_.rrd_s;
    group.activate_ok = p.activate + times_.rrd_l;
    channel.faw_ok[channel.oldest_activate] = p.activate + times_.faw;
    channel.oldest_activate = (channel.oldest_activate + 1) % channel.faw_ok.size();
  }
  bank.precharge_ok = p.precharge_ok;
  group.column_ok = p.begin - (write ? times_.cwl : times_.cl) + times_.ccd_l;
  end_data(channel, write, p.end);
}

// Each command time, moved by the column latency, is when data would have begun if nothing after
// that command had held them up.
inline void DramTiming::account(Channel& channel, bool write, std::uint64_t arrival,
                                std::uint64_t ready, const Plan& p) const {
  BlockAccount& account = channel.account;
  if (p.begin > account.now()) {
    const std::uint64_t latency = write ? times_.cwl : times_.cl;
    account.idle_until(arrival);
    account.stall_until(ready + latency, kLatency);
    account.stall_until(channel.not_before + latency, kRefresh);
    account.stall_until(p.first + latency, kBankBusy);
    account.stall_until(p.row_ready + latency, p.row == Row::kConflict ? kRowConflict : kRowMiss);
    account.stall_until(p.unblocked + latency, kBankBusy);
    account.stall_until(p.begin, kTurnaround);
  }
  account.busy_until(p.end);
}

// Moves a burst that was there at `arrival`, with no command before `ready`.
DramTiming::Plan DramTiming::move(const DramLocation& at, bool write, std::uint64_t arrival,
                                  std::uint64_t ready, DramAccess& result) {
  Channel& channel = channels_[at.channel];
  Plan commands = plan(channel, at, write, ready);
  while (commands.recovered > channel.next_refresh) {
    const std::uint64_t wanted = commands.first;
    refresh(channel, ready);
    if (watch_ != nullptr) {
      watch_->refresh(at.channel, channel.not_before - times_.rfc, channel.not_before);
    }
    commands = plan(channel, at, write, ready);
    if (channel.not_before > wanted) result.refresh_wait += channel.not_before - wanted;
  }
  commit(channel, at, write, commands);
  account(channel, write, arrival, ready, commands);
  if (watch_ != nullptr) {
    watch_->burst({at, write, commands.row == Row::kConflict, commands.row != Row::kHit,
                   commands.first, commands.activate, commands.row_ready, commands.begin,
                   commands.end});
  }
  ++(commands.row == Row::kHit    ? result.hits
     : commands.row == Row::kMiss ? result.misses
                                  : result.conflicts);
  return commands;
}

// Moves the write that has waited longest, as was decided at that time.
void DramTiming::move_write(Channel& channel, std::uint64_t decided, DramAccess& result) {
  QueuedWrite& write = channel.writes[channel.moved_writes % places_];
  write.moved = move(mapping_.locate(write.address), true, decided, decided, result).end;
  ++channel.moved_writes;
}

// Moves the writes that begin to move before a request comes at `now`.
void DramTiming::move_writes_until(Channel& channel, std::uint64_t now, DramAccess& result) {
  while (channel.has_writes()) {
    const std::uint64_t decided = next_write(channel);
    if (decided >= now) return;
    move_write(channel, decided, result);
  }
}

// A read of that burst comes at `now`: if a write of it waits, moves all.
void DramTiming::move_writes_for(Channel& channel, std::uint64_t address, std::uint64_t now,
                                 DramAccess& result) {
  std::uint64_t at = channel.taken_writes;
  while (at != channel.moved_writes && channel.writes[(at - 1) % places_].address != address) --at;
  if (at == channel.moved_writes) return;
  while (channel.has_writes()) {
    const std::uint64_t taken = channel.writes[channel.moved_writes % places_].taken;
    move_write(channel, std::max(taken, now), result);
  }
}

// Puts a write into the queue. The result: when it is there.
std::uint64_t DramTiming::take(Channel& channel, std::uint64_t address, std::uint64_t arrival,
                               DramAccess& result) {
  move_writes_until(channel, arrival, result);
  QueuedWrite& place = channel.writes[channel.taken_writes % places_];
  place.address = address;
  place.taken = std::max(arrival + times_.controller, place.moved);
  const bool first = !channel.has_writes();
  channel.lowest_write = first ? address : std::min(channel.lowest_write, address);
  channel.highest_write = first ? address : std::max(channel.highest_write, address);
  const std::uint64_t taken = place.taken;
  ++channel.taken_writes;
  if (channel.taken_writes - channel.moved_writes >= marks_.high) {
    while (channel.taken_writes - channel.moved_writes > marks_.low)
      move_write(channel, taken, result);
  }
  return taken;
}

void DramTiming::serve_burst(std::uint64_t address, bool write, std::uint64_t arrival,
                             DramAccess& result) {
  const DramLocation at = mapping_.locate(address);
  Channel& channel = channels_[at.channel];
  if (write && places_ != 0) {
    const std::uint64_t taken = take(channel, address, arrival, result);
    result.begin = std::min(result.begin, taken);
    result.end = std::max(result.end, taken);
    return;
  }
  move_writes_until(channel, arrival, result);
  if (may_wait(channel, address)) move_writes_for(channel, address, arrival, result);
  const Plan commands = move(at, write, arrival, arrival + times_.controller, result);
  result.begin = std::min(result.begin, commands.begin);
  result.end = std::max(result.end, commands.end);
}

void DramTiming::count_rows(const DramAccess& access) noexcept {
  hits_ += access.hits;
  misses_ += access.misses;
  conflicts_ += access.conflicts;
}

DramAccess DramTiming::access(std::uint64_t address, std::uint64_t bytes, bool write,
                              std::uint64_t arrival) {
  if (bytes == 0) throw std::invalid_argument("DRAM access of no bytes");
  if (address >= capacity_ || bytes > capacity_ - address) {
    throw std::out_of_range("DRAM access beyond its capacity");
  }
  DramAccess result{std::numeric_limits<std::uint64_t>::max(), 0, 0, 0, 0, 0};
  const std::uint64_t mask = mapping_.burst_bytes() - 1;
  const std::uint64_t last = (address + bytes - 1) | mask;
  for (std::uint64_t at = address & ~mask; at <= last; at += mapping_.burst_bytes()) {
    serve_burst(at, write, arrival, result);
  }
  ++(write ? writes_ : reads_);
  (write ? written_bytes_ : read_bytes_) += bytes;
  count_rows(result);
  return result;
}

std::size_t DramTiming::count_hits(std::uint64_t address, std::size_t count) const noexcept {
  const std::uint64_t burst = mapping_.burst_bytes(), span = mapping_.open_bytes();
  count = std::min<std::size_t>(count, (span - (address & (span - 1))) / burst);
  // After these the same banks follow again.
  const std::size_t banks = std::min(count, channels_.size() * channels_.front().groups.size());
  for (std::size_t i = 0; i < banks; ++i) {
    const DramLocation at = mapping_.locate(address + i * burst);
    const Channel& channel = channels_[at.channel];
    const Bank& bank = channel.banks[at.bank];
    if (bank.epoch != channel.epoch || bank.row != at.row) return i;
  }
  return count;
}

std::size_t DramTiming::access_each(std::uint64_t address, bool write, std::uint64_t arrival,
                                    std::uint64_t step, std::size_t count, std::size_t least) {
  if (watch_ != nullptr || channels_.size() != 1 || (write && places_ != 0)) return 0;
  if ((address & (mapping_.burst_bytes() - 1)) != 0) return 0;
  Channel& channel = channels_.front();
  if (channel.has_writes()) {
    DramAccess moved{};
    move_writes_until(channel, arrival, moved);
    count_rows(moved);
    if (channel.has_writes()) {
      // No write may move between two of them, nor be of their bursts.
      const std::uint64_t apart = step + arrival;
      if (apart > end_alone(write, arrival) + times_.turn) return 0;
      const std::uint64_t end = address + count * mapping_.burst_bytes();
      if (channel.lowest_write < end && channel.highest_write >= address) return 0;
    }
  }
  count = count_hits(address, count);
  if (count < least) return 0;
  const DramLocation at = mapping_.locate(address);
  const std::uint64_t latency = write ? times_.cwl : times_.cl;
  // Each command goes out when its request is ready, if the first on each bank can, and if the
  // next ones come late enough: on the data bus, and in each group.
  const std::uint64_t ready = arrival + times_.controller, data = ready + latency;
  const std::size_t groups = channel.groups.size();
  if (step < times_.burst || (count > groups && groups * step < times_.ccd_l)) return 0;
  if (channel.not_before > ready || channel.bus_free > data) return 0;
  if (write ? channel.write_data_ok > data : channel.read_ok > ready) return 0;
  // All have to recover before the next refresh.
  const std::uint64_t recovered = data + times_.burst + times_.rp + std::max(times_.wr, times_.rtp);
  if (recovered > channel.next_refresh) return 0;
  count = std::min<std::uint64_t>(count, (channel.next_refresh - recovered) / step + 1);
  if (count < least) return 0;
  const std::size_t used = std::min(count, groups);
  for (std::size_t i = 0; i < used; ++i) {
    const std::size_t group = (at.group + i) % groups;
    if (std::max(channel.groups[group].column_ok, bank_of(channel, at, group).column_ok) >
        ready + i * step) {
      return 0;
    }
  }
  const std::uint64_t last = data + (count - 1) * step + times_.burst;
  for (std::size_t i = count - used; i < count; ++i) {
    const std::size_t group = (at.group + i) % groups;
    const std::uint64_t begin = data + i * step;
    channel.groups[group].column_ok = begin - latency + times_.ccd_l;
    Bank& bank = bank_of(channel, at, group);
    bank.precharge_ok = std::max(bank.precharge_ok, precharge_after(begin, write));
  }
  end_data(channel, write, last);
  // Between the data of two of them it is idle until the second arrives, then waits for its
  // latency.
  const std::uint64_t gap = step - times_.burst;
  const std::uint64_t idle = gap - std::min(gap, data - arrival);
  channel.account.idle_until(arrival);
  channel.account.stall_until(data, kLatency);
  channel.account.busy_until(data + times_.burst);
  std::array<std::uint64_t, kTurnaround + 1> stalled{};
  stalled[kLatency] = (count - 1) * (gap - idle);
  channel.account.spend(last, (count - 1) * idle, stalled);
  count_bursts(write, count);
  return count;
}

void DramTiming::watch(DramWatch& watch) {
  watch_ = &watch;
  for (std::size_t i = 0; i < channels_.size(); ++i) channels_[i].account.watch(watch.channel(i));
}

void DramTiming::set_counting(bool on, std::uint64_t now) {
  for (Channel& channel : channels_) channel.account.set_counting(on, now);
}

void DramTiming::finish(std::uint64_t total) {
  DramAccess moved{};
  for (Channel& channel : channels_) {
    move_writes_until(channel, total, moved);
    total = std::max(total, channel.account.now());
  }
  count_rows(moved);
  for (Channel& channel : channels_) {
    channel.account.finish(total);
    if (total >= channel.next_refresh) refresh(channel, total);
  }
}

std::uint64_t DramTiming::settled(std::uint64_t now) const noexcept {
  for (const Channel& channel : channels_) {
    if (channel.has_writes()) now = std::min(now, next_write(channel));
  }
  return now;
}

std::uint64_t DramTiming::refreshes() const noexcept {
  std::uint64_t sum = 0;
  for (const Channel& channel : channels_) sum += channel.refreshes;
  return sum;
}

std::uint64_t DramTiming::turns() const noexcept {
  std::uint64_t sum = 0;
  for (const Channel& channel : channels_) sum += channel.turns;
  return sum;
}

std::uint64_t DramTiming::waiting_writes() const noexcept {
  std::uint64_t sum = 0;
  for (const Channel& channel : channels_) sum += channel.taken_writes - channel.moved_writes;
  return sum;
}

BlockReport DramTiming::report(std::string name) const {
  BlockReport report{
      std::move(name),
      {},
      {{"reads", "requests", "read requests", reads_},
       {"writes", "requests", "write requests", writes_},
       {"read_bytes", "bytes", "bytes asked for by reads", read_bytes_},
       {"written_bytes", "bytes", "bytes asked for by writes", written_bytes_},
       {"row_hits", "bursts", "bursts that found their row open", hits_},
       {"row_misses", "bursts", "bursts that found their bank closed", misses_},
       {"row_conflicts", "bursts", "bursts that found another row open", conflicts_},
       {"turns", "turns", "times that a data bus turned from reads to writes", turns()},
       {"waiting_writes", "bursts", "bursts of writes left in the queues at the end",
        waiting_writes()},
       {"refreshes", "refreshes", "refreshes of all banks of a channel", refreshes()}},
      {}};
  for (std::size_t i = 0; i < channels_.size(); ++i) {
    report.parts.push_back({"channel" + std::to_string(i), channels_[i].account.time(), {}, {}});
  }
  return report;
}

}  // namespace systole::hw
