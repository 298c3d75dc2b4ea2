#include "testbench/rtl/array/systolic_array_rtl.h"

#include <cstring>
#include <string>

#include "Vsystolic_array_16.h"
#include "Vsystolic_array_16_checked.h"
#include "Vsystolic_array_4.h"
#include "Vsystolic_array_4_checked.h"
#include "Vsystolic_array_8.h"
#include "Vsystolic_array_8_checked.h"
#include "base/error.h"
#include "testbench/rtl/array/array_command.h"
#include "testbench/rtl/array/array_folds.h"
#include "testbench/rtl/drive/verilated_dut.h"

namespace systole::testbench {
namespace {

/// A product without folds leaves the array alone, but not C.
void clear_c(const hw::GemmArgs& args) {
  for (std::size_t row = 0; row < args.m && args.n != 0; ++row) {
    std::memset(args.c + row * args.ldc, 0, args.n * sizeof(std::int32_t));
  }
}

template <typename Model, std::size_t Dim>
class ArrayBuild final : public SystolicArrayRtl {
 public:
  ArrayBuild(hw::ArrayOverlap overlap, const RtlOptions& options)
      : overlap_(overlap), dut_(options) {
    dut_->overlap_i = static_cast<CData>(overlap);
    idle_inputs(*dut_);
  }

  Cycles matmul(const hw::GemmArgs& args, bool preloaded, const BackPressure& pressure) override {
    const ArrayFolds<Dim> folds(args);
    if (folds.count() == 0) {
      if (args.c != nullptr && !args.accumulate) clear_c(args);
      return {};
    }
    dut_->a_unsigned_i = args.a_unsigned;
    return ArrayCommand<Model, Dim>(dut_, overlap_, args, folds, pressure).run(preloaded);
  }

  [[nodiscard]] bool failed() const override { return dut_.failed(); }

 private:
  const hw::ArrayOverlap overlap_;
  VerilatedDut<Model> dut_;
};

}  // namespace

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

}  // namespace systole::testbench
