#pragma once

#include <cstdint>
#include <vector>

#include "hw/ring/half_gemv.h"
#include "hw/ring/half_vector.h"
#include "hw/ring/router_contract.h"
#include "hw/timed_engine.h"

/// The swap points of a half precision core, as hw/engines.h has them of the integer one: models
/// here, Verilated RTL with the same interfaces.
namespace systole::hw {

/// Values of the matrix unit's lanes. Timing is modelled in hw/machine/matrix_unit.h.
class MatrixLaneEngine : public TimedEngine {
 public:
  virtual void gemv(const HalfGemv& args) = 0;
};

/// Values of the vector unit's multipliers and adders.
class HalfVectorEngine : public TimedEngine {
 public:
  virtual void apply(half_vector::Operation operation, const half_vector::Elements& elements) = 0;
};

/// A packet after a router.
struct RoutedPacket {
  std::vector<Half> delivered;  ///< to the core's registers
  std::vector<Half> forwarded;  ///< to the next link; empty if the packet ends here
  std::uint64_t cycles = 0;     ///< first flit taken to last flit that leaves: route_cycles()
  std::uint32_t hops = 0;       ///< still to go after this router
};

/// What a router makes of packets that come in.
class RouterEngine : public TimedEngine {
 public:
  /// A part of a vector, at least one half, that core `core` sent and that has `hops` still to go,
  /// this one included.
  virtual RoutedPacket route(const std::vector<Half>& values, std::uint32_t core,
                             std::uint32_t hops, bool to_right) = 0;
};

class MatrixLaneModel final : public MatrixLaneEngine {
 public:
  void gemv(const HalfGemv& args) override { half_gemv(args); }
};

class HalfVectorModel final : public HalfVectorEngine {
 public:
  void apply(half_vector::Operation operation, const half_vector::Elements& elements) override {
    half_vector::apply(operation, elements);
  }
};

class RouterModel final : public RouterEngine {
 public:
  explicit RouterModel(std::uint64_t router_cycles) : router_cycles_(router_cycles) {}

  RoutedPacket route(const std::vector<Half>& values, std::uint32_t /*core*/, std::uint32_t hops,
                     bool /*to_right*/) override {
    RoutedPacket routed;
    routed.delivered = values;
    if (hops > 1) routed.forwarded = values;
    routed.cycles = route_cycles(flits_of(values.size()), hops, router_cycles_);
    routed.hops = hops - 1;
    return routed;
  }

 private:
  std::uint64_t router_cycles_;
};

}  // namespace systole::hw
