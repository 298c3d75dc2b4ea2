#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "model/format/safetensors.h"
#include "support/paths.h"
#include "support/program/program_run.h"
#include "support/temp_directory.h"
#include "testbench/cli/common/version.h"

namespace systole::testbench {
namespace {

using nlohmann::json;

const std::vector<std::string> kCommands = {
    "run",     "map",       "machine", "model",   "quantise", "sparsify", "attention",
    "analyse", "reproduce", "matmul",  "vectors", "generate", "play",     "doctor"};

ProgramRun expect_ok(const std::vector<std::string>& arguments) {
  ProgramRun run = run_systole(arguments);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  return run;
}

std::size_t widest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t widest = 0;
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, line.size());
  return widest;
}

TEST(Cli, HelpOfEveryLevelHasExamplesAndFits) {
  const ProgramRun top = expect_ok({"--help"});
  EXPECT_LE(widest_line(top.out), 80U);
  for (const std::string& command : kCommands) {
    EXPECT_NE(top.out.find("  " + command + " "), std::string::npos) << command;
    const ProgramRun help = expect_ok({command, "--help"});
    EXPECT_LE(widest_line(help.out), 80U) << help.out;
    EXPECT_NE(help.out.find("Usage: systole " + command), std::string::npos) << help.out;
    EXPECT_NE(help.out.find("Examples:\n  systole " + command), std::string::npos) << help.out;
  }
}

TEST(Cli, DocumentationQuotesEveryHelp) {
  const std::string document = read_file(source_path("docs/cli.md"));
  EXPECT_NE(document.find(run_systole({"--help"}).out), std::string::npos);
  for (const std::string& command : kCommands) {
    const std::string help = run_systole({command, "--help"}).out;
    EXPECT_NE(document.find(help), std::string::npos) << "docs/cli.md needs:\n" << help;
  }
}

TEST(Cli, EveryDocumentSaysWhereItComesFrom) {
  const TempDirectory directory;
  const std::string stats = directory.path("s.json");
  const std::vector<std::vector<std::string>> commands = {
      {"matmul", "8x8x8", "-m", "tiny", "--stats", stats, "--json"},
      {"map", "-m", "tiny", "--model", "vit17", "--json"},
      {"explain", "-m", "tiny", "--model", "vit17", "--no-what-if", "--json"},
      {"attention", "-m", "vitcod", "--tokens", "9", "--heads", "1", "--dim", "8", "--json"},
      {"layer", "-m", "ita", "--tokens", "64", "--json"},
      {"analyse", "--model", "vit17", "-m", "tiny", "--json"},
      {"generate", "-m", "dfx", "--model", "gpt2", "--functional", "off", "--input-tokens", "1",
       "-n", "1", "--json"},
      {"play", source_path("traces/bus/matmul_tiny.csv"), "-m", "tiny", "--json"}};
  for (const std::vector<std::string>& command : commands) {
    const json document = json::parse(expect_ok(command).out);
    const json& provenance = document.at("provenance");
    EXPECT_EQ(provenance.at("version"), kVersion);
    std::vector<std::string> line = provenance.at("command_line");
    ASSERT_FALSE(line.empty());
    line.erase(line.begin());  // the program
    EXPECT_EQ(line, command);
    json machine = json_of({"machine", command[0] == "attention"  ? "vitcod"
                                       : command[0] == "layer"    ? "ita"
                                       : command[0] == "generate" ? "dfx"
                                                                  : "tiny"});
    EXPECT_EQ(document.at("machine_keys"), machine) << command[0];
  }
  EXPECT_TRUE(json::parse(read_file(stats)).contains("provenance"));
}

TEST(Cli, DoctorFindsWhatIsBrokenAndWhatIsMissing) {
  const json healthy = json_of({"doctor"});
  EXPECT_EQ(healthy.at("healthy"), true);
  EXPECT_EQ(healthy.at("installation").get<std::string>() + "/", source_path(""));
  for (const json& finding : healthy.at("findings")) EXPECT_NE(finding.at("state"), "BROKEN");

  const TempDirectory directory;
  std::filesystem::create_directory(directory.path("machines"));
  directory.write("machines/bad.toml", "[array]\nrows = -1\n");
  const ProgramRun broken = run_systole(
      {"doctor"}, ".", {{"SYSTOLE_DATA", directory.path()}, {"SYSTOLE_PYTHON", "no-python"}});
  EXPECT_EQ(broken.exit_code, 1);
  EXPECT_EQ(broken.err, "");
  EXPECT_THAT(broken.out, testing::ContainsRegex("BROKEN +machine presets"));
  EXPECT_THAT(broken.out, testing::ContainsRegex("BROKEN +models"));
  EXPECT_THAT(broken.out, testing::HasSubstr("array.rows"));
  EXPECT_THAT(broken.out, testing::ContainsRegex("missing +Python: numpy"));
  EXPECT_THAT(broken.out, testing::ContainsRegex("ok +report page"));
}

TEST(Cli, VersionIsThatOfTheProject) {
  // "systole 0.1.0 (1a2b3c4d5e6f-dirty)", or without a commit where there is no git.
  const std::regex line("systole ([0-9.]+)( \\([0-9a-f]{7,40}(-dirty)?\\))?\n");
  std::smatch match;
  const std::string out = expect_ok({"--version"}).out;
  ASSERT_TRUE(std::regex_match(out, match, line)) << out;
  EXPECT_EQ(match.str(1), kVersion);
  const std::string project = read_file(source_path("CMakeLists.txt"));
  EXPECT_NE(project.find(std::string("VERSION ") + kVersion + " "), std::string::npos);
}

TEST(Cli, ChecksEveryOperatorOfARun) {
  const json result = json_of({"run", "-m", "gemmini", "--model", "vit17", "-n", "2", "--check"});
  EXPECT_EQ(result["machine"], "gemmini");
  EXPECT_EQ(result["model"], "vit17");
  EXPECT_EQ(result["images"], 2);
  EXPECT_EQ(result["mismatched_bytes"], 0);
  EXPECT_GT(result["checked_operators"], 2 * 50);
  EXPECT_GT(result["checked_bytes"], 2 * 60000);
  EXPECT_TRUE(result["accuracy"].is_number());
}

TEST(Cli, TimingAloneHasTheSameCycles) {
  const std::vector<std::string> run{"run", "-m", "gemmini", "--model", "vit17", "-n", "3"};
  std::vector<std::string> timing = run;
  timing.emplace_back("--functional=off");
  const json with = json_of(run), without = json_of(timing);
  EXPECT_EQ(with["cycles_total"], without["cycles_total"]);
  EXPECT_EQ(with["blocks"], without["blocks"]);
  EXPECT_TRUE(with["functional"].get<bool>());
  EXPECT_FALSE(without["functional"].get<bool>());
  EXPECT_TRUE(without["accuracy"].is_null());
}

TEST(Cli, EveryTimelineOfARunIsComplete) {
  const json result = json_of(
      {"run", "-m", "transformer", "--model", "vit65", "-n", "1", "--set", "dram.channels=2"});
  const json& blocks = result["blocks"];
  for (const char* name : {"command_processor", "load", "array", "store", "bus.request",
                           "bus.read_data", "dram.channel0", "dram.channel1"}) {
    EXPECT_TRUE(blocks.contains(name)) << name;
  }
  for (const auto& [name, block] : blocks.items()) {
    std::uint64_t sum = block["busy"].get<std::uint64_t>() + block["idle"].get<std::uint64_t>();
    for (const auto& [cause, time] : block["stalled"].items()) sum += time.get<std::uint64_t>();
    EXPECT_EQ(sum, block["total"].get<std::uint64_t>()) << name;
    EXPECT_GT(sum, 0U) << name;
    EXPECT_TRUE(block["unit"] == "cycles" || block["unit"] == "ps") << name;
  }
}

TEST(Cli, FiguresOfARunAgreeWithEachOther) {
  const json result = json_of({"run", "-m", "gemmini", "--model", "vit17", "-n", "2"});
  double energy = 0;
  for (const auto& [cause, joules] : result["energy"].items()) energy += joules.get<double>();
  EXPECT_NEAR(energy, result["energy_joules"], 1e-12);
  EXPECT_GT(energy, 0);
  const double cycles = result["cycles"];
  EXPECT_LE(result["cycles_min"], cycles);
  EXPECT_GE(result["cycles_max"], cycles);
  EXPECT_NEAR(result["seconds"], cycles * 1e-9, 1e-15);
  EXPECT_NEAR(result["utilisation"], result["macs"].get<double>() / (cycles * 256), 1e-12);
  EXPECT_EQ(result["blocks"]["array"]["counters"]["macs"], 2 * result["macs"].get<std::uint64_t>());
  EXPECT_EQ(result["blocks"]["array"]["total"].get<double>(), 2 * cycles);
  // The core's ports are the only ones besides the host's.
  std::uint64_t read = 0;
  for (const auto& [name, value] : result["counters"]["bus"].items()) {
    const std::string ending = ".read_bytes";
    if (name.size() > ending.size() && name.find("host") == std::string::npos &&
        name.compare(name.size() - ending.size(), ending.size(), ending) == 0) {
      read += value.get<std::uint64_t>();
    }
  }
  EXPECT_EQ(2 * result["dram_read_bytes"].get<std::uint64_t>(), read);
}

TEST(Cli, RunsAreTheSameEveryTime) {
  const std::vector<std::string> run{"run", "-m", "tiny", "--model", "vit17", "-n", "1"};
  json first = json_of(run), second = json_of(run);
  for (json* result : {&first, &second}) {
    result->erase("wall_seconds");
    result->erase("cycles_per_second");
  }
  EXPECT_EQ(first, second);
}

TEST(Cli, StatisticsFileIsWhatJsonPrints) {
  const TempDirectory directory;
  const std::string path = directory.path("run.json");
  const ProgramRun run = expect_ok({"matmul", "16x16x16", "-m", "tiny", "--stats", path, "--json"});
  EXPECT_EQ(read_file(path), run.out);
  EXPECT_EQ(directory.names(), std::vector<std::string>{"run.json"});
}

TEST(Cli, WritesAWaveform) {
  const TempDirectory directory;
  const std::string path = directory.path("run.vcd");
  const std::vector<std::vector<std::string>> commands{
      {"run", "-m", "tiny", "--model", "vit17", "-n", "1"},
      {"matmul", "16x16x16", "-m", "tiny"},
      {"attention", "-m", "vitcod", "--tokens", "17", "--heads", "2", "--functional", "off"},
      {"generate", "--input-tokens", "1", "-n", "1", "--functional", "off"}};
  for (std::vector<std::string> command : commands) {
    command.insert(command.end(), {"--wave", path, "--wave-to", "5000"});
    const ProgramRun run = expect_ok(command);
    EXPECT_NE(read_file(path).find("$enddefinitions"), std::string::npos) << command[0];
    EXPECT_NE(read_file(directory.path("run.gtkw")).find("[dumpfile]"), std::string::npos);
  }
}

TEST(Cli, WritesATimeline) {
  const TempDirectory directory;
  const std::string path = directory.path("run.json");
  const ProgramRun run =
      expect_ok({"run", "-m", "tiny", "--model", "vit17", "-n", "2", "--timeline", path});
  EXPECT_GT(json::parse(read_file(path))["traceEvents"].size(), 100U);
  EXPECT_NE(run.out.find(path), std::string::npos);
}

TEST(Cli, WritesViewsOfTheCommands) {
  const TempDirectory directory;
  const std::string path = directory.path("run.kanata");
  const std::vector<std::vector<std::string>> commands{
      {"run", "-m", "tiny", "--model", "vit17", "-n", "2", "--pipeline", path},
      {"matmul", "16x16x16", "-m", "tiny", "--pipeline", path}};
  const std::string transactions = directory.path("run.ftr");
  for (std::vector<std::string> command : commands) {
    command.insert(command.end(), {"--transactions", transactions});
    const ProgramRun run = expect_ok(command);
    EXPECT_EQ(read_file(path).rfind("Kanata\t0004\n", 0), 0U);
    EXPECT_NE(run.out.find(path), std::string::npos);
    // The tag of self-described CBOR.
    EXPECT_EQ(read_file(transactions).rfind("\xd9\xd9\xf7", 0), 0U);
    EXPECT_NE(run.out.find(transactions), std::string::npos);
    std::filesystem::remove(path);
    std::filesystem::remove(transactions);
  }
}

TEST(Cli, SettingsChangeTheMachine) {
  const std::vector<std::string> run{"matmul", "64x64x64", "-m", "gemmini"};
  const json usual = json_of(run);
  std::vector<std::string> slow = run;
  slow.insert(slow.end(), {"--set", "dram.controller_ns=500", "--set", "name=slow"});
  const json changed = json_of(slow);
  EXPECT_EQ(changed["machine"], "slow");
  EXPECT_GT(changed["cycles"], usual["cycles"]);
  EXPECT_EQ(changed["compute_cycles"], usual["compute_cycles"]);
}

TEST(Cli, MemoryOfFixedLatencyIsABlockOfTheReport) {
  const auto with_latency = [](int cycles) {
    return json_of({"matmul", "64x64x64", "-m", "gemmini-bare", "--set",
                    "memory.latency=" + std::to_string(cycles)});
  };
  const json near = with_latency(40), far = with_latency(80);
  for (const json& result : {near, far}) {
    EXPECT_EQ(result["checked_bytes"], 64 * 64);
    EXPECT_EQ(result["mismatched_bytes"], 0);
    EXPECT_GT(result["blocks"]["memory.answers"]["busy"], 0);
    EXPECT_FALSE(result["blocks"].contains("dram.channel0"));
  }
  EXPECT_GT(far["cycles"], near["cycles"]);
}

TEST(Cli, MatmulIsCheckedAndItsUtilisationGrows) {
  double last = 0;
  for (const int side : {16, 64, 256, 1024}) {
    const std::string size = std::to_string(side);
    const json result = json_of({"matmul", size + "x" + size + "x" + size, "-m", "transformer"});
    EXPECT_EQ(result["m"], side);
    EXPECT_EQ(result["n"], side);
    EXPECT_EQ(result["k"], side);
    EXPECT_EQ(result["checked_bytes"], side * side);
    EXPECT_EQ(result["mismatched_bytes"], 0);
    EXPECT_GE(result["cycles"], result["compute_cycles"]);
    EXPECT_GE(result["dram_read_bytes"], 2 * side * side);
    EXPECT_EQ(result["dram_write_bytes"], side * side);
    const json& array = result["blocks"]["array"];
    EXPECT_EQ(result["stalls"], array["stalled"]);
    // What the host does before and after counts in no block.
    EXPECT_EQ(array["total"], result["cycles"]);
    EXPECT_GT(result["cycles_total"], result["cycles"]);
    EXPECT_NEAR(array["busy"].get<double>() / array["total"].get<double>(), result["utilisation"],
                1e-9);
    EXPECT_GT(result["utilisation"], last);
    last = result["utilisation"];
  }
  EXPECT_GT(last, 0.9);
  EXPECT_LE(last, 1.0);
}

TEST(Cli, MatmulOfRaggedShapesIsRight) {
  for (const char* shape : {"1x1x1", "1x1000x3", "17x5x1", "3x1x999", "65x33x129"}) {
    const json result = json_of({"matmul", shape, "-m", "tiny"});
    EXPECT_EQ(result["mismatched_bytes"], 0) << shape;
    EXPECT_GT(result["checked_bytes"], 0) << shape;
  }
}

TEST(Cli, AccuracyBelowTheDemandedOneExitsWithOne) {
  const std::vector<std::string> run{"run", "-m", "gemmini", "--model", "vit17", "-n", "40"};
  const json result = json_of(run);
  const double accuracy = result["accuracy"];
  ASSERT_LT(accuracy, 1.0);  // the model misses at least one of these pictures
  std::vector<std::string> strict = run, lenient = run;
  strict.insert(strict.end(), {"--min-accuracy", "1"});
  lenient.insert(lenient.end(), {"--min-accuracy", "0.9"});
  EXPECT_EQ(run_systole(strict).exit_code, 1);
  EXPECT_EQ(run_systole(lenient).exit_code, 0);
}

TEST(Cli, AcceptsPicturesWithoutLabels) {
  const TempDirectory directory;
  directory.write("one.pgm", "P5 8 8 16\n" + std::string(64, '\x05'));
  directory.write("two.pgm", "P5 8 8 16\n" + std::string(64, '\x00'));
  const json result =
      json_of({"run", "-m", "gemmini", "--model", "vit17", "--input", directory.path()});
  EXPECT_EQ(result["images"], 2);
  EXPECT_TRUE(result["accuracy"].is_null());
}

TEST(Cli, ProgramFilesAreDisassembled) {
  const TempDirectory directory;
  const std::string binary = directory.path("a.prog"), text = directory.path("a.txt");
  expect_ok({"map", "-m", "tiny", "--model", "vit17", "--out", binary, "--asm", text});
  EXPECT_EQ(expect_ok({"map", "--read", binary}).out, read_file(text));
  EXPECT_EQ(expect_ok({"map", "-m", "tiny", "--model", "vit17", "--asm", "-"}).out,
            read_file(text));
}

/// Expects that a file has no other tensors than another one, with the same bytes.
void expect_tensors_of(const std::string& path, const std::string& other_path) {
  const model::Safetensors file = model::Safetensors::open(path),
                           other = model::Safetensors::open(other_path);
  EXPECT_EQ(file.names().size(), 2U);
  for (const std::string& name : file.names()) {
    const model::TensorView found = file.tensor(name), expected = other.tensor(name);
    EXPECT_EQ(found.shape, expected.shape) << name;
    ASSERT_EQ(found.bytes, expected.bytes) << name;
    EXPECT_EQ(std::memcmp(found.data, expected.data, found.bytes), 0) << name;
  }
}

// What the network gave is in the file: the same bytes in, the same bytes out, in as many cycles.
TEST(Cli, AProgramFileRunsLikeItsNetwork) {
  const TempDirectory directory;
  const std::string program = directory.path("a.prog"), values = directory.path("a.safetensors"),
                    again = directory.path("b.safetensors");
  for (const auto& [machine, model] : std::vector<std::pair<std::string, std::string>>{
           {"transformer", "vit65"}, {"vitcod", "vit65-sparse90"}, {"gemmini", "vit17"}}) {
    expect_ok({"map", "-m", machine, "--model", model, "--out", program});
    const json network =
        json_of({"run", "-m", machine, "--model", model, "-n", "3", "--outputs", values});
    const json file = json_of({"run", "--program", program, "-i", values, "--outputs", again});
    SCOPED_TRACE(machine);
    expect_tensors_of(again, values);
    for (const char* const field : {"cycles", "cycles_min", "cycles_total", "macs", "commands",
                                    "dram_read_bytes", "blocks", "model", "machine"}) {
      EXPECT_EQ(file[field], network[field]) << machine << " " << field;
    }
    const json timing = json_of({"run", "--program", program, "--functional", "off", "-n", "3"});
    EXPECT_EQ(timing["cycles"], network["cycles"]) << machine;
  }
}

TEST(Cli, OutputsHaveClassesLabelsAndTheTensorsAskedFor) {
  const TempDirectory directory;
  const std::string path = directory.path("out.safetensors");
  const json result = json_of({"run", "-m", "transformer", "--model", "vit17", "-n", "5",
                               "--outputs", path, "--tensors", "blocks\\.[01]\\.norm1"});
  const model::Safetensors file = model::Safetensors::open(path);
  EXPECT_THAT(file.names(), testing::UnorderedElementsAre("patches", "logits", "classes", "labels",
                                                          "blocks.0.norm1", "blocks.1.norm1"));
  EXPECT_THAT(file.tensor("blocks.1.norm1").shape, testing::ElementsAre(5, 17, 64));
  const auto values = [&](const char* name) {
    const model::TensorView view = file.tensor(name);
    std::vector<std::int32_t> copy(view.bytes / sizeof(std::int32_t));
    std::memcpy(copy.data(), view.data, view.bytes);
    return copy;
  };
  const std::vector<std::int32_t> classes = values("classes"), labels = values("labels"),
                                  logits = values("logits");
  ASSERT_THAT(classes, testing::SizeIs(5));
  int right = 0;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const auto first = logits.begin() + static_cast<std::ptrdiff_t>(10 * i);
    EXPECT_EQ(classes[i], std::max_element(first, first + 10) - first) << i;
    right += classes[i] == labels[i] ? 1 : 0;
  }
  EXPECT_DOUBLE_EQ(result["accuracy"], right / 5.0);
}

TEST(Cli, MapSummaryCoversTheProgram) {
  const json result = json_of({"map", "-m", "gemmini", "--model", "vit17"});
  std::uint64_t commands = 1;  // the end
  std::uint64_t cycles = 0;
  for (const json& op : result["operators"]) {
    commands += op["commands"].get<std::uint64_t>();
    cycles += op["expected_cycles"].get<std::uint64_t>();
    EXPECT_GE(op["tiles"], 1) << op["name"];
    EXPECT_TRUE(op["result"] == "scratchpad" || op["result"] == "dram");
  }
  EXPECT_EQ(result["commands"], commands);
  EXPECT_EQ(result["expected_cycles"], cycles);
}

TEST(Cli, MachineListsChecksAndPrints) {
  const json presets = json_of({"machine"})["machines"];
  ASSERT_GE(presets.size(), 3U);
  for (const json& preset : presets) {
    EXPECT_EQ(json_of({"machine", preset["name"]})["name"], preset["name"]);
  }
  const json wide = json_of({"machine", "gemmini", "--set", "array.cols=64"});
  EXPECT_EQ(wide["array"]["cols"], 64);
  EXPECT_EQ(wide["array"]["dataflow"], "weight-stationary");
  const json keys = json_of({"machine", "--keys"})["keys"];
  EXPECT_TRUE(std::any_of(keys.begin(), keys.end(), [](const json& key) {
    return key["key"] == "dram.t_cl_ns" && key["unit"] == "ns" && key["default"] == 14.16;
  }));
}

TEST(Cli, MachineFilePrintedIsTheMachine) {
  const TempDirectory directory;
  const std::string file =
      directory.write("mine.toml", expect_ok({"machine", "transformer", "--toml"}).out);
  EXPECT_EQ(json_of({"machine", file}), json_of({"machine", "transformer"}));
}

TEST(Cli, ModelDescribesItself) {
  const json model = json_of({"model", "vit17"});
  EXPECT_EQ(model["model"], "vit17");
  std::uint64_t macs = 0;
  for (const json& product : model["products"]) macs += product["macs"].get<std::uint64_t>();
  EXPECT_EQ(model["macs"], macs);
  EXPECT_EQ(model["datapath"]["softmax"], "deferred");
  EXPECT_GE(json_of({"model"})["models"].size(), 3U);
}

TEST(Cli, AccuracyOfAModelHolds) {
  const json models = json_of({"model", "vit17", "--accuracy"})["accuracy"];
  ASSERT_EQ(models.size(), 1U);
  EXPECT_GE(models[0]["fp32_accuracy"], 0.975);
  EXPECT_GE(models[0]["integer_accuracy"], models[0]["fp32_accuracy"].get<double>() - 0.006);
  EXPECT_TRUE(models[0]["holds"].get<bool>());
}

TEST(Cli, QuantisedModelRuns) {
  const TempDirectory directory;
  const std::string out = directory.path("ibert.int8.safetensors");
  const std::string softmax = "datapath.softmax=ibert-round";
  expect_ok({"quantise", "vit17", "--set", softmax, "--name", "mine", "--out", out});
  const json result =
      json_of({"run", "-m", "gemmini", "--set", softmax, "--model", out, "-n", "2", "--check"});
  EXPECT_EQ(result["model"], "mine");
  EXPECT_EQ(result["mismatched_bytes"], 0);
  EXPECT_EQ(run_systole({"run", "-m", "gemmini", "--model", out}).exit_code, 2);
}

TEST(Cli, VectorsPassAndFail) {
  const std::string gelu = source_path("tests/golden/ibert/gelu.json");
  const ProgramRun good = expect_ok({"vectors", gelu});
  EXPECT_NE(good.out.find(" passed, 0 failed\n"), std::string::npos);
  json vectors = json::parse(read_file(source_path("tests/golden/ibert/isqrt.json")));
  const std::uint64_t root = vectors["cases"][3][1];
  vectors["cases"][3][1] = root + 1;
  const TempDirectory directory;
  const ProgramRun bad = run_systole({"vectors", directory.write("bad.json", vectors.dump())});
  EXPECT_EQ(bad.exit_code, 1);
  EXPECT_NE(bad.out.find(" passed, 1 failed\n"), std::string::npos) << bad.out;
}

TEST(Cli, DataDirectoryCanBeReplaced) {
  const TempDirectory directory;
  const ProgramRun run = run_systole({"run", "-m", "tiny", "--model", "vit17"}, ".",
                                     {{"SYSTOLE_DATA", directory.path()}});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_NE(run.err.find(directory.path()), std::string::npos) << run.err;
}

TEST(Cli, TablesFitATerminal) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"run", "-m", "gemmini", "--model", "vit17-post", "-n", "3", "--check"},
           {"matmul", "1024x1024x1024", "-m", "gemmini"},
           {"map", "-m", "transformer", "--model", "vit65"},
           {"machine"},
           {"machine", "transformer"},
           {"machine", "dfx"},
           {"machine", "--keys"},
           {"model"},
           {"model", "vit65"},
           {"model", "kjv"},
           {"vectors", source_path("tests/golden/ibert/softmax.json")}}) {
    const ProgramRun run = expect_ok(arguments);
    EXPECT_LE(widest_line(run.out), 80U) << run.out;
    EXPECT_FALSE(run.out.empty());
  }
}

}  // namespace
}  // namespace systole::testbench
