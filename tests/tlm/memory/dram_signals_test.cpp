#include "tlm/memory/dram_signals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "support/tlm/systemc_test.h"

namespace systole::tlm_model {
namespace {

/// Keeps what it is shown, by name.
class KeepingRecorder : public SignalRecorder {
 public:
  struct Hold {
    std::uint64_t from, to, value;
  };

  Signal add_signal(const std::string& name, unsigned, Kind) override {
    names_.push_back(name);
    return static_cast<Signal>(names_.size() - 1);
  }
  void hold(Signal signal, std::uint64_t from, std::uint64_t to, std::uint64_t value) override {
    held[names_[signal]].push_back({from, to, value});
  }
  void set(Signal signal, std::uint64_t at, std::uint64_t value) override {
    held[names_[signal]].push_back({at, at, value});
  }
  void add(Signal, std::uint64_t, std::int64_t) override {}
  void name_initiators(const std::vector<std::string>&) override {}

  std::map<std::string, std::vector<Hold>> held;

 private:
  std::vector<std::string> names_;
};

struct DramSignalsTest : public test::SystemCTest {};

// Data of each request are where the address mapping puts them, and end when it does.
TEST_F(DramSignalsTest, ShowDataWhereTheMappingPutsThem) {
  hw::Machine::Dram params;
  params.channels = 2;
  params.write_queue = 0;
  hw::DramTiming timing(params);
  KeepingRecorder recorder;
  DramSignals signals(recorder, "m.", timing);
  timing.watch(signals);
  std::mt19937 random(2);
  std::uint64_t now = 0;
  for (int i = 0; i < 500; ++i) {
    const bool write = random() % 2 == 0;
    const std::uint64_t burst = timing.mapping().burst_bytes();
    const std::uint64_t address = random() % 262'144 * burst;
    const hw::DramAccess access = timing.access(address, burst, write, now += random() % 50'000);
    const hw::DramLocation at = timing.mapping().locate(address);
    const std::string channel = "m.channel" + std::to_string(at.channel) + ".";
    const std::string bank = channel + "bank" + std::to_string(at.bank) + ".";
    const KeepingRecorder::Hold& data = recorder.held[channel + "direction"].back();
    EXPECT_EQ(data.from, access.begin);
    EXPECT_EQ(data.to, access.end);
    EXPECT_EQ(data.value, wave_state(write ? "write" : "read"));
    EXPECT_EQ(recorder.held[channel + "bank"].back().value, at.bank);
    EXPECT_EQ(recorder.held[bank + "state"].back().to, access.end);
    EXPECT_EQ(recorder.held[bank + "row"].back().value, at.row) << "open since it was opened";
  }
  const auto& states = recorder.held["m.channel0.bank0.state"];
  for (const char* state : {"activate", "precharge", "refresh"}) {
    EXPECT_TRUE(std::any_of(states.begin(), states.end(), [&](const KeepingRecorder::Hold& hold) {
      return hold.value == wave_state(state);
    })) << state;
  }
}

// A write that waited in the queue is shown when it moved, which a later request tells.
TEST_F(DramSignalsTest, ShowQueuedWritesWhenTheyMove) {
  hw::DramTiming timing(hw::Machine::Dram{});
  KeepingRecorder recorder;
  DramSignals signals(recorder, "m.", timing);
  timing.watch(signals);
  const std::uint64_t read = timing.access(0, 64, false, 0).end;
  EXPECT_EQ(timing.settled(read), read);
  timing.access(64, 64, true, read);
  timing.access(128, 64, true, read);
  const std::uint64_t moves = read + timing.times().turn;
  const std::vector<KeepingRecorder::Hold>& data = recorder.held["m.channel0.direction"];
  EXPECT_EQ(data.size(), 1U);
  EXPECT_EQ(timing.settled(10 * moves), moves) << "nothing is shown from before";
  timing.access(1 << 20, 64, false, 10 * moves);
  ASSERT_EQ(data.size(), 4U);
  for (std::size_t i = 1; i < 3; ++i) {
    EXPECT_EQ(data[i].value, wave_state("write"));
    EXPECT_GE(data[i].from, data[i - 1].to);
    EXPECT_GT(data[i].from, moves);
  }
  EXPECT_EQ(timing.settled(20 * moves), 20 * moves);
}

}  // namespace
}  // namespace systole::tlm_model
