#include <gtest/gtest.h>

#include "hw/description/machine_file.h"
#include "hw/memory/dram_timing.h"
#include "hw/ring/hbm.h"
#include "tlm/ring/core_timing.h"

namespace systole::tlm_model::dfx {
namespace {

using hw::dfx::Opcode;
using hw::dfx::Second;

constexpr std::uint32_t kRegisters = 64 * 1024;

/// A memory that nobody else uses.
class PrivateMemory : public PortMemory {
 public:
  explicit PrivateMemory(const hw::Machine::Dram& dram) : timing_(dram) {}
  std::uint64_t access(std::uint64_t address, std::uint64_t bytes, bool write,
                       std::uint64_t ps) override {
    return timing_.access(address, bytes, write, ps).end;
  }

 private:
  hw::DramTiming timing_;
};

/// A core with its memories.
struct TimedCore {
  explicit TimedCore(const hw::Machine& machine)
      : hbm(hw::dfx::lock_step(machine.hbm)),
        ddr(machine.dram),
        timing(machine, kRegisters, hbm, ddr) {}
  CoreTiming::Times issue(const Instruction& instruction) { return timing.issue(instruction); }

  PrivateMemory hbm, ddr;
  CoreTiming timing;
};

/// Memory that is never waited for: no refresh, all tiles fetched ahead.
hw::Machine fast_memory() {
  hw::Machine machine = hw::find_machine("dfx-ideal");
  machine.hbm.t_refi_ns = 0;
  machine.hbm.mega_transfers = 20000;
  machine.hbm.controller_ns = 0;
  machine.matrix.prefetch_tiles = 65536;
  machine.matrix.function_cycles = 0;
  return machine;
}

Instruction product(std::uint32_t k_tiles, std::uint32_t slices, std::uint32_t block) {
  Instruction instruction;
  instruction.op = Opcode::kMm;
  instruction.dst = 32 * 1024;
  instruction.weights = {0, false, false, k_tiles, slices, block};
  return instruction;
}

/// Cycles of the second of two products: the first one's tiles are not there at cycle 0.
std::uint64_t product_cycles(const hw::Machine& machine, std::uint32_t k_tiles,
                             std::uint32_t slices) {
  TimedCore timing(machine);
  timing.timing.start(1'000'000);
  const Instruction instruction = product(k_tiles, slices, machine.matrix.partial_sums);
  const CoreTiming::Times times = timing.issue(instruction);
  return times.end - times.begin;
}

TEST(DfxTiming, AProductTakesTheCyclesOfItsContract) {
  for (const std::uint32_t sums : {4U, 8U, 11U, 16U}) {
    hw::Machine machine = fast_memory();
    machine.matrix.partial_sums = sums;
    for (const std::uint32_t k_tiles : {1U, 2U, 16U, 64U}) {
      for (const std::uint32_t slices : {1U, 4U, 16U, 60U, 64U}) {
        EXPECT_EQ(product_cycles(machine, k_tiles, slices),
                  hw::matrix_cycles(machine.matrix.unit(), k_tiles * 64, slices * 16))
            << sums << ' ' << k_tiles << ' ' << slices;
      }
    }
  }
}

// With enough partial sums: ceil(K / 64) x ceil(n / 16) and the fill of 6 + 6 x 11 + 11.
TEST(DfxTiming, AProductOfWholeBlocksNeedsACycleATile) {
  EXPECT_EQ(product_cycles(fast_memory(), 16, 64), 16U * 64 + 83);
  EXPECT_EQ(product_cycles(fast_memory(), 64, 64), 64U * 64 + 83);
}

// Eight partial sums and an adder of eleven cycles: 8 / 11 of the peak.
TEST(DfxTiming, FewPartialSumsWaitForTheAdder) {
  hw::Machine machine = fast_memory();
  machine.matrix.partial_sums = 8;
  EXPECT_EQ(product_cycles(machine, 64, 8), 63U * 11 + 8 + 83);
}

TEST(DfxTiming, AFetchOfManyTilesIsLimitedByThePort) {
  hw::Machine machine = fast_memory();
  machine.matrix.prefetch_tiles = 32;  // so that nothing has arrived before
  machine.hbm.port_bytes = 32;         // half a tile a cycle
  TimedCore timing(machine);
  const CoreTiming::Times times = timing.issue(product(64, 64, 16));
  EXPECT_NEAR(static_cast<double>(times.end - times.begin), 2.0 * 64 * 64 + 83, 20.0);
}

Instruction vector(Opcode op, std::uint32_t dst, std::uint32_t src, std::uint32_t elements) {
  Instruction instruction;
  instruction.op = op;
  instruction.second = Second::kConstant;
  instruction.dst = dst;
  instruction.src = src;
  instruction.elements = elements;
  return instruction;
}

TEST(DfxTiming, ChainedVectorsFollowEachOtherAtOnce) {
  hw::Machine machine = fast_memory();
  {
    TimedCore timing(machine);
    const auto first = timing.issue(vector(Opcode::kMul, 0, 4096, 1024));
    const auto second = timing.issue(vector(Opcode::kAdd, 4096, 0, 1024));
    EXPECT_EQ(first.end, 16U - 1 + 6);
    // The unit takes a vector a cycle, of whichever instruction.
    EXPECT_EQ(second.begin, 16U);
    EXPECT_EQ(second.end, 16U + 16 - 1 + 11);
  }
  machine.dfx.chaining = hw::dfx::Chaining::kInstruction;
  machine.dfx.issue_cycles = 100;
  TimedCore timing(machine);
  const auto first = timing.issue(vector(Opcode::kMul, 0, 4096, 1024));
  const auto second = timing.issue(vector(Opcode::kAdd, 4096, 0, 1024));
  EXPECT_EQ(first.begin, 100U);
  EXPECT_EQ(second.begin, first.end + 100) << "once all of it has arrived";
}

TEST(DfxTiming, ASumOfManyVectorsTakesTwoPassesThroughTheTree) {
  TimedCore timing(fast_memory());
  EXPECT_EQ(timing.issue(vector(Opcode::kAccum, 0, 0, 64)).end, 66U + 6);
  TimedCore other(fast_memory());
  EXPECT_EQ(other.issue(vector(Opcode::kAccum, 0, 0, 1024)).end, 15U + 2 * 66 + 6);
}

Instruction rotation(std::uint32_t heads, std::uint32_t head) {
  Instruction instruction = vector(Opcode::kRotate, 0, 4096, head);
  instruction.second = Second::kMemory;
  instruction.heads = heads;
  return instruction;
}

// Two multiplications in turn, then the addition: 2 n cycles, the last result 1 + 6 + 11 after.
TEST(DfxTiming, ARotationTakesTheMultipliersTwice) {
  for (const std::uint32_t heads : {1U, 3U, 16U}) {
    for (const std::uint32_t head : {64U, 128U}) {
      hw::Machine machine = fast_memory();
      TimedCore core(machine);
      core.timing.start(1'000'000);
      const auto turned = core.issue(rotation(heads, head));
      const std::uint64_t vectors = std::uint64_t{heads} * head / 64;
      EXPECT_EQ(turned.released - turned.begin, 2 * vectors) << heads << ' ' << head;
      EXPECT_EQ(turned.end - turned.begin, 2 * (vectors - 1) + 1 + 6 + 11) << heads << ' ' << head;
      const auto reads = core.issue(vector(Opcode::kMul, 8192, 0, heads * head));
      EXPECT_EQ(reads.begin, std::max(turned.released, turned.begin + 1 + 6 + 11));
      machine.dfx.chaining = hw::dfx::Chaining::kInstruction;
      machine.dfx.issue_cycles = 100;
      TimedCore other(machine);
      const auto slow = other.issue(vector(Opcode::kAdd, 4096, 8192, heads * head));
      EXPECT_EQ(other.issue(rotation(heads, head)).begin, slow.end + 100);
    }
  }
}

Instruction write(Opcode op, std::uint64_t memory) {
  Instruction instruction;
  instruction.op = op;
  instruction.heads = 16;
  instruction.elements = 64;
  instruction.memory = memory;
  instruction.head_bytes = 1024 * 128;
  return instruction;
}

TEST(DfxTiming, AProductWithACacheWaitsForWhatIsWrittenToIt) {
  constexpr std::uint64_t kCache = 1 << 28;
  hw::Machine machine = fast_memory();
  machine.hbm.controller_ns = 500;
  TimedCore timing(machine);
  const auto written = timing.issue(write(Opcode::kWriteValues, kCache));
  EXPECT_EQ(written.end - written.begin, 16U * 64) << "an element a cycle";
  Instruction read = product(1, 4, 4);
  read.weights.address = kCache + 3 * read.head_bytes;
  EXPECT_GT(timing.issue(read).end, written.end + 2 * 100 + 83)
      << "through the controller, back through it, and then the fill";
  TimedCore other(machine);
  static_cast<void>(other.issue(write(Opcode::kWriteValues, kCache)));
  EXPECT_LT(other.issue(product(1, 4, 4)).end, written.end) << "of other memory";
}

TEST(DfxTiming, AnInstructionMakesNoResultBeforeTheOldOneIsRead) {
  TimedCore timing(fast_memory());
  Instruction slow = product(16, 64, 16);
  const auto reads = timing.issue(slow);
  const auto overwrites = timing.issue(vector(Opcode::kMul, 0, 16384, 1024));
  EXPECT_GT(overwrites.end, reads.end - 83) << "registers 0 to 15 are the product's inputs";
}

}  // namespace
}  // namespace systole::tlm_model::dfx
