#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/file_size_limit.h"
#include "support/program/program_run.h"
#include "support/temp_directory.h"
#include "support/text_lines.h"

namespace systole::testbench {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

// The command `systole map --explain`.

json fusion_of(const std::vector<std::string>& settings) {
  std::vector<std::string> arguments = {"map",   "-m",        "transformer", "--model",
                                        "vit17", "--explain", "--json"};
  for (const std::string& setting : settings) {
    arguments.emplace_back("--set");
    arguments.push_back(setting);
  }
  const ProgramRun run = run_systole(arguments);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return document_of(run.out)["fusion"];
}

json decision(const json& fusion, const std::string& name) {
  for (const json& one : fusion["operators"]) {
    if (one["name"] == name) return one;
  }
  ADD_FAILURE() << "no operator " << name;
  return {};
}

TEST(Explain, SaysWhereEveryOperatorRuns) {
  const json fusion = fusion_of({"preop.lanes=16"});
  const json norm = decision(fusion, "blocks.1.norm1");
  EXPECT_EQ(norm["place"], "in front");
  EXPECT_EQ(norm["runs_in"], "blocks.1.attn.qkv");
  EXPECT_THAT(norm["why"].get<std::string>(), HasSubstr("cycles together"));
  EXPECT_EQ(decision(fusion, "blocks.1.attn.qkv")["place"], "anchor");
  const json gelu = decision(fusion, "blocks.1.mlp.gelu");
  EXPECT_EQ(gelu["place"], "after");
  EXPECT_EQ(gelu["runs_in"], "blocks.1.mlp.fc1");
}

TEST(Explain, SaysWhatStandsInTheWay) {
  const json off = fusion_of({"mapper.fusion=off"});
  EXPECT_GT(off["passes"], fusion_of({})["passes"]);
  const json gelu = decision(off, "blocks.1.mlp.gelu");
  EXPECT_EQ(gelu["place"], "anchor");
  EXPECT_THAT(gelu["why"].get<std::string>(), HasSubstr("mapper.fusion is \"off\""));
  const json clamp = decision(fusion_of({"postop.max_stages=3"}), "blocks.1.mlp.fc2.clamp");
  EXPECT_EQ(clamp["why"], "postop.max_stages is 3");
  const json norm = decision(fusion_of({}), "blocks.1.norm1");
  EXPECT_THAT(norm["why"].get<std::string>(), HasSubstr("preop.lanes is 0"));
}

TEST(Explain, PrintsARowPerOperator) {
  const ProgramRun run = run_systole({"map", "-m", "vitcod", "--model", "vit17", "--explain"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, testing::ContainsRegex("blocks.0.attn.head0.softmax +[0-9]+  inside"));
  EXPECT_THAT(run.out, testing::ContainsRegex("blocks.0.mlp.gelu +[0-9]+  after"));
}

// What `systole machine` and `systole model` print about machines and models for text generation.

TEST(Describe, MachineForTextIsARingOfCores) {
  const std::string ring = "ring of 1 FP16 core, 64 x 16 multipliers each, beside 8192 MiB of HBM";
  const json presets = json_of({"machine"})["machines"];
  for (const json& preset : presets) {
    const bool is_ring = preset["name"] == "dfx" || preset["name"] == "dfx-ideal";
    EXPECT_EQ(preset["summary"].get<std::string>().rfind(ring, 0) == 0, is_ring) << preset;
    const bool is_dynamic = preset["name"] == "sanger" || preset["name"] == "spatten";
    EXPECT_EQ(preset["summary"].get<std::string>().find(" array,") == std::string::npos,
              is_ring || is_dynamic)
        << preset;
    EXPECT_EQ(preset["summary"].get<std::string>().find("attention alone") != std::string::npos,
              is_dynamic);
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
  const json models = json_of({"model"})["models"];
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
}

/// Pictures that cannot be drawn or written: an error in one line, no picture, the old one kept.
class BadPlot : public testing::Test {
 protected:
  BadPlot() {
    std::filesystem::create_directory(directory_.path("pictures"));
    directory_.write(picture_, "old");
  }
  [[nodiscard]] ProgramRun draw(const std::map<std::string, std::string>& variables = {}) const {
    return run_systole({"reproduce", "survey", "--part", "analysis", "--plots", "pictures"},
                       directory_.path(), variables);
  }
  /// With a gnuplot that is this script.
  [[nodiscard]] ProgramRun draw_with(const std::string& script) const {
    const TempDirectory tools;
    ::chmod(tools.write("gnuplot", "#!/bin/sh\n" + script + "\n").c_str(), 0755);
    return draw({{"PATH", tools.path() + ":/usr/bin:/bin"}});
  }
  void expect_error(const ProgramRun& run, const std::string& text) const {
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_EQ(lines_of(run.err).size(), 1U) << run.err;
    EXPECT_THAT(run.err, StartsWith("systole: " + picture_ + ": "));
    EXPECT_THAT(run.err, HasSubstr(text));
    EXPECT_EQ(read_file(directory_.path(picture_)), "old");
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path("pictures"))) {
      ++files;
      EXPECT_EQ(entry.path().filename(), "survey_lengths.png");
    }
    EXPECT_EQ(files, 1U);
  }

  const std::string picture_ = "pictures/survey_lengths.png";
  TempDirectory directory_;
};

TEST_F(BadPlot, FullDisk) {
  if (std::system("gnuplot --version >/dev/null 2>&1") != 0) {
    GTEST_SKIP() << "NOT TESTED: a full disk, no gnuplot";
  }
  const ScopedFileSizeLimit limit(40'000);  // less than the picture, more than what is printed
  expect_error(draw(), "cannot write: File too large");
}

TEST_F(BadPlot, HalfAPicture) {
  expect_error(draw_with("cat >/dev/null; printf '\\211PNG\\r\\n\\032\\nhalf'"),
               "12 bytes, not a whole picture");
}

TEST_F(BadPlot, Nothing) { expect_error(draw_with("cat >/dev/null"), "0 bytes"); }

TEST_F(BadPlot, AnErrorAfterTheFirstLine) { expect_error(draw_with("exit 3"), "exit code 3"); }

TEST_F(BadPlot, EndedByASignal) { expect_error(draw_with("kill -9 $$"), "exit code -1"); }

}  // namespace
}  // namespace systole::testbench
