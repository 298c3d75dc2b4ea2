#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string_view>

namespace systole::tlm_model {

/// What blocks do, in words that all of them share; a wave shows places in this list. The causes of
/// accounts have their own names. Where two hold at one time, the later one is shown.
inline constexpr std::array<std::string_view, 44> kWaveStates = {
    "idle", "busy", "wait",
    // Initiators of the bus.
    "in_flight", "waiting", "granted",
    // Memories on chip.
    "in_use", "bank_conflict",
    // Attention engines: phases, and what holds them up.
    "sddmm", "spmm", "decode", "softmax", "output", "memory",
    // Other units.
    "weight_preload", "drain", "fill", "encoder", "stages", "attention", "no_command", "wait_load",
    "wait_compute", "wait_store", "operands", "issue", "adder", "host", "results",
    // DRAM: banks, and the data bus of a channel.
    "read", "write", "activate", "precharge", "latency", "interval", "refresh", "bank_busy",
    "row_miss", "row_conflict", "turnaround",
    // L2 cache and TLB.
    "hit", "merged", "write_back", "miss"};

/// Throws std::invalid_argument, or is no constant, if there is no such state.
[[nodiscard]] constexpr std::uint8_t wave_state(std::string_view name) {
  for (std::size_t i = 0; i < kWaveStates.size(); ++i) {
    if (kWaveStates[i] == name) return static_cast<std::uint8_t>(i);
  }
  throw std::invalid_argument("no such state of a wave");
}
static_assert(wave_state("idle") == 0);

}  // namespace systole::tlm_model
