#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "hw/number/int_exp.h"
#include "hw/postop/postop.h"
#include "testbench/rtl/drive/rtl_options.h"

namespace systole::testbench {

/// A block in RTL that does chains of the post-op pipeline: one stage, a part of it, or several.
class ChainRtl {
 public:
  virtual ~ChainRtl() = default;
  [[nodiscard]] virtual const char* block() const = 0;
  /// Whether the block can do all of a chain that hw::check_chain() accepts.
  [[nodiscard]] virtual bool serves(const hw::Chain& chain) const = 0;
  /// Sends a tile through a chain that the block serves. `out` gets [rows][cols] words as they are
  /// before they saturate to the output type. Takes of `operands` what hw::apply_chain() does, but
  /// its output. `expected`: `out` by the model for the waveform, or null. Throws
  /// std::runtime_error if the block stops moving, or ends a row in the wrong place.
  virtual RtlCycles run(const hw::Chain& chain, const hw::ChainOperands& operands,
                        std::int32_t* out, const std::int32_t* expected = nullptr,
                        const BackPressure& pressure = {}) = 0;
  /// Cycles that run() must take without back-pressure.
  [[nodiscard]] virtual std::uint64_t contract(const hw::Chain& chain, std::size_t rows,
                                               std::size_t cols) const = 0;
  [[nodiscard]] virtual bool failed() const = 0;  ///< an assertion has fired
};

/// rtl/nonlinear/systole_i_exp.sv. As a part of a softmax stage it does the exponentials, and the
/// model the rest.
class IExpRtl : public ChainRtl {
 public:
  /// Replaces `rows` rows of `cols` arguments, none of them positive, by their exponentials.
  /// Values: hw::int_exp; cycles: hw::int_exp_cycles.
  virtual RtlCycles exponentials(std::int32_t* x, std::size_t cols, std::size_t rows,
                                 const hw::IntExpConstants& constants,
                                 const BackPressure& pressure = {}) = 0;
};

/// rtl/nonlinear/systole_i_sqrt.sv of 64-bit numbers. As a part of a LayerNorm stage it does the
/// roots, and the model the rest.
class ISqrtRtl : public ChainRtl {
 public:
  struct Roots {
    std::vector<std::uint32_t> roots;
    RtlCycles cycles;
  };
  /// Values: hw::int_sqrt; cycles: hw::int_sqrt_cycles.
  virtual Roots roots(const std::vector<std::uint64_t>& numbers,
                      const BackPressure& pressure = {}) = 0;
};

// Whole stages. Values: hw::apply_chain; cycles: hw::chain_cycles. All throw InputError for lanes
// that are not built.
[[nodiscard]] std::unique_ptr<ChainRtl> make_requantizer(std::uint32_t lanes,
                                                         const RtlOptions& options = {});
[[nodiscard]] std::unique_ptr<ChainRtl> make_divider(std::uint32_t lanes,
                                                     const RtlOptions& options = {});
[[nodiscard]] std::unique_ptr<ChainRtl> make_i_gelu(std::uint32_t lanes,
                                                    const RtlOptions& options = {});
[[nodiscard]] std::unique_ptr<ChainRtl> make_softmax_unit(std::uint32_t lanes,
                                                          const RtlOptions& options = {});
[[nodiscard]] std::unique_ptr<ChainRtl> make_layernorm_unit(std::uint32_t lanes,
                                                            const RtlOptions& options = {});
[[nodiscard]] std::unique_ptr<IExpRtl> make_i_exp(std::uint32_t lanes,
                                                  const RtlOptions& options = {});
[[nodiscard]] std::unique_ptr<ISqrtRtl> make_i_sqrt(const RtlOptions& options = {});
/// Chains of up to eight stages. The micro-code of a stage is written before a run if it is not
/// there yet, which counts in no contract.
[[nodiscard]] std::unique_ptr<ChainRtl> make_postop_pipeline(std::uint32_t lanes,
                                                             const RtlOptions& options = {});

}  // namespace systole::testbench
