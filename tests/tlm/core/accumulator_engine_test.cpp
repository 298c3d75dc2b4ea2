// The swap point of the accumulator: a core with an engine behaves as one without.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "hw/engines.h"
#include "support/tlm/core_rig.h"
#include "support/tlm/fresh_kernel.h"
#include "support/tlm/systemc_test.h"
#include "tlm/core/core.h"

namespace systole::tlm_model {
namespace {

using test::CoreRig;
using test::load_command;
using test::matmul_command;
using test::store_command;

/// The model, until it delivers one sum with a flipped bit.
class FaultyAccumulator final : public hw::AccumulatorEngine {
 public:
  FaultyAccumulator(std::size_t size, std::uint64_t good_reads)
      : model_(size), good_reads_(good_reads) {}
  void write(const hw::AccumulatorTile& tile, const std::int32_t* values, std::size_t pitch,
             bool accumulate) override {
    model_.write(tile, values, pitch, accumulate);
  }
  void read(const hw::AccumulatorTile& tile, std::int32_t* values, std::size_t pitch) override {
    model_.read(tile, values, pitch);
    if (reads_++ == good_reads_) values[0] ^= 0x10;
  }

 private:
  hw::AccumulatorModel model_;
  std::uint64_t good_reads_;
  std::uint64_t reads_ = 0;
};

constexpr std::uint32_t kSumRows = 37, kSumCols = 20,
                        kDepth = 16;  // rows of 20 sums fit no memory row
constexpr std::uint64_t kOperands = 4096, kInitial = 8192, kSumResult = 16384;
constexpr std::uint64_t kNever = ~std::uint64_t{0};

struct Outcome {
  std::vector<std::int32_t> result;
  std::uint64_t cycles;
};

enum class Storage { kLocalMemory, kEngine };

/// Loads sums, adds two products to them and stores everything, in five blocks of up to 8 rows.
Outcome simulate(Storage storage, std::uint64_t good_reads = kNever) {
  const hw::Machine machine;
  Engines engines = make_models(machine);
  EXPECT_EQ(engines.accumulator, nullptr);
  if (storage == Storage::kEngine) {
    engines.accumulator =
        std::make_unique<FaultyAccumulator>(machine.accumulator.kib * 256, good_reads);
  }
  CoreRig rig(machine, true, std::move(engines));
  std::vector<std::uint8_t> operands((kSumRows + kSumCols) * kDepth);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    operands[i] = static_cast<std::uint8_t>(i * 37 + i / 256);
  }
  std::vector<std::int16_t> initial(kSumRows * kSumCols);
  for (std::size_t i = 0; i < initial.size(); ++i) {
    initial[i] = static_cast<std::int16_t>(i * 1103);
  }
  constexpr std::uint32_t kB = kSumRows * kDepth;
  const hw::Command sums = test::sums_command(3, kInitial, kSumCols, hw::DType::kS16, kSumRows);
  hw::Command store = store_command(3, kSumResult, kSumRows, kSumCols);
  store.as<hw::cmd::Store>()->to.pitch = kSumCols * sizeof(std::int32_t);
  const hw::Command matmul = matmul_command({kSumRows, kSumCols, kDepth}, 0, kB, 3, true);
  Outcome outcome{std::vector<std::int32_t>(kSumRows * kSumCols), 0};
  rig.run([&] {
    rig.host.debug(tlm::TLM_WRITE_COMMAND, kOperands, operands.data(), operands.size());
    rig.host.debug(tlm::TLM_WRITE_COMMAND, kInitial, initial.data(),
                   initial.size() * sizeof initial[0]);
    rig.execute({load_command(0, kOperands, static_cast<std::uint32_t>(operands.size())), sums,
                 matmul, matmul, store},
                {hw::Chain{{}, hw::DType::kS32}});
    outcome.cycles = rig.get(Core::kCycles);
    rig.host.debug(tlm::TLM_READ_COMMAND, kSumResult,
                   reinterpret_cast<std::uint8_t*>(outcome.result.data()),
                   outcome.result.size() * sizeof(std::int32_t));
  });
  return outcome;
}

/// Simulates in a separate kernel: one process holds one elaboration.
class AccumulatorEngineTest : public test::SystemCTest {
 protected:
  static Outcome fresh(Storage storage, std::uint64_t good_reads = kNever) {
    test::fresh_kernel();
    return simulate(storage, good_reads);
  }
};

TEST_F(AccumulatorEngineTest, ChangesNeitherResultsNorCycles) {
  const Outcome without = fresh(Storage::kLocalMemory);
  const Outcome with = fresh(Storage::kEngine);
  EXPECT_EQ(with.result, without.result);
  EXPECT_EQ(with.cycles, without.cycles);
  std::uint64_t nonzero = 0;
  for (const std::int32_t sum : without.result) nonzero += sum != 0 ? 1 : 0;
  EXPECT_GT(nonzero, without.result.size() / 2);
}

TEST_F(AccumulatorEngineTest, DeliversWhatIsStored) {
  const Outcome good = fresh(Storage::kEngine);
  const Outcome faulty = fresh(Storage::kEngine, 1);
  constexpr std::size_t kSecondBlock = 8 * kSumCols;
  EXPECT_EQ(faulty.result[kSecondBlock], good.result[kSecondBlock] ^ 0x10);
  EXPECT_EQ(faulty.cycles, good.cycles);
  std::uint64_t different = 0;
  for (std::size_t i = 0; i < good.result.size(); ++i) {
    different += faulty.result[i] != good.result[i] ? 1 : 0;
  }
  EXPECT_EQ(different, 1U);
}

}  // namespace
}  // namespace systole::tlm_model
