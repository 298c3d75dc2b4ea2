#pragma once

#include <cstdint>
#include <deque>

#include "hw/loop/execute_path.h"
#include "hw/loop/load_path.h"
#include "hw/loop/loop_types.h"
#include "hw/loop/memory_port.h"
#include "hw/loop/reservation_station.h"
#include "hw/loop/store_path.h"
#include "hw/loop/unroller.h"
#include "hw/machine/machine.h"
#include "hw/program/program.h"

namespace systole::hw::loop {

/// The loop of a command.
[[nodiscard]] LoopCall loop_call(const cmd::Loop& loop, const hw::Program& program,
                                 const Machine& machine);

/// Gemmini's core, from the command port to the memory port, cycle by cycle and without values.
///
/// The host sends a command every `unroller.command_cycles`, if the first queue has room: five
/// configure a call of the library, six a loop. Three queues of two lead to the unroller, one more
/// from there to the reservation station. Source: ucb-bar/gemmini (Chisel), as of 2023; measured
/// against its RTL in docs/reproduce-gemmini.md.
class LoopCore {
 public:
  /// Throws std::invalid_argument if the machine's array is not square.
  LoopCore(const Machine& machine, Memory& memory);

  /// The host sends the commands that configure a call: the array, stores, three kinds of loads.
  void begin_call();
  /// The host sends a loop.
  void push(const LoopCall& call);

  void step();
  [[nodiscard]] std::uint64_t cycle() const noexcept { return cycle_; }
  /// From here on it is this cycle; nothing may be busy.
  void skip_to(std::uint64_t cycle);
  [[nodiscard]] bool busy() const;
  /// Loops whose commands have all gone to the reservation station.
  [[nodiscard]] std::uint64_t unrolled() const noexcept { return unroller_.finished(); }

  [[nodiscard]] const MemoryPort& port() const noexcept { return port_; }
  [[nodiscard]] const LoadPath& load() const noexcept { return load_; }
  [[nodiscard]] const ExecutePath& execute() const noexcept { return execute_; }
  [[nodiscard]] const StorePath& store() const noexcept { return store_; }

 private:
  void issue();
  void end_cycle(const ReservationStation::Done& done);
  void send(Kind kind, std::size_t call = 0);

  const std::uint32_t command_cycles_;
  std::uint64_t cycle_ = 0;
  MemoryPort port_;
  Translation translation_;
  LoadPath load_;
  ExecutePath execute_;
  StorePath store_;
  ReservationStation station_;
  Unroller unroller_;
  std::deque<LoopCall> calls_;  ///< sent or to be sent, not configured yet
  std::deque<Command> unsent_;
  std::uint64_t next_send_ = 0;  ///< cycle
  Fifo<Command, 2> received_, conv_, pending_, unrolled_;
  bool loading_ = false, computing_ = false, storing_ = false;  ///< issue in this cycle
};

}  // namespace systole::hw::loop
