/// The command `systole map --explain`.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/program/program_run.h"

namespace systole::testbench {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json explained(const std::vector<std::string>& settings) {
  std::vector<std::string> arguments = {"map",   "-m",        "transformer", "--model",
                                        "vit17", "--explain", "--json"};
  for (const std::string& setting : settings) {
    arguments.emplace_back("--set");
    arguments.push_back(setting);
  }
  const ProgramRun run = run_systole(arguments);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return json::parse(run.out)["fusion"];
}

json decision(const json& fusion, const std::string& name) {
  for (const json& one : fusion["operators"]) {
    if (one["name"] == name) return one;
  }
  ADD_FAILURE() << "no operator " << name;
  return {};
}

TEST(Explain, SaysWhereEveryOperatorRuns) {
  const json fusion = explained({"preop.lanes=16"});
  const json norm = decision(fusion, "blocks.1.norm1");
  EXPECT_EQ(norm["place"], "in front");
  EXPECT_EQ(norm["runs_in"], "blocks.1.attn.qkv");
  EXPECT_THAT(norm["why"].get<std::string>(), HasSubstr("cycles together"));
  EXPECT_EQ(decision(fusion, "blocks.1.attn.qkv")["place"], "anchor");
  const json gelu = decision(fusion, "blocks.1.mlp.gelu");
  EXPECT_EQ(gelu["place"], "behind");
  EXPECT_EQ(gelu["runs_in"], "blocks.1.mlp.fc1");
}

TEST(Explain, SaysWhatStandsInTheWay) {
  const json off = explained({"mapper.fusion=off"});
  EXPECT_GT(off["passes"], explained({})["passes"]);
  const json gelu = decision(off, "blocks.1.mlp.gelu");
  EXPECT_EQ(gelu["place"], "anchor");
  EXPECT_THAT(gelu["why"].get<std::string>(), HasSubstr("mapper.fusion is \"off\""));
  const json clamp = decision(explained({"postop.max_stages=3"}), "blocks.1.mlp.fc2.clamp");
  EXPECT_EQ(clamp["why"], "postop.max_stages is 3");
  const json norm = decision(explained({}), "blocks.1.norm1");
  EXPECT_THAT(norm["why"].get<std::string>(), HasSubstr("preop.lanes is 0"));
}

TEST(Explain, PrintsARowPerOperator) {
  const ProgramRun run = run_systole({"map", "-m", "vitcod", "--model", "vit17", "--explain"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, testing::ContainsRegex("blocks.0.attn.head0.softmax +[0-9]+  inside"));
  EXPECT_THAT(run.out, testing::ContainsRegex("blocks.0.mlp.gelu +[0-9]+  behind"));
}

TEST(Explain, NeedsAModel) {
  const ProgramRun read = run_systole({"map", "--read", "x.prog", "--explain"});
  EXPECT_EQ(read.exit_code, 2);
  EXPECT_THAT(read.err, HasSubstr("--explain"));
  const ProgramRun both =
      run_systole({"map", "-m", "tiny", "--model", "vit17", "--explain", "--asm", "-"});
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_THAT(both.err, HasSubstr("--explain and --asm -"));
}

}  // namespace
}  // namespace systole::testbench
