#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "model/model_files.h"
#include "support/paths.h"
#include "support/program/program_run.h"
#include "support/temp_directory.h"

namespace systole::testbench {
namespace {

using nlohmann::json;

struct Subject {
  std::string name;
  Words size;     ///< of a shape
  Words machine;  ///< whose datapath a shape's file gets
};

void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.name; }

std::vector<Subject> subjects() {
  std::vector<Subject> subjects;
  for (const std::string& name : model::model_names()) {
    // One mask stands for the others: they differ in its bits alone.
    const bool another_mask = name.rfind("vit65_", 0) == 0 && name.rfind("vit65_sparse90", 0) != 0;
    if (!another_mask) subjects.push_back({name, {}, {}});
  }
  for (const char* const name : {"bert-base", "gpt2", "deit-tiny"}) {
    subjects.push_back({name,
                        {"--layers", "2", "--d", "48", "--heads", "3", "--ffn", "96"},
                        {"-m", "transformer"}});
  }
  return subjects;
}

/// What does not depend on the host's speed.
json without_speed(json stats) {
  for (const char* const key : {"wall_seconds", "cycles_per_second", "images_per_second"}) {
    stats.erase(key);
  }
  return stats;
}

class NetworkFileRun : public testing::TestWithParam<Subject> {};

TEST_P(NetworkFileRun, HasEveryByteAndCycleOfTheModel) {
  const TempDirectory directory;
  const std::string file = directory.path("network.safetensors");
  Words write{"model", GetParam().name, "--out", file};
  for (const Words& more : {GetParam().size, GetParam().machine}) {
    write.insert(write.end(), more.begin(), more.end());
  }
  output_of(write);
  const auto run = [&](const std::string& model, const Words& size, const std::string& values) {
    const Words arguments =
        words_of("run -m transformer --model " + model + " -n 1 --outputs " + values, size);
    return without_speed(json_of(arguments));
  };
  const std::string a = directory.path("a.safetensors"), b = directory.path("b.safetensors");
  const json original = run(GetParam().name, GetParam().size, a);
  EXPECT_GT(original["cycles_total"], 1000);
  EXPECT_EQ(run(file, {}, b), original);
  EXPECT_TRUE(read_file(a) == read_file(b));
  Words map{"map", "-m", "transformer", "--model", GetParam().name};
  map.insert(map.end(), GetParam().size.begin(), GetParam().size.end());
  const json mapped = json_of({"map", "-m", "transformer", "--model", file});
  EXPECT_EQ(mapped, json_of(map));
}

std::string subject_name(const testing::TestParamInfo<Subject>& subject) {
  std::string name = subject.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, NetworkFileRun, testing::ValuesIn(subjects()), subject_name);

TEST(NetworkFileCommands, QuantiseTakesOne) {
  const TempDirectory directory;
  const std::string file = directory.path("vit17.safetensors");
  output_of({"model", source_path("traces/models/vit17.safetensors"), "--out", file});
  const std::string a = directory.path("a.int8.safetensors"),
                    b = directory.path("b.int8.safetensors");
  output_of({"quantise", "vit17", "-o", a});
  output_of({"quantise", file, "-o", b});
  EXPECT_TRUE(read_file(a) == read_file(b));
}

TEST(NetworkFileCommands, GenerateTakesOne) {
  const TempDirectory directory;
  const std::string file = directory.path("kjv.safetensors");
  output_of({"model", "kjv", "--out", file});
  const auto text_of = [](const std::string& model) {
    return json_of({"generate", "--model", model, "--prompt", "In the", "-n", "4"});
  };
  const json a = text_of("kjv"), b = text_of(file);
  EXPECT_FALSE(a["text"].get<std::string>().empty());
  EXPECT_EQ(a["text"], b["text"]);
  EXPECT_EQ(a["passes"], b["passes"]);
}

TEST(NetworkFileCommands, AnalyseTakesOne) {
  const TempDirectory directory;
  const std::string file = directory.path("n.safetensors");
  const Words small{"--layers", "2", "--d", "48", "--heads", "3", "--ffn", "96"};
  Words write{"model", "gpt2", "--out", file}, analyse{"analyse", "--model", "gpt2"};
  for (Words* const words : {&write, &analyse})
    words->insert(words->end(), small.begin(), small.end());
  output_of(write);
  json expected = json_of(analyse), found = json_of({"analyse", "--model", file});
  for (json* const document : {&expected, &found}) document->erase("network");
  EXPECT_EQ(found["operations"], expected["operations"]);
}

TEST(NetworkFileCommands, ModelCountsOne) {
  const TempDirectory directory;
  const std::string file = directory.path("n.safetensors");
  output_of({"model", "vit17", "--out", file});
  const json counts = json_of({"model", file});
  EXPECT_EQ(counts["macs"], json_of({"model", "vit17"})["macs"]);
  EXPECT_EQ(counts["nodes"].size(), 55U);
  EXPECT_TRUE(counts["tokens"].is_null());
  const std::string text = output_of({"model", file});
  EXPECT_NE(text.find("integers"), std::string::npos) << text;
}

TEST(NetworkFileCommands, ModelDrawsOne) {
  if (std::system("dot -V 2> /dev/null") != 0) GTEST_SKIP() << "NOT TESTED: no `dot` of Graphviz";
  const TempDirectory directory;
  const std::string file = directory.path("n.safetensors"), svg = directory.path("n.svg");
  output_of({"model", "vit17", "--out", file, "--svg", svg});
  const std::string picture = read_file(svg);
  EXPECT_NE(picture.find("<svg"), std::string::npos);
  EXPECT_NE(picture.find("blocks.3.attn.context"), std::string::npos);
}

/// Needs Python with NumPy: $SYSTOLE_PYTHON or python3.
TEST(NetworkFileCommands, ConvertMakesOne) {
  const char* const python = std::getenv("SYSTOLE_PYTHON");
  const std::string interpreter = python != nullptr ? python : "python3";
  if (std::system((interpreter + " -c 'import numpy' 2> /dev/null").c_str()) != 0) {
    GTEST_SKIP() << "NOT TESTED: " << interpreter << " has no NumPy";
  }
  const TempDirectory directory;
  std::filesystem::create_directory(directory.path("net"));
  directory.write("net/config.json", R"({"model_type": "bert"})");
  const ProgramRun run =
      run_systole({"convert", directory.path("net"), "n.safetensors"}, directory.path());
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(run.err, "systole: " + directory.path("net") +
                         ": neither model.safetensors nor model.safetensors.index.json\n");
  EXPECT_EQ(directory.names(), Words{"net"});
  const ProgramRun folder = run_systole({"convert", "net", "net/config.json"}, directory.path());
  EXPECT_EQ(folder.exit_code, 2);
  EXPECT_NE(folder.err.find("config.json"), std::string::npos);
}

TEST(NetworkFileCommands, ConvertSaysWhatItCannotStart) {
  const TempDirectory directory;
  directory.write("m.onnx", "x");
  const std::map<std::string, std::string> nothing{{"SYSTOLE_PYTHON", "/no/python"}};
  const ProgramRun run =
      run_systole({"convert", "m.onnx", "n.safetensors"}, directory.path(), nothing);
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.err, "systole: /no/python: cannot be started, expected an installed program\n");
  const std::map<std::string, std::string> false_one{{"SYSTOLE_PYTHON", "false"}};
  const ProgramRun failed =
      run_systole({"convert", "m.onnx", "n.safetensors"}, directory.path(), false_one);
  EXPECT_EQ(failed.exit_code, 2);
  EXPECT_EQ(failed.err, "systole: false -m systole_convert: failed with exit code 1\n");
}

TEST(NetworkFileCommands, RefuseWhatTheyCannotTake) {
  const TempDirectory directory;
  const std::string file = directory.path("n.safetensors");
  output_of({"model", "vit17", "--out", file});
  const auto error_of = [&](const Words& arguments) {
    const ProgramRun run = run_systole(arguments, directory.path());
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_EQ(run.out, "");
    return run.err;
  };
  EXPECT_NE(error_of({"quantise", file, "-o", "a.int8.safetensors"})
                .find("a network of integers, expected one of real numbers"),
            std::string::npos);
  output_of({"model", source_path("traces/models/vit17.safetensors"), "--out", file});
  EXPECT_NE(error_of({"run", "-m", "gemmini", "--model", file})
                .find("a network of real numbers, expected one of integers"),
            std::string::npos);
  EXPECT_NE(error_of({"model", file, "--length", "5"}).find("--length"), std::string::npos);
}

}  // namespace
}  // namespace systole::testbench
