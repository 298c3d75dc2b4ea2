#include "mapper/replay/replay_memory.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "hw/memory/dram_timing.h"
#include "hw/memory/fixed_memory.h"
#include "hw/noc/mesh_nodes.h"

namespace systole::mapper {
namespace {

/// Keeps a time that is on an edge there, whatever the last bit of a double says.
constexpr double kEdgeTolerance = 1e-6;

unsigned bits_of(std::uint64_t power) {
  unsigned bits = 0;
  while (power >>= 1) ++bits;
  return bits;
}

/// One bank whose row is always open at once, with a burst of a beat: what its times are for a
/// memory of fixed latency, the constructor knows.
hw::Machine::Dram without_banks(const hw::Machine& machine) {
  hw::Machine::Dram dram;
  dram.channels = dram.banks = dram.bank_groups = dram.burst_length = 1;
  dram.bus_bytes = machine.bus.width_bytes;
  for (double* time :
       {&dram.t_cl_ns, &dram.t_cwl_ns, &dram.t_rcd_ns, &dram.t_rp_ns, &dram.t_ras_ns,
        &dram.t_rtp_ns, &dram.t_wr_ns, &dram.t_wtr_ns, &dram.t_ccd_l_ns, &dram.t_rrd_s_ns,
        &dram.t_rrd_l_ns, &dram.t_faw_ns, &dram.t_rfc_ns, &dram.t_refi_ns, &dram.controller_ns}) {
    *time = 0;
  }
  return dram;
}

}  // namespace

ReplayMemory::ReplayMemory(const hw::Machine& machine)
    : ReplayMemory(machine, hw::has_fixed_memory(machine) ? without_banks(machine) : machine.dram) {
}

ReplayMemory::ReplayMemory(const hw::Machine& machine, const hw::Machine::Dram& dram)
    : request_bytes_(machine.dma.request_bytes),
      burst_bytes_(std::uint64_t{dram.bus_bytes} * dram.burst_length),
      fixed_(hw::has_fixed_memory(machine)),
      piece_bytes_(machine.dma.row_bytes),
      channels_(dram.channels),
      banks_(std::size_t{dram.channels} * dram.banks),
      counts_(kSegments * dram.channels) {
  burst_shift_ = bits_of(burst_bytes_);
  request_shift_ = bits_of(request_bytes_);
  width_shift_ = bits_of(machine.bus.width_bytes);
  word_mask_ = machine.bus.width_bytes - 1;
  if (hw::has_mesh(machine)) {
    header_ = machine.noc.header_bytes;
    // A packet holds every link as long as it takes on the narrowest.
    if (hw::mesh_ways(machine).least_hops != 0) {
      width_shift_ = std::min(width_shift_, bits_of(machine.noc.link_bytes));
    }
  }
  channel_bits_ = bits_of(dram.channels);
  group_bits_ = bits_of(dram.bank_groups);
  bank_bits_ = bits_of(dram.banks / dram.bank_groups);
  all_groups_ = ~std::uint64_t{0} >> (64 - dram.bank_groups);
  area_shift_ = burst_shift_ + channel_bits_ + group_bits_ + bits_of(dram.row_bytes / burst_bytes_);
  const double cycle_ps = 1e6 / machine.core.clock_mhz;
  const auto cycles = [&](std::uint64_t ps) { return static_cast<double>(ps) / cycle_ps; };
  const hw::DramTimes times(dram);
  cl_ = cycles(times.cl);
  cwl_ = cycles(times.cwl);
  rcd_ = cycles(times.rcd);
  rp_ = cycles(times.rp);
  ras_ = cycles(times.ras);
  rtp_ = cycles(times.rtp);
  wr_ = cycles(times.wr);
  wtr_ = cycles(times.wtr);
  ccd_l_ = cycles(times.ccd_l);
  rrd_s_ = cycles(times.rrd_s);
  faw_ = cycles(times.faw);
  rfc_ = cycles(times.rfc);
  refi_ = cycles(times.refi);
  controller_ = cycles(times.controller);
  burst_ = cycles(times.burst);
  read_to_write_ = cycles(times.read_to_write);
  turn_ = cycles(times.turn);
  if (!fixed_) {
    const hw::DramTiming::WriteMarks marks(dram);
    places_ = dram.write_queue;
    high_ = marks.high;
    low_ = marks.low;
  }
  bus_cycle_ = static_cast<double>(machine.core.clock_mhz) / machine.bus.clock_mhz;
  if (fixed_) {
    burst_ = machine.memory.read_beat_cycles * bus_cycle_;
    cl_ = cwl_ = std::max(0.0, machine.memory.latency * bus_cycle_ - burst_);
    read_to_write_ = 0;
  }
  channel_share_ = burst_ / static_cast<double>(channels_.size());
  least_spacing_ = std::max(burst_, ccd_l_ / dram.bank_groups);
  request_latency_ = machine.bus.request_latency * bus_cycle_;
  response_latency_ = machine.bus.response_latency * bus_cycle_;
  // Both ways are equally long; what is left of the header is where it is beside no data.
  request_latency_ += hw::mesh_trip(machine) / 2 * bus_cycle_;
  response_latency_ += hw::mesh_trip(machine) / 2 * bus_cycle_;
  if (machine.l2.kib != 0) response_latency_ += machine.l2.hit_latency * bus_cycle_;
  const auto bursts =
      static_cast<double>(std::max<std::uint64_t>(request_bytes_ / burst_bytes_, 1));
  const double beats = std::ceil(static_cast<double>(request_bytes_ + header_) /
                                 static_cast<double>(std::uint64_t{1} << width_shift_));
  pace_ = std::max({1.0, bus_cycle_ * beats, burst_ * bursts / dram.channels});
  latency_ = request_latency_ + controller_ + cl_ + burst_ + response_latency_;
  if (machine.tlb.entries != 0) {
    const double walk =
        request_latency_ + controller_ + cl_ + burst_ + bus_cycle_ + response_latency_;
    tlb_.emplace(machine.tlb, walk);
  }
  for (Channel& channel : channels_) {
    // A chunk adds at most all its segments, and a burst is of one of them.
    channel.writes.resize(high_ + kSegments);
    channel.next_refresh = times.refi == 0 ? std::numeric_limits<double>::infinity() : refi_;
  }
}

// The requests of a chunk are in one page: the port asks for it if it is not that of its last one.
double ReplayMemory::translate(ReplayPort& port, std::uint64_t address, double ready) {
  const std::uint64_t page = tlb_->page_of(address);
  if (page == port.page()) return ready;
  port.set_page(page);
  return tlb_->translate(page, std::max(ready, port.next_issue()));
}

double ReplayMemory::pace(std::uint32_t window) const noexcept {
  return std::max(pace_, latency_ / window);
}

double ReplayMemory::on_bus(double cycle) const noexcept {
  if (bus_cycle_ == 1.0) return rounded_up(cycle - kEdgeTolerance);
  return rounded_up(cycle / bus_cycle_ - kEdgeTolerance) * bus_cycle_;
}

ReplayMemory::Shape ReplayMemory::shape(std::uint64_t address, std::uint64_t bytes) const noexcept {
  const std::uint64_t mask = request_bytes_ - 1;
  const std::uint64_t width = (std::uint64_t{1} << width_shift_) - 1;
  const auto beats = [&](std::uint64_t at, std::uint64_t length) {
    if (length == 0) return std::uint64_t{0};
    // What is before its first byte in a word of the bus moves with it.
    return (header_ + (at & word_mask_) + length + width) >> width_shift_;
  };
  const std::uint64_t first = std::min(bytes, request_bytes_ - (address & mask));
  const std::uint64_t rest = bytes - first;
  return {1 + ((rest + mask) >> request_shift_),
          beats(address, first) + (rest >> request_shift_) * beats(0, request_bytes_) +
              beats(0, rest & mask)};
}

// Opens the rows of `area` in the banks of `groups`. The result: the earliest first data, if the
// banks of the groups follow each other burst by burst.
double ReplayMemory::open_rows(Channel& channel, std::size_t number, std::uint64_t groups,
                               std::uint64_t area, double start, double latency) {
  double first_data = start + latency;
  double later = 0;
  const std::size_t bank_number = area & ((std::size_t{1} << bank_bits_) - 1);
  for (unsigned group = 0; groups != 0; ++group, groups >>= 1) {
    if ((groups & 1) == 0) continue;
    Bank& bank = banks_[(((number << group_bits_) | group) << bank_bits_) | bank_number];
    if (bank.epoch != channel.epoch || bank.area != area + 1) {
      double activate = std::max(channel.activate_ok, channel.faw_ok[channel.oldest_activate]);
      if (bank.epoch == channel.epoch) {
        activate = std::max(activate, std::max(start, bank.precharge_ok) + rp_);
      } else {
        activate = std::max(activate, start);
      }
      bank = {area + 1, channel.epoch, activate + ras_};
      channel.activate_ok = activate + rrd_s_;
      channel.faw_ok[channel.oldest_activate] = activate + faw_;
      channel.oldest_activate = (channel.oldest_activate + 1) % 4;
      first_data = std::max(first_data, activate + rcd_ + latency - later);
    }
    later += burst_;
  }
  return first_data;
}

void ReplayMemory::serve(std::size_t number, bool write, std::uint32_t bursts,
                         const Segment& segment, double first, double last, double& first_end,
                         double& last_end) {
  Channel& channel = channels_[number];
  const std::uint64_t groups = segment.groups;
  const std::uint64_t area = segment.area;
  const double spacing = spacing_of(groups);
  const double latency = write ? cwl_ : cl_;
  const double recovery = rp_ + (write ? wr_ : 0.0);
  const double ready = first + controller_;
  bool begun = false;
  auto left = static_cast<double>(bursts);
  for (;;) {
    const double start = std::max(ready, channel.not_before);
    double begin = open_rows(channel, number, groups, area, start, latency);
    begin = std::max(
        {begin, channel.bus_free, write ? channel.write_data_ok : channel.read_ok + latency});
    double end = std::max(begin + (left - 1) * spacing,
                          std::max(last + controller_, channel.not_before) + latency) +
                 burst_;
    double fit = left;
    if (end + recovery > channel.next_refresh) {
      // What ends in time does so before the refresh; the rest finds all rows closed.
      const double pace = left > 1 ? (end - burst_ - begin) / (left - 1) : spacing;
      fit = std::floor((channel.next_refresh - recovery - burst_ - begin) / pace) + 1;
      fit = std::min(std::max(fit, 0.0), left - 1);
      if (fit > 0) end = begin + (fit - 1) * pace + burst_;
    }
    if (fit > 0) {
      if (!begun) first_end = std::min(first_end, begin + burst_);
      begun = true;
      channel.bus_free = end;
      channel.writing = write;
      if (write) {
        channel.read_ok = end + wtr_;
      } else {
        channel.write_data_ok = end + read_to_write_;
      }
      const double precharge_ok = write ? end + wr_ : end - burst_ - latency + rtp_;
      const std::size_t bank_number = area & ((std::size_t{1} << bank_bits_) - 1);
      std::size_t group = number << group_bits_;
      for (std::uint64_t mask = groups; mask != 0; ++group, mask >>= 1) {
        if ((mask & 1) == 0) continue;
        Bank& bank = banks_[(group << bank_bits_) | bank_number];
        bank.precharge_ok = std::max(bank.precharge_ok, precharge_ok);
      }
      last_end = std::max(last_end, end);
      left -= fit;
      if (left <= 0) return;
    }
    const double passed = std::max(0.0, std::floor((ready - channel.next_refresh) / refi_));
    channel.not_before = channel.next_refresh + passed * refi_ + rfc_;
    channel.next_refresh += (passed + 1) * refi_;
    ++channel.epoch;
  }
}

// Moves the writes that have waited longest, as was decided at that time, until so many bursts are
// left.
void ReplayMemory::move_writes(std::size_t number, double decided, std::uint32_t left) {
  Channel& channel = channels_[number];
  double first_end = std::numeric_limits<double>::infinity(), last_end = 0;
  while (channel.queued_bursts > left) {
    QueuedWrites& writes = channel.writes[channel.oldest_writes];
    const std::uint32_t bursts = std::min(writes.bursts, channel.queued_bursts - left);
    const double ready = std::max(decided, writes.taken) - controller_;
    serve(number, true, bursts, writes.segment, ready, ready, first_end, last_end);
    channel.queued_bursts -= bursts;
    writes.bursts -= bursts;
    if (writes.bursts != 0) continue;
    channel.oldest_writes = (channel.oldest_writes + 1) % channel.writes.size();
    --channel.queued_writes;
  }
}

// Puts bursts of writes that come from `first` to `last` into a channel's queue.
void ReplayMemory::take(std::size_t number, std::uint32_t bursts, const Segment& segment,
                        double first, double last, double& first_end, double& last_end) {
  Channel& channel = channels_[number];
  move_writes_until(number, first);
  const double step = bursts > 1 ? (last - first) / (bursts - 1) : 0;
  double taken = first + controller_;
  for (std::uint32_t at = 0; at < bursts;) {
    const std::uint32_t count = std::min(bursts - at, high_ - channel.queued_bursts);
    at += count;
    // Of the writes that have been told to move, so many may still be in the queue.
    const double places = places_ - channel.queued_bursts - count;
    taken = std::max(taken, first + step * (at - 1) + controller_);
    if (channel.writing) taken = std::max(taken, channel.bus_free - places * burst_);
    if (at == count) {
      first_end = std::min(first_end, std::max(first + controller_, taken - step * (count - 1)));
    }
    const std::size_t place =
        (channel.oldest_writes + channel.queued_writes++) % channel.writes.size();
    channel.writes[place] = {segment, count, taken};
    channel.queued_bursts += count;
    if (channel.queued_bursts >= high_) move_writes(number, taken, low_);
  }
  last_end = std::max(last_end, taken);
}

// The bank groups of `blocks` bursts, a bit each.
inline std::uint64_t ReplayMemory::groups_of(std::uint64_t block,
                                             std::uint64_t blocks) const noexcept {
  const std::uint64_t count = std::uint64_t{1} << group_bits_;
  const std::uint64_t first = block >> channel_bits_;
  const std::uint64_t run = ((block + blocks - 1) >> channel_bits_) - first + 1;
  if (run >= count) return all_groups_;
  const std::uint64_t ones = (std::uint64_t{1} << run) - 1, shift = first & (count - 1);
  return shift == 0 ? ones : (ones << shift | ones >> (count - shift)) & all_groups_;
}

// Cycles from burst to burst of a channel, which take turns with bank groups.
inline double ReplayMemory::spacing_of(std::uint64_t groups) const noexcept {
  if (groups == all_groups_) return least_spacing_;
  unsigned turns = 0;
  for (std::uint64_t mask = groups; mask != 0; mask &= mask - 1) ++turns;
  return std::max(burst_, ccd_l_ / turns);
}

// Adds the bursts of pieces of `count` rows, `blocks` each, to those of a chunk.
inline void ReplayMemory::add_bursts(std::uint64_t address, std::uint64_t pitch,
                                     std::uint64_t blocks, std::uint64_t count,
                                     std::uint32_t* counts, std::uint64_t& groups) const {
  const std::uint64_t channel_mask = channels_.size() - 1;
  const std::uint64_t each = blocks >> channel_bits_;
  const std::uint64_t more = blocks & channel_mask;
  if (each != 0) {
    for (std::size_t c = 0; c < channels_.size(); ++c) {
      counts[c] += static_cast<std::uint32_t>(each * count);
    }
  }
  // Rows a whole number of bursts apart come to the same channel and group after so many.
  std::uint64_t period = count;
  if (count > 1 && (pitch & (burst_bytes_ - 1)) == 0) {
    const std::uint64_t turns = channels_.size() << group_bits_, step = pitch >> burst_shift_;
    period = turns / std::min(turns, step == 0 ? turns : step & (~step + 1));
  }
  for (std::uint64_t i = 0; i < std::min(count, period); ++i) {
    if (more == 0 && groups == all_groups_) break;
    const std::uint64_t block = (address + i * pitch) >> burst_shift_;
    groups |= groups_of(block, blocks);
    const std::uint64_t alike = more == 0 || count <= period ? 1 : (count - i - 1) / period + 1;
    for (std::uint64_t b = 0; b < more; ++b) {
      counts[(block + b) & channel_mask] += static_cast<std::uint32_t>(alike);
    }
  }
}

// Takes what `rows` has within one area, until the chunk has `limit` requests. False: it is
// complete, for the next row does not fit.
inline bool ReplayMemory::gather(ReplayRows& rows, std::uint64_t limit, std::uint64_t page_end,
                                 std::uint32_t* counts, Chunk& chunk, Segment& segment) {
  const std::uint64_t begin = rows.address + rows.at;
  segment.area = begin >> area_shift_;
  const std::uint64_t end = std::min((segment.area + 1) << area_shift_, page_end);
  const std::uint64_t before = chunk.requests;
  std::uint64_t groups = 0;
  bool fits = true;
  for (std::size_t c = 0; c < channels_.size(); ++c) counts[c] = 0;
  while (rows.left != 0 && chunk.requests < limit) {
    const std::uint64_t address = rows.address + rows.at;
    if (address < begin || address >= end) break;
    const std::uint64_t room =
        (limit - chunk.requests) * request_bytes_ - (address & (request_bytes_ - 1));
    std::uint64_t bytes = std::min(rows.bytes - rows.at, end - address);
    if (piece_bytes_ != 0) bytes = std::min(bytes, piece_bytes_ - rows.at % piece_bytes_);
    if (bytes > room) {
      // A row is not divided for the sake of the ones before it.
      if (chunk.requests != 0 && rows.at == 0 && rows.bytes <= limit * request_bytes_) {
        fits = false;
        break;
      }
      bytes = room;
    }
    const Shape of = shape(address, bytes);
    const std::uint64_t block = address >> burst_shift_;
    const std::uint64_t blocks = request_bytes_ < burst_bytes_
                                     ? of.requests
                                     : ((address + bytes - 1) >> burst_shift_) - block + 1;
    std::uint64_t count = 1;
    if (rows.left > 1 && rows.at == 0 && bytes == rows.bytes &&
        (rows.pitch & (request_bytes_ - 1)) == 0) {
      // All rows are cut alike.
      count = std::min(rows.left, of.requests == 1 ? limit - chunk.requests
                                                   : (limit - chunk.requests) / of.requests);
      if (rows.pitch != 0) count = std::min(count, (end - address - bytes) / rows.pitch + 1);
      count = std::max<std::uint64_t>(count, 1);
    }
    add_bursts(address, rows.pitch, blocks, count, counts, groups);
    chunk.requests += count * of.requests;
    chunk.beats += count * of.beats;
    chunk.bytes += count * bytes;
    rows.at += bytes;
    if (rows.at == rows.bytes) {
      rows.at = 0;
      rows.address += count * rows.pitch;
      rows.left -= count;
      chunk.rows += count;
    }
  }
  segment.first = before;
  segment.requests = chunk.requests - before;
  segment.groups = groups;
  return fits;
}

ReplayMemory::Chunk ReplayMemory::move(bool write, ReplayPort& port, ReplayRows& rows, double ready,
                                       double interval, std::uint64_t limit) {
  Chunk chunk;
  if (rows.left == 0) return chunk;
  limit = std::max<std::uint64_t>(limit, 1);
  std::uint64_t page_end = ~std::uint64_t{0};
  std::size_t most = kSegments;
  if (tlb_ && port.translated()) {
    const std::uint64_t begin = rows.address + rows.at;
    page_end = tlb_->end_of(tlb_->page_of(begin));
    ready = translate(port, begin, ready);
    most = 1;
  }
  std::size_t count = 0;
  while (count < most && rows.left != 0 && chunk.requests < limit) {
    std::uint32_t* const counts = &counts_[count * channels_.size()];
    if (!gather(rows, limit, page_end, counts, chunk, segments_[count++])) break;
  }

  const std::uint64_t steps_whole = chunk.requests - 1;
  const auto steps = static_cast<double>(steps_whole);
  chunk.first_issue = std::max({port.next_issue(), ready, rounded_up(port.slot_free(0))});
  const double spread = interval * static_cast<double>(chunk.rows > 1 ? chunk.rows - 1 : 0);
  const double bus_time = static_cast<double>(chunk.beats) * bus_cycle_;
  const double beat_time = bus_time / static_cast<double>(chunk.requests);
  // Requests beyond the window issue as the first of the chunk are done.
  const std::uint64_t in_window = std::min<std::uint64_t>(steps_whole, port.window() - 1);
  // Answers of a memory of fixed latency may be slower than the beats of the bus.
  const double data_time = fixed_ && !write ? beat_time / bus_cycle_ * burst_ : beat_time;
  const double each = std::max({1.0, data_time, (latency_ + data_time) / port.window()});
  const double beyond = static_cast<double>(steps_whole - in_window) * each;
  chunk.last_issue = std::max(
      {chunk.first_issue + steps, ready + spread, rounded_up(port.slot_free(in_window) + beyond)});
  const double first_granted = on_bus(chunk.first_issue);
  const double last_granted =
      std::max(on_bus(chunk.last_issue), first_granted + steps * bus_cycle_);
  double first = first_granted + request_latency_;
  double last = last_granted + request_latency_;
  if (write) {
    const double free = std::max(first_granted, write_bus_free_);
    write_bus_free_ = free + bus_time;
    first = free + beat_time - bus_cycle_ + request_latency_;
    last = std::max(last_granted + beat_time, write_bus_free_) - bus_cycle_ + request_latency_;
  }
  double first_end = std::numeric_limits<double>::infinity();
  double last_end = 0;
  const double step = steps_whole == 0 ? 0 : (last - first) / steps;
  const double data = std::max(data_time, channel_share_);
  const double in_flight = static_cast<double>(port.window() - 1) * data;
  double late = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Segment& segment = segments_[i];
    if (segment.requests == 0) continue;
    double from = first + step * static_cast<double>(segment.first) + late;
    if (segment.first > in_window) {
      // The request a window before it has to be done: rows are opened no earlier.
      const double free = last_end - in_flight + response_latency_ + beat_time + request_latency_;
      late += std::max(0.0, free - from);
      from = std::max(from, free);
    }
    const double to = from + step * static_cast<double>(segment.requests - 1);
    for (std::size_t c = 0; c < channels_.size(); ++c) {
      const std::uint32_t bursts = fixed_ && write ? static_cast<std::uint32_t>(segment.requests)
                                                   : counts_[i * channels_.size() + c];
      if (bursts == 0) continue;
      if (write && places_ != 0) {
        take(c, bursts, segment, from, to, first_end, last_end);
        continue;
      }
      move_writes_until(c, from);
      serve(c, write, bursts, segment, from, to, first_end, last_end);
    }
  }
  chunk.last_issue = rounded_up(chunk.last_issue + late);
  if (write) {
    chunk.first_done = on_bus(first_end) + response_latency_;
    chunk.last_done = on_bus(last_end) + response_latency_;
  } else {
    const double free = std::max(on_bus(first_end), read_bus_free_);
    read_bus_free_ = free + bus_time;
    chunk.first_done = free + beat_time - bus_cycle_ + response_latency_;
    chunk.last_done =
        std::max(on_bus(last_end) + (fixed_ ? bus_cycle_ : beat_time), read_bus_free_) -
        bus_cycle_ + response_latency_;
  }
  chunk.first_done = rounded_up(chunk.first_done - kEdgeTolerance);
  chunk.last_done = std::max(chunk.first_done, rounded_up(chunk.last_done - kEdgeTolerance));
  port.add(chunk.requests, chunk.last_issue, chunk.first_done, chunk.last_done);
  return chunk;
}

}  // namespace systole::mapper
