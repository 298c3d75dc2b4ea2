#pragma once

#include <cstdint>

#include "hw/machine/machine.h"
#include "hw/memory/dram_timing.h"
#include "hw/noc/mesh_nodes.h"

namespace systole::analysis {

/// What the way to memory takes at least, whatever is moved in which order: the contracts of
/// tlm/dma/dma_port.h, tlm/bus/bus_core.h, hw/noc/mesh.h and hw/memory/dram_timing.h with nothing
/// in the way and every row open. On a mesh the core is at noc.node. All results are cycles of the
/// core.
class MemoryFloor {
 public:
  explicit MemoryFloor(const hw::Machine& machine);

  /// From the issue of a read or write of `bytes` to its last byte, or its acknowledgement. An L2
  /// cache takes no time of its own.
  [[nodiscard]] double read_trip(double bytes) const;
  [[nodiscard]] double write_trip(double bytes) const;

  /// To move bytes of the load unit, tensor operands and results, side by side: the request of a
  /// cycle and the window of each port, requests and beats of the bus, bursts of the DRAM. While a
  /// refresh closes the DRAM a window waits, and the bus moves no more read data than were in
  /// flight. Not for DRAM, nor for the windows, with an L2 cache, which may hold everything.
  /// `either` is read by the load unit or as an operand.
  [[nodiscard]] double move(double loaded, double operands, double written,
                            double either = 0) const;

 private:
  /// `access`: from the arrival of a request at the DRAM to its answer, ps.
  [[nodiscard]] double trip(double bytes, std::uint64_t access, std::uint32_t links) const;
  [[nodiscard]] double memory(double read, double written) const;
  [[nodiscard]] double port(double bytes, bool write, std::uint32_t window) const;
  [[nodiscard]] double read_beats(double bytes) const;
  /// Bus cycles that packets with so many bytes take on the wires of a port, and on so many links
  /// of a mesh side by side.
  [[nodiscard]] double packet_beats(double bytes, double packets, std::uint32_t links) const;
  [[nodiscard]] double core_cycles(std::uint64_t ps) const;

  hw::Machine machine_;
  hw::DramTimes times_;
  bool cached_;
  double queued_ = 0;             ///< bytes of writes that may be left in queues of the DRAM
  double bus_cycle_;              ///< cycles of the core
  double request_;                ///< bytes of a request at most
  double refresh_period_ = 0;     ///< 0: no refresh
  double closed_ = 0;             ///< of each period: no data move to or from the DRAM
  hw::MeshWays ways_;             ///< of a mesh
  std::uint32_t read_links_ = 0;  ///< that packets of reads come by, at a time
  double header_ = 0;             ///< bytes
  double header_cycles_ = 0;      ///< of a packet without data at a port; 0: no mesh
  double mesh_trip_ = 0;          ///< bus cycles that a mesh adds to a request and its answer
};

}  // namespace systole::analysis
