#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <random>
#include <vector>

#include "hw/axi/axi_pins.h"

namespace systole::hw {

/// The side of an AXI4 port that answers, cycle by cycle, for a bus or memory behind it that moves
/// whole requests and says when each is complete.
///
/// A read whose address is taken in cycle c asks the bus in it. If the bus is done with cycle d, so
/// that whoever asked has all bytes in it, the last beat is offered in cycle d - 1, whose edge
/// takes it, and those before it one a cycle, each no earlier than its bytes have come over the
/// bus. A write asks in the cycle that takes the last of its data and address, and is answered in
/// cycle d - 1. An answer that the bus gives no earlier than that is offered a cycle later.
/// `asks_with_address`: a write asks in the cycle that takes its address, without its bytes, which
/// follow when they are all there.
///
/// - INCR and WRAP bursts are served, FIXED ones refused with SLVERR and no request.
/// - A read burst is one request. A write burst is one per run of bytes whose strobes are set,
///   which is one unless the manager leaves holes.
/// - Answers with one ID are in order; those of different IDs in the order in which the bus is
/// done.
///   Beats of two reads do not alternate.
/// - All outputs come from registers.
class AxiSubordinate {
 public:
  struct Params {
    unsigned bytes = 16;      ///< width of the port's data, a power of two up to 128
    unsigned bus_bytes = 16;  ///< width of what is behind it: how early the first beats are there
    unsigned reads = 8;       ///< address taken, last beat not taken
    unsigned writes = 8;      ///< address taken, response not taken
    /// For a manager whose data follow their address without a gap: the bus carries the beats as
    /// they come.
    bool asks_with_address = false;
    /// How often a ready is withheld, or an answer that could be offered, of 1000 cycles: what the
    /// manager has to bear with.
    unsigned stalls_per_mille = 0;
    std::uint64_t seed = 1;
  };

  /// To the bus. `data` and the request stay where they are until it is answered.
  struct Request {
    std::uint64_t address = 0;
    std::uint8_t* data =
        nullptr;  ///< null: for its time alone, of a write that asks with its address
    std::uint32_t bytes = 0;
    bool write = false;
    std::size_t transaction = 0;
    bool takes_time = true;  ///< or it has been asked for with the address, and is not answered
  };

  struct Counts {
    std::uint64_t reads = 0, writes = 0;  ///< bursts
    std::uint64_t refused = 0;            ///< of these: FIXED
    std::uint64_t requests = 0;           ///< to the bus
    std::uint64_t read_beats = 0, write_beats = 0;
    std::uint64_t address_waits = 0;   ///< cycles in which AW or AR waited for ready
    std::uint64_t data_waits = 0;      ///< ... W
    std::uint64_t response_waits = 0;  ///< cycles in which R or B waited for the manager
    std::uint64_t most_reads = 0, most_writes = 0;  ///< outstanding at a time
  };

  /// Throws std::invalid_argument on bad parameters.
  explicit AxiSubordinate(const Params& params);

  /// Sets what this side drives in `cycle`.
  void drive(AxiPins& pins, std::uint64_t cycle);
  /// Takes what was handed over at the edge that ends `cycle`. Calls `ask` for each request that
  /// follows. A manager that breaks the protocol (see AxiChecker) gets no useful answer.
  void edge(const AxiPins& pins, std::uint64_t cycle, const std::function<void(Request)>& ask);
  /// A request is complete with `cycle`, which is not 0: its last byte has come before it.
  void answer(const Request& request, std::uint64_t cycle, AxiResponse response);

  /// Whether nothing is under way.
  [[nodiscard]] bool idle() const noexcept {
    return reads_.empty() && writes_.empty() && data_.empty();
  }
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }

 private:
  struct Transaction {
    AxiAddress burst;
    std::size_t number = 0;
    std::vector<std::uint8_t> bytes;  ///< of axi_range(burst)
    std::size_t waits_for = 0;        ///< requests without an answer, data that are to come
    std::uint64_t answer = 0;         ///< cycle from which it may be answered
    AxiResponse response = AxiResponse::kOkay;
    unsigned beats = 0;  ///< read: taken by the manager
  };
  using Transactions = std::list<Transaction>;  ///< in order of their addresses
  struct WriteBeat {
    AxiData data;
    AxiStrobes strobes;
    bool last;
  };

  [[nodiscard]] bool stalls() {
    return params_.stalls_per_mille != 0 && random_() % 1000 < params_.stalls_per_mille;
  }
  /// The cycle from which the next beat of a read may be offered.
  [[nodiscard]] std::uint64_t beat_cycle(const Transaction& read) const;
  /// Of those that are the oldest of their ID and may be answered in `cycle`, the one that was done
  /// first; end() if there is none.
  template <typename Cycle>
  [[nodiscard]] Transactions::iterator next(Transactions& all, std::uint64_t cycle, Cycle from);
  Transaction& open(Transactions& all, const AxiAddress& burst);
  void open_write(const AxiAddress& burst, const std::function<void(Request)>& ask);
  void ask_read(const AxiAddress& burst, std::uint64_t cycle,
                const std::function<void(Request)>& ask);
  void end_write(std::uint64_t cycle, const std::function<void(Request)>& ask);
  void count_waits(const AxiPins& pins);

  Params params_;
  std::mt19937_64 random_;
  Counts counts_;
  Transactions reads_, writes_;
  std::deque<Transactions::iterator> filling_;  ///< writes whose data are not complete
  std::deque<WriteBeat> data_;
  std::size_t complete_ = 0;  ///< write bursts in `data_` with their last beat
  std::size_t numbers_ = 0;
  Transactions::iterator reading_ = reads_.end();   ///< its next beat is offered next
  Transactions::iterator writing_ = writes_.end();  ///< its response is offered
  bool r_offered_ = false;                          ///< and not taken yet
};

}  // namespace systole::hw
