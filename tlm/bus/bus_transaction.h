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
};

/// Watches a bus: called for each transaction, with the name of its initiator, in the order in
/// which the bus reserves its channels, as soon as the answer is known, which may be ahead of
/// simulated time.
using BusObserver = std::function<void(const BusTransaction&, const std::string& initiator)>;

}  // namespace systole::tlm_model
