#include "hw/kernel/gemm.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cstdio>
#include <cstdlib>
#include <future>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/error.h"
#include "hw/kernel/gemm_kernels.h"
#include "tests/hw/kernel/gemm_operands.h"

namespace systole::hw {
namespace {

using gemm_test::Case;
using gemm_test::Operands;

std::vector<std::int32_t> run(const Operands& operands, GemmBackend backend) {
  return operands.result([backend](const GemmArgs& args) { gemm(args, backend); });
}

/// Every backend against the floating-point oracle, and so against every other.
class Gemm : public testing::TestWithParam<GemmBackend> {
 protected:
  void SetUp() override {
    if (!gemm_supported(GetParam())) {
      GTEST_SKIP() << "NOT TESTED: this host cannot run GEMM backend "
                   << gemm_backend_name(GetParam());
    }
  }

  void expect_exact(const Case& c, unsigned seed) const {
    const Operands operands(c, seed);
    EXPECT_EQ(run(operands, GetParam()), operands.oracle()) << c;
  }
};

TEST_P(Gemm, IsExactOnAllPatterns) {
  gemm_test::for_each_standard_case([this](const Case& c) { expect_exact(c, 3); });
}

TEST_P(Gemm, IsExactOnRandomSizes) {
  gemm_test::for_each_random_case(1000, [this](const Case& c) { expect_exact(c, 4); });
}

TEST_P(Gemm, IsExactAroundBlockEdges) {
  for (const std::size_t k : {255U, 256U, 257U, 767U, 768U, 769U, 1025U}) {
    for (const std::size_t n : {31U, 32U, 33U}) expect_exact({9, n, k, k % 2 == 0}, 5);
  }
  for (const std::size_t m : {511U, 512U, 513U, 516U, 517U, 1031U}) {
    expect_exact({m, 17, 70, m % 2 == 0, true}, 6);
  }
}

/// Every product of two bytes, `depth` times: pairs and quads of extreme values must not saturate.
TEST_P(Gemm, MultipliesAllBytesExactly) {
  for (std::size_t depth = 1; depth <= 5; ++depth) {
    std::vector<std::uint8_t> a(256 * depth);
    std::vector<std::int8_t> b(depth * 256);
    std::vector<std::int32_t> c(256 * 256);
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<std::uint8_t>(i / depth);
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<std::int8_t>(i % 256);
    for (const bool a_unsigned : {false, true}) {
      gemm({a.data(), depth, a_unsigned, b.data(), 256, false, false, c.data(), 256, 256, 256,
            depth},
           GetParam());
      for (int i = 0; i < 256 * 256; ++i) {
        const int byte = i / 256;
        const int left = a_unsigned || byte < 128 ? byte : byte - 256;
        const int right = static_cast<std::int8_t>(i % 256);
        ASSERT_EQ(c[static_cast<std::size_t>(i)], static_cast<int>(depth) * left * right)
            << left << " * " << right << ", depth " << depth;
      }
    }
  }
}

TEST_P(Gemm, WrapsAround) {
  constexpr std::size_t kDepth = 131073;  // (-128)^2 * 2^17 = 2^31
  const std::vector<std::int8_t> bytes(kDepth, -128);
  std::int32_t c = 0;
  gemm({bytes.data(), kDepth, false, bytes.data(), 1, false, false, &c, 1, 1, 1, kDepth},
       GetParam());
  EXPECT_EQ(c, INT32_MIN + 16384);
}

TEST_P(Gemm, ClearsOrKeepsWithoutDepth) {
  std::vector<std::int32_t> c = {1, 2, 3, 4};
  GemmArgs args{nullptr, 0, false, nullptr, 1, false, false, c.data(), 2, 2, 1, 0, true};
  gemm(args, GetParam());
  EXPECT_EQ(c, (std::vector<std::int32_t>{1, 2, 3, 4}));
  args.accumulate = false;
  gemm(args, GetParam());
  EXPECT_EQ(c, (std::vector<std::int32_t>{0, 2, 0, 4}));
}

TEST_P(Gemm, IsExactInSeveralThreads) {
  const Operands operands({65, 47, 300}, 9);
  const std::vector<std::int32_t> expected = operands.oracle();
  std::vector<std::future<bool>> results;
  for (unsigned thread = 0; thread < 4; ++thread) {
    results.push_back(std::async(std::launch::async, [&expected] {
      const Operands own({65, 47, 300}, 9);
      bool same = true;
      for (int i = 0; i < 50; ++i) same = same && run(own, GetParam()) == expected;
      return same;
    }));
  }
  for (std::future<bool>& result : results) EXPECT_TRUE(result.get());
}

INSTANTIATE_TEST_SUITE_P(Backends, Gemm, testing::ValuesIn(kGemmBackends), [](const auto& tested) {
  return std::string(gemm_backend_name(tested.param));
});

/// One test per instruction set Highway was compiled for and this host can run.
class GemmHighway : public testing::TestWithParam<std::int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

TEST_P(GemmHighway, EqualsReference) {
  ASSERT_STREQ(gemm_detail::highway_target(), hwy::TargetName(GetParam()));
  const auto check = [](const Case& c) {
    const Operands operands(c, 7);
    EXPECT_EQ(run(operands, GemmBackend::kHighway), run(operands, GemmBackend::kReference)) << c;
  };
  gemm_test::for_each_standard_case(check);
  gemm_test::for_each_random_case(500, check);
}

INSTANTIATE_TEST_SUITE_P(Targets, GemmHighway,
                         testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& tested) {
                           return std::string(hwy::TargetName(tested.param));
                         });

TEST(GemmDispatch, RefusesShortPitches) {
  std::int8_t bytes[4] = {};
  std::int32_t c[4] = {};
  const GemmArgs good{bytes, 2, false, bytes, 2, false, false, c, 2, 2, 2, 2};
  EXPECT_NO_THROW(gemm(good));
  GemmArgs bad = good;
  bad.lda = 1;
  EXPECT_THROW(gemm(bad), std::invalid_argument);
  bad = good;
  bad.ldb = 1;
  EXPECT_THROW(gemm(bad), std::invalid_argument);
  bad = good;
  bad.ldc = 1;
  EXPECT_THROW(gemm(bad), std::invalid_argument);
}

TEST(GemmDispatch, KnowsItsNames) {
  for (const GemmBackend backend : kGemmBackends) {
    EXPECT_EQ(gemm_backend_from_name(gemm_backend_name(backend)), backend);
  }
  EXPECT_THROW((void)gemm_backend_from_name(""), InputError);
  EXPECT_THROW((void)gemm_backend_from_name("VNNI"), InputError);
}

/// Exit code of a fresh process with SYSTOLE_GEMM set: 0 if the default is `expected`.
[[noreturn]] void exit_with_default(const char* value, GemmBackend expected) {
  setenv("SYSTOLE_GEMM", value, 1);
  try {
    std::exit(default_gemm_backend() == expected ? 0 : 1);
  } catch (const InputError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    std::exit(2);
  }
}

TEST(GemmDispatchDeathTest, ObeysTheEnvironment) {
  // The default is fixed at its first use, so every value needs a separate process.
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(exit_with_default("reference", GemmBackend::kReference), testing::ExitedWithCode(0),
              "");
  EXPECT_EXIT(exit_with_default("highway", GemmBackend::kHighway), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(exit_with_default("mkl", GemmBackend::kReference), testing::ExitedWithCode(2),
              "SYSTOLE_GEMM.*unknown name 'mkl', expected reference, highway, vnni or amx");
  for (const GemmBackend backend : {GemmBackend::kVnni, GemmBackend::kAmx}) {
    EXPECT_EXIT(exit_with_default(gemm_backend_name(backend), backend),
                testing::ExitedWithCode(gemm_supported(backend) ? 0 : 2), "");
  }
}

}  // namespace
}  // namespace systole::hw
