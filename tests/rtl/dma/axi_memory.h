#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <stdexcept>
#include <vector>

#include "hw/axi/axi_checker.h"
#include "hw/axi/axi_subordinate.h"
#include "testbench/rtl/dma/axi_dma_rtl.h"

namespace systole::testbench {

/// A memory behind an AXI4 port, without a bus: a request is complete some cycles after it was
/// asked for, in any order.
class AxiMemory {
 public:
  AxiMemory(std::size_t bytes, const hw::AxiSubordinate::Params& params, std::uint64_t least,
            std::uint64_t most)
      : bytes_(bytes),
        port_(params),
        checker_(params.bytes),
        random_(params.seed),
        latency_(least, most) {
    for (std::uint8_t& byte : bytes_) byte = static_cast<std::uint8_t>(random_());
  }

  /// Runs until the manager has nothing to do. Returns cycles. Throws std::runtime_error on a
  /// breach of the protocol, or if the manager does not come to an end, or before all is answered.
  std::uint64_t run(hw::AxiManager& manager) {
    const std::uint64_t begin = cycle_;
    while (manager.active()) {
      ++cycle_;
      port_.drive(pins_, cycle_);
      manager.settle(pins_);
      if (!checker_.watch(pins_, cycle_)) throw std::runtime_error(checker_.breach());
      port_.edge(pins_, cycle_, [this](const hw::AxiSubordinate::Request& request) {
        port_.answer(request, cycle_ + latency_(random_), serve(request));
      });
      manager.edge();
      if (cycle_ - begin > kHang) throw std::runtime_error("the manager hangs");
    }
    if (!port_.idle() || !checker_.quiet()) throw std::runtime_error("something is not answered");
    return cycle_ - begin;
  }

  [[nodiscard]] std::vector<std::uint8_t>& bytes() { return bytes_; }
  [[nodiscard]] const hw::AxiSubordinate::Counts& counts() const { return port_.counts(); }

 private:
  static constexpr std::uint64_t kHang = 1'000'000;

  hw::AxiResponse serve(const hw::AxiSubordinate::Request& request) {
    if (request.address >= bytes_.size() || request.bytes > bytes_.size() - request.address) {
      return hw::AxiResponse::kDecErr;
    }
    std::uint8_t* const here = bytes_.data() + request.address;
    if (request.write) {
      std::memcpy(here, request.data, request.bytes);
    } else {
      std::memcpy(request.data, here, request.bytes);
    }
    return hw::AxiResponse::kOkay;
  }

  std::vector<std::uint8_t> bytes_;
  hw::AxiSubordinate port_;
  hw::AxiChecker checker_;
  hw::AxiPins pins_;
  std::mt19937_64 random_;
  std::uniform_int_distribution<std::uint64_t> latency_;
  std::uint64_t cycle_ = 0;
};

}  // namespace systole::testbench
