#include "mapper/choose/command_repeats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "hw/description/machine_file.h"
#include "mapper/mapping.h"
#include "mapper/replay/replay.h"
#include "mapper/test_graphs.h"
#include "model/seeded/shapes.h"

namespace systole::mapper {
namespace {

hw::Machine machine_of(std::uint32_t side, std::uint32_t kib, std::uint32_t banks) {
  hw::Machine machine = hw::find_machine("transformer");
  machine.array.rows = machine.array.cols = side;
  machine.scratchpad.kib = kib;
  machine.scratchpad.banks = banks;
  return machine;
}

model::Graph layer_of(const std::string& name, std::uint32_t tokens) {
  model::EncoderShape shape = model::find_shape(name);
  shape.layers = 1;
  model::SeededOptions options;
  options.shape_only = true;
  return model::make_seeded_encoder(name, shape, tokens, 1, options);
}

/// Cycle in which the last command is dispatched, with and without the repeats, and the part of the
/// commands that is replayed for the latter.
struct Compared {
  double all = 0, replayed = 0, part = 0;
};

Compared compare(const hw::Program& program, const hw::Machine& machine, Alike alike) {
  const std::size_t count = program.commands.size() - 1;  // kEnd
  Replay all(machine), some(machine);
  all.run(program, 0, count);
  double skipped = 0, commands = 0;
  for (const Stretch& stretch : find_stretches(program, machine, alike)) {
    some.run(program, stretch.first, stretch.measured());
    const std::uint64_t begun = some.dispatch();
    some.run(program, stretch.measured(), std::min(stretch.last, count));
    skipped += static_cast<double>((some.dispatch() - begun) * stretch.repeats);
    commands += static_cast<double>(stretch.last - stretch.first);
  }
  return {static_cast<double>(all.dispatch()), static_cast<double>(some.dispatch()) + skipped,
          commands / static_cast<double>(count)};
}

TEST(CommandRepeats, TakeAsLongAsTheCommandsThatTheyRepeat) {
  double part = 0, off = 0;
  std::size_t programs = 0;
  for (const model::Graph& graph : {product(512, 768, 768), product(96, 1'024, 1'024),
                                    layer_of("bert-base", 256), graph_of("vit65")}) {
    for (const std::uint32_t side : {8U, 32U}) {
      for (const std::uint32_t kib : {64U, 512U}) {
        for (const std::uint32_t banks : {2U, 4U}) {
          const hw::Machine machine = machine_of(side, kib, banks);
          const hw::Program program = map_graph(graph, machine).program;
          const Compared in_banks = compare(program, machine, Alike::kInBanks);
          EXPECT_NEAR(in_banks.replayed / in_banks.all, 1, 0.03)
              << graph.name << ' ' << side << ' ' << kib << ' ' << banks;
          const Compared in_shape = compare(program, machine, Alike::kInShape);
          EXPECT_NEAR(in_shape.replayed / in_shape.all, 1, 0.1)
              << graph.name << ' ' << side << ' ' << kib << ' ' << banks;
          part += in_banks.part;
          off += std::abs(in_banks.replayed / in_banks.all - 1);
          ++programs;
        }
      }
    }
  }
  EXPECT_LT(part / static_cast<double>(programs), 0.75);
  EXPECT_LT(off / static_cast<double>(programs), 0.005);
}

// Whatever is skipped has the shape of what is replayed for it.
TEST(CommandRepeats, AreOfTheSameShape) {
  const hw::Machine machine = machine_of(16, 64, 4);
  const hw::Program program = map_graph(layer_of("bert-base", 128), machine).program;
  std::size_t next = 0, skipped = 0;
  for (const Stretch& stretch : find_stretches(program, machine, Alike::kInBanks)) {
    EXPECT_EQ(stretch.first, next);
    EXPECT_LT(stretch.first, stretch.last);
    EXPECT_LE(stretch.first, stretch.measured());
    next = stretch.end();
    for (std::size_t i = stretch.last; i < stretch.end(); ++i) {
      const hw::Command& one = program.commands.at(i);
      const hw::Command& like = program.commands.at(stretch.like(i));
      ++skipped;
      EXPECT_EQ((i - stretch.like(i)) % stretch.period, 0U);
      EXPECT_EQ((i - stretch.like(i)) / stretch.period, stretch.periods_after(i));
      ASSERT_EQ(one.opcode(), like.opcode());
      if (const auto* const product = one.as<hw::cmd::Matmul>()) {
        const auto* const other = like.as<hw::cmd::Matmul>();
        const std::uint64_t bank = machine.scratchpad.bank_bytes();
        ASSERT_EQ(product->m * product->n * product->k, other->m * other->n * other->k);
        ASSERT_EQ(product->a.address / bank, other->a.address / bank);
        ASSERT_EQ(product->b.address / bank, other->b.address / bank);
      }
    }
  }
  EXPECT_EQ(next, program.commands.size());
  EXPECT_GT(skipped, program.commands.size() / 3);
}

// A chain of the same stages takes as long whatever its constants are, and another one does not.
TEST(CommandRepeats, DependOnTheStagesOfAChain) {
  const hw::Machine machine = machine_of(8, 32, 4);
  const hw::Program program = map_graph(product(2'048, 256, 128), machine).program;
  const auto replayed = [&](const hw::Program& of) {
    std::size_t sum = 0;
    for (const Stretch& stretch : find_stretches(of, machine, Alike::kInBanks)) {
      sum += stretch.last - stretch.first;
    }
    return sum;
  };
  ASSERT_FALSE(program.chains.empty());
  hw::Program other = program;
  for (std::size_t i = 0; i < other.commands.size(); ++i) {
    auto* const result = other.commands[i].as<hw::cmd::Result>();
    if (result == nullptr) continue;
    result->chain.chain = static_cast<std::uint16_t>(other.chains.size());
    hw::Chain chain = other.chains.front();
    chain.stages.back().imm.back() += static_cast<std::int64_t>(i);
    other.chains.push_back(chain);
  }
  EXPECT_LT(replayed(program), program.commands.size());
  EXPECT_EQ(replayed(other), replayed(program));
  for (std::size_t i = program.chains.size(); i < other.chains.size(); ++i) {
    hw::Chain& chain = other.chains[i];
    chain.stages.insert(chain.stages.end(), i, chain.stages.back());
  }
  EXPECT_EQ(replayed(other), program.commands.size());
}

}  // namespace
}  // namespace systole::mapper
