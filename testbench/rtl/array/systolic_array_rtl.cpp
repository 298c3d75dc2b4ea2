#include "testbench/rtl/array/systolic_array_rtl.h"

#include <string>

#include "Vsplit_array_16.h"
#include "Vsplit_array_16_checked.h"
#include "Vsplit_array_16x2.h"
#include "Vsplit_array_16x2_checked.h"
#include "Vsplit_array_4.h"
#include "Vsplit_array_4_checked.h"
#include "Vsplit_array_4x2.h"
#include "Vsplit_array_4x2_checked.h"
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

std::unique_ptr<SystolicArrayRtl> make_split_array(std::uint32_t dim, hw::ArraySplit split,
                                                   hw::ArrayOverlap overlap,
                                                   const RtlOptions& options) {
  const bool both = split == hw::ArraySplit::kBoth;
  switch (dim) {
    case 4:
      if (both) {
        return make_build<SystolicArrayRtl, ArrayBuild<Vsplit_array_4x2, 4, 2>,
                          ArrayBuild<Vsplit_array_4x2_checked, 4, 2>>(options, overlap);
      }
      return make_build<SystolicArrayRtl, ArrayBuild<Vsplit_array_4, 4, 1>,
                        ArrayBuild<Vsplit_array_4_checked, 4, 1>>(options, overlap);
    case 16:
      if (both) {
        return make_build<SystolicArrayRtl, ArrayBuild<Vsplit_array_16x2, 16, 2>,
                          ArrayBuild<Vsplit_array_16x2_checked, 16, 2>>(options, overlap);
      }
      return make_build<SystolicArrayRtl, ArrayBuild<Vsplit_array_16, 16, 1>,
                        ArrayBuild<Vsplit_array_16_checked, 16, 1>>(options, overlap);
    default:
      throw hw::InputError("split_array RTL: " + std::to_string(dim) + " x " + std::to_string(dim) +
                           ", expected 4 x 4 or 16 x 16");
  }
}

}  // namespace systole::testbench
