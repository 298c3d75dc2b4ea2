#pragma once

#include <tlm_utils/simple_initiator_socket.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <systemc>
#include <vector>

#include "hw/machine/machine.h"
#include "tlm/bus/bus_transaction.h"
#include "tlm/common/time.h"

namespace systole::tlm_model {

/// Plays recorded traffic: the initiators of a trace, each with its own socket.
///
/// - Elapsed: every transaction is asked for in the cycle in which it was, in the order of the
///   trace. On the machine that it was recorded on each gets the same grant and answer, to the
///   cycle.
/// - Dependent: a transaction is asked for as many cycles after an answer to its initiator as in
///   the recording, where that was the last answer before it; the first of an initiator after the
///   last answer to anyone. Those of an initiator keep their order, and no two of them are asked
///   for in one cycle that were not. What waits for another initiator's data is not known.
///
/// With a limit of `outstanding`, a transaction also waits for the answer to the one that many
/// before it, of its initiator.
class TracePlayer : public sc_core::sc_module {
 public:
  enum class Timing : std::uint8_t { kElapsed, kDependent };

  /// By number of the initiator; to be bound in that order.
  sc_core::sc_vector<tlm_utils::simple_initiator_socket<TracePlayer>> sockets;

  /// `trace` outlives the player; its initiators are numbers below `initiators`, and those of an
  /// initiator are asked for in order. No data are moved, so the memory must not be functional.
  /// `outstanding` 0: no limit.
  TracePlayer(const sc_core::sc_module_name& name, const hw::Machine& machine,
              const std::vector<BusTransaction>& trace, std::size_t initiators, Timing timing,
              std::uint32_t outstanding);

  [[nodiscard]] bool done() const noexcept { return played_ == trace_.size(); }

 private:
  struct Flow {
    std::vector<std::size_t> positions;  ///< in the trace, of an initiator's transactions
    std::size_t next = 0;                ///< in `positions`: not asked for yet
    std::uint64_t last_asked = 0;
  };
  static constexpr std::size_t kNone = ~std::size_t{0};

  void run();
  void play_elapsed();
  void play_dependent();
  /// Asks for a transaction in cycle `asked`; none to come is asked for before `floor`.
  void ask(std::size_t position, std::uint64_t asked, std::uint64_t floor);
  /// The first cycle in which the next transaction of an initiator has a slot.
  [[nodiscard]] std::uint64_t slot_free(const Flow& flow) const;
  /// By position in the trace: of the transaction after whose answer it was asked for, or kNone.
  [[nodiscard]] std::vector<std::size_t> find_dependences() const;

  const Clock clock_;
  const std::vector<BusTransaction>& trace_;
  const Timing timing_;
  const std::uint32_t outstanding_;
  std::vector<Flow> flows_;             ///< by initiator
  std::vector<std::uint64_t> answers_;  ///< by position in the trace: cycle
  std::size_t played_ = 0;
};

}  // namespace systole::tlm_model
