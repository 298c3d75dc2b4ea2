#pragma once

#include <type_traits>

#include "hw/axi/axi_pins.h"
#include "testbench/rtl/drive/ports.h"

/// Pins of an AXI4 subordinate in RTL, named as in rtl/axi.
namespace systole::testbench {

/// Puts the manager's side of all channels on the inputs; a beat has so many bytes, up to 64.
template <typename Dut>
void drive_responder_pins(Dut& dut, const hw::AxiPins& pins, unsigned beat_bytes) {
  const auto drive_address = [](const hw::AxiAddress& from, auto& valid, auto& id, auto& address,
                                auto& len, auto& size) {
    valid = from.valid;
    id = static_cast<CData>(from.id);
    address = static_cast<std::decay_t<decltype(address)>>(from.address);
    len = from.len;
    size = from.size;
  };
  drive_address(pins.aw, dut->aw_valid_i, dut->aw_id_i, dut->aw_addr_i, dut->aw_len_i,
                dut->aw_size_i);
  drive_address(pins.ar, dut->ar_valid_i, dut->ar_id_i, dut->ar_addr_i, dut->ar_len_i,
                dut->ar_size_i);
  dut->w_valid_i = pins.w.valid;
  dut->w_last_i = pins.w.last;
  for (unsigned lane = 0; lane < beat_bytes; ++lane) {
    set_lane<8>(dut->w_data_i, lane, pins.w.data[lane]);
  }
  dut->w_strb_i = static_cast<std::decay_t<decltype(dut->w_strb_i)>>(pins.w.strobes.to_ulong());
  dut->b_ready_i = pins.b.ready;
  dut->r_ready_i = pins.r.ready;
}

/// Takes the subordinate's side, which has settled.
template <typename Dut>
void take_responder_pins(Dut& dut, hw::AxiPins& pins, unsigned beat_bytes) {
  pins.aw.ready = dut->aw_ready_o != 0;
  pins.w.ready = dut->w_ready_o != 0;
  pins.ar.ready = dut->ar_ready_o != 0;
  pins.b.valid = dut->b_valid_o != 0;
  pins.b.id = dut->b_id_o;
  pins.b.response = static_cast<hw::AxiResponse>(dut->b_resp_o);
  pins.r.valid = dut->r_valid_o != 0;
  pins.r.id = dut->r_id_o;
  pins.r.response = static_cast<hw::AxiResponse>(dut->r_resp_o);
  pins.r.last = dut->r_last_o != 0;
  for (unsigned lane = 0; lane < beat_bytes; ++lane) {
    pins.r.data[lane] = static_cast<std::uint8_t>(get_lane<8>(dut->r_data_o, lane));
  }
}

}  // namespace systole::testbench
