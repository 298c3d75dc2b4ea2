#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "hw/program/program_image.h"
#include "testbench/rtl/core/core_rtl.h"
#include "tests/hw/postop/random_chain.h"
#include "tests/hw/program/random_program.h"
#include "tests/rtl/dma/read_answers.h"
#include "tests/rtl/postop/pipeline_case.h"

namespace systole::testbench {

/// A memory that takes writes now and then, and answers them some cycles after their last beat, in
/// any order, one a cycle.
struct WriteAnswers {
  std::uint64_t least, most;       ///< cycles from the last beat to the answer, at least two
  std::uint64_t stalls_per_mille;  ///< cycles in which no request, or no beat, is taken
  std::uint64_t seed;

  /// The same memory each time.
  [[nodiscard]] hw::WriteMemory memory() const {
    hw::WriteMemory memory;
    const auto takes = [of = *this](std::uint64_t cycle, std::uint64_t channel) {
      return std::mt19937_64(of.seed ^ ((2 * cycle + channel) * 0x9e3779b97f4a7c15U))() % 1000 >=
             of.stalls_per_mille;
    };
    memory.takes = [takes](std::uint64_t cycle) { return takes(cycle, 0); };
    memory.takes_data = [takes](std::uint64_t cycle) { return takes(cycle, 1); };
    const auto random = std::make_shared<std::mt19937_64>(seed);
    const auto busy = std::make_shared<std::set<std::uint64_t>>();
    memory.done = [of = *this, random, busy](const hw::WriteRequest& request) {
      std::uint64_t done = request.sent + of.least + (*random)() % (of.most - of.least + 1);
      while (!busy->insert(done).second) ++done;
      return done;
    };
    return memory;
  }
};

/// Programs of loads, matmuls, stores and moves in memories so small that they meet.
class RandomCore {
 public:
  static constexpr std::size_t kMemoryBytes = 1 << 15;
  static constexpr std::uint64_t kData = 8'192;       ///< bytes that loads and stores use
  static constexpr std::uint64_t kPrograms = 12'288;  ///< where programs may begin

  /// `staged`: some loads have stages.
  RandomCore(hw::test::Random& random, const CoreSize& size = kTinyCore, bool staged = false)
      : random_(random), size_(size), staged_(staged) {
    state_.memory.resize(kMemoryBytes);
    state_.scratchpad.resize(size.scratchpad_bytes());
    state_.sums.resize(size.sums());
    state_.statistics.resize(size.statistics);
    for (std::uint8_t& byte : state_.memory) byte = static_cast<std::uint8_t>(random());
  }

  /// Fills the local memories.
  [[nodiscard]] hw::Program first() {
    hw::Program program;
    hw::Command load = hw::test::empty_command(hw::Opcode::kLoad);
    auto& from = *load.as<hw::cmd::Load>();
    from.n = 256;
    from.m = static_cast<std::uint32_t>(size_.scratchpad_bytes() / from.n);
    from.from = {0, std::min<std::uint32_t>(from.n, kData / 2 / from.m)};
    from.to = {0, from.n};
    hw::Command matmul = hw::test::empty_command(hw::Opcode::kMatmul);
    auto& fill = *matmul.as<hw::cmd::Matmul>();
    fill.a = {1, 3};
    fill.b = {900, size_.lanes};
    fill.c = {0, size_.lanes};
    fill.m = static_cast<std::uint32_t>(size_.sums() / size_.lanes);
    fill.n = size_.lanes;
    fill.k = 3;
    hw::Command move = hw::test::empty_command(hw::Opcode::kMove);
    auto& sums = *move.as<hw::cmd::Move>();
    sums.m = size_.statistics;
    sums.n = 3;
    sums.from = {0, size_.lanes};
    sums.to = {0, 3};
    program.chains = {{{row_stage(hw::StageOp::kSoftmax)}, hw::DType::kU8}};
    program.chains[0].stages[0].imm[0] = 0;  // deferred: it leaves the sums of the rows
    program.commands = {load, matmul, move, hw::test::empty_command(hw::Opcode::kEnd)};
    return program;
  }

  [[nodiscard]] hw::Program next(std::int64_t most) {
    hw::Program program;
    // More than there are slots now and then.
    for (std::int64_t i = any(1, any(0, 1) == 0 ? 20 : 4); i > 0; --i) {
      program.chains.push_back(chain());
    }
    for (std::int64_t i = any(1, most); i > 0; --i) {
      switch (any(0, 6)) {
        case 0:
        case 1:
          program.commands.push_back(staged_ && any(0, 1) == 0 ? staged_load(program) : load());
          break;
        case 2:
        case 3:
        case 4:
          program.commands.push_back(matmul());
          break;
        default:
          program.commands.push_back(result(program));
          break;
      }
    }
    program.commands.push_back(hw::test::empty_command(hw::Opcode::kEnd));
    return program;
  }

  /// The program in memory, at the place that is returned.
  std::uint64_t put(const hw::Program& program) {
    const std::vector<std::uint8_t> image = hw::encode_program(program);
    const auto at = static_cast<std::uint64_t>(any(kPrograms, 16'000));
    std::copy(image.begin(), image.end(), state_.memory.begin() + static_cast<std::ptrdiff_t>(at));
    return at;
  }

  [[nodiscard]] CoreState& state() { return state_; }

  /// Random memories at the ports: the same each time the function is called.
  [[nodiscard]] std::function<CoreMemory()> ports() {
    const ReadAnswers program = reads(), loads = reads(), operands = reads();
    WriteAnswers stores{static_cast<std::uint64_t>(any(2, 12)), 0, stalls(), random_()};
    stores.most = stores.least + static_cast<std::uint64_t>(any(0, 40));
    return [=] {
      return CoreMemory{program.memory(), loads.memory(), operands.memory(), stores.memory()};
    };
  }

 private:
  std::int64_t any(std::int64_t least, std::int64_t most) {
    return hw::test::pick(random_, least, most);
  }
  std::uint32_t size(std::int64_t most) { return static_cast<std::uint32_t>(any(1, most)); }
  /// Of a row: some vectors.
  [[nodiscard]] std::int64_t columns() const { return 3 * std::int64_t{size_.lanes} + 2; }
  /// Of a memory, what most tiles are in, so that they meet: of a small one all.
  std::uint64_t near(std::uint64_t all, std::uint64_t of_four_lanes) {
    return any(0, 3) == 0 ? all : std::min(all, of_four_lanes * size_.lanes / 4);
  }
  std::uint64_t scratchpad() { return near(size_.scratchpad_bytes(), 4'096); }
  std::uint64_t stalls() { return static_cast<std::uint64_t>(any(0, 1) == 0 ? 0 : any(1, 700)); }
  ReadAnswers reads() {
    ReadAnswers answers{size_.lanes, static_cast<std::uint64_t>(any(1, 12)), 0, stalls(),
                        random_()};
    answers.most = answers.least + static_cast<std::uint64_t>(any(0, 40));
    return answers;
  }

  /// Rows of bytes anywhere in a memory, further apart than they are long.
  template <typename Tile>
  Tile tile(std::uint64_t memory, std::uint32_t rows, std::uint64_t bytes) {
    Tile tile;
    tile.pitch = static_cast<std::uint32_t>(bytes + (any(0, 1) == 0 ? 0 : any(0, 20)));
    const std::uint64_t length = (rows - 1) * std::uint64_t{tile.pitch} + bytes;
    tile.address = static_cast<decltype(tile.address)>(
        any(0, 7) == 0 ? memory - length : any(0, static_cast<std::int64_t>(memory - length)));
    return tile;
  }
  /// Sums in the accumulator, which begin at a row of it and are whole rows apart, or anywhere.
  hw::LocalTile sums(std::uint32_t rows, std::uint32_t cols, bool in_rows) {
    const std::uint32_t unit = in_rows ? size_.lanes : 1;
    const std::uint32_t width = (cols + unit - 1) / unit * unit;
    hw::LocalTile tile;
    tile.pitch = width + unit * static_cast<std::uint32_t>(any(0, 2));
    const std::uint64_t length = (rows - 1) * std::uint64_t{tile.pitch} + width;
    const auto most = static_cast<std::int64_t>((near(size_.sums(), 1'024) - length) / unit);
    tile.address = unit * static_cast<std::uint32_t>(any(0, 7) == 0 ? most : any(0, most));
    return tile;
  }

  hw::Chain chain() {
    hw::Chain chain;
    chain.out = static_cast<hw::DType>(any(0, hw::kDTypes - 1));
    const bool knows_rows = any(0, 2) == 0;
    std::int64_t tensors = any(0, 2);
    bool divides = !knows_rows && any(0, 3) == 0;
    const bool side = !knows_rows && !divides && any(0, 1) == 0;
    for (std::int64_t i = any(0, 2) == 0 ? size_.stages : any(0, size_.stages); i > 0; --i) {
      if (divides && any(0, i - 1) == 0) {
        divides = false;
        chain.stages.push_back(hw::default_stage(hw::StageOp::kDivideRowSum));
        chain.stages.back().rounding = static_cast<hw::Rounding>(any(0, 2));  // it has one alone
        continue;
      }
      const bool tensor = tensors > 0 && any(0, 2) != 0;
      tensors -= tensor ? 1 : 0;
      chain.stages.push_back(slot_stage(tensor));
    }
    if (knows_rows) {
      constexpr hw::StageOp kEach[] = {hw::StageOp::kSoftmax, hw::StageOp::kLayerNorm,
                                       hw::StageOp::kLayerNormApply};
      chain.stages.push_back(row_stage(kEach[any(0, 2)]));
    } else if (side && !chain.stages.empty()) {
      chain.stages.back().side = static_cast<hw::Reduction>(any(1, hw::kReductions - 1));
    }
    return chain;
  }
  /// With a tensor as its operand, or an immediate or words of the parameter block.
  hw::Stage slot_stage(bool tensor) {
    for (;;) {
      const hw::Stage stage = pipeline_stage(random_);
      if (tensor ? stage.operand == hw::Operand::kTensor : stage.operand <= hw::Operand::kChannel) {
        return stage;
      }
    }
  }
  hw::Stage row_stage(hw::StageOp op) { return hw::test::random_stage(random_, op); }

  hw::Command load() {
    if (any(0, 3) == 0) return load_sums();
    hw::Command command = hw::test::empty_command(hw::Opcode::kLoad);
    auto& load = *command.as<hw::cmd::Load>();
    load.m = size(8);
    load.n = size(any(0, 2) == 0 ? 60 : 9);
    load.from = tile<hw::DramTile>(kData, load.m, load.n);
    load.to = tile<hw::LocalTile>(scratchpad(), load.m, load.n);
    return command;
  }

  /// Its chain is one that may come before an anchor, a new one now and then.
  hw::Command staged_load(hw::Program& program) {
    hw::Command command = hw::test::empty_command(hw::Opcode::kLoad);
    auto& load = *command.as<hw::cmd::Load>();
    hw::ChainUse& use = load.pre.emplace();
    std::vector<std::uint16_t> before;
    for (std::size_t i = 0; i < program.chains.size(); ++i) {
      if (is_early(program.chains[i])) before.push_back(static_cast<std::uint16_t>(i));
    }
    if (before.empty() || any(0, 3) == 0) {
      use.chain = static_cast<std::uint16_t>(program.chains.size());
      program.chains.push_back(early_chain());
    } else {
      use.chain =
          before[static_cast<std::size_t>(any(1, static_cast<std::int64_t>(before.size()))) - 1];
    }
    const hw::Chain& chain = program.chains[use.chain];
    load.m = size(8);
    load.n = size(columns());
    load.type = static_cast<hw::DType>(any(0, hw::kDTypes - 1));
    load.from = tile<hw::DramTile>(kData, load.m, load.n * hw::bytes_of(load.type));
    load.to = tile<hw::LocalTile>(scratchpad(), load.m, load.n);
    const std::uint64_t bytes = 4 * hw::parameter_words(chain) * load.n;
    const std::uint64_t bank = size_.scratchpad_bytes() / size_.banks;
    // Over the end of a bank now and then.
    use.parameters = any(0, 3) != 0
                         ? parameters(program, bytes)
                         : static_cast<std::uint32_t>(
                               bank - std::min<std::uint64_t>(
                                          bank, any(1, static_cast<std::int64_t>(bytes) + 1)));
    const std::uint32_t statistics = load.m * std::max(hw::statistics_words(chain), 1U);
    use.statistics = size(size_.statistics - statistics + 1) - 1;
    for (const hw::DType type : hw::tensor_types(chain)) {
      use.tensor = operand_tile(program, load.m, load.n * hw::bytes_of(type));
    }
    return command;
  }
  [[nodiscard]] static bool is_early(const hw::Chain& chain) {
    return !hw::is_row_wise(chain) && !hw::writes_row_statistics(chain) &&
           hw::bytes_of(chain.out) == 1 && hw::tensor_operands(chain) <= 1;
  }
  hw::Chain early_chain() {
    for (;;) {
      hw::Chain early = chain();
      early.out = any(0, 1) == 0 ? hw::DType::kS8 : hw::DType::kU8;
      if (is_early(early)) return early;
    }
  }

  hw::Command load_sums() {
    hw::Command command = hw::test::empty_command(hw::Opcode::kLoadAccumulator);
    auto& load = *command.as<hw::cmd::LoadAccumulator>();
    load.m = size(8);
    load.n = size(columns());
    load.type = static_cast<hw::DType>(any(0, hw::kDTypes - 1));
    load.from = tile<hw::DramTile>(kData, load.m, load.n * hw::bytes_of(load.type));
    load.to = sums(load.m, load.n, any(0, 1) == 0);
    return command;
  }

  hw::Command matmul() {
    hw::Command command = hw::test::empty_command(hw::Opcode::kMatmul);
    auto& matmul = *command.as<hw::cmd::Matmul>();
    matmul.m = size(any(0, 2) == 0 ? 20 : 6);
    matmul.n = size(columns());
    matmul.k = size(columns());
    matmul.a = tile<hw::LocalTile>(scratchpad(), matmul.m, matmul.k);
    matmul.b_transposed = any(0, 1) == 0;
    matmul.b = matmul.b_transposed ? tile<hw::LocalTile>(scratchpad(), matmul.n, matmul.k)
                                   : tile<hw::LocalTile>(scratchpad(), matmul.k, matmul.n);
    matmul.c = sums(matmul.m, matmul.n, any(0, 1) == 0);
    matmul.a_unsigned = any(0, 1) != 0;
    matmul.accumulate = any(0, 1) != 0;
    return command;
  }

  hw::Command result(hw::Program& program) {
    const bool moves = any(0, 2) == 0;
    hw::Command command = hw::test::empty_command(moves ? hw::Opcode::kMove : hw::Opcode::kStore);
    auto& result = *command.as<hw::cmd::Result>();
    result.chain.chain =
        static_cast<std::uint16_t>(any(0, static_cast<std::int64_t>(program.chains.size()) - 1));
    const hw::Chain& chain = program.chains[result.chain.chain];
    result.m = size(8);
    result.n = size(columns());
    result.from = sums(result.m, result.n, any(0, 1) == 0);
    const std::uint64_t words = hw::parameter_words(chain) * result.n;
    result.chain.parameters = parameters(program, 4 * words);
    const std::uint32_t statistics = result.m * std::max(hw::statistics_words(chain), 1U);
    result.chain.statistics = size(size_.statistics - statistics + 1) - 1;
    if (!chain.stages.empty() && chain.stages.back().side != hw::Reduction::kNone) {
      result.chain.continues = any(0, 1) == 0;
    }
    if (hw::uses_valid_cols(chain)) result.chain.valid_cols = size(result.n + 1) - 1;
    const std::vector<hw::DType> types = hw::tensor_types(chain);
    for (std::size_t i = 0; i < types.size(); ++i) {
      const auto operand = operand_tile(program, result.m, result.n * hw::bytes_of(types[i]));
      if (i == 0) {
        result.chain.tensor = operand;
        continue;
      }
      for (std::int64_t others = any(0, 2); others > 0; --others) {
        program.operand_tiles.push_back({random_() % kData, 1});
      }
      result.chain.operands = static_cast<std::uint32_t>(program.operand_tiles.size());
      program.operand_tiles.push_back(operand);
    }
    const std::uint64_t bytes = result.n * hw::bytes_of(chain.out);
    if (moves) {
      command.as<hw::cmd::Move>()->to = tile<hw::LocalTile>(scratchpad(), result.m, bytes);
    } else {
      command.as<hw::cmd::Store>()->to = tile<hw::DramTile>(kData, result.m, bytes);
    }
    return command;
  }

  /// Where `bytes` of parameters are: anywhere, or where the last load brings some.
  std::uint32_t parameters(const hw::Program& program, std::uint64_t bytes) {
    const auto most = static_cast<std::int64_t>(scratchpad() - bytes);
    const auto* const load = last_of<hw::cmd::Load>(program);
    const bool late = load != nullptr && any(0, 1) == 0;
    return static_cast<std::uint32_t>(late ? std::min<std::int64_t>(load->to.address, most)
                                           : any(0, most));
  }
  /// Rows of bytes anywhere in memory, or where the last store leaves some.
  hw::DramTile operand_tile(const hw::Program& program, std::uint32_t rows, std::uint64_t bytes) {
    auto operand = tile<hw::DramTile>(kData, rows, bytes);
    const auto* const store = last_of<hw::cmd::Store>(program);
    if (store == nullptr || any(0, 1) == 0) return operand;
    const std::uint64_t length = (rows - 1) * std::uint64_t{operand.pitch} + bytes;
    operand.address = std::min<std::uint64_t>(store->to.address, kData - length);
    return operand;
  }
  /// The last command of that kind so far, or null.
  template <typename Work>
  static const Work* last_of(const hw::Program& program) {
    const auto last =
        std::find_if(program.commands.rbegin(), program.commands.rend(),
                     [](const hw::Command& command) { return command.as<Work>() != nullptr; });
    return last == program.commands.rend() ? nullptr : last->template as<Work>();
  }

  hw::test::Random& random_;
  const CoreSize size_;
  const bool staged_;
  CoreState state_;
};

/// What the machine checks before it runs a program, and the gates need not.
inline void make_legal(hw::Program& program) {
  for (hw::Command& command : program.commands) {
    if (auto* const result = command.as<hw::cmd::Result>()) result->chain.parameters &= ~3U;
    if (auto* const load = command.as<hw::cmd::Load>(); load != nullptr && load->pre) {
      load->pre->parameters &= ~3U;
    }
  }
  for (hw::Chain& chain : program.chains) {
    for (hw::Stage& stage : chain.stages) {
      if (stage.op == hw::StageOp::kDivideRowSum) stage.rounding = hw::Rounding::kHalfUp;
    }
  }
}

}  // namespace systole::testbench
