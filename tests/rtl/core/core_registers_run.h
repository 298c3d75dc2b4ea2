#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

#include "hw/axi/axi_checker.h"
#include "hw/axi/axi_requester.h"
#include "hw/host/core_registers.h"
#include "testbench/rtl/core/core_registers_rtl.h"

/// The registers of a core, with the requester of hw/axi on their pins and a core that does
/// anything behind them.
namespace systole::testbench {

/// What the registers hold: docs/blocks/core_registers.md.
struct HeldRegisters {
  bool running = false, interrupt = false, called = false, stuck = false;
  std::uint64_t program = 0, cycles = 0, counter = 0, call = 0;

  /// Of a whole access; false: there is none to be read.
  bool read(std::uint64_t offset, bool fault, std::uint64_t& value) const {
    value = 0;
    switch (offset) {
      case hw::CoreRegisterMap::kId:
        value = 0x53595354;
        return true;
      case hw::CoreRegisterMap::kProgram:
        value = program;
        return true;
      case hw::CoreRegisterMap::kStatus:
        value = (running ? hw::CoreRegisterMap::kBusy : 0) |
                (interrupt ? hw::CoreRegisterMap::kPending : 0) |
                (called ? hw::CoreRegisterMap::kWaits : 0) |
                (fault ? hw::CoreRegisterMap::kFault : 0);
        return true;
      case hw::CoreRegisterMap::kCycles:
        value = cycles;
        return true;
      case hw::CoreRegisterMap::kHostCall:
        value = called ? call : 0;
        return true;
      default:
        return false;
    }
  }
};

/// A burst that was asked for.
struct RegisterAccess {
  hw::AxiBurstBeats burst;
  bool whole = false;  ///< it is an access to one register
};

inline RegisterAccess random_access(std::mt19937_64& random) {
  RegisterAccess asked;
  hw::AxiAddress& address = asked.burst.address;
  asked.burst.write = random() % 2 == 0;
  address.size = static_cast<std::uint8_t>(random() % 12 == 0 ? random() % 4 : 3);
  const std::uint64_t bytes = std::uint64_t{1} << address.size;
  address.address = random() % 16 == 0 ? random() % 4000 / bytes * bytes : random() % 8 * 8;
  if (random() % 3 == 0) address.address = hw::CoreRegisterMap::kControl;
  address.len = static_cast<std::uint8_t>(random() % 12 == 0 ? random() % 3 : 0);
  asked.whole = address.size == 3 && address.len == 0;
  if (!asked.burst.write) return asked;
  asked.burst.data.resize(hw::axi_beats(address));
  asked.burst.strobes.resize(asked.burst.data.size());
  for (std::size_t beat = 0; beat < asked.burst.data.size(); ++beat) {
    const hw::AxiRange lanes = hw::axi_beat(address, static_cast<unsigned>(beat));
    const bool all = random() % 8 != 0;
    for (std::uint64_t byte = lanes.begin; byte < lanes.end; ++byte) {
      asked.burst.data[beat][byte % 8] = static_cast<std::uint8_t>(random());
      asked.burst.strobes[beat][byte % 8] = all || random() % 8 != 0;
      asked.whole = asked.whole && asked.burst.strobes[beat][byte % 8];
    }
  }
  return asked;
}

/// Cycle by cycle, and what happened.
class RegisterRun {
 public:
  RegisterRun(const RtlOptions& options, unsigned stalls)
      : random_(options.seed), rtl_(make_core_registers(options)), requester_(params(stalls)) {}

  std::size_t reads = 0, writes = 0, refused = 0, starts = 0, ignored = 0, calls = 0, finishes = 0,
              beside = 0;

  void run(int cycles) {
    for (int i = 0; i < cycles && !testing::Test::HasFatalFailure(); ++i) cycle();
    EXPECT_FALSE(rtl_->failed());
  }

 private:
  static hw::AxiRequester::Params params(unsigned stalls) {
    hw::AxiRequester::Params params;
    params.bytes = CoreRegistersRtl::kBytes;
    params.stalls_per_mille = stalls;
    return params;
  }

  void cycle() {
    if (random_() % 4 == 0 && asked_.size() < 6) {
      asked_.push_back(random_access(random_));
      const bool write = asked_.back().burst.write;
      (write ? written_ : read_).push_back(requester_.ask({asked_.back().burst}, now_));
    }
    ++now_;
    requester_.drive(pins_, now_);
    CoreRegistersRtl::Core core;
    core.fault = random_() % 2 == 0;
    core.stuck = registers_.stuck ? random_() % 8 != 0 : random_() % 64 == 0;
    core.call = registers_.running && !registers_.called && random_() % 16 == 0;
    core.finish = registers_.running && !registers_.called && !core.call && random_() % 32 == 0;
    core.call_address = random_();
    rtl_->set(core);
    rtl_->settle(pins_);
    ASSERT_TRUE(checker_.watch(pins_, now_)) << checker_.breach();
    const bool effect = pins_.b.valid && !answered_;
    before_ = registers_;
    compare(core, effect);
    if (pins_.ar.valid && pins_.ar.ready) expect_read(core);
    answered_ = pins_.b.valid && !pins_.b.ready;
    requester_.edge(pins_, now_,
                    [this](std::size_t number, std::uint64_t /*edge*/, hw::AxiResponse response,
                           const std::vector<hw::AxiBurstBeats>& bursts) {
                      done(number, response, bursts.at(0));
                    });
    rtl_->edge();
  }

  /// The outputs of this cycle, and what the registers hold after it.
  void compare(const CoreRegistersRtl::Core& core, bool effect) {
    HeldRegisters next = registers_;
    bool start = false, host_done = false;
    if (effect) {
      const RegisterAccess& write = oldest(true);
      std::uint64_t value = 0;
      std::memcpy(&value, write.burst.data[0].data(), 8);
      const std::uint64_t offset = write.burst.address.address;
      if (write.whole && offset == hw::CoreRegisterMap::kProgram) next.program = value;
      if (write.whole && offset == hw::CoreRegisterMap::kControl) {
        start = (value & hw::CoreRegisterMap::kStart) != 0 && !registers_.running;
        ignored += (value & hw::CoreRegisterMap::kStart) != 0 && registers_.running ? 1 : 0;
        host_done = (value & hw::CoreRegisterMap::kHostDone) != 0 && registers_.called;
        if ((value & hw::CoreRegisterMap::kAcknowledge) != 0) next.interrupt = false;
      }
      ++writes;
    }
    const CoreRegistersRtl::Outputs is = rtl_->outputs();
    ASSERT_EQ(is.start, start) << now_;
    ASSERT_EQ(is.host_done, host_done) << now_;
    ASSERT_EQ(is.interrupt, registers_.interrupt) << now_;
    ASSERT_EQ(is.running, registers_.running) << now_;
    ASSERT_EQ(is.called, registers_.called) << now_;
    ASSERT_EQ(is.program, registers_.program) << now_;
    const bool raise = core.finish || core.call || (core.stuck && !registers_.stuck);
    beside += raise && registers_.interrupt && !next.interrupt ? 1 : 0;
    next.interrupt = next.interrupt || raise;
    next.running = start || (registers_.running && !core.finish);
    next.counter = start ? 1 : registers_.counter + 1;
    if (core.finish) next.cycles = registers_.counter;
    next.called = core.call || (registers_.called && !host_done);
    if (core.call) next.call = core.call_address;
    next.stuck = core.stuck;
    starts += start ? 1 : 0;
    calls += core.call ? 1 : 0;
    finishes += core.finish ? 1 : 0;
    registers_ = next;
  }

  void expect_read(const CoreRegistersRtl::Core& core) {
    const RegisterAccess& read = oldest(false, reads_begun_++);
    Value value;
    value.known = before_.read(read.burst.address.address, core.fault, value.value);
    values_.push_back(value);
  }

  void done(std::size_t number, hw::AxiResponse response, const hw::AxiBurstBeats& burst) {
    std::deque<std::size_t>& numbers = burst.write ? written_ : read_;
    ASSERT_EQ(numbers.front(), number);
    numbers.pop_front();
    const auto at = std::find_if(asked_.begin(), asked_.end(), [&](const RegisterAccess& asked) {
      return asked.burst.write == burst.write;
    });
    const RegisterAccess asked = *at;
    asked_.erase(at);
    const std::uint64_t offset = asked.burst.address.address;
    bool known = offset == hw::CoreRegisterMap::kProgram || offset == hw::CoreRegisterMap::kControl;
    if (!burst.write) {
      --reads_begun_;
      const Value value = values_.front();
      values_.pop_front();
      known = value.known;
      std::uint64_t is = 0;
      std::memcpy(&is, burst.data[0].data(), 8);
      if (asked.whole) ASSERT_EQ(is, value.value) << now_;
      ++reads;
    }
    const hw::AxiResponse should = !asked.whole ? hw::AxiResponse::kSlvErr
                                   : known      ? hw::AxiResponse::kOkay
                                                : hw::AxiResponse::kDecErr;
    ASSERT_EQ(response, should) << now_;
    refused += response != hw::AxiResponse::kOkay ? 1 : 0;
  }

  /// Of the reads or writes that have no answer yet.
  [[nodiscard]] const RegisterAccess& oldest(bool write, std::size_t after = 0) const {
    for (const RegisterAccess& asked : asked_) {
      if (asked.burst.write == write && after-- == 0) return asked;
    }
    throw std::logic_error("nothing was asked for");
  }

  struct Value {
    bool known = false;
    std::uint64_t value = 0;
  };

  std::mt19937_64 random_;
  const std::unique_ptr<CoreRegistersRtl> rtl_;
  hw::AxiRequester requester_;
  hw::AxiChecker checker_{CoreRegistersRtl::kBytes};
  hw::AxiPins pins_;
  HeldRegisters registers_, before_;
  std::deque<RegisterAccess> asked_;
  std::deque<std::size_t> read_, written_;  ///< numbers
  std::deque<Value> values_;                ///< of reads whose address has been taken
  std::size_t reads_begun_ = 0;
  std::uint64_t now_ = 0;
  bool answered_ = false;
};

}  // namespace systole::testbench
