#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "hw/dtype.h"
#include "hw/dyadic.h"
#include "hw/gelu.h"
#include "hw/layernorm.h"
#include "hw/postop.h"
#include "hw/softmax.h"

/// A chain executed element by element with the scalar functions, and random legal chains.
namespace systole::hw::test {

inline IntRange range_of(DType type) {
  switch (type) {
    case DType::kS8:
      return full_range(8);
    case DType::kU8:
      return unsigned_range(8);
    case DType::kS16:
      return full_range(16);
    case DType::kU16:
      return unsigned_range(16);
    case DType::kS32:
      break;
  }
  return full_range(32);
}

inline std::int32_t saturate32(std::int64_t x) {
  return static_cast<std::int32_t>(saturate(x, full_range(32)));
}

inline Dyadic dyadic(std::int64_t multiplier, std::int64_t shift) {
  return {static_cast<std::int32_t>(multiplier), static_cast<std::int8_t>(shift)};
}

/// Tensor operand of any type, held as plain integers.
struct OracleOperands {
  std::vector<std::int32_t> parameters;  ///< [words][cols]
  std::vector<std::int32_t> tensor;      ///< one row
  std::uint32_t row_sum = 1;             ///< read and written
  std::size_t kept = 0;                  ///< columns of this row's softmax; 0: all
};

inline void apply_stage(const Stage& stage, std::size_t word, OracleOperands& operands,
                        std::vector<std::int32_t>& x) {
  const std::size_t n = x.size();
  const auto& imm = stage.imm;
  const auto parameter = [&](std::size_t w, std::size_t i) {
    return operands.parameters[(word + w) * n + i];
  };
  switch (stage.op) {
    case StageOp::kBias:
      for (std::size_t i = 0; i < n; ++i) x[i] = saturate32(std::int64_t{x[i]} + parameter(0, i));
      return;
    case StageOp::kRequantise:
      for (std::size_t i = 0; i < n; ++i) {
        const Dyadic factor = stage.per_channel
                                  ? dyadic(std::max(parameter(0, i), -2147483647),
                                           static_cast<std::uint32_t>(parameter(1, i)) % 64)
                                  : dyadic(imm[0], imm[1]);
        x[i] = saturate32(requantise(x[i], factor, stage.rounding, imm[2], imm[3]));
      }
      return;
    case StageOp::kAddTensor:
      for (std::size_t i = 0; i < n; ++i) {
        const std::int64_t t = imm[0] == 0 ? operands.tensor[i]
                                           : requantise(operands.tensor[i], dyadic(imm[0], imm[1]),
                                                        stage.rounding, imm[2], imm[3]);
        x[i] = saturate32(x[i] + t);
      }
      return;
    case StageOp::kClamp:
      for (std::int32_t& value : x) value = saturate32(saturate(value, {imm[0], imm[1]}));
      return;
    case StageOp::kRelu:
      for (std::int32_t& value : x) value = std::max(value, 0);
      return;
    case StageOp::kGelu:
      for (std::int32_t& value : x) {
        const GeluConstants constants{imm[0], imm[1], imm[2], dyadic(imm[3], imm[4])};
        const auto q = static_cast<std::int32_t>(saturate(value, full_range(16)));
        value = saturate32(requantise(gelu_product(q, constants), constants.output,
                                      Rounding::kHalfUp, imm[5], imm[6]));
      }
      return;
    case StageOp::kSoftmax: {
      const SoftmaxConstants constants{static_cast<SoftmaxMode>(imm[0]),
                                       dyadic(imm[1], imm[2]),
                                       make_int_exp_constants(static_cast<unsigned>(imm[3])),
                                       dyadic(imm[4], imm[5]),
                                       static_cast<unsigned>(imm[6]),
                                       32};
      std::vector<std::uint32_t> codes(n);
      std::vector<std::uint8_t> keep(n, 1);
      for (std::size_t i = operands.kept; operands.kept != 0 && i < n; ++i) keep[i] = 0;
      const std::uint32_t sum = softmax_row(x.data(), keep.data(), n, constants, codes.data());
      if (constants.mode == SoftmaxMode::kDeferred) operands.row_sum = sum;
      std::copy(codes.begin(), codes.end(), x.begin());
      return;
    }
    case StageOp::kDivideRowSum:
      for (std::int32_t& value : x) value = saturate32(deferred_divide(value, operands.row_sum));
      return;
    case StageOp::kLayerNorm: {
      LayerNormConstants constants{
          {}, {}, static_cast<unsigned>(imm[1]), static_cast<unsigned>(imm[0])};
      for (std::size_t i = 0; i < n; ++i) {
        constants.multiplier.push_back(parameter(0, i));
        constants.bias.push_back(parameter(1, i));
        x[i] = static_cast<std::int32_t>(saturate(x[i], full_range(24)));
      }
      const LayerNormStatistics statistics = layernorm_statistics(x.data(), n);
      for (std::size_t i = 0; i < n; ++i) {
        const std::int64_t norm = layernorm_normalise(x[i], statistics, constants.fraction_bits);
        const std::int64_t sum = norm * constants.multiplier[i] + constants.bias[i];
        x[i] = saturate32(
            saturate(shift_right(sum, constants.shift, Rounding::kHalfUp), {imm[2], imm[3]}));
      }
      return;
    }
  }
}

/// Result of one row, saturated to the chain's type but still in int32.
inline std::vector<std::int32_t> apply_row(const Chain& chain, OracleOperands& operands,
                                           std::vector<std::int32_t> x) {
  std::size_t word = 0;
  for (const Stage& stage : chain.stages) {
    apply_stage(stage, word, operands, x);
    word += parameter_words(stage);
  }
  for (std::int32_t& value : x) {
    value = static_cast<std::int32_t>(saturate(value, range_of(chain.out)));
  }
  return x;
}

using Random = std::mt19937_64;

inline std::int64_t pick(Random& random, std::int64_t lo, std::int64_t hi) {
  return std::uniform_int_distribution<std::int64_t>(lo, hi)(random);
}

/// All bit lengths equally likely, either sign, extremes included.
inline std::int32_t any_int32(Random& random) {
  const auto bits = static_cast<std::uint32_t>(random());
  const auto length = static_cast<unsigned>(pick(random, 0, 32));
  if (length == 0) {
    constexpr std::int32_t kSpecial[] = {0, 1, -1, std::numeric_limits<std::int32_t>::max(),
                                         std::numeric_limits<std::int32_t>::min()};
    return kSpecial[bits % 5];
  }
  return static_cast<std::int32_t>(bits) >> (32 - length);
}

inline Stage random_stage(Random& random, StageOp op) {
  Stage stage;
  stage.op = op;
  const auto set_dyadic = [&](std::size_t i, bool negative) {
    const int bits = static_cast<int>(pick(random, 1, 31));
    stage.imm[i] = pick(random, 0, (std::int64_t{1} << bits) - 1);
    if (negative && pick(random, 0, 1) != 0) stage.imm[i] = -stage.imm[i];
    stage.imm[i + 1] = pick(random, 0, kMaxDyadicShift);
  };
  const auto set_clamp = [&](std::size_t i) {
    constexpr std::int64_t kSymmetric[] = {127, 128, 32767, 2147483647};
    stage.imm[i + 1] = kSymmetric[pick(random, 0, 3)];
    stage.imm[i] = -stage.imm[i + 1];
    if (pick(random, 0, 3) != 0) return;
    const std::int64_t a = any_int32(random);
    const std::int64_t b = any_int32(random);
    stage.imm[i] = std::min(a, b);
    stage.imm[i + 1] = std::max(a, b);
  };
  switch (op) {
    case StageOp::kRequantise:
    case StageOp::kAddTensor:
      stage.per_channel = op == StageOp::kRequantise && pick(random, 0, 1) != 0;
      stage.rounding = static_cast<Rounding>(pick(random, 0, 2));
      set_dyadic(0, true);
      set_clamp(2);
      if (op == StageOp::kAddTensor) {
        stage.tensor = static_cast<DType>(pick(random, 0, kDTypes - 1));
        if (pick(random, 0, 2) == 0) stage.imm[0] = 0;
      }
      break;
    case StageOp::kClamp:
      set_clamp(0);
      break;
    case StageOp::kGelu: {
      const double scale = std::ldexp(1.0, -static_cast<int>(pick(random, 3, 13)));
      const GeluConstants constants = make_gelu_constants(scale, 0.05);
      stage.imm = {constants.b,
                   constants.c,
                   constants.one,
                   constants.output.multiplier,
                   constants.output.shift,
                   0,
                   0,
                   0};
      set_clamp(5);
      break;
    }
    case StageOp::kSoftmax:
      stage.imm[0] = pick(random, 0, 2);
      set_dyadic(1, false);
      stage.imm[3] = pick(random, kMinExpFractionBits, kMaxExpFractionBits);
      set_dyadic(4, false);
      stage.imm[6] = pick(random, 1, 16);
      break;
    case StageOp::kLayerNorm:
      stage.imm[0] = pick(random, 1, 30);
      stage.imm[1] = pick(random, 0, 62);
      set_clamp(2);
      break;
    case StageOp::kBias:
    case StageOp::kRelu:
    case StageOp::kDivideRowSum:
      break;
  }
  return stage;
}

/// A chain that check_chain() accepts.
inline Chain random_chain(Random& random, std::size_t max_stages) {
  Chain chain;
  chain.out = static_cast<DType>(pick(random, 0, kDTypes - 1));
  const auto stages = static_cast<std::size_t>(pick(random, 0, static_cast<int>(max_stages)));
  while (chain.stages.size() < stages) {
    const Stage stage = random_stage(random, static_cast<StageOp>(pick(random, 0, kStageOps - 1)));
    const bool row_wise = stage_info(stage.op).row_wise;
    const bool divides = stage.op == StageOp::kDivideRowSum;
    if (row_wise && is_row_wise(chain)) continue;
    if (stage.op == StageOp::kAddTensor && uses_tensor(chain)) continue;
    if (divides && writes_row_statistics(chain)) continue;
    if (writes_row_statistics(Chain{{stage}, DType::kS8}) && reads_row_statistics(chain)) continue;
    chain.stages.push_back(stage);
  }
  return chain;
}

}  // namespace systole::hw::test
