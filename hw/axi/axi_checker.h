#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "hw/axi/axi_pins.h"

namespace systole::hw {

/// Watches a port and remembers the first breach of AXI4, of either side:
/// - what is valid stays, unchanged, until it is taken (A3.2.1);
/// - sizes, lengths, alignment and the 4 KiB rule of addresses (A3.4.1);
/// - strobes in the byte lanes of the beat only (A3.4.3);
/// - as many beats as the address says, `last` on the last one (A3.4.1);
/// - responses to what was asked alone, to a write after all of its data (A3.3.1), in order for an
///   ID (A5.3). Beats of two reads with different IDs may alternate.
class AxiChecker {
 public:
  /// `bytes`: width of the data.
  explicit AxiChecker(unsigned bytes) : bytes_(bytes) {}

  /// The pins at the edge that ends `cycle`. False once a rule has been broken.
  bool watch(const AxiPins& pins, std::uint64_t cycle);

  /// "" or one line: cycle, channel, what was found, what was expected.
  [[nodiscard]] const std::string& breach() const noexcept { return breach_; }

  /// Whether all that was asked has been answered.
  [[nodiscard]] bool quiet() const noexcept;

 private:
  struct WriteBurst {
    unsigned beats = 0;
    bool complete = false;
    std::deque<AxiStrobes> strobes;
  };

  void fail(const char* channel, const std::string& text);
  void check_held(const AxiPins& pins);
  void check_address(const char* channel, const AxiAddress& address);
  void take_write_data(const AxiWriteData& w);
  void match_writes();
  void check_strobes(const AxiAddress& burst, const WriteBurst& data);

  unsigned bytes_;
  AxiPins last_;  ///< of the cycle before
  std::uint64_t cycle_ = 0;
  std::deque<AxiAddress> addresses_;  ///< of writes whose data are not complete
  std::deque<WriteBurst> data_;       ///< write data without their address, or incomplete
  std::map<std::uint32_t, unsigned> responses_;            ///< writes to be answered, by ID
  std::map<std::uint32_t, std::deque<AxiAddress>> reads_;  ///< to be answered, by ID
  std::map<std::uint32_t, unsigned> read_beats_;           ///< of the oldest of an ID, so far
  std::string breach_;
};

}  // namespace systole::hw
