#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace systole::tlm_model {

/// A request on the system bus and its answer, in bus cycles since the simulation began.
struct BusTransaction {
  std::uint64_t address = 0;   ///< on the bus
  std::uint64_t asked = 0;     ///< the initiator wanted the request channel
  std::uint64_t granted = 0;   ///< it got it
  std::uint64_t answered = 0;  ///< the response was complete at the initiator
  std::uint32_t bytes = 0;
  std::uint32_t initiator = 0;  ///< its number on the bus
  bool write = false;
  std::uint32_t data_cycles = 0;  ///< of its data channel; 0: it moved no data
  std::uint64_t data_end = 0;     ///< the cycle after the last of them
};

/// Watches a bus: called for each transaction, with the name of its initiator, in the order in
/// which the bus reserves its channels, as soon as the answer is known, which may be ahead of
/// simulated time.
using BusObserver = std::function<void(const BusTransaction&, const std::string& initiator)>;

/// How waves and traces call an initiator, by the name of its socket: "core.load.dma" of
/// "system.core.load.dma.socket".
[[nodiscard]] std::string short_name(std::string socket);

}  // namespace systole::tlm_model
