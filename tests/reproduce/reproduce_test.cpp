/// The command `systole reproduce`.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "reproduce/reproduction.h"
#include "support/npy_bytes.h"
#include "support/program/program_run.h"
#include "support/shared_data.h"
#include "support/temp_directory.h"
#include "tests/reproduce/reproduction_rows.h"

namespace systole::testbench {
namespace {

using nlohmann::json;
using testing::HasSubstr;

/// One layer of two heads with 30 queries and keys: a band along the diagonal and two columns.
std::string small_mask() {
  std::string pruned;
  for (std::size_t row = 0; row < 2 * 30; ++row) {
    for (std::size_t key = 0; key < 30; ++key) {
      const std::size_t query = row % 30;
      const bool kept = key < 2 || (query > key ? query - key : key - query) < 2;
      pruned += kept ? '\0' : '\1';
    }
  }
  return npy_mask("(1, 2, 30, 30)", pruned);
}

Words reproduce(const Words& more = {}) {
  return words_of("reproduce vitcod --mask mask.npy", more);
}

/// The page holds the rows of the document and every picture; this computer was measured.
void expect_page(const std::string& page, const json& document) {
  const std::string begin = "id=\"data\">";
  const std::size_t at = page.find(begin) + begin.size();
  const json data = json::parse(page.substr(at, page.find("</script>", at) - at));
  ASSERT_EQ(data["reproductions"].size(), 1U);
  const json& shown = data["reproductions"][0];
  EXPECT_EQ(shown["rows"], document["rows"]);
  ASSERT_EQ(shown["pictures"].size(), 4U);
  for (const json& picture : shown["pictures"]) {
    EXPECT_EQ(picture["png"].get<std::string>().substr(0, 10), "iVBORw0KGg") << picture["name"];
  }
  const json cpu = row_of(document, "maps at 90 %: CPU dense");
  EXPECT_EQ(cpu["class"], "measured here");
  EXPECT_EQ(cpu["verdict"], "reference");
  EXPECT_EQ(cpu["published"], 235.3);
  EXPECT_GT(cpu["ours"], 0.0);
}

class Reproduce : public testing::Test {
 protected:
  Reproduce() { directory_.write("mask.npy", small_mask()); }
  TempDirectory directory_;
};

TEST_F(Reproduce, RowsSayWhatIsOursAndWhatWasPublishedAndPicturesShowIt) {
  Words more{"--stats", "a.json"};
  const bool draws = std::system("gnuplot --version >/dev/null 2>&1") == 0;
  if (draws) {
    more.insert(more.end(),
                {"--cpu", "--plots", "pictures with 'quotes'", "--report", "page.html"});
  }
  const ProgramRun run = run_systole(reproduce(more), directory_.path());
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_THAT(run.out, HasSubstr("ViTCoD (HPCA 2023), section VI"));
  std::istringstream lines(run.out);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  EXPECT_EQ(run.out.find(".."), std::string::npos) << "a name was cut short:\n" << run.out;
  for (const char* name : {"mask", "cycles", "break_even", "sparsity"}) {
    if (!draws) break;
    const std::string file = std::string("pictures with 'quotes'/vitcod_") + name + ".png";
    const std::string png = read_file(directory_.path(file));
    EXPECT_EQ(png.substr(1, 3), "PNG") << name;
    EXPECT_GT(png.size(), 5000U) << name;
  }
  const json document = document_of(read_file(directory_.path("a.json")));
  if (draws) expect_page(read_file(directory_.path("page.html")), document);
  EXPECT_TRUE(document["inputs"].contains("mask"));
  EXPECT_EQ(document["name"], "vitcod");
  EXPECT_EQ(document["failed"], 0);
  expect_good_rows(document);
  for (const json& row : document["rows"]) {
    if (!row["ours"].is_null()) {
      EXPECT_GE(row["ours"], 0) << row["name"];
    }
  }
  // Faster attention is worth less for the whole network than for itself, and never much more than
  // its share allows.
  const double share = row_of(document, "vit65: attention, dense")["ours"].get<double>() / 100.0;
  const double alone = row_of(document, "vit65: attention faster")["ours"];
  const double whole = row_of(document, "vit65: network faster")["ours"];
  EXPECT_GT(alone, whole);
  EXPECT_NEAR(whole, 1.0 / (1.0 - share + share / alone), 0.05 * whole) << "Amdahl's law";
  // By hand: keys 0 and 1 with 30 queries each, 27 keys with three, the last with two; two heads.
  EXPECT_DOUBLE_EQ(
      row_of(document, "kept cells x features / MACs")["ours"].get<double>() * 512 / 64,
      2 * (2 * 30 + 27 * 3 + 2));
}

TEST_F(Reproduce, ARowOutOfItsBoundsFails) {
  const ProgramRun run =
      run_systole(reproduce({"--json", "--set", "core.clock_mhz=400"}), directory_.path());
  EXPECT_EQ(run.exit_code, 1);
  const json document = document_of(run.out);
  EXPECT_EQ(document["failed"], 1);
  EXPECT_EQ(row_of(document, "compute roof")["verdict"], "fail");
  EXPECT_NEAR(row_of(document, "compute roof")["difference"], 400.0 / 500.0 - 1.0, 1e-12);
}

TEST(ReproduceWithoutGnuplot, TablesComeBeforeIt) {
  const TempDirectory nothing;
  const ProgramRun run = run_systole(
      {"reproduce", "survey", "--part", "analysis", "--json", "--stats", "a.json", "--plots", "p"},
      nothing.path(), {{"PATH", nothing.path()}});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.err, "systole: gnuplot: not found, expected it installed to draw pictures\n");
  EXPECT_EQ(document_of(run.out)["failed"], 0);
  EXPECT_EQ(read_file(nothing.path("a.json")), run.out);
}

TEST(ReproductionSummary, AddsUpWhatSeveralFound) {
  const auto row = [](double ours, Claim claim) {
    Published published{10.0, "x", Source("somewhere", claim), kExactly, {}};
    return compare("row", ours, published);
  };
  Reproduction a, b;
  a.name = "first";
  b.name = "second";
  a.wall_seconds = 1.0;
  b.wall_seconds = 2.5;
  a.sections = {{"s", {}, {row(10, Claim::kPublished), row(11, Claim::kPublished)}, {}}};
  b.sections = {{"t", {}, {row(10, Claim::kFollows), row(9, Claim::kMeasured)}, {}}};
  const nlohmann::ordered_json document = summary_json({a, b});
  EXPECT_EQ(document["passed"], 2);
  EXPECT_EQ(document["failed"], 1);
  EXPECT_EQ(document["by_class"]["published"]["failed"], 1);
  EXPECT_EQ(document["by_class"]["follows"]["passed"], 1);
  EXPECT_EQ(document["wall_seconds"], 3.5);
  ASSERT_EQ(document["reproductions"].size(), 2U);
  EXPECT_EQ(document["reproductions"][1]["name"], "second");
  const std::string text = summary_text({a, b});
  EXPECT_THAT(text, HasSubstr("first        1 of 2      0 of 0   0 of 0     1          0  1.0 s"));
  EXPECT_THAT(text, HasSubstr("all          1 of 2      0 of 0   1 of 1     1          1  3.5 s"));
}

TEST_F(Reproduce, DeitTinyHasItsPublishedFigures) {
  const std::string mask = shared_data("vitcod/deit_tiny_0.95_pruned.npy");
  if (mask.empty()) GTEST_SKIP() << "NOT TESTED: DeiT-Tiny, no mask of it";
  const ProgramRun run = run_systole({"reproduce", "vitcod", "--mask", mask, "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.out << run.err;
  const json document = document_of(run.out);
  EXPECT_GE(document["passed"], 11);
  EXPECT_EQ(row_of(document, "best columns, a column per line")["ours"], 11080);
  EXPECT_EQ(row_of(document, "Q, K and V read")["verdict"], "pass");
  EXPECT_GT(row_of(document, "DeiT-Tiny: attention faster")["ours"],
            row_of(document, "DeiT-Tiny: network faster")["ours"]);
  // 197 x 197 scores of 64 products in each of 36 heads, on 512 MACs.
  EXPECT_EQ(row_of(document, "Sanger: prediction")["ours"], 36 * 4852);
  EXPECT_NEAR(row_of(document, "mask: Sanger")["ours"].get<double>(), 8.38, 0.01);
  EXPECT_NEAR(row_of(document, "mask: SpAtten")["ours"].get<double>(), 10.85, 0.01);
}

}  // namespace
}  // namespace systole::testbench
