/// The command `systole reproduce fusion`.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "support/program/program_run.h"
#include "tests/reproduce/reproduction_rows.h"

namespace systole::testbench {
namespace {

using nlohmann::json;

json fusion_rows(const std::string& part) {
  const ProgramRun run = run_systole({"reproduce", "fusion", "--part", part, "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  json document = document_of(run.out);
  expect_good_rows(document);
  EXPECT_EQ(document["failed"], 0);
  return document;
}

void expect_exactly(const json& document, const std::string& name, double value) {
  const json row = row_of(document, name);
  EXPECT_EQ(row["ours"], value) << name;
  EXPECT_EQ(row["bound"], "equal") << name;
}

TEST(ReproduceFusion, ChainsTakeOneLoopAndReadEachOperandOnce) {
  const json document = fusion_rows("chains");
  expect_exactly(document, "n = 16: trips, apart", 2 * 65536);
  expect_exactly(document, "n = 16: trips, fused", 65536);
  expect_exactly(document, "n = 16: accesses, apart", 6 * 65536);
  expect_exactly(document, "n = 16: accesses, fused", 4 * 65536);
  expect_exactly(document, "k = 8: accesses of an element, apart", 24);
  expect_exactly(document, "k = 8: accesses of an element, fused", 10);
  expect_exactly(document, "k = 8: bytes that differ", 0);
  EXPECT_GT(row_of(document, "n = 16: speed-up")["ours"], 1.2);
}

TEST(ReproduceFusion, AGpt2LayerTakesEighteenNineAndSevenPasses) {
  const json document = fusion_rows("layer");
  expect_exactly(document, "d96 h3 c48, off: passes", 18);
  expect_exactly(document, "d96 h3 c48, post: passes", 9);
  expect_exactly(document, "d96 h3 c48, all: passes", 7);
  expect_exactly(document, "d96 h3 c48, off: 54 d + 8 hc", 8 * (54 * 96 + 8 * 3 * 48));
  expect_exactly(document, "d96 h3 c48, post: 24 d + 4 hc", 8 * (24 * 96 + 4 * 3 * 48));
  expect_exactly(document, "d96 h3 c48, all: 20 d + 4 hc", 8 * (20 * 96 + 4 * 3 * 48));
  EXPECT_EQ(row_of(document, "off to post: simulated")["bound"], "within 5 %");
  EXPECT_EQ(row_of(document, "off to post: simulated")["verdict"], "pass");
}

TEST(ReproduceFusion, EmbeddedModelsRunFasterFusedOnEveryPreset) {
  const json document = fusion_rows("models");
  EXPECT_EQ(document["passed"], 5 * 9 * 3);
  const json& machine = document["sections"][0];
  EXPECT_EQ(machine["title"], "Embedded models on transformer");
  ASSERT_EQ(machine["figures"].size(), 27U);
  const json& apart = machine["figures"][3];
  const json& fused = machine["figures"][5];
  EXPECT_EQ(apart["name"], "vit65, off");
  EXPECT_EQ(fused["name"], "vit65, all");
  for (const char* figure : {"passes", "trips", "accesses", "bytes", "cycles"}) {
    EXPECT_GT(apart[figure], fused[figure]) << figure;
  }
  EXPECT_EQ(row_of(document, "transformer: off to all")["verdict"], "reference");
}

}  // namespace
}  // namespace systole::testbench
