#include "testbench/common/side_by_side.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "support/input_error.h"

namespace systole::testbench {
namespace {

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
