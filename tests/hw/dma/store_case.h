#pragma once

#include <cstdint>

#include "hw/dma/store_schedule.h"

namespace systole::hw::test {

/// Nothing is in the way of anything.
inline StoreSurroundings nothing_around() {
  StoreSurroundings around;
  around.read_parameters = [](std::uint64_t /*cycle*/, std::uint64_t /*address*/, bool /*ahead*/) {
    return true;
  };
  around.write = [](std::uint64_t /*cycle*/, std::uint64_t /*address*/, std::uint64_t /*bytes*/) {
    return true;
  };
  around.no_port = [](std::uint64_t /*cycle*/, std::uint64_t /*at*/) { return false; };
  around.memory.takes = around.memory.takes_data = [](std::uint64_t /*cycle*/) { return true; };
  around.memory.done = [](const WriteRequest& request) { return request.sent + 10; };
  around.operands.takes = [](std::uint64_t /*cycle*/) { return true; };
  around.operands.done = [](const ReadRequest& request) { return request.issued + 30; };
  return around;
}

inline StoreParams store_params(std::uint64_t lanes, std::uint64_t beat_bytes) {
  const Machine::Dma dma;
  return {lanes,
          {RequestCut(dma), beat_bytes, 4, SlotOrder::kIssue, 2 * 64 / 4},
          {RequestCut(dma), 4, SlotOrder::kIssue, 2}};
}

}  // namespace systole::hw::test
