/// The command `systole reproduce ita`.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reproduce/ita/ita.h"
#include "support/program/program_run.h"
#include "tests/reproduce/reproduction_rows.h"

namespace systole::testbench {
namespace {

using nlohmann::json;

TEST(ReproduceIta, MeetsEveryCycleOfTheRtlAndCallsTheRestAReference) {
  const ProgramRun run = run_systole({"reproduce", "ita", "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.out << run.err;
  const json document = json::parse(run.out);
  expect_good_rows(document);
  EXPECT_EQ(document["failed"], 0);
  EXPECT_EQ(row_of(document, "512/512/64/512: feed-forward")["ours"], 262155);
  EXPECT_EQ(row_of(document, "512/512/64/512: feed-forward")["bound"], "equal");
  EXPECT_EQ(row_of(document, "inferences at 500 MHz")["verdict"], "reference");
}

TEST(ReproduceIta, MobileBertsTilesHoldItsProducts) {
  // Heads of 32 features fill half of their tiles; nothing else is padded.
  std::uint64_t tiles = 0;
  for (const auto& layer : mobilebert_block(128, 64)) {
    for (const hw::stream::Work& work : layer) tiles += work.outer * work.inner;
  }
  const std::uint64_t attention = 4 * 128 * 32 * (2 * 128 + 512 + 2 * 128 + 128);
  EXPECT_EQ(tiles * 64 * 64 * 64, mobilebert_block_macs(128) + attention);
}

}  // namespace
}  // namespace systole::testbench
