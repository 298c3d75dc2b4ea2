/// rtl/core/systole_core.sv against the contracts of its parts together.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "hw/description/machine_file.h"
#include "hw/function/layernorm.h"
#include "testbench/rtl/core/core_limits.h"
#include "testbench/rtl/core/core_rtl.h"
#include "tests/rtl/core/core_case.h"
#include "tests/rtl/core/load_path_case.h"
#include "tests/rtl/core/random_core_runs.h"

namespace systole::testbench {
namespace {

const RtlOptions kCoreChecks{true, "", 6};

/// How many random programs run: more if the environment asks for that.
int programs_or_more(int usual) {
  const char* const asked = std::getenv("SYSTOLE_CORE_PROGRAMS");
  return asked == nullptr ? usual : std::max(usual, std::stoi(asked));
}

TEST(Core, RunsRandomProgramsInTheCyclesOfTheContracts) {
  const RandomCoreRuns runs =
      run_random_programs(*make_core(kCoreChecks), programs_or_more(150), 23);
  EXPECT_GT(runs.counts.operations, 1'500U);
  EXPECT_GT(runs.waits, runs.counts.operations / 3) << "for a hazard or for its unit";
  EXPECT_GT(runs.reads, 3'000U);
  EXPECT_GT(runs.writes, 2'000U);
  EXPECT_GT(runs.operands, 500U);
  EXPECT_GT(runs.second_tensors, 40U);
  EXPECT_GT(runs.transposed, 150U);
  EXPECT_GT(runs.replaced, 10U) << "chains in the slot of another";
  EXPECT_EQ(runs.row_wise.size(), 4U);
  for (std::size_t side = 1; side < hw::kReductions; ++side) {
    EXPECT_GT(runs.sides.at(static_cast<hw::Reduction>(side)), 12U);
    EXPECT_GT(runs.continued.at(static_cast<hw::Reduction>(side)), 4U);
  }
  EXPECT_GT(runs.late_words, 20U) << "loads that write parameters late";
  EXPECT_GT(runs.words_ahead, 60U);
  EXPECT_GT(runs.tiles_ahead, 30U);
  EXPECT_GT(runs.tiles_beside, 10U);
  EXPECT_GT(runs.late, 5U) << "loads to the accumulator that wait for the array";
  EXPECT_GT(runs.beside, 20U) << "loads beside one to the accumulator";
}

// No size is that of preset tiny, and none of the queues' a power of two.
TEST(Core, RunsThemInAnotherSize) {
  const RandomCoreRuns runs =
      run_random_programs(*make_core(kCoreChecks, kCoreSizes[1]), programs_or_more(60), 24);
  EXPECT_GT(runs.counts.operations, 350U);
  EXPECT_GT(runs.waits, runs.counts.operations / 3);
  EXPECT_GT(runs.reads, 700U);
  EXPECT_GT(runs.writes, 400U);
  EXPECT_GT(runs.operands, 100U);
  EXPECT_GT(runs.second_tensors, 3U);
  EXPECT_GT(runs.transposed, 40U);
  EXPECT_GT(runs.replaced, 10U);
  EXPECT_EQ(runs.row_wise.size(), 4U);
  EXPECT_EQ(runs.sides.size(), hw::kReductions);
  EXPECT_GT(runs.words_ahead, 20U);
  EXPECT_GT(runs.tiles_ahead, 8U);
  EXPECT_GT(runs.beside, 4U);
  EXPECT_GT(runs.staged, 30U);
  EXPECT_GT(runs.staged_tensors, 5U);
}

/// A core and a memory that answers at once, for programs of a few commands.
class CorePrograms : public testing::Test {
 protected:
  explicit CorePrograms(const CoreSize& size = kTinyCore)
      : memory_(1 << 15), core_(make_core(kCoreChecks, size)) {}

  CoreRun run(hw::Program program, bool resets = true) {
    program.commands.push_back(hw::test::empty_command(hw::Opcode::kEnd));
    const std::vector<std::uint8_t> image = hw::encode_program(program);
    std::copy(image.begin(), image.end(), memory_.begin() + kAt);
    CoreCase test{program, kAt};
    test.resets = resets;
    return core_->run(test, ports(), memory_, nullptr);
  }
  /// The same, with what its commands leave one after the other, which it has to leave in memory.
  CoreState run_as_executed(const hw::Program& program) {
    const CoreSize& size = core_->size();
    CoreState state{memory_, std::vector<std::uint8_t>(size.scratchpad_bytes()),
                    std::vector<std::int32_t>(size.sums()),
                    std::vector<std::uint32_t>(size.statistics)};
    execute(program, state);
    (void)run(program);
    EXPECT_TRUE(std::equal(memory_.begin(), memory_.begin() + kAt, state.memory.begin()));
    return state;
  }
  /// A program after one at which the core has stopped, without a reset, is as after a reset.
  void expect_it_goes_on() {
    hw::Program program;
    program.chains.resize(1);
    program.commands = {load_of(0, 16, 0), matmul_of(0, 0), store_of(4, 4, 512)};
    const CoreRun after = run(program, false);
    const CoreRun fresh = run(program);
    ASSERT_EQ(after.commands.size(), fresh.commands.size());
    for (std::size_t i = 0; i < after.commands.size(); ++i) {
      EXPECT_EQ(after.commands[i].dispatched, fresh.commands[i].dispatched) << i;
      EXPECT_EQ(after.commands[i].started, fresh.commands[i].started) << i;
      EXPECT_EQ(after.commands[i].completed, fresh.commands[i].completed) << i;
    }
    EXPECT_EQ(after.counted, fresh.counted);
  }
  [[nodiscard]] CoreMemory ports() const {
    const ReadAnswers reads{core_->size().lanes, 5, 5, 0, 1};
    return {reads.memory(), reads.memory(), reads.memory(), WriteAnswers{5, 5, 0, 1}.memory()};
  }
  void expect_stop(const hw::Command& command, const hw::Chain& chain = {}) {
    hw::Program program;
    program.chains = {chain};
    program.operand_tiles.resize(2);
    program.commands = {matmul_of(0, 0), command};
    try {
      (void)run(program);
      ADD_FAILURE() << "it went on";
    } catch (const std::invalid_argument& error) {
      EXPECT_NE(std::string(error.what()).find("is none for the RTL"), std::string::npos);
    }
    // Only a chain that is in the pipeline stays there.
    EXPECT_TRUE(!core_->busy() || !chain.stages.empty());
    if (!core_->busy()) expect_it_goes_on();
  }
  /// The same, of a program that check_program() accepts: what is known of it beforehand.
  void expect_refused(const std::string& why, const hw::Command& command,
                      const hw::Chain& chain = {}) {
    expect_stop(command, chain);
    hw::Program program;
    program.chains = {chain};
    program.commands = {matmul_of(0, 0), command};
    const std::string problem = core_program_problem(program, core_->size());
    EXPECT_EQ(problem.rfind("command 1, ", 0), 0U) << problem;
    EXPECT_NE(problem.find(why), std::string::npos) << problem;
  }
  /// The stop at a command whose chain does not exist is its own: not one before it, of which some
  /// wait when it is looked at.
  void expect_stop_after_matmuls(const hw::Command& command) {
    hw::Program program;
    program.chains.resize(1);
    program.commands.assign(6, matmul_of(0, 0));
    for (hw::Command& matmul : program.commands) matmul.as<hw::cmd::Matmul>()->m = 64;
    program.commands.push_back(command);
    try {
      (void)run(program);
      ADD_FAILURE() << "it went on";
    } catch (const std::invalid_argument& error) {
      EXPECT_EQ(std::string(error.what()), "command 6 is none for the RTL");
    }
    EXPECT_FALSE(core_->busy());
    expect_it_goes_on();
  }
  static hw::Command store_of(std::uint32_t m, std::uint32_t n, std::uint32_t to) {
    hw::Command command = hw::test::empty_command(hw::Opcode::kStore);
    auto& store = *command.as<hw::cmd::Store>();
    store.m = m;
    store.n = n;
    store.from = {0, (n + 3) / 4 * 4};
    store.to = {to, 4 * n};
    return command;
  }
  /// Rows of s16 to the accumulator.
  static hw::Command sums_of(std::uint32_t m, std::uint32_t n, hw::LocalTile to,
                             std::uint64_t from = 0) {
    hw::Command command = hw::test::empty_command(hw::Opcode::kLoadAccumulator);
    auto& load = *command.as<hw::cmd::LoadAccumulator>();
    load.m = m;
    load.n = n;
    load.type = hw::DType::kS16;
    load.from = {from, 2 * n};
    load.to = to;
    return command;
  }
  /// It leaves the largest sum of each row as its statistic.
  static hw::Chain largest_of_rows() {
    hw::Stage largest = hw::default_stage(hw::StageOp::kClamp);
    largest.imm = {-32768, 32767};
    largest.side = hw::Reduction::kRowMax;
    return {{largest}, hw::DType::kS16};
  }
  static hw::Chain chain_of(hw::StageOp op, hw::Operand operand, std::size_t stages = 1) {
    hw::Chain chain;
    chain.stages.resize(stages);
    for (hw::Stage& stage : chain.stages) {
      stage.op = op;
      stage.operand = operand;
    }
    return chain;
  }

  static constexpr std::uint64_t kAt = 12'288;
  std::vector<std::uint8_t> memory_;
  const std::unique_ptr<CoreRtl> core_;
};

// Each waits for the one before: nothing is lost between two units.
TEST_F(CorePrograms, StartWithTheCycleInWhichTheirOperandsAreThere) {
  hw::Program program;
  program.chains.resize(1);
  hw::Command product = matmul_of(0, 0);
  product.as<hw::cmd::Matmul>()->m = 64;  // until the store has been fetched
  program.commands = {load_of(64, 32, 0), product, store_of(4, 4, 256)};
  const CoreRun times = run(program);
  const auto& [load, matmul, store] =
      std::tie(times.commands[0], times.commands[1], times.commands[2]);
  EXPECT_EQ(matmul.started, load.completed);
  EXPECT_EQ(matmul.completed, matmul.started + 74 + 3) << "latency 74, and three cycles";
  EXPECT_EQ(store.started, matmul.completed);
  ASSERT_EQ(times.writes.size(), 4U);
  EXPECT_EQ(times.writes[0].issued, store.started + 3) << "read, queued, sent";
  EXPECT_EQ(store.completed, times.writes[3].done);
  EXPECT_EQ(times.done, store.completed + 1);
}

TEST_F(CorePrograms, StopAtMatmulsThatTheArrayCannotDo) {
  const auto changed = [](auto change) {
    hw::Command command = matmul_of(0, 0);
    change(*command.as<hw::cmd::Matmul>());
    return command;
  };
  expect_stop(changed([](auto& matmul) { matmul.m = 0; }));
  expect_stop(changed([](auto& matmul) { matmul.n = 0; }));
  expect_stop(changed([](auto& matmul) { matmul.k = 0; }));
}

TEST_F(CorePrograms, StopAtLoadsThatTheirUnitCannotDo) {
  expect_stop(sums_of(0, 1, {4, 4}));
  expect_stop(sums_of(1, 0, {4, 4}));
  hw::Command packed = load_of(64, 16, 0);
  packed.as<hw::cmd::Load>()->m = 32;
  packed.as<hw::cmd::Load>()->format = hw::WeightFormat::kGroups;
  expect_refused("weights in groups", packed);
  hw::Command staged = load_of(64, 16, 0);
  staged.as<hw::cmd::Load>()->pre.emplace();
  expect_refused("stages before the anchor", staged);
}

/// A core with stages before the anchor.
class StagedPrograms : public CorePrograms {
 protected:
  StagedPrograms() : CorePrograms(kCoreSizes[1]) {}

  static hw::Command load_of(std::uint32_t m, std::uint32_t n, hw::DType type = hw::DType::kS8) {
    hw::Command command = hw::test::empty_command(hw::Opcode::kLoad);
    auto& load = *command.as<hw::cmd::Load>();
    load.m = m;
    load.n = n;
    load.type = type;
    load.from = {256, 4 * n};
    load.to = {0, n};
    load.pre.emplace().tensor = {512, 4 * n};
    return command;
  }
  static hw::Chain early(hw::Chain chain = {}) {
    chain.out = hw::DType::kS8;
    return chain;
  }
};

// Buffers have room for 2,048 bytes, rows from the begin of a vector of eight on.
TEST_F(StagedPrograms, StopAtLoadsThatTheirUnitCannotDo) {
  using Op = hw::StageOp;
  hw::Program program;
  program.chains = {early()};
  program.commands = {matmul_of(0, 0), load_of(16, 125)};
  EXPECT_NO_THROW((void)run(program)) << "2,048 bytes";
  EXPECT_FALSE(core_->failed());
  expect_refused("a tile for the stages of 2176 bytes", load_of(16, 129), early());
  expect_refused("a tile for the stages of 2304 bytes", load_of(16, 65, hw::DType::kS16), early());
  expect_refused("a tile for the stages of 2560 bytes", load_of(16, 33, hw::DType::kS32), early());
  hw::Chain tensor = early(chain_of(Op::kAdd, hw::Operand::kTensor));
  tensor.stages[0].tensor = hw::DType::kS32;
  expect_refused("a tensor operand of 2560 bytes", load_of(16, 33), tensor);
  expect_refused("more than one tensor operand", load_of(2, 8),
                 early(chain_of(Op::kAdd, hw::Operand::kTensor, 2)));
  expect_refused("65 columns", load_of(1, kCoreSizes[1].parameter_columns() + 1),
                 early(chain_of(Op::kAdd, hw::Operand::kChannel)));
  expect_stop(load_of(2, 8), early(chain_of(Op::kSoftmax, hw::Operand::kImmediate)));
  hw::Chain side = early(chain_of(Op::kRelu, hw::Operand::kImmediate));
  side.stages[0].side = hw::Reduction::kRowMax;
  expect_stop(load_of(2, 8), side);
  expect_stop(load_of(0, 8), early());
  expect_stop(load_of(8, 0), early());
}

// The first vectors wait while the reciprocal of their row's statistic is computed.
TEST_F(StagedPrograms, KeepTheVectorThatWaitsForADivision) {
  constexpr std::uint32_t kRows = 3, kCols = 24, kRowBytes = 2 * kCols, kOut = 4096;
  constexpr std::uint32_t kWidth = 8, kB = 256, kC = 256;
  std::iota(memory_.begin(), memory_.begin() + kRows * kRowBytes, std::uint8_t{1});
  hw::Command staged = load_of(kRows, kCols, hw::DType::kS16);
  auto& load = *staged.as<hw::cmd::Load>();
  load.from = {0, kRowBytes};
  load.pre->chain = 1;
  hw::Command product = matmul_of(0, kC);
  auto& matmul = *product.as<hw::cmd::Matmul>();
  matmul.m = kRows;
  matmul.n = kWidth;
  matmul.k = kCols;
  matmul.a = {0, kCols};
  matmul.b = {kB, kWidth};
  matmul.c = {kC, kWidth};
  hw::Command out = store_of(kRows, kWidth, kOut + 1024);
  out.as<hw::cmd::Result>()->from.address = kC;
  out.as<hw::cmd::Result>()->chain.chain = 2;
  hw::Stage narrow = hw::default_stage(hw::StageOp::kRequantise);
  narrow.imm = {1, 1, -128, 127};
  hw::Program program;
  program.chains = {largest_of_rows(),
                    {{hw::default_stage(hw::StageOp::kDivideRowSum), narrow}, hw::DType::kS8},
                    {{}, hw::DType::kS32}};
  program.commands = {sums_of(kRows, kCols, {0, kCols}),
                      store_of(kRows, kCols, kOut),
                      staged,
                      testbench::load_of(1, kCols * kWidth, kB),
                      product,
                      out};
  const CoreState state = run_as_executed(program);
  EXPECT_TRUE(std::any_of(state.memory.begin() + kOut + 1024, state.memory.begin() + kOut + 1120,
                          [](std::uint8_t byte) { return byte != 0; }));
  EXPECT_FALSE(core_->failed());
}

TEST_F(CorePrograms, StopAtChainsThatTheirPipelineCannotDo) {
  using Op = hw::StageOp;
  const hw::Command store = store_of(2, 4, 256);
  expect_refused("stage 1, add: a saved operand", store, chain_of(Op::kAdd, hw::Operand::kSaved));
  expect_refused("row statistics", store, chain_of(Op::kAdd, hw::Operand::kRow));
  expect_refused("more than two tensor", store, chain_of(Op::kAdd, hw::Operand::kTensor, 3));
  expect_refused("stage 2", store, chain_of(Op::kDivideRowSum, hw::Operand::kRow, 2));
  expect_refused("5 stages", store,
                 chain_of(Op::kRelu, hw::Operand::kImmediate, kTinyCore.stages + 1));
  expect_refused("6 stages", store,
                 chain_of(Op::kRelu, hw::Operand::kImmediate, kTinyCore.stages + 2));
  hw::Chain side = chain_of(Op::kRelu, hw::Operand::kImmediate, 2);
  side.stages[0].side = hw::Reduction::kRowMax;
  expect_refused("a side output before the last stage", store, side);
  EXPECT_FALSE(core_->busy()) << "before it starts";
  side.stages.pop_back();
  side.stages[0].side = static_cast<hw::Reduction>(5);
  expect_stop(store, side);
  const hw::Chain bias = chain_of(Op::kAdd, hw::Operand::kChannel);
  expect_refused("65 columns", store_of(1, kTinyCore.parameter_columns() + 1, 256), bias);
  const hw::Command large = store_of(128, 20, 256);
  expect_refused("5120 bytes", large, chain_of(Op::kAdd, hw::Operand::kTensor));
  hw::Chain two = chain_of(Op::kAdd, hw::Operand::kTensor, 2);
  two.stages[1].tensor = hw::DType::kS32;
  expect_refused("4800 bytes", store_of(60, 20, 256), two);
  hw::Command beyond = store;
  beyond.as<hw::cmd::Result>()->chain.operands = 2;
  expect_stop(beyond, chain_of(Op::kAdd, hw::Operand::kTensor, 2));  // of the table of operands
  hw::Command other = store;
  other.as<hw::cmd::Result>()->chain.chain = 1;
  expect_stop(other, chain_of(Op::kRelu, hw::Operand::kImmediate));
  expect_stop_after_matmuls(other);
  hw::Command empty = store;
  empty.as<hw::cmd::Result>()->m = 0;
  expect_stop(empty);
  hw::Program program;  // what they would do with one column less
  program.chains = {bias};
  program.commands = {store_of(1, kTinyCore.parameter_columns(), 256)};
  EXPECT_NO_THROW((void)run(program));
  EXPECT_FALSE(core_->failed());
}

// The records of all chains are as long as that of the longest.
TEST_F(CorePrograms, RunShortChainsBesideOnesThatAreTooLong) {
  hw::Program program;
  program.chains = {chain_of(hw::StageOp::kRelu, hw::Operand::kImmediate),
                    chain_of(hw::StageOp::kRelu, hw::Operand::kImmediate, 8)};
  hw::Command store = store_of(2, 4, 256);
  program.commands = {store};
  EXPECT_NO_THROW((void)run(program));
  store.as<hw::cmd::Result>()->chain.chain = 1;
  program.commands = {store};
  EXPECT_THROW((void)run(program), std::invalid_argument);
  EXPECT_FALSE(core_->failed());
}

TEST_F(CorePrograms, StopAtRowWiseStagesThatTheirUnitsCannotDo) {
  using Op = hw::StageOp;
  const hw::Command store = store_of(2, 4, 256);
  hw::Chain softmax = chain_of(Op::kSoftmax, hw::Operand::kImmediate);
  softmax.stages[0].imm = {1, 1, 1, 8, 1, 1, 8};
  hw::Program program;
  program.chains = {softmax};
  program.commands = {store};
  EXPECT_NO_THROW((void)run(program));
  const auto changed = [&](auto change) {
    hw::Chain chain = softmax;
    change(chain.stages[0]);
    return chain;
  };
  expect_stop(store, changed([](auto& stage) { stage.side = hw::Reduction::kRowMax; }));
  expect_stop(store, changed([](auto& stage) { stage.operand = hw::Operand::kChannel; }));
  expect_stop(store, changed([](auto& stage) { stage.imm[0] = 3; }));
  expect_stop(store, changed([](auto& stage) { stage.imm[1] = -1; }));
  expect_stop(store, changed([](auto& stage) { stage.imm[2] = 64; }));
  for (const std::int64_t bits : {0, 15, 24}) {
    expect_stop(store, changed([bits](auto& stage) { stage.imm[3] = bits; }));
  }
  expect_stop(store, changed([](auto& stage) { stage.imm[4] = std::int64_t{1} << 31; }));
  expect_stop(store, changed([](auto& stage) { stage.imm[5] = -1; }));
  expect_stop(store, changed([](auto& stage) { stage.imm[6] = 17; }));
  hw::Chain early = softmax;
  early.stages.push_back(chain_of(Op::kRelu, hw::Operand::kImmediate).stages[0]);
  expect_refused("expected it to be the last stage", store, early);
  hw::Chain divided = chain_of(Op::kDivideRowSum, hw::Operand::kRow);
  divided.stages.push_back(softmax.stages[0]);
  expect_refused("after a division", store, divided);
  hw::Chain norm = chain_of(Op::kLayerNorm, hw::Operand::kImmediate);
  norm.stages[0].imm = {15, 23, -127, 127};
  expect_stop(store, norm);
  norm.stages[0].operand = hw::Operand::kChannel;
  program.chains = {norm};
  EXPECT_NO_THROW((void)run(program));
  norm.stages[0].imm[0] = 31;
  expect_stop(store, norm);
  norm.stages[0].imm = {15, 63, -127, 127};
  expect_stop(store, norm);
  norm.stages[0].imm = {15, 23, 128, 127};
  expect_stop(store, norm);
  hw::Chain part = chain_of(Op::kLayerNormApply, hw::Operand::kChannel);
  part.stages[0].imm = {15, 23, -127, 127, 65536};
  program.chains = {part};
  EXPECT_NO_THROW((void)run(program));
  for (const std::int64_t length : {0, 65537, -1}) {
    part.stages[0].imm[4] = length;
    expect_stop(store, part);
  }
  part.stages[0].imm = {0, 23, -127, 127, 8};
  expect_stop(store, part);
  part.stages[0].imm[0] = 15;
  part.stages.push_back(part.stages[0]);
  expect_refused("expected it to be the last stage", store, part);
  part.stages.pop_back();
  part.stages[0].side = hw::Reduction::kRowSum;
  expect_stop(store, part);
  hw::Command kept = store;
  kept.as<hw::cmd::Result>()->chain.valid_cols = (1 << 16) + 1;
  expect_refused("65536 columns", kept, softmax);
  EXPECT_FALSE(core_->failed());
}

/// Rows of s16 from address 0 on: two stores leave their sums and squares, each of some columns, a
/// third one normalises them with the constants of a network.
class NormProgram {
 public:
  NormProgram(hw::test::Random& random, std::vector<std::uint8_t>& memory)
      : m_(any(random, 1, 8)), n_(any(random, 2, 32)), pitch_((n_ + 3) / 4 * 4) {
    const auto narrow = static_cast<int>(any(random, 0, 12));
    std::vector<std::int16_t> rows(m_ * n_);
    for (std::int16_t& x : rows) x = static_cast<std::int16_t>(random()) >> narrow;
    std::memcpy(memory.data(), rows.data(), rows.size() * sizeof(std::int16_t));
    std::vector<double> gamma(n_), beta(n_);
    for (double& weight : gamma) weight = 0.5 + static_cast<double>(random() % 1000) / 1000;
    for (double& bias : beta) bias = static_cast<double>(random() % 200) / 1000 - 0.1;
    const hw::LayerNormConstants of = hw::make_layernorm_constants(gamma, beta, 0.03);
    std::vector<std::int32_t> words = of.multiplier;
    words.insert(words.end(), of.bias.begin(), of.bias.end());
    std::memcpy(memory.data() + kWords, words.data(), words.size() * sizeof(std::int32_t));

    hw::Stage sums = hw::default_stage(hw::StageOp::kClamp);
    sums.imm = {-32768, 32767};
    sums.side = hw::Reduction::kSumSquares;
    hw::Stage norm = hw::default_stage(hw::StageOp::kLayerNormApply);
    norm.imm = {of.fraction_bits, of.shift, -127, 127, n_};
    // Results of four bytes hold the stages up, when the next row is known already.
    const hw::DType out = any(random, 0, 1) == 0 ? hw::DType::kS8 : hw::DType::kS32;
    program_.chains = {{{sums}, hw::DType::kS16}, {{norm}, out}};
    load_words(static_cast<std::uint32_t>(words.size() * sizeof(std::int32_t)));
    load_sums();
    const std::uint32_t part = any(random, 1, n_ - 1);
    store(0, 0, part, false);
    store(0, part, n_ - part, true);
    store(1, 0, n_, false);
  }

  [[nodiscard]] const hw::Program& program() const { return program_; }

 private:
  static constexpr std::uint32_t kWords = 1024, kRows = 2048, kStatistics = 5;

  static std::uint32_t any(hw::test::Random& random, std::uint32_t least, std::uint32_t most) {
    return static_cast<std::uint32_t>(hw::test::pick(random, least, most));
  }
  void load_words(std::uint32_t bytes) {
    hw::Command command = hw::test::empty_command(hw::Opcode::kLoad);
    auto& load = *command.as<hw::cmd::Load>();
    load.m = 1;
    load.n = bytes;
    load.from = {kWords, bytes};
    load.to = {0, bytes};
    program_.commands.push_back(command);
  }
  void load_sums() {
    hw::Command command = hw::test::empty_command(hw::Opcode::kLoadAccumulator);
    auto& load = *command.as<hw::cmd::LoadAccumulator>();
    load.m = m_;
    load.n = n_;
    load.type = hw::DType::kS16;
    load.from = {0, 2 * n_};
    load.to = {0, pitch_};
    program_.commands.push_back(command);
  }
  void store(std::uint16_t chain, std::uint32_t column, std::uint32_t columns, bool continues) {
    hw::Command command = hw::test::empty_command(hw::Opcode::kStore);
    auto& store = *command.as<hw::cmd::Store>();
    store.m = m_;
    store.n = columns;
    store.from = {column, pitch_};
    const auto element = static_cast<std::uint32_t>(hw::bytes_of(program_.chains[chain].out));
    store.to = {kRows + 1024 * chain + element * column, 4 * n_};
    store.chain.chain = chain;
    store.chain.statistics = kStatistics;
    store.chain.continues = continues;
    program_.commands.push_back(command);
  }

  const std::uint32_t m_, n_, pitch_;
  hw::Program program_;
};

TEST_F(CorePrograms, NormaliseRowsFromTheSumsThatSideOutputsLeave) {
  hw::test::Random random(9);
  for (int i = 0; i < 60; ++i) {
    const NormProgram norm(random, memory_);
    (void)run_as_executed(norm.program());
    ASSERT_FALSE(HasFailure()) << i;
  }
  EXPECT_FALSE(core_->failed());
}

// As by 1: the largest results of rows of zeros are their statistics.
TEST_F(CorePrograms, DivideByRowSumsOfZero) {
  constexpr std::uint32_t kRows = 3, kCols = 6, kPitch = 8, kOut = 4096;
  std::iota(memory_.begin() + 2048, memory_.begin() + 2048 + 2 * kRows * kCols, std::uint8_t{1});
  const auto store = [](std::uint16_t chain, std::uint32_t from) {
    hw::Command command = store_of(kRows, kCols, kOut + chain * 1024U);
    auto& result = *command.as<hw::cmd::Result>();
    result.from = {from, kPitch};
    result.chain.chain = chain;
    return command;
  };
  hw::Program program;
  program.chains = {largest_of_rows(),
                    {{hw::default_stage(hw::StageOp::kDivideRowSum)}, hw::DType::kS32}};
  program.commands = {sums_of(kRows, kCols, {0, kPitch}), sums_of(kRows, kCols, {64, kPitch}, 2048),
                      store(0, 0), store(1, 64)};
  const CoreState state = run_as_executed(program);
  EXPECT_EQ(state.memory[kOut + 1024 + 1], 1) << "256 times sums, the first of which ends with 1";
  EXPECT_FALSE(core_->failed());
}

TEST_F(CorePrograms, SayThatAMemoryRefused) {
  hw::Program program;
  program.chains.resize(1);
  program.commands = {store_of(1, 4, 256)};
  (void)run(program);
  EXPECT_FALSE(core_->error());
  program.commands = {store_of(1, 4, 1 << 20)};
  (void)run(program);
  EXPECT_TRUE(core_->error());
}

TEST_F(CorePrograms, StopAtWhatNeedsOtherUnits) {
  hw::Chain causal = chain_of(hw::StageOp::kMask, hw::Operand::kImmediate);
  expect_refused("stage 1, mask: the RTL has no such stage", store_of(2, 4, 256), causal);
  hw::Command encoded = store_of(2, 4, 256);
  encoded.as<hw::cmd::Store>()->encoder = 0;
  expect_refused("an encoder", encoded);
  hw::Command window = load_of(64, 16, 0);
  window.as<hw::cmd::Load>()->window.emplace();
  expect_refused("a window", window);
  hw::Command staged = load_of(64, 16, 0);
  staged.as<hw::cmd::Load>()->pre.emplace();
  expect_refused("stages before the anchor", staged);
  for (const hw::Opcode opcode : {hw::Opcode::kAttention, hw::Opcode::kLoop}) {
    expect_refused("no unit", hw::test::empty_command(opcode));
  }
}

// Chunks that were not asked for, chains that wait for commands behind it, and commands that have
// been looked at: nothing of it is left in the program after it.
TEST_F(CorePrograms, LeaveNothingOfWhatIsBehindAStop) {
  for (std::size_t at = 0; at < 12; ++at) {
    hw::Program program;
    program.chains.resize(3);
    for (std::size_t i = 0; i < 24; ++i) {
      hw::Command store = store_of(4, 4, 512);
      store.as<hw::cmd::Store>()->chain.chain = static_cast<std::uint16_t>(i % 3);
      program.commands.push_back(i % 2 == 0 ? store : load_of(0, 16, 0));
    }
    program.commands[at] = hw::test::empty_command(hw::Opcode::kLoop);
    EXPECT_THROW((void)run(program), std::invalid_argument);
    ASSERT_FALSE(core_->busy()) << at;
    expect_it_goes_on();
    ASSERT_FALSE(HasFailure()) << at;
  }
}

// A fence on both sides, and the address of the command in its register.
TEST_F(CorePrograms, WaitForTheHostAtItsCommands) {
  hw::Program program;
  program.chains.resize(1);
  const hw::Command host = hw::test::empty_command(hw::Opcode::kHost);
  program.commands = {load_of(0, 64, 0), host, host, load_of(0, 16, 0), matmul_of(0, 0), host};
  for (int i = 0; i < 4; ++i) program.commands.push_back(load_of(0, 16, 0));
  const CoreRun times = run(program);
  const auto at = [&](std::size_t i) { return times.commands.at(i); };
  EXPECT_EQ(at(1).dispatched, at(0).completed + 1);
  EXPECT_EQ(at(2).dispatched, at(1).completed + 1);
  EXPECT_EQ(at(3).dispatched, at(2).completed + 1);
  EXPECT_EQ(at(5).dispatched, at(4).completed + 1);
  EXPECT_EQ(at(6).dispatched, at(5).completed + 1);
  for (const std::size_t i : {1, 2, 5}) {
    EXPECT_EQ(at(i).started, at(i).dispatched);
    EXPECT_EQ(at(i).completed, at(i).dispatched + 3) << "a read, a write, its effect";
  }
  const auto address = [](std::uint64_t i) {
    return kAt + hw::kHeaderBytes + i * hw::kCommandBytes;
  };
  EXPECT_EQ(times.called, (std::vector<std::uint64_t>{address(1), address(2), address(5)}));
  EXPECT_FALSE(core_->failed());
}

// The gates have room for a tile of each tensor operand, whatever the machine says.
TEST_F(CorePrograms, NeedAMachineThatTakesTensorOperandsAsAWhole) {
  hw::Program program;
  program.chains = {chain_of(hw::StageOp::kAdd, hw::Operand::kTensor)};
  program.commands = {store_of(60, 20, 256)};  // 2,400 bytes
  hw::Machine::Postop postop;
  postop.operand_kib = 3;
  EXPECT_EQ(core_program_problem(program, kTinyCore, postop), "");
  postop.operand_kib = 1;
  EXPECT_EQ(core_program_problem(program, kTinyCore, postop),
            "command 0, store: tensor operands of 60 rows in blocks of 12 (postop.operand_kib = "
            "1), expected room for all of them, as the RTL has");
}

TEST_F(CorePrograms, NeedAMachineWithTheKeysOfTheGates) {
  hw::Machine machine = hw::find_machine("tiny");
  EXPECT_EQ(core_machine_problem(machine), "");
  EXPECT_EQ(machine.array.rows, kTinyCore.lanes);
  EXPECT_EQ(machine.core.fetch_commands, kTinyCore.fetch_commands);
  EXPECT_EQ(machine.scratchpad.kib * 1024U, kTinyCore.scratchpad_bytes());
  EXPECT_EQ(machine.accumulator.kib * 256U, kTinyCore.sums());
  EXPECT_EQ(machine.postop.row_statistics, kTinyCore.statistics);
  machine.dram.t_cl_ns *= 2;
  machine.array.overlap = hw::ArrayOverlap::kNone;
  EXPECT_EQ(core_machine_problem(machine), "") << "the gates do not mind";
  for (const char* change :
       {"array.rows=8", "core.store_queue=3", "scratchpad.banks=2", "accumulator.ports=3",
        "dma.outstanding_writes=2", "bus.width_bytes=8", "l2.kib=64", "memory.model=fixed",
        "tlb.entries=4", "backend.softmax_unit=rtl", "core.call_cycles=5",
        "scratchpad.protection=parity", "accumulator.protection=secded"}) {
    hw::Machine changed = hw::find_machine("tiny");
    hw::set_key(changed, change);
    const std::string key = std::string(change).substr(0, std::string(change).find('='));
    EXPECT_EQ(core_machine_problem(changed).rfind(key + ": found ", 0), 0U) << change;
  }
  const hw::Machine other = core_machine(kCoreSizes[1]);
  EXPECT_EQ(core_machine_problem(other, kCoreSizes[1]), "");
  EXPECT_NE(core_machine_problem(other).find("built for preset tiny"), std::string::npos);
  EXPECT_EQ(core_machine_problem(machine, kCoreSizes[1], "mine"),
            "core.load_queue: found 4, expected 3, that of the core's RTL, mine");
  hw::Machine slow = hw::find_machine("tiny");
  slow.bus.clock_mhz = 500;
  EXPECT_NE(core_machine_problem(slow).find("the clock of the bus"), std::string::npos);
}

TEST_F(CorePrograms, NeedAHeader) {
  hw::Program program;
  program.commands = {hw::test::empty_command(hw::Opcode::kEnd)};
  EXPECT_THROW((void)core_->run({program, kAt}, ports(), memory_, nullptr), std::invalid_argument);
  EXPECT_FALSE(core_->busy());
  expect_it_goes_on();
  EXPECT_THROW((void)core_->run({program, std::uint64_t{1} << 40}, ports(), memory_, nullptr),
               std::invalid_argument)
      << "beyond the addresses of its ports";
  EXPECT_FALSE(core_->busy());
  expect_it_goes_on();
}

}  // namespace
}  // namespace systole::testbench
