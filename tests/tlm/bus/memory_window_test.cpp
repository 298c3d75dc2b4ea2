#include "tlm/bus/memory_window.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "hw/machine/machine.h"
#include "support/tlm/systemc_test.h"
#include "support/tlm/tlm_driver.h"
#include "tlm/bus/request_batch.h"
#include "tlm/memory/dram.h"

namespace systole::tlm_model {
namespace {

constexpr std::uint64_t kBase = 0x30100, kWindowBytes = 0x2000;

class MemoryWindowTest : public test::SystemCTest {
 protected:
  MemoryWindowTest()
      : dram("dram", params()), window("window", kBase, kWindowBytes), driver("driver") {
    driver.socket.bind(window.target);
    window.memory.bind(dram.socket);
  }
  static hw::Machine::Dram params() {
    hw::Machine::Dram dram;
    dram.mib = 1;
    return dram;
  }

  Dram dram;
  MemoryWindow window;
  test::TlmDriver driver;
};

// Bytes and times are those of the memory at the address behind it.
TEST_F(MemoryWindowTest, IsAPartOfTheMemory) {
  hw::DramTiming timing(params());
  driver.run([&] {
    std::mt19937 random(3);
    for (int i = 0; i < 60; ++i) {
      const bool write = i % 2 == 0;
      std::vector<std::uint8_t> data(1 + random() % 300, static_cast<std::uint8_t>(i + 1));
      const std::uint64_t at = random() % (kWindowBytes - data.size() + 1);
      const std::uint64_t now = to_ps(sc_core::sc_time_stamp());
      const std::uint64_t end = timing.access(kBase + at, data.size(), write, now).end;
      const auto answer = write ? driver.write(at, data.data(), data.size())
                                : driver.read(at, data.data(), data.size());
      EXPECT_EQ(answer.status, tlm::TLM_OK_RESPONSE);
      EXPECT_EQ(to_ps(answer.delay), end - now);
      for (std::size_t byte = 0; byte < data.size(); ++byte) {
        ASSERT_EQ(data[byte], dram.stored(kBase + at + byte));
      }
      sc_core::wait(sc_core::sc_time(1 + random() % 200, sc_core::SC_NS));
    }
  });
}

TEST_F(MemoryWindowTest, AnswersWhatIsOutsideWithAnError) {
  driver.run([&] {
    std::vector<std::uint8_t> data(64, 1);
    const std::uint64_t bad[] = {kWindowBytes, kWindowBytes - 63, ~std::uint64_t{0} - 7};
    for (const std::uint64_t at : bad) {
      EXPECT_EQ(driver.write(at, data.data(), 64).status, tlm::TLM_ADDRESS_ERROR_RESPONSE) << at;
      EXPECT_EQ(driver.debug(tlm::TLM_WRITE_COMMAND, at, data.data(), 64), 0U) << at;
    }
    EXPECT_EQ(driver.write(kWindowBytes - 64, data.data(), 64).status, tlm::TLM_OK_RESPONSE);
    EXPECT_EQ(driver.debug(tlm::TLM_WRITE_COMMAND, kWindowBytes - 64, data.data(), 64), 64U);
  });
  EXPECT_EQ(dram.stored(kBase + kWindowBytes - 1), 1U);
  EXPECT_EQ(dram.stored(kBase + kWindowBytes), 0U);
  EXPECT_EQ(dram.rejected(), 0U);
}

// A batch is served as a whole, or request by request if one of it is outside.
TEST_F(MemoryWindowTest, PassesOnBatches) {
  driver.run([&] {
    for (const std::uint64_t last : {std::uint64_t{512}, kWindowBytes}) {
      RequestBatch batch;
      batch.direct = true;
      for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{256}, last}) {
        batch.requests.push_back(
            {at, nullptr, to_ps(sc_core::sc_time_stamp()), 64, tlm::TLM_INCOMPLETE_RESPONSE});
      }
      std::vector<std::uint8_t> data(64);
      if (last == kWindowBytes) {
        for (RequestBatch::Request& request : batch.requests) request.data = data.data();
      }
      tlm::tlm_generic_payload payload;
      payload.set_command(tlm::TLM_READ_COMMAND);
      transport_batch(batch, payload,
                      [&](auto& each, auto& delay) { driver.socket->b_transport(each, delay); });
      EXPECT_TRUE(batch.requests[0].is_ok());
      EXPECT_TRUE(batch.requests[1].is_ok());
      EXPECT_EQ(batch.requests[2].is_ok(), last != kWindowBytes);
      EXPECT_EQ(batch.requests[1].address, 256U);
    }
  });
}

TEST_F(MemoryWindowTest, GrantsDirectAccessToItself) {
  driver.run([&] {
    tlm::tlm_generic_payload payload;
    payload.set_command(tlm::TLM_READ_COMMAND);
    payload.set_address(16);
    tlm::tlm_dmi dmi;
    ASSERT_TRUE(driver.socket->get_direct_mem_ptr(payload, dmi));
    EXPECT_EQ(dmi.get_start_address(), 0U);
    EXPECT_EQ(dmi.get_end_address(), kWindowBytes - 1);
    EXPECT_EQ(dmi.get_dmi_ptr(), &dram.stored(kBase));
    EXPECT_EQ(payload.get_address(), 16U);
  });
}

}  // namespace
}  // namespace systole::tlm_model
