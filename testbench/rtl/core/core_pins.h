#pragma once

#include <verilated.h>

#include <type_traits>
#include <utility>

#include "testbench/rtl/core/core_ports.h"
#include "testbench/rtl/core/core_rtl.h"
#include "testbench/rtl/drive/axi_responder_pins.h"

/// The pins of a Verilated core.
namespace systole::testbench {

/// The pins of a port that reads, by the names of that for loads. `Data`: a beat.
template <typename Data>
struct ReadPins {
  ReadPins* operator->() { return this; }

  CData &ar_ready_i, &r_valid_i, &r_id_i, &r_resp_i, &r_last_i;
  Data& r_data_i;
  CData &ar_valid_o, &ar_id_o;
  QData& ar_addr_o;
  CData &ar_len_o, &ar_size_o, &ar_burst_o, &r_ready_o;
};

template <typename Core>
using BeatOf = std::remove_reference_t<decltype(std::declval<Core&>().r_data_i)>;

template <typename Core>
ReadPins<BeatOf<Core>> fetch_pins(Core& core) {
  return {core.fetch_ar_ready_i, core.fetch_r_valid_i, core.fetch_r_id_i,     core.fetch_r_resp_i,
          core.fetch_r_last_i,   core.fetch_r_data_i,  core.fetch_ar_valid_o, core.fetch_ar_id_o,
          core.fetch_ar_addr_o,  core.fetch_ar_len_o,  core.fetch_ar_size_o,  core.fetch_ar_burst_o,
          core.fetch_r_ready_o};
}

template <typename Core>
ReadPins<BeatOf<Core>> operand_pins(Core& core) {
  return {core.operand_ar_ready_i, core.operand_r_valid_i, core.operand_r_id_i,
          core.operand_r_resp_i,   core.operand_r_last_i,  core.operand_r_data_i,
          core.operand_ar_valid_o, core.operand_ar_id_o,   core.operand_ar_addr_o,
          core.operand_ar_len_o,   core.operand_ar_size_o, core.operand_ar_burst_o,
          core.operand_r_ready_o};
}

/// The pins of its registers, by the names of rtl/axi.
struct RegisterPins {
  RegisterPins* operator->() { return this; }

  CData &aw_valid_i, &aw_id_i;
  SData& aw_addr_i;
  CData &aw_len_i, &aw_size_i, &w_valid_i;
  QData& w_data_i;
  CData &w_strb_i, &w_last_i, &b_ready_i, &ar_valid_i, &ar_id_i;
  SData& ar_addr_i;
  CData &ar_len_i, &ar_size_i, &r_ready_i;
  CData &aw_ready_o, &w_ready_o, &b_valid_o, &b_id_o, &b_resp_o, &ar_ready_o, &r_valid_o, &r_id_o;
  QData& r_data_o;
  CData &r_resp_o, &r_last_o;
};

template <typename Core>
RegisterPins register_pins(Core& core) {
  return {core.host_aw_valid_i, core.host_aw_id_i,    core.host_aw_addr_i,  core.host_aw_len_i,
          core.host_aw_size_i,  core.host_w_valid_i,  core.host_w_data_i,   core.host_w_strb_i,
          core.host_w_last_i,   core.host_b_ready_i,  core.host_ar_valid_i, core.host_ar_id_i,
          core.host_ar_addr_i,  core.host_ar_len_i,   core.host_ar_size_i,  core.host_r_ready_i,
          core.host_aw_ready_o, core.host_w_ready_o,  core.host_b_valid_o,  core.host_b_id_o,
          core.host_b_resp_o,   core.host_ar_ready_o, core.host_r_valid_o,  core.host_r_id_o,
          core.host_r_data_o,   core.host_r_resp_o,   core.host_r_last_o};
}

/// The inputs of a core at which nothing happens.
template <typename Core>
void set_core_idle(Core& core) {
  RegisterPins registers = register_pins(core);
  drive_responder_pins(registers, {}, CorePorts::kRegisterBytes);
  core.fetch_ar_ready_i = core.fetch_r_valid_i = core.ar_ready_i = core.r_valid_i = 0;
  core.operand_ar_ready_i = core.operand_r_valid_i = 0;
  core.aw_ready_i = core.w_ready_i = core.b_valid_i = 0;
  core.row_bytes_i = 0;
}

/// The quasi-static inputs of a program.
template <typename Core>
void set_core_case(Core& core, const CoreCase& test) {
  core.in_order_i = test.slots == hw::SlotOrder::kIssue;
  core.overlap_i = static_cast<CData>(test.overlap);
}

}  // namespace systole::testbench
