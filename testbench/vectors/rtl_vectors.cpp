#include "testbench/vectors/rtl_vectors.h"

#include <cstddef>
#include <limits>
#include <stdexcept>

namespace systole::testbench {
namespace {

constexpr std::uint32_t kLanes = 16;
RtlOptions checked() {
  RtlOptions options;
  options.checked = true;
  return options;
}

void expect_no_assertion(const ChainRtl& rtl) {
  if (rtl.failed())
    throw std::runtime_error(std::string(rtl.block()) + " RTL: an assertion has fired");
}

}  // namespace

RtlVectors::RtlVectors()
    : i_sqrt_(make_i_sqrt(checked())),
      requantizer_(make_requantizer(kLanes, checked())),
      stream_softmax_(make_stream_softmax(checked())) {}

std::string RtlVectors::name() const { return "--rtl"; }

std::string RtlVectors::other_checks() const {
  return "RTL has other functions in their default form only, checked by "
         "'make -f Makefile.verilator run'";
}

std::vector<std::uint32_t> RtlVectors::square_roots(const std::vector<std::uint64_t>& numbers) {
  std::vector<std::uint32_t> roots = i_sqrt_->roots(numbers).roots;
  expect_no_assertion(*i_sqrt_);
  values_ += roots.size();
  return roots;
}

std::vector<std::int32_t> RtlVectors::scale(const std::vector<std::int32_t>& x,
                                            const std::vector<hw::Dyadic>& factors) {
  // One row, so that each element has its own constants: multipliers, then shifts.
  std::vector<std::int32_t> words(2 * x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const hw::Dyadic factor = factors[i % factors.size()];
    words[i] = factor.multiplier;
    words[x.size() + i] = factor.shift;
  }
  hw::Stage stage;
  stage.op = hw::StageOp::kRequantise;
  stage.operand = hw::Operand::kChannel;
  stage.rounding = hw::Rounding::kHalfEven;
  stage.imm = {0, 0, std::numeric_limits<std::int32_t>::min(),
               std::numeric_limits<std::int32_t>::max()};
  hw::ChainOperands operands;
  operands.accumulator = x.data();
  operands.parameters = words.data();
  operands.rows = 1;
  operands.cols = x.size();
  std::vector<std::int32_t> scaled(x.size());
  requantizer_->run({{stage}, hw::DType::kS32}, operands, scaled.data());
  expect_no_assertion(*requantizer_);
  values_ += scaled.size();
  return scaled;
}

model::VectorDatapath::SoftmaxRow RtlVectors::stream_softmax(
    const std::vector<std::int8_t>& scores) {
  std::vector<StreamSoftmaxRtl::Row> rows;
  SoftmaxRow result;
  stream_softmax_->run(scores, scores.size(), rows, result.probabilities);
  if (stream_softmax_->failed()) {
    throw std::runtime_error("stream_softmax RTL: an assertion has fired");
  }
  result.maximum = rows.front().maximum;
  result.sum = rows.front().sum;
  result.inverse = rows.front().inverse;
  values_ += result.probabilities.size() + 3;
  return result;
}

}  // namespace systole::testbench
