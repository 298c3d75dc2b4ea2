#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "support/paths.h"
#include "support/program/program_run.h"
#include "support/temp_directory.h"

namespace systole::testbench {
namespace {

using nlohmann::json;

// The command `systole map --chain`.

constexpr int kElements = 24 * 40;

/// a b + c, of tensors in memory.
const char* const kMultiplyAdd = R"(
name = "a b + c"
[[inputs]]
name = "a"
type = "s16"
shape = [24, 40]
[[inputs]]
name = "b"
type = "s16"
shape = [24, 40]
[[inputs]]
name = "c"
type = "s16"
shape = [24, 40]
[[nodes]]
name = "product"
op = "multiply"
inputs = ["a", "b"]
[[nodes]]
op = "add"
inputs = ["c", "product"]
)";

const char* const kPictures = R"(
[[inputs]]
name = "x"
type = "s8"
shape = [6, 12, 10]
[[nodes]]
op = "pad"
padding = 1
[[nodes]]
op = "convolution"
outputs = 9
rows = 3
cols = 3
[[nodes]]
op = "relu"
[[nodes]]
op = "max_pool"
rows = 2
cols = 2
stride = 2
)";

TEST(MapChain, SavesWhatFollowsFromTheOperands) {
  const TempDirectory directory;
  const std::string chain = directory.write("chain.toml", kMultiplyAdd);
  const json document = json_of({"map", "-m", "transformer", "--chain", chain});
  EXPECT_EQ(document["model"], "a b + c");
  const json& steps = document["chain"]["steps"];
  EXPECT_EQ(steps["off"]["passes"], 2);
  EXPECT_EQ(steps["off"]["loop_trips"], 2 * kElements);
  EXPECT_EQ(steps["off"]["accesses"], 6 * kElements);
  EXPECT_EQ(steps["post"]["passes"], 1);
  EXPECT_EQ(steps["post"]["loop_trips"], kElements);
  EXPECT_EQ(steps["post"]["accesses"], 4 * kElements);
  EXPECT_NEAR(document["chain"]["saved"]["post"]["accesses"].get<double>(), 1.0 / 3, 1e-12);
  EXPECT_FALSE(document["chain"].contains("differing_bytes"));
  EXPECT_EQ(steps["post"].count("moved_bytes"), 0U);
}

TEST(MapChain, SimulatesWithAndWithoutFusion) {
  const TempDirectory directory;
  const std::string chain = directory.write("net.toml", kPictures);
  const json document =
      json_of({"map", "-m", "transformer", "--chain", chain, "--simulate"})["chain"];
  EXPECT_EQ(document["differing_bytes"], 0);
  const json& steps = document["steps"];
  EXPECT_EQ(steps["off"]["passes"], 5) << "a bias is a pass, with the requantisation";
  EXPECT_EQ(steps["post"]["passes"], 3);
  EXPECT_EQ(steps["all"]["passes"], 2) << "zeros are padding of the convolution";
  for (const char* const what : {"moved_bytes", "cycles"}) {
    EXPECT_GT(steps["off"][what], steps["post"][what]) << what;
    EXPECT_GT(steps["post"][what], steps["all"][what]) << what;
    const double off = steps["off"][what].get<double>(), all = steps["all"][what].get<double>();
    EXPECT_NEAR(document["saved"]["all"][what].get<double>(), 1 - all / off, 1e-12);
  }
  const ProgramRun text = run_systole({"map", "-m", "transformer", "--chain", chain, "--simulate"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("0 bytes differ"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("model     net"), std::string::npos) << "named like its file";
}

TEST(MapChain, DividesAndPadsUnevenly) {
  const TempDirectory directory;
  const std::string quotient = directory.write("quotient.toml", R"(
[[inputs]]
name = "a"
type = "s16"
shape = [24, 40]
[[inputs]]
name = "b"
type = "s8"
shape = [24, 40]
[[nodes]]
op = "divide"
inputs = ["a", "a"]
shift = 3
[[nodes]]
name = "q"
op = "requantise"
factor = [1, 0]
[[nodes]]
op = "add"
inputs = ["b", "q"]
)");
  const std::string padded = directory.write("padded.toml", R"(
[[inputs]]
name = "x"
type = "s8"
shape = [6, 12, 10]
[[nodes]]
op = "pad"
padding = [0, 1, 3, 2]
[[nodes]]
op = "convolution"
outputs = 9
rows = 3
cols = 3
padding = [1, 0, 0, 0]
)");
  for (const std::string& chain : {quotient, padded}) {
    const json document = json_of({"map", "-m", "transformer", "--set", "postop.divider=1",
                                   "--chain", chain, "--simulate"})["chain"];
    EXPECT_EQ(document["differing_bytes"], 0);
    EXPECT_EQ(document["steps"]["all"]["passes"], 1) << chain;
    EXPECT_GT(document["steps"]["off"]["cycles"], document["steps"]["all"]["cycles"]);
  }
}

TEST(MapChain, WritesAProgramAndExplainsIt) {
  const TempDirectory directory;
  const std::string chain = directory.write("net.toml", kPictures);
  const std::string program = directory.path("net.prog");
  const json document = json_of({"map", "-m", "tiny", "--set", "preop.lanes=4", "--chain", chain,
                                 "--explain", "--out", program});
  EXPECT_EQ(document["fusion"]["operators"][0]["place"], "in front");
  EXPECT_EQ(document["fusion"]["operators"][0]["why"], "padding of a window");
  const ProgramRun listing = run_systole({"map", "--read", program});
  EXPECT_EQ(listing.exit_code, 0) << listing.err;
  EXPECT_NE(listing.out.find("convolution2"), std::string::npos);
}

}  // namespace
}  // namespace systole::testbench
