#include "testbench/common/child_process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/error.h"
#include "support/input_error.h"
#include "testbench/common/side_by_side.h"

namespace systole::testbench {
namespace {

struct Numbers {
  std::uint64_t whole;
  double real;
};

TEST(ChildProcess, HandsBackWhatTheWorkGave) {
  const Numbers numbers = in_child([] { return Numbers{~std::uint64_t{0}, 0.5}; });
  EXPECT_EQ(numbers.whole, ~std::uint64_t{0});
  EXPECT_EQ(numbers.real, 0.5);
}

TEST(ChildProcess, IsAnother) {
  int mine = 1;
  const pid_t child = in_child([&] {
    mine = 2;
    return ::getpid();
  });
  EXPECT_EQ(mine, 1);
  EXPECT_NE(child, ::getpid());
}

TEST(ChildProcess, PassesOnWhatWentWrong) {
  try {
    (void)in_child([]() -> int { throw std::invalid_argument("too little of it"); });
    FAIL();
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(error.what(), std::string("too little of it"));
  }
}

TEST(ChildProcess, NoticesAnEndWithoutAResult) {
  EXPECT_THROW((void)in_child([]() -> int { ::_exit(0); }), std::runtime_error);
  EXPECT_THROW((void)run_in_child([]() -> Bytes { ::_exit(0x7F); }), std::runtime_error);
}

TEST(ChildProcess, EndsACopyThatNobodyWaitsFor) {
  const ChildProcess endless([]() -> Bytes {
    for (;;) ::usleep(1000);
  });
}

TEST(SideBySide, DocumentsAreInTheOrderOfTheExperiments) {
  std::vector<Experiment> experiments;
  for (int i = 0; i < 7; ++i) {
    experiments.emplace_back([i]() -> nlohmann::ordered_json {
      ::usleep(static_cast<useconds_t>(1000 * (7 - i)));
      return {{"number", i}, {"process", ::getpid()}, {"long", std::string(200000, 'x')}};
    });
  }
  const auto documents = run_side_by_side(experiments);
  ASSERT_EQ(documents.size(), 7U);
  for (int i = 0; i < 7; ++i) {
    const auto& document = documents[static_cast<std::size_t>(i)];
    EXPECT_EQ(document["number"], i);
    EXPECT_NE(document["process"], ::getpid());
    EXPECT_EQ(document["long"].get<std::string>().size(), 200000U);
  }
  EXPECT_TRUE(run_side_by_side({}).empty());
}

TEST(SideBySide, PassesOnWhatIsWrongWithTheInput) {
  const std::vector<Experiment> experiments(
      3, []() -> nlohmann::ordered_json { throw hw::InputError("file: place: bad"); });
  EXPECT_EQ(input_error_of([&] { return run_side_by_side(experiments); }), "file: place: bad");
}

}  // namespace
}  // namespace systole::testbench
