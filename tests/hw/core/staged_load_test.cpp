/// hw::StagedLoad against its stages moved cycle by cycle, with arrivals known as late as can be.
#include "hw/core/staged_load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "hw/postop/microcode.h"
#include "tests/hw/postop/random_chain.h"

namespace systole::hw {
namespace {

using test::pick;
using test::Random;

constexpr std::uint64_t kRequestBytes = 64;

/// A byte of a tile: where it is and with which cycle it is there.
struct TileBytes {
  std::uint64_t address, pitch, row_bytes;
  std::vector<std::uint64_t> there;  ///< row after row
};

struct StagedCase {
  Machine machine;
  Chain chain;
  cmd::Load load;
  std::vector<TileBytes> tiles;  ///< of its rows, of a tensor operand
};

bool may_come_before(const Chain& chain) {
  try {
    check_pre_chain(chain);
  } catch (const InputError&) {
    return false;
  }
  return bytes_of(chain.out) == 1 && tensor_operands(chain) <= 1;
}

StagedCase draw(Random& random) {
  StagedCase of;
  const auto any = [&](std::int64_t least, std::int64_t most) {
    return static_cast<std::uint32_t>(pick(random, least, most));
  };
  of.machine.preop.lanes = 4U << any(0, 2);
  of.machine.array.rows = of.machine.array.cols = 16;
  of.machine.bus.width_bytes = 4U << any(0, 2);
  of.machine.scratchpad = {16, 4, 1};
  do {
    of.chain = test::random_chain(random, 4);
    of.chain.out = DType::kS8;
  } while (!may_come_before(of.chain));
  of.load.m = any(1, 9);
  of.load.n = any(1, 40);
  of.load.type = static_cast<DType>(any(0, kDTypes - 1));
  of.load.to = {any(0, 4'000), of.load.n + any(0, 9)};
  of.load.pre.emplace().parameters = 4 * any(0, 900);
  std::vector<DType> types = tensor_types(of.chain);
  types.insert(types.begin(), of.load.type);
  for (const DType type : types) {
    const std::uint64_t bytes = of.load.n * bytes_of(type);
    of.tiles.push_back({any(0, 5'000), bytes + any(0, 9), bytes, {}});
  }
  return of;
}

/// What it takes of the scratchpad, and when it is over.
struct StagedTimes {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> reads, writes;  ///< address or bank, cycle
  std::uint64_t completed = 0;
};

/// `set_up`: of all loads so far. Fills in when bytes are there.
StagedTimes run(StagedCase& of, Random& random, std::uint64_t begin, StoreSetUp& set_up) {
  StagedTimes times;
  StagedLoad staged(of.load, of.chain, of.machine, false);
  const std::uint64_t beat = of.machine.bus.width_bytes;
  const auto read = [&](const BankAccess& banks, std::uint64_t cycle) {
    times.reads.emplace_back(banks.bank + (banks.crosses ? 100 : 0), cycle);
  };
  const auto write = [&](std::uint64_t at, std::uint64_t bytes, std::uint64_t words,
                         std::uint64_t cycle) {
    EXPECT_EQ(words, 1U);
    EXPECT_LE(bytes, of.machine.preop.lanes);
    times.writes.emplace_back(at, cycle);
  };
  std::uint64_t known = begin;  // no request is answered sooner
  for (TileBytes& tile : of.tiles) {
    staged.begin_rows(tile.row_bytes / of.load.n, &tile == &of.tiles.back());
    for (std::uint64_t row = 0; row < of.load.m; ++row) {
      for (std::uint64_t at = 0; at < tile.row_bytes;) {
        const std::uint64_t address = tile.address + row * tile.pitch + at;
        const std::uint64_t bytes =
            std::min(kRequestBytes - address % kRequestBytes, tile.row_bytes - at);
        const std::uint64_t beats = blocks_touched(address, bytes, beat);
        known += static_cast<std::uint64_t>(pick(random, 0, 3));
        const std::uint64_t done = known + beats + static_cast<std::uint64_t>(pick(random, 0, 60));
        for (std::uint64_t byte = 0; byte < bytes; ++byte) {
          const std::uint64_t before = (address + byte) / beat - address / beat;
          tile.there.push_back(done - (beats - 1 - before));
        }
        staged.arrive(address, bytes, done);
        staged.go_on(known, set_up, read, write);
        at += bytes;
      }
    }
  }
  staged.go_on(StagedLoad::kAllKnown, set_up, read, write);
  EXPECT_TRUE(staged.is_over());
  EXPECT_EQ(staged.left().size(), of.load.m);
  times.completed = staged.completed();
  return times;
}

/// The cycle with which each vector is there, all before it, and all of the tile before the last.
std::vector<std::uint64_t> vectors_there(const StagedCase& of) {
  std::uint64_t before = 0;
  if (of.tiles.size() > 1) {
    before = *std::max_element(of.tiles.front().there.begin(), of.tiles.front().there.end());
  }
  const TileBytes& last = of.tiles.back();
  const std::uint64_t element = last.row_bytes / of.load.n;
  std::vector<std::uint64_t> there;
  auto byte = last.there.begin();
  for (std::uint64_t row = 0; row < of.load.m; ++row) {
    for (std::uint64_t col = 0; col < of.load.n; ++col) {
      for (std::uint64_t i = 0; i < element; ++i) before = std::max(before, *byte++);
      if ((col + 1) % of.machine.preop.lanes == 0 || col + 1 == of.load.n) there.push_back(before);
    }
  }
  return there;
}

StagedTimes by_cycles(const StagedCase& of, bool holds_chain) {
  const std::uint64_t lanes = of.machine.preop.lanes, in_row = ceil_div(of.load.n, lanes);
  const std::vector<std::uint64_t> there = vectors_there(of);
  StagedTimes times;
  const std::uint64_t begins = there.front() + 1;
  const std::uint64_t code = holds_chain ? 0 : of.chain.stages.size() * kMicrocodeWords;
  std::uint64_t first = begins + code + 1;
  const std::uint64_t bank = of.machine.scratchpad.bank_bytes();
  std::uint64_t cycle = begins;
  for (std::uint64_t row = 0; row < parameter_words(of.chain); ++row) {
    const std::uint64_t at = of.load.pre->parameters + row * 4 * of.load.n;
    for (std::uint64_t col = 0; col < of.load.n; col += 4, ++cycle) {
      const std::uint64_t word = at + 4 * col;
      const bool crosses = word / bank != (word + 15) / bank && word / bank + 1 != 4;
      times.reads.emplace_back(word / bank + (crosses ? 100 : 0), cycle);
    }
  }
  first = std::max(first, cycle + 1);
  StageFlow stages(of.chain, of.load.m, of.load.n, lanes);
  std::uint64_t in = 0, out = 0;
  bool offered = false;
  for (cycle = begins + 1; out < there.size(); ++cycle) {
    if (stages.has_result(offered)) {
      times.writes.emplace_back(
          of.load.to.address + out / in_row * of.load.to.pitch + out % in_row * lanes, cycle);
      ++out;
    }
    const bool can = cycle >= first && in < there.size() && there[in] < cycle;
    const bool goes_in = stages.step(offered, false);
    const bool reads = can && (!offered || goes_in);
    offered = reads || (offered && !goes_in);
    in += reads ? 1 : 0;
  }
  times.completed = cycle;
  return times;
}

TEST(StagedLoadTest, MovesItsStagesCycleByCycle) {
  Random random(1);
  std::uint64_t vectors = 0, operands = 0;
  for (int i = 0; i < 2'000 && !HasFailure(); ++i) {
    StagedCase of = draw(random);
    StoreSetUp set_up;
    std::uint64_t begin = 0;
    // The second time the stages hold the chain.
    for (const bool holds_chain : {false, true}) {
      for (TileBytes& tile : of.tiles) tile.there.clear();
      const StagedTimes model = run(of, random, begin, set_up);
      const StagedTimes cycles = by_cycles(of, holds_chain);
      EXPECT_EQ(model.reads, cycles.reads) << i;
      EXPECT_EQ(model.writes, cycles.writes) << i;
      EXPECT_EQ(model.completed, cycles.completed) << i;
      vectors += model.writes.size();
      begin = model.completed;
    }
    operands += of.tiles.size() - 1;
  }
  EXPECT_GT(vectors, 10'000U);
  EXPECT_GT(operands, 200U);
}

}  // namespace
}  // namespace systole::hw
