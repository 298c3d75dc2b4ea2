/// The command `systole reproduce gemmini`.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "support/program/program_run.h"
#include "support/shared_data.h"
#include "support/temp_directory.h"
#include "tests/reproduce/reproduction_rows.h"

namespace systole::testbench {
namespace {

using nlohmann::json;

constexpr const char* kNames =
    "MxNxK,output,bias,latency,beat_cycles,gap,cycles,ideal,read_requests,read_bytes,"
    "write_requests,write_bytes\n";

// Ours, so that the command has something to compare; not measured.
constexpr const char* kOurs = "16x16x16,int8,none,10,1,4,230,16,32,512,16,256\n";

json figures_of(const json& document, const std::string& title) {
  for (const json& section : document["sections"]) {
    if (section["title"].get<std::string>().find(title) == 0) return section["figures"];
  }
  ADD_FAILURE() << "no section " << title;
  return {};
}

TEST(ReproduceGemmini, EqualsItsRtlInEveryRequestAndNearlyEveryCycle) {
  const std::string chosen = shared_data("gemmini_rtl/cycles.csv"),
                    random = shared_data("gemmini_rtl/cycles_random.csv");
  if (chosen.empty() || random.empty()) {
    GTEST_SKIP() << "NOT TESTED: Gemmini's RTL, no runs of it";
  }
  const ProgramRun run =
      run_systole({"reproduce", "gemmini", "--points", chosen + "," + random, "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.out << run.err;
  const json document = document_of(run.out);
  expect_good_rows(document);
  EXPECT_EQ(document["failed"], 0);
  EXPECT_EQ(row_of(document, "runs whose requests or bytes differ")["ours"], 0);
  EXPECT_EQ(row_of(document, "bytes of results that differ")["ours"], 0);
  EXPECT_LE(row_of(document, "mean error of a run")["ours"], 0.001);
  EXPECT_LE(row_of(document, "largest error of a run")["ours"], 0.03);
  const json all = figures_of(document, "Cycles")[0];
  EXPECT_GE(all["runs"], 363);
  EXPECT_GE(all["equal"].get<int>(), all["runs"].get<int>() - 1) << all;
}

class ReproduceGemminiPoints : public testing::Test {
 protected:
  ProgramRun run(const std::string& text, const std::vector<std::string>& more = {}) {
    directory_.write("points.csv", text);
    const Words words = words_of("reproduce gemmini --points points.csv --json", more);
    return run_systole(words, directory_.path());
  }
  TempDirectory directory_;
};

TEST_F(ReproduceGemminiPoints, ComparesEveryRunOfAFile) {
  const ProgramRun good = run(std::string(kNames) + kOurs);
  ASSERT_EQ(good.exit_code, 0) << good.out << good.err;
  const json document = document_of(good.out);
  expect_good_rows(document);
  EXPECT_EQ(row_of(document, "all: cycles of 1 runs")["ours"], 230);
  // What others measured on FireSim stands below, whatever the file has.
  EXPECT_NEAR(row_of(document, "128x768x3072")["ours"].get<double>(), 1'518'059, 0.05 * 1'518'059);
}

TEST_F(ReproduceGemminiPoints, FailsWhereARunDiffers) {
  const ProgramRun slow =
      run(std::string(kNames) + "16x16x16,int8,none,10,1,4,250,16,32,512,16,256\n");
  EXPECT_EQ(slow.exit_code, 1);
  EXPECT_EQ(row_of(document_of(slow.out), "largest error of a run")["verdict"], "fail");
  const ProgramRun requests =
      run(std::string(kNames) + "16x16x16,int8,none,10,1,4,230,16,33,512,16,256\n");
  EXPECT_EQ(requests.exit_code, 1);
  EXPECT_EQ(row_of(document_of(requests.out), "runs whose requests or bytes differ")["ours"], 1);
}

TEST_F(ReproduceGemminiPoints, RefusesWhatIsNoRun) {
  const std::string names = kNames;
  const struct {
    std::string text, says;
  } bad[] = {
      {"", "points.csv: no runs"},
      {names, "points.csv: no runs"},
      {"MxNxK,cycles\n16x16x16,230\n", "points.csv:1: no column bias"},
      {names + "16x16x16,int8\n", "points.csv:2: 2 values, expected 12"},
      {names + kOurs + "16x16,int8,none,10,1,4,230,16,32,512,16,256\n", "points.csv:3: "},
      {names + "16x16x16,int9,none,10,1,4,230,16,32,512,16,256\n",
       "points.csv:2: output: found 'int9', expected int8 or int32"},
      {names + "16x16x16,int8,none,10,1,4,0,16,32,512,16,256\n",
       "points.csv:2: cycles: found '0', expected 1 to"},
      {names + "16x16x16,int8,none,10,1,4,2e2,16,32,512,16,256\n",
       "points.csv:2: cycles: found '2e2'"},
      {names + "16x16x16,int8,none,10,65,4,230,16,32,512,16,256\n",
       "points.csv:2: beat_cycles: found '65', expected 1 to 64"},
  };
  for (const auto& [text, says] : bad) {
    const ProgramRun refused = run(text);
    EXPECT_EQ(refused.exit_code, 2) << text;
    EXPECT_THAT(refused.err, testing::HasSubstr(says)) << text;
    EXPECT_EQ(refused.out, "") << text;
  }
}

}  // namespace
}  // namespace systole::testbench
