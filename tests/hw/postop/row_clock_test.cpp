#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "hw/array/accumulator.h"
#include "hw/postop/result_cycles.h"
#include "tests/hw/dma/store_case.h"
#include "tests/hw/postop/random_chain.h"

namespace systole::hw {
namespace {

constexpr std::uint64_t kStarted = 5;

/// A move through a chain, and the cycles in which the scratchpad does not take its results.
struct Case {
  Chain chain;
  std::uint64_t lanes = 4, word = 4, m = 1, n = 1;
  std::set<std::uint64_t> refused;
  std::uint64_t latency = 30, latencies = 1;  ///< of requests for a tensor operand
};

struct Times {
  std::uint64_t completed = 0;
  std::vector<std::uint64_t> there;  ///< operands, by row
};

/// The contract of the gates.
Times gates(const Case& of) {
  StoreCommand move;
  move.started = move.dispatched = move.readable = kStarted;
  move.move = true;
  move.m = of.m;
  move.n = of.n;
  move.to_pitch = 4096;
  move.tensors[0] = {0, 4096};
  StoreSurroundings around = test::nothing_around();
  around.write = [&](std::uint64_t cycle, std::uint64_t, std::uint64_t) {
    return of.refused.count(cycle) == 0;
  };
  std::uint64_t done = 0;
  around.operands.done = [&](const ReadRequest& request) {
    done = std::max(done + 1, request.issued + of.latency + request.address / 64 % of.latencies);
    return done;
  };
  const StoreSchedule schedule =
      store_times({of.chain}, {move}, test::store_params(of.lanes, of.word), around);
  Times times{schedule.times[0].completed, std::vector<std::uint64_t>(of.m, 0)};
  for (const ReadRequest& request : schedule.operands) {
    std::uint64_t& there = times.there[request.address / 4096];
    there = std::max(there, request.done);
  }
  return times;
}

/// The same by RowClock.
std::uint64_t model(const Case& of, const std::vector<std::uint64_t>& there) {
  const auto lanes = static_cast<std::uint32_t>(of.lanes);
  const ResultCycles cycles = result_cycles(chain_cycles(of.chain, of.m, of.n, lanes), of.chain,
                                            of.m, of.n, lanes, of.word, kAccumulatorReadCycles);
  const StoreSetUp::Command command = set_up_command(of.chain, of.n, of.lanes, of.word, 0, 0, 0);
  const std::uint64_t set_up =
      1 + std::max(command.stages * kMicrocodeWords, command.parameter_words);
  RowClock rows(cycles, kStarted, set_up);
  const std::uint64_t words = ceil_div(of.n, of.lanes) + cycles.pieces;
  for (std::uint64_t row = 0; row < of.m; ++row) {
    if (tensor_operands(of.chain) != 0) {
      rows.next(there[row], false);
    } else {
      rows.next();
    }
    std::uint64_t at = rows.done() - words;
    for (std::uint64_t left = words; left != 0; ++at) {
      if (of.refused.count(at) == 0) --left;
    }
    rows.hold(at - rows.done());
  }
  return rows.done();
}

Case random_case(test::Random& random, bool has_operand, StageOp last) {
  Case of;
  of.lanes = 4U << random() % 3;
  of.word = std::min<std::uint64_t>(of.lanes, 4U << random() % 3);
  of.m = 1 + random() % 30;
  of.n = 1 + random() % 60;
  of.chain.out = static_cast<DType>(random() % kDTypes);
  for (std::size_t i = random() % 3; i > 0; --i) of.chain.stages.emplace_back();
  if (has_operand) {
    Stage add;
    add.operand = Operand::kTensor;
    add.tensor = random() % 2 == 0 ? DType::kS8 : DType::kS16;
    of.chain.stages.push_back(add);
  }
  if (last == StageOp::kDivideRowSum) {
    const std::size_t at = random() % (of.chain.stages.size() + 1);
    of.chain.stages.insert(of.chain.stages.begin() + static_cast<std::ptrdiff_t>(at),
                           test::random_stage(random, last));
  } else if (last != StageOp::kAdd) {
    of.chain.stages.push_back(test::random_stage(random, last));
  }
  of.latency = 10 + random() % 100;
  of.latencies = 1 + random() % 30;
  return of;
}

/// Of moves whose results leave in as many pieces a vector.
struct Off {
  std::uint64_t cycles = 0, off = 0, worst = 0;
};

void count(const Case& of, std::map<std::uint64_t, Off>& offs) {
  const Times times = gates(of);
  const std::uint64_t said = model(of, times.there);
  const std::uint64_t pieces = ceil_div(of.lanes * bytes_of(of.chain.out), of.word);
  Off& all = offs[std::min<std::uint64_t>(pieces, 4)];
  const std::uint64_t off = std::max(said, times.completed) - std::min(said, times.completed);
  all.cycles += times.completed - kStarted;
  all.off += off;
  all.worst = std::max(all.worst, off);
}

std::map<std::uint64_t, Off> count_cases(StageOp last, bool has_operand, bool refuses) {
  test::Random random(7);
  std::map<std::uint64_t, Off> offs;
  for (int i = 0; i < 900; ++i) {
    Case of = random_case(random, has_operand, last);
    for (int k = 0; refuses && k < 4; ++k) {
      const std::uint64_t from = random() % 800, until = from + 1 + random() % 40;
      for (std::uint64_t cycle = from; cycle < until; ++cycle) of.refused.insert(cycle);
    }
    count(of, offs);
  }
  return offs;
}

constexpr StageOp kPlain = StageOp::kAdd;

// A row that waits at the end of the stages holds what is in them, and no more.
TEST(RowClock, IsThatOfTheGatesWithoutOperandsAndSerialUnits) {
  for (const StageOp last : {kPlain, StageOp::kSoftmax, StageOp::kLayerNorm}) {
    for (const bool refuses : {false, true}) {
      for (const auto& [pieces, off] : count_cases(last, false, refuses)) {
        EXPECT_EQ(off.worst, 0U) << stage_info(last).name << ", pieces " << pieces;
      }
    }
  }
}

// The same of serial units where nothing waits for the scratchpad. With more pieces a vector that
// has been divided may wait for those before it, and hold the rows behind it for less.
TEST(RowClock, IsThatOfTheGatesWithSerialUnits) {
  for (const StageOp last : {StageOp::kDivideRowSum, StageOp::kLayerNormApply}) {
    for (const auto& [pieces, off] : count_cases(last, false, false)) {
      EXPECT_LE(off.worst, pieces == 1  ? 0U
                           : pieces < 4 ? 2U
                                        : 5U)
          << stage_info(last).name << ", pieces " << pieces;
    }
  }
}

// Where vectors of a row wait for each other inside the stages, rows say it less than exactly.
TEST(RowClock, IsCloseToTheGatesInAllCases) {
  for (const StageOp last : {kPlain, StageOp::kDivideRowSum, StageOp::kSoftmax, StageOp::kLayerNorm,
                             StageOp::kLayerNormApply}) {
    for (const bool has_operand : {false, true}) {
      for (const bool refuses : {false, true}) {
        for (const auto& [pieces, off] : count_cases(last, has_operand, refuses)) {
          const double share = static_cast<double>(off.off) / static_cast<double>(off.cycles);
          const bool is_plain = pieces == 1 && !refuses;
          EXPECT_LE(share, is_plain ? 0.001 : 0.012)
              << stage_info(last).name << ", operand " << has_operand << ", pieces " << pieces;
          EXPECT_LE(off.worst, 80U);
        }
      }
    }
  }
}

}  // namespace
}  // namespace systole::hw
