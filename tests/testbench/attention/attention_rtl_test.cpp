#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/network/attention_run.h"
#include "support/program/program_run.h"
#include "support/temp_directory.h"
#include "support/tlm/systemc_test.h"
#include "testbench/run/rtl_blocks.h"

/// The attention engines with lines swapped for their RTL: nothing may change.
namespace systole::testbench {
namespace {

using nlohmann::json;

std::vector<std::string> blocks_in_rtl(const hw::Machine& machine) {
  RtlReport report;
  (void)make_engines(machine, {}, report);
  std::vector<std::string> blocks;
  for (const auto& [block, counts] : report) blocks.push_back(block);
  return blocks;
}

class AttentionRtlTest : public test::SystemCTest {
 protected:
  AttentionRtlTest()
      : machine_(hw::find_machine("vitcod")),
        mask_(test::synthetic_mask({2, 3, 45, 45}, 6)),
        workload_(make_attention_workload(test::shape_of(mask_, 20),
                                          test::split_by_cycles(mask_, 20, machine_), machine_,
                                          true)) {}

  AttentionResult run(const std::vector<std::string>& blocks, RtlReport& report) const {
    hw::Machine machine = machine_;
    for (const std::string& block : blocks) swap_for_rtl(machine, block);
    tlm_model::Engines engines = make_engines(machine, {}, report);
    test::fresh_kernel();
    return simulate_attention(workload_, machine, std::move(engines), true);
  }

  hw::Machine machine_;
  model::AttentionMask mask_;
  AttentionWorkload workload_;
};

TEST_F(AttentionRtlTest, LinesInRtlChangeNeitherABitNorACycle) {
  const AttentionResult model = test::run_attention(workload_, machine_, true);
  for (const std::vector<std::string>& blocks : {std::vector<std::string>{"sparser_line"},
                                                 {"denser_line"},
                                                 {"attention_softmax"},
                                                 {"sparser_line", "denser_line"}}) {
    RtlReport report;
    const AttentionResult rtl = run(blocks, report);
    EXPECT_EQ(rtl.cycles, model.cycles);
    EXPECT_EQ(rtl.check.mismatches, 0U);
    ASSERT_EQ(report.size(), blocks.size());
    for (const std::string& block : blocks) {
      const bool by_head = block == "attention_softmax";
      EXPECT_GT(report.at(block).operations, by_head ? 5U : 100U) << block;
      EXPECT_EQ(report.at(block).mismatches, 0U) << block;
    }
  }
}

TEST_F(AttentionRtlTest, LinesOfRtlAreAsBusyAsThoseOfTheModel) {
  RtlReport report;
  const AttentionResult result = run({"sparser_line", "denser_line"}, report);
  std::uint64_t busy = 0, cycles = 0, operations = 0;
  for (const auto& head : result.heads) busy += head.lines_busy;
  for (const auto& [block, counts] : report) {
    cycles += counts.cycles;
    operations += counts.operations;
  }
  EXPECT_EQ(cycles, busy + operations * (hw::unit_depth::kWalk + hw::unit_depth::kMac));
}

TEST_F(AttentionRtlTest, OneLineOfAMachineFileSwapsABlock) {
  const TempDirectory directory;
  const std::string file =
      directory.write("mine.toml", "base = \"vitcod\"\n[backend]\ndenser_line = \"rtl\"\n");
  EXPECT_EQ(blocks_in_rtl(hw::find_machine(file)), std::vector<std::string>{"denser_line"});
}

TEST_F(AttentionRtlTest, AllIsWhatTheMachineHas) {
  hw::Machine machine = machine_;
  swap_for_rtl(machine, "all");
  EXPECT_THAT(blocks_in_rtl(machine),
              testing::IsSupersetOf({"head_mix_line", "denser_line", "sparser_line",
                                     "attention_softmax", "systolic_array", "layernorm_unit"}));
  EXPECT_EQ(machine.backend.postop_pipeline, hw::Backend::kModel) << "none has 64 lanes";
  machine = hw::find_machine("transformer");
  swap_for_rtl(machine, "all");
  EXPECT_THAT(blocks_in_rtl(machine), testing::UnorderedElementsAreArray(rtl_blocks(machine)));
  EXPECT_THAT(blocks_in_rtl(machine), testing::Not(testing::Contains("sparser_line")));
}

TEST(AttentionRtlProgram, PrintsATableOfTheBlocksInRtl) {
  const ProgramRun run = run_systole({"attention", "-m", "vitcod", "--tokens", "20", "--heads", "2",
                                      "--dim", "12", "--latent-heads", "1", "--rtl", "all"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, testing::HasSubstr("block in RTL"));
  EXPECT_THAT(run.out, testing::HasSubstr("denser_line"));
  EXPECT_THAT(run.out, testing::ContainsRegex("head_mix_line +40 +"));  // tokens of Q and of K
}

TEST(AttentionRtlProgram, RunsAVisionTransformerWithLinesInRtl) {
  const auto document = [](const std::vector<std::string>& more) {
    const Words arguments =
        words_of("run -m vitcod --model vit65-sparse90-ae -n 1 --check --json", more);
    const ProgramRun run = run_systole(arguments);
    EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
    return document_of(run.out);
  };
  const json model = document({});
  const json rtl = document({"--rtl", "sparser_line,denser_line,head_mix_line"});
  EXPECT_EQ(rtl["cycles"], model["cycles"]);
  EXPECT_EQ(rtl["mismatched_bytes"], 0);
  for (const char* block : {"sparser_line", "denser_line", "head_mix_line"}) {
    EXPECT_GT(rtl["rtl"][block]["operations"], 0) << block;
    EXPECT_EQ(rtl["rtl"][block]["mismatches"], 0) << block;
  }
}

}  // namespace
}  // namespace systole::testbench
