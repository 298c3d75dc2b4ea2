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

CData overlap_pin(hw::ArrayOverlap overlap) {
  switch (overlap) {
    case hw::ArrayOverlap::kNone:
      return 0;
    case hw::ArrayOverlap::kPreload:
      return 1;
    case hw::ArrayOverlap::kFull:
      break;
  }
  return 2;
}

/// A product without folds leaves the array alone, but not C.
void clear_c(const hw::GemmArgs& args) {
  for (std::size_t row = 0; row < args.m && args.n != 0; ++row) {
    std::memset(args.c + row * args.ldc, 0, args.n * sizeof(std::int32_t));
  }
}

}  // namespace

class SystolicArrayRtl::Block {
 public:
  virtual ~Block() = default;
  virtual Cycles matmul(const hw::GemmArgs& args, bool preloaded, const BackPressure& pressure,
                        const Sink& sink) = 0;
  [[nodiscard]] virtual bool failed() const = 0;
};

namespace {

template <typename Model, std::size_t Dim>
class ArrayBuild final : public SystolicArrayRtl::Block {
 public:
  using Cycles = SystolicArrayRtl::Cycles;
  using Sink = SystolicArrayRtl::Sink;

  ArrayBuild(hw::ArrayOverlap overlap, const RtlOptions& options)
      : overlap_(overlap), dut_(options) {
    dut_->overlap_i = overlap_pin(overlap);
    idle_inputs(*dut_);
  }

  Cycles matmul(const hw::GemmArgs& args, bool preloaded, const BackPressure& pressure,
                const Sink& sink) override {
    const ArrayFolds<Dim> folds(args);
    if (folds.count() == 0) {
      if (args.c != nullptr && !args.accumulate) clear_c(args);
      return {};
    }
    dut_->a_unsigned_i = args.a_unsigned;
    return ArrayCommand<Model, Dim>(dut_, overlap_, args, folds, pressure).run(preloaded, sink);
  }

  [[nodiscard]] bool failed() const override { return dut_.failed(); }

 private:
  const hw::ArrayOverlap overlap_;
  VerilatedDut<Model> dut_;
};

template <std::size_t Dim, typename Fast, typename Checked>
std::unique_ptr<SystolicArrayRtl::Block> make_build(hw::ArrayOverlap overlap,
                                                    const RtlOptions& options) {
  if (options.use_checked()) return std::make_unique<ArrayBuild<Checked, Dim>>(overlap, options);
  return std::make_unique<ArrayBuild<Fast, Dim>>(overlap, options);
}

std::unique_ptr<SystolicArrayRtl::Block> make_block(std::uint32_t dim, hw::ArrayOverlap overlap,
                                                    const RtlOptions& options) {
  switch (dim) {
    case 4:
      return make_build<4, Vsystolic_array_4, Vsystolic_array_4_checked>(overlap, options);
    case 8:
      return make_build<8, Vsystolic_array_8, Vsystolic_array_8_checked>(overlap, options);
    case 16:
      return make_build<16, Vsystolic_array_16, Vsystolic_array_16_checked>(overlap, options);
    default:
      throw hw::InputError("systolic_array RTL: " + std::to_string(dim) + " x " +
                           std::to_string(dim) + ", expected 4 x 4, 8 x 8 or 16 x 16");
  }
}

}  // namespace

bool SystolicArrayRtl::Cycles::meets(const hw::ArrayCycles& contract) const {
  return measured.folds == contract.folds && measured.interval == contract.interval &&
         measured.latency == contract.latency && measured.stream == contract.stream &&
         measured.preload == contract.preload && measured.drain == contract.drain;
}

SystolicArrayRtl::SystolicArrayRtl(std::uint32_t dim, hw::ArrayOverlap overlap,
                                   const RtlOptions& options)
    : block_(make_block(dim, overlap, options)) {}

SystolicArrayRtl::~SystolicArrayRtl() = default;

SystolicArrayRtl::Cycles SystolicArrayRtl::matmul(const hw::GemmArgs& args, bool preloaded,
                                                  const BackPressure& pressure, const Sink& sink) {
  return block_->matmul(args, preloaded, pressure, sink);
}

bool SystolicArrayRtl::failed() const { return block_->failed(); }

}  // namespace systole::testbench
