#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "support/paths.h"
#include "support/temp_directory.h"
#include "testbench/vectors/vectors.h"
#include "tests/support/input_error.h"

/// Vector files of the default datapath's functions. tests/hw checks hw/ against them.
namespace systole::model {
namespace {

using nlohmann::json;
using Edit = std::function<void(json&)>;

std::string default_path(const std::string& name) {
  return source_path("tests/golden/datapath/" + name + ".json");
}

VectorResult result_of(const json& document) {
  const TempDirectory directory;
  return run_vector_file(directory.write("v.json", document.dump())).front();
}

json edited(const std::string& name, const Edit& edit) {
  std::ifstream file(default_path(name));
  json document = json::parse(file);
  edit(document["cases"][1]);
  return document;
}

void add_one(json& value) { value = value.get<std::int64_t>() + 1; }

TEST(DefaultVectors, PassInEveryElement) {
  for (const char* name : {"exp", "gelu", "isqrt", "layernorm", "requant", "softmax"}) {
    const auto results = run_vector_file(default_path(name));
    ASSERT_EQ(results.size(), 1U) << name;
    EXPECT_EQ(results[0].failed, 0U) << name << ": " << results[0].first_failure;
  }
}

TEST(DefaultVectors, CompareEveryConstantAndResult) {
  const auto failure = [](const char* name, const Edit& edit) {
    const VectorResult result = result_of(edited(name, edit));
    EXPECT_EQ(result.failed, 1U) << name << ": " << result.first_failure;
    return result.first_failure.substr(0, result.first_failure.find(": is "));
  };
  const auto field = [](const char* key) { return [key](json& c) { add_one(c[key]); }; };
  const auto element = [](const char* key) { return [key](json& c) { add_one(c[key][0]); }; };
  for (const char* key : {"q_ln2", "b", "c"}) {
    EXPECT_EQ(failure("exp", field(key)), "cases[1]: " + std::string(key));
  }
  EXPECT_EQ(failure("exp", element("e")), "cases[1]: e[0]");
  for (const char* key : {"b", "c", "one", "m", "s"}) {
    EXPECT_EQ(failure("gelu", field(key)), "cases[1]: " + std::string(key));
  }
  EXPECT_EQ(failure("gelu", element("product")), "cases[1]: product[0]");
  EXPECT_EQ(failure("gelu", element("out")), "cases[1]: out[0]");
  EXPECT_EQ(failure("layernorm", element("multiplier")), "cases[1]: multiplier[0]");
  EXPECT_EQ(failure("layernorm", element("bias")), "cases[1]: bias[0]");
  EXPECT_EQ(failure("layernorm", field("shift")), "cases[1]: shift");
  EXPECT_EQ(failure("layernorm", [](json& c) { add_one(c["rows"][2]["out"][0]); }),
            "cases[1]: rows[2].out[0]");
  for (const char* key : {"m", "s"}) {
    EXPECT_EQ(failure("requant", field(key)), "cases[1]: " + std::string(key));
  }
  for (const char* key : {"q8", "q16", "q31"}) {
    EXPECT_EQ(failure("requant", element(key)), "cases[1]: " + std::string(key) + "[0]");
  }
  for (const char* key : {"m", "s", "em", "es"}) {
    EXPECT_EQ(failure("softmax", field(key)), "cases[1]: " + std::string(key));
  }
  EXPECT_EQ(failure("softmax", element("codes")), "cases[1]: codes[0]");
  const auto deferred = [](const Edit& edit) {
    json document = edited("softmax", [](json&) {});
    EXPECT_EQ(document["cases"][0]["mode"], "deferred");
    edit(document["cases"][0]);
    return result_of(document).failed;
  };
  EXPECT_EQ(deferred(field("sum")), 1U);
  EXPECT_EQ(deferred(element("divided")), 1U);
  json roots = edited("isqrt", [](json&) {});
  roots["cases"][5] = {3, 2};
  EXPECT_EQ(result_of(roots).first_failure, "cases[5] root: is 1, expected 2");
}

TEST(DefaultVectors, RefuseMalformedFieldsNamingThem) {
  const auto refusal = [](const char* name, const Edit& edit) {
    return input_error_of([&] { static_cast<void>(result_of(edited(name, edit))); });
  };
  const auto set = [](const char* key, json value) {
    return [key, value](json& c) { c[key] = value; };
  };
  const auto lacks = [](const char* key) { return [key](json& c) { c.erase(key); }; };
  expect_contains(refusal("exp", set("fraction_bits", 15)), "cases[1]: fraction_bits: is 15");
  expect_contains(refusal("exp", set("q", {1})), "cases[1]: q[0]: is 1, expected");
  expect_contains(refusal("exp", lacks("e")), "cases[1]: e: missing");
  expect_contains(refusal("gelu", set("input_scale", 1e-9)), "input_scale: below 1e-6");
  expect_contains(refusal("gelu",
                          [](json& c) {
                            c["input_scale"] = 2e-6;
                            c["q"][0] = 32767;
                          }),
                  "q[0]: its product has more than 47 bits");
  expect_contains(refusal("gelu", set("output_scale", 0)), "output_scale: not above zero");
  expect_contains(refusal("gelu", set("q", {32768})), "q[0]: is 32768");
  expect_contains(refusal("gelu", set("q", {1, 2})), "product: ");
  expect_contains(refusal("layernorm", set("beta", {1.0})), "gamma: LayerNorm: ");
  expect_contains(refusal("layernorm", set("multiplier_bits", 31)), "multiplier_bits: is 31");
  expect_contains(refusal("layernorm", [](json& c) { c["rows"][0]["x"] = {1 << 23}; }),
                  "rows[0]: x[0]: is 8388608");
  expect_contains(refusal("layernorm", [](json& c) { c["rows"][0]["x"] = {1}; }),
                  "rows[0]: x: 1 elements, expected ");
  expect_contains(refusal("requant", set("factor", 1e30)), "factor: requantisation factor");
  expect_contains(refusal("requant", set("bits", 32)), "bits: is 32");
  expect_contains(refusal("softmax", set("mode", "soft")), "mode: unknown, expected \"deferred\"");
  expect_contains(refusal("softmax", set("keep", {2})), "keep[0]: is 2");
  expect_contains(refusal("softmax", set("factor_bits", 49)), "factor_bits: is 49");
  expect_contains(refusal("softmax", set("score_scale", 1e30)), "score_scale: requantisation");
  expect_contains(refusal("isqrt",
                          [](json& c) {
                            c = {1, 1, 1};
                          }),
                  "cases[1]: expected an array [n, root]");
  expect_contains(refusal("exp", [](json& c) { c = 7; }), "cases[1]: is number");
}

}  // namespace
}  // namespace systole::model
