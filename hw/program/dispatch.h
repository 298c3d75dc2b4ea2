#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "hw/machine/machine.h"
#include "hw/program/program.h"

/// The cycle contract of dispatch: when a command enters its reservation station, and when its unit
/// starts it. rtl/core/systole_dispatcher.sv meets it; tlm/core/command_processor.h spends it.
namespace systole::hw {

/// What a younger command waits for.
enum class Hazard : std::uint8_t {
  kNone,
  kAfterRead,   ///< the older command has read its operands for the last time
  kAfterWrite,  ///< the older command's results are in memory
};

/// The hazard between the ranges of two commands. `both_compute`: both are of the array, which
/// keeps its accumulations in order itself.
[[nodiscard]] Hazard hazard_between(const std::vector<Range>& older,
                                    const std::vector<Range>& younger, bool both_compute);

/// Whether the older command writes what the younger one reads of the scratchpad or of main memory.
[[nodiscard]] bool writes_what_is_read(const std::vector<Range>& older,
                                       const std::vector<Range>& younger);

/// Whether a command writes main memory where it reads it.
[[nodiscard]] bool writes_what_it_reads(const std::vector<Range>& ranges);

/// Whether a command starts when all older ones of its unit are complete: a load with stages, which
/// has the load unit to itself (hw/core/staged_load.h).
[[nodiscard]] bool has_unit_alone(const Command& command);

/// Units with a reservation station: load, compute, store.
inline constexpr std::size_t kStations = 3;

/// Commands that the reservation station of each unit holds, from dispatch to completion.
[[nodiscard]] std::array<std::uint32_t, kStations> station_sizes(const Machine& machine);

/// A command as the dispatcher sees it. Times are cycles after its start.
struct DispatchItem {
  Unit unit = Unit::kLoad;     ///< one with a station
  std::vector<Range> ranges;   ///< ranges_of()
  std::uint64_t arrival = 0;   ///< absolute cycle from which it can be dispatched
  bool alone = false;          ///< has_unit_alone()
  std::uint64_t occupied = 1;  ///< the unit takes its next command, at least 1
  std::uint64_t released = 1;  ///< the operands have been read, 1 to `completed`
  std::uint64_t completed = 1;
};

struct DispatchTimes {
  std::uint64_t dispatched = 0;  ///< it is in its station
  std::uint64_t started = 0;     ///< its unit takes it
  /// No older command will write any more what it reads of scratchpad and main memory: its unit may
  /// fetch that ahead of the start.
  std::uint64_t readable = 0;
};

/// Dispatches commands in order, one a cycle: each when it has arrived and its station has a free
/// entry, whose last command was complete. A unit starts its commands in order, one at a time, when
/// every older command that conflicts has released or completed, as hazard_between() says.
class DispatchSchedule {
 public:
  explicit DispatchSchedule(const std::array<std::uint32_t, kStations>& sizes) : sizes_(sizes) {}

  /// The command after those so far. run() has to say what it does before the next one.
  [[nodiscard]] DispatchTimes next(Unit unit, std::vector<Range> ranges, std::uint64_t arrival,
                                   bool alone = false);
  /// Cycles after its start, as in DispatchItem.
  void run(std::uint64_t occupied, std::uint64_t released, std::uint64_t completed);

 private:
  struct Station {
    std::vector<std::uint64_t> completions;  ///< of the commands that hold an entry
    std::uint64_t unit_free = 0;
  };
  struct Flight {
    Unit unit;
    std::vector<Range> ranges;
    std::uint64_t started, released, completed;
  };

  const std::array<std::uint32_t, kStations> sizes_;
  std::array<Station, kStations> stations_;
  std::vector<Flight> flight_;  ///< commands that may not be complete, oldest first
  std::uint64_t free_ = 0;      ///< cycle from which the next one can be dispatched
};

/// The same for commands whose times are known beforehand.
[[nodiscard]] std::vector<DispatchTimes> dispatch_times(
    const std::vector<DispatchItem>& items, const std::array<std::uint32_t, kStations>& sizes);

}  // namespace systole::hw
