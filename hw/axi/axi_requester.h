#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <vector>

#include "hw/axi/axi_pins.h"

namespace systole::hw {

/// A burst with all of its beats, in the lanes of the port.
struct AxiBurstBeats {
  AxiAddress address;  ///< `id` is the requester's
  bool write = false;
  std::vector<AxiData> data;  ///< one per beat; of a read: as it came
  std::vector<AxiStrobes> strobes;
  AxiResponse response = AxiResponse::kOkay;  ///< the worst of its beats
};

/// Bytes to be moved, anywhere.
struct AxiRequest {
  std::uint64_t address = 0;
  std::uint8_t* data = nullptr;
  const std::uint8_t* enables = nullptr;  ///< null: all; else 0 for each byte that stays as it is
  std::uint32_t bytes = 0;
  bool write = false;
};

/// The INCR bursts of a request, on a port of `width` bytes: none of more than 256 beats (A3.4.1)
/// or across kAxiBoundary, and no byte is read that was not asked for. What a word of the port has
/// beyond the end of a read takes bursts of smaller beats; a write has strobes.
[[nodiscard]] std::vector<AxiBurstBeats> axi_bursts(const AxiRequest& request, unsigned width);

/// Copies what the bursts of a read have brought.
void take_read_bytes(const std::vector<AxiBurstBeats>& bursts, const AxiRequest& request,
                     unsigned width);

/// The side of an AXI4 port that asks, cycle by cycle.
///
/// Cycle c ends with edge c. What was asked for with `edge` e is offered in cycle e + 1 at the
/// earliest, and done with the edge that takes its last answer.
///
/// - Requests begin in the order of their edges, and as they were asked for at the same edge;
/// several
///   are in flight. One whose bytes another one moves waits for that, unless both read, and those
///   after it wait too.
/// - Addresses of both kinds are offered side by side, write data when the port takes them, also
///   before their address.
/// - IDs take turns by request.
/// - Outputs come from registers.
class AxiRequester {
 public:
  struct Params {
    unsigned bytes = 16;  ///< width of the port's data, a power of two up to 128
    unsigned reads = 8;   ///< bursts: address offered, last beat not taken
    unsigned writes = 8;  ///< bursts: address offered, response not taken
    unsigned ids = 4;     ///< 0 to ids - 1 are used
    /// How often an address, data or a ready is withheld, of 1000 cycles.
    unsigned stalls_per_mille = 0;
    std::uint64_t seed = 1;
  };
  struct Counts {
    std::uint64_t requests = 0;
    std::uint64_t reads = 0, writes = 0;  ///< bursts
    std::uint64_t read_beats = 0, write_beats = 0;
    std::uint64_t errors = 0;                       ///< requests without OKAY
    std::uint64_t address_waits = 0;                ///< cycles in which AW or AR waited for ready
    std::uint64_t data_waits = 0;                   ///< ... W
    std::uint64_t most_reads = 0, most_writes = 0;  ///< outstanding at a time
  };
  /// A request is done with `cycle`; `response` is the worst of its bursts.
  using Done = std::function<void(std::size_t number, std::uint64_t cycle, AxiResponse response,
                                  const std::vector<AxiBurstBeats>& bursts)>;

  /// Throws std::invalid_argument on bad parameters.
  explicit AxiRequester(const Params& params);

  /// Asks for bursts, one at least, with the edge of cycle `edge`. Returns a number: the first is
  /// 0, each later one is one more.
  std::size_t ask(std::vector<AxiBurstBeats> bursts, std::uint64_t edge);

  /// Sets what this side drives in `cycle`.
  void drive(AxiPins& pins, std::uint64_t cycle);
  /// Takes what was handed over at the edge that ends `cycle`. The RTL keeps the protocol (see
  /// AxiChecker).
  void edge(const AxiPins& pins, std::uint64_t cycle, const Done& done);

  /// Whether nothing is under way; something may be asked for with a later edge.
  [[nodiscard]] bool idle() const noexcept { return open_.empty(); }
  [[nodiscard]] bool waiting() const noexcept { return !asked_.empty(); }
  /// With waiting(): the first cycle in which something can be offered.
  [[nodiscard]] std::uint64_t next_cycle() const noexcept { return asked_.front().edge + 1; }
  [[nodiscard]] const Params& params() const noexcept { return params_; }
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }

 private:
  struct Request {
    std::size_t number;
    std::uint64_t edge;
    std::vector<AxiBurstBeats> bursts;
    std::size_t left;  ///< bursts without an answer
  };
  /// A burst in flight, and how many of its beats are done.
  struct Flight {
    Request* request;
    std::size_t burst;
    std::size_t beats = 0;
    [[nodiscard]] AxiBurstBeats& beats_of() const { return request->bursts[burst]; }
  };
  using Flights = std::deque<Flight>;

  [[nodiscard]] bool stalls() {
    return params_.stalls_per_mille != 0 && random_() % 1000 < params_.stalls_per_mille;
  }
  [[nodiscard]] bool conflicts(const Request& request) const;
  void begin(std::uint64_t cycle);
  void offer(AxiAddress& pin, const Flights& queue, bool has_room, bool& offered);
  void end(std::map<std::uint32_t, Flights>& flights, std::uint32_t id, std::uint64_t cycle,
           const Done& done);

  Params params_;
  std::mt19937_64 random_;
  Counts counts_;
  std::deque<Request> asked_;  ///< by edge
  std::map<std::size_t, Request> open_;
  Flights ar_, aw_, w_;                              ///< to be offered
  std::map<std::uint32_t, Flights> reads_, writes_;  ///< address taken, by ID
  std::size_t reading_ = 0, writing_ = 0;            ///< as many
  bool ar_offered_ = false, aw_offered_ = false, w_offered_ = false;
  std::size_t numbers_ = 0;
};

}  // namespace systole::hw
