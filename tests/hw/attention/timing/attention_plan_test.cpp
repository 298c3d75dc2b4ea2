#include "hw/attention/timing/attention_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "base/units.h"
#include "hw/postop/postop.h"
#include "tests/hw/attention/sparse_heads.h"
#include "tests/hw/attention/timing/naive_row_buffer.h"

namespace systole::hw {
namespace {

constexpr std::array kOperands = {AttentionOperand::kQuery, AttentionOperand::kKey,
                                  AttentionOperand::kValue};

/// Step, access, operand, head, row, free after, kept.
using Fetch = std::tuple<std::size_t, std::size_t, AttentionOperand, std::size_t, std::size_t,
                         std::uint64_t, std::size_t>;

struct Layer {
  std::vector<HeadMask> masks;
  std::vector<SparseHead> heads;
  std::size_t dim, value_dim;
  Machine machine;
  BufferedRow row = BufferedRow::kHead;

  [[nodiscard]] AttentionPlan plan() const {
    return plan_attention(heads, dim, value_dim, machine, row);
  }
  [[nodiscard]] std::size_t capacity(AttentionOperand operand) const {
    const Machine::Attention& attention = machine.attention;
    switch (operand) {
      case AttentionOperand::kQuery:
        return attention.query_kib * kKib / dim;
      case AttentionOperand::kKey:
        return attention.key_kib * kKib / dim;
      case AttentionOperand::kValue:
        break;
    }
    return attention.value_kib * kKib / value_dim;
  }
};

void set_buffers(Machine::Attention& attention, std::uint32_t kib) {
  attention.query_kib = attention.key_kib = attention.value_kib = kib;
}

/// Features are many, so that a KiB holds few rows and an accumulator few queries.
Layer random_layer(std::mt19937& random) {
  const BufferedRow row = random_size(random, 0, 2) == 0 ? BufferedRow::kToken : BufferedRow::kHead;
  std::size_t heads = random_size(random, 1, 4);
  const std::size_t most = row == BufferedRow::kToken ? 1024 / heads : 1024;
  Layer layer{{}, {}, random_size(random, 100, most), random_size(random, 100, 1024), {}, row};
  const std::size_t queries = random_size(random, 1, 16), keys = random_size(random, 1, 16);
  for (; heads > 0; --heads) {
    HeadMask mask{queries, keys, {}};
    const double density = static_cast<double>(random_size(random, 0, 10)) / 10;
    for (std::size_t i = 0; i < queries * keys; ++i) {
      mask.keep.push_back(std::bernoulli_distribution(density)(random));
    }
    std::vector<std::uint16_t> global;
    for (std::uint16_t key = 0; key < keys; ++key) {
      if (random_size(random, 0, 3) == 0) global.push_back(key);
    }
    layer.heads.push_back(split(mask, global));
    layer.masks.push_back(std::move(mask));
  }
  Machine::Attention& attention = layer.machine.attention;
  attention = engines(static_cast<std::uint32_t>(random_size(random, 2, 9)), 64);
  attention.line_rows = static_cast<std::uint32_t>(random_size(random, 1, 3));
  attention.banks = 4;
  attention.softmax_lanes = static_cast<std::uint32_t>(random_size(random, 1, 4));
  attention.query_kib = static_cast<std::uint32_t>(random_size(random, 1, 8));
  attention.key_kib = static_cast<std::uint32_t>(random_size(random, 1, 8));
  attention.value_kib = static_cast<std::uint32_t>(random_size(random, 1, 8));
  layer.machine.accumulator.kib = static_cast<std::uint32_t>(random_size(random, 5, 40));
  attention.order = random_size(random, 0, 3) == 0 ? AttentionOrder::kHead : AttentionOrder::kPhase;
  return layer;
}

struct NaivePlan {
  std::vector<Fetch> fetches;
  std::uint64_t forwarded = 0;
};

/// Walks all accesses once for each operand.
NaivePlan naive(const Layer& layer, const std::vector<AttentionStep>& steps) {
  NaivePlan plan;
  const auto heads = static_cast<std::uint32_t>(layer.heads.size());
  for (const AttentionOperand operand : kOperands) {
    const bool token = layer.row == BufferedRow::kToken && operand != AttentionOperand::kValue;
    std::vector<std::uint32_t> rows;
    std::vector<Fetch> accesses;
    std::vector<bool> sparse;
    for (std::size_t s = 0; s < steps.size(); ++s) {
      for (std::size_t a = 0; a < steps[s].phase.accesses.size(); ++a) {
        const RowAccess& access = steps[s].phase.accesses[a];
        if (access.operand != operand) continue;
        const HeadTile& part = steps[s].part;
        const std::size_t row =
            access.row + (operand == AttentionOperand::kQuery ? part.tile.first : 0);
        rows.push_back(static_cast<std::uint32_t>(row * heads + part.head));
        accesses.emplace_back(s, a, operand, part.head, row, 0, 1);
        sparse.push_back(access.sparse);
      }
    }
    const std::uint32_t bundle = token ? heads : 1;
    const std::vector<NaiveFetch> fetches =
        NaiveRowBuffer(rows, layer.capacity(operand), bundle).fetches();
    std::map<std::uint32_t, bool> brought_by_sparser;
    auto fetch = fetches.begin();
    for (std::size_t i = 0; i < rows.size(); ++i) {
      bool& by_sparser = brought_by_sparser[rows[i] / bundle];
      if (fetch != fetches.end() && std::get<0>(*fetch) == i) {
        by_sparser = sparse[i];
        std::get<5>(accesses[i]) = std::get<1>(*fetch);
        std::get<6>(accesses[i]) = std::get<2>(*fetch);
        plan.fetches.push_back(accesses[i]);
        ++fetch;
      } else if (operand == AttentionOperand::kQuery && sparse[i] && !by_sparser) {
        ++plan.forwarded;
      }
    }
  }
  std::sort(plan.fetches.begin(), plan.fetches.end());
  return plan;
}

std::vector<Fetch> fetches_of(const AttentionPlan& plan) {
  std::vector<Fetch> fetches;
  for (const AttentionFetch& fetch : plan.fetches) {
    fetches.emplace_back(fetch.step, fetch.access, fetch.operand, fetch.head, fetch.row,
                         fetch.free_after, fetch.kept);
  }
  return fetches;
}

std::map<AttentionOperand, std::size_t> counts(const AttentionPlan& plan) {
  std::map<AttentionOperand, std::size_t> counts;
  for (const AttentionFetch& fetch : plan.fetches) ++counts[fetch.operand];
  return counts;
}

/// Rows of each operand that any engine ever needs.
std::map<AttentionOperand, std::size_t> rows_needed(const Layer& layer) {
  const AttentionPlan plan = layer.plan();
  std::set<std::tuple<AttentionOperand, std::size_t, std::size_t>> rows;
  for (const AttentionStep& step : plan.steps) {
    for (const RowAccess& access : step.phase.accesses) {
      const bool query = access.operand == AttentionOperand::kQuery;
      const bool any_head =
          layer.row == BufferedRow::kToken && access.operand != AttentionOperand::kValue;
      rows.emplace(access.operand, any_head ? 0 : step.part.head,
                   access.row + (query ? step.part.tile.first : 0));
    }
  }
  std::map<AttentionOperand, std::size_t> counts;
  for (const auto& [operand, head, row] : rows) ++counts[operand];
  return counts;
}

/// One head of four queries and two keys, key 0 global, on two lines of 256 MACs: a score and a
/// product take a cycle, a window is one row. Query 2 keeps no key.
Layer small_layer() {
  const HeadMask mask{4, 2, {1, 0, 1, 1, 0, 0, 1, 1}};
  Layer layer{{mask}, {split(mask, {0})}, 256, 256, {}};
  layer.machine.attention = engines(2, 256);
  layer.machine.attention.line_rows = 1;
  layer.machine.attention.softmax_lanes = 1;
  return layer;
}

TEST(AttentionPlan, OfASmallHeadByHand) {
  const AttentionPlan plan = small_layer().plan();
  ASSERT_EQ(plan.steps.size(), 2U);
  EXPECT_FALSE(plan.steps[0].spmm);
  EXPECT_TRUE(plan.steps[1].spmm);
  // Denser: key 0 with queries 0, 1, 2, 3, of which each begins the column; sparser: key 1 with
  // queries 1 and 3. Accesses of the SDDMM: K0 Q0 | K1 Q1 | K0 Q1 | Q3 | K0 Q2 | K0 Q3.
  constexpr auto kQ = AttentionOperand::kQuery, kK = AttentionOperand::kKey,
                 kV = AttentionOperand::kValue;
  EXPECT_EQ(fetches_of(plan), (std::vector<Fetch>{{0, 0, kK, 0, 0, 0, 1},
                                                  {0, 1, kQ, 0, 0, 0, 1},
                                                  {0, 2, kK, 0, 1, 0, 1},
                                                  {0, 3, kQ, 0, 1, 0, 1},
                                                  {0, 6, kQ, 0, 3, 0, 1},
                                                  {0, 8, kQ, 0, 2, 0, 1},
                                                  {1, 0, kV, 0, 0, 0, 1},
                                                  {1, 1, kV, 0, 1, 0, 1}}));
  EXPECT_EQ(plan.forwarded, 0U);  // the sparser engine runs ahead
  // Queries 0, 1 and 3 are needed in this order, of 1, 2 and 2 kept cells.
  const std::uint64_t latency = stage_info(StageOp::kSoftmax).latency;
  EXPECT_TRUE(plan.steps[0].codes_ready.empty());
  EXPECT_EQ(plan.steps[1].codes_ready,
            (std::vector<std::uint64_t>{latency + 1, latency + 3, latency + 5}));
}

TEST(AttentionPlan, ForwardsARowThatTheDenserEngineBrought) {
  // Queries 0 and 1, key 0 global, key 1 kept by both: the denser engine is ahead with each
  // query, being the first line.
  const HeadMask mask{2, 2, {1, 1, 1, 1}};
  Layer layer = small_layer();
  layer.heads = {split(mask, {0})};
  EXPECT_EQ(layer.plan().forwarded, 2U);
  layer.heads = {split(mask, {})};
  EXPECT_EQ(layer.plan().forwarded, 0U);
}

TEST(AttentionPlan, ScoresABatchBeforeItsProducts) {
  std::mt19937 random(1);
  std::size_t steps = 0, batches = 0;
  for (int round = 0; round < 200; ++round) {
    const Layer layer = random_layer(random);
    const AttentionPlan plan = layer.plan();
    auto step = plan.steps.begin();
    for (const auto& batch : plan_batches(layer.heads, layer.value_dim, layer.machine)) {
      ++batches;
      for (const bool spmm : {false, true}) {
        for (const HeadTile& expected : batch) {
          ASSERT_NE(step, plan.steps.end());
          const QueryTile tile = expected.tile;
          EXPECT_EQ(step->part.head, expected.head);
          EXPECT_EQ(step->part.tile.first, tile.first);
          EXPECT_EQ(step->part.tile.count, tile.count);
          EXPECT_EQ(step->part.score_bytes, expected.score_bytes);
          EXPECT_EQ(step->part.sum_bytes, expected.sum_bytes);
          EXPECT_EQ(step->spmm, spmm);
          const SparseHead part = query_tile(layer.heads[expected.head], tile.first, tile.count);
          const AttentionPhase phase =
              spmm ? schedule_spmm(part, layer.dim, layer.value_dim, layer.machine.attention)
                   : schedule_sddmm(part, layer.dim, layer.machine.attention);
          EXPECT_EQ(step->phase.cycles, phase.cycles);
          EXPECT_EQ(step->phase.busy, phase.busy);
          EXPECT_EQ(step->phase.accesses.size(), phase.accesses.size());
          ++step;
          ++steps;
        }
      }
    }
    EXPECT_EQ(step, plan.steps.end());
  }
  EXPECT_GT(steps, 1400U);
  EXPECT_LT(4 * batches, steps + 2 * batches) << "no batch of several tiles";
}

TEST(AttentionPlan, EqualsANaiveWalk) {
  std::mt19937 random(2);
  std::uint64_t forwarded = 0, replaced = 0;
  for (int round = 0; round < 300; ++round) {
    const Layer layer = random_layer(random);
    const AttentionPlan plan = layer.plan();
    const NaivePlan expected = naive(layer, plan.steps);
    ASSERT_EQ(fetches_of(plan), expected.fetches) << round;
    ASSERT_EQ(plan.forwarded, expected.forwarded) << round;
    forwarded += plan.forwarded;
    for (const AttentionFetch& fetch : plan.fetches) replaced += fetch.free_after > 0 ? 1 : 0;
  }
  EXPECT_GT(forwarded, 1000U);
  EXPECT_GT(replaced, 1000U);
}

TEST(AttentionPlan, FetchesInTheOrderOfNeedAndNeverWaitsForWhatComesLater) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const AttentionPlan plan = random_layer(random).plan();
    std::map<AttentionOperand, std::vector<std::pair<std::size_t, std::size_t>>> accesses;
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      for (std::size_t a = 0; a < plan.steps[s].phase.accesses.size(); ++a) {
        accesses[plan.steps[s].phase.accesses[a].operand].emplace_back(s, a);
      }
    }
    std::pair<std::size_t, std::size_t> last{0, 0};
    for (const AttentionFetch& fetch : plan.fetches) {
      const std::pair now{fetch.step, fetch.access};
      EXPECT_TRUE(&fetch == plan.fetches.data() || last < now);
      last = now;
      const auto& own = accesses[fetch.operand];
      const auto place = std::find(own.begin(), own.end(), now);
      ASSERT_NE(place, own.end());
      EXPECT_LE(fetch.free_after, static_cast<std::uint64_t>(place - own.begin()));
    }
  }
}

TEST(AttentionPlan, MoreRoomNeverMeansMoreFetchesAndEnoughOneForEachRow) {
  std::mt19937 random(4);
  std::size_t again = 0;
  for (int round = 0; round < 100; ++round) {
    Layer layer = random_layer(random);
    std::map<AttentionOperand, std::size_t> with_less;
    const auto needed = rows_needed(layer);
    for (const std::uint32_t kib : {1U, 2U, 3U, 5U, 9U, 200U}) {
      set_buffers(layer.machine.attention, kib);
      const AttentionPlan plan = layer.plan();
      for (const auto& [operand, count] : counts(plan)) {
        EXPECT_TRUE(kib == 1 || count <= with_less[operand]);
        EXPECT_GE(count, needed.at(operand));
        again += count - needed.at(operand);
      }
      with_less = counts(plan);
      if (kib < 200) continue;
      EXPECT_EQ(with_less, needed);
      for (const AttentionFetch& fetch : plan.fetches) EXPECT_EQ(fetch.free_after, 0U);
    }
  }
  EXPECT_GT(again, 1000U);
}

TEST(AttentionPlan, TheSoftmaxTakesTheRowsInTheOrderOfTheirNeed) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    const Layer layer = random_layer(random);
    const std::uint64_t lanes = layer.machine.attention.softmax_lanes;
    for (const AttentionStep& step : layer.plan().steps) {
      if (!step.spmm) {
        EXPECT_TRUE(step.codes_ready.empty());
        continue;
      }
      ASSERT_EQ(step.codes_ready.size(), step.phase.codes.size());
      std::uint64_t ready = stage_info(StageOp::kSoftmax).latency;
      for (std::size_t i = 0; i < step.codes_ready.size(); ++i) {
        const HeadMask& mask = layer.masks[step.part.head];
        const std::size_t query = step.part.tile.first + step.phase.codes[i].query;
        std::uint64_t kept = 0;
        for (std::size_t key = 0; key < mask.keys; ++key) kept += mask.kept(query, key) ? 1 : 0;
        EXPECT_GT(kept, 0U);
        ready += (kept + lanes - 1) / lanes;
        EXPECT_EQ(step.codes_ready[i], ready);
      }
    }
  }
}

TEST(AttentionPlan, OfNoHeadsOrOfEmptyOnesFetchesNothing) {
  Layer layer = small_layer();
  layer.heads = {split({4, 2, std::vector<std::uint8_t>(8, 0)}, {})};
  EXPECT_EQ(layer.plan().steps.size(), 2U);
  EXPECT_TRUE(layer.plan().fetches.empty());
  layer.heads.clear();
  EXPECT_TRUE(layer.plan().steps.empty());
}

TEST(AttentionPlan, ATokenThatIsDecodedServesAllHeads) {
  Layer layer = small_layer();
  layer.heads.push_back(layer.heads[0]);
  layer.machine.accumulator.kib = 64;
  ASSERT_EQ(counts(layer.plan()), (std::map<AttentionOperand, std::size_t>{
                                      {kOperands[0], 8}, {kOperands[1], 4}, {kOperands[2], 4}}));
  layer.row = BufferedRow::kToken;
  EXPECT_EQ(counts(layer.plan()), (std::map<AttentionOperand, std::size_t>{
                                      {kOperands[0], 4}, {kOperands[1], 2}, {kOperands[2], 4}}));
}

}  // namespace
}  // namespace systole::hw
