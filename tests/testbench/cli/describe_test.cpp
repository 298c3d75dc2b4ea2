#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "support/program/program_run.h"

/// What `systole machine` and `systole model` print about machines and models for text generation.
namespace systole::testbench {
namespace {

using nlohmann::json;

TEST(Describe, MachineForTextIsARingOfCores) {
  const std::string ring = "ring of 1 FP16 core, 64 x 16 multipliers each, beside 8192 MiB of HBM";
  const json presets = json_of({"machine"});
  for (const json& preset : presets) {
    const bool is_ring = preset["name"] == "dfx" || preset["name"] == "dfx-ideal";
    EXPECT_EQ(preset["summary"].get<std::string>().rfind(ring, 0) == 0, is_ring) << preset;
    EXPECT_EQ(preset["summary"].get<std::string>().find(" array,") == std::string::npos, is_ring)
        << preset;
  }
  const json four = json_of({"machine", "dfx", "--set", "dfx.cores=4"});
  EXPECT_EQ(
      four["summary"],
      "ring of 4 FP16 cores, 64 x 16 multipliers each, beside 8192 MiB of HBM (461 GB/s), 200 "
      "MHz; 138 cycles to issue, 2000 ns a hop");
  EXPECT_EQ(four["dfx"]["cores"], 4);
  EXPECT_FALSE(four.contains("array"));
  EXPECT_EQ(four["core"].size(), 1U);
  EXPECT_EQ(four["core"]["clock_mhz"], 200);
  EXPECT_EQ(four["backend"].size(), 4U);
  const std::string text = output_of({"machine", "dfx"});
  EXPECT_EQ(text.find("array."), std::string::npos) << text;
  EXPECT_NE(text.find("hbm.channels"), std::string::npos) << text;
  EXPECT_TRUE(json_of({"machine", "tiny"}).contains("array"));
  // A file of it has every key, as of any machine.
  EXPECT_NE(output_of({"machine", "dfx", "--toml"}).find("[array]"), std::string::npos);
}

TEST(Describe, ModelKnowsTheTextGenerator) {
  const json models = json_of({"model"});
  const auto listed = std::find_if(models.begin(), models.end(),
                                   [](const json& model) { return model["name"] == "kjv"; });
  ASSERT_NE(listed, models.end());
  constexpr std::uint64_t kParameters = 842496;  // script/train/README.md
  EXPECT_EQ((*listed)["bytes"], 2 * kParameters);
  // 256 tokens: four layers of 12 matrices of 128 x 128, scores and products with V, and logits.
  EXPECT_EQ((*listed)["macs"], 256U * (4 * (12 * 128 * 128 + 2 * 256 * 128) + 128 * 128));
  const json kjv = json_of({"model", "kjv"});
  EXPECT_EQ(kjv["family"], "GPT-2");
  EXPECT_EQ(kjv["layers"], 4);
  EXPECT_EQ(kjv["parameters"], kParameters);
  EXPECT_EQ(kjv["validation_bits"], "1.389");
  EXPECT_EQ(kjv["input"], "characters, token id = ASCII code, vocabulary 128, context 256 tokens");
  EXPECT_TRUE(kjv["generates"].get<bool>());
  const std::string text = output_of({"model", "kjv"});
  for (const char* part : {"4 causal pre-norm blocks, width 128, 4 heads, MLP 512", "842,496",
                           "context 256", "1.389 bits per token", "systole generate"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in:\n" << text;
  }
  const ProgramRun run = run_systole({"run", "-m", "tiny", "--model", "kjv"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_NE(run.err.find("'kjv': a text generator in FP16, see systole generate"),
            std::string::npos)
      << run.err;
}

}  // namespace
}  // namespace systole::testbench
