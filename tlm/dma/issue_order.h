#pragma once

#include <cstddef>
#include <memory>
#include <systemc>
#include <vector>

namespace systole::tlm_model {

/// Who issues first of several ports that may issue at the same time: the one that was made first.
/// Of a core that is the port that fetches the program, then that of the load unit, then those of
/// the store unit; the ports of a core come before those of a core that was made after it.
///
/// A port that has to wait for its turn waits until all else that happens at that time has
/// happened, so the order does not depend on that in which the kernel runs processes.
class IssueOrder {
 public:
  /// A port's place in the order.
  class Port {
   public:
    explicit Port(IssueOrder& order) : rank_(order.ports_++) {}

   private:
    friend class IssueOrder;
    std::size_t rank_;
    bool leads_ = false;
    sc_core::sc_event turn_;
  };

  /// The one of all ports of the simulation that is being made.
  [[nodiscard]] static std::shared_ptr<IssueOrder> of_simulation();

  /// Waits, at the present time, until it is the port's turn. Call it from an SC_THREAD.
  void take_turn(Port& port);

 private:
  /// Lets ports have their turns until it is that of `port`.
  void lead(const Port& port);

  std::size_t ports_ = 0;
  std::vector<Port*> line_;  ///< by rank, the first one last
};

}  // namespace systole::tlm_model
