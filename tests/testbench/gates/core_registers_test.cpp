/// The registers of the core in RTL behind the bus, beside those of the model: random accesses
/// before, during and after programs get the same answers at the same time.
#include "hw/host/core_registers.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "hw/description/machine_file.h"
#include "support/random/random_machine.h"
#include "support/tlm/core_rig.h"
#include "support/tlm/fresh_kernel.h"
#include "support/tlm/tlm_driver.h"
#include "testbench/run/core_board.h"

namespace systole::testbench {
namespace {

using Map = hw::CoreRegisterMap;

constexpr std::uint64_t kGood = 4096, kNone = 8192;

/// What an access brought.
struct Answer {
  std::uint64_t cycle;  ///< in which it was there
  tlm::tlm_response_status status;
  std::array<std::uint64_t, 2> value;
  bool interrupt;
};

hw::Program program() {
  hw::Program made;
  made.chains.resize(1);
  made.operators.resize(1);
  made.commands = {test::load_command(0, 1024, 32), test::matmul_command({4, 4, 8}, 0, 32, 0),
                   test::store_command(0, 2048, 4, 4)};
  made.commands.emplace_back();
  return made;
}

/// The same accesses on either side. `Rig` has `host`, `interrupt` and `expect()`.
template <typename Rig>
std::vector<Answer> play(Rig& rig, std::uint64_t seed) {
  std::vector<Answer> answers;
  rig.host.run([&] {
    const tlm_model::Clock clock(1000);
    hw::test::Random random(seed);
    std::vector<std::uint8_t> image = hw::encode_program(program());
    rig.host.debug(tlm::TLM_WRITE_COMMAND, kGood, image.data(), image.size());
    const auto access = [&](bool write, std::uint64_t offset, std::array<std::uint64_t, 2> value,
                            unsigned bytes = 8, unsigned char* enables = nullptr) {
      tlm::tlm_generic_payload payload;
      test::TlmDriver::fill(payload, write ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND,
                            hw::kRegistersBase + offset, value.data(), bytes);
      payload.set_byte_enable_ptr(enables);
      payload.set_byte_enable_length(enables == nullptr ? 0 : 8);
      const test::TlmDriver::Response response = rig.host.send(payload);
      sc_core::wait(response.delay);
      if (write || response.status != tlm::TLM_OK_RESPONSE) value = {};
      answers.push_back({clock.cycle_from(sc_core::sc_time_stamp()), response.status, value,
                         rig.interrupt.read()});
      return value[0];
    };
    const auto any = [&] {
      sc_core::wait(static_cast<double>(random() % 40), sc_core::SC_NS);
      const std::uint64_t offset = random() % 8 * 8;
      // No start, and nothing that the next one would not find as it is.
      std::uint64_t value = random() << 32 | random();
      if (offset == Map::kControl) value &= Map::kAcknowledge | Map::kHostDone;
      access(random() % 2 == 0 && offset != Map::kProgram, offset, {value, 0});
    };
    for (int run = 0; run < 6; ++run) {
      for (std::uint64_t i = random() % 8; i > 0; --i) any();
      const bool good = random() % 4 != 0;
      access(true, Map::kProgram, {good ? kGood : kNone, 0});
      access(false, Map::kProgram, {});
      rig.expect();
      access(true, Map::kControl, {Map::kStart | (random() % 2 == 0 ? Map::kAcknowledge : 0), 0});
      while ((access(false, Map::kStatus, {}) & Map::kBusy) != 0) {
        if (random() % 4 == 0) access(true, Map::kControl, {Map::kStart, 0});
        any();
      }
      access(false, Map::kCycles, {});
      access(false, Map::kHostCall, {});
    }
    // The lanes of a write; what is no access to one register.
    std::array<unsigned char, 8> none{};
    access(true, Map::kProgram, {~std::uint64_t{0}, 0}, 8, none.data());
    access(false, Map::kProgram, {});
    for (const unsigned bytes : {1U, 4U, 16U}) {
      access(false, Map::kProgram, {}, bytes);
      access(true, Map::kProgram, {~std::uint64_t{0}, ~std::uint64_t{0}}, bytes);
      access(false, Map::kProgram, {});
    }
  });
  return answers;
}

struct ModelRig : test::CoreRig {
  using CoreRig::CoreRig;
  void expect() {}
};

struct GatesRig {
  GatesRig(const hw::Machine& machine, CorePorts& of) : core(of), board(machine, of) {
    board.connect_host(host.socket);
  }
  void expect() { core.expect({expected, kGood}, nullptr); }

  const hw::Program expected = program();
  CorePorts& core;
  CoreBoard board;
  test::TlmDriver host{"host"};
  sc_core::sc_signal<bool, sc_core::SC_MANY_WRITERS>& interrupt = board.interrupt;
};

TEST(CoreRegisterGates, AnswerAsTheModelsDo) {
  const hw::Machine machine = hw::find_machine("tiny");
  RtlOptions options;
  options.checked = true;
  const std::unique_ptr<CorePorts> core = make_core_ports(options);
  std::size_t compared = 0, high = 0, busy = 0, faults = 0;
  sc_core::sc_report_handler::set_actions("/systole/core", sc_core::SC_DO_NOTHING);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    test::fresh_kernel();
    std::vector<Answer> model, gates;
    {
      ModelRig rig(machine);
      model = play(rig, seed);
    }
    test::fresh_kernel();
    {
      GatesRig rig(machine, *core);
      gates = play(rig, seed);
    }
    ASSERT_EQ(model.size(), gates.size()) << seed;
    bool whole = true;  // so far
    for (std::size_t i = 0; i < model.size(); ++i) {
      const Answer &is = gates[i], &should = model[i];
      ASSERT_EQ(is.value, should.value) << seed << ", " << i;
      ASSERT_EQ(is.interrupt, should.interrupt) << seed << ", " << i;
      // The bridge has one error for all that is no whole access.
      const auto known = [](tlm::tlm_response_status status) {
        return status == tlm::TLM_OK_RESPONSE || status == tlm::TLM_ADDRESS_ERROR_RESPONSE;
      };
      ASSERT_EQ(known(is.status), known(should.status)) << seed << ", " << i;
      if (known(should.status)) ASSERT_EQ(is.status, should.status) << seed << ", " << i;
      // Beats of what is refused take their time.
      whole = whole && known(should.status);
      if (whole) ASSERT_EQ(is.cycle, should.cycle) << seed << ", " << i;
      ++compared;
      high += is.interrupt ? 1 : 0;
      busy += (is.value[0] & Map::kBusy) != 0 ? 1 : 0;
      faults += is.value[0] == (Map::kFault | Map::kPending) ? 1 : 0;
    }
  }
  EXPECT_FALSE(core->failed());
  EXPECT_GT(compared, 1000U);
  EXPECT_GT(high, 100U);
  EXPECT_GT(busy, 100U);
  EXPECT_GT(faults, 10U);
}

}  // namespace
}  // namespace systole::testbench
