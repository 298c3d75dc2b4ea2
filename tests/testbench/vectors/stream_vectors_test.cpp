#include <gtest/gtest.h>

#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "support/paths.h"
#include "support/shared_data.h"
#include "support/temp_directory.h"
#include "testbench/vectors/vectors.h"

/// Vector files of a streaming core: tests/golden/ita, and those that are not part of this project.
namespace systole::model {
namespace {

using nlohmann::json;

std::string ita_file(const std::string& name) {
  return source_path("tests/golden/ita/" + name + ".json");
}

/// What run_vector_file() says of a file with a change.
std::string stream_refusal(const std::string& name, const std::function<void(json&)>& change) {
  const TempDirectory directory;
  json document = json::parse(read_file(ita_file(name)));
  change(document);
  directory.write("v.json", document.dump());
  try {
    static_cast<void>(run_vector_file(directory.path("v.json")));
  } catch (const hw::InputError& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.rfind(directory.path("v.json") + ": ", 0), 0U) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    return text;
  }
  return "no error";
}

/// Values of a file with a change that differ.
std::uint64_t stream_failures(const std::string& name, const std::function<void(json&)>& change) {
  const TempDirectory directory;
  json document = json::parse(read_file(ita_file(name)));
  change(document);
  directory.write("v.json", document.dump());
  std::uint64_t failed = 0;
  for (const VectorResult& result : run_vector_file(directory.path("v.json"))) {
    failed += result.failed;
  }
  return failed;
}

void bump(json& value) {
  value = value.get<int>() > 0 ? value.get<int>() - 1 : value.get<int>() + 1;
}

TEST(StreamVectors, EveryWrongValueIsFound) {
  EXPECT_EQ(stream_failures("requant", [](json& d) { bump(d["cases"][3]["out"][7]); }), 1U);
  EXPECT_EQ(stream_failures("gelu", [](json& d) { bump(d["cases"][1]["q_acc"][9]); }), 1U);
  EXPECT_EQ(stream_failures("gelu", [](json& d) { bump(d["cases"][1]["q_out"][9]); }), 1U);
  EXPECT_EQ(stream_failures("relu", [](json& d) { bump(d["cases"][2]["q_out"][200]); }), 1U);
  for (const char* const field : {"sum", "inverse", "y_sum"}) {
    EXPECT_EQ(stream_failures("softmax", [&](json& d) { bump(d["cases"][0]["rows"][2][field]); }),
              1U);
  }
  for (const char* const field : {"running_max", "partial_sum", "y"}) {
    EXPECT_EQ(
        stream_failures("softmax", [&](json& d) { bump(d["cases"][1]["rows"][2][field][1]); }), 1U);
  }
  for (const char* const field : {"tiles", "first_in", "last_in", "last_out"}) {
    EXPECT_EQ(
        stream_failures("cycles", [&](json& d) { bump(d["runs"][2]["phases"]["AV"][field]); }), 1U);
  }
  for (const char* const field : {"attention_cycles", "feed_forward_tiles"}) {
    EXPECT_EQ(stream_failures("cycles", [&](json& d) { bump(d["runs"][2][field]); }), 1U);
  }
  for (const char* const field : {"acc_Q", "q", "acc_K", "k", "acc_V", "v", "acc_QK", "scores",
                                  "probabilities", "acc_AV", "context", "acc_OW", "out"}) {
    EXPECT_EQ(stream_failures("layer_s16", [&](json& d) { bump(d["heads"][1][field][5][3]); }), 1U)
        << field;
  }
  for (const char* const field : {"acc", "out"}) {
    EXPECT_EQ(stream_failures("layer_s16", [&](json& d) { bump(d["head_sum"][field][15][11]); }),
              1U);
  }
  for (const char* const field : {"acc_F1", "before_activation", "hidden", "acc_F2", "out"}) {
    EXPECT_EQ(stream_failures("layer_s16", [&](json& d) { bump(d["feed_forward"][field][0][1]); }),
              1U);
  }
}

TEST(StreamVectors, TheHardwareIsExpectedWhereItDiffersFromTheSoftware) {
  const auto drop = [](json& document) {
    for (json& one : document["cases"]) one["hardware_differs"] = json::array();
  };
  EXPECT_GT(stream_failures("requant", drop), 0U);
  EXPECT_EQ(stream_failures("gelu", drop), 1U);
}

TEST(StreamVectors, BadFilesAreRefusedInOneLine) {
  const auto expect = [](const std::string& name, const std::function<void(json&)>& change,
                         const std::string& text) {
    EXPECT_NE(stream_refusal(name, change).find(text), std::string::npos)
        << stream_refusal(name, change);
  };
  expect(
      "softmax", [](json& d) { d["cases"][0]["rows"][0]["x"].push_back(1); },
      "x: 17 elements, expected a multiple of 16 up to 2047");
  expect(
      "softmax", [](json& d) { d["cases"][0]["rows"][0]["x"][3] = 128; }, "x[3]: is 128");
  expect(
      "softmax", [](json& d) { d["cases"][0]["rows"][0]["y"].erase(0); },
      "y: 15 elements, expected 16");
  expect(
      "gelu", [](json& d) { d["cases"][0]["b"] = 5; }, "b: is 5");
  expect(
      "gelu", [](json& d) { d["cases"][0].erase("q_acc"); }, "q_acc: missing");
  expect(
      "requant", [](json& d) { d["cases"][0]["shift"] = 256; }, "shift: is 256");
  expect(
      "requant", [](json& d) { d["cases"][0]["acc"][0] = 1 << 25; }, "acc[0]: is 33554432");
  expect(
      "requant",
      [](json& d) {
        d["cases"][0]["hardware_differs"] = {{999, 0}};
      },
      "hardware_differs: names element 999 of 256");
  expect(
      "relu", [](json& d) { d["x"] = "none"; }, "x: is string, expected an array");
  expect(
      "cycles", [](json& d) { d["runs"][0]["S"] = 0; }, "S: is 0");
  expect(
      "cycles", [](json& d) { d["runs"][0]["phases"].erase("OW"); }, "OW: missing");
  expect(
      "layer_s16", [](json& d) { d["S"] = 20; }, "S: is 20, expected a multiple of 16");
  expect(
      "layer_s16", [](json& d) { d["H"] = 3; }, "heads: 2 elements, expected 3");
  expect(
      "layer_s16", [](json& d) { d["x_q"][4].erase(0); }, "x_q[4]: 11 elements, expected 12");
  expect(
      "layer_s16", [](json& d) { d["x_q"][4] = 7; }, "x_q[4]: is number, expected an array");
  expect(
      "layer_s16", [](json& d) { d["feed_forward"]["activation"]["kind"] = "tanh"; },
      "kind: unknown, expected \"identity\", \"gelu\" or \"relu\"");
}

TEST(StreamVectors, FilesOfWholeLayersAndLongRowsPass) {
  for (const char* const name :
       {"softmax", "layer_s64_e64_p64", "layer_s64_e64_p64_h2_relu", "layer_s128_e192_p64"}) {
    const std::string path = shared_data(std::string("../golden/ita/") + name + ".json");
    if (path.empty()) {
      std::cout << "NOT TESTED: " << name << ".json is not there\n";
      GTEST_SKIP() << "NOT TESTED: golden vectors of ITA's layers";
    }
    for (const VectorResult& result : run_vector_file(path)) {
      EXPECT_EQ(result.failed, 0U) << result.first_failure;
      EXPECT_GT(result.checked, 100U);
    }
  }
}

}  // namespace
}  // namespace systole::model
