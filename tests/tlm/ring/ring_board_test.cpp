#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "hw/ring/hbm.h"
#include "hw/ring/pass_image.h"
#include "support/report_values.h"
#include "support/tlm/core_rig.h"
#include "support/tlm/fresh_kernel.h"
#include "support/tlm/systemc_test.h"
#include "support/tlm/tlm_driver.h"
#include "tlm/ring/pcie.h"
#include "tlm/ring/ring_system.h"

namespace systole::tlm_model::dfx {
namespace {

using hw::Half;
using hw::dfx::CoreAddresses;
using hw::dfx::Opcode;
using hw::dfx::Pass;
using hw::dfx::Second;
using test::ns;

constexpr std::uint32_t kFileElements = 2048;
constexpr std::uint64_t kTable = 512;  ///< in DDR

/// Cards with an initiator that is not their host.
struct BoardRig {
  explicit BoardRig(const hw::Machine& of, bool functional = true)
      : machine(of), board("board", of, places_of(of), functional), driver("driver") {
    driver.socket.bind(board.bus.initiators);
  }
  static std::vector<RingPlace> places_of(const hw::Machine& of) {
    std::vector<RingPlace> places(of.dfx.cores);
    for (RingPlace& place : places) place.register_elements = kFileElements;
    return places;
  }
  [[nodiscard]] CoreAddresses at(std::uint32_t core) const {
    return hw::dfx::addresses_of(machine, core);
  }
  void set(std::uint64_t address, std::uint64_t value) {
    EXPECT_EQ(driver.write(address, &value, 8).status, tlm::TLM_OK_RESPONSE);
  }
  std::uint64_t get(std::uint64_t address) {
    std::uint64_t value = 0;
    EXPECT_EQ(driver.read(address, &value, 8).status, tlm::TLM_OK_RESPONSE);
    return value;
  }
  void poke(std::uint64_t address, const void* data, std::size_t bytes) {
    EXPECT_EQ(driver.debug(tlm::TLM_WRITE_COMMAND, address, const_cast<void*>(data), bytes), bytes);
  }
  /// Starts what is at `program` of the core's DDR.
  void start(std::uint32_t core, std::uint64_t program) {
    set(at(core).registers + CoreRegisters::kProgram, program);
    set(at(core).registers + CoreRegisters::kControl, CoreRegisters::kStart);
  }
  /// Waits for its interrupt, acknowledges it, and returns the cycles that it counted.
  std::uint64_t finish(std::uint32_t core) {
    auto& line = board.interrupt(core);
    while (!line.read()) sc_core::wait(line.value_changed_event());
    set(at(core).registers + CoreRegisters::kControl, CoreRegisters::kAcknowledge);
    while (line.read()) sc_core::wait(line.value_changed_event());
    return get(at(core).registers + CoreRegisters::kCycles);
  }

  const hw::Machine machine;
  RingBoard board;
  test::TlmDriver driver;
};

hw::Machine cards_of(std::uint32_t cores) {
  hw::Machine machine = hw::find_machine("dfx");
  machine.dfx.cores = cores;
  return machine;
}

/// Loads a table of DDR and multiplies it with a constant.
Pass table_times(float factor, std::uint32_t elements) {
  Pass pass;
  pass.instructions.resize(2);
  hw::dfx::Instruction& load = pass.instructions[0];
  load.op = Opcode::kLoad;
  load.second = Second::kMemory;
  load.memory = kTable;
  load.dst = 64;
  load.elements = elements;
  hw::dfx::Instruction& times = pass.instructions[1];
  times.op = Opcode::kMul;
  times.second = Second::kConstant;
  times.constant = hw::to_half(factor);
  times.src = 64;
  times.dst = 1024;
  times.elements = elements;
  return pass;
}

class RingBoardOf : public test::SystemCTest, public testing::WithParamInterface<std::uint32_t> {};

// Addresses of a program in memory, and nothing else.
TEST_P(RingBoardOf, IsStartedByAnyInitiator) {
  const std::uint32_t cores = GetParam();
  BoardRig rig(cards_of(cores));
  std::mt19937 random(cores);
  rig.driver.run([&] {
    for (int run = 0; run < 5; ++run) {
      const std::uint32_t core = random() % cores;
      const std::uint32_t elements = 1 + random() % 900;
      const float factor = static_cast<float>(1 + random() % 5);
      std::vector<Half> table(elements);
      for (Half& value : table) value = hw::to_half(static_cast<float>(random() % 100));
      const std::uint64_t program = 8192 + random() % 4096;
      const std::vector<std::uint8_t> image = encode_pass(table_times(factor, elements), cores);
      rig.poke(rig.at(core).ddr + kTable, table.data(), elements * hw::kHalfBytes);
      rig.poke(rig.at(core).ddr + program, image.data(), image.size());
      EXPECT_EQ(rig.get(rig.at(core).registers + CoreRegisters::kId), ComputeCore::kIdValue);
      const sc_core::sc_time begin = sc_core::sc_time_stamp();
      rig.start(core, program);
      EXPECT_EQ(rig.get(rig.at(core).registers + CoreRegisters::kStatus), CoreRegisters::kBusy);
      const std::uint64_t cycles = rig.finish(core);
      EXPECT_EQ(rig.get(rig.at(core).registers + CoreRegisters::kStatus), 0U);
      const Clock clock(rig.machine.core.clock_mhz);
      // Two accesses before it begins, three behind its end.
      EXPECT_EQ(clock.cycle_from(sc_core::sc_time_stamp()),
                clock.cycle_from(begin) + cycles + 5 * CoreRegisters::kAnswerCycles);
      EXPECT_GT(cycles, 2U * rig.machine.dfx.issue_cycles);
      std::vector<Half> read(elements);
      const auto answer = rig.driver.read(rig.at(core).vectors + 1024 * hw::kHalfBytes, read.data(),
                                          elements * hw::kHalfBytes);
      EXPECT_EQ(answer.status, tlm::TLM_OK_RESPONSE);
      for (std::uint32_t e = 0; e < elements; ++e) {
        ASSERT_EQ(hw::to_float(read[e]), hw::to_float(table[e]) * factor) << run << ' ' << e;
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Cores, RingBoardOf, testing::Values(1, 2, 5));

class RingBoardTest : public test::SystemCTest {};

// Its own cycles are those that no other initiator and no value changes.
TEST_F(RingBoardTest, TakesTheSameCyclesWithoutValues) {
  std::vector<std::uint64_t> cycles;
  for (const bool functional : {true, false}) {
    {
      BoardRig rig(cards_of(1), functional);
      const std::vector<std::uint8_t> image = encode_pass(table_times(2, 640), 1);
      rig.driver.run([&] {
        rig.poke(rig.at(0).ddr + 4096, image.data(), image.size());
        for (int run = 0; run < 3; ++run) {
          rig.start(0, 4096);
          cycles.push_back(rig.finish(0));
        }
      });
      const auto values = test::values_of(rig.board.reports()[5]);  // core0.ddr
      EXPECT_EQ(values.at("read_bytes"), 3 * 640 * 2U);
    }
    test::fresh_kernel();
  }
  ASSERT_EQ(cycles.size(), 6U);
  for (int run = 0; run < 3; ++run) EXPECT_EQ(cycles[run], cycles[run + 3]);
}

// Cards behind a window of a tile machine's system bus: one initiator starts cores of both kinds.
TEST_F(RingBoardTest, IsInOneSystemWithATileCore) {
  constexpr std::uint64_t kWindow = std::uint64_t{1} << 44;
  BoardRig rig(cards_of(2));
  test::CoreRig tiles(hw::find_machine("tiny"));
  test::TlmDriver& cpu = tiles.host;
  tiles.bus.connect_target(rig.board.bus.initiators, kWindow, kWindow);
  const auto set = [&](std::uint64_t address, std::uint64_t value) {
    EXPECT_EQ(cpu.write(address, &value, 8).status, tlm::TLM_OK_RESPONSE);
  };
  const std::vector<std::uint8_t> image = encode_pass(table_times(3, 64), 2);
  std::vector<Half> table(64, hw::to_half(5.0));
  hw::Program empty;
  empty.commands.emplace_back();  // end
  constexpr std::uint64_t kProgram = 4096;
  cpu.run([&] {
    cpu.debug(tlm::TLM_WRITE_COMMAND, kWindow + rig.at(1).ddr + 4096,
              const_cast<std::uint8_t*>(image.data()), image.size());
    cpu.debug(tlm::TLM_WRITE_COMMAND, kWindow + rig.at(1).ddr + kTable, table.data(), 128);
    const std::vector<std::uint8_t> end = hw::encode_program(empty);
    cpu.debug(tlm::TLM_WRITE_COMMAND, kProgram, const_cast<std::uint8_t*>(end.data()), end.size());
    set(kWindow + rig.at(1).registers + CoreRegisters::kProgram, 4096);
    set(kWindow + rig.at(1).registers + CoreRegisters::kControl, CoreRegisters::kStart);
    set(hw::kRegistersBase + CoreRegisters::kProgram, kProgram);
    set(hw::kRegistersBase + CoreRegisters::kControl, CoreRegisters::kStart);
    EXPECT_GT(rig.finish(1), 0U);
    while (!tiles.interrupt.read()) sc_core::wait(tiles.interrupt.value_changed_event());
    Half product;
    cpu.read(kWindow + rig.at(1).vectors + 1024 * hw::kHalfBytes, &product, sizeof product);
    EXPECT_EQ(hw::to_float(product), 15.0F);
    EXPECT_TRUE(tiles.core.processor.fault().empty()) << tiles.core.processor.fault();
  });
  EXPECT_GT(tiles.core_traffic().read_bytes, 0U) << "its program";
}

TEST_F(RingBoardTest, SaysThatThereIsNoProgram) {
  expect_report("/systole/ring");
  BoardRig rig(cards_of(2));
  Pass beyond = table_times(2, 64);
  beyond.instructions[1].dst = kFileElements;
  const std::vector<std::uint8_t> image = encode_pass(beyond, 2);
  rig.driver.run([&] {
    rig.poke(rig.at(1).ddr + 4096, image.data(), image.size());
    const std::uint64_t bad[] = {0, 4096, hw::dfx::ddr_bytes(rig.machine) - 4, ~std::uint64_t{0}};
    for (const std::uint64_t program : bad) {
      rig.start(1, program);
      EXPECT_EQ(rig.finish(1), 0U) << "cycles";
      EXPECT_EQ(rig.get(rig.at(1).registers + CoreRegisters::kStatus), CoreRegisters::kFault);
      EXPECT_FALSE(rig.board.core(1).fault().empty());
    }
    // It runs the next one.
    const std::vector<std::uint8_t> good = encode_pass(table_times(2, 64), 2);
    rig.poke(rig.at(1).ddr + 4096, good.data(), good.size());
    rig.start(1, 4096);
    EXPECT_GT(rig.finish(1), 0U);
    EXPECT_EQ(rig.get(rig.at(1).registers + CoreRegisters::kStatus), 0U);
  });
}

TEST_F(RingBoardTest, MemoriesTakeTheTimeOfTheirContractOnTheBus) {
  BoardRig rig(cards_of(2));
  hw::DramTiming hbm(hw::dfx::lock_step(rig.machine.hbm)), ddr(rig.machine.dram);
  rig.driver.run([&] {
    std::mt19937 random(5);
    for (int i = 0; i < 50; ++i) {
      const bool is_hbm = random() % 2 == 0, write = random() % 2 == 0;
      const std::uint64_t address = random() % 100'000;
      std::vector<std::uint8_t> data(1 + random() % 500, static_cast<std::uint8_t>(i));
      const std::uint64_t now = to_ps(sc_core::sc_time_stamp());
      const std::uint64_t end = (is_hbm ? hbm : ddr).access(address, data.size(), write, now).end;
      const std::uint64_t base = is_hbm ? rig.at(1).hbm : rig.at(1).ddr;
      const auto answer = write ? rig.driver.write(base + address, data.data(), data.size())
                                : rig.driver.read(base + address, data.data(), data.size());
      EXPECT_EQ(answer.status, tlm::TLM_OK_RESPONSE);
      EXPECT_EQ(to_ps(answer.delay), end - now);
      sc_core::wait(ns(1 + random() % 200));
    }
  });
}

TEST_F(RingBoardTest, AnswersBadAccessesWithAnError) {
  BoardRig rig(cards_of(1));
  const CoreAddresses at = rig.at(0);
  rig.driver.run([&] {
    std::vector<std::uint8_t> data(64);
    const auto read = [&](std::uint64_t address, std::size_t bytes) {
      return rig.driver.read(address, data.data(), bytes).status;
    };
    EXPECT_EQ(read(at.registers, 4), tlm::TLM_BURST_ERROR_RESPONSE);
    EXPECT_EQ(read(at.registers + CoreRegisters::kControl, 8), tlm::TLM_ADDRESS_ERROR_RESPONSE);
    EXPECT_EQ(read(at.registers + CoreRegisters::kRegisterBytes, 8),
              tlm::TLM_ADDRESS_ERROR_RESPONSE);
    EXPECT_EQ(read(at.vectors + kFileElements * 2 - 8, 8), tlm::TLM_OK_RESPONSE);
    EXPECT_EQ(read(at.vectors + kFileElements * 2 - 8, 16), tlm::TLM_ADDRESS_ERROR_RESPONSE);
    EXPECT_EQ(read(at.hbm + hw::dfx::hbm_bytes(rig.machine) - 8, 16),
              tlm::TLM_ADDRESS_ERROR_RESPONSE)
        << "across two targets";
    std::uint64_t enables = 0;
    tlm::tlm_generic_payload payload;
    test::TlmDriver::fill(payload, tlm::TLM_READ_COMMAND, at.vectors, data.data(), 8);
    payload.set_byte_enable_ptr(reinterpret_cast<unsigned char*>(&enables));
    EXPECT_EQ(rig.driver.send(payload).status, tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE);
    test::TlmDriver::fill(payload, tlm::TLM_READ_COMMAND, at.vectors, data.data(), 8);
    payload.set_streaming_width(4);
    EXPECT_EQ(rig.driver.send(payload).status, tlm::TLM_BURST_ERROR_RESPONSE);
  });
}

// Latency once for what is asked for together, bytes one after the other, headers for nothing.
TEST_F(RingBoardTest, PcieTakesLatencyAndBytes) {
  hw::dfx::Pcie params;
  params.gbyte_per_s = 2.0;
  params.latency_ns = 100.0;
  const hw::Machine machine = cards_of(1);
  BoardRig rig(machine);
  Pcie pcie("pcie", params);
  test::TlmDriver host("host");
  host.socket.bind(pcie.host);
  pcie.card.bind(rig.board.bus.initiators);
  const std::uint64_t file = rig.at(0).vectors;
  host.run([&] {
    std::vector<std::uint8_t> data(4096);
    const auto read_ns = [&](std::size_t bytes) {
      return to_ps(host.read(file, data.data(), bytes).delay) / 1000;
    };
    EXPECT_EQ(read_ns(8), 100U);
    EXPECT_EQ(read_ns(1000), 600U);
    EXPECT_EQ(read_ns(500), 850U) << "after the bytes of the one before";
    EXPECT_EQ(read_ns(8), 100U) << "beside them";
    sc_core::wait(ns(750));
    EXPECT_EQ(read_ns(200), 200U);
    EXPECT_EQ(host.debug(tlm::TLM_READ_COMMAND, file, data.data(), 16), 16U);
  });
  const auto values = test::values_of(pcie.report(to_ps(sc_core::sc_time_stamp()) + 100'000));
  EXPECT_EQ(values.at("requests"), 5U);
  EXPECT_EQ(values.at("bytes"), 1716U);
  EXPECT_EQ(values.at("busy"), 850'000U);
}

}  // namespace
}  // namespace systole::tlm_model::dfx
