#pragma once

/// Attention accelerators that find their mask while they run.
namespace systole::hw::dynamic {

/// What memory gives such a machine: as many bytes a cycle as its peak, without latency.
struct OperandStream {
  double bytes_per_cycle = 0.0;
  double element_bytes = 1.0;  ///< of Q, K, V and outputs

  [[nodiscard]] bool moves() const { return bytes_per_cycle > 0.0 && element_bytes > 0.0; }
};

}  // namespace systole::hw::dynamic
