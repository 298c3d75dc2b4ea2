#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/program/program_run.h"
#include "support/temp_directory.h"

namespace systole::testbench {
namespace {

using nlohmann::json;

json run_on(const std::string& machine, const std::string& model,
            const std::vector<std::string>& more = {}) {
  const TempDirectory folder;
  const std::string stats = folder.path("run.json");
  const Words arguments = words_of(
      "run -m " + machine + " --model " + model + " --stats " + stats + " -n 3 --check", more);
  const ProgramRun run = run_systole(arguments);
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  return document_of(read_file(stats));
}

class SparseVit : public testing::TestWithParam<const char*> {};

TEST_P(SparseVit, RunsOnTheAttentionEnginesBitForBit) {
  const json document = run_on("vitcod", GetParam());
  EXPECT_EQ(document["mismatched_bytes"], 0);
  EXPECT_GT(document["checked_bytes"], 0);
  const json& attention = document["blocks"]["attention"];
  EXPECT_GT(attention["busy"], 0);
  std::uint64_t stalled = 0;
  for (const auto& [cause, cycles] : attention["stalled"].items()) {
    stalled += cycles.get<std::uint64_t>();
  }
  EXPECT_EQ(
      attention["busy"].get<std::uint64_t>() + stalled + attention["idle"].get<std::uint64_t>(),
      attention["total"].get<std::uint64_t>());
}

INSTANTIATE_TEST_SUITE_P(Models, SparseVit,
                         testing::Values("vit17", "vit65", "vit65-sparse80", "vit65-sparse90",
                                         "vit65-sparse95", "vit65-sparse90-ae"));

TEST(SparseModels, MasksRunOnAMachineWithoutEnginesToo) {
  const json document = run_on("transformer", "vit65-sparse90");
  EXPECT_EQ(document["mismatched_bytes"], 0);
  EXPECT_FALSE(document["blocks"].contains("attention"));
}

TEST(SparseModels, FewerKeptCellsTakeFewerMacsOfTheEngines) {
  const auto macs = [](const std::string& model) {
    return run_on("vitcod", model)["blocks"]["attention"]["counters"]["macs"].get<std::uint64_t>();
  };
  const std::uint64_t dense = macs("vit65");
  // 3 pictures, 4 blocks, 4 heads, 65 x 65 cells, 16 features in the scores and 16 in the context.
  EXPECT_EQ(dense, 3U * 4 * 4 * 65 * 65 * 32);
  const std::uint64_t at90 = macs("vit65-sparse90");
  EXPECT_LT(at90 * 6, dense);
  EXPECT_GT(at90 * 10, dense);
  EXPECT_LT(macs("vit65-sparse95"), at90);
}

TEST(SparseModels, AreDescribedWithTheirMasksAndAutoEncoder) {
  const auto describe = [](const std::string& model) {
    return document_of(run_systole({"model", model, "--json"}).out);
  };
  const json linked = describe("vit65-sparse90-ae");
  EXPECT_EQ(linked["latent_heads"], 2);
  EXPECT_EQ(linked["folded_encoders"], false);
  ASSERT_EQ(linked["kept"].size(), 4U);
  double kept = 0;
  for (const json& share : linked["kept"]) kept += share.get<double>() / 4;
  EXPECT_NEAR(kept, 0.1, 0.01);
  const std::string text = run_systole({"model", "vit65-sparse90-ae"}).out;
  EXPECT_NE(text.find("Q and K: 4 -> 2 heads"), std::string::npos) << text;
  EXPECT_NE(text.find(" % of the scores are kept, layer by layer"), std::string::npos) << text;

  const json dense = describe("vit17");
  EXPECT_EQ(dense["latent_heads"], 0);
  for (const json& share : dense["kept"]) EXPECT_EQ(share, 1.0);
  const std::string plain = run_systole({"model", "vit17"}).out;
  EXPECT_EQ(plain.find("masks"), std::string::npos) << plain;
  EXPECT_EQ(plain.find("auto-encoder"), std::string::npos) << plain;
}

TEST(SparseModels, CyclesDoNotDependOnValues) {
  const json with = run_on("vitcod", "vit65-sparse90");
  const TempDirectory folder;
  const std::string stats = folder.path("run.json");
  ASSERT_EQ(run_systole({"run", "-m", "vitcod", "--model", "vit65-sparse90", "-n", "3",
                         "--functional=off", "--stats", stats})
                .exit_code,
            0);
  EXPECT_EQ(document_of(read_file(stats))["cycles"], with["cycles"]);
}

TEST(SparseModels, EncodeQAndKInTheStoreUnit) {
  const auto macs = [](const std::vector<std::string>& more) {
    const json store = run_on("vitcod", "vit65-sparse90-ae", more)["blocks"]["store"]["counters"];
    return store["encoder_macs"].get<std::uint64_t>();
  };
  // 3 pictures, 4 blocks, Q and K, 65 tokens, 16 features, 4 heads to 2.
  EXPECT_EQ(macs({}), 3U * 4 * 2 * 65 * 16 * 8);
  EXPECT_EQ(macs({"--set", "attention.encoder_lines=0"}), 0U);
}

}  // namespace
}  // namespace systole::testbench
