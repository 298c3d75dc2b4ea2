/// The page of --report in a browser. Without Chromium (Debian: chromium) these tests are skipped.
#include "support/program/browser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "hw/description/machine_file.h"
#include "support/program/program_run.h"
#include "support/temp_directory.h"
#include "testbench/page/report_page.h"
#include "testbench/wave/timeline.h"

namespace systole::testbench {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::IsEmpty;

class ReportInABrowser : public testing::Test {
 protected:
  void SetUp() override {
    if (test::chromium_path().empty()) {
      GTEST_SKIP() << "NO BROWSER: /usr/bin/chromium is missing (apt-get install chromium), so "
                      "nothing of this test was checked; CHROMIUM=PATH names another one";
    }
  }
  /// Runs a command with --report and --stats, and gives its document.
  json report_of(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--report", page, "--json"});
    return document_of(output_of(arguments));
  }
  /// Opens the page; it may not complain or ask for anything.
  double open(test::Browser& browser) {
    const double ms = browser.open(page);
    EXPECT_THAT(browser.errors(), IsEmpty());
    EXPECT_THAT(browser.requests(), IsEmpty());
    return ms;
  }
  /// The document of a comparison of two machines, whose page is written.
  json compared() {
    const std::string a = directory.path("a.json"), b = directory.path("b.json");
    const std::vector<std::string> run{"run", "-m", "transformer",  "--model", "vit17",
                                       "-n",  "1",  "--functional", "off",     "--stats"};
    std::vector<std::string> first = run, second = run;
    first.push_back(a);
    second.insert(second.end(), {b, "--set", "array.cols=32"});
    output_of(first);
    output_of(second);
    return report_of({"compare", a, b});
  }
  /// The texts of a table's cells in the section `id`, row by row.
  static json cells(test::Browser& browser, const std::string& id) {
    return browser.evaluate("[...document.querySelector('#" + id +
                            "').closest('section').querySelectorAll('tbody tr')]"
                            ".map((row) => [...row.cells].map((cell) => cell.textContent))");
  }

  TempDirectory directory;
  std::string page = directory.path("run.html");
};

std::string with_commas(std::uint64_t value) {
  std::string text = std::to_string(value);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

TEST_F(ReportInABrowser, ShowsTheFiguresOfTheDocument) {
  const json document = report_of({"run", "-m", "transformer", "--model", "vit17", "-n", "1"});
  test::Browser browser;
  open(browser);
  EXPECT_EQ(browser.evaluate("document.title"), "vit17 on transformer");
  EXPECT_EQ(browser.evaluate("document.querySelector('.figure b').textContent"),
            with_commas(document["cycles"].get<std::uint64_t>()));
  // Operators, the largest first.
  std::vector<std::pair<std::uint64_t, std::string>> expected;
  for (const json& op : document["operators"]) {
    std::string name = op["name"];
    if (name.rfind("blocks.*.", 0) == 0) name.erase(0, 9);
    expected.emplace_back(op["simulated_cycles"].get<std::uint64_t>(), name);
  }
  std::stable_sort(expected.begin(), expected.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  const json rows = cells(browser, "operators");
  ASSERT_EQ(rows.size(), expected.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i][0], expected[i].second);
    EXPECT_EQ(rows[i][2], with_commas(expected[i].first));
  }
  // Every key of the machine, and nothing else.
  std::size_t keys = 0;
  for (const auto& [name, section] : document["machine_keys"].items()) {
    keys += section.is_object() ? section.size() : name == "summary" ? 0U : 1U;
  }
  EXPECT_EQ(cells(browser, "machine").size(), keys);
}

TEST_F(ReportInABrowser, ShowsPublishedFiguresAndPictures) {
  const auto row = [](const char* name, double ours, json published, const char* verdict,
                      const char* claim) {
    return nlohmann::ordered_json{{"section", "A table"},  {"name", name},
                                  {"ours", ours},          {"published", published},
                                  {"unit", "x"},           {"difference", 0.25},
                                  {"bound", "within 5 %"}, {"verdict", verdict},
                                  {"class", claim},        {"source", "a paper"}};
  };
  const nlohmann::ordered_json counts{{"passed", 1}, {"failed", 1}};
  nlohmann::ordered_json document{
      {"name", "vitcod"},
      {"failed", 1},
      {"wall_seconds", 2.0},
      {"by_class", {{"published", counts}, {"calibrated", counts}, {"follows", counts}}},
      {"sections", nlohmann::ordered_json::array()},
      {"rows", nlohmann::ordered_json::array()},
      {"pictures", nlohmann::ordered_json::array()}};
  document["sections"].push_back({{"title", "A table"}, {"notes", {"How it came about."}}});
  document["rows"].push_back(row("first", 1234, 1000, "fail", "published"));
  document["rows"].push_back(row("second", 2.5, 2, "reference", "measured here"));
  // The smallest PNG there is: one pixel.
  document["pictures"].push_back(
      {{"name", "p.png"},
       {"png",
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU"
        "5ErkJggg=="}});
  nlohmann::ordered_json documents = nlohmann::ordered_json::array();
  documents.push_back(document);
  ReportPage(page).write_reproductions(documents);
  test::Browser browser;
  browser.open(page);
  EXPECT_THAT(browser.errors(), IsEmpty());
  EXPECT_THAT(browser.requests(), testing::Each(testing::StartsWith("data:image/png")));
  EXPECT_EQ(browser.evaluate("document.title"), "Published figures beside ours");
  const json verdicts = cells(browser, "verdicts");
  ASSERT_EQ(verdicts.size(), 1U);
  EXPECT_EQ(verdicts[0], json({"vitcod", "1 of 2", "1 of 2", "1 of 2", "1", "1", "2"}));
  const json rows = cells(browser, "vitcod-a-table");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0], json({"first", "1,234", "1,000", "x", "25.0%", "FAILS published, within 5 %",
                           "a paper"}));
  EXPECT_EQ(rows[1][5], "measured here");
  EXPECT_EQ(browser.evaluate("[...document.images].map((image) => image.naturalWidth)"), json({1}));
}

TEST_F(ReportInABrowser, SortsByAColumn) {
  report_of({"run", "-m", "transformer", "--model", "vit17", "-n", "1"});
  test::Browser browser;
  open(browser);
  const std::string title =
      "document.querySelector('#operators').closest('section')"
      ".querySelectorAll('th')[0]";
  const auto names = [&] {
    std::vector<std::string> found;
    for (const json& row : cells(browser, "operators")) found.push_back(row[0]);
    return found;
  };
  const std::vector<std::string> before = names();
  browser.evaluate(title + ".click()");
  const std::vector<std::string> up = names();
  browser.evaluate(title + ".click()");
  std::vector<std::string> down = names();
  EXPECT_NE(up, before);
  std::reverse(down.begin(), down.end());
  EXPECT_EQ(up, down);
}

/// What the view of the timeline holds: `view` is the page's TimelineView.
constexpr const char* kTimes = R"(JSON.stringify((() => {
  const rows = {};
  for (const row of view.data.shown) {
    const sum = (waits) => row.slices.filter((s) => s.waits === waits)
        .reduce((sum, s) => sum + s.args.cycles, 0);
    rows[row.name] = {busy: sum(false), waits: sum(true)};
  }
  return {rows, arrows: view.data.arrows.length, boxes: view.boxes.length};
})()))";

TEST_F(ReportInABrowser, TimelineHasEverySliceAndThinsWhatIsDrawn) {
  const json document = report_of({"run", "-m", "transformer", "--model", "vit65", "-n", "1",
                                   "--timeline", directory.path("t.json")});
  test::Browser browser;
  open(browser);
  std::map<std::string, int> events;
  const json timeline = json::parse(read_file(directory.path("t.json")));
  for (const json& event : timeline["traceEvents"]) ++events[event["ph"]];
  EXPECT_EQ(browser.evaluate("[view.data.count, view.data.arrows.length]"),
            json({events["X"], events["s"]}));
  const json times = json::parse(browser.evaluate(kTimes).get<std::string>());
  const json& array = document["blocks"]["array"];
  const json& stalled = array["stalled"];
  EXPECT_EQ(times["rows"]["array"]["waits"].get<std::uint64_t>(),
            stalled["wait_load"].get<std::uint64_t>() +
                stalled["wait_compute"].get<std::uint64_t>() +
                stalled["wait_store"].get<std::uint64_t>());
  EXPECT_GT(times["arrows"], 100);
  EXPECT_LT(times["boxes"], browser.evaluate("view.data.count"));
  // Whatever the zoom, the time that a row's boxes cover is that of its slices, but for gaps of
  // less than a pixel; at the closest zoom each box is a slice.
  const std::string covers = R"((() => {
    const row = view.data.shown.find((row) => row.name === "array");
    const inside = row.slices.reduce((sum, s) =>
        sum + Math.max(0, Math.min(s.end, view.to) - Math.max(s.begin, view.from)), 0);
    const boxes = view.boxes.filter((box) => box.slice.row === row);
    const drawn = boxes.reduce((sum, box) =>
        sum + Math.max(0, Math.min(box.end, view.to) - Math.max(box.begin, view.from)), 0);
    return [inside, drawn, Math.max(...view.boxes.map((box) => box.count)), boxes.length];
  })())";
  const json far = browser.evaluate(covers);
  EXPECT_GE(far[1].get<double>(), far[0].get<double>() * 0.999999);
  EXPECT_LT(far[1].get<double>(), far[0].get<double>() * 1.2);
  EXPECT_GT(far[2], 1);
  browser.evaluate("view.zoom(50, 51)");
  browser.evaluate("new Promise((done) => setTimeout(done, 200))");
  const json near = browser.evaluate(covers);
  EXPECT_NEAR(near[1].get<double>(), near[0].get<double>(), 1e-6);
  EXPECT_EQ(near[2], 1);
  EXPECT_GT(near[3], 1);
  EXPECT_THAT(browser.errors(), IsEmpty());
}

TEST_F(ReportInABrowser, TracksAddUpToTheDocument) {
  const json document = report_of({"run", "-m", "transformer", "--model", "vit65", "-n", "1"});
  test::Browser browser;
  open(browser);
  // Of all parts of the whole run: rate times time.
  const json sums = browser.evaluate(R"((() => {
    const span = view.to - view.from;
    const [[array], [memory]] = view.trackPoints(view.from, view.to);
    const mean = (points) => points.reduce((sum, p) => sum + p[1], 0) / points.length;
    return [mean(array) / 100 * view.peak * span, mean(memory) * 1e3 * span];
  })())");
  EXPECT_NEAR(sums[0].get<double>(), document["macs"].get<double>(), 1.0);
  const json& processor = document["blocks"]["command_processor"]["counters"];
  EXPECT_NEAR(sums[1].get<double>(),
              document["dram_read_bytes"].get<double>() +
                  document["dram_write_bytes"].get<double>() -
                  processor["fetched_bytes"].get<double>(),
              1.0);
}

// No moment shows more than the bus can carry, both directions together.
TEST_F(ReportInABrowser, MemoryTrackStaysBelowTheBus) {
  for (const char* model : {"vit17", "vit65"}) {
    const json document = report_of({"run", "-m", "transformer", "--model", model, "-n", "1"});
    test::Browser browser;
    open(browser);
    const double limit = document["roofline"]["bus_bytes_per_cycle"].get<double>() *
                         document["machine_keys"]["core"]["clock_mhz"].get<double>() * 1e-3;
    const std::string most = R"((() => {
      let most = 0;
      for (let from = view.data.begin; from < view.data.end; from += 5) {
        for (const point of view.trackPoints(from, from + 5)[1][0]) most = Math.max(most, point[1]);
      }
      return most;
    })())";
    const double both = browser.evaluate(most);
    EXPECT_LE(both, 2 * limit * 1.000001) << model;
    // Loads use one of its channels.
    browser.evaluate("void (view.units = view.units.filter((row) => row.name === 'load'))");
    const double loads = browser.evaluate(most);
    EXPECT_LE(loads, limit * 1.000001) << model;
    EXPECT_GT(loads, 0.5 * limit) << model;
  }
}

// A run of boxes that is drawn again for other slices: each has its own text or none.
TEST_F(ReportInABrowser, BoxesOfAnyZoomHaveTheTextOfTheirSlice) {
  report_of({"run", "-m", "transformer", "--model", "vit65", "-n", "1"});
  test::Browser browser;
  open(browser);
  for (const char* span : {"8, 16", "40, 44", "0, 200", "60, 61"}) {
    browser.evaluate("view.zoom(" + std::string(span) + ")");
    browser.evaluate("new Promise((done) => setTimeout(done, 200))");
    const json texts = browser.evaluate(R"((() => {
      const wrong = [];
      for (const element of view.chart.getZr().storage.getDisplayList()) {
        const box = element.parent && element.parent.__hostTarget;
        if (element.type !== "tspan" || !box || box.type !== "rect") continue;
        if (box.shape.width < 40) wrong.push(element.style.text);
      }
      return wrong;
    })())");
    EXPECT_TRUE(texts.empty()) << span << ": " << texts;
  }
}

TEST_F(ReportInABrowser, FindsOperatorsInTheTimeline) {
  report_of({"run", "-m", "transformer", "--model", "vit17", "-n", "1"});
  test::Browser browser;
  open(browser);
  browser.evaluate(R"((() => {
    const search = document.querySelector("input[type=search]");
    search.value = "MLP.fc1";
    search.dispatchEvent(new Event("input"));
    search.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter"}));
  })())");
  browser.evaluate("new Promise((done) => setTimeout(done, 200))");
  const json found = browser.evaluate(
      "[view.matches.length, view.matches.every((s) => s.name.includes('mlp.fc1')),"
      " view.from < view.matches[0].begin && view.to > view.matches[0].end,"
      " view.to - view.from < (view.data.end - view.data.begin) / 2,"
      " document.querySelector('.detail b').textContent.includes('mlp.fc1')]");
  EXPECT_GT(found[0], 4);
  for (std::size_t i = 1; i < found.size(); ++i) EXPECT_EQ(found[i], true) << i;
}

TEST_F(ReportInABrowser, FlameGraphOfAPathIsItsCycles) {
  const json document =
      report_of({"explain", "-m", "transformer", "--model", "vit17", "--no-what-if"});
  test::Browser browser;
  open(browser);
  const json sums = browser.evaluate(R"((() => {
    const tree = pathTree(JSON.parse(document.getElementById("data").textContent).explanation);
    const leaves = (node) => node.children ?
        node.children.reduce((sum, child) => sum + leaves(child), 0) : node.value;
    const wrong = (node) => node.children ? node.children.reduce((sum, child) => sum + wrong(child),
        leaves(node) === node.value ? 0 : 1) : 0;
    return [tree.value, leaves(tree), wrong(tree)];
  })())");
  EXPECT_THAT(sums, ElementsAre(document["cycles"], document["cycles"], 0));
  // The bars of each level fill the whole, but for parts too small to be drawn; a click on one
  // makes it the whole.
  const std::string levels = R"((() => {
    const flame = charts.map((c) => c.chart)
        .find((c) => c.getDom().getAttribute("aria-label") === "Flame graph");
    const sums = [0, 0, 0, 0];
    for (const [level, from, to] of flame.getOption().series[0].data) sums[level] += to - from;
    return sums;
  })())";
  const json fills = browser.evaluate(levels);
  for (const json& level : fills) EXPECT_NEAR(level.get<double>(), 1.0, 0.02) << fills;
  const json gaps = browser.evaluate(R"((() => {
    const flame = charts.map((c) => c.chart)
        .find((c) => c.getDom().getAttribute("aria-label") === "Flame graph");
    const ends = [0, 0, 0, 0];
    let most = 0;
    for (const [level, from, to] of flame.getOption().series[0].data) {
      most = Math.max(most, Math.abs(from - ends[level]));
      ends[level] = to;
    }
    return most;
  })())");
  EXPECT_LT(gaps.get<double>(), 0.01) << "each bar begins where the one before it ends";
}

TEST_F(ReportInABrowser, OpensForEveryCommand) {
  test::Browser browser;
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"matmul", "32x32x64", "-m", "gemmini"},
           {"matmul", "64x64x64", "-m", "ita"},
           {"layer", "-m", "ita", "--tokens", "64"},
           {"attention", "-m", "vitcod", "--tokens", "65", "--heads", "2"},
           {"generate", "--model", "gpt2", "--functional", "off", "--cores", "2", "--input-tokens",
            "1", "--output-tokens", "1"},
           {"explain", "-m", "tiny", "--model", "vit17", "--confirm", "1"},
           {"run", "-m", "gemmini-firesim", "--model", "vit17", "-n", "1"},
           {"run", "-m", "transformer", "--model", "gpt2", "--layers", "1", "--length", "2",
            "--decode", "--functional", "off"}}) {
    SCOPED_TRACE(testing::PrintToString(arguments));
    const json document = report_of(arguments);
    open(browser);
    EXPECT_EQ(browser.evaluate("JSON.parse(document.getElementById('data').textContent)"
                               ".statistics.machine"),
              document["machine"]);
    EXPECT_GT(browser.evaluate("document.querySelectorAll('.chart').length +"
                               "document.querySelectorAll('.figure').length"),
              3);
  }
}

/// A document with another text in the place of `name`, wherever that is a part of one.
json renamed(const json& document, const std::string& name, const std::string& other) {
  json changed = document;
  if (changed.is_string()) {
    std::string text = changed;
    for (std::size_t at = text.find(name); at != std::string::npos;
         at = text.find(name, at + other.size())) {
      text.replace(at, name.size(), other);
    }
    return text;
  }
  if (!changed.is_structured()) return changed;
  for (auto& inner : changed) inner = renamed(inner, name, other);
  return changed;
}

// Names come from the files of others: they are text everywhere.
TEST_F(ReportInABrowser, ForeignNamesAreText) {
  const std::string hostile =
      "</script><!--<script><img src=x onerror=\"document.title='hit'\">{a|b}'&amp;";
  const std::vector<std::string> vit{"-m", "transformer", "--model", "vit17"};
  std::vector<std::string> run{"run", "-n", "1"}, explain{"explain", "--no-what-if"};
  run.insert(run.end(), vit.begin(), vit.end());
  explain.insert(explain.end(), vit.begin(), vit.end());
  const auto hostile_of = [&](const json& document) {
    return nlohmann::ordered_json(
        renamed(renamed(document, "blocks.*.attn.qkv", hostile), "vit17", hostile));
  };
  {
    ReportPage report(page);
    EventWriter events(report.timeline(), 1000);
    events.name_row({0, 0}, "load");
    events.slice({0, 0}, 0, 10, json(hostile).dump(), R"("cycles":10)");
    events.end();
    report.write(hw::find_machine("transformer"), hostile_of(json_of(run)),
                 hostile_of(json_of(explain)));
  }
  test::Browser browser;
  open(browser);
  EXPECT_EQ(browser.evaluate("document.title"), hostile + " on transformer");
  EXPECT_EQ(browser.evaluate("document.querySelectorAll('img, b img, script').length"), 4)
      << "the page's own scripts and data alone";
  std::vector<std::string> names;
  for (const json& row : cells(browser, "operators")) names.push_back(row[0]);
  EXPECT_THAT(names, testing::Contains(hostile));
  // In tooltips and details too, which are made when they are asked for.
  EXPECT_EQ(browser.evaluate(R"((() => {
    const tip = document.createElement("div");
    tip.innerHTML = view.tip({seriesId: "slices", dataIndex: 0});
    view.show(view.boxes[0].slice);
    return [tip.querySelectorAll("img, script").length, tip.querySelector("b").textContent,
            document.querySelector(".detail b").textContent];
  })())"),
            json({0, hostile, "load: " + hostile}));
  {
    json comparison = compared();
    ReportPage(page).write_comparison(hostile_of(comparison));
  }
  open(browser);
  EXPECT_EQ(browser.evaluate("document.title"), hostile + ": two runs");
  EXPECT_EQ(browser.evaluate("document.querySelectorAll('img').length"), 0);
}

TEST_F(ReportInABrowser, ComparisonShowsBothRuns) {
  const json document = compared();
  test::Browser browser;
  open(browser);
  EXPECT_EQ(browser.evaluate("document.title"), "vit17: two runs");
  EXPECT_EQ(cells(browser, "machines"), json::parse(R"([["array.cols", "16", "32"]])"));
  const json operators = cells(browser, "operators");
  ASSERT_EQ(operators.size(), document["operators"].size());
  for (std::size_t i = 0; i < operators.size(); ++i) {
    const json& cycles = document["operators"][i]["cycles"];
    EXPECT_EQ(operators[i][1], with_commas(cycles["a"].get<std::uint64_t>()));
    EXPECT_EQ(operators[i][2], with_commas(cycles["b"].get<std::uint64_t>()));
  }
}

TEST_F(ReportInABrowser, PaperHasEveryChartAtItsWidth) {
  report_of({"run", "-m", "transformer", "--model", "vit17", "-n", "1"});
  test::Browser browser;
  open(browser);
  browser.evaluate(R"((() => {
    window.widths = [];
    addEventListener("beforeprint", () =>
        window.widths.push(...charts.map(({chart}) => chart.getWidth())));
  })())");
  EXPECT_GT(browser.print().size(), 20000U);
  const json widths = browser.evaluate("window.widths");
  ASSERT_GT(widths.size(), 4U);
  for (const json& width : widths) EXPECT_EQ(width, 680);
  EXPECT_GT(browser.evaluate("charts[0].chart.getWidth()"), 1000) << "back on the screen";
}

// A large page. How long it takes to open depends on the host: the figures are properties of the
// test's XML output and a separate line, no bounds.
TEST_F(ReportInABrowser, BertBaseAt512Opens) {
  report_of({"run", "-m", "transformer", "--model", "bert-base", "--length", "512", "--functional",
             "off"});
  test::Browser browser;
  const double ms = open(browser);
  const double seconds = browser.processor_seconds();
  RecordProperty("ms", std::to_string(ms));
  RecordProperty("processor_seconds", std::to_string(seconds));
  std::cout << "opens in " << ms / 1000.0 << " s, " << seconds << " s of processor time\n";
  EXPECT_GT(seconds, 0.1);
  EXPECT_GT(browser.evaluate("view.data.count"), 150000);
}

}  // namespace
}  // namespace systole::testbench
