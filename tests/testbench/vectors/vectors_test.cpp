#include "testbench/vectors/vectors.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "support/paths.h"
#include "tests/support/input_error.h"
#include "tests/testbench/vectors/golden_path.h"

namespace systole::model {
namespace {

using nlohmann::json;

json golden(const std::string& name) {
  std::ifstream file(golden_path(name));
  return json::parse(file);
}

/// A file of the given text that vanishes with the object.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text)
      : path_(::testing::TempDir() + "vectors_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name() + ".json") {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~TemporaryFile() { std::remove(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::vector<VectorResult> run(const json& document) {
  const TemporaryFile file(document.dump());
  return run_vector_file(file.path());
}

/// Text of the InputError that a file of this content causes; a test failure if it causes none.
std::string refusal(const std::string& content) {
  const TemporaryFile file(content);
  try {
    run_vector_file(file.path());
  } catch (const hw::InputError& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.rfind(file.path() + ": ", 0), 0U) << "file not named: " << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    return text;
  }
  ADD_FAILURE() << "accepted: " << content.substr(0, 200);
  return "";
}

/// The same for a golden file with one edit to its first case.
std::string refusal(const std::string& name, const std::function<void(json&)>& edit) {
  json document = golden(name);
  edit(document["cases"][0]);
  return refusal(document.dump());
}

/// Failures of case 0 after an edit; the file stays well formed.
std::uint64_t failures(const std::string& name, const std::function<void(json&)>& edit) {
  json document = golden(name);
  edit(document["cases"][0]);
  return run(document).front().failed;
}

class GoldenVectors : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenVectors, MatchInEveryElement) {
  const json document = golden(GetParam());
  const std::vector<VectorResult> results = run_vector_file(golden_path(GetParam()));
  std::uint64_t checked = 0;
  for (const VectorResult& result : results) {
    EXPECT_EQ(result.failed, 0U) << result.name << ": " << result.first_failure;
    EXPECT_GT(result.checked, 0U) << result.name;
    checked += result.checked;
  }
  std::uint64_t outputs = 0;
  for (const json& entry : document["cases"]) {
    if (entry.is_array()) {
      outputs += 2;
    } else if (entry.contains("q_exact")) {
      outputs += entry["q_exact"].size();
    } else {
      for (const json& row : entry["rows"]) outputs += row["q_exact"].size();
    }
  }
  EXPECT_GE(checked, outputs);
}

INSTANTIATE_TEST_SUITE_P(Files, GoldenVectors,
                         ::testing::Values("gelu", "softmax", "layernorm", "requant", "isqrt"));

TEST(VectorFile, ReportsAWrongElementByPlaceAndValue) {
  json document = golden("gelu");
  document["cases"][0]["q_exact"][3] = document["cases"][0]["q_exact"][3].get<int>() + 1;
  document["cases"][0]["q_exact"][9] = 0;
  const std::vector<VectorResult> results = run(document);
  EXPECT_EQ(results[0].failed, 2U);
  EXPECT_EQ(results[0].first_failure, "q_exact[3]: is -490818, expected -490817");
  EXPECT_EQ(results[1].failed, 0U);
}

TEST(VectorFile, ComparesEveryKindOfResult) {
  const auto add_one = [](json& value) { value = value.get<std::int64_t>() + 1; };
  EXPECT_EQ(failures("gelu", [&](json& c) { add_one(c["const_f64"]["shift_int"]); }), 257U);
  EXPECT_EQ(failures("gelu", [&](json& c) { c["S_out_hex"] = "-0x1p-19"; }), 1U);
  EXPECT_EQ(failures("softmax", [&](json& c) { add_one(c["rows"][1]["exp16_exact"][4]); }), 1U);
  EXPECT_EQ(failures("softmax", [&](json& c) { add_one(c["rows"][1]["q_exact"][4]); }), 1U);
  EXPECT_EQ(failures("softmax", [&](json& c) { add_one(c["rows"][0]["sum_q_exact"]); }), 1U);
  EXPECT_EQ(failures("softmax", [&](json& c) { c["act16_range"] = 1e12; }), 1U);
  EXPECT_GT(failures("softmax", [&](json& c) { add_one(c["dyadic_e"]); }), 1U);
  for (const char* statistic : {"mean", "sumsq", "std", "factor"}) {
    const auto edit = [&](json& c) { add_one(c["rows"][0]["stat_exact"][statistic]); };
    EXPECT_EQ(failures("layernorm", edit), 1U) << statistic;
  }
  EXPECT_GT(failures("layernorm", [&](json& c) { add_one(c["shift_f64"]); }), 1U);
  EXPECT_EQ(failures("layernorm", [&](json& c) { c["S_out_base"] = 1e-9; }), 1U);
  EXPECT_EQ(failures("requant", [&](json& c) { add_one(c["m"]); }), 1U);
  EXPECT_GT(failures("requant", [&](json& c) { add_one(c["e"]); }), 1U);
  json roots = golden("isqrt");
  add_one(roots["cases"][5][2]);
  add_one(roots["cases"][6][1]);
  EXPECT_EQ(run(roots).front().failed, 2U);
}

TEST(VectorFile, ZeroVarianceMustGiveTheBias) {
  json document = golden("layernorm");
  json& entry = document["cases"][2];
  ASSERT_EQ(entry["name"], "all_equal");
  const double step = entry["S_out_base"];
  std::vector<double> bias(16, 0.5);
  entry["bias"] = bias;
  entry["bias_int"] = std::vector<std::int64_t>(16, static_cast<std::int64_t>(0.5 / step));
  EXPECT_EQ(run(document)[2].failed, 0U);
  entry["rows"][0]["q_exact"][3] = 7;
  EXPECT_EQ(run(document)[2].failed, 1U);
}

TEST(VectorFile, TakesLayerNormWeightAndBiasInEveryForm) {
  json document = golden("layernorm");
  json& entry = document["cases"][5];
  ASSERT_EQ(entry["name"], "mean_tie");
  const std::int64_t bias_int = 1 << 28;
  for (json& row : entry["rows"]) {
    for (json& value : row["q_exact"]) value = value.get<std::int64_t>() + bias_int;
  }
  EXPECT_GT(run(document)[5].failed, 0U);
  // S_out_base is 2^-29 for n = 4, so weight 2 and bias 1 give 2^28.
  entry["weight"] = std::vector<double>(4, 2.0);
  entry["bias"] = {"0x1p+0", "0x1p+0", "0x1p+0", "0x1p+0"};
  EXPECT_EQ(run(document)[5].failed, 0U);
  entry["bias_int"] = std::vector<std::int64_t>(4, bias_int);
  EXPECT_EQ(run(document)[5].failed, 0U);
  entry["weight"] = std::vector<double>(4, 1.0);
  EXPECT_EQ(run(document)[5].failed, 4U);
  entry["weight"][1] = 0.0;
  EXPECT_EQ(run(document)[5].failed, 3U);
  entry.erase("weight");
  entry.erase("bias");
  EXPECT_EQ(run(document)[5].failed, 0U);
}

TEST(VectorFile, TakesARowWithoutAnyKeptCell) {
  json document = golden("softmax");
  json& row = document["cases"][7]["rows"][0];
  for (json& value : row["x_int"]) value = nullptr;
  for (json& value : row["q_exact"]) value = nullptr;
  for (json& value : row["exp16_exact"]) value = nullptr;
  row["sum_q_exact"] = 0;
  EXPECT_EQ(run(document)[7].failed, 0U);
}

TEST(VectorFile, TakesChannelsInEachOfSeveralRowsAndChannelResiduals) {
  json document = golden("requant");
  json& entry = document["cases"][5];
  ASSERT_EQ(entry["name"], "per_channel");
  for (const char* key : {"x_int", "q_exact"}) {
    json twice = entry[key];
    for (const json& value : entry[key]) twice.push_back(value);
    entry[key] = twice;
  }
  EXPECT_EQ(run(document)[5].failed, 0U);
  entry["identity_int"] = std::vector<int>(entry["x_int"].size(), 0);
  entry["S_identity"] = entry["S_in"];
  entry["m_id"] = entry["m"];
  entry["e_id"] = entry["e"];
  EXPECT_EQ(run(document)[5].failed, 0U);
}

TEST(VectorFile, LeavesWideResultsUnclamped) {
  const json document = {{"op", "fixedpoint_mul (QuantAct requantisation)"},
                         {"cases",
                          {{{"name", "wide"},
                            {"bit_num", 32},
                            {"S_in", 4.0},
                            {"S_out", 1.0},
                            {"m", 1 << 30},
                            {"e", 28},
                            {"x_int", {2147483647, -2147483648LL}},
                            {"q_exact", {8589934588LL, -8589934592LL}}}}}};
  const VectorResult result = run(document).front();
  EXPECT_EQ(result.failed, 0U) << result.first_failure;
  EXPECT_EQ(result.checked, 4U);
}

TEST(VectorFile, RefusesWhatIsNoVectorFile) {
  EXPECT_THROW(run_vector_file(source_path("tests/golden")), hw::InputError);
  EXPECT_THROW(run_vector_file(golden_path("missing")), hw::InputError);
  for (const char* text : {"", "{", "nonsense", "{\"op\":\"IntGELU\"", "\xff\xfe", "[1,2", "NaN"}) {
    expect_contains(refusal(text), "not JSON");
  }
  expect_contains(refusal("[]"), "is array, expected an object");
  expect_contains(refusal("{}"), "op: missing");
  expect_contains(refusal(R"({"op":7,"cases":[]})"), "op: is number, expected a string");
  expect_contains(refusal(R"({"op":"Int\nSoftmax","cases":[{}]})"), R"("Int\nSoftmax" unknown)");
  expect_contains(refusal(R"({"op":"IntGELU"})"), "cases: expected an array");
  expect_contains(refusal(R"({"op":"IntGELU","cases":[]})"), "at least one case");
  expect_contains(refusal(R"({"op":"IntGELU","cases":[3]})"), "cases[0]: is number");
  expect_contains(refusal(R"({"op":"IntGELU","cases":[{}]})"), "cases[0]: name: missing");
  expect_contains(refusal(R"({"op":"IntGELU","cases":[{"name":"a"}]})"),
                  "case \"a\": const_f64: missing");
  expect_contains(refusal(R"({"op":")" + std::string(100000, 'x') + R"(","cases":[1]})"),
                  "xxx...\" unknown");
}

TEST(VectorFile, RefusesDeepNestingWithoutRunningOutOfStack) {
  constexpr std::size_t kDepth = 1000000;
  expect_contains(refusal(std::string(kDepth, '[')), "not JSON");
  const std::string nested = std::string(kDepth, '[') + std::string(kDepth, ']');
  expect_contains(refusal(R"({"op":"IntGELU","cases":)" + nested + "}"), "cases[0]: is array");
}

TEST(VectorFile, RefusesMalformedFieldsNamingThem) {
  const auto set = [](const char* key, json value) {
    return [key, value](json& entry) { entry[key] = value; };
  };
  expect_contains(refusal("gelu", set("x_int", 3)), "x_int: is number, expected an array");
  expect_contains(refusal("gelu", set("x_int", json::array())), "x_int: empty");
  expect_contains(refusal("gelu", set("x_int", {1, 2})), "q_exact: 256 elements, expected 2");
  expect_contains(refusal("gelu", [](json& c) { c["x_int"][2] = 1.5; }),
                  "x_int[2]: is not integer");
  expect_contains(refusal("gelu", [](json& c) { c["x_int"][2] = nullptr; }), "x_int[2]: is null");
  expect_contains(refusal("gelu", [](json& c) { c["x_int"][2] = {1}; }), "x_int[2]: is array");
  expect_contains(refusal("gelu", [](json& c) { c["x_int"][2] = 2147483648LL; }),
                  "case \"rand_S_1.3e-3\": x_int[2]: is 2147483648, expected an integer from "
                  "-2147483648 to 2147483647");
  expect_contains(refusal("gelu", [](json& c) { c["q_exact"][0] = 18446744073709551615ULL; }),
                  "q_exact[0]: is 18446744073709551615");
  expect_contains(refusal("gelu", set("S_in_hex", "0x1.0p")), "S_in_hex: not a number");
  expect_contains(refusal("gelu", set("S_in_hex", "inf")), "S_in_hex: not finite");
  expect_contains(refusal("gelu", set("S_in_hex", "-0x1p-3")), "S_in_hex: not above zero");
  expect_contains(refusal("gelu", set("S_in_hex", "0x1p-300")), "S_in: below 9e-10");
  expect_contains(refusal("gelu", set("S_in_hex", json::object())), "S_in_hex: is object");
  expect_contains(refusal("gelu", set("S_in_hex", {1, 2})), "S_in: 2 elements, expected 1");
  expect_contains(refusal("gelu", [](json& c) { c["const_f64"]["b_int"] = 0; }),
                  "const_f64: b_int: is 0");
  expect_contains(refusal("gelu",
                          [](json& c) {
                            c["const_f64"]["shift_int"] = -4611686018427387904LL;
                            c["x_int"][0] = 1000;
                          }),
                  "x_int[0]: the result leaves 64 bits");
  expect_contains(refusal("softmax", set("rows", json::array())), "rows: empty");
  expect_contains(refusal("softmax", set("rows", {1})), "rows[0]: is number");
  expect_contains(refusal("softmax", [](json& c) { c["rows"][2].erase("q_exact"); }),
                  "rows[2]: q_exact: missing");
  expect_contains(refusal("softmax", [](json& c) { c["rows"][2]["exp16_exact"].push_back(1); }),
                  "rows[2]: exp16_exact: 65 elements, expected 64");
  expect_contains(refusal("softmax", [](json& c) { c["const_f64"]["x0_int"] = 0; }),
                  "x0_int: is 0");
  expect_contains(refusal("softmax", set("dyadic_m", 4294967296LL)), "dyadic_m: is 4294967296");
  expect_contains(refusal("softmax", set("dyadic_e", 128)), "dyadic_e: is 128");
  expect_contains(refusal("softmax", set("S_act16_hex", "0x1p-40")), "factor of 2^31 or more");
  expect_contains(refusal("layernorm", set("n", 0)), "n: is 0");
  expect_contains(refusal("layernorm", set("n", 767)),
                  "rows[0]: x_int: 768 elements, expected 767");
  expect_contains(refusal("layernorm", set("shift_f64", 32)), "shift_f64: is 32");
  expect_contains(refusal("layernorm", set("weight", {1.0, 2.0})), "weight: 2 elements");
  expect_contains(refusal("layernorm", set("weight", 0.0)),
                  "bias[0]: bias / weight leaves 62 bits");
  expect_contains(refusal("layernorm", [](json& c) { c["rows"][0]["stat_exact"].erase("std"); }),
                  "stat_exact: std: missing");
  expect_contains(refusal("requant", set("bit_num", 33)), "bit_num: is 33");
  expect_contains(refusal("requant", set("e", -1)), "e: is -1");
  expect_contains(refusal("requant", set("e", {1, 2})), "e: 2 elements, expected 1");
  expect_contains(refusal("requant", set("S_in_hex", {0.5, 0.5})), "S_in: 2 elements, expected 1");
  expect_contains(refusal("requant", set("identity_int", {1})), "identity_int: 1 elements");
  expect_contains(refusal("requant",
                          [](json& c) {
                            c["m"] = {1, 1, 1};
                            c["e"] = {1, 1, 1};
                            c["S_in_hex"] = {1, 1, 1};
                          }),
                  "m: 3 channels, expected a divisor of the 400 inputs");
}

TEST(VectorFile, RefusesMalformedSquareRootCases) {
  const auto refuse = [](const char* entry) {
    json document = golden("isqrt");
    document["cases"][1] = json::parse(entry);
    return refusal(document.dump());
  };
  expect_contains(refuse("7"), "cases[1]: expected an array [n, root, passes]");
  expect_contains(refuse("[1,2]"), "cases[1]: expected an array [n, root, passes]");
  expect_contains(refuse("[-1,0,0]"), "cases[1]: expected integers from 0");
  expect_contains(refuse("[18446744073709551616,0,0]"), "cases[1]: expected integers from 0");
  expect_contains(refuse("[1,null,2]"), "cases[1]: expected integers from 0");
}

TEST(VectorFile, TakesTheWidestSquareRoot) {
  const json document = {{"op", "I-Sqrt (paper Algorithm 4)"},
                         {"cases", {{18446744073709551615ULL, 4294967295ULL, 2}}}};
  EXPECT_EQ(run(document).front().failed, 0U);
}

}  // namespace
}  // namespace systole::model
