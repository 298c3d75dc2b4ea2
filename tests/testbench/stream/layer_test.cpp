#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "support/documented_names.h"
#include "support/program/program_run.h"

namespace systole::testbench {
namespace {

using nlohmann::json;

json layer(Words arguments) {
  const Words all = words_of("layer -m ita", arguments);
  return json_of(std::move(all));
}

TEST(Layer, EveryNameIsDocumentedAndNoOther) {
  json document = layer({"--tokens", "64"});
  document.erase("blocks");  // those of docs/statistics.md
  document["blocks"] = json::object();
  test::expect_documented(document, "docs/layer.md");
}

TEST(Layer, ComputesItsResultsThroughTheSharedMemory) {
  for (const Words& arguments :
       {Words{"--tokens", "64", "--ffn", "128"},
        Words{"--tokens", "128", "--d", "192", "--dim", "64", "--heads", "2", "--ffn", "64",
              "--activation", "relu"},
        Words{"--tokens", "192", "--d", "64", "--ffn", "64", "--activation", "identity"}}) {
    const json run = layer(arguments);
    EXPECT_GT(run["checked_bytes"], 0);
    EXPECT_EQ(run["mismatched_bytes"], 0);
  }
}

TEST(Layer, TakesTheCyclesOfTheRtlWithValuesAndWithout) {
  // Measured: 8,267 for the attention, 3,083 for the feed-forward layer after it.
  for (const char* functional : {"on", "off"}) {
    const json run = layer({"--tokens", "128", "--d", "192", "--dim", "64", "--ffn", "64",
                            "--functional", functional});
    EXPECT_EQ(run["layers"][0]["cycles"], 8267);
    EXPECT_EQ(run["layers"][1]["cycles"], 3083);
    EXPECT_EQ(run["layers"][1]["begin"], 8268);
    EXPECT_EQ(run["cycles"], 8268 + 3083);
    const json& stream = run["blocks"]["stream"];
    EXPECT_EQ(stream["total"], run["cycles"]);
    EXPECT_EQ(stream["busy"], 256 * (32 + 12));
  }
}

TEST(Layer, RunsHeadsOneAfterTheOther) {
  const json one = layer({"--tokens", "128"}), three = layer({"--tokens", "128", "--heads", "3"});
  ASSERT_EQ(three["layers"].size(), 3U);
  const std::uint64_t first = one["cycles"], head = three["layers"][1]["cycles"];
  // Its weights have arrived while the head before it drained.
  EXPECT_EQ(head, first - 64);
  EXPECT_EQ(three["cycles"], first + 2 * (head + 1));
}

TEST(Layer, MatmulRunsOnAStreamingCoreToo) {
  for (const Words& more : {Words{}, Words{"--bias"}, Words{"--functional", "off"}}) {
    const Words arguments = words_of("matmul 256x128x192 -m ita", more);
    const json run = json_of(arguments);
    EXPECT_EQ(run["cycles"], 256 * 128 * 192 / 1024 + 75);
    EXPECT_EQ(run["mismatched_bytes"], 0);
  }
}

TEST(Layer, TextFitsATerminal) {
  std::istringstream lines(output_of({"layer", "-m", "ita", "--tokens", "512", "--d", "512",
                                      "--dim", "512", "--heads", "2", "--ffn", "512"}));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

}  // namespace
}  // namespace systole::testbench
