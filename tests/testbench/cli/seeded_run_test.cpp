#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "model/seeded/shapes.h"
#include "support/program/bad_input.h"
#include "support/program/program_run.h"

namespace systole::testbench {
namespace {

using nlohmann::json;

/// A network of that shape, made small.
Words small(const std::string& command, const std::string& name, const Words& more = {}) {
  Words arguments{command, "-m", "gemmini", "--model", name,    "--layers", "2",
                  "--d",   "48", "--heads", "3",       "--ffn", "96"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(SeededRun, ComputesEveryOperatorOfEveryShape) {
  for (const model::NamedShape& shape : model::named_shapes()) {
    Words arguments = small("run", std::string(shape.name), {"--check"});
    if (shape.kind != model::NetworkKind::kVision) {
      arguments.insert(arguments.end(), {"--length", "21"});
    }
    const json run = json_of(arguments);
    EXPECT_EQ(run["mismatched_bytes"], 0) << shape.name;
    EXPECT_GE(run["checked_operators"], 20) << shape.name;
    EXPECT_TRUE(run["accuracy"].is_null());
    EXPECT_EQ(run["seeded"]["post_norm"], shape.shape.post_norm);
    EXPECT_EQ(run["seeded"]["width"], 48);
  }
}

TEST(SeededRun, TimingAloneHasTheSameCycles) {
  const Words work{"--length", "33", "--batch", "2", "-n", "2"};
  const json with = json_of(small("run", "bert-base", work));
  Words timing = small("run", "bert-base", work);
  timing.emplace_back("--functional=off");
  const json without = json_of(timing);
  EXPECT_EQ(with["images"], 2);
  EXPECT_EQ(with["cycles_total"], without["cycles_total"]);
  EXPECT_EQ(with["blocks"], without["blocks"]);
}

TEST(SeededRun, SequencesOfABatchAttendToThemselvesAlone) {
  const json one = json_of(small("run", "bert-base", {"--length", "16"}));
  const json batch =
      json_of(small("run", "bert-base", {"--length", "16", "--batch", "3", "--check"}));
  const json longer = json_of(small("run", "bert-base", {"--length", "48"}));
  EXPECT_EQ(batch["mismatched_bytes"], 0);
  EXPECT_EQ(batch["macs"], 3 * one["macs"].get<std::uint64_t>());
  EXPECT_LT(batch["macs"], longer["macs"]);
}

TEST(SeededRun, SaysThatTheWeightsAreSeeded) {
  const std::string text = output_of(small("run", "gpt2", {"--length", "8"}));
  EXPECT_NE(text.find("seeded: no accuracy"), std::string::npos) << text;
  EXPECT_NE(text.find("2 causal pre-norm blocks, width 48, 3 heads, MLP 96, 8 tokens"),
            std::string::npos)
      << text;
}

TEST(SeededRun, EveryCommandTakesTheSameNames) {
  for (const model::NamedShape& shape : model::named_shapes()) {
    const std::string name(shape.name);
    const json mapped = json_of(small("map", name));
    EXPECT_EQ(mapped["model"], name);
    const json described =
        json_of({"model", name, "--layers", "2", "--d", "48", "--heads", "3", "--ffn", "96"});
    EXPECT_EQ(described["model"], name);
    const json analysed = json_of(small("analyse", name));
    EXPECT_EQ(analysed["length"], described["seeded"]["length"]);
  }
}

TEST(SeededRun, DescribesBertBase) {
  const json model = json_of({"model", "bert-base", "--length", "512"});
  // 12 layers of 12 products of 768 x 768 by token, and two of 512 x 768 by token.
  EXPECT_EQ(model["macs"], 12LL * 512 * (12LL * 768 * 768 + 2LL * 512 * 768));
  EXPECT_EQ(model["weight_bytes"], 12LL * 12 * 768 * 768);
  EXPECT_EQ(model["positions"], 512);
}

}  // namespace
}  // namespace systole::testbench
