#include "Vaccumulator_sram_16x2.h"
#include "Vaccumulator_sram_16x2_checked.h"
#include "Vaccumulator_sram_4x1.h"
#include "Vaccumulator_sram_4x1_checked.h"
#include "Vaccumulator_sram_4x2.h"
#include "Vaccumulator_sram_4x2_checked.h"
#include "Vaccumulator_sram_8x2.h"
#include "Vaccumulator_sram_8x2_checked.h"
#include "testbench/rtl/array/accumulator_sram_unit.h"

namespace systole::testbench {
namespace {

struct SramBuild {
  std::uint32_t cols, ports;
  std::unique_ptr<AccumulatorSramRtl> (*make)(const RtlOptions&, const std::uint32_t&,
                                              const hw::AccumulatorBanks&);
};

template <typename Fast, typename Checked>
constexpr auto kMake =
    make_build<AccumulatorSramRtl, AccumulatorSramUnit<Fast>, AccumulatorSramUnit<Checked>,
               std::uint32_t, hw::AccumulatorBanks>;

constexpr SramBuild kBuilds[] = {
    {4, 1, kMake<Vaccumulator_sram_4x1, Vaccumulator_sram_4x1_checked>},
    {4, 2, kMake<Vaccumulator_sram_4x2, Vaccumulator_sram_4x2_checked>},
    {8, 2, kMake<Vaccumulator_sram_8x2, Vaccumulator_sram_8x2_checked>},
    {16, 2, kMake<Vaccumulator_sram_16x2, Vaccumulator_sram_16x2_checked>},
};

}  // namespace

std::unique_ptr<AccumulatorSramRtl> make_accumulator_sram(std::uint32_t cols,
                                                          const hw::AccumulatorBanks& banks,
                                                          const RtlOptions& options) {
  const auto text = [](std::uint64_t number) { return std::to_string(number); };
  std::string sizes;
  for (const SramBuild& build : kBuilds) {
    if (build.cols == cols && build.ports == banks.ports && banks.banks == kSramBanks &&
        banks.rows_per_bank <= kSramRowsPerBank) {
      return build.make(options, cols, banks);
    }
    sizes += (sizes.empty() ? "" : ", ") + text(build.cols) + " x " + text(build.ports);
  }
  throw hw::InputError("accumulator_sram as RTL: found " + text(cols) + " columns x " +
                       text(banks.ports) + " ports in " + text(banks.banks) + " banks of " +
                       text(banks.rows_per_bank) + " rows, expected " + sizes + " in " +
                       text(kSramBanks) + " banks of at most " + text(kSramRowsPerBank) + " rows");
}

}  // namespace systole::testbench
