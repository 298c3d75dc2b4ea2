#include "testbench/rtl/nonlinear/stream_softmax_rtl.h"

#include "Vstream_softmax_16.h"
#include "Vstream_softmax_16_checked.h"
#include "hw/stream/stream_layer.h"
#include "testbench/rtl/drive/ports.h"
#include "testbench/rtl/drive/rtl_check.h"
#include "testbench/rtl/drive/stream.h"
#include "testbench/rtl/drive/verilated_dut.h"
#include "testbench/rtl/postop/chain_rtl.h"

namespace systole::testbench {
namespace {

namespace stream = hw::stream;

template <typename Model>
class StreamSoftmax final : public StreamSoftmaxRtl {
 public:
  explicit StreamSoftmax(const RtlOptions& options) : dut_(options) {}

  RtlCycles run(const std::vector<std::int8_t>& scores, std::size_t length, std::vector<Row>& rows,
                std::vector<std::uint8_t>& probabilities, const BackPressure& pressure) override {
    const std::size_t groups = length / stream::kGroup, count = scores.size() / length;
    rows.assign(count, {});
    probabilities.assign(scores.size(), 0);
    std::vector<stream::SoftmaxRow> states;
    const std::vector<std::uint8_t> model = stream::softmax(scores, length, states);
    const std::vector<std::int32_t> expected(model.begin(), model.end());
    dut_.show_operation(expected.data(), stream::softmax_cycles(count, groups));
    return run_stream(
        dut_, 2 * count * groups, count * groups,
        [&](std::size_t i) {
          const std::size_t row = i / (2 * groups), group = i % groups;
          dut_->last_i = group + 1 == groups;
          for (std::size_t lane = 0; lane < stream::kGroup; ++lane) {
            set_lane<8>(
                dut_->scores_i, lane,
                static_cast<std::uint8_t>(scores[row * length + group * stream::kGroup + lane]));
          }
        },
        [&](std::size_t i) {
          dut_.show_beat(i * stream::kGroup, stream::kGroup);
          for (std::size_t lane = 0; lane < stream::kGroup; ++lane) {
            probabilities[i * stream::kGroup + lane] =
                static_cast<std::uint8_t>(get_lane<8>(dut_->probabilities_o, lane));
          }
          rows[i / groups] = {static_cast<std::int8_t>(dut_->maximum_o),
                              static_cast<std::uint32_t>(dut_->sum_o),
                              static_cast<std::uint8_t>(dut_->inverse_o)};
        },
        pressure);
  }
  [[nodiscard]] bool failed() const override { return dut_.failed(); }

 private:
  VerilatedDut<Model> dut_;
};

}  // namespace

std::unique_ptr<StreamSoftmaxRtl> make_stream_softmax(const RtlOptions& options) {
  return make_build<StreamSoftmaxRtl, StreamSoftmax<Vstream_softmax_16>,
                    StreamSoftmax<Vstream_softmax_16_checked>>(options);
}

RtlCycles check_stream_softmax(StreamSoftmaxRtl& unit, const std::vector<std::int8_t>& scores,
                               std::size_t length, RtlCounts& counts,
                               const BackPressure& pressure) {
  RtlCheck check(counts, {});
  std::vector<StreamSoftmaxRtl::Row> rows;
  std::vector<std::uint8_t> probabilities;
  std::vector<stream::SoftmaxRow> states;
  const std::vector<std::uint8_t> expected = stream::softmax(scores, length, states);
  check.operation();
  check.begin(stream::softmax_cycles(states.size(), length / stream::kGroup));
  const RtlCycles cycles = unit.run(scores, length, rows, probabilities, pressure);
  check.end(cycles.cycles - cycles.stalled);
  check.values(probabilities.data(), expected.data(), expected.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    check.mismatch(rows[i].maximum != states[i].maximum);
    check.mismatch(rows[i].sum != states[i].sum);
    check.mismatch(rows[i].inverse != states[i].inverse());
  }
  check.assertions(unit.failed());
  return cycles;
}

}  // namespace systole::testbench
