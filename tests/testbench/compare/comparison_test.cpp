#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/documented_names.h"
#include "support/program/program_run.h"
#include "support/temp_directory.h"

namespace systole::testbench {
namespace {

using nlohmann::json;
using nlohmann::literals::operator""_json_pointer;

class CompareCommand : public testing::Test {
 protected:
  /// The statistics of a run without values.
  json run(const std::string& name, const std::vector<std::string>& more) {
    const Words arguments =
        words_of("run -m transformer --model vit17 --functional off --stats " + path(name), more);
    output_of(arguments);
    return json::parse(read_file(path(name)));
  }
  [[nodiscard]] std::string path(const std::string& name) const { return directory.path(name); }
  [[nodiscard]] json compared(const std::string& a, const std::string& b) const {
    return json_of({"compare", path(a), path(b)});
  }
  /// The refusal of `b` beside `a`, one line.
  [[nodiscard]] std::string refusal_of(const json& b) {
    directory.write("b.json", b.dump());
    const ProgramRun run =
        run_systole({"compare", path("a.json"), path("b.json"), "--report", path("none.html")});
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_EQ(run.out, "");
    EXPECT_EQ(run.err.find('\n'), run.err.size() - 1) << run.err;
    EXPECT_EQ(run.err.find("systole: "), 0U);
    for (const std::string& name : directory.names())
      EXPECT_EQ(name.find(".html"), std::string::npos);
    return run.err;
  }

  TempDirectory directory;
};

TEST_F(CompareCommand, SetsTheFiguresOfBothDocumentsBesideEachOther) {
  const json a = run("a.json", {"-n", "2"});
  const json b = run("b.json", {"-n", "1", "--set", "array.cols=32", "--set", "dram.channels=2"});
  const json comparison = compared("a.json", "b.json");
  EXPECT_EQ(comparison["model"], "vit17");
  EXPECT_EQ(comparison["files"], json({{"a", path("a.json")}, {"b", path("b.json")}}));
  EXPECT_EQ(comparison["machine_keys"], json::parse(R"([{"key": "array.cols", "a": 16, "b": 32},
                            {"key": "dram.channels", "a": 1, "b": 2}])"));
  EXPECT_EQ(comparison["totals"].size(), 10U);
  for (const json& total : comparison["totals"]) {
    const std::string name = total["name"];
    for (const auto& [side, document] : {std::pair{"a", &a}, std::pair{"b", &b}}) {
      const json& value = (*document)[name];
      if (value.is_null()) {
        EXPECT_TRUE(total[side].is_null()) << name;
      } else {
        EXPECT_EQ(total[side].get<double>(), value.get<double>()) << name;
      }
    }
  }
  ASSERT_EQ(comparison["operators"].size(), a["operators"].size());
  for (std::size_t i = 0; i < a["operators"].size(); ++i) {
    const json& line = comparison["operators"][i];
    for (const auto& [side, document] : {std::pair{"a", &a}, std::pair{"b", &b}}) {
      const json& op = (*document)["operators"][i];
      EXPECT_EQ(line["name"], op["name"]);
      EXPECT_EQ(line["cycles"][side].get<double>(), op["simulated_cycles"].get<double>());
      EXPECT_EQ(line["bytes"][side].get<double>(),
                op["read_bytes"].get<double>() + op["written_bytes"].get<double>());
      EXPECT_EQ(line["energy_joules"][side], op["energy_joules"]);
    }
  }
  for (const json& cause : comparison["energy"]) {
    EXPECT_EQ(cause["a"], a["energy"][cause["name"].get<std::string>()]);
    EXPECT_EQ(cause["b"], b["energy"][cause["name"].get<std::string>()]);
  }
}

TEST_F(CompareCommand, TimesOfBlocksArePerInference) {
  const json a = run("a.json", {"-n", "3"});
  const json b = run("b.json", {"-n", "1", "--set", "dram.channels=2"});
  double total = 0;
  std::size_t second_channel = 0;
  const json comparison = compared("a.json", "b.json");
  for (const json& stall : comparison["stalls"]) {
    const json& block = a["blocks"].value(stall["block"].get<std::string>(), json());
    if (block.is_null()) {
      EXPECT_EQ(stall["block"], "dram.channel1");
      EXPECT_TRUE(stall["a"].is_null());
      EXPECT_EQ(stall["unit"], "ps");
      ++second_channel;
      continue;
    }
    const std::string cause = stall["cause"];
    const json& time = cause == "busy" || cause == "idle" ? block[cause] : block["stalled"][cause];
    EXPECT_EQ(stall["a"].get<double>(), time.get<double>() / 3) << stall;
    if (stall["block"] == "array") total += stall["a"].get<double>();
  }
  EXPECT_EQ(second_channel, 8U) << "busy, six causes, idle";
  EXPECT_NEAR(total, a["blocks"]["array"]["total"].get<double>() / 3, 1e-6);
}

TEST_F(CompareCommand, ARunIsTheSameAsItself) {
  run("a.json", {"-n", "1"});
  const std::string text = output_of({"compare", path("a.json"), path("a.json")});
  EXPECT_NE(text.find("The machines have the same keys."), std::string::npos);
  EXPECT_EQ(text.find('%'), std::string::npos) << text;
  EXPECT_TRUE(compared("a.json", "a.json")["machine_keys"].empty());
}

TEST_F(CompareCommand, PrintsWhatChangesInPercent) {
  run("a.json", {"-n", "1"});
  json b = run("b.json", {"-n", "1"});
  b["cycles"] = b["cycles"].get<double>() * 1.25;
  b["energy_joules"] = 0;
  b["blocks"]["array"]["stalled"]["drain"] = 12345;
  b["operators"].erase(0);
  directory.write("b.json", b.dump());
  const std::string text = output_of({"compare", path("a.json"), path("b.json")});
  const auto line_of = [&](const std::string& begin) {
    const std::size_t at = text.find("\n" + begin);
    return at == std::string::npos ? "" : text.substr(at + 1, text.find('\n', at + 1) - at - 1);
  };
  EXPECT_NE(line_of("cycles ").find("+25.0%"), std::string::npos) << text;
  EXPECT_NE(line_of("energy_joules").find("gone"), std::string::npos) << text;
  EXPECT_NE(line_of("array.drain").find("12,345"), std::string::npos) << text;
  EXPECT_NE(line_of("patch_embed").find("- "), std::string::npos) << text;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    EXPECT_LE(end - at, 80U + 2) << text.substr(at, end - at);
    at = end + 1;
  }
}

TEST_F(CompareCommand, EnergyOfOperatorsIsUnknownBehindACache) {
  const json a = run("a.json", {"-n", "1"});
  const json b = run("b.json", {"-n", "1", "--set", "l2.kib=64"});
  double sum = 0;
  for (const json& op : a["operators"]) sum += op["energy_joules"].get<double>();
  const json& energy = a["energy"];
  EXPECT_NEAR(
      sum, energy["mac"].get<double>() + energy["bus"].get<double>() + energy["dram"].get<double>(),
      1e-3 * sum);
  const json comparison = compared("a.json", "b.json");
  EXPECT_EQ(comparison["operators"].size(), a["operators"].size());
  for (const json& op : comparison["operators"]) {
    EXPECT_TRUE(op["energy_joules"]["b"].is_null());
    EXPECT_TRUE(op["energy_joules"]["a"].is_number());
  }
}

TEST_F(CompareCommand, RefusesOtherVersionsAndNetworks) {
  const json a = run("a.json", {"-n", "1"});
  json b = a;
  b["schema_version"] = 2;
  EXPECT_NE(refusal_of(b).find("b.json: schema_version: found 2, expected 3"), std::string::npos);
  b = a;
  b["model"] = "vit65";
  EXPECT_NE(refusal_of(b).find("b.json: model: found \"vit65\", expected \"vit17\" as in "),
            std::string::npos);
  b = a;
  b["seeded"] = {{"layers", 2}};
  EXPECT_NE(refusal_of(b).find("b.json: seeded: found {\"layers\":2}, expected null as in "),
            std::string::npos);
  b = a;
  b["decode"] = {{"past", 7}};
  EXPECT_NE(refusal_of(b).find("b.json: decode: found {\"past\":7}"), std::string::npos);
}

TEST_F(CompareCommand, RefusesEveryDamagedDocument) {
  const json a = run("a.json", {"-n", "1"});
  for (const char* name :
       {"schema_version", "machine", "model", "seeded", "decode", "images", "cycles", "energy",
        "blocks", "operators", "machine_keys", "dram_read_bytes"}) {
    json b = a;
    b.erase(name);
    EXPECT_NE(refusal_of(b).find(std::string("b.json: no ") + name), std::string::npos) << name;
    for (const json& wrong : std::vector<json>{"text", json::array({1}), true}) {
      b = a;
      if (wrong.type() == a[name].type()) continue;  // a list of numbers for operators is below
      b[name] = wrong;
      EXPECT_NE(refusal_of(b).find(std::string(name) + ": found "), std::string::npos)
          << name << wrong;
    }
  }
  const auto refused_with = [&](const json::json_pointer& place, const json& value) {
    json b = a;
    b[place] = value;
    EXPECT_NE(refusal_of(b).find("b.json: "), std::string::npos) << place.to_string();
  };
  refused_with("/operators"_json_pointer, json::array({1}));
  refused_with("/operators/0/name"_json_pointer, 7);
  refused_with("/operators/0/simulated_cycles"_json_pointer, "7");
  refused_with("/blocks/array"_json_pointer, 3);
  refused_with("/blocks/array/stalled"_json_pointer, nullptr);
  refused_with("/blocks/array/unit"_json_pointer, 1);
  refused_with("/energy/mac"_json_pointer, "a\nb");
  refused_with("/images"_json_pointer, 0);
}

TEST_F(CompareCommand, EveryNameIsDocumentedAndNoOther) {
  run("a.json", {"-n", "1"});
  run("b.json", {"-n", "1", "--set", "array.cols=32"});
  test::expect_documented(compared("a.json", "b.json"), "docs/report.md");
}

}  // namespace
}  // namespace systole::testbench
