#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "testbench/rtl/nonlinear/stream_softmax_rtl.h"
#include "testbench/rtl/postop/chain_rtl.h"
#include "testbench/vectors/vectors.h"

namespace systole::testbench {

/// The RTL twins that compute operations of I-BERT's released form, assertions on. The other twins
/// know the default datapath's polynomials and scales only.
class RtlVectors final : public model::VectorDatapath {
 public:
  RtlVectors();

  [[nodiscard]] std::string name() const override;
  [[nodiscard]] std::string other_checks() const override;
  /// Throw std::runtime_error if the RTL hangs or an assertion fires.
  std::vector<std::uint32_t> square_roots(const std::vector<std::uint64_t>& numbers) override;
  std::vector<std::int32_t> scale(const std::vector<std::int32_t>& x,
                                  const std::vector<hw::Dyadic>& factors) override;
  SoftmaxRow stream_softmax(const std::vector<std::int8_t>& scores) override;

  /// Results the RTL has delivered.
  [[nodiscard]] std::uint64_t values() const { return values_; }

 private:
  std::unique_ptr<ISqrtRtl> i_sqrt_;
  std::unique_ptr<ChainRtl> requantizer_;
  std::unique_ptr<StreamSoftmaxRtl> stream_softmax_;
  std::uint64_t values_ = 0;
};

}  // namespace systole::testbench
