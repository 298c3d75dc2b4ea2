#include "Vdivider_16.h"
#include "Vdivider_16_checked.h"
#include "Vdivider_4.h"
#include "Vdivider_4_checked.h"
#include "Vi_gelu_16.h"
#include "Vi_gelu_16_checked.h"
#include "Vi_gelu_4.h"
#include "Vi_gelu_4_checked.h"
#include "Vi_gelu_64_checked.h"
#include "Vlayernorm_unit_16.h"
#include "Vlayernorm_unit_16_checked.h"
#include "Vlayernorm_unit_4.h"
#include "Vlayernorm_unit_4_checked.h"
#include "Vlayernorm_unit_64_checked.h"
#include "Vrequantizer_16.h"
#include "Vrequantizer_16_checked.h"
#include "Vrequantizer_4.h"
#include "Vrequantizer_4_checked.h"
#include "Vrequantizer_64_checked.h"
#include "Vsoftmax_unit_16.h"
#include "Vsoftmax_unit_16_checked.h"
#include "Vsoftmax_unit_4.h"
#include "Vsoftmax_unit_4_checked.h"
#include "testbench/rtl/postop/stage_unit.h"

namespace systole::testbench {
namespace {

template <typename Model>
using Requantizer = StageUnit<RequantizerPins, Model>;
template <typename Model>
using Divider = StageUnit<DividerPins, Model>;
template <typename Model>
using Gelu = StageUnit<GeluPins, Model>;
template <typename Model>
using Softmax = StageUnit<SoftmaxPins, Model>;
template <typename Model>
using LayerNorm = StageUnit<LayerNormPins, Model>;

}  // namespace

std::unique_ptr<ChainRtl> make_requantizer(std::uint32_t lanes, const RtlOptions& options) {
  return make_lane_unit<ChainRtl, Requantizer, Vrequantizer_4, Vrequantizer_4_checked,
                        Vrequantizer_16, Vrequantizer_16_checked, Vrequantizer_64_checked>(
      RequantizerPins::kBlock, lanes, options);
}

std::unique_ptr<ChainRtl> make_divider(std::uint32_t lanes, const RtlOptions& options) {
  return make_lane_unit<ChainRtl, Divider, Vdivider_4, Vdivider_4_checked, Vdivider_16,
                        Vdivider_16_checked>(DividerPins::kBlock, lanes, options);
}

std::unique_ptr<ChainRtl> make_i_gelu(std::uint32_t lanes, const RtlOptions& options) {
  return make_lane_unit<ChainRtl, Gelu, Vi_gelu_4, Vi_gelu_4_checked, Vi_gelu_16,
                        Vi_gelu_16_checked, Vi_gelu_64_checked>(GeluPins::kBlock, lanes, options);
}

std::unique_ptr<ChainRtl> make_softmax_unit(std::uint32_t lanes, const RtlOptions& options) {
  return make_lane_unit<ChainRtl, Softmax, Vsoftmax_unit_4, Vsoftmax_unit_4_checked,
                        Vsoftmax_unit_16, Vsoftmax_unit_16_checked>(SoftmaxPins::kBlock, lanes,
                                                                    options);
}

std::unique_ptr<ChainRtl> make_layernorm_unit(std::uint32_t lanes, const RtlOptions& options) {
  return make_lane_unit<ChainRtl, LayerNorm, Vlayernorm_unit_4, Vlayernorm_unit_4_checked,
                        Vlayernorm_unit_16, Vlayernorm_unit_16_checked, Vlayernorm_unit_64_checked>(
      LayerNormPins::kBlock, lanes, options);
}

}  // namespace systole::testbench
