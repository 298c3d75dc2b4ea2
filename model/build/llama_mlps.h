#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "hw/host/host_function.h"
#include "model/build/linear_nodes.h"
#include "model/graph/graph_builder.h"
#include "model/graph/stages.h"
#include "model/integer/integer_llama.h"
#include "model/integer/row_scales.h"

/// The MLPs of a Llama's blocks: one, or experts, of which a router chooses some for each token.
namespace systole::model {

/// NAME and NAME.requantise: a linear layer whose result has `bits`, in `type`.
inline View requantised(GraphBuilder& builder, const std::string& name, const ProductInput& in,
                        const IntegerLinear& layer, unsigned bits, hw::DType type,
                        hw::Rounding rounding) {
  const View sum = linear_sums(builder, name, in, layer, rounding);
  return builder.stage(name + ".requantise", sum, factor_stage(layer, bits, rounding), type,
                       {factor_parameters(layer), {}});
}

class LlamaMlps {
 public:
  /// Both have to stay.
  LlamaMlps(GraphBuilder& builder, const IntegerLlama& llama) : builder_(builder), llama_(llama) {}

  /// The input of `down`: SiLU or GELU of `gate` times `up`; times `share`, s16 of
  /// kShareFractionBits, if there is one.
  ProductInput gated(const std::string& prefix, const ProductInput& in,
                     const IntegerLlamaBlock& block, const IntegerLinear& gate_weights,
                     const IntegerLinear& up_weights, const std::optional<View>& share) const {
    const View gate = wide(prefix + "gate", in, gate_weights);
    const bool gelu = llama_.shape.gelu;
    const View activated =
        builder_.stage(prefix + (gelu ? "gate.gelu" : "gate.silu"), gate,
                       gelu ? gelu_stage(block.gelu, kWideBits) : silu_stage(block.silu, kWideBits),
                       hw::DType::kS16);
    const View up = wide(prefix + "up", in, up_weights);
    const auto multiply = [&](unsigned shift, unsigned bits) {
      return multiply_tensor_stage(hw::DType::kS16, shift, bits, llama_.datapath.rounding);
    };
    std::string name = prefix + "up.mul";
    View factor = up, second = activated;
    unsigned shift = block.product_shift;
    if (share) {
      const unsigned first = before_share(shift);
      factor = builder_.stage(name, up, multiply(first, kLlamaProductBits), hw::DType::kS32,
                              {{}, activated});
      shift += kShareFractionBits - first;
      second = *share;
      name = prefix + "up.share";
    }
    if (!llama_.row_scales) {
      return {builder_.stage(name, factor, multiply(shift, kOperandBits), hw::DType::kS8,
                             {{}, second})};
    }
    hw::Stage product = multiply(shift, kLlamaProductBits);
    product.side = hw::Reduction::kRowPeak;
    const TensorId peaks = add_peaks(builder_, name, up.rows);
    const View result = builder_.stage(name, factor, product, hw::DType::kS32, {{}, second, peaks});
    return row_codes(builder_, name, result, peaks, kLlamaProductBits);
  }

  /// The shares of all experts, [tokens x experts] u8, which the host writes to the tensor `name`;
  /// the scores that it reads are those of `router`.
  View shares(const std::string& name, const std::string& router, const ProductInput& in,
              const IntegerLlamaBlock& block) const {
    hw::HostFunction route;
    route.op = hw::HostOp::kRoute;
    route.in = hw::DType::kS16;
    route.in_scale = static_cast<float>(block.router_scale);
    route.out = hw::DType::kU8;
    route.out_scale = std::ldexp(1.0F, -int{kShareFractionBits});
    route.lo = 0;
    route.hi = 255;
    route.active = llama_.shape.active_experts;
    return builder_.host(name, wide(router, in, block.router), std::move(route));
  }

  /// A column of shares, one for each token, over the columns of an expert: the array spreads it,
  /// by a product with a row of ones.
  View spread(const std::string& name, View share) {
    if (ones_.tensor == kNoTensor) {
      Tensor ones;
      ones.name = "ones";
      ones.rows = 1;
      ones.cols = llama_.shape.hidden;
      ones.kind = Tensor::Kind::kConstant;
      ones.data = std::vector<std::uint8_t>(llama_.shape.hidden, 1);
      ones_ = builder_.whole(builder_.add_tensor(std::move(ones)));
    }
    return builder_.stage(name + ".clamp", builder_.matmul(name, share, ones_, false),
                          clamp_stage(kWideBits), hw::DType::kS16);
  }

 private:
  View wide(const std::string& name, const ProductInput& in, const IntegerLinear& layer) const {
    return requantised(builder_, name, in, layer, kWideBits, hw::DType::kS16,
                       llama_.datapath.rounding);
  }

  GraphBuilder& builder_;
  const IntegerLlama& llama_;
  View ones_;
};

}  // namespace systole::model
