#include "tlm/memory/dram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include "hw/memory/dram_timing.h"
#include "support/report_values.h"
#include "support/tlm/systemc_test.h"
#include "support/tlm/tlm_driver.h"
#include "tlm/bus/system_bus.h"
#include "tlm/common/time.h"
#include "tlm/dma/request_dma.h"
#include "tlm/memory/l2_cache.h"

namespace systole::tlm_model {
namespace {

using sc_core::sc_time;
using test::TlmDriver;

class DramTest : public test::SystemCTest {
 protected:
  DramTest() { driver.socket.bind(dram.socket); }

  hw::Machine::Dram params;
  Dram dram{"dram", params};
  TlmDriver driver{"driver"};
  std::array<unsigned char, 256> data{};
};

TEST_F(DramTest, KeepsWhatIsWrittenAndIsZeroElsewhere) {
  driver.run([this] {
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<unsigned char>(i + 1);
    const std::uint64_t last = dram.capacity() - data.size();
    EXPECT_EQ(driver.write(last, data.data(), data.size()).status, tlm::TLM_OK_RESPONSE);
    std::array<unsigned char, 256> back{};
    EXPECT_EQ(driver.read(last, back.data(), back.size()).status, tlm::TLM_OK_RESPONSE);
    EXPECT_EQ(back, data);
    back.fill(0xff);
    EXPECT_EQ(driver.read(4096, back.data(), back.size()).status, tlm::TLM_OK_RESPONSE);
    EXPECT_EQ(back, (std::array<unsigned char, 256>{}));
  });
}

TEST_F(DramTest, ForgetsARangeToTheByte) {
  constexpr std::uint64_t kFirst = 1000, kEnd = 60'000;
  std::mt19937_64 random(3);
  for (int i = 0; i < 200; ++i) {
    for (std::uint64_t at = kFirst; at < kEnd; ++at) dram.stored(at) = 0x5a;
    // Within a page, across one edge, whole pages.
    const std::uint64_t begin = kFirst + random() % (kEnd - kFirst);
    const std::uint64_t most =
        i % 2 == 0 ? kEnd - begin : std::min<std::uint64_t>(kEnd - begin, 99);
    const std::uint64_t end = begin + random() % (most + 1);
    dram.forget(begin, end);
    for (std::uint64_t at = kFirst; at < kEnd; ++at) {
      const bool gone = begin <= at && at < end;
      ASSERT_EQ(dram.stored(at), gone ? 0 : 0x5a) << at << " of " << begin << " to " << end;
    }
  }
}

TEST_F(DramTest, TakesTheTimeOfItsTimingModel) {
  driver.run([this] {
    hw::DramTiming timing(params);
    std::mt19937_64 random(5);
    for (int i = 0; i < 1000; ++i) {
      const std::uint64_t address = random() % (dram.capacity() - data.size());
      const std::uint64_t bytes = 1 + random() % data.size();
      const bool write = random() % 2 == 0;
      const std::uint64_t now = to_ps(sc_core::sc_time_stamp());
      const auto answer = write ? driver.write(address, data.data(), bytes)
                                : driver.read(address, data.data(), bytes);
      ASSERT_EQ(to_ps(answer.delay), timing.access(address, bytes, write, now).end - now);
      ASSERT_EQ(to_ps(sc_core::sc_time_stamp()), now) << "the target must not wait()";
      sc_core::wait(from_ps(random() % 100'000));
    }
  });
}

// An action that reads has what was stored before a write, and a read what actions have written.
TEST_F(DramTest, WaitsForTheActionsThatShareItsValues) {
  ValueQueue values(&dram.stored(0), dram.capacity());
  values.set_threads(2);
  dram.share_values(values);
  driver.run([&] {
    for (unsigned char i = 1; i <= 200; ++i) {
      const std::uint64_t address = i * std::uint64_t{5000};
      unsigned char seen = 0;
      values.post(
          [&] {
            std::this_thread::sleep_for(std::chrono::microseconds(50));
            seen = dram.stored(address);
            dram.stored(address + 1) = i;
          },
          {address + 1, 1});
      data[0] = 7;
      if (i % 2 == 0) {
        EXPECT_EQ(driver.write(address, data.data(), 1).status, tlm::TLM_OK_RESPONSE);
        values.await();
        EXPECT_EQ(seen, 0);
      } else {
        EXPECT_EQ(driver.read(address + 1, data.data(), 1).status, tlm::TLM_OK_RESPONSE);
        EXPECT_EQ(data[0], i);
      }
      EXPECT_EQ(driver.read(address + 1, nullptr, 1).status, tlm::TLM_OK_RESPONSE) << "time alone";
      values.await();
    }
  });
}

TEST_F(DramTest, AnswersBadRequestsWithAStatus) {
  driver.run([this] {
    const auto status = [this](auto change) {
      tlm::tlm_generic_payload payload;
      TlmDriver::fill(payload, tlm::TLM_READ_COMMAND, 0, data.data(), 64);
      change(payload);
      const auto answer = driver.send(payload, from_ps(77));
      EXPECT_TRUE(answer.delay == from_ps(77) || answer.status == tlm::TLM_OK_RESPONSE);
      return answer.status;
    };
    using Payload = tlm::tlm_generic_payload;
    const std::uint64_t end = dram.capacity();
    EXPECT_EQ(status([&](Payload& p) { p.set_address(end); }), tlm::TLM_ADDRESS_ERROR_RESPONSE);
    EXPECT_EQ(status([&](Payload& p) { p.set_address(end - 63); }),
              tlm::TLM_ADDRESS_ERROR_RESPONSE);
    EXPECT_EQ(status([](Payload& p) { p.set_address(~std::uint64_t{0}); }),
              tlm::TLM_ADDRESS_ERROR_RESPONSE);
    EXPECT_EQ(status([](Payload& p) { p.set_streaming_width(32); }), tlm::TLM_BURST_ERROR_RESPONSE);
    EXPECT_EQ(status([](Payload& p) { p.set_data_length(0); }), tlm::TLM_BURST_ERROR_RESPONSE);
    EXPECT_EQ(status([this](Payload& p) { p.set_byte_enable_ptr(data.data()); }),
              tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE);
    EXPECT_EQ(status([](Payload& p) { p.set_data_ptr(nullptr); }), tlm::TLM_GENERIC_ERROR_RESPONSE);
    EXPECT_EQ(dram.rejected(), 7U);
    EXPECT_EQ(status([&](Payload& p) { p.set_address(end - 64); }), tlm::TLM_OK_RESPONSE);
    EXPECT_EQ(status([](Payload& p) { p.set_command(tlm::TLM_IGNORE_COMMAND); }),
              tlm::TLM_OK_RESPONSE);
    EXPECT_EQ(dram.rejected(), 7U);
  });
  EXPECT_EQ(test::values_of(dram.report()).at("reads"), 1U)
      << "rejected requests take no time of the memory";
}

TEST_F(DramTest, DebugAccessTakesNoTimeAndStopsAtTheEnd) {
  driver.run([this] {
    data.fill(7);
    EXPECT_EQ(driver.debug(tlm::TLM_WRITE_COMMAND, 100, data.data(), 16), 16U);
    std::array<unsigned char, 16> back{};
    EXPECT_EQ(driver.debug(tlm::TLM_READ_COMMAND, 100, back.data(), 16), 16U);
    EXPECT_EQ(back[15], 7);
    EXPECT_EQ(driver.debug(tlm::TLM_READ_COMMAND, dram.capacity() - 4, back.data(), 16), 4U);
    EXPECT_EQ(driver.debug(tlm::TLM_READ_COMMAND, dram.capacity(), back.data(), 16), 0U);
  });
  dram.finish(sc_time(1, sc_core::SC_NS));
  EXPECT_EQ(dram.timing().account(0).time().idle, 1000U);
}

TEST_F(DramTest, OffersDirectMemoryOfItsContents) {
  driver.run([this] {
    tlm::tlm_generic_payload payload;
    TlmDriver::fill(payload, tlm::TLM_READ_COMMAND, 0, data.data(), 64);
    driver.send(payload);
    EXPECT_TRUE(payload.is_dmi_allowed());
    tlm::tlm_dmi dmi;
    ASSERT_TRUE(driver.socket->get_direct_mem_ptr(payload, dmi));
    EXPECT_EQ(dmi.get_start_address(), 0U);
    EXPECT_EQ(dmi.get_end_address(), dram.capacity() - 1);
    const hw::DramTimes& t = dram.timing().times();
    EXPECT_EQ(to_ps(dmi.get_read_latency()), t.controller + t.cl + t.burst);
    EXPECT_EQ(to_ps(dmi.get_write_latency()), t.controller);
    dmi.get_dmi_ptr()[12345] = 99;
    driver.read(12345, data.data(), 1);
    EXPECT_EQ(data[0], 99);
  });
}

// 19.2 GB/s for DDR4-2400, less the share of the refreshes and of reopening rows after them.
TEST_F(DramTest, StreamsReadsAtThePeakRateLessRefresh) {
  constexpr std::uint64_t kRequests = 40'000;
  driver.run([this] {
    std::array<sc_time, 32> done{};
    sc_time end;
    for (std::uint64_t i = 0; i < kRequests; ++i) {
      sc_time& slot = done[i % done.size()];
      if (slot > sc_core::sc_time_stamp()) sc_core::wait(slot - sc_core::sc_time_stamp());
      end = slot = sc_core::sc_time_stamp() + driver.read(64 * i, data.data(), 64).delay;
    }
    const double gigabytes = 64.0 * kRequests / (static_cast<double>(to_ps(end)) / 1000.0);
    const double peak = 19.2 * (1.0 - params.t_rfc_ns / params.t_refi_ns);
    EXPECT_LT(gigabytes, peak);
    EXPECT_GT(gigabytes, 0.97 * peak);
    dram.finish(end);
  });
  const hw::BlockAccount& account = dram.timing().account(0);
  EXPECT_EQ(account.time().busy, kRequests * dram.timing().times().burst);
  EXPECT_GT(static_cast<double>(account.time().stalled[hw::DramTiming::kRefresh].time),
            0.04 * static_cast<double>(account.now()));
}

class DramOnBusTest : public test::SystemCTest {
 protected:
  DramOnBusTest() {
    bus.connect_initiator(writer.socket);
    bus.connect_initiator(reader.socket);
    bus.connect_target(empty.socket, 0, empty.capacity());
    bus.connect_target(dram.socket, empty.capacity(), dram.capacity());
  }
  SystemBus bus{"bus", {}};
  Dram empty{"empty", {}};
  Dram dram{"dram", {}};
  TlmDriver writer{"writer"};
  TlmDriver reader{"reader"};
};

TEST_F(DramOnBusTest, OneInitiatorReadsWhatAnotherWrites) {
  constexpr std::uint64_t kSpan = 8192;
  constexpr std::size_t kBytes = 48;
  std::mt19937_64 random(9);
  std::vector<unsigned char> model(kSpan);
  test::run_body([&] {
    for (int i = 0; i < 2000; ++i) {
      const std::uint64_t address = random() % (kSpan - kBytes);
      const auto here = model.begin() + static_cast<std::ptrdiff_t>(address);
      if (random() % 2 == 0) {
        std::generate_n(here, kBytes, [&] { return static_cast<unsigned char>(random()); });
        writer.write(dram.capacity() + address, &*here, kBytes);
      } else {
        std::vector<unsigned char> back(kBytes);
        reader.read(dram.capacity() + address, back.data(), kBytes);
        ASSERT_TRUE(std::equal(back.begin(), back.end(), here));
      }
    }
    std::vector<unsigned char> memory(kSpan);
    writer.debug(tlm::TLM_READ_COMMAND, dram.capacity(), memory.data(), kSpan);
    EXPECT_EQ(memory, model);
    writer.debug(tlm::TLM_READ_COMMAND, 0, memory.data(), kSpan);
    EXPECT_EQ(memory, std::vector<unsigned char>(kSpan)) << "the other target's";
  });
}

class DramElaboration : public test::SystemCTest {};

TEST_F(DramElaboration, TimingOnlyNeedsNoDataAndOffersNone) {
  Dram dram("dram", hw::Machine::Dram{}, false);
  TlmDriver driver("driver");
  driver.socket.bind(dram.socket);
  driver.run([&] {
    const auto answer = driver.read(64, nullptr, 64);
    EXPECT_EQ(answer.status, tlm::TLM_OK_RESPONSE);
    EXPECT_EQ(to_ps(answer.delay), hw::DramTiming({}).access(64, 64, false, 0).end);
    tlm::tlm_generic_payload payload;
    TlmDriver::fill(payload, tlm::TLM_READ_COMMAND, 0, nullptr, 64);
    tlm::tlm_dmi dmi;
    EXPECT_FALSE(driver.socket->get_direct_mem_ptr(payload, dmi));
    // Requests with data move them: a core reads its program.
    std::array<unsigned char, 4> bytes{1, 2, 3, 4}, read{};
    EXPECT_EQ(driver.debug(tlm::TLM_WRITE_COMMAND, 64, bytes.data(), 4), 4U);
    EXPECT_EQ(driver.read(64, read.data(), 4).status, tlm::TLM_OK_RESPONSE);
    EXPECT_EQ(read, bytes);
  });
}

TEST_F(DramElaboration, AHugeMemoryCostsOnlyWhatIsTouched) {
  hw::Machine::Dram params;
  params.mib = 256 * 1024;
  Dram dram("dram", params);
  TlmDriver driver("driver");
  driver.socket.bind(dram.socket);
  driver.run([&] {
    unsigned char byte = 42;
    EXPECT_EQ(driver.write(dram.capacity() - 1, &byte, 1).status, tlm::TLM_OK_RESPONSE);
    byte = 0;
    driver.read(dram.capacity() - 1, &byte, 1);
    EXPECT_EQ(byte, 42);
  });
}

TEST_F(DramElaboration, RefusesBadParameters) {
  hw::Machine::Dram params;
  params.banks = 12;
  EXPECT_THROW(Dram("dram", params), std::invalid_argument);
}

/// Gemmini's DMA before a warm L2 cache: 16 requests of 64 bytes in flight, 16-byte beats.
class ReadBandwidthTest : public test::SystemCTest,
                          public ::testing::WithParamInterface<std::uint32_t> {};

TEST_P(ReadBandwidthTest, IsTheBusOrAKibibytePerLatency) {
  hw::Machine machine;
  machine.l2.kib = 512;
  machine.l2.hit_latency = GetParam();
  SystemBus bus("bus", machine.bus);
  Dram dram("dram", machine.dram, false);
  L2Cache l2("l2", machine, dram.capacity(), false);
  RequestDma port("port", machine, machine.dma.outstanding_reads);
  l2.memory.bind(dram.socket);
  bus.connect_target(l2.socket, 0, dram.capacity());
  bus.connect_initiator(port.socket);
  constexpr std::uint64_t kBytes = 256 * 1024, kRow = 64, kPitch = 128;
  std::uint64_t cycles = 0;
  test::run_body([&] {
    port.read(0, nullptr, 2 * kBytes);  // fills the cache
    port.synchronise();
    const std::uint64_t begun = port.next_issue() + 1000;
    port.read(0, nullptr, kRow, begun);
    cycles = port.read_rows({0, kPitch, nullptr, 0, kBytes / kRow, kRow}, {}) - begun;
  });
  // To the cache and back, four beats out of a bank and, store and forward, four on the bus.
  const double latency = 4 + GetParam() + 3 + 3 + 4;
  const double expected = std::min(16.0, 1024.0 / latency);
  EXPECT_NEAR(static_cast<double>(kBytes) / static_cast<double>(cycles), expected, expected * 0.02);
}

// 1024 / 200 = 5.1 bytes per cycle is what Gemmini's large matmuls get.
INSTANTIATE_TEST_SUITE_P(Latencies, ReadBandwidthTest,
                         ::testing::Values(10U, 50U, 86U, 136U, 186U, 286U));

}  // namespace
}  // namespace systole::tlm_model
