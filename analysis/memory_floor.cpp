#include "analysis/memory_floor.h"

#include <algorithm>
#include <cmath>

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
      request_(machine.dma.row_bytes == 0
                   ? machine.dma.request_bytes
                   : std::min(machine.dma.request_bytes, machine.dma.row_bytes)) {}

double MemoryFloor::trip(double bytes, std::uint64_t column_latency) const {
  const hw::Machine::Bus& bus = machine_.bus;
  const double period = kPsPerUs / bus.clock_mhz;
  // The DRAM's answer waits for the next edge of the bus.
  const auto access =
      static_cast<double>(times_.controller + column_latency + times_.burst) - kEdgePs;
  const double target = cached_ ? 0.0 : std::max(0.0, std::ceil(access / period));
  const double beats = std::max(1.0, bytes / bus.width_bytes);
  const double ps =
      (bus.request_latency + target + beats - 1.0 + bus.response_latency) * period - kEdgePs;
  return std::max(0.0, ps * machine_.core.clock_mhz / kPsPerUs);
}

double MemoryFloor::read_trip(double bytes) const { return trip(bytes, times_.cl); }
double MemoryFloor::write_trip(double bytes) const { return trip(bytes, times_.cwl); }

double MemoryFloor::dram(double bytes) const {
  const double burst_bytes = static_cast<double>(machine_.dram.bus_bytes) *
                             static_cast<double>(machine_.dram.burst_length);
  double ps = bytes / burst_bytes / machine_.dram.channels * static_cast<double>(times_.burst);
  // From the begin of a refresh on no data move until it is over and a row is open again.
  const auto closed =
      static_cast<double>(times_.rfc + times_.rcd + std::min(times_.cl, times_.cwl));
  const auto period = static_cast<double>(times_.refi);
  if (times_.refi != 0 && period > closed) {
    ps += closed * std::max(0.0, std::ceil(ps / (period - closed)) - 1.0);
  }
  return ps * machine_.core.clock_mhz / kPsPerUs;
}

double MemoryFloor::move(double loaded, double operands, double written) const {
  const hw::Machine::Dma& dma = machine_.dma;
  const double bus_cycle = static_cast<double>(machine_.core.clock_mhz) / machine_.bus.clock_mhz;
  const auto port = [&](double bytes, double request_trip, std::uint32_t window) {
    const double requests = bytes / request_;
    return std::max(requests, cached_ ? 0.0 : requests * request_trip / window);
  };
  const double read = read_trip(request_), write = write_trip(request_);
  // With stages before an anchor, the load unit may read tensor operands too.
  const bool shared = machine_.preop.lanes != 0;
  const double by_store = shared ? (loaded + operands) / 2 : operands;
  const double beats = std::max(loaded + operands, written) / machine_.bus.width_bytes;
  const double requests = (loaded + operands + written) / request_;
  return std::max({port(loaded, read, dma.outstanding_reads),
                   port(by_store, read, dma.outstanding_reads),
                   port(written, write, dma.outstanding_writes), beats * bus_cycle,
                   requests * bus_cycle, cached_ ? 0.0 : dram(loaded + operands + written)});
}

}  // namespace systole::analysis
