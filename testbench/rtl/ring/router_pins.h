#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/number/half.h"
#include "hw/number/integer.h"
#include "hw/ring/router_contract.h"
#include "testbench/rtl/drive/ports.h"

/// The pins of a Verilated ring_router, which carry both ways beside each other.
namespace systole::testbench {

enum class RouterWay : std::uint8_t { kRight, kLeft };
inline constexpr RouterWay kRouterWays[] = {RouterWay::kRight, RouterWay::kLeft};

struct RouterFlit {
  std::vector<hw::Half> values;  ///< hw::kFlitHalves of them
  std::uint32_t core = 0;
  std::uint32_t hops = 0;
  bool last = false;
};

struct WrittenFlit {
  std::vector<hw::Half> values;
  std::uint32_t core = 0;
  std::uint32_t index = 0;
  bool last = false;
};

/// A packet of at least one half, filled up with zeros.
inline std::vector<RouterFlit> flits_of_packet(const std::vector<hw::Half>& values,
                                               std::uint32_t core, std::uint32_t hops) {
  std::vector<RouterFlit> flits;
  for (std::size_t first = 0; first < values.size(); first += hw::kFlitHalves) {
    RouterFlit flit{{}, core, hops, false};
    for (std::size_t i = first; i < std::min(first + hw::kFlitHalves, values.size()); ++i) {
      flit.values.push_back(values[i]);
    }
    flit.values.resize(hw::kFlitHalves, hw::kHalfZero);
    flits.push_back(flit);
  }
  flits.back().last = true;
  return flits;
}

inline constexpr unsigned kRouterCoreBits = 6;

/// A way's field of a port of up to 64 bits.
template <typename Port>
[[nodiscard]] std::uint32_t way_field(const Port& port, RouterWay way, unsigned bits) {
  const std::uint64_t fields = port;
  return static_cast<std::uint32_t>(fields >> (static_cast<unsigned>(way) * bits)) &
         ((1U << bits) - 1U);
}
template <typename Port>
void set_way_field(Port& port, RouterWay way, unsigned bits, std::uint32_t value) {
  const unsigned shift = static_cast<unsigned>(way) * bits;
  const std::uint64_t mask = ((std::uint64_t{1} << bits) - 1U) << shift;
  port = static_cast<Port>((port & ~mask) | (std::uint64_t{value} << shift));
}
template <typename Port>
[[nodiscard]] bool way_bit(const Port& port, RouterWay way) {
  return way_field(port, way, 1) != 0;
}
template <typename Port>
void set_way_bit(Port& port, RouterWay way, bool value) {
  set_way_field(port, way, 1, value ? 1 : 0);
}

template <typename Port>
[[nodiscard]] std::vector<hw::Half> flit_values(const Port& port, RouterWay way) {
  std::vector<hw::Half> values;
  const std::size_t first = static_cast<std::size_t>(way) * hw::kFlitHalves;
  for (std::size_t i = 0; i < hw::kFlitHalves; ++i) {
    values.push_back({static_cast<std::uint16_t>(get_lane<16>(port, first + i))});
  }
  return values;
}
template <typename Port>
void set_flit_values(Port& port, RouterWay way, const std::vector<hw::Half>& values) {
  const std::size_t first = static_cast<std::size_t>(way) * hw::kFlitHalves;
  for (std::size_t i = 0; i < values.size(); ++i) set_lane<16>(port, first + i, values[i].bits);
}

/// Nothing comes in, and nothing can leave.
template <typename Model>
void quiet_router(Model& model) {
  model.valid_i = 0;
  model.own_valid_i = 0;
  model.ready_i = 0;
}

/// Puts a flit on the pins of the link that comes in; valid_i is not among them.
template <typename Model>
void drive_link(Model& model, RouterWay way, const RouterFlit& flit) {
  set_flit_values(model.data_i, way, flit.values);
  set_way_field(model.core_i, way, kRouterCoreBits, flit.core);
  set_way_field(model.hops_i, way, kRouterCoreBits, flit.hops);
  set_way_bit(model.last_i, way, flit.last);
}

/// Puts a flit on the pins of the core's own packets; own_valid_i is not among them.
template <typename Model>
void drive_own(Model& model, RouterWay way, const RouterFlit& flit) {
  set_flit_values(model.own_data_i, way, flit.values);
  model.own_core_i = static_cast<CData>(flit.core);
  set_way_field(model.own_hops_i, way, kRouterCoreBits, flit.hops);
  set_way_bit(model.own_last_i, way, flit.last);
}

/// The flit that is on the link that goes out.
template <typename Model>
[[nodiscard]] RouterFlit link_flit(const Model& model, RouterWay way) {
  return {flit_values(model.data_o, way), way_field(model.core_o, way, kRouterCoreBits),
          way_field(model.hops_o, way, kRouterCoreBits), way_bit(model.last_o, way)};
}

/// The flit that is written to the core's registers by a router for packets of `MaxFlits`.
template <std::uint32_t MaxFlits, typename Model>
[[nodiscard]] WrittenFlit written_flit(const Model& model, RouterWay way) {
  const auto index_bits = static_cast<unsigned>(hw::bit_length(MaxFlits - 1));
  return {flit_values(model.write_data_o, way), way_field(model.write_core_o, way, kRouterCoreBits),
          way_field(model.write_index_o, way, index_bits), way_bit(model.write_last_o, way)};
}

}  // namespace systole::testbench
