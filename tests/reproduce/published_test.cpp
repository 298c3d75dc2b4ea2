#include "reproduce/published.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "base/error.h"
#include "hw/description/toml_text.h"
#include "support/input_error.h"
#include "support/paths.h"
#include "support/program/program_run.h"
#include "support/temp_directory.h"

namespace systole::testbench {
namespace {

using Kind = Tolerance::Kind;

const std::string kSource = "\n[sources]\npaper = { text = 'a paper', class = 'calibrated' }\n";

PublishedPaper parse(const std::string& text) {
  return PublishedPaper::parse(text + kSource, "here.toml");
}

Published figure(const std::string& keys) {
  return parse("[figures]\nx = { source = 'paper', " + keys + " }\n").figure("x");
}

void expect_tolerance(const std::string& keys, Kind kind, double amount) {
  const std::optional<Tolerance> tolerance = figure(keys).tolerance;
  ASSERT_TRUE(tolerance) << keys;
  EXPECT_EQ(tolerance->kind, kind) << keys;
  EXPECT_NEAR(tolerance->amount, amount, 1e-6 * amount) << keys;
}

TEST(Published, FiguresSayValueUnitSourceAndTolerance) {
  const Published one = figure("value = 43.5, unit = 'MB', tolerance = '5 %', decimals = 1");
  EXPECT_EQ(one.value, 43.5);
  EXPECT_EQ(one.unit, "MB");
  EXPECT_EQ(one.source.text, "a paper");
  EXPECT_EQ(one.source.claim, Claim::kCalibrated);
  EXPECT_EQ(one.decimals, 1);
  EXPECT_FALSE(figure("value = 1, unit = 'x'").tolerance);
  EXPECT_FALSE(figure("value = 1, unit = 'x', tolerance = 'none'").tolerance);
  expect_tolerance("value = 1, unit = 'x', tolerance = 'equal'", Kind::kRelative, 0.0);
  expect_tolerance("value = 1, unit = 'x', tolerance = 'at most'", Kind::kAtMost, 0.0);
  expect_tolerance("value = 1, unit = 'x', tolerance = 'at least'", Kind::kAtLeast, 0.0);
  expect_tolerance("value = 200, unit = '%', tolerance = '5 %'", Kind::kRelative, 0.05);
  expect_tolerance("value = 200, unit = '%', tolerance = '4 points'", Kind::kAbsolute, 4.0);
  expect_tolerance("value = 200, unit = 'MB', tolerance = '0.05 MB'", Kind::kAbsolute, 0.05);
  const std::string printed = "value = -200, unit = 'MB', decimals = 2, tolerance = 'printed";
  expect_tolerance(printed + "'", Kind::kAbsolute, 0.005);
  expect_tolerance(printed + " + 0.1 %'", Kind::kAbsolute, 0.205);
}

TEST(Published, AFigureWithoutAValueGetsItFromTheProgram) {
  const PublishedPaper paper =
      parse("[figures]\nbound = { unit = 'ms', source = 'paper', tolerance = 'at least' }\n");
  EXPECT_EQ(paper.figure("bound", 7.0).value, 7.0);
  EXPECT_EQ(paper.figure("bound", 7.0).tolerance->kind, Kind::kAtLeast);
  EXPECT_THROW((void)paper.figure("bound"), hw::InputError);
  EXPECT_THROW((void)paper.figure("other"), hw::InputError);
}

TEST(Published, ATableGivesItsCellsWhatItsColumnsSay) {
  const PublishedPaper paper = parse(R"(
[tables.costs]
source = "paper"
tolerance = "printed"
decimals = 2
columns = [{ name = "FLOPs", unit = "GFLOP" }, { name = "bytes", unit = "GB", tolerance = "equal" }]
rows = [["l=128", 7.25, 4], ["l=512", { value = 0.006, decimals = 3, tolerance = "none" }, ""]]
)");
  const PublishedTable& table = paper.table("costs");
  const std::vector<ResultRow> first = table.compare_row("l=128", {7.254, 5});
  ASSERT_EQ(first.size(), 2U);
  EXPECT_EQ(first[0].name, "l=128: FLOPs");
  EXPECT_EQ(first[0].verdict(), Verdict::kPass);
  EXPECT_EQ(first[1].name, "l=128: bytes");
  EXPECT_EQ(first[1].unit, "GB");
  EXPECT_EQ(first[1].verdict(), Verdict::kFail);
  const std::vector<ResultRow> second = table.compare_row("l=512", {0.006, 5});
  EXPECT_EQ(second[0].verdict(), Verdict::kReference);
  EXPECT_EQ(second[0].decimals, 3);
  EXPECT_FALSE(second[1].published) << "nothing was printed";
  EXPECT_EQ(second[1].ours, 5);
  EXPECT_EQ(table.value("l=128", "bytes"), 4);
  const auto refused = [](const auto& use, const std::string& error) {
    const std::string what = input_error_of([&] { use(); });
    EXPECT_EQ(what, "here.toml: tables.costs: found " + error);
  };
  refused([&] { (void)table.row("l=256"); }, "no row 'l=256', expected it");
  refused([&] { (void)table.value("l=128", "ops"); }, "no column 'ops', expected it");
  refused([&] { (void)table.value("l=512", "bytes"); }, "no number in row 'l=512', column 'bytes'");
  refused([&] { (void)table.compare_row("l=128", {1}); }, "2 columns, expected 1");
}

constexpr const char* kSection = R"(
[figures]
bound = { unit = "ms", source = "paper", tolerance = "at least" }
[sections.times]
title = "Times of {network}"
notes = ["On {cores} cores."]
unit = "ms"
source = "paper"
tolerance = "5 %"
rows = [
  { name = "{network}: all", metric = "all", figure = 10 },
  { name = "first", metric = "first", figure = { value = 2, unit = "us" } },
  { name = "beside its bound", metric = "all", figure = "bound", value = "least" },
  { name = "last", metric = "first", unit = "ns" },
  { name = "of others", figure = 3 },
]
)";

TEST(Published, ASectionHasItsRowsInOrderAndItsTextFilled) {
  const PublishedPaper paper = parse(kSection);
  const ReproductionSection section = paper.section(
      "times", {{"all", 10.4}, {"first", 3}, {"least", 9}}, {{"network", "net"}, {"cores", "4"}});
  EXPECT_EQ(section.title, "Times of net");
  EXPECT_EQ(section.notes, std::vector<std::string>{"On 4 cores."});
  ASSERT_EQ(section.rows.size(), 5U);
  EXPECT_EQ(section.rows[0].name, "net: all");
  EXPECT_EQ(section.rows[0].verdict(), Verdict::kPass);
  EXPECT_EQ(section.rows[1].unit, "us");
  EXPECT_EQ(section.rows[1].verdict(), Verdict::kFail);
  EXPECT_EQ(section.rows[2].published, 9);
  EXPECT_EQ(section.rows[2].bound(), "at least");
  EXPECT_FALSE(section.rows[3].published);
  EXPECT_EQ(section.rows[3].source, "");
  EXPECT_FALSE(section.rows[4].ours);
  EXPECT_EQ(section.rows[4].published, 3);
}

TEST(Published, AMetricThatARunDoesNotHaveClaimsNothing) {
  const PublishedPaper paper = parse(R"(
[sections.times]
title = "Times"
unit = "ms"
source = "paper"
rows = [
  { name = "measured", metric = "none", unit = "ms" },
  { name = "reference", metric = "none", figure = 2 },
  { name = "met", metric = "none", figure = { value = 2, tolerance = "5 %" } },
]
)");
  const ReproductionSection section =
      paper.section("times", {{"none", std::numeric_limits<double>::quiet_NaN()}});
  ASSERT_EQ(section.rows.size(), 2U);
  EXPECT_EQ(section.rows[0].name, "reference");
  EXPECT_FALSE(section.rows[0].ours);
  EXPECT_EQ(section.rows[0].published, 2);
  EXPECT_EQ(section.rows[1].verdict(), Verdict::kFail);
}

TEST(Published, ASectionTakesExactlyWhatItNames) {
  const PublishedPaper paper = parse(kSection);
  const TextArguments text{{"network", "net"}, {"cores", "4"}};
  const Metrics metrics{{"all", 1}, {"first", 1}, {"least", 1}};
  const auto refused = [&](const Metrics& ours, const TextArguments& words,
                           const std::string& expected) {
    const std::string what = input_error_of([&] { (void)paper.section("times", ours, words); });
    EXPECT_EQ(what, "here.toml: sections.times: found " + expected);
  };
  refused({{"all", 1}, {"first", 1}}, text, "metric 'least', which the program does not compute");
  refused({{"all", 1}, {"first", 1}, {"least", 1}, {"more", 1}}, text,
          "no use of 'more', expected one");
  refused(metrics, {{"network", "net"}}, "{cores}, which the program does not fill");
  refused(metrics, {{"network", "net"}, {"cores", "4"}, {"x", "y"}}, "no use of 'x', expected one");
  EXPECT_THROW((void)paper.section("others"), hw::InputError);
}

struct BadPaper {
  const char* text;
  const char* error;  ///< after "here.toml:"
};

TEST(Published, HostileFilesAreRefusedInOneLine) {
  const std::string deep = "x = " + std::string(5000, '[');
  const std::string dots = "a" + std::string(40, '.');
  const std::vector<BadPaper> cases = {
      {"[figures", "1:9: not valid TOML"},
      {deep.c_str(), "1:"},
      {dots.c_str(), "1:18: found more than 16 dots"},
      {"x = 1", "1:5: keys: found 'x', expected one of inputs, sources, figures, tables, sections"},
      {"figures = 1", "1:11: figures: found 1, expected a table"},
      {"figures.x = 1", "1:13: figures.x: found 1, expected a table"},
      {"[figures]\nx = { value = 1, unit = 'x' }", "2:5: figures.x: found no source"},
      {"[figures]\nx = { value = 1, source = 'paper' }", "2:5: figures.x: found no unit"},
      {"[figures]\nx = { value = nan, unit = 'x', source = 'paper' }", "2:15: figures.x.value: "},
      {"[figures]\nx = { value = 1, unit = 'x', source = 'p' }",
       "2:39: figures.x.source: found \"p\", expected a key of [sources]"},
      {"[figures]\nx = { value = 1, unit = 'x', source = { text = 'a', class = 'b' } }",
       "2:61: figures.x.source.class: found \"b\", expected published, calibrated, follows, "
       "estimate, measured here or recollected"},
      {"[figures]\nx = { value = 1, unit = 'x', source = 'paper', tolerence = 'equal' }",
       "2:60: figures.x: found 'tolerence', expected one of value, unit, source, tolerance"},
      {"[figures]\n\"x\\n\" = 1", "2:9: figures.x\\x0a: found 1, expected a table"},
      {"[figures]\nx = { value = 1, unit = \"a\\nb\", source = 'paper' }",
       "figures.x.unit: found \"a\\x0ab\", expected a text of one line"},
      {"[figures]\nx = { value = 1, unit = 'x', source = 'paper', decimals = 10 }",
       "figures.x.decimals: found 10, expected an integer (0 to 9)"},
      {"[tables.x]\nunit = 'x'\nsource = 'paper'\ncolumns = ['a']\nrows = [['b', 1, 2]]",
       "tables.x.rows: found 3 cells, expected a name and 1 numbers"},
      {"[tables.x]\nunit = 'x'\nsource = 'paper'\ncolumns = ['a']\nrows = [['b', 'c']]",
       "tables.x.b: found \"c\", expected a number"},
      {"[tables.x]\nunit = 'x'\nsource = 'paper'\ncolumns = ['a']\nrows = [['b', {}]]",
       "tables.x.b: found no value"},
      {"[tables.x]\ncolumns = ['a']\nrows = [[]]", "tables.x.rows: found 0 cells"},
      {"[sections.x]\nnotes = []", "sections.x: found no title"},
      {"[sections.x]\ntitle = 'x'\nrows = [{ name = 'a', metric = 'b' }]",
       "sections.x.rows: found neither figure nor unit"},
      {"[sections.x]\ntitle = 'x'\nrows = [{ name = 'a', unit = 'b' }]",
       "sections.x.rows: found neither figure nor metric"},
      {"[sections.x]\ntitle = 'x'\nrows = [{ name = 'a', figure = 'b' }]",
       "sections.x.rows.figure: found \"b\", expected a key of [figures]"},
      {"[sections.x]\ntitle = 'x'\nunit = 'x'\nsource = 'paper'\nrows = [{ name = 'a', figure = {} "
       "}]",
       "sections.x.rows: found no value, or two"},
      {"inputs = [{ name = 'a' }]", "inputs: found no text, expected one"},
  };
  for (const auto& [text, expected] : cases) {
    const std::string what = input_error_of([&given = text] { (void)parse(given); });
    EXPECT_EQ(what.rfind("here.toml:", 0), 0U) << what;
    EXPECT_NE(what.find(expected), std::string::npos) << what << "\nfor " << expected;
    EXPECT_EQ(what.find('\n'), std::string::npos) << what;
  }
  for (const char* tolerance : {"5", "5%", "5 MB", "4 points", "-5 %", "inf %", "printed", "about",
                                "printed + 1 x", "", "5 %%"}) {
    EXPECT_THROW(
        (void)figure(std::string("value = 1, unit = 'x', tolerance = '") + tolerance + "'"),
        hw::InputError)
        << tolerance;
  }
  EXPECT_THROW((void)parse(std::string(PublishedPaper::kMaxFile, '#')), hw::InputError);
}

/// All sources of the room.
std::string sources_of_reproduce() {
  std::string text;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(source_path("reproduce"))) {
    if (entry.path().extension() == ".cpp") text += read_file(entry.path());
  }
  return text;
}

TEST(Published, EveryFigureTableAndSectionOfTheFilesIsUsed) {
  const std::string sources = sources_of_reproduce();
  std::size_t checked = 0;
  for (const auto& file : std::filesystem::directory_iterator(source_path("traces/published"))) {
    const std::string text = read_file(file.path());
    (void)PublishedPaper::parse(text, file.path());
    const toml::table root = hw::parse_toml(text, file.path(), PublishedPaper::kMaxFile, "");
    for (const char* kind : {"figures", "tables", "sections"}) {
      if (!root.contains(kind)) continue;
      for (auto&& [name, node] : *root.get(kind)->as_table()) {
        const std::string key(name.str());
        const auto is_named = [&](const std::string& form) {
          return sources.find("\"" + form + "\"") != std::string::npos;
        };
        const bool in_a_row = text.find("figure = \"" + key + "\"") != std::string::npos;
        const std::string made = std::regex_replace(key, std::regex("[0-9]+"), "{}");
        EXPECT_TRUE(in_a_row || is_named(key) || is_named(made))
            << file << ": " << kind << "." << key;
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 40U);
}

TEST(Published, TheFileOfAReportIsThatOfTheDataDirectory) {
  const TempDirectory directory;
  const auto refused = [&](const std::string& expected) {
    const ProgramRun run =
        run_systole({"reproduce", "fusion"}, ".", {{"SYSTOLE_DATA", directory.path()}});
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_EQ(run.out, "");
    EXPECT_EQ(run.err,
              "systole: " + directory.path("published/fusion.toml") + ":" + expected + "\n");
  };
  refused(" found no such file, expected figures that others published");
  std::filesystem::create_directory(directory.path("published"));
  directory.write("published/fusion.toml", "figures = 1\n");
  refused("1:11: figures: found 1, expected a table");
}

}  // namespace
}  // namespace systole::testbench
