#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/accounting.h"
#include "base/calendar.h"
#include "base/round.h"
#include "hw/machine/machine.h"
#include "tlm/bus/bus_mesh.h"
#include "tlm/common/time.h"

namespace systole::tlm_model {

/// The timing of the system bus in bus cycles, without a protocol: SystemBus reserves its channels
/// here.
///
/// Four channels work side by side, each shared by all initiators and all targets:
/// - request: one cycle per request;
/// - write data: a beat for each word, at a multiple of the width, of which they have a byte, from
///   the cycle of the request on;
/// - read data: the same, once the target has all data (store and forward);
/// - write response: one cycle per write, once the target has finished. It has no account.
/// With latencies Lq (request) and Lp (response), on a free bus
///
///     read:  arrives at the target Lq cycles after its request, is complete
///            Lp + beats - 1 cycles after the target finished
///     write: arrives at the target Lq + beats - 1 cycles after its request, is complete
///            Lp cycles after the target finished
///
/// A machine with a mesh has that instead: requests and answers are packets (hw/noc/mesh.h), and
/// the latencies are those of what is at its nodes. A request arrives, and an answer is complete,
/// Lq or Lp cycles after the cycle of its tail.
class BusCore {
 public:
  /// What an initiator did and how long it waited for others.
  struct Initiator {
    std::string name;
    std::uint64_t reads = 0, writes = 0;
    std::uint64_t read_bytes = 0, written_bytes = 0;
    std::uint64_t request_wait = 0;  ///< cycles between wanting and getting the request channel
    std::uint64_t data_wait = 0;     ///< ... a data channel, or that of write responses
    // With a mesh those two are what requests and answers wait for links.
    std::uint64_t target_time = 0;  ///< ... from the arrival at a target to its answer
    std::uint64_t errors = 0;       ///< requests answered with an error
    std::uint64_t byte_hops = 0;    ///< of its packets and their answers on a mesh
    BusMesh::Endpoint endpoint = BusMesh::kHosts;  ///< of a mesh
  };
  using Route = BusMesh::Route;

  /// With a mesh in the place of the channels, unless it is null. Throws std::invalid_argument if
  /// the width is 0.
  explicit BusCore(const hw::Machine::Bus& params, std::unique_ptr<BusMesh> mesh = nullptr);

  /// Nothing will be reserved before cycle `now` any more.
  void retire(std::uint64_t now) {
    if (mesh_) return mesh_->mesh().retire(now);
    request_.retire(now);
    write_data_.retire(now);
    read_data_.retire(now);
    write_response_.retire(now);
  }

  /// Sends a request that arrived at cycle `arrival`. Returns the cycle of its grant.
  std::uint64_t grant(Initiator& initiator, std::uint64_t arrival);

  /// Moves the data of a request that was granted at cycle `grant`, if it is a write. Returns the
  /// cycle in which it is complete at the target.
  std::uint64_t deliver(Initiator& initiator, std::uint64_t grant, bool write, const Route& route);

  /// The target finished at cycle `finished`; moves the data, if it is a read. Returns the cycle in
  /// which the response is complete at the initiator.
  std::uint64_t respond(Initiator& initiator, std::uint64_t finished, bool read,
                        const Route& route);

  /// What requests ask for that are alike to the bus: see are_alike().
  struct Piece {
    std::uint64_t address;  ///< of the first
    std::uint32_t bytes;    ///< of each
  };
  /// Whether requests of `bytes` bytes have as many beats each if the bytes from the end of one to
  /// the begin of the next are 0 or `gap`.
  [[nodiscard]] bool are_alike(Piece piece, std::uint64_t gap) const noexcept {
    const std::uint64_t width = params_.width_bytes;
    if (piece.bytes % width == 0) return gap % width == 0;
    return width % piece.bytes == 0 && piece.address % piece.bytes == 0 && gap % piece.bytes == 0;
  }

  /// What grant() and deliver() do for requests that are alike, in order, that arrive at
  /// `times` (ps), which become the times of their arrival at the target. Not with a mesh.
  void send(Initiator& initiator, bool write, Piece piece, std::vector<std::uint64_t>& times);
  /// What respond() does for them, none of them an error: the times at which the target finished
  /// become those in which the responses are complete.
  void respond(Initiator& initiator, bool write, Piece piece, std::vector<std::uint64_t>& times);

  /// What grant() and deliver() do for `count` reads that arrive `step` cycles after each other,
  /// the first at `arrival`, if they are at the target `step` cycles after each other: returns when
  /// the first is. Nothing, and nothing is done, if that is not so. Before anything else is sent,
  /// count_sent() says how many of them were.
  std::optional<std::uint64_t> send_reads(std::uint64_t arrival, std::uint64_t step,
                                          std::uint64_t count);
  /// Reads of `bytes` bytes that send_reads() has sent.
  struct SentReads {
    std::uint64_t arrival, delivered, step, count;
    std::uint32_t bytes;
  };
  /// The first `kept` of the reads were sent, the others never issue.
  void count_sent(Initiator& initiator, const SentReads& sent, std::uint64_t kept);
  /// When the target may finish the first of any number of reads that are alike, `step` cycles
  /// after each other, so that respond_to_reads() returns `answered`: from the first cycle to the
  /// second. Nothing: never.
  [[nodiscard]] std::optional<std::pair<std::uint64_t, std::uint64_t>> finished_for(
      std::uint64_t answered, std::uint64_t step, Piece piece) const;
  /// The same of respond(), for `count` reads that the target finished `step` cycles after each
  /// other.
  std::optional<std::uint64_t> respond_to_reads(Initiator& initiator, std::uint64_t finished,
                                                std::uint64_t step, std::uint64_t count,
                                                Piece piece);

  /// Cycles of a request that no target answers.
  [[nodiscard]] std::uint64_t round_trip() const noexcept {
    return params_.request_latency + params_.response_latency;
  }

  /// From bus cycle `now` on, time counts in the accounts or it does not.
  void set_counting(bool on, std::uint64_t now) {
    if (mesh_) return mesh_->mesh().set_counting(on, now);
    for (hw::Calendar* channel : {&request_, &write_data_, &read_data_}) {
      channel->set_counting(on, now);
    }
  }

  /// Ends the accounts at bus cycle `total`, the end of the run, or at the end of the last
  /// reservation if the run was cut off before that.
  void finish(std::uint64_t total);

  [[nodiscard]] const Clock& clock() const noexcept { return clock_; }
  [[nodiscard]] const hw::Machine::Bus& params() const noexcept { return params_; }
  /// Null: there is none.
  [[nodiscard]] BusMesh* mesh() const noexcept { return mesh_.get(); }
  [[nodiscard]] const hw::Calendar& request() const noexcept { return request_; }
  [[nodiscard]] const hw::Calendar& write_data() const noexcept { return write_data_; }
  [[nodiscard]] const hw::Calendar& read_data() const noexcept { return read_data_; }

  /// Initiator `id`; makes those up to `id` if they are not there yet.
  [[nodiscard]] Initiator& initiator(std::size_t id) {
    if (id >= initiators_.size()) add_initiators(id + 1);
    return initiators_[id];
  }
  [[nodiscard]] const std::vector<Initiator>& initiators() const noexcept { return initiators_; }

  std::uint64_t decode_errors = 0;  ///< requests that no target answers

  /// Cycles of a data channel: its beats are words of memory at multiples of its width, as those of
  /// AXI4 are.
  [[nodiscard]] std::uint64_t data_cycles(std::uint64_t address,
                                          std::uint32_t bytes) const noexcept {
    return std::max<std::uint64_t>(blocks_touched(address, bytes, params_.width_bytes), 1);
  }

  /// What each initiator did, and each channel's account. Links of a mesh have a report of theirs.
  [[nodiscard]] hw::BlockReport report(std::string name) const;

 private:
  void add_initiators(std::size_t count);
  std::uint64_t deliver_by_mesh(Initiator& initiator, std::uint64_t grant, bool write,
                                const Route& route);
  std::uint64_t respond_by_mesh(Initiator& initiator, std::uint64_t finished, bool read,
                                const Route& route);

  hw::Machine::Bus params_;
  Clock clock_;
  hw::Calendar request_, write_data_, read_data_, write_response_;
  std::unique_ptr<BusMesh> mesh_;
  std::vector<Initiator> initiators_;
};

// Inline, because the bus calls them for every request.

inline std::uint64_t BusCore::grant(Initiator& initiator, std::uint64_t arrival) {
  if (mesh_) return arrival;  // each request is a packet by itself
  const std::uint64_t granted = request_.reserve(arrival, 1);
  initiator.request_wait += granted - arrival;
  return granted;
}

inline std::uint64_t BusCore::deliver(Initiator& initiator, std::uint64_t grant, bool write,
                                      const Route& route) {
  if (write) {
    ++initiator.writes;
    initiator.written_bytes += route.bytes;
  } else {
    ++initiator.reads;
    initiator.read_bytes += route.bytes;
  }
  std::uint64_t delivered = grant;
  if (mesh_) {
    delivered = deliver_by_mesh(initiator, grant, write, route);
  } else if (write) {
    const std::uint64_t length = data_cycles(route.address, route.bytes);
    const std::uint64_t begin = write_data_.reserve(grant, length);
    initiator.data_wait += begin - grant;
    delivered = begin + length - 1;
  }
  delivered += params_.request_latency;
  initiator.target_time -= delivered;
  return delivered;
}

inline std::uint64_t BusCore::respond(Initiator& initiator, std::uint64_t finished, bool read,
                                      const Route& route) {
  initiator.target_time += finished;  // the arrival was taken off by deliver()
  if (mesh_) {
    return respond_by_mesh(initiator, finished, read, route) + params_.response_latency;
  }
  const std::uint64_t length = read ? data_cycles(route.address, route.bytes) : 1;
  hw::Calendar& channel = read ? read_data_ : write_response_;
  const std::uint64_t begin = channel.reserve(finished, length);
  initiator.data_wait += begin - finished;
  return begin + length - 1 + params_.response_latency;
}

}  // namespace systole::tlm_model
