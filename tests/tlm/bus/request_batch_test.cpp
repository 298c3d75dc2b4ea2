#include "tlm/bus/request_batch.h"

#include <gtest/gtest.h>
#include <tlm_utils/simple_initiator_socket.h>
#include <tlm_utils/simple_target_socket.h>

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "hw/machine/machine.h"
#include "support/report_values.h"
#include "support/tlm/fresh_kernel.h"
#include "support/tlm/systemc_test.h"
#include "support/tlm/tlm_driver.h"
#include "tlm/bus/system_bus.h"
#include "tlm/dma/request_dma.h"
#include "tlm/memory/dram.h"

namespace systole::tlm_model {
namespace {

/// What a module between initiator and target makes of a batch.
enum class Habit { kPassesOn, kHides, kDelays };

/// Passes calls on and counts them.
class Tap : public sc_core::sc_module {
 public:
  tlm_utils::simple_target_socket<Tap> in{"in"};
  tlm_utils::simple_initiator_socket<Tap> out{"out"};
  std::uint64_t calls = 0;

  Tap(const sc_core::sc_module_name& name, Habit habit) : sc_module(name), habit_(habit) {
    in.register_b_transport(this, &Tap::b_transport);
  }

 private:
  void b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
    ++calls;
    if (habit_ == Habit::kHides) payload.clear_extension<RequestBatch>();
    if (habit_ == Habit::kDelays) delay += sc_core::sc_time(1, sc_core::SC_NS);
    out->b_transport(payload, delay);
  }

  const Habit habit_;
};

/// Two DMA ports that share a bus and a memory, with a module in between that may not know batches.
struct BatchRig {
  BatchRig(const std::string& name, const hw::Machine& machine, Habit at_bus, Habit at_memory)
      : bus((name + "_bus").c_str(), machine.bus),
        dram((name + "_dram").c_str(), machine.dram),
        before_memory((name + "_before_memory").c_str(), at_memory),
        before_bus((name + "_before_bus").c_str(), at_bus),
        first((name + "_first").c_str(), machine, machine.dma.outstanding_reads),
        second((name + "_second").c_str(), machine, machine.dma.outstanding_writes) {
    first.socket.bind(before_bus.in);
    bus.connect_initiator(before_bus.out);
    bus.connect_initiator(second.socket);
    bus.connect_target(before_memory.in, 0, dram.capacity());
    before_memory.out.bind(dram.socket);
  }

  /// Ends the accounts a second after the last event.
  [[nodiscard]] std::map<std::string, std::uint64_t> counters() {
    const sc_core::sc_time end = sc_core::sc_time_stamp() + sc_core::sc_time(1, sc_core::SC_SEC);
    bus.finish(end);
    dram.finish(end);
    std::map<std::string, std::uint64_t> all;
    for (const hw::BlockReport& report : {bus.report(), dram.report()}) {
      for (const auto& [name, value] : test::values_of(report)) all[name] = value;
    }
    all["window_wait"] = first.stats().window_wait_cycles + second.stats().window_wait_cycles;
    return all;
  }

  SystemBus bus;
  Dram dram;
  Tap before_memory;
  Tap before_bus;
  RequestDma first, second;
  sc_core::sc_event half_done;
  std::vector<std::uint64_t> arrivals;
  std::vector<std::uint8_t> data = std::vector<std::uint8_t>(1 << 16);
};

class RequestBatchTest : public test::SystemCTest {
 protected:
  static constexpr std::uint64_t kSpan = 1 << 20;

  RequestBatchTest() {
    machine_.dram.mib = 1;
    machine_.dma.outstanding_reads = 8;
  }

  /// Random transfers, the same for every rig: on one port alone, whose requests can go in batches,
  /// then on both at once.
  static void spawn_traffic(BatchRig& rig) {
    sc_core::sc_spawn([&rig] {
      sc_core::wait(rig.half_done);
      std::mt19937 random(1);
      std::vector<std::uint8_t> data(1 << 12);
      for (int i = 0; i < 300; ++i) {
        for (std::uint8_t& byte : data) byte = static_cast<std::uint8_t>(random());
        rig.second.write(random() % (kSpan - data.size()), data.data(), 1 + random() % 2000,
                         rig.second.next_issue() + random() % 100);
        if (random() % 8 == 0) rig.second.synchronise();
      }
    });
    sc_core::sc_spawn([&rig] {
      std::mt19937 random(2);
      for (int i = 0; i < 300; ++i) {
        if (i == 150) rig.half_done.notify();
        const std::uint64_t bytes = 1 + random() % 300;
        const std::uint64_t rows = 1 + random() % 100;
        rig.first.read_rows(
            {random() % (kSpan / 2), random() % 5000, rig.data.data(), bytes, rows, bytes},
            [&rig](const DmaPort::Arrival& arrival) {
              for (const std::uint64_t value :
                   {arrival.row, arrival.bytes, arrival.cycle, arrival.row_done,
                    std::uint64_t{arrival.ends_row}}) {
                rig.arrivals.push_back(value);
              }
            });
        rig.arrivals.push_back(rig.first.next_issue());
        if (random() % 8 == 0) rig.first.synchronise();
      }
    });
  }

  hw::Machine machine_;
};

TEST_F(RequestBatchTest, DoesWhatAsManyCallsDo) {
  struct Run {
    std::uint64_t calls_to_bus, calls_to_memory, requests;
    std::vector<std::uint64_t> arrivals;
    std::vector<std::uint8_t> data;
    std::map<std::string, std::uint64_t> counters;
  };
  const auto run = [this](Habit at_bus, Habit at_memory) {
    test::fresh_kernel();
    BatchRig rig("rig", machine_, at_bus, at_memory);
    spawn_traffic(rig);
    sc_core::sc_start();
    return Run{rig.before_bus.calls,
               rig.before_memory.calls,
               rig.first.stats().requests + rig.second.stats().requests,
               rig.arrivals,
               rig.data,
               rig.counters()};
  };
  const Run batched = run(Habit::kPassesOn, Habit::kPassesOn);
  const Run single = run(Habit::kHides, Habit::kPassesOn);
  const Run half = run(Habit::kPassesOn, Habit::kHides);
  EXPECT_EQ(half.calls_to_memory, half.requests);
  EXPECT_LT(batched.calls_to_bus * 2, single.calls_to_bus) << "hardly any batches";
  EXPECT_LT(batched.calls_to_memory * 3 / 2, half.calls_to_memory);
  for (const Run* other : {&single, &half}) {
    EXPECT_EQ(batched.arrivals, other->arrivals);
    EXPECT_EQ(batched.data, other->data);
    EXPECT_EQ(batched.counters, other->counters);
  }
  EXPECT_GT(batched.counters.at("row_conflicts"), 0U);
  EXPECT_GT(batched.counters.at("window_wait"), 0U);
}

TEST_F(RequestBatchTest, ASlowBridgeInBetweenSlowsEveryRequest) {
  BatchRig rig("rig", machine_, Habit::kDelays, Habit::kPassesOn);
  BatchRig free("free", machine_, Habit::kPassesOn, Habit::kPassesOn);
  std::vector<std::uint64_t> delayed, direct;
  const auto read = [](BatchRig& from, std::vector<std::uint64_t>& to) {
    sc_core::sc_spawn([&from, &to] {
      from.first.read_rows({0, 64, from.data.data(), 64, 8, 64},
                           [&to](const DmaPort::Arrival& arrival) { to.push_back(arrival.cycle); });
    });
  };
  read(rig, delayed);
  read(free, direct);
  sc_core::sc_start();
  EXPECT_EQ(rig.before_bus.calls, 8U);
  ASSERT_EQ(delayed.size(), 8U);
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(delayed[i], direct[i] + 1) << i;
}

TEST_F(RequestBatchTest, EveryRequestHasItsOwnStatus) {
  BatchRig rig("rig", machine_, Habit::kPassesOn, Habit::kPassesOn);
  RequestBatch batch;
  for (const std::uint64_t address : {std::uint64_t{0}, kSpan - 8, std::uint64_t{64}}) {
    RequestBatch::Request& request = batch.requests.emplace_back();
    request.address = address;
    request.data = rig.data.data();
    request.bytes = 16;
  }
  test::TlmDriver driver("driver");
  Dram dram("dram", machine_.dram);
  driver.socket.bind(dram.socket);
  test::run_body([&] {
    tlm::tlm_generic_payload payload;
    payload.set_read();
    transport_batch(batch, payload,
                    [&](auto& same, auto& delay) { driver.socket->b_transport(same, delay); });
    EXPECT_EQ(payload.get_extension<RequestBatch>(), nullptr);
  });
  EXPECT_TRUE(batch.served);
  EXPECT_EQ(batch.requests[0].status, tlm::TLM_OK_RESPONSE);
  EXPECT_EQ(batch.requests[1].status, tlm::TLM_ADDRESS_ERROR_RESPONSE);
  EXPECT_EQ(batch.requests[2].status, tlm::TLM_OK_RESPONSE);
  EXPECT_EQ(dram.rejected(), 1U);
  EXPECT_LT(batch.requests[0].time, batch.requests[2].time);
  EXPECT_EQ(batch.requests[1].time, 0U) << "took no time";
}

TEST_F(RequestBatchTest, MayLeaveTheTarget) {
  // The bus cannot serve it as one: what is outside gets its error, what is inside its data.
  expect_report("/systole/dma");
  BatchRig rig("rig", machine_, Habit::kPassesOn, Habit::kPassesOn);
  std::string message;
  test::run_body([&] {
    try {
      rig.second.write(kSpan - 128, rig.data.data(), 256);
    } catch (const sc_core::sc_report& report) {
      message = report.get_msg();
    }
  });
  EXPECT_EQ(message, "TLM_ADDRESS_ERROR_RESPONSE at address 1048576");
  EXPECT_EQ(rig.bus.core().decode_errors, 2U);
  EXPECT_EQ(rig.dram.rejected(), 0U);
}

}  // namespace
}  // namespace systole::tlm_model
