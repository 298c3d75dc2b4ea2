#include "tlm/common/value_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

namespace systole::tlm_model {
namespace {

constexpr std::uint64_t kQueueBytes = 1 << 20;

class ValueQueueTest : public ::testing::TestWithParam<unsigned> {
 protected:
  ValueQueueTest() { queue_.set_threads(GetParam()); }
  [[nodiscard]] static bool is_beside() { return GetParam() > 1; }

  std::vector<std::uint8_t> memory_ = std::vector<std::uint8_t>(kQueueBytes);
  ValueQueue queue_{memory_.data(), memory_.size()};
};
INSTANTIATE_TEST_SUITE_P(Threads, ValueQueueTest, ::testing::Values(1, 2, 4));

/// Keeps the worker busy until it is opened.
class Gate {
 public:
  void open() { open_.store(true); }
  void pass() const {
    while (!open_.load()) std::this_thread::yield();
  }

 private:
  std::atomic<bool> open_{false};
};

TEST_P(ValueQueueTest, KeepsTheOrderOfMoreActionsThanItHolds) {
  std::vector<std::uint64_t> done;
  constexpr std::uint64_t kActions = 3 * ValueQueue::kMost + 5;
  for (std::uint64_t i = 0; i < kActions; ++i) queue_.post([&done, i] { done.push_back(i); });
  queue_.await();
  std::vector<std::uint64_t> expected(kActions);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(done, expected);
}

TEST_P(ValueQueueTest, DoesNotKeepWhatAnActionOwned) {
  auto owned = std::make_shared<int>(1);
  queue_.post([owned] {});
  queue_.await();
  EXPECT_EQ(owned.use_count(), 1);
}

TEST_P(ValueQueueTest, AWorkerThatSleepsIsWokenByWhoWaits) {
  int done = 0;
  for (int i = 0; i < 3; ++i) {
    queue_.post([&done] { ++done; });
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    queue_.await();
    EXPECT_EQ(done, i + 1);
  }
}

TEST_P(ValueQueueTest, WaitsForThoseThatWriteWhatIsRead) {
  const std::uint64_t there = kQueueBytes / 2;
  Gate gate;
  queue_.post([&] { memory_[there] = 1; }, {there, 1});
  if (is_beside()) queue_.post([&] { gate.pass(); });
  queue_.post([&] { memory_[there] = 2; }, {kQueueBytes - 1, 1});
  queue_.await_written({0, kQueueBytes / 4});  // nobody writes there
  queue_.await_written({0, 0});
  queue_.await_written({there - 1, 3});
  EXPECT_EQ(memory_[there], is_beside() ? 1 : 2);
  gate.open();
  queue_.await_written({kQueueBytes - 1, 1});
  EXPECT_EQ(memory_[there], 2);
}

TEST_P(ValueQueueTest, KnowsEveryPageThatIsWritten) {
  queue_.post([this] { memory_[kQueueBytes - 1] = 3; },
              {kQueueBytes / 4, kQueueBytes - kQueueBytes / 4});
  for (const std::uint64_t at : {kQueueBytes / 4, kQueueBytes / 2, kQueueBytes - 1}) {
    queue_.await_written({at, 1});
    EXPECT_EQ(memory_[kQueueBytes - 1], 3) << at;
  }
}

TEST_P(ValueQueueTest, HasNoMoreThanMemory) {
  EXPECT_EQ(queue_.at({0, kQueueBytes}), memory_.data());
  EXPECT_EQ(queue_.at({kQueueBytes - 1, 1}), memory_.data() + kQueueBytes - 1);
  EXPECT_EQ(queue_.at({kQueueBytes, 0}), memory_.data() + kQueueBytes);
  EXPECT_EQ(queue_.at({1, kQueueBytes}), nullptr);
  EXPECT_EQ(queue_.at({kQueueBytes + 1, 0}), nullptr);
  EXPECT_EQ(queue_.at({~std::uint64_t{0}, 2}), nullptr);
}

TEST_P(ValueQueueTest, WhatAnActionThrowsComesOutAndEndsTheOthers) {
  bool after = false;
  const auto post_and_wait = [&] {
    queue_.post([] { throw std::invalid_argument("a value"); });
    queue_.post([&] { after = true; });
    queue_.await();
  };
  EXPECT_THROW(post_and_wait(), std::invalid_argument);
  EXPECT_FALSE(after);
  if (!is_beside()) return;
  EXPECT_THROW(queue_.post([] {}), std::invalid_argument);
  EXPECT_THROW(queue_.await_written({0, 1}), std::invalid_argument);
}

// A full queue whose worker only drops actions must not hold up who posts.
TEST_P(ValueQueueTest, AFailureEndsAFullQueueToo) {
  const auto post_many = [&] {
    queue_.post([] { throw std::invalid_argument("a value"); });
    for (std::uint64_t i = 0; i < 2 * ValueQueue::kMost; ++i) queue_.post([] {});
  };
  EXPECT_THROW(post_many(), std::invalid_argument);
}

TEST_P(ValueQueueTest, EndsWithActionsThatWait) {
  Gate gate;
  std::uint64_t done = 0;
  if (is_beside()) queue_.post([&] { gate.pass(); });
  for (std::uint64_t i = 0; i < 1000; ++i) queue_.post([&] { ++done; });
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    gate.open();
  });
  queue_.stop();
  opener.join();
  EXPECT_EQ(done, is_beside() ? 0U : 1000U);
}

TEST(ValueQueue, OneThreadStartsNone) {
  std::vector<std::uint8_t> memory(16);
  ValueQueue queue(memory.data(), memory.size());
  std::thread::id here;
  queue.post([&] { here = std::this_thread::get_id(); });
  EXPECT_EQ(here, std::this_thread::get_id());
}

}  // namespace
}  // namespace systole::tlm_model
