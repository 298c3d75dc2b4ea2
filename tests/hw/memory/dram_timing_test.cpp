#include "hw/memory/dram_timing.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace systole::hw {
namespace {

constexpr std::uint64_t kNs = 1000;

/// Round times that are all different, so that no constraint can be in for another.
Machine::Dram round_times() {
  Machine::Dram d;
  d.mib = 64;
  d.banks = 8;
  d.bank_groups = 2;
  d.row_bytes = 1024;
  d.mega_transfers = 2000;  // a burst of 64 bytes takes 4 ns, two clocks 2 ns
  d.t_cl_ns = 10;
  d.t_cwl_ns = 8;
  d.t_rcd_ns = 20;
  d.t_rp_ns = 30;
  d.t_ras_ns = 70;
  d.t_rtp_ns = 9;
  d.t_wr_ns = 16;
  d.t_wtr_ns = 6;
  d.t_ccd_l_ns = 7;
  d.t_rrd_s_ns = 6;
  d.t_rrd_l_ns = 11;
  d.t_faw_ns = 50;
  d.t_rfc_ns = 100;
  d.t_refi_ns = 0;
  d.controller_ns = 5;
  d.write_queue = 0;
  return d;
}

Machine::Dram with_refresh() {
  Machine::Dram d = round_times();
  d.t_refi_ns = 2000;
  return d;
}

/// First byte of a row of round_times().
std::uint64_t at(std::uint64_t row, std::uint64_t bank, std::uint64_t group) {
  return ((row << 2 | bank) << 5 | group) << 6;
}

struct BurstRequest {
  std::uint64_t address;
  bool write;
  std::uint64_t arrival;  ///< ns
};

DramAccess replay(const Machine::Dram& dram, const std::vector<BurstRequest>& before,
                  std::uint64_t address, bool write, std::uint64_t arrival_ps) {
  DramTiming timing(dram);
  for (const BurstRequest& r : before) timing.access(r.address, 64, r.write, r.arrival * kNs);
  return timing.access(address, 64, write, arrival_ps);
}

TEST(DramTiming, TakesTheTimesOfEachRowState) {
  DramTiming t(round_times());
  const DramAccess miss = t.access(at(0, 0, 0), 64, false, 100 * kNs);
  EXPECT_EQ(miss.begin, (100 + 5 + 20 + 10) * kNs);
  EXPECT_EQ(miss.end, miss.begin + 4 * kNs);
  EXPECT_EQ(miss.misses, 1U);
  const DramAccess hit = t.access(at(0, 0, 0) + 128, 64, false, 500 * kNs);
  EXPECT_EQ(hit.begin, (500 + 5 + 10) * kNs);
  EXPECT_EQ(hit.hits, 1U);
  const DramAccess write = t.access(at(0, 0, 0) + 256, 64, true, 800 * kNs);
  EXPECT_EQ(write.begin, (800 + 5 + 8) * kNs);
  const DramAccess conflict = t.access(at(1, 0, 0), 64, false, 900 * kNs);
  EXPECT_EQ(conflict.begin, (900 + 5 + 30 + 20 + 10) * kNs);
  EXPECT_EQ(conflict.conflicts, 1U);
}

/// A constraint that lets the first command of a request go at `not_before` and no earlier.
struct Constraint {
  const char* name;
  std::vector<BurstRequest> before;
  std::uint64_t address;
  bool write;
  std::uint64_t not_before;  ///< ns
  std::uint64_t to_data;     ///< ns from the first command to the data
};
void PrintTo(const Constraint& c, std::ostream* os) { *os << c.name; }

class DramConstraint : public testing::TestWithParam<Constraint> {};

TEST_P(DramConstraint, BlocksUntilItsTimeAndNotLonger) {
  const Constraint& c = GetParam();
  const Machine::Dram dram = round_times();
  const std::uint64_t just = (c.not_before - 5) * kNs;  // 5 ns in the controller
  const std::uint64_t begin = (c.not_before + c.to_data) * kNs;
  EXPECT_EQ(replay(dram, c.before, c.address, c.write, just - 1).begin, begin);
  EXPECT_EQ(replay(dram, c.before, c.address, c.write, just).begin, begin);
  EXPECT_EQ(replay(dram, c.before, c.address, c.write, just + 1).begin, begin + 1);
}

// Reads at 1000 ns open rows at 1005 ns; hits at 2000 ns have their column command at 2005 ns.
INSTANTIATE_TEST_SUITE_P(
    JedecTimes, DramConstraint,
    testing::Values(
        Constraint{"tRAS", {{at(0, 0, 0), false, 1000}}, at(1, 0, 0), false, 1005 + 70, 60},
        Constraint{"tRTP",
                   {{at(0, 0, 0), false, 1000}, {at(0, 0, 0), false, 2000}},
                   at(1, 0, 0),
                   false,
                   2005 + 9,
                   60},
        Constraint{"tWR",
                   {{at(0, 0, 0), false, 1000}, {at(0, 0, 0), true, 2000}},
                   at(1, 0, 0),
                   false,
                   2005 + 8 + 4 + 16,
                   60},
        Constraint{"tCCD_L",
                   {{at(0, 0, 0), false, 1000}, {at(0, 0, 0), false, 2000}},
                   at(0, 0, 0),
                   false,
                   2005 + 7,
                   10},
        Constraint{
            "tCCD_L_other_bank",
            {{at(0, 1, 0), false, 900}, {at(0, 0, 0), false, 1000}, {at(0, 0, 0), false, 2000}},
            at(0, 1, 0),
            false,
            2005 + 7,
            10},
        Constraint{
            "data_bus",
            {{at(0, 0, 1), false, 900}, {at(0, 0, 0), false, 1000}, {at(0, 0, 0), false, 2000}},
            at(0, 0, 1),
            false,
            2005 + 4,
            10},
        Constraint{"tRRD_S", {{at(0, 0, 0), false, 1000}}, at(0, 0, 1), false, 1005 + 6, 30},
        Constraint{"tRRD_L", {{at(0, 0, 0), false, 1000}}, at(0, 1, 0), false, 1005 + 11, 30},
        Constraint{"tFAW",
                   {{at(0, 0, 0), false, 1000},
                    {at(0, 0, 1), false, 1000},
                    {at(0, 1, 0), false, 1000},
                    {at(0, 1, 1), false, 1000}},
                   at(0, 2, 0),
                   false,
                   1005 + 50,
                   30},
        Constraint{"tWTR",
                   {{at(0, 0, 0), false, 1000}, {at(0, 0, 0), true, 2000}},
                   at(0, 0, 0),
                   false,
                   2005 + 8 + 4 + 6,
                   10},
        Constraint{"read_to_write",
                   {{at(0, 0, 0), false, 1000}, {at(0, 0, 0), false, 2000}},
                   at(0, 0, 0),
                   true,
                   2005 + 10 + 4 + 2 - 8,
                   8}),
    [](const auto& test) { return std::string(test.param.name); });

/// A burst that is done with its bank exactly when the refresh at 2000 ns is due.
struct LastBurst {
  const char* name;
  std::vector<BurstRequest> before;
  std::uint64_t address;
  bool write;
  std::uint64_t arrival;  ///< ns
  std::uint64_t begin;    ///< ns
};
void PrintTo(const LastBurst& l, std::ostream* os) { *os << l.name; }

class DramRefresh : public testing::TestWithParam<LastBurst> {};

TEST_P(DramRefresh, AdmitsABurstThatJustFitsAndNoLaterOne) {
  const LastBurst& l = GetParam();
  const DramAccess fits = replay(with_refresh(), l.before, l.address, l.write, l.arrival * kNs);
  EXPECT_EQ(fits.begin, l.begin * kNs);
  EXPECT_EQ(fits.refresh_wait, 0U);
  const DramAccess late = replay(with_refresh(), l.before, l.address, l.write, l.arrival * kNs + 1);
  EXPECT_EQ(late.begin, (2100 + 20 + (l.write ? 8 : 10)) * kNs);
  EXPECT_EQ(late.refresh_wait, (2100 - l.arrival - 5) * kNs - 1);
  EXPECT_EQ(late.misses, 1U) << "a refresh closes the rows";
}

INSTANTIATE_TEST_SUITE_P(
    Boundary, DramRefresh,
    testing::Values(LastBurst{"ReadHit",
                              {{at(0, 0, 0), false, 1000}},
                              at(0, 0, 0),
                              false,
                              2000 - 30 - 9 - 5,
                              2000 - 30 - 9 + 10},
                    LastBurst{"WriteHit",
                              {{at(0, 0, 0), false, 1000}},
                              at(0, 0, 0),
                              true,
                              2000 - 30 - 16 - 4 - 8 - 5,
                              2000 - 30 - 16 - 4},
                    LastBurst{
                        "Miss", {}, at(0, 0, 0), false, 2000 - 30 - 70 - 5, 2000 - 30 - 70 + 30}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(DramTiming, ResumesAtTheEndOfARefresh) {
  const auto begin = [](std::uint64_t arrival_ps) {
    return replay(with_refresh(), {}, 0, false, arrival_ps).begin;
  };
  EXPECT_EQ(begin(2001 * kNs), (2100 + 30) * kNs);
  EXPECT_EQ(begin(2095 * kNs), (2100 + 30) * kNs);
  EXPECT_EQ(begin(2095 * kNs + 1), (2100 + 30) * kNs + 1);
}

TEST(DramTiming, CountsTheRefreshesOfIdleTime) {
  DramTiming t(with_refresh());
  t.access(0, 64, false, 100 * kNs);
  const DramAccess late = t.access(0, 64, false, 99'000 * kNs);
  EXPECT_EQ(t.refreshes(), 49U);
  EXPECT_EQ(late.misses, 1U);
  EXPECT_EQ(late.refresh_wait, 0U);
  t.finish(120'000 * kNs);
  EXPECT_EQ(t.refreshes(), 60U);
}

TEST(DramTiming, AccountsTheWorkOfARunThatWasCutOff) {
  DramTiming t(round_times());
  const std::uint64_t end = t.access(0, 64, false, 0).end;
  t.finish(end - 1);
  EXPECT_EQ(t.account(0).now(), end);
}

TEST(DramTiming, ExplainsEveryGapOfTheDataBus) {
  DramTiming t(round_times());
  t.access(at(0, 0, 0), 64, false, 100 * kNs);  // idle 100, latency 15, miss 20, busy 4
  t.access(at(1, 0, 0), 64, false, 120 * kNs);  // precharge allowed at 175
  t.access(at(1, 0, 0), 64, true, 120 * kNs);   // at 232 by tCCD_L, 233 by the bus
  t.finish(300 * kNs);
  const BlockAccount& account = t.account(0);
  EXPECT_EQ(account.time().busy, 12 * kNs);
  EXPECT_EQ(account.time().stalled[DramTiming::kLatency].time, 15 * kNs);
  EXPECT_EQ(account.time().stalled[DramTiming::kRowMiss].time, 20 * kNs);
  EXPECT_EQ(account.time().stalled[DramTiming::kBankBusy].time, (175 + 10 - 139 + 1) * kNs);
  EXPECT_EQ(account.time().stalled[DramTiming::kRowConflict].time, 50 * kNs);
  EXPECT_EQ(account.time().stalled[DramTiming::kTurnaround].time, 1 * kNs);
  EXPECT_EQ(account.time().stalled[DramTiming::kRefresh].time, 0U);
}

TEST(DramTiming, MovesWholeBurstsForPartsOfThem) {
  DramTiming t(round_times());
  const DramAccess a = t.access(at(0, 0, 0) + 60, 8, false, 0);  // four bytes on either side
  EXPECT_EQ(a.hits + a.misses + a.conflicts, 2U);
  EXPECT_EQ(t.account(0).time().busy, 2 * 4 * kNs);
}

TEST(DramTiming, RefusesWhatItCannotServe) {
  DramTiming t(round_times());
  EXPECT_THROW(t.access(0, 0, false, 0), std::invalid_argument);
  EXPECT_THROW(t.access(t.capacity() - 63, 64, false, 0), std::out_of_range);
  EXPECT_THROW(t.access(t.capacity(), 1, false, 0), std::out_of_range);
  EXPECT_THROW(t.access(64, ~std::uint64_t{0}, false, 0), std::out_of_range);
  EXPECT_NO_THROW(t.access(t.capacity() - 64, 64, false, 0));
}

std::string complaint(const Machine::Dram& dram) {
  try {
    const DramTiming timing(dram);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return {};
}

TEST(DramTiming, NamesEveryBadParameter) {
  EXPECT_EQ(complaint(Machine::Dram{}), "");
  Machine::Dram d;
  d.channels = 3;
  d.bank_groups = 32;
  EXPECT_EQ(complaint(d),
            "DRAM geometry:\n  channels = 3: must be a power of two"
            "\n  bank_groups = 32: must be a power of two, at most banks");
  d = {};
  d.t_cl_ns = -1;
  d.t_wr_ns = std::nan("");
  d.mega_transfers = 0;
  const std::string text = complaint(d);
  for (const char* field : {"t_cl_ns", "t_wr_ns", "mega_transfers"}) {
    EXPECT_NE(text.find(field), std::string::npos) << field;
  }
  d = {};
  d.t_refi_ns = 360;
  EXPECT_NE(complaint(d).find("t_refi_ns = 360"), std::string::npos);
}

}  // namespace
}  // namespace systole::hw
