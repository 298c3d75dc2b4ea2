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

}  // namespace systole::testbench
