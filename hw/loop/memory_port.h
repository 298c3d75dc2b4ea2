#pragma once

#include <cstdint>
#include <deque>

#include "hw/loop/loop_types.h"

namespace systole::hw::loop {

/// What is beyond the memory port of a loop core.
class Memory {
 public:
  virtual ~Memory() = default;
  struct Request {
    bool write = false;
    std::uint64_t address = 0;  ///< of the first byte that is wanted, or written
    std::uint32_t bytes = 0;    ///< wanted or written
    std::uint64_t cycle = 0;    ///< in which its last beat leaves the core
  };
  /// Requests come in the order of their last beats. Returns the cycle at which the last beat of
  /// the answer arrives, if the core accepts each at once. A read returns a beat for each
  /// `beat_bytes`, a write one.
  virtual std::uint64_t send(const Request& request) = 0;
  /// Cycles from one beat of an answer to the next.
  [[nodiscard]] virtual std::uint32_t beat_cycles() const = 0;
};

/// The one port to memory that reader and writer of a loop core share: a buffer of two beats for
/// each of them, a round-robin arbiter that keeps the beats of a write together, a buffer of two
/// beats after it; and as many buffers on the way back. Those are TileLink buffers and the crossbar
/// of Gemmini's Scratchpad module. Without waiting a beat takes two cycles in each direction.
class MemoryPort {
 public:
  enum Client : std::uint8_t { kReader, kWriter };
  struct Beat {
    Memory::Request request;
    std::uint8_t id = 0;      ///< of the request, at its client
    std::uint32_t beats = 1;  ///< of the answer
    bool last = true;         ///< of the request
  };
  struct Answer {
    std::uint8_t id = 0;
    bool last = false;  ///< beat of the request
  };
  struct Counts {
    std::uint64_t reads = 0, read_bytes = 0, writes = 0, written_bytes = 0;
  };

  explicit MemoryPort(Memory& memory) : memory_(memory) {}

  /// Begins a cycle: what the clients may see and use is what there was at its begin.
  void begin(std::uint64_t cycle);
  /// Whether the client's buffer takes a beat in this cycle.
  [[nodiscard]] bool accepts(Client client) const { return accepts_[client]; }
  void push(Client client, const Beat& beat) { out_[client].push(beat); }
  /// The beat of an answer that has arrived for the client in this cycle; null: none.
  [[nodiscard]] const Answer* answer(Client client) {
    return has_answer_[client] ? &in_[client].front() : nullptr;
  }
  void pop(Client client) { in_[client].pop(); }
  /// Moves beats between the buffers. After the clients have taken their answers, and before they
  /// push beats.
  void move();

  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }

 private:
  struct Returning {
    Client client = kReader;
    Answer answer;
  };
  struct Flight {
    std::uint64_t first;  ///< cycle of its first beat, at the earliest
    std::uint32_t beats;  ///< still to come
    Client client;
    std::uint8_t id;
  };

  void send(const Beat& beat);
  /// Takes the next beat of an answer, if one arrives in this cycle.
  void receive();

  Memory& memory_;
  std::uint64_t cycle_ = 0;
  Fifo<Beat, 2> out_[2], shared_out_;
  Fifo<Answer, 2> in_[2];
  Fifo<Returning, 2> shared_in_;
  // As they were at the begin of the cycle.
  bool accepts_[2] = {true, true}, has_answer_[2] = {false, false};
  bool has_room_[2] = {true, true}, has_request_[2] = {false, false};
  int holder_ = -1;  ///< whose beats follow one another
  int last_ = kWriter;
  std::deque<Flight> flights_;
  bool begun_ = false;           ///< beats of the first have come, and more will
  std::uint64_t next_beat_ = 0;  ///< earliest cycle
  Counts counts_;
};

}  // namespace systole::hw::loop
