#include "hw/axi/axi_checker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace systole::hw {
namespace {

constexpr unsigned kCheckedBytes = 16;

AxiAddress burst_at(std::uint64_t place, std::uint8_t beats, std::uint32_t id) {
  return {true, true, id, place, static_cast<std::uint8_t>(beats - 1), 4, AxiBurst::kIncr};
}

/// A read of two beats with ID 1 and a write of two beats with ID 2, each stage held for a cycle by
/// a missing ready.
std::vector<AxiPins> legal_cycles() {
  std::vector<AxiPins> cycles;
  const auto twice = [&](const std::function<void(AxiPins&, bool)>& set) {
    for (const bool ready : {false, true}) set(cycles.emplace_back(), ready);
  };
  const auto write_beat = [](AxiPins& pins, bool ready, bool last) {
    pins.w.valid = true, pins.w.ready = ready, pins.w.last = last;
    for (unsigned lane = last ? 0 : 5; lane < kCheckedBytes; ++lane) pins.w.strobes.set(lane);
  };
  const auto read_beat = [](AxiPins& pins, bool ready, bool last) {
    pins.r.valid = true, pins.r.ready = ready, pins.r.id = 1, pins.r.last = last;
  };
  twice([&](AxiPins& pins, bool ready) {
    pins.ar = burst_at(4096 - 32, 2, 1);
    pins.aw = burst_at(0x105, 2, 2);
    pins.ar.ready = pins.aw.ready = ready;
  });
  twice([&](AxiPins& pins, bool ready) { write_beat(pins, ready, false); });
  twice([&](AxiPins& pins, bool ready) { write_beat(pins, ready, true); });
  twice([&](AxiPins& pins, bool ready) { read_beat(pins, ready, false); });
  twice([&](AxiPins& pins, bool ready) { read_beat(pins, ready, true); });
  twice(
      [](AxiPins& pins, bool ready) { pins.b.valid = true, pins.b.ready = ready, pins.b.id = 2; });
  return cycles;
}

std::string breach_of(const std::vector<AxiPins>& cycles) {
  AxiChecker checker(kCheckedBytes);
  std::uint64_t cycle = 10;
  for (const AxiPins& pins : cycles) {
    if (!checker.watch(pins, cycle++)) return checker.breach();
  }
  return checker.quiet() ? "" : "not quiet";
}

TEST(AxiChecker, AcceptsWhatTheProtocolAllows) {
  EXPECT_EQ(breach_of(legal_cycles()), "");
  std::vector<AxiPins> data_first = legal_cycles();
  const std::vector<AxiPins> copy = data_first;
  // The write data may come before their address.
  for (int i = 0; i < 2; ++i) {
    data_first[static_cast<std::size_t>(i)] = copy[static_cast<std::size_t>(i) + 2];
    data_first[static_cast<std::size_t>(i) + 2] = copy[static_cast<std::size_t>(i) + 4];
    data_first[static_cast<std::size_t>(i) + 4] = copy[static_cast<std::size_t>(i)];
  }
  EXPECT_EQ(breach_of(data_first), "");
  std::vector<AxiPins> cut = legal_cycles();
  cut.pop_back();
  EXPECT_EQ(breach_of(cut), "not quiet");
}

TEST(AxiChecker, NamesEveryBreach) {
  struct Case {
    const char* says;
    std::function<void(std::vector<AxiPins>&)> breaks;
  };
  const std::vector<Case> cases = {
      {"cycle 11, AR: valid fell", [](auto& c) { c[1].ar.valid = false; }},
      {"cycle 11, AR: changed", [](auto& c) { c[1].ar.address += 16; }},
      {"cycle 11, AW: valid fell", [](auto& c) { c[1].aw.valid = false; }},
      {"cycle 11, AW: changed", [](auto& c) { c[1].aw.id = 3; }},
      {"cycle 13, W: changed", [](auto& c) { c[3].w.data[6] = 1; }},
      {"cycle 13, W: valid fell", [](auto& c) { c[3].w.valid = false; }},
      {"cycle 17, R: changed", [](auto& c) { c[7].r.response = AxiResponse::kSlvErr; }},
      {"cycle 21, B: valid fell", [](auto& c) { c[11].b.valid = false; }},
      {"AR: beats of 2^5 bytes, expected at most 16",
       [](auto& c) { c[0].ar.size = c[1].ar.size = 5; }},
      {"AR: burst crosses a multiple of 4096", [](auto& c) { c[0].ar.len = c[1].ar.len = 2; }},
      {"AR: WRAP burst of 3 beats",
       [](auto& c) { c[0].ar.len = 2, c[0].ar.burst = AxiBurst::kWrap; }},
      {"AW: WRAP burst from an unaligned", [](auto& c) { c[0].aw.burst = AxiBurst::kWrap; }},
      {"AW: FIXED burst of 17 beats",
       [](auto& c) { c[0].aw.len = 16, c[0].aw.burst = AxiBurst::kFixed; }},
      {"AW: burst type 3", [](auto& c) { c[0].aw.burst = static_cast<AxiBurst>(3); }},
      {"W: strobe outside the byte lanes of beat 0",
       [](auto& c) { c[2].w.strobes.set(4), c[3].w.strobes.set(4); }},
      {"W: last on beat 1, expected on beat 2", [](auto& c) { c[2].w.last = c[3].w.last = true; }},
      {"W: no last on beat 2", [](auto& c) { c[4].w.last = c[5].w.last = false; }},
      {"R: data with ID 2, which no read has", [](auto& c) { c[6].r.id = c[7].r.id = 2; }},
      {"R: last on beat 1 of 2", [](auto& c) { c[6].r.last = c[7].r.last = true; }},
      {"R: no last on beat 2 of 2", [](auto& c) { c[8].r.last = c[9].r.last = false; }},
      {"B: response with ID 1, which no complete", [](auto& c) { c[10].b.id = c[11].b.id = 1; }},
      {"B: response with ID 2, which no complete",
       [](auto& c) { c[3].b = c[11].b; }},  // before the last of the data
      {"R: data with ID 1, which no read has", [](auto& c) { c.push_back(c[7]); }},
  };
  for (const Case& one : cases) {
    std::vector<AxiPins> cycles = legal_cycles();
    one.breaks(cycles);
    EXPECT_THAT(breach_of(cycles), testing::HasSubstr(one.says));
  }
}

TEST(AxiPins, BeatsOfABurstAreItsBytes) {
  // ARM IHI 0022, A3.4.1, for four beats of four bytes.
  AxiAddress wrap{true, true, 0, 0x34, 3, 2, AxiBurst::kWrap};
  const std::uint64_t begins[] = {0x34, 0x38, 0x3c, 0x30};
  for (unsigned beat = 0; beat < 4; ++beat) EXPECT_EQ(axi_beat(wrap, beat).begin, begins[beat]);
  for (const AxiBurst burst : {AxiBurst::kIncr, AxiBurst::kWrap}) {
    for (std::uint64_t place = 0x100; place < 0x140; place += burst == AxiBurst::kWrap ? 8 : 1) {
      const AxiAddress one{true, true, 0, place, 7, 3, burst};
      std::set<std::uint64_t> bytes;
      for (unsigned beat = 0; beat < 8; ++beat) {
        const AxiRange range = axi_beat(one, beat);
        EXPECT_EQ((range.end - 1) / 8, range.begin / 8);
        for (std::uint64_t byte = range.begin; byte < range.end; ++byte) {
          EXPECT_TRUE(bytes.insert(byte).second);
        }
      }
      const AxiRange all = axi_range(one);
      EXPECT_EQ(bytes.size(), all.end - all.begin);
      EXPECT_EQ(*bytes.begin(), all.begin);
      EXPECT_EQ(*bytes.rbegin() + 1, all.end);
    }
  }
}

}  // namespace
}  // namespace systole::hw
