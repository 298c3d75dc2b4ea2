#pragma once

#include <verilated.h>

#include "hw/function/softmax.h"

namespace systole::testbench {

/// Sets the inputs of RTL that has an exponential to its constants.
template <typename Dut>
void set_exponential(Dut& dut, const hw::IntExpConstants& constants) {
  dut->q_ln2_i = static_cast<SData>(constants.q_ln2);
  dut->reciprocal_i = hw::int_exp_reciprocal(constants);
  dut->b_i = static_cast<SData>(constants.b);
  dut->c_i = static_cast<IData>(constants.c);
}

/// The same of a softmax, from scores to codes.
template <typename Dut>
void set_softmax(Dut& dut, const hw::SoftmaxConstants& constants) {
  dut->score_multiplier_i = static_cast<IData>(constants.score.multiplier);
  dut->score_shift_i = static_cast<CData>(constants.score.shift);
  set_exponential(dut, constants.exp);
  dut->out_multiplier_i = static_cast<IData>(constants.exp_to_code.multiplier);
  dut->out_shift_i = static_cast<CData>(constants.exp_to_code.shift);
  dut->out_bits_i = static_cast<CData>(constants.output_bits);
}

}  // namespace systole::testbench
