#include "testbench/rtl/attention/attention_line_rtl.h"

#include <string>
#include <type_traits>

#include "Vdenser_line_8.h"
#include "Vdenser_line_8_checked.h"
#include "Vsparser_line_8.h"
#include "Vsparser_line_8_checked.h"
#include "base/error.h"
#include "testbench/rtl/attention/line_operation.h"

namespace systole::testbench {
namespace {

template <typename Model>
inline constexpr bool kIsSparser =
    std::is_same_v<Model, Vsparser_line_8> || std::is_same_v<Model, Vsparser_line_8_checked>;

/// What starts the line of a build.
template <typename Model>
auto walk_of(VerilatedDut<Model>& dut, const LineWork& work) {
  if constexpr (kIsSparser<Model>) {
    return SparserWalk<Model>(dut, work);
  } else {
    return DenserWalk<Model>(dut, work, kLineMacs);
  }
}

template <typename Model>
class LineUnit final : public AttentionLineRtl {
 public:
  explicit LineUnit(const RtlOptions& options) : dut_(options) {}

  [[nodiscard]] const char* block() const override {
    return kIsSparser<Model> ? "sparser_line" : "denser_line";
  }
  std::vector<std::int32_t> run(const LineWork& work, RtlCycles& cycles,
                                const std::int32_t* expected,
                                const BackPressure& pressure) override {
    if (work.words(kLineMacs) > kMaxWords) {
      throw hw::InputError(std::string(block()) + " RTL: rows of " + std::to_string(work.features) +
                           " features, expected at most " + std::to_string(kMaxWords * kLineMacs));
    }
    std::vector<std::int32_t> results(work.results() * (work.spmm ? kLineMacs : 1));
    cycles = LineOperation(block(), dut_, kLineMacs, work, walk_of(dut_, work), pressure)
                 .run(results.data(), expected);
    return results;
  }
  [[nodiscard]] bool failed() const override { return dut_.failed(); }

 private:
  VerilatedDut<Model> dut_;
};

}  // namespace

std::unique_ptr<AttentionLineRtl> make_sparser_line(std::uint32_t macs, const RtlOptions& options) {
  require_macs("sparser_line", macs);
  return make_build<AttentionLineRtl, LineUnit<Vsparser_line_8>, LineUnit<Vsparser_line_8_checked>>(
      options);
}

std::unique_ptr<AttentionLineRtl> make_denser_line(std::uint32_t macs, const RtlOptions& options) {
  require_macs("denser_line", macs);
  return make_build<AttentionLineRtl, LineUnit<Vdenser_line_8>, LineUnit<Vdenser_line_8_checked>>(
      options);
}

}  // namespace systole::testbench
