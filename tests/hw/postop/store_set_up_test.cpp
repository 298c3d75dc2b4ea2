#include "hw/postop/store_set_up.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "hw/array/accumulator.h"
#include "hw/dma/store_schedule.h"
#include "tests/hw/dma/store_case.h"
#include "tests/hw/postop/random_chain.h"

namespace systole::hw {
namespace {

std::uint64_t all_left(std::uint64_t word, std::uint64_t from, std::uint64_t to) {
  return word + to - from;
}

Chain random_chain_of(test::Random& random) {
  Chain chain;
  for (std::size_t i = random() % 4; i > 0; --i) {
    Stage stage;
    stage.op = random() % 2 == 0 ? StageOp::kAdd : StageOp::kRequantise;
    stage.operand = random() % 2 == 0 ? Operand::kImmediate : Operand::kChannel;
    chain.stages.push_back(stage);
  }
  return chain;
}

// Sums of a chain without a stage that knows rows are read in as many cycles as there are vectors.
TEST(StoreSetUp, IsTheContractOfTheGates) {
  constexpr std::uint64_t kLanes = 4;
  test::Random random(11);
  const StoreParams params = test::store_params(kLanes, kLanes);
  std::size_t waited_for_code = 0, waited_for_parameters = 0;
  for (int draw = 0; draw < 400; ++draw) {
    std::vector<Chain> chains;
    for (int i = 0; i < 3; ++i) chains.push_back(random_chain_of(random));
    std::vector<StoreCommand> moves(6);
    std::uint64_t cycle = 0;
    for (StoreCommand& move : moves) {
      move.move = true;
      move.m = 1 + random() % 12;
      move.n = 1 + random() % 12;
      move.chain = random() % chains.size();
      move.dispatched = move.readable = cycle;
      move.started = cycle + random() % 3 * (random() % 60);
      // The load of its parameters may be the last thing that it waits for.
      if (random() % 2 == 0) move.readable += random() % (move.started - cycle + 1);
      cycle += random() % 80;
    }
    const StoreSchedule gates = store_times(chains, moves, params, test::nothing_around());
    StoreSetUp set_up;
    std::uint64_t free = 0;
    for (std::size_t i = 0; i < moves.size(); ++i) {
      const StoreCommand& move = moves[i];
      const Chain& chain = chains[move.chain];
      const std::uint64_t vectors = (move.n + kLanes - 1) / kLanes;
      StoreSetUp::Command command = set_up_command(chain, move.n, kLanes, kLanes, move.dispatched,
                                                   std::max(move.started, free), move.readable);
      command.chain = move.chain;
      // What it says does not depend on when it is asked.
      for (std::uint64_t until = 0; random() % 3 != 0 && until <= command.started;
           until += random() % 30) {
        set_up.read_ahead(command, until, all_left);
      }
      const std::uint64_t late = set_up.late_words(command, all_left);
      // Those of the next command come when these are there.
      set_up.read_ahead(command, command.started + 1, all_left);
      const std::uint64_t first = set_up.begin(command, command.started + 1 + late);
      EXPECT_EQ(gates.times[i].released, first + move.m * vectors) << draw << ' ' << i;
      if (late != 0) ++waited_for_parameters;
      if (first > command.started + 1 + late) ++waited_for_code;
      free = gates.times[i].free;
      set_up.end(free);
    }
  }
  EXPECT_GT(waited_for_parameters, 200U);
  EXPECT_GT(waited_for_code, 200U);
}

// What a unit takes is the set-up, or the serial units that work during it, and the cycles of the
// chain after it. With a set-up that is longer than the units take, they are some rows ahead.
TEST(StoreSetUp, OverlapsWithTheSerialUnitsOfTheFirstRow) {
  constexpr std::uint64_t kLanes = 4;
  test::Random random(12);
  const StoreParams params = test::store_params(kLanes, kLanes);
  int ahead = 0;
  for (int draw = 0; draw < 400; ++draw) {
    constexpr std::array<StageOp, 5> kOps = {StageOp::kRequantise, StageOp::kSoftmax,
                                             StageOp::kLayerNorm, StageOp::kDivideRowSum,
                                             StageOp::kLayerNormApply};
    Chain chain;
    chain.stages.push_back(default_stage(kOps[random() % kOps.size()]));
    StoreCommand move;
    move.move = true;
    move.dispatched = random() % 30;
    move.started = move.dispatched + random() % 100;
    move.readable = move.dispatched + random() % (move.started - move.dispatched + 1);
    move.m = 1 + random() % 12;
    move.n = 1 + random() % 100;
    const StoreTimes gates = store_times({chain}, {move}, params, test::nothing_around()).times[0];
    StoreSetUp set_up;
    const StoreSetUp::Command command =
        set_up_command(chain, move.n, kLanes, kLanes, move.dispatched, move.started, move.readable);
    const std::uint64_t late = set_up.late_words(command, all_left);
    const std::uint64_t first = set_up.begin(command, move.started + 1 + late);
    const ChainCycles cycles = chain_cycles(chain, move.m, move.n, kLanes);
    const std::uint64_t begin = std::max(first, move.started + cycles.lead) - cycles.lead;
    const std::uint64_t expected = begin + cycles.total(move.m) + kAccumulatorReadCycles;
    if (cycles.lead != 0 && first > move.started + cycles.lead) {
      EXPECT_LE(gates.free, expected) << draw;
      EXPECT_GE(gates.free + 2 * cycles.per_row, expected) << draw;
      ++ahead;
    } else {
      EXPECT_EQ(gates.free, expected) << draw;
    }
  }
  EXPECT_LT(ahead, 80);
}

}  // namespace
}  // namespace systole::hw
