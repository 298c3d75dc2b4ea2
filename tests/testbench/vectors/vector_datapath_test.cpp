#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "hw/number/isqrt.h"
#include "support/temp_directory.h"
#include "testbench/vectors/vectors.h"
#include "tests/testbench/vectors/golden_path.h"

/// run_vector_file() with a datapath of the caller's.
namespace systole::model {
namespace {

using nlohmann::json;

/// The functions of hw/, plus an error.
class FakeDatapath final : public VectorDatapath {
 public:
  explicit FakeDatapath(std::int32_t error = 0) : error_(error) {}

  [[nodiscard]] std::string name() const override { return "a fake"; }
  [[nodiscard]] std::string other_checks() const override { return "ask elsewhere"; }
  SoftmaxRow stream_softmax(const std::vector<std::int8_t>& scores) override {
    return {0, 0, 0, std::vector<std::uint8_t>(scores.size())};
  }
  std::vector<std::uint32_t> square_roots(const std::vector<std::uint64_t>& numbers) override {
    std::vector<std::uint32_t> roots;
    for (const std::uint64_t n : numbers) {
      roots.push_back(hw::int_sqrt(n).root + static_cast<std::uint32_t>(error_));
    }
    values += roots.size();
    return roots;
  }
  std::vector<std::int32_t> scale(const std::vector<std::int32_t>& x,
                                  const std::vector<hw::Dyadic>& factors) override {
    std::vector<std::int32_t> scaled;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const hw::Dyadic factor = factors[i % factors.size()];
      const std::int64_t exact = hw::scale(x[i], factor, hw::Rounding::kHalfEven);
      EXPECT_LE(factor.shift, hw::kMaxDyadicShift);
      EXPECT_EQ(exact, static_cast<std::int32_t>(exact));
      scaled.push_back(static_cast<std::int32_t>(exact) + error_);
    }
    values += scaled.size();
    return scaled;
  }

  std::size_t values = 0;

 private:
  std::int32_t error_;
};

std::uint64_t failures(const std::vector<VectorResult>& results) {
  std::uint64_t failed = 0;
  for (const VectorResult& result : results) failed += result.failed;
  return failed;
}

TEST(VectorDatapath, ComputesTheResultsOfTheFile) {
  for (const char* name : {"isqrt", "requant"}) {
    FakeDatapath exact;
    EXPECT_EQ(failures(run_vector_file(golden_path(name), &exact)), 0U) << name;
    EXPECT_GT(exact.values, 100U) << name;
  }
}

TEST(VectorDatapath, ItsErrorsAreFound) {
  FakeDatapath wrong(1);
  const VectorResult roots = run_vector_file(golden_path("isqrt"), &wrong).front();
  EXPECT_EQ(roots.failed, wrong.values);
  EXPECT_EQ(roots.checked, 2 * wrong.values) << "the passes are compared too";
  for (const VectorResult& result : run_vector_file(golden_path("requant"), &wrong)) {
    EXPECT_GT(result.failed, 0U) << result.name;
  }
}

/// Text of the refusal of a file.
std::string refusal_of_file(const std::string& path) {
  FakeDatapath datapath;
  try {
    run_vector_file(path, &datapath);
  } catch (const hw::InputError& error) {
    EXPECT_EQ(datapath.values, 0U);
    return error.what();
  }
  ADD_FAILURE() << "accepted: " << path;
  return "";
}

TEST(VectorDatapath, OtherOperationsAreRefused) {
  for (const char* name : {"gelu", "softmax", "layernorm"}) {
    const std::string text = refusal_of_file(golden_path(name));
    EXPECT_NE(text.find(" not possible with a fake, expected one of \"I-Sqrt"), std::string::npos)
        << text;
    EXPECT_NE(text.find("; ask elsewhere"), std::string::npos) << text;
  }
  for (const char* name :
       {"../ita/gelu", "../ita/relu", "../ita/requant", "../ita/layer_s16", "../ita/cycles"}) {
    const std::string text = refusal_of_file(golden_path(name));
    EXPECT_NE(text.find(" not possible with a fake: of a streaming core's functions only"),
              std::string::npos)
        << text;
  }
}

TEST(VectorDatapath, ItsLimitsAreRefused) {
  json document = {{"op", "fixedpoint_mul (QuantAct requantisation)"},
                   {"cases",
                    {{{"name", "a"},
                      {"bit_num", 8},
                      {"S_in", 1.0},
                      {"S_out", 1.0},
                      {"m", 1 << 30},
                      {"e", 30},
                      {"x_int", {1, 1 << 30}},
                      {"q_exact", {1, 127}}}}}};
  const TempDirectory directory;
  const auto with_shift = [&](int shift) {
    document["cases"][0]["e"] = shift;
    return directory.write("v.json", document.dump());
  };
  FakeDatapath exact;
  EXPECT_EQ(failures(run_vector_file(with_shift(30), &exact)), 0U);
  EXPECT_NE(refusal_of_file(with_shift(29))
                .find("x_int[1]: scales to 2147483648, not possible with a fake"),
            std::string::npos);
  EXPECT_NE(refusal_of_file(with_shift(64))
                .find("e[0]: is 64, not possible with a fake, expected at most"),
            std::string::npos);
}

}  // namespace
}  // namespace systole::model
