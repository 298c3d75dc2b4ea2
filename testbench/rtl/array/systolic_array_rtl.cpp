#include "testbench/rtl/array/systolic_array_rtl.h"

#include <string>

#include "Vsplit_array_16.h"
#include "Vsplit_array_16_checked.h"
#include "Vsplit_array_4.h"
#include "Vsplit_array_4_checked.h"
#include "Vsystolic_array_16.h"
#include "Vsystolic_array_16_checked.h"
#include "Vsystolic_array_4.h"
#include "Vsystolic_array_4_checked.h"
#include "Vsystolic_array_8.h"
#include "Vsystolic_array_8_checked.h"
#include "base/error.h"
#include "testbench/rtl/array/array_command.h"

namespace systole::testbench {

bool SystolicArrayRtl::Cycles::meets(const hw::ArrayCycles& contract) const {
  return measured.folds == contract.folds && measured.interval == contract.interval &&
         measured.latency == contract.latency && measured.stream == contract.stream &&
         measured.preload == contract.preload && measured.drain == contract.drain;
}

std::unique_ptr<SystolicArrayRtl> make_systolic_array(std::uint32_t dim, hw::ArrayOverlap overlap,
                                                      const RtlOptions& options) {
  switch (dim) {
    case 4:
      return make_build<SystolicArrayRtl, ArrayBuild<Vsystolic_array_4, 4>,
                        ArrayBuild<Vsystolic_array_4_checked, 4>>(options, overlap);
    case 8:
      return make_build<SystolicArrayRtl, ArrayBuild<Vsystolic_array_8, 8>,
                        ArrayBuild<Vsystolic_array_8_checked, 8>>(options, overlap);
    case 16:
      return make_build<SystolicArrayRtl, ArrayBuild<Vsystolic_array_16, 16>,
                        ArrayBuild<Vsystolic_array_16_checked, 16>>(options, overlap);
    default:
      throw hw::InputError("systolic_array RTL: " + std::to_string(dim) + " x " +
                           std::to_string(dim) + ", expected 4 x 4, 8 x 8 or 16 x 16");
  }
}

std::unique_ptr<SystolicArrayRtl> make_split_array(std::uint32_t dim, hw::ArrayOverlap overlap,
                                                   const RtlOptions& options) {
  switch (dim) {
    case 4:
      return make_build<SystolicArrayRtl, ArrayBuild<Vsplit_array_4, 4, true>,
                        ArrayBuild<Vsplit_array_4_checked, 4, true>>(options, overlap);
    case 16:
      return make_build<SystolicArrayRtl, ArrayBuild<Vsplit_array_16, 16, true>,
                        ArrayBuild<Vsplit_array_16_checked, 16, true>>(options, overlap);
    default:
      throw hw::InputError("split_array RTL: " + std::to_string(dim) + " x " + std::to_string(dim) +
                           ", expected 4 x 4 or 16 x 16");
  }
}

}  // namespace systole::testbench
