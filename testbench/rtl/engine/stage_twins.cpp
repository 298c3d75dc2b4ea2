#include <algorithm>
#include <utility>

#include "hw/number/int_exp.h"
#include "hw/number/isqrt.h"
#include "hw/postop/stage_constants.h"
#include "testbench/rtl/drive/model_view.h"
#include "testbench/rtl/engine/stage_twin.h"
#include "testbench/rtl/nonlinear/i_exp_rtl.h"
#include "testbench/rtl/nonlinear/i_gelu_rtl.h"
#include "testbench/rtl/nonlinear/i_sqrt_rtl.h"
#include "testbench/rtl/nonlinear/layernorm_unit_rtl.h"
#include "testbench/rtl/nonlinear/softmax_unit_rtl.h"
#include "testbench/rtl/postop/requantizer_rtl.h"

namespace systole::testbench {
namespace {

/// Cycles of a stage by itself, the contract of the blocks that are a whole stage.
std::uint64_t stage_cycles(const hw::Stage& stage, std::size_t rows, std::size_t cols,
                           std::uint32_t lanes) {
  return hw::chain_cycles({{stage}, hw::DType::kS32}, rows, cols, lanes).total(rows);
}

/// What all twins share: the block's RTL and its lanes.
template <typename Rtl>
class Twin : public StageTwin {
 public:
  Twin(std::uint32_t lanes, const RtlOptions& options)
      : lanes_(lanes), view_(options.view), rtl_(lanes, options) {}
  [[nodiscard]] std::uint64_t contract(const hw::Stage& stage, std::size_t rows,
                                       std::size_t cols) const override {
    return stage_cycles(stage, rows, cols, lanes_);
  }
  [[nodiscard]] bool failed() const override { return rtl_.failed(); }

 protected:
  void show(const std::int32_t* expected, std::uint64_t cycles) {
    if (view_) view_->begin(expected, cycles);
  }

  std::uint32_t lanes_;
  std::shared_ptr<ModelView> view_;
  Rtl rtl_;
};

class RequantizerTwin final : public Twin<RequantizerRtl> {
 public:
  using Twin::Twin;
  [[nodiscard]] const char* block() const override { return "requantizer"; }
  [[nodiscard]] bool serves(const hw::Stage& stage) const override {
    return stage.op == hw::StageOp::kRequantise;
  }
  RtlCycles run(const hw::Stage& stage, const StageRows& rows,
                const std::int32_t* expected) override {
    show(expected, contract(stage, rows.rows, rows.cols));
    std::vector<std::int32_t> multipliers(rows.cols);
    std::vector<std::int32_t> shifts(rows.cols);
    for (std::size_t i = 0; i < rows.cols; ++i) {
      const hw::Dyadic factor =
          stage.operand == hw::Operand::kChannel
              ? hw::channel_factor(rows.parameters[i], rows.parameters[rows.cols + i])
              : hw::dyadic_at(stage, 0);
      multipliers[i] = factor.multiplier;
      shifts[i] = factor.shift;
    }
    return rtl_.run(rows.x, rows.cols, rows.rows, multipliers.data(), shifts.data(), stage.rounding,
                    hw::limits_at(stage, 2));
  }
};

class GeluTwin final : public Twin<IGeluRtl> {
 public:
  using Twin::Twin;
  [[nodiscard]] const char* block() const override { return "i_gelu"; }
  [[nodiscard]] bool serves(const hw::Stage& stage) const override {
    return stage.op == hw::StageOp::kGelu;
  }
  RtlCycles run(const hw::Stage& stage, const StageRows& rows,
                const std::int32_t* expected) override {
    show(expected, contract(stage, rows.rows, rows.cols));
    return rtl_.run(rows.x, rows.cols, rows.rows, hw::gelu_constants(stage),
                    hw::limits_at(stage, 5));
  }
};

class SoftmaxTwin final : public Twin<SoftmaxUnitRtl> {
 public:
  using Twin::Twin;
  [[nodiscard]] const char* block() const override { return "softmax_unit"; }
  [[nodiscard]] bool serves(const hw::Stage& stage) const override {
    return stage.op == hw::StageOp::kSoftmax;
  }
  RtlCycles run(const hw::Stage& stage, const StageRows& rows,
                const std::int32_t* expected) override {
    show(expected, contract(stage, rows.rows, rows.cols));
    return rtl_.run(rows.x, rows.cols, rows.rows, hw::softmax_constants(stage), rows.row_statistics,
                    {}, rows.valid_cols);
  }
};

/// The exponentials alone: the softmax around them is the model's.
class ExpTwin final : public Twin<IExpRtl> {
 public:
  using Twin::Twin;
  [[nodiscard]] const char* block() const override { return "i_exp"; }
  [[nodiscard]] bool serves(const hw::Stage& stage) const override {
    return stage.op == hw::StageOp::kSoftmax;
  }
  RtlCycles run(const hw::Stage& stage, const StageRows& rows, const std::int32_t*) override {
    const hw::SoftmaxConstants constants = hw::softmax_constants(stage);
    for (std::size_t i = 0; i < rows.rows; ++i) {
      std::int32_t* const x = rows.x + i * rows.cols;
      const std::int64_t maximum = hw::row::maximum(x, valid_cols_in(rows, i));
      for (std::size_t j = 0; j < rows.cols; ++j) {
        const std::int64_t argument =
            hw::scale(x[j] - maximum, constants.score, hw::Rounding::kHalfUp);
        // A column that takes no part may exceed the maximum of those that do.
        x[j] = static_cast<std::int32_t>(
            std::clamp<std::int64_t>(argument, hw::kIntExpLowestArgument, 0));
      }
    }
    std::vector<std::int32_t> exponentials(rows.rows * rows.cols);
    std::transform(rows.x, rows.x + exponentials.size(), exponentials.begin(), [&](std::int32_t q) {
      return static_cast<std::int32_t>(hw::int_exp(q, constants.exp));
    });
    show(exponentials.data(), contract(stage, rows.rows, rows.cols));
    const RtlCycles cycles = rtl_.run(rows.x, rows.cols, rows.rows, constants.exp);
    for (std::size_t i = 0; i < rows.rows; ++i) {
      std::int32_t* const x = rows.x + i * rows.cols;
      const std::size_t valid = valid_cols_in(rows, i);
      const std::uint32_t sum = hw::row::softmax_codes(x, valid, constants);
      std::fill(x + valid, x + rows.cols, 0);
      if (rows.row_statistics != nullptr && constants.mode == hw::SoftmaxMode::kDeferred) {
        rows.row_statistics[i] = sum;
      }
    }
    return cycles;
  }
  [[nodiscard]] std::uint64_t contract(const hw::Stage&, std::size_t rows,
                                       std::size_t cols) const override {
    return hw::int_exp_cycles(rows, cols, lanes_);
  }

 private:
  /// Columns of row `i` that take part.
  static std::size_t valid_cols_in(const StageRows& rows, std::size_t i) {
    hw::ChainOperands operands;
    operands.cols = rows.cols;
    operands.valid_cols = rows.valid_cols;
    return operands.valid_cols_in(i);
  }
};

class LayerNormTwin final : public Twin<LayernormUnitRtl> {
 public:
  using Twin::Twin;
  [[nodiscard]] const char* block() const override { return "layernorm_unit"; }
  [[nodiscard]] bool serves(const hw::Stage& stage) const override {
    return stage.op == hw::StageOp::kLayerNorm;
  }
  RtlCycles run(const hw::Stage& stage, const StageRows& rows,
                const std::int32_t* expected) override {
    show(expected, contract(stage, rows.rows, rows.cols));
    return rtl_.run(rows.x, rows.cols, rows.rows,
                    hw::layer_norm_factors(stage, rows.parameters, rows.cols),
                    hw::limits_at(stage, 2));
  }
};

/// The standard deviations alone: the LayerNorm around them is the model's.
class SqrtTwin final : public StageTwin {
 public:
  explicit SqrtTwin(const RtlOptions& options) : view_(options.view), rtl_(options) {}
  [[nodiscard]] const char* block() const override { return "i_sqrt"; }
  [[nodiscard]] bool serves(const hw::Stage& stage) const override {
    return stage.op == hw::StageOp::kLayerNorm;
  }
  RtlCycles run(const hw::Stage& stage, const StageRows& rows, const std::int32_t*) override {
    hw::row::clamp(rows.x, rows.rows * rows.cols, hw::row::kLayerNormInputs);
    std::vector<hw::LayerNormStatistics> statistics(rows.rows);
    std::vector<std::uint64_t> radicands(rows.rows);
    std::vector<std::int32_t> roots(rows.rows);
    for (std::size_t i = 0; i < rows.rows; ++i) {
      statistics[i] = hw::row::layer_norm_statistics(rows.x + i * rows.cols, rows.cols);
      radicands[i] = statistics[i].sum_squares;
      roots[i] = static_cast<std::int32_t>(hw::int_sqrt(radicands[i]).root);
    }
    if (view_) view_->begin(roots.data(), contract(stage, rows.rows, rows.cols));
    const ISqrtRtl::Result result = rtl_.run(radicands);
    const hw::row::LayerNormFactors factors =
        hw::layer_norm_factors(stage, rows.parameters, rows.cols);
    for (std::size_t i = 0; i < rows.rows; ++i) {
      const hw::LayerNormStatistics rooted =
          hw::layernorm_statistics(statistics[i].mean, statistics[i].sum_squares,
                                   {result.roots[i], statistics[i].sqrt_passes});
      hw::row::layer_norm_output(rows.x + i * rows.cols, rows.cols, rooted, factors,
                                 hw::limits_at(stage, 2));
    }
    return result.cycles;
  }
  [[nodiscard]] std::uint64_t contract(const hw::Stage&, std::size_t rows,
                                       std::size_t) const override {
    return hw::int_sqrt_cycles(rows);
  }
  [[nodiscard]] bool failed() const override { return rtl_.failed(); }

 private:
  std::shared_ptr<ModelView> view_;
  ISqrtRtl rtl_;
};

}  // namespace

std::vector<std::unique_ptr<StageTwin>> make_stage_twins(const hw::Machine::Backends& backends,
                                                         std::uint32_t lanes,
                                                         const RtlOptions& options) {
  std::vector<std::unique_ptr<StageTwin>> twins;
  const auto wanted = [](hw::Backend backend) { return backend == hw::Backend::kRtl; };
  if (wanted(backends.requantizer)) {
    twins.push_back(
        std::make_unique<RequantizerTwin>(lanes, options.for_block("requantizer", lanes)));
  }
  if (wanted(backends.i_gelu)) {
    twins.push_back(std::make_unique<GeluTwin>(lanes, options.for_block("i_gelu", lanes)));
  }
  if (wanted(backends.i_exp)) {
    twins.push_back(std::make_unique<ExpTwin>(lanes, options.for_block("i_exp", lanes)));
  }
  if (wanted(backends.softmax_unit)) {
    twins.push_back(std::make_unique<SoftmaxTwin>(lanes, options.for_block("softmax_unit", lanes)));
  }
  if (wanted(backends.i_sqrt)) {
    twins.push_back(std::make_unique<SqrtTwin>(options.for_block("i_sqrt", 1)));
  }
  if (wanted(backends.layernorm_unit)) {
    twins.push_back(
        std::make_unique<LayerNormTwin>(lanes, options.for_block("layernorm_unit", lanes)));
  }
  return twins;
}

}  // namespace systole::testbench
