#pragma once

#include "hw/axi/axi_pins.h"
#include "testbench/rtl/drive/ports.h"

/// Pins of an AXI4 manager in RTL, named as in rtl/dma.
namespace systole::testbench {

/// Puts the subordinate's side of both read channels on the inputs; a beat has so many bytes.
template <typename Dut>
void drive_read_pins(Dut& dut, const hw::AxiPins& pins, unsigned beat_bytes) {
  dut->ar_ready_i = pins.ar.ready;
  dut->r_valid_i = pins.r.valid;
  dut->r_id_i = static_cast<CData>(pins.r.id);
  dut->r_resp_i = static_cast<CData>(pins.r.response);
  dut->r_last_i = pins.r.last;
  for (unsigned lane = 0; lane < beat_bytes; ++lane) {
    set_lane<8>(dut->r_data_i, lane, pins.r.data[lane]);
  }
}

/// Takes the manager's side, which has settled.
template <typename Dut>
void take_read_pins(Dut& dut, hw::AxiPins& pins) {
  pins.ar = {dut->ar_valid_o != 0,
             pins.ar.ready,
             dut->ar_id_o,
             dut->ar_addr_o,
             dut->ar_len_o,
             dut->ar_size_o,
             static_cast<hw::AxiBurst>(dut->ar_burst_o)};
  pins.r.ready = dut->r_ready_o != 0;
}

/// Puts the subordinate's side of the three write channels on the inputs.
template <typename Dut>
void drive_write_pins(Dut& dut, const hw::AxiPins& pins) {
  dut->aw_ready_i = pins.aw.ready;
  dut->w_ready_i = pins.w.ready;
  dut->b_valid_i = pins.b.valid;
  dut->b_id_i = static_cast<CData>(pins.b.id);
  dut->b_resp_i = static_cast<CData>(pins.b.response);
}

/// Takes the manager's side, which has settled; a beat has so many bytes.
template <typename Dut>
void take_write_pins(Dut& dut, hw::AxiPins& pins, unsigned beat_bytes) {
  pins.aw = {dut->aw_valid_o != 0,
             pins.aw.ready,
             dut->aw_id_o,
             dut->aw_addr_o,
             dut->aw_len_o,
             dut->aw_size_o,
             static_cast<hw::AxiBurst>(dut->aw_burst_o)};
  pins.w.valid = dut->w_valid_o != 0;
  pins.w.last = dut->w_last_o != 0;
  for (unsigned lane = 0; lane < beat_bytes; ++lane) {
    pins.w.data[lane] = static_cast<std::uint8_t>(get_lane<8>(dut->w_data_o, lane));
    pins.w.strobes[lane] = (get_lane<8>(dut->w_strb_o, lane / 8) >> lane % 8 & 1U) != 0;
  }
  pins.b.ready = dut->b_ready_o != 0;
}

}  // namespace systole::testbench
