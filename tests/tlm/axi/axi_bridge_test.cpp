#include "tlm/axi/axi_bridge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "hw/description/machine_file.h"
#include "support/tlm/systemc_test.h"
#include "tlm/bus/system_bus.h"
#include "tlm/memory/dram.h"

namespace systole::tlm_model {
namespace {

constexpr std::uint64_t kAxiBase = 0x8000'0000;
constexpr std::uint64_t kAxiMemory = 1 << 20;
constexpr unsigned kAxiBytes = 16;

struct BurstCase {
  hw::AxiAddress address;
  bool write = false;
  std::vector<hw::AxiData> data;
  std::vector<hw::AxiStrobes> strobes;
  hw::AxiResponse response = hw::AxiResponse::kOkay;
  std::uint64_t addressed = 0;            ///< edge: the address of a write
  std::uint64_t asked = 0, answered = 0;  ///< edges: read address or last data, last answer
};

/// A manager that follows the protocol, in C++: bursts in order, with pauses at random.
class PinManager : public hw::AxiManager {
 public:
  /// `alone`: each burst waits for the end of the one before.
  PinManager(std::vector<BurstCase>& bursts, const Clock& clock, unsigned pauses, bool alone)
      : bursts_(bursts), clock_(clock), pauses_(pauses), alone_(alone) {
    for (BurstCase& burst : bursts_) {
      (burst.write ? aw_ : ar_).push_back(&burst);
      if (burst.write) w_.push_back(&burst);
    }
  }

  void settle(hw::AxiPins& pins) override {
    offer(pins.aw, aw_, aw_offered_);
    offer(pins.ar, ar_, ar_offered_);
    if (!w_offered_) w_offered_ = may_begin(w_) && !pauses();
    pins.w.valid = w_offered_;
    if (w_offered_) {
      const BurstCase& burst = *w_.front();
      pins.w.data = burst.data[beat_];
      pins.w.strobes = burst.strobes[beat_];
      pins.w.last = beat_ == burst.address.len;
    }
    pins.b.ready = !pauses();
    pins.r.ready = !pauses();
    pins_ = pins;
  }

  void edge() override {
    const std::uint64_t now = clock_.cycle_from(sc_core::sc_time_stamp());
    if (pins_.aw.valid && pins_.aw.ready) {
      aw_offered_ = false;
      writes_[aw_.front()->address.id].push_back(aw_.front());
      aw_.front()->addressed = now;
      aw_.front()->asked = std::max(aw_.front()->asked, now);
      aw_.erase(aw_.begin());
      ++open_;
    }
    if (pins_.w.valid && pins_.w.ready) {
      w_offered_ = false;
      if (beat_++ == w_.front()->address.len) {
        w_.front()->asked = std::max(w_.front()->asked, now);
        w_.erase(w_.begin());
        beat_ = 0;
      }
    }
    if (pins_.ar.valid && pins_.ar.ready) {
      ar_offered_ = false;
      reads_[ar_.front()->address.id].push_back(ar_.front());
      ar_.front()->asked = now;
      ar_.erase(ar_.begin());
      ++open_;
    }
    if (pins_.b.valid && pins_.b.ready) {
      BurstCase& burst = *writes_[pins_.b.id].front();
      burst.response = pins_.b.response;
      burst.answered = now;
      end(writes_[pins_.b.id]);
    }
    if (pins_.r.valid && pins_.r.ready) {
      BurstCase& burst = *reads_[pins_.r.id].front();
      burst.data.push_back(pins_.r.data);
      burst.response = std::max(burst.response, pins_.r.response);
      burst.answered = now;
      if (pins_.r.last) end(reads_[pins_.r.id]);
    }
  }

  [[nodiscard]] bool active() const override {
    return !aw_.empty() || !ar_.empty() || !w_.empty() || open_ != 0;
  }
  std::vector<const BurstCase*> ended;  ///< in the order of their last answers

 private:
  bool may_begin(const std::vector<BurstCase*>& queue) const {
    return !queue.empty() && (!alone_ || queue.front() == &bursts_[ended.size()]);
  }
  bool pauses() { return random_() % 1000 < pauses_; }
  void offer(hw::AxiAddress& pin, std::vector<BurstCase*>& queue, bool& offered) {
    if (!offered) offered = may_begin(queue) && !pauses();
    const bool ready = pin.ready;
    if (offered) pin = queue.front()->address;
    pin.ready = ready;
    pin.valid = offered;
  }
  void end(std::vector<BurstCase*>& queue) {
    ended.push_back(queue.front());
    queue.erase(queue.begin());
    --open_;
  }

  std::vector<BurstCase>& bursts_;
  const Clock& clock_;
  const unsigned pauses_;
  const bool alone_;
  std::mt19937_64 random_{11};
  std::vector<BurstCase*> aw_, w_, ar_;
  std::map<std::uint32_t, std::vector<BurstCase*>> writes_, reads_;
  hw::AxiPins pins_;
  bool aw_offered_ = false, w_offered_ = false, ar_offered_ = false;
  std::size_t beat_ = 0, open_ = 0;
};

BurstCase random_burst_case(std::mt19937_64& random, std::uint64_t place, bool write) {
  BurstCase burst;
  burst.write = write;
  hw::AxiAddress& to = burst.address;
  to.id = static_cast<std::uint32_t>(random() % 4);
  to.size = static_cast<std::uint8_t>(random() % 5);
  to.burst = random() % 8 == 0   ? hw::AxiBurst::kFixed
             : random() % 3 == 0 ? hw::AxiBurst::kWrap
                                 : hw::AxiBurst::kIncr;
  to.len = to.burst == hw::AxiBurst::kWrap ? static_cast<std::uint8_t>((2U << random() % 4) - 1)
                                           : static_cast<std::uint8_t>(random() % 16);
  to.address = place + random() % 200;
  if (to.burst == hw::AxiBurst::kWrap) to.address &= ~((std::uint64_t{1} << to.size) - 1);
  if (!write) return burst;
  for (unsigned beat = 0; beat <= to.len; ++beat) {
    hw::AxiData& data = burst.data.emplace_back();
    hw::AxiStrobes& strobes = burst.strobes.emplace_back();
    const hw::AxiRange bytes = hw::axi_beat(to, beat);
    for (std::uint64_t byte = bytes.begin; byte < bytes.end; ++byte) {
      data[byte % kAxiBytes] = static_cast<std::uint8_t>(random());
      strobes[byte % kAxiBytes] = random() % 5 != 0;
    }
  }
  return burst;
}

class AxiBridgeTest : public test::SystemCTest {
 protected:
  AxiBridgeTest() {
    bus.connect_target(dram.socket, kAxiBase, kAxiMemory);
    bus.observe([this](const BusTransaction& transaction, const std::string&) {
      transactions.push_back(transaction);
    });
  }

  /// Elaborates a bridge for bursts, which begin with the next sc_start().
  AxiBridge& connect(std::vector<BurstCase>& bursts, unsigned pauses, unsigned stalls,
                     bool with_address, bool alone = false) {
    if (with_address) dram.take_time_alone();
    hw::AxiSubordinate::Params params;
    params.bytes = kAxiBytes;
    params.asks_with_address = with_address;
    params.stalls_per_mille = stalls;
    managers.push_back(std::make_unique<PinManager>(bursts, clock, pauses, alone));
    bridges.push_back(std::make_unique<AxiBridge>("bridge", machine.bus, params, *managers.back()));
    bus.connect_initiator(bridges.back()->socket);
    sc_core::sc_start(sc_core::SC_ZERO_TIME);
    return *bridges.back();
  }

  void move(tlm::tlm_command command, std::vector<std::uint8_t>& bytes) {
    tlm::tlm_generic_payload payload;
    payload.set_command(command);
    payload.set_address(0);
    payload.set_data_ptr(bytes.data());
    payload.set_data_length(static_cast<unsigned>(bytes.size()));
    bus.targets[0]->transport_dbg(payload);
  }

  hw::Machine machine = hw::find_machine("transformer");
  SystemBus bus{"bus", machine.bus};
  Dram dram{"dram", machine, true};
  Clock clock{machine.bus.clock_mhz};
  std::vector<std::unique_ptr<PinManager>> managers;
  std::vector<std::unique_ptr<AxiBridge>> bridges;
  std::vector<BusTransaction> transactions;
};

void expect_bursts(const std::vector<BurstCase>& bursts, std::vector<std::uint8_t> before,
                   const std::vector<std::uint8_t>& after) {
  for (const BurstCase& burst : bursts) {
    const bool refused = burst.address.burst == hw::AxiBurst::kFixed;
    const bool nowhere = burst.address.address < kAxiBase;
    const hw::AxiResponse expected = refused   ? hw::AxiResponse::kSlvErr
                                     : nowhere ? hw::AxiResponse::kDecErr
                                               : hw::AxiResponse::kOkay;
    EXPECT_EQ(burst.response, expected);
    ASSERT_EQ(burst.data.size(), burst.address.len + 1U);
    if (refused || nowhere) continue;
    for (unsigned beat = 0; beat <= burst.address.len; ++beat) {
      const hw::AxiRange bytes = hw::axi_beat(burst.address, beat);
      for (std::uint64_t byte = bytes.begin; byte < bytes.end; ++byte) {
        const std::uint8_t value = burst.data[beat][byte % kAxiBytes];
        if (!burst.write) {
          ASSERT_EQ(value, before[byte - kAxiBase]);
        } else if (burst.strobes[beat][byte % kAxiBytes]) {
          before[byte - kAxiBase] = value;
        }
      }
    }
  }
  EXPECT_EQ(before, after);
}

// Writes and reads of other places at the same time, with four IDs, all kinds of bursts, narrow,
// unaligned and with holes in the strobes, under pauses of both sides; writes that ask with their
// last beat, or with their address.
class AxiBridgeTraffic : public AxiBridgeTest,
                         public testing::WithParamInterface<std::tuple<unsigned, bool>> {};

TEST_P(AxiBridgeTraffic, MovesEveryByteThatIsAskedFor) {
  const auto [pauses, with_address] = GetParam();
  std::mt19937_64 random(pauses);
  std::vector<BurstCase> bursts;
  for (std::uint64_t i = 0; i < 300; ++i) {
    const bool write = random() % 2 == 0;
    // A separate place for each write, other places for reads; some of them nowhere.
    const std::uint64_t base = random() % 20 == 0 ? 0 : kAxiBase + (write ? 0 : kAxiMemory / 2);
    bursts.push_back(random_burst_case(random, base + 1024 * i + 512, write));
  }
  std::vector<std::uint8_t> before(kAxiMemory), after(kAxiMemory);
  for (std::uint8_t& byte : before) byte = static_cast<std::uint8_t>(random());
  const AxiBridge& bridge = connect(bursts, pauses, pauses, with_address);
  move(tlm::TLM_WRITE_COMMAND, before);
  sc_core::sc_start();
  move(tlm::TLM_READ_COMMAND, after);
  expect_bursts(bursts, before, after);

  const hw::AxiSubordinate::Counts& counts = bridge.counts();
  EXPECT_EQ(counts.reads + counts.writes, bursts.size());
  EXPECT_EQ(counts.requests, transactions.size());
  EXPECT_GT(counts.refused, 0U);
  EXPECT_EQ(counts.most_reads, 8U);
  // Answers with one ID in order; those of several IDs not always.
  const std::vector<const BurstCase*>& ended = managers.back()->ended;
  ASSERT_EQ(ended.size(), bursts.size());
  std::size_t overtaken = 0;
  for (std::size_t i = 1; i < ended.size(); ++i) {
    for (std::size_t j = i - std::min<std::size_t>(i, 8); j < i; ++j) {
      if (ended[i]->write != ended[j]->write || ended[i] > ended[j]) continue;
      EXPECT_NE(ended[i]->address.id, ended[j]->address.id);
      ++overtaken;
    }
  }
  EXPECT_GT(overtaken, 0U);
}
INSTANTIATE_TEST_SUITE_P(Pauses, AxiBridgeTraffic,
                         testing::Combine(testing::Values(0U, 200U, 700U), testing::Bool()));

// A burst alone adds no cycle to what the bus says; several at a time take none away.
class AxiBridgeCycles : public AxiBridgeTest,
                        public testing::WithParamInterface<std::tuple<bool, bool>> {};

TEST_P(AxiBridgeCycles, AreThoseOfTheBus) {
  const auto [alone, with_address] = GetParam();
  std::mt19937_64 random(5);
  std::vector<BurstCase> bursts;
  for (std::uint64_t i = 0; i < 200; ++i) {
    BurstCase burst = random_burst_case(random, kAxiBase + 1024 * i, i % 2 != 0);
    burst.address.burst = hw::AxiBurst::kIncr;
    burst.address.size = 4;
    for (unsigned beat = 0; burst.write && beat <= burst.address.len; ++beat) {
      const hw::AxiRange bytes = hw::axi_beat(burst.address, beat);
      burst.strobes[beat].reset();
      for (std::uint64_t b = bytes.begin; b < bytes.end; ++b)
        burst.strobes[beat].set(b % kAxiBytes);
    }
    bursts.push_back(burst);
  }
  connect(bursts, 0, 0, with_address, alone);
  sc_core::sc_start();
  ASSERT_EQ(transactions.size(), bursts.size());
  std::uint64_t at_once = 0;
  for (const BusTransaction& transaction : transactions) {
    const auto burst = std::find_if(bursts.begin(), bursts.end(), [&](const BurstCase& one) {
      return one.address.address == transaction.address;
    });
    ASSERT_NE(burst, bursts.end());
    const hw::AxiRange bytes = hw::axi_range(burst->address);
    EXPECT_EQ(transaction.bytes, bytes.end - bytes.begin);
    EXPECT_EQ(transaction.write, burst->write);
    EXPECT_EQ(transaction.asked, burst->write && with_address ? burst->addressed : burst->asked);
    // The manager has the answer in the cycle after the one in which it takes it.
    EXPECT_GE(burst->answered + 1, transaction.answered);
    at_once += burst->answered + 1 == transaction.answered ? 1 : 0;
  }
  if (alone) {
    EXPECT_EQ(at_once, bursts.size());
  } else {
    EXPECT_GT(at_once, bursts.size() / 4);
  }
}
INSTANTIATE_TEST_SUITE_P(AloneOrNot, AxiBridgeCycles,
                         testing::Combine(testing::Bool(), testing::Bool()));

class BrokenManager : public hw::AxiManager {
 public:
  void settle(hw::AxiPins& pins) override {
    pins.ar = {true, pins.ar.ready, 0, kAxiBase + 4096 - 16, 1, 4, hw::AxiBurst::kIncr};
  }
  void edge() override {}
};

TEST_F(AxiBridgeTest, ReportsABreachOfTheProtocol) {
  BrokenManager manager;
  AxiBridge bridge("bridge", machine.bus, {}, manager);
  bus.connect_initiator(bridge.socket);
  expect_report("/systole/axi_bridge");
  try {
    sc_core::sc_start();
    FAIL();
  } catch (const sc_core::sc_report& report) {
    EXPECT_EQ(std::string(report.get_msg()),
              "bridge: AXI4, cycle 1, AR: burst crosses a multiple of 4096 bytes");
  }
}

TEST_F(AxiBridgeTest, RefusesParametersThatNoPortHas) {
  BrokenManager manager;
  for (const unsigned bytes : {0U, 3U, 256U}) {
    hw::AxiSubordinate::Params params;
    params.bytes = bytes;
    EXPECT_THROW(hw::AxiSubordinate{params}, std::invalid_argument);
  }
  hw::AxiSubordinate::Params never;
  never.stalls_per_mille = 1000;
  EXPECT_THROW(hw::AxiSubordinate{never}, std::invalid_argument);
}

}  // namespace
}  // namespace systole::tlm_model
