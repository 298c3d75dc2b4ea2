#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "hw/attention/head_mix.h"
#include "hw/description/machine_file.h"
#include "support/report_values.h"
#include "support/tlm/core_rig.h"
#include "support/tlm/fresh_kernel.h"
#include "support/tlm/systemc_test.h"

/// Stores whose rows are encoded on their way out.
namespace systole::tlm_model {
namespace {

using test::CoreRig;
using test::kNoStages;

constexpr std::uint32_t kStoredRows = 64;
constexpr std::uint32_t kFeatures = 40;
constexpr std::uint64_t kFrom = 4096, kTo = 65536;

/// 3 heads to 2: a group of 8 features takes 6 cycles, a row of 40 features 30 line cycles.
hw::HeadMix mix() {
  return {3, 2, {3, -5, 7, 11, 2, -1}, {100, -200}, {{9, 6}, {-13, 5}}, hw::Rounding::kHalfEven};
}

hw::Machine machine_with(std::uint32_t encoder_lines) {
  hw::Machine machine = hw::find_machine("vitcod");
  machine.attention.encoder_lines = encoder_lines;
  machine.postop.lanes = 16;
  // Memories are not what these tests are about.
  machine.dma.outstanding_writes = 256;
  machine.accumulator.ports = 4;
  return machine;
}

/// Rows of 3 heads from DRAM to the accumulator, and from there to DRAM.
std::vector<hw::Command> load_and_store(bool encoded, std::uint32_t stores = 1) {
  constexpr std::uint32_t kWidth = 3 * kFeatures;
  const hw::Command load = test::sums_command(0, kFrom, kWidth, hw::DType::kS8, kStoredRows);
  hw::Command command = test::store_command(0, kTo, kStoredRows, kWidth);
  auto& store = *command.as<hw::cmd::Store>();
  if (encoded) {
    store.encoder = 0;
    store.to.pitch = 2 * kFeatures;
  }
  std::vector<hw::Command> commands = {load};
  for (; stores > 0; --stores) {
    commands.push_back(command);
    store.to.address += 1 << 16;
  }
  return commands;
}

class EncoderTest : public test::SystemCTest {
 protected:
  using Values = std::map<std::string, std::uint64_t>;
  using Bytes = std::vector<std::uint8_t>;

  /// What the store unit reports of these commands on its own machine.
  static Values run(const hw::Machine& machine, const std::vector<hw::Command>& commands,
                    bool functional = false) {
    test::fresh_kernel();
    CoreRig rig(machine, functional);
    return run(rig, commands);
  }
  static Values run(CoreRig& rig, const std::vector<hw::Command>& commands, Bytes* in = nullptr,
                    Bytes* out = nullptr) {
    rig.run([&] {
      if (in != nullptr) rig.host.debug(tlm::TLM_WRITE_COMMAND, kFrom, in->data(), in->size());
      rig.execute(commands, {kNoStages}, {mix()});
      if (out != nullptr) rig.host.debug(tlm::TLM_READ_COMMAND, kTo, out->data(), out->size());
    });
    const auto last = static_cast<std::uint32_t>(commands.size() - 1);
    const hw::BlockReport report = rig.core.store.report(rig[last].released);
    EXPECT_EQ(report.time->busy + report.time->stalled_total() + report.time->idle,
              report.time->total);
    Values values = test::values_of(report);
    values["duration"] = rig[last].released - rig[1].started;
    return values;
  }
};

TEST_F(EncoderTest, WritesWhatTheMixMakesOfEveryRow) {
  CoreRig rig(machine_with(16));
  std::mt19937 random(1);
  Bytes in(std::size_t{kStoredRows} * 3 * kFeatures);
  for (std::uint8_t& byte : in) byte = static_cast<std::uint8_t>(random());
  Bytes out(std::size_t{kStoredRows} * 2 * kFeatures), expected(out.size());
  const Values values = run(rig, load_and_store(true), &in, &out);
  for (std::size_t row = 0; row < kStoredRows; ++row) {
    hw::mix_heads(mix(), reinterpret_cast<const std::int8_t*>(&in[row * 3 * kFeatures]), kFeatures,
                  reinterpret_cast<std::int8_t*>(&expected[row * 2 * kFeatures]));
  }
  EXPECT_EQ(out, expected);
  EXPECT_EQ(values.at("written_bytes"), out.size());
  EXPECT_EQ(values.at("encoder_macs"), kStoredRows * 6U * kFeatures);
  EXPECT_EQ(values.at("operations"), kStoredRows * 2U * kFeatures);
}

/// 120 columns on 16 lanes: a row leaves the chain every 8 cycles.
TEST_F(EncoderTest, TheSlowerOfChainAndEncoderSetsThePace) {
  const std::uint64_t exposed =
      run(machine_with(1), load_and_store(false)).at("duration") - kStoredRows * 8;
  std::uint64_t before = ~std::uint64_t{0};
  for (const std::uint32_t lines : {1U, 2U, 4U, 8U, 16U, 64U}) {
    const Values values = run(machine_with(lines), load_and_store(true));
    const std::uint64_t pace = std::max(kStoredRows * 8U, kStoredRows * 30 / lines);
    EXPECT_GE(values.at("duration"), pace) << lines;
    EXPECT_LE(values.at("duration"), pace + exposed + 30 + hw::kHeadMixLatency) << lines;
    EXPECT_LE(values.at("duration"), before) << lines;
    EXPECT_EQ(values.at("busy"), kStoredRows * 8U) << "the chain's cycles";
    EXPECT_GE(values.at("stalled.encoder"), 6 + hw::kHeadMixLatency) << "the last row";
    EXPECT_LE(values.at("stalled.encoder"), pace - kStoredRows * 8 + 30 + hw::kHeadMixLatency)
        << lines;
    EXPECT_EQ(values.at("encoder_busy"), kStoredRows * 30U);
    before = values.at("duration");
  }
}

TEST_F(EncoderTest, TakesTheNextCommandsRowsWhenItIsFree) {
  const Values one = run(machine_with(1), load_and_store(true));
  const Values two = run(machine_with(1), load_and_store(true, 2));
  EXPECT_EQ(two.at("encoder_busy"), 2U * kStoredRows * 30);
  EXPECT_GE(two.at("duration"), 2U * kStoredRows * 30);
  EXPECT_LE(two.at("duration"), 2 * one.at("duration"));
}

TEST_F(EncoderTest, CyclesDoNotDependOnValues) {
  EXPECT_EQ(run(machine_with(2), load_and_store(true), true),
            run(machine_with(2), load_and_store(true), false));
}

TEST_F(EncoderTest, CostsNothingWhereRowsAreNotEncoded) {
  const Values values = run(machine_with(1), load_and_store(false));
  EXPECT_EQ(values.at("stalled.encoder"), 0U);
  EXPECT_EQ(values.at("encoder_busy"), 0U);
  EXPECT_EQ(run(machine_with(16), load_and_store(false)), values);
}

}  // namespace
}  // namespace systole::tlm_model
