#include "tlm/memory/l2_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "support/report_values.h"
#include "support/tlm/fresh_kernel.h"
#include "support/tlm/systemc_test.h"
#include "support/tlm/tlm_driver.h"
#include "tlm/bus/request_batch.h"
#include "tlm/bus/system_bus.h"
#include "tlm/dma/request_dma.h"
#include "tlm/memory/dram.h"

namespace systole::tlm_model {
namespace {

/// 2 KiB of cache (4 sets of 8 lines) before 1 MiB of memory.
hw::Machine small() {
  hw::Machine machine;
  machine.l2.kib = 2;
  machine.dram.mib = 1;
  machine.dram.t_refi_ns = 0;
  return machine;
}

struct CacheRig {
  explicit CacheRig(const hw::Machine& machine, bool functional = true)
      : dram("dram", machine.dram, functional), cache("l2", machine, dram.capacity(), functional) {
    driver.socket.bind(cache.socket);
    cache.memory.bind(dram.socket);
  }

  [[nodiscard]] std::map<std::string, std::uint64_t> counters() const {
    hw::BlockReport report = cache.report();
    report.parts.push_back(dram.report());
    return test::values_of(report);
  }

  Dram dram;
  L2Cache cache;
  test::TlmDriver driver{"driver"};
};

/// A random request; half of them are whole lines.
struct Access {
  bool write;
  std::uint64_t address;
  std::uint32_t bytes;
};
Access random_access(std::mt19937& random) {
  constexpr std::uint64_t kSpan = 8192;
  if (random() % 2 == 0) return {random() % 2 == 0, random() % (kSpan / 64) * 64, 64};
  const auto bytes = static_cast<std::uint32_t>(1 + random() % 300);
  return {random() % 2 == 0, random() % (kSpan - bytes), bytes};
}

class L2CacheTest : public test::SystemCTest {};

TEST_F(L2CacheTest, ReadsWhatWasWrittenWhereverItStands) {
  CacheRig rig(small());
  rig.driver.run([&] {
    std::mt19937 random(1);
    std::vector<std::uint8_t> expected(8192, 0), data(300);
    for (int i = 0; i < 4000; ++i) {
      const Access access = random_access(random);
      std::uint8_t* const here = expected.data() + access.address;
      const bool debug = random() % 8 == 0;
      const auto command = access.write ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND;
      for (std::uint8_t& byte : data) byte = static_cast<std::uint8_t>(random());
      if (access.write) std::copy_n(data.begin(), access.bytes, here);
      tlm::tlm_generic_payload payload;
      test::TlmDriver::fill(payload, command, access.address, data.data(), access.bytes);
      if (debug) {
        ASSERT_EQ(rig.driver.debug(command, access.address, data.data(), access.bytes),
                  access.bytes);
      } else {
        ASSERT_EQ(rig.driver.send(payload).status, tlm::TLM_OK_RESPONSE);
      }
      ASSERT_TRUE(std::equal(here, here + access.bytes, data.begin())) << i;
      if (random() % 4 == 0) sc_core::wait(from_ps(random() % 300'000));
    }
    std::vector<std::uint8_t> all(8192);
    rig.driver.debug(tlm::TLM_READ_COMMAND, 0, all.data(), all.size());
    EXPECT_EQ(all, expected);
  });
  const auto counters = rig.counters();
  EXPECT_GT(counters.at("write_backs"), 100U);
  EXPECT_GT(counters.at("hits"), 100U);
}

TEST_F(L2CacheTest, MemorySeesFillsAndWriteBacksAndNothingElse) {
  CacheRig rig(small());
  rig.driver.run([&] {
    std::mt19937 random(2);
    std::vector<std::uint8_t> data(300);
    for (int i = 0; i < 3000; ++i) {
      const Access access = random_access(random);
      if (access.write) {
        rig.driver.write(access.address, data.data(), access.bytes);
      } else {
        rig.driver.read(access.address, data.data(), access.bytes);
      }
      sc_core::wait(from_ps(random() % 200'000));
    }
  });
  const auto counters = rig.counters();
  EXPECT_EQ(counters.at("dram.reads"), counters.at("fills"));
  EXPECT_EQ(counters.at("dram.writes"), counters.at("write_backs"));
  EXPECT_EQ(counters.at("dram.read_bytes") + counters.at("dram.written_bytes"),
            rig.cache.cache().memory_bytes());
  EXPECT_EQ(counters.at("reads") + counters.at("writes"),
            counters.at("hits") + counters.at("merged") + counters.at("misses"));
}

/// Cycles (ns, at 1 GHz) of each of many requests, with some time between them.
std::vector<std::uint64_t> delays(const hw::Machine& machine, bool functional) {
  test::fresh_kernel();
  CacheRig rig(machine, functional);
  std::vector<std::uint64_t> result;
  rig.driver.run([&] {
    std::mt19937 random(3);
    std::vector<std::uint8_t> data(300);
    for (int i = 0; i < 500; ++i) {
      const Access access = random_access(random);
      void* const bytes = functional ? data.data() : nullptr;
      const auto answer = access.write ? rig.driver.write(access.address, bytes, access.bytes)
                                       : rig.driver.read(access.address, bytes, access.bytes);
      EXPECT_EQ(answer.status, tlm::TLM_OK_RESPONSE);
      result.push_back(to_ps(answer.delay));
      sc_core::wait(from_ps(random() % 100'000));
    }
  });
  return result;
}

TEST_F(L2CacheTest, TakesTheSameTimeWithoutValues) {
  EXPECT_EQ(delays(small(), true), delays(small(), false));
}

TEST_F(L2CacheTest, AHitTakesItsLatencyAtTheClockOfTheBus) {
  hw::Machine machine = small();
  machine.bus.clock_mhz = 500;
  CacheRig rig(machine);
  rig.driver.run([&] {
    std::vector<std::uint8_t> data(128);
    const std::uint64_t miss = to_ps(rig.driver.read(0, data.data(), 64).delay);
    EXPECT_GT(miss, 20'000U + 37'000U) << "look-up and an access of the DRAM";
    sc_core::wait(1, sc_core::SC_US);
    EXPECT_EQ(to_ps(rig.driver.read(0, data.data(), 64).delay), (10U + 3) * 2000);
    rig.driver.read(64, data.data(), 64);
    sc_core::wait(1, sc_core::SC_US);
    // Two lines in two banks, at once.
    EXPECT_EQ(to_ps(rig.driver.read(0, data.data(), 128).delay), (10U + 3) * 2000);
    EXPECT_EQ(to_ps(rig.driver.read(60, data.data(), 8).delay), (10U + 4) * 2000)
        << "4 cycles after the request before";
  });
}

/// Completion times of a batch of reads and one of writes, as one call or request by request.
std::vector<std::uint64_t> batch_times(bool as_one) {
  test::fresh_kernel();
  CacheRig rig(small());
  std::vector<std::uint64_t> times;
  rig.driver.run([&] {
    std::mt19937 random(4);
    std::vector<std::uint8_t> data(1 << 12);
    for (const tlm::tlm_command command :
         {tlm::TLM_WRITE_COMMAND, tlm::TLM_READ_COMMAND, tlm::TLM_WRITE_COMMAND}) {
      RequestBatch batch;
      const std::uint64_t now = to_ps(sc_core::sc_time_stamp());
      for (std::uint64_t i = 0; i < 60; ++i) {
        batch.requests.push_back({random() % 6000 / 16 * 16, data.data(), now + i * 1000, 48,
                                  tlm::TLM_INCOMPLETE_RESPONSE});
      }
      tlm::tlm_generic_payload payload;
      payload.set_command(command);
      std::size_t calls = 0;
      transport_batch(batch, payload, [&](auto& same, auto& delay) {
        ++calls;
        if (!as_one) same.template clear_extension<RequestBatch>();
        rig.driver.socket->b_transport(same, delay);
      });
      EXPECT_EQ(calls, as_one ? 1U : 60U);
      for (const RequestBatch::Request& request : batch.requests) {
        EXPECT_TRUE(request.is_ok());
        times.push_back(request.time);
      }
      sc_core::wait(1, sc_core::SC_US);
    }
  });
  return times;
}

TEST_F(L2CacheTest, ServesABatchAsItWouldServeItsRequests) {
  EXPECT_EQ(batch_times(true), batch_times(false));
}

class L2BandwidthTest : public L2CacheTest, public ::testing::WithParamInterface<std::uint32_t> {};

/// Bytes per cycle of hits: 16 requests of 64 bytes per latency, or the width of the bus.
TEST_P(L2BandwidthTest, IsTheWindowOverTheLatency) {
  constexpr std::uint64_t kBytes = 32 * 1024;
  hw::Machine machine = small();
  machine.l2.kib = 64;
  machine.l2.hit_latency = GetParam();
  SystemBus bus("bus", machine.bus);
  Dram dram("dram", machine.dram);
  L2Cache cache("l2", machine, dram.capacity());
  RequestDma port("port", machine, machine.dma.outstanding_reads);
  bus.connect_initiator(port.socket);
  bus.connect_target(cache.socket, 0, dram.capacity());
  cache.memory.bind(dram.socket);
  std::vector<std::uint8_t> data(kBytes);
  test::run_body([&] {
    port.read(0, data.data(), kBytes);
    port.synchronise();
    sc_core::wait(10, sc_core::SC_US);
    const std::uint64_t start = to_ps(sc_core::sc_time_stamp()) / 1000;
    const std::uint64_t cycles = port.read(0, data.data(), kBytes) - start;
    // 4 to the cache, 3 more for its beats and for those of the bus, 4 back.
    const std::uint64_t latency = 4 + GetParam() + 3 + 3 + 4;
    const std::uint64_t window = std::max<std::uint64_t>(latency, 16 * 4);
    EXPECT_GE(cycles, kBytes / 1024 * window);
    EXPECT_LE(cycles, kBytes / 1024 * window + latency + 16);
  });
}

INSTANTIATE_TEST_SUITE_P(HitLatencies, L2BandwidthTest, ::testing::Values(0U, 10U, 86U, 186U));

TEST_F(L2CacheTest, AnswersBadRequestsWithAStatusAndOffersNoDirectAccess) {
  CacheRig rig(small());
  rig.driver.run([&] {
    std::uint8_t data[64] = {};
    const std::uint64_t end = rig.cache.capacity();
    EXPECT_EQ(end, rig.dram.capacity());
    EXPECT_EQ(rig.driver.read(end, data, 64).status, tlm::TLM_ADDRESS_ERROR_RESPONSE);
    EXPECT_EQ(rig.driver.read(end - 63, data, 64).status, tlm::TLM_ADDRESS_ERROR_RESPONSE);
    EXPECT_EQ(rig.driver.write(0, nullptr, 64).status, tlm::TLM_GENERIC_ERROR_RESPONSE);
    EXPECT_EQ(rig.driver.write(0, data, 0).status, tlm::TLM_BURST_ERROR_RESPONSE);
    tlm::tlm_generic_payload payload;
    test::TlmDriver::fill(payload, tlm::TLM_READ_COMMAND, 0, data, 64);
    EXPECT_EQ(rig.driver.send(payload).status, tlm::TLM_OK_RESPONSE);
    EXPECT_FALSE(payload.is_dmi_allowed());
    tlm::tlm_dmi dmi;
    EXPECT_FALSE(rig.driver.socket->get_direct_mem_ptr(payload, dmi));
  });
  EXPECT_EQ(rig.cache.rejected(), 4U);
  EXPECT_EQ(rig.counters().at("reads"), 1U);
}

// An initiator writes values directly to the upper half of memory, behind the cache, which sees
// the time of its requests alone. Others read and write the lower half as ever.
TEST_F(L2CacheTest, LeavesValuesOfDirectAccessInMemory) {
  constexpr std::uint64_t kFirst = 512 * 1024, kSpan = 8192;
  CacheRig rig(small());
  rig.cache.leave_values(kFirst);
  rig.driver.run([&] {
    tlm::tlm_generic_payload payload;
    payload.set_command(tlm::TLM_WRITE_COMMAND);
    payload.set_address(kFirst - 1);
    tlm::tlm_dmi dmi;
    EXPECT_FALSE(rig.driver.socket->get_direct_mem_ptr(payload, dmi));
    payload.set_address(kFirst + 100);
    ASSERT_TRUE(rig.driver.socket->get_direct_mem_ptr(payload, dmi));
    EXPECT_EQ(dmi.get_start_address(), kFirst);
    EXPECT_EQ(dmi.get_end_address(), rig.dram.capacity() - 1);
    unsigned char* const direct = dmi.get_dmi_ptr();
    EXPECT_EQ(direct, &rig.dram.stored(kFirst));

    std::mt19937 random(5);
    std::vector<std::uint8_t> low(kSpan), high(kSpan);
    std::vector<std::uint8_t> data(512);
    for (int i = 0; i < 4000; ++i) {
      const Access access = random_access(random);
      const bool upper = random() % 2 == 0, timed_alone = random() % 2 == 0;
      std::vector<std::uint8_t>& model = upper ? high : low;
      for (std::uint8_t& byte : data) byte = static_cast<std::uint8_t>(random());
      const std::uint64_t address = access.address + (upper ? kFirst : 0);
      if (upper && timed_alone) {
        RequestBatch batch;
        batch.direct = true;
        batch.requests.push_back({address, nullptr, to_ps(sc_core::sc_time_stamp()), access.bytes,
                                  tlm::TLM_INCOMPLETE_RESPONSE});
        payload.set_command(access.write ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND);
        transport_batch(batch, payload,
                        [&](auto& of, auto& delay) { rig.driver.socket->b_transport(of, delay); });
        EXPECT_TRUE(batch.requests.front().is_ok());
        if (access.write) std::copy_n(data.begin(), access.bytes, direct + access.address);
      } else if (access.write) {
        rig.driver.write(address, data.data(), access.bytes);
      } else {
        rig.driver.read(address, data.data(), access.bytes);
        ASSERT_TRUE(std::equal(data.begin(), data.begin() + access.bytes,
                               model.begin() + static_cast<std::ptrdiff_t>(access.address)))
            << i;
      }
      if (access.write) {
        std::copy_n(data.begin(), access.bytes,
                    model.begin() + static_cast<std::ptrdiff_t>(access.address));
      }
      if (i % 64 != 0) continue;
      std::vector<std::uint8_t> found(kSpan);
      rig.driver.debug(tlm::TLM_READ_COMMAND, 0, found.data(), kSpan);
      ASSERT_EQ(found, low) << i;
      rig.driver.debug(tlm::TLM_READ_COMMAND, kFirst, found.data(), kSpan);
      ASSERT_EQ(found, high) << i;
      ASSERT_TRUE(std::equal(high.begin(), high.end(), direct)) << i;
    }
  });
  EXPECT_GT(rig.counters().at("write_backs"), 100U);
}

}  // namespace
}  // namespace systole::tlm_model
