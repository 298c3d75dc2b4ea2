#include <string>

#include "Voutput_array_3x5_checked.h"
#include "Voutput_array_4x4_checked.h"
#include "Voutput_array_64x8_checked.h"
#include "base/error.h"
#include "testbench/rtl/array/output_command.h"

namespace systole::testbench {

std::unique_ptr<SystolicArrayRtl> make_output_array(std::uint32_t rows, std::uint32_t cols,
                                                    hw::ArrayOverlap overlap,
                                                    const RtlOptions& options) {
  if (rows == 3 && cols == 5) {
    return std::make_unique<OutputBuild<Voutput_array_3x5_checked, 3, 5>>(overlap, options);
  }
  if (rows == 4 && cols == 4) {
    return std::make_unique<OutputBuild<Voutput_array_4x4_checked, 4, 4>>(overlap, options);
  }
  if (rows == 64 && cols == 8) {
    return std::make_unique<OutputBuild<Voutput_array_64x8_checked, 64, 8>>(overlap, options);
  }
  throw hw::InputError("systolic_array RTL: output-stationary, " + std::to_string(rows) + " x " +
                       std::to_string(cols) + ", expected 3 x 5, 4 x 4 or 64 x 8");
}

}  // namespace systole::testbench
