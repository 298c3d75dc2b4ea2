#include "analysis/bound/memory_floor.h"

#include <algorithm>
#include <cmath>

#include "hw/memory/fixed_memory.h"
#include "hw/noc/mesh_nodes.h"

namespace systole::analysis {
namespace {

constexpr double kPsPerUs = 1e6;
/// Clock edges are whole picoseconds, rounded down: a difference of edges may be that much short.
constexpr double kEdgePs = 2;

}  // namespace

MemoryFloor::MemoryFloor(const hw::Machine& machine)
    : machine_(machine),
      times_(machine.dram),
      cached_(machine.l2.kib != 0),
      bus_cycle_(static_cast<double>(machine.core.clock_mhz) / machine.bus.clock_mhz),
      request_(machine.dma.row_bytes == 0
                   ? machine.dma.request_bytes
                   : std::min(machine.dma.request_bytes, machine.dma.row_bytes)) {
  // From the begin of a refresh on no data move until it is over and a row is open again.
  closed_ = core_cycles(times_.rfc + times_.rcd + std::min(times_.cl, times_.cwl));
  refresh_period_ = core_cycles(times_.refi);
  queued_ = static_cast<double>(std::uint64_t{machine.dram.write_queue} * machine.dram.channels *
                                machine.dram.bus_bytes * machine.dram.burst_length);
  if (hw::has_fixed_memory(machine)) refresh_period_ = 0;
  if (refresh_period_ <= closed_) refresh_period_ = closed_ = 0;
  if (!hw::has_mesh(machine)) return;
  ways_ = hw::mesh_ways(machine);
  read_links_ = ways_.least_hops == 0 ? 0 : 1;
  header_ = machine.noc.header_bytes;
  const std::uint32_t local = machine.bus.width_bytes;
  header_cycles_ = static_cast<double>(hw::packet_cycles(machine.noc, 0, local));
  const std::uint32_t narrowest =
      ways_.least_hops == 0 ? local : std::min(local, machine.noc.link_bytes);
  // Of request and answer one is a header alone.
  mesh_trip_ = 2.0 * (ways_.least_hops + 1) * machine.noc.hop_cycles +
               static_cast<double>(hw::packet_cycles(machine.noc, 0, narrowest)) - 1.0;
}

double MemoryFloor::core_cycles(std::uint64_t ps) const {
  return static_cast<double>(ps) * machine_.core.clock_mhz / kPsPerUs;
}

double MemoryFloor::trip(double bytes, std::uint64_t access, std::uint32_t links) const {
  const hw::Machine::Bus& bus = machine_.bus;
  const double period = kPsPerUs / bus.clock_mhz;
  // The DRAM's answer waits for the next edge of the bus.
  const double answer = hw::has_fixed_memory(machine_) ? machine_.memory.latency * period
                                                       : static_cast<double>(access);
  const double target = cached_ ? 0.0 : std::max(0.0, std::ceil((answer - kEdgePs) / period));
  const double beats = std::max(1.0, packet_beats(bytes, 1.0, links));
  const double ps =
      (bus.request_latency + target + beats - 1.0 + bus.response_latency + mesh_trip_) * period -
      kEdgePs;
  return std::max(0.0, ps * machine_.core.clock_mhz / kPsPerUs);
}

double MemoryFloor::packet_beats(double bytes, double packets, std::uint32_t links) const {
  const double all = bytes + packets * header_;
  const double local = all / machine_.bus.width_bytes;
  return links == 0 ? local : std::max(local, all / links / machine_.noc.link_bytes);
}

double MemoryFloor::read_trip(double bytes) const {
  return trip(bytes, times_.controller + times_.cl + times_.burst, read_links_);
}

double MemoryFloor::write_trip(double bytes) const {
  const std::uint64_t moved = queued_ != 0 ? 0 : times_.cwl + times_.burst;
  return trip(bytes, times_.controller + moved, ways_.exits);
}

double MemoryFloor::memory(double read, double written) const {
  if (hw::has_fixed_memory(machine_)) {
    // Answer beats: a write has one.
    const double beats = read / machine_.bus.width_bytes + written / request_;
    return beats * machine_.memory.read_beat_cycles * bus_cycle_;
  }
  const double bytes = read + std::max(0.0, written - queued_);
  const double burst_bytes = static_cast<double>(machine_.dram.bus_bytes) *
                             static_cast<double>(machine_.dram.burst_length);
  const double cycles = bytes / burst_bytes / machine_.dram.channels * core_cycles(times_.burst);
  if (refresh_period_ == 0) return cycles;
  return cycles + closed_ * std::max(0.0, std::ceil(cycles / (refresh_period_ - closed_)) - 1.0);
}

double MemoryFloor::port(double bytes, bool write, std::uint32_t window) const {
  const double requests = bytes / request_;
  if (cached_) return requests;
  const double in_flight = write ? write_trip(request_) : read_trip(request_);
  const double least = std::max(requests, requests * in_flight / window);
  // Data of requests that share a slot are a trip apart, less what an answer waits for an edge of
  // the bus. So while the DRAM is open a slot moves those of one more than trips fit in.
  const double apart = in_flight - bus_cycle_;
  if (apart <= 0 || apart >= closed_ || (write && queued_ != 0)) return least;
  const double of_a_period = window * ((refresh_period_ - closed_) / apart + 1.0);
  // All but two periods at most lie whole between the first request and the last.
  const double at_ends = window * (2.0 * refresh_period_ / apart + 2.0);
  return std::max(least, ((requests - at_ends) / of_a_period + 2.0) * refresh_period_);
}

double MemoryFloor::read_beats(double bytes) const {
  const double beats = packet_beats(bytes, bytes / request_, read_links_) * bus_cycle_;
  // On a mesh what is in flight may take long: nothing is said of refreshes.
  if (cached_ || refresh_period_ == 0 || header_cycles_ != 0) return beats;
  // What has left the DRAM before a refresh may follow: requests in flight of both ports.
  const double of_request = std::ceil(request_ / machine_.bus.width_bytes) * bus_cycle_;
  const double follows = 2.0 * machine_.dma.outstanding_reads * of_request;
  const double idle = std::max(0.0, closed_ - bus_cycle_ - follows);
  // All but two periods at most are whole.
  return std::max(beats, (beats - 2.0 * idle) / (1.0 - idle / refresh_period_));
}

double MemoryFloor::move(double loaded, double operands, double written, double either) const {
  const hw::Machine::Dma& dma = machine_.dma;
  // With stages before an anchor, the load unit may read tensor operands too.
  const bool shared = machine_.preop.lanes != 0;
  const double read = loaded + operands + either;
  const double by_store = std::max(read / 2, shared ? 0.0 : operands);
  const double reads = read / request_, writes = written / request_;
  const double write_beats = packet_beats(written, writes, ways_.exits);
  // Requests of reads share a link with writes, acknowledgements of these one with read data.
  const double sent = write_beats + reads * header_cycles_;
  const double received = read_beats(read) + writes * header_cycles_ * bus_cycle_;
  const double requests = reads + writes;
  return std::max({port(loaded, false, dma.outstanding_reads),
                   port(by_store, false, dma.outstanding_reads),
                   port(written, true, dma.outstanding_writes), received, sent * bus_cycle_,
                   requests * bus_cycle_, cached_ ? 0.0 : memory(read, written)});
}

}  // namespace systole::analysis
