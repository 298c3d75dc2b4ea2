#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "hw/axi/axi_checker.h"
#include "hw/axi/axi_subordinate.h"
#include "hw/dma/read_dma.h"
#include "hw/dma/write_dma.h"
#include "testbench/rtl/drive/axi_manager_pins.h"
#include "testbench/rtl/drive/ports.h"

namespace systole::testbench {

/// What is at the AXI4 read channels of a block whose pins have the names of
/// rtl/dma/systole_read_dma.sv: `memory` says when, `bytes` what, from address 0 on. Answers are on
/// the pins in the cycle before their request is done: the last cycle of the way is that of the
/// port's register. Collects the requests.
class ReadSide {
 public:
  static constexpr std::size_t kNone = ~std::size_t{0};

  ReadSide(unsigned beat_bytes, std::uint32_t outstanding, const hw::ReadMemory& memory,
           const std::vector<std::uint8_t>& bytes)
      : beat_bytes_(beat_bytes),
        memory_(memory),
        bytes_(bytes),
        port_(params(beat_bytes, outstanding)),
        checker_(beat_bytes),
        of_id_(outstanding, kNone) {}

  /// Puts this side's pins of `cycle` on the inputs.
  template <typename Dut>
  void drive(Dut& dut, std::uint64_t cycle) {
    port_.drive(pins_, cycle);
    pins_.ar.ready = pins_.ar.ready && memory_.takes(cycle);
    drive_read_pins(dut, pins_, beat_bytes_);
  }

  /// Takes the block's pins, which have settled, at the end of `cycle`. A request is of `command`.
  /// Throws std::runtime_error on a breach of the protocol.
  template <typename Dut>
  void take(Dut& dut, std::uint64_t cycle, std::size_t command) {
    take_read_pins(dut, pins_);
    if (!checker_.watch(pins_, cycle)) throw std::runtime_error(checker_.breach());
    written_by_ = kNone;
    if (pins_.r.valid && pins_.r.ready) {
      written_by_ = of_id_.at(pins_.r.id);
      if (pins_.r.last) requests_[written_by_].done = cycle + 1;
    }
    port_.edge(pins_, cycle,
               [&](const hw::AxiSubordinate::Request& asked) { ask(asked, cycle, command); });
  }

  /// The block writes bytes of the beat that it took in the cycle before.
  void count_written(std::uint64_t bytes) { requests_.at(written_by_).bytes += bytes; }
  [[nodiscard]] bool idle() const { return port_.idle(); }
  /// Those so far, with the bytes that were written of them.
  [[nodiscard]] std::vector<hw::ReadRequest>& requests() { return requests_; }

 private:
  static hw::AxiSubordinate::Params params(unsigned beat_bytes, std::uint32_t outstanding) {
    hw::AxiSubordinate::Params params;
    params.bytes = params.bus_bytes = beat_bytes;
    params.reads = 2 * outstanding;
    return params;
  }

  void ask(const hw::AxiSubordinate::Request& asked, std::uint64_t cycle, std::size_t command) {
    hw::ReadRequest request;
    request.command = command;
    request.address = asked.address;
    request.bytes = asked.bytes;  // whole beats
    request.issued = cycle;
    of_id_.at(pins_.ar.id) = requests_.size();
    const std::uint64_t done = memory_.done(request);
    const bool there = asked.address + asked.bytes <= bytes_.size();
    if (there) std::memcpy(asked.data, bytes_.data() + asked.address, asked.bytes);
    port_.answer(asked, done, there ? hw::AxiResponse::kOkay : hw::AxiResponse::kDecErr);
    request.bytes = 0;
    requests_.push_back(request);
  }

  const unsigned beat_bytes_;
  const hw::ReadMemory& memory_;
  const std::vector<std::uint8_t>& bytes_;
  hw::AxiSubordinate port_;
  hw::AxiChecker checker_;
  hw::AxiPins pins_;
  std::vector<std::size_t> of_id_;
  std::size_t written_by_ = kNone;  ///< request of the beat that is written next
  std::vector<hw::ReadRequest> requests_;
};

/// A write of a block with those pins.
struct WritePins {
  std::uint64_t to = 0, bytes = 0;  ///< in a local memory

  /// Reads the pins, and copies what is written into `local`.
  template <typename Word, typename Data, typename Strobes>
  WritePins(unsigned beat_bytes, Word word, const Data& data, const Strobes& here,
            const Strobes& next, std::vector<std::uint8_t>& local) {
    const std::uint64_t begin = std::uint64_t{word} * beat_bytes;
    for (unsigned lane = 0; lane < 2 * beat_bytes; ++lane) {
      const unsigned in_word = lane % beat_bytes;
      const Strobes& strobes = lane < beat_bytes ? here : next;
      if ((get_lane<8>(strobes, in_word / 8) >> in_word % 8 & 1U) == 0) continue;
      if (bytes++ == 0) to = begin + lane;
      local.at(begin + lane) = static_cast<std::uint8_t>(get_lane<8>(data, in_word));
    }
  }
};

/// What is at the AXI4 write channels of a block whose pins have the names of
/// rtl/dma/systole_write_dma.sv: `memory` says when, and what is written goes into `bytes`, the
/// memory from address 0 on. Responses are on the pins in the cycle before their request is done,
/// as those of ReadSide. Collects the requests.
class WriteSide {
 public:
  WriteSide(unsigned beat_bytes, std::uint32_t outstanding, const hw::WriteMemory& memory,
            std::vector<std::uint8_t>& bytes)
      : beat_bytes_(beat_bytes),
        memory_(memory),
        bytes_(bytes),
        port_(params(beat_bytes, outstanding)),
        checker_(beat_bytes),
        of_id_(outstanding) {}

  /// Puts this side's pins of `cycle` on the inputs.
  template <typename Dut>
  void drive(Dut& dut, std::uint64_t cycle) {
    port_.drive(pins_, cycle);
    pins_.aw.ready = pins_.aw.ready && memory_.takes(cycle);
    pins_.w.ready = pins_.w.ready && memory_.takes_data(cycle);
    drive_write_pins(dut, pins_);
  }

  /// Takes the block's pins, which have settled, at the end of `cycle`. A request is of `command`.
  /// Throws std::runtime_error on a breach of the protocol.
  template <typename Dut>
  void take(Dut& dut, std::uint64_t cycle, std::size_t command) {
    take_write_pins(dut, pins_, beat_bytes_);
    if (!checker_.watch(pins_, cycle)) throw std::runtime_error(checker_.breach());
    if (pins_.aw.valid && pins_.aw.ready) {
      of_id_.at(pins_.aw.id) = requests_.size();
      hw::WriteRequest request;
      request.command = command;
      request.address = pins_.aw.address;
      request.issued = cycle;
      requests_.push_back(request);
    }
    if (pins_.b.valid && pins_.b.ready) requests_[of_id_.at(pins_.b.id)].done = cycle + 1;
    port_.edge(pins_, cycle, [&](const hw::AxiSubordinate::Request& asked) { ask(asked, cycle); });
  }

  [[nodiscard]] bool idle() const { return port_.idle(); }
  /// Those so far.
  [[nodiscard]] std::vector<hw::WriteRequest>& requests() { return requests_; }

 private:
  static hw::AxiSubordinate::Params params(unsigned beat_bytes, std::uint32_t outstanding) {
    hw::AxiSubordinate::Params params;
    params.bytes = params.bus_bytes = beat_bytes;
    params.writes = 2 * outstanding;
    return params;
  }

  void ask(const hw::AxiSubordinate::Request& asked, std::uint64_t cycle) {
    hw::WriteRequest& request = requests_.at(sent_++);
    request.bytes = asked.bytes;
    request.sent = cycle;
    const bool there = asked.address + asked.bytes <= bytes_.size();
    if (there) std::memcpy(bytes_.data() + asked.address, asked.data, asked.bytes);
    port_.answer(asked, memory_.done(request),
                 there ? hw::AxiResponse::kOkay : hw::AxiResponse::kDecErr);
  }

  const unsigned beat_bytes_;
  const hw::WriteMemory& memory_;
  std::vector<std::uint8_t>& bytes_;
  hw::AxiSubordinate port_;
  hw::AxiChecker checker_;
  hw::AxiPins pins_;
  std::vector<std::size_t> of_id_;
  std::vector<hw::WriteRequest> requests_;
  std::size_t sent_ = 0;
};

}  // namespace systole::testbench
