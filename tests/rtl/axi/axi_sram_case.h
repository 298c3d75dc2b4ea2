#pragma once

#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

#include "hw/axi/axi_checker.h"
#include "hw/axi/axi_requester.h"
#include "testbench/rtl/axi/axi_sram_rtl.h"

namespace systole::testbench {

/// What is at the addresses of the SRAM in RTL: bytes, and registers beyond them.
class PlainSram {
 public:
  explicit PlainSram(unsigned width)
      : width_(width), bytes_(AxiSramRtl::kWords * width), registers_(AxiSramRtl::kRegisters, 0) {
    registers_[0] = AxiSramRtl::kIdentity;
  }

  [[nodiscard]] std::uint64_t memory_end() const { return bytes_.size(); }
  [[nodiscard]] std::uint64_t map_end() const {
    return memory_end() + AxiSramRtl::kRegisters * width_;
  }

  /// Does what a burst does. Of a write it sets the response, of a read the data too: bytes outside
  /// the lanes of a beat are 0.
  void serve(hw::AxiBurstBeats& burst) {
    if (!burst.write) burst.data.assign(hw::axi_beats(burst.address), {});
    for (unsigned beat = 0; beat < hw::axi_beats(burst.address); ++beat) {
      const hw::AxiRange range = hw::axi_beat(burst.address, beat);
      const hw::AxiResponse response = response_to(range.begin, burst.write);
      burst.response = std::max(burst.response, response);
      if (response != hw::AxiResponse::kOkay) continue;
      for (std::uint64_t byte = range.begin; byte < range.end; ++byte) {
        std::uint8_t& lane = burst.data[beat][byte % width_];
        if (!burst.write) {
          lane = read(byte);
        } else if (burst.strobes[beat][byte % width_]) {
          write(byte, lane);
        }
      }
    }
    if (burst.response == hw::AxiResponse::kOkay) ++registers_[burst.write ? 2 : 3];
  }

 private:
  [[nodiscard]] std::uint64_t register_of(std::uint64_t address) const {
    return (address - memory_end()) / width_;
  }
  [[nodiscard]] hw::AxiResponse response_to(std::uint64_t address, bool write) const {
    if (address < memory_end()) return hw::AxiResponse::kOkay;
    if (address >= map_end()) return hw::AxiResponse::kDecErr;
    return write && register_of(address) != 1 ? hw::AxiResponse::kSlvErr : hw::AxiResponse::kOkay;
  }
  [[nodiscard]] std::uint8_t read(std::uint64_t address) const {
    if (address < memory_end()) return bytes_[address];
    const std::uint64_t lane = address % width_;
    if (lane >= 4) return 0;
    return static_cast<std::uint8_t>(registers_[register_of(address)] >> 8 * lane);
  }
  void write(std::uint64_t address, std::uint8_t value) {
    if (address < memory_end()) {
      bytes_[address] = value;
    } else if (const std::uint64_t lane = address % width_; lane < 4) {
      registers_[1] &= ~(std::uint32_t{0xff} << 8 * lane);
      registers_[1] |= std::uint32_t{value} << 8 * lane;
    }
  }

  unsigned width_;
  std::vector<std::uint8_t> bytes_;
  std::vector<std::uint32_t> registers_;
};

/// A requester and the RTL, pin to pin, with the checker between them.
class SramRun {
 public:
  SramRun(AxiSramRtl& rtl, const hw::AxiRequester::Params& params)
      : rtl_(rtl), requester_(params), checker_(params.bytes) {}

  /// One request at a time, to its end. Returns cycles: from the first in which it could be offered
  /// to the last answer. Throws std::runtime_error on a breach of the protocol or a hang.
  std::uint64_t run(std::vector<hw::AxiBurstBeats>& bursts) {
    const std::uint64_t begin = cycle_;
    (void)requester_.ask(bursts, cycle_);
    bool over = false;
    while (!over) {
      cycle([&](std::size_t, std::uint64_t, hw::AxiResponse,
                const std::vector<hw::AxiBurstBeats>& done) {
        bursts = done;
        over = true;
      });
      if (cycle_ - begin > kHang) throw std::runtime_error("the SRAM hangs");
    }
    return cycle_ - begin;
  }

  void cycle(const hw::AxiRequester::Done& done) {
    ++cycle_;
    requester_.drive(pins_, cycle_);
    rtl_.settle(pins_);
    if (!checker_.watch(pins_, cycle_)) throw std::runtime_error(checker_.breach());
    requester_.edge(pins_, cycle_, done);
    rtl_.edge();
  }

  [[nodiscard]] hw::AxiRequester& requester() { return requester_; }
  [[nodiscard]] const hw::AxiChecker& checker() const { return checker_; }
  [[nodiscard]] std::uint64_t now() const { return cycle_; }

 private:
  static constexpr std::uint64_t kHang = 100'000;

  AxiSramRtl& rtl_;
  hw::AxiRequester requester_;
  hw::AxiChecker checker_;
  hw::AxiPins pins_;
  std::uint64_t cycle_ = 0;
};

}  // namespace systole::testbench
