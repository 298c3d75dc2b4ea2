#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "hw/axi/axi_checker.h"
#include "hw/axi/axi_subordinate.h"
#include "hw/dma/write_dma.h"
#include "testbench/rtl/drive/ports.h"

namespace systole::testbench {

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
    dut->aw_ready_i = pins_.aw.ready;
    dut->w_ready_i = pins_.w.ready;
    dut->b_valid_i = pins_.b.valid;
    dut->b_id_i = static_cast<CData>(pins_.b.id);
    dut->b_resp_i = static_cast<CData>(pins_.b.response);
  }

  /// Takes the block's pins, which have settled, at the end of `cycle`. A request is of `command`.
  /// Throws std::runtime_error on a breach of the protocol.
  template <typename Dut>
  void take(Dut& dut, std::uint64_t cycle, std::size_t command) {
    pins_.aw = {dut->aw_valid_o != 0,
                pins_.aw.ready,
                dut->aw_id_o,
                dut->aw_addr_o,
                dut->aw_len_o,
                dut->aw_size_o,
                static_cast<hw::AxiBurst>(dut->aw_burst_o)};
    pins_.w.valid = dut->w_valid_o != 0;
    pins_.w.last = dut->w_last_o != 0;
    for (unsigned lane = 0; lane < beat_bytes_; ++lane) {
      pins_.w.data[lane] = static_cast<std::uint8_t>(get_lane<8>(dut->w_data_o, lane));
      pins_.w.strobes[lane] = (get_lane<8>(dut->w_strb_o, lane / 8) >> lane % 8 & 1U) != 0;
    }
    pins_.b.ready = dut->b_ready_o != 0;
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
    port_.edge(pins_, cycle,
               [&](const hw::AxiSubordinate::Request& asked) { ask(asked, cycle); });
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
    port_.answer(asked, memory_.done(request) - 1,
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
