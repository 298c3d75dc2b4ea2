#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hw/machine/machine.h"
#include "testbench/run/machine_run.h"
#include "testbench/trace/bus_trace.h"
#include "tlm/host/trace_player.h"

namespace systole::testbench {

struct PlayOptions {
  tlm_model::TracePlayer::Timing timing = tlm_model::TracePlayer::Timing::kElapsed;
  std::uint32_t outstanding = 0;  ///< of an initiator, in flight at most; 0: no limit
  std::vector<tlm_model::BusObserver> observers;
  std::function<void(std::size_t transactions)> progress;  ///< played so far, now and then
};

/// A trace as a machine's bus and memory served it. Cycles are those of the bus.
struct PlayResult : MachineRun {
  struct Initiator {
    std::string name;
    std::uint64_t reads = 0, writes = 0;
    std::uint64_t read_bytes = 0, written_bytes = 0;
    /// From asking to the answer, of all its transactions in ascending order.
    std::vector<std::uint64_t> latencies;
    [[nodiscard]] std::uint64_t latency_at(double fraction) const;
  };
  std::vector<Initiator> initiators;
  std::uint64_t first_asked = 0, last_answered = 0;
  // Beside the recording, if the trace has its answers.
  std::uint64_t recorded_cycles = 0;
  std::uint64_t changed = 0;         ///< transactions with another grant or answer
  std::uint64_t largest_change = 0;  ///< cycles, of their answers
  [[nodiscard]] std::uint64_t cycles() const { return last_answered - first_asked; }
};

/// Plays the trace on the bus and the memory of the machine, without its core. One simulation per
/// process: the SystemC kernel elaborates only once. Throws InputError if the timing needs what the
/// trace does not say.
[[nodiscard]] PlayResult play_trace(const BusTrace& trace, const hw::Machine& machine,
                                    const PlayOptions& options);

[[nodiscard]] std::string play_text(const BusTrace& trace, const hw::Machine& machine,
                                    const PlayResult& result,
                                    const std::vector<std::string>& files);
[[nodiscard]] nlohmann::ordered_json play_json(const BusTrace& trace, const hw::Machine& machine,
                                               const PlayResult& result);

}  // namespace systole::testbench
