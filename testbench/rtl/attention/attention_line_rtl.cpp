#include "testbench/rtl/attention/attention_line_rtl.h"

#include <string>

#include "Vdenser_line_8.h"
#include "Vdenser_line_8_checked.h"
#include "Vsparser_line_8.h"
#include "Vsparser_line_8_checked.h"
#include "base/error.h"
#include "testbench/rtl/attention/line_operation.h"
#include "testbench/rtl/drive/mac_line.h"

namespace systole::testbench {
namespace {

template <typename Model>
class LineUnit : public AttentionLineRtl {
 public:
  explicit LineUnit(const RtlOptions& options) : dut_(options) {}

  std::vector<std::int32_t> run(const LineWork& work, RtlCycles& cycles,
                                const std::int32_t* expected,
                                const BackPressure& pressure) override {
    if (work.words(kLineMacs) > kMaxWords) {
      throw hw::InputError(std::string(block()) + " RTL: rows of " + std::to_string(work.features) +
                           " features, expected at most " + std::to_string(kMaxWords * kLineMacs));
    }
    std::vector<std::int32_t> results(work.results() * (work.spmm ? kLineMacs : 1));
    cycles = operate(work, results.data(), expected, pressure);
    return results;
  }
  [[nodiscard]] bool failed() const override { return dut_.failed(); }

 protected:
  virtual RtlCycles operate(const LineWork& work, std::int32_t* results,
                            const std::int32_t* expected, const BackPressure& pressure) = 0;
  template <typename Walk>
  RtlCycles operate_with(Walk walk, const LineWork& work, std::int32_t* results,
                         const std::int32_t* expected, const BackPressure& pressure) {
    return LineOperation<Model, Walk>(block(), dut_, kLineMacs, work, walk, pressure)
        .run(results, expected);
  }

  VerilatedDut<Model> dut_;
};

template <typename Model>
class SparserUnit final : public LineUnit<Model> {
 public:
  using LineUnit<Model>::LineUnit;
  [[nodiscard]] const char* block() const override { return "sparser_line"; }

 private:
  RtlCycles operate(const LineWork& work, std::int32_t* results, const std::int32_t* expected,
                    const BackPressure& pressure) override {
    return this->operate_with(SparserWalk<Model>(this->dut_, work), work, results, expected,
                              pressure);
  }
};

template <typename Model>
class DenserUnit final : public LineUnit<Model> {
 public:
  using LineUnit<Model>::LineUnit;
  [[nodiscard]] const char* block() const override { return "denser_line"; }

 private:
  RtlCycles operate(const LineWork& work, std::int32_t* results, const std::int32_t* expected,
                    const BackPressure& pressure) override {
    return this->operate_with(DenserWalk<Model>(this->dut_, work, kLineMacs), work, results,
                              expected, pressure);
  }
};

}  // namespace

std::unique_ptr<AttentionLineRtl> make_sparser_line(std::uint32_t macs, const RtlOptions& options) {
  return make_mac_line<AttentionLineRtl, SparserUnit<Vsparser_line_8>,
                       SparserUnit<Vsparser_line_8_checked>>("sparser_line", macs, options);
}

std::unique_ptr<AttentionLineRtl> make_denser_line(std::uint32_t macs, const RtlOptions& options) {
  return make_mac_line<AttentionLineRtl, DenserUnit<Vdenser_line_8>,
                       DenserUnit<Vdenser_line_8_checked>>("denser_line", macs, options);
}

}  // namespace systole::testbench
