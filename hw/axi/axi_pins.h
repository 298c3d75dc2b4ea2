#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>

/// AXI4 pins, cycle by cycle (ARM IHI 0022, issue H: AXI4; sections named below are its).
namespace systole::hw {

/// The widest data bus that AXI4 knows, in bytes (A1.2).
inline constexpr std::size_t kAxiMaxBytes = 128;
/// No burst crosses a multiple of this (A3.4.1).
inline constexpr std::uint64_t kAxiBoundary = 4096;

enum class AxiBurst : std::uint8_t { kFixed = 0, kIncr = 1, kWrap = 2 };  ///< A3.4.1
enum class AxiResponse : std::uint8_t {
  kOkay = 0,
  kExOkay = 1,
  kSlvErr = 2,
  kDecErr = 3
};  ///< A3.4.4

/// Channel AW or AR. Cache, protection, QoS and region do not change what the bus does; a locked
/// access is an ordinary one and gets OKAY, as from any subordinate without exclusive access
/// (A7.2).
struct AxiAddress {
  bool valid = false, ready = false;
  std::uint32_t id = 0;
  std::uint64_t address = 0;
  std::uint8_t len = 0;   ///< beats - 1
  std::uint8_t size = 0;  ///< log2 of the bytes of a beat
  AxiBurst burst = AxiBurst::kIncr;
};

/// Data and strobes of byte lanes; lanes beyond the width of the bus are 0.
using AxiData = std::array<std::uint8_t, kAxiMaxBytes>;
using AxiStrobes = std::bitset<kAxiMaxBytes>;

struct AxiWriteData {
  bool valid = false, ready = false;
  AxiData data{};
  AxiStrobes strobes;
  bool last = false;
};
struct AxiWriteResponse {
  bool valid = false, ready = false;
  std::uint32_t id = 0;
  AxiResponse response = AxiResponse::kOkay;
};
struct AxiReadData {
  bool valid = false, ready = false;
  std::uint32_t id = 0;
  AxiData data{};
  AxiResponse response = AxiResponse::kOkay;
  bool last = false;
};

/// All of a port in one cycle. The manager drives AW, W, AR and the readies of B and R.
struct AxiPins {
  AxiAddress aw, ar;
  AxiWriteData w;
  AxiWriteResponse b;
  AxiReadData r;
};

/// Bytes [begin, end) on the bus.
struct AxiRange {
  std::uint64_t begin, end;
};

[[nodiscard]] inline unsigned axi_beats(const AxiAddress& burst) { return burst.len + 1U; }

/// The bytes of a beat (A3.4.1). Only the first beat of a burst that increments may be unaligned.
[[nodiscard]] inline AxiRange axi_beat(const AxiAddress& burst, unsigned beat) {
  const std::uint64_t size = std::uint64_t{1} << burst.size;
  const std::uint64_t aligned = burst.address / size * size;
  if (burst.burst == AxiBurst::kFixed) return {burst.address, aligned + size};
  if (burst.burst == AxiBurst::kWrap) {
    const std::uint64_t total = size * axi_beats(burst);
    const std::uint64_t low = burst.address / total * total;
    const std::uint64_t begin = low + (aligned - low + beat * size) % total;
    return {begin, begin + size};
  }
  return {beat == 0 ? burst.address : aligned + beat * size, aligned + (beat + 1) * size};
}

/// All bytes of a burst.
[[nodiscard]] inline AxiRange axi_range(const AxiAddress& burst) {
  if (burst.burst != AxiBurst::kWrap) {
    return {burst.address, axi_beat(burst, burst.len).end};
  }
  const std::uint64_t total = std::uint64_t{axi_beats(burst)} << burst.size;
  const std::uint64_t low = burst.address / total * total;
  return {low, low + total};
}

/// RTL with an AXI4 manager port, as a bridge sees it.
class AxiManager {
 public:
  virtual ~AxiManager() = default;
  /// Puts what the subordinate drives (`ready` of AW, W and AR, all else of B and R) on the inputs,
  /// lets the RTL settle, and sets the rest of `pins` to its outputs.
  virtual void settle(AxiPins& pins) = 0;
  /// The rising edge that ends the cycle.
  virtual void edge() = 0;
  /// False while the RTL wants no clock: it does nothing until something else starts it.
  [[nodiscard]] virtual bool active() const { return true; }
};

/// RTL with an AXI4 subordinate port, as a bridge sees it.
class AxiResponder {
 public:
  virtual ~AxiResponder() = default;
  /// Puts what the manager drives (`ready` of B and R, all else of AW, W and AR) on the inputs,
  /// lets the RTL settle, and sets the rest of `pins` to its outputs.
  virtual void settle(AxiPins& pins) = 0;
  /// The rising edge that ends the cycle.
  virtual void edge() = 0;
  /// Whether the RTL wants a clock although nothing is asked of it.
  [[nodiscard]] virtual bool active() const { return false; }
  /// Moves bytes without time, if the RTL has a way to. Returns how many.
  virtual std::uint32_t debug(bool /*write*/, std::uint64_t /*address*/, std::uint8_t* /*data*/,
                              std::uint32_t /*bytes*/) {
    return 0;
  }
};

}  // namespace systole::hw
