/// Masked attention on random machines: the same bytes as a dense product, whatever the columns,
/// the split, the order of columns and heads, the tiles and the buffers.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "base/units.h"
#include "hw/attention/attention_tiles.h"
#include "hw/attention/mask_codec.h"
#include "hw/attention/timing/mask_stream.h"
#include "hw/description/machine_text.h"
#include "hw/function/softmax.h"
#include "hw/postop/stage_constants.h"
#include "support/network/attention_run.h"
#include "support/random/random_engines.h"
#include "support/tlm/systemc_test.h"
#include "tests/hw/attention/sparse_heads.h"

namespace systole::testbench {
namespace {

using test::between;
using test::Random;

struct Setting {
  hw::Machine machine;
  AttentionShape shape;
  std::vector<std::vector<hw::HeadMask>> masks;  ///< [layers][heads]
  test::Layers layers;                           ///< the same, split
};

/// Any keys global, both engines' columns in any order.
hw::SparseHead random_split(const hw::HeadMask& mask, std::mt19937& random) {
  std::vector<std::uint16_t> keys;
  for (std::size_t key = 0; key < mask.keys; ++key) keys.push_back(static_cast<std::uint16_t>(key));
  std::shuffle(keys.begin(), keys.end(), random);
  const std::size_t limits[] = {0, mask.keys / 8, mask.keys};
  const auto global = static_cast<std::ptrdiff_t>(hw::random_size(random, 0, limits[random() % 3]));
  return hw::split_in_order(mask, {keys.begin(), keys.begin() + global},
                            {keys.begin() + global, keys.end()});
}

Setting random_setting(std::uint64_t seed) {
  Random random(seed);
  std::mt19937 masks(static_cast<std::uint32_t>(seed));
  Setting setting{test::random_engines(random), {}, {}, {}};
  // One query's scores and outputs fit the smallest accumulator: at most 40 + 200 words of 4 bytes.
  // Masks that exceed the smallest index buffer have more keys, so they need more of it.
  std::size_t most_tokens = 40;
  if (seed % 4 == 1) {
    hw::Machine larger = setting.machine;
    larger.accumulator.kib = std::max(larger.accumulator.kib, 4U);
    larger.attention.index_kib = 1;
    if (hw::machine_problems(larger).empty()) {
      setting.machine = larger;
      most_tokens = 160;
    }
  }
  const std::size_t dim = random() % 2 == 0 ? between(random, 1, 40) : between(random, 41, 200);
  const hw::HeadMask first = hw::random_mask(masks, most_tokens);
  setting.shape = {1 + random() % 3, first.queries, first.keys, dim, 0};
  if (random() % 2 == 0) setting.shape.v_dim = between(random, 1, 200);
  // All heads of a token fit the smallest buffer: 3 x 200 bytes.
  if (random() % 2 == 0) setting.shape.latent_heads = 1 + random() % setting.shape.heads;
  setting.masks.resize(1 + random() % 2);
  setting.layers.resize(setting.masks.size());
  for (std::size_t layer = 0; layer < setting.masks.size(); ++layer) {
    while (setting.masks[layer].size() < setting.shape.heads) {
      hw::HeadMask mask = first;
      for (std::uint8_t& keep : mask.keep)
        keep = random() % 4 == 0 ? static_cast<std::uint8_t>(keep ^ 1U) : keep;
      setting.masks[layer].push_back(std::move(mask));
    }
    std::shuffle(setting.masks[layer].begin(), setting.masks[layer].end(), masks);
    for (const hw::HeadMask& mask : setting.masks[layer]) {
      setting.layers[layer].push_back(random_split(mask, masks));
    }
  }
  return setting;
}

const std::vector<std::uint8_t>& bytes_at(const AttentionWorkload& workload,
                                          std::uint64_t address) {
  const auto piece = std::find_if(workload.operands.begin(), workload.operands.end(),
                                  [&](const auto& p) { return p.address == address; });
  return piece->bytes;
}

/// One row of a head's outputs: softmax over the kept keys, weighted mean of V, a loop each.
std::vector<std::int8_t> naive_row(const Setting& setting, const AttentionWorkload& workload,
                                   std::size_t layer, std::size_t head, std::size_t query) {
  const AttentionShape& shape = setting.shape;
  const hw::HeadMask& mask = setting.masks[layer][head];
  const auto element = [&](std::uint64_t address, std::size_t row, std::size_t feature) {
    const std::size_t dim =
        address == workload.addresses[layer].value ? shape.value_dim() : shape.dim;
    const std::size_t at = (row * shape.heads + head) * dim + feature;
    return std::int64_t{static_cast<std::int8_t>(bytes_at(workload, address)[at])};
  };
  // Element of Q or K, out of its latent heads if it has some.
  const auto decoded = [&](std::uint64_t address, std::size_t mix_index, std::size_t row,
                           std::size_t feature) {
    if (shape.latent_heads == 0) return element(address, row, feature);
    const hw::HeadMix& mix = workload.program.mixes[mix_index];
    std::int64_t sum = mix.bias[head];
    for (std::size_t latent = 0; latent < shape.latent_heads; ++latent) {
      const std::size_t at = (row * shape.latent_heads + latent) * shape.dim + feature;
      sum += mix.weights[head * shape.latent_heads + latent] *
             static_cast<std::int8_t>(bytes_at(workload, address)[at]);
    }
    return hw::requantise(sum, mix.factors[head], mix.rounding, hw::symmetric_range(8));
  };
  const AttentionWorkload::Addresses& at = workload.addresses[layer];
  std::vector<std::int32_t> scores;
  for (std::size_t key = 0; key < shape.keys; ++key) {
    std::int64_t sum = 0;
    for (std::size_t f = 0; f < shape.dim; ++f) {
      sum += decoded(at.query, 2 * layer, query, f) * decoded(at.key, 2 * layer + 1, key, f);
    }
    scores.push_back(static_cast<std::int32_t>(sum));
  }
  std::vector<std::uint8_t> codes(shape.keys);
  const std::int64_t divisor = hw::softmax_row(
      scores.data(), mask.keep.data() + query * shape.keys, shape.keys,
      hw::softmax_constants(workload.program.chains[0].stages.front()), codes.data());
  std::vector<std::int8_t> outputs;
  for (std::size_t f = 0; f < shape.value_dim(); ++f) {
    std::int64_t sum = 0;
    for (std::size_t key = 0; key < shape.keys; ++key) {
      sum += codes[key] * element(at.value, key, f);
    }
    // The nearest integer of the mean, which the datapath forms in two steps: within one of it.
    outputs.push_back(static_cast<std::int8_t>(
        divisor == 0 ? 0 : (2 * sum + (sum >= 0 ? divisor : -divisor)) / (2 * divisor)));
  }
  return outputs;
}

/// The reference against loops over the mask as it was before it was split.
void expect_reference_follows_the_mask(const Setting& setting, const AttentionWorkload& workload) {
  for (std::size_t layer = 0; layer < setting.masks.size(); ++layer) {
    const std::vector<std::uint8_t> reference = masked_reference(workload, layer);
    const std::size_t width = setting.shape.heads * setting.shape.value_dim();
    ASSERT_EQ(reference.size(), setting.shape.queries * width);
    for (std::size_t head = 0; head < setting.shape.heads; ++head) {
      for (std::size_t query = 0; query < setting.shape.queries; ++query) {
        const std::vector<std::int8_t> row = naive_row(setting, workload, layer, head, query);
        for (std::size_t f = 0; f < row.size(); ++f) {
          const auto found =
              static_cast<std::int8_t>(reference[query * width + head * row.size() + f]);
          ASSERT_NEAR(found, row[f], 1)
              << "layer " << layer << ", head " << head << ", query " << query << ", feature " << f;
        }
      }
    }
  }
}

/// Bytes of masks that a layer reads: each once if they reside, once for each phase if they stream.
std::uint64_t expected_index_bytes(const std::vector<hw::SparseHead>& heads, std::size_t value_dim,
                                   const hw::Machine& machine) {
  const bool stream = hw::masks_stream(heads, machine.attention);
  std::uint64_t bytes = 0;
  for (const hw::SparseHead& head : heads) {
    const std::size_t tiles =
        hw::query_tiles(head, value_dim, machine.accumulator.kib * hw::kKib).size();
    bytes += hw::mask_bytes(head) * (stream ? 2 * tiles : 1);
  }
  return bytes;
}

void expect_attention_conserved(const AttentionResult& result, const hw::Machine& machine) {
  const std::vector<hw::BlockReport> accounts = hw::accounts_of(result.blocks);
  EXPECT_TRUE(std::any_of(accounts.begin(), accounts.end(),
                          [](const hw::BlockReport& block) { return block.name == "attention"; }));
  for (const hw::BlockReport& block : accounts) {
    EXPECT_EQ(block.time->busy + block.time->stalled_total() + block.time->idle, block.time->total)
        << block.name;
    if (block.name == "attention" || block.name == "array") {
      EXPECT_EQ(block.time->total, result.cycles) << block.name;
    }
  }
  for (const auto& head : result.heads) {
    const std::uint64_t waiting = head.memory + head.codes + head.output + head.decode;
    EXPECT_LE(waiting + head.conflict, head.total());
    const std::uint64_t lines = machine.attention.lines;
    EXPECT_LE(head.lines_busy + head.lines_conflict + lines * waiting, lines * head.total());
  }
}

bool same_heads(const AttentionResult& a, const AttentionResult& b) {
  const auto figures = [](const AttentionResult& result) {
    std::vector<std::vector<std::uint64_t>> all;
    for (const auto& h : result.heads) {
      all.push_back({h.op, h.head, h.sddmm, h.spmm, h.softmax, h.memory, h.conflict, h.codes,
                     h.output, h.decode, h.decoding, h.link, h.lines_busy, h.lines_conflict});
    }
    return all;
  };
  return figures(a) == figures(b);
}

class AttentionProperties : public test::SystemCTest {};

TEST_F(AttentionProperties, TheSameBytesInEverySetting) {
  constexpr std::uint64_t kSettings = 300;
  std::uint64_t bytes = 0, refetched = 0, tiled = 0, held_up = 0;
  std::uint64_t held_up_by_decoding = 0, streamed = 0;
  for (std::uint64_t seed = 0; seed < kSettings && !HasFailure(); ++seed) {
    const Setting setting = random_setting(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + "\n" + hw::to_toml(setting.machine));
    const AttentionWorkload workload =
        make_attention_workload(setting.shape, setting.layers, setting.machine, true);
    const AttentionResult result = test::run_attention(workload, setting.machine, true);
    EXPECT_EQ(result.check.mismatches, 0U) << result.check.first;
    EXPECT_EQ(result.check.bytes, setting.layers.size() * setting.shape.heads *
                                      setting.shape.queries * setting.shape.value_dim());
    EXPECT_EQ(result.traffic.written, result.check.bytes);
    bytes += result.check.bytes;
    expect_attention_conserved(result, setting.machine);
    std::uint64_t index_bytes = 0;
    for (const auto& heads : setting.layers) {
      index_bytes += expected_index_bytes(heads, setting.shape.value_dim(), setting.machine);
      streamed += hw::masks_stream(heads, setting.machine.attention) ? 1 : 0;
    }
    EXPECT_EQ(result.traffic.index, index_bytes);
    if (seed % 4 == 0) expect_reference_follows_the_mask(setting, workload);
    if (seed % 8 == 0) {
      const AttentionResult timing =
          test::time_attention(setting.shape, setting.layers, setting.machine);
      EXPECT_EQ(timing.cycles, result.cycles);
      EXPECT_TRUE(same_heads(timing, result));
      EXPECT_EQ(timing.traffic.qkv(), result.traffic.qkv());
      EXPECT_EQ(timing.traffic.index, result.traffic.index);
    }
    // What the settings are meant to reach.
    const std::uint64_t once = setting.layers.size() * setting.shape.heads *
                               (setting.shape.dim * (setting.shape.queries + setting.shape.keys) +
                                setting.shape.value_dim() * setting.shape.keys);
    if (result.traffic.qkv() > once) ++refetched;
    for (const auto& head : result.heads) {
      held_up += head.output + head.codes > 0 ? 1 : 0;
      held_up_by_decoding += head.decode > 0 ? 1 : 0;
      // Rows are decoded where there are latent heads, and only there.
      EXPECT_TRUE(setting.shape.latent_heads != 0 || head.decode + head.decoding == 0);
    }
    const std::uint64_t tile_words = setting.machine.accumulator.kib * std::uint64_t{256};
    if (setting.shape.queries * setting.shape.value_dim() > tile_words) ++tiled;
  }
  EXPECT_GT(bytes, 1'000'000U);
  EXPECT_GT(refetched, kSettings / 20);
  EXPECT_GT(tiled, kSettings / 20);
  EXPECT_GT(held_up, kSettings / 20);
  EXPECT_GT(held_up_by_decoding, kSettings / 20);
  EXPECT_GT(streamed, kSettings / 20);
  RecordProperty("simulations", std::to_string(kSettings + kSettings / 8));
}

TEST_F(AttentionProperties, TheCheckNoticesAPrunedCellThatTheMaskKeeps) {
  const hw::Machine machine = hw::find_machine("vitcod");
  const model::AttentionMask mask = test::synthetic_mask({1, 2, 30, 30}, 1);
  AttentionWorkload workload = make_attention_workload(
      test::shape_of(mask, 16), test::split_by_cycles(mask, 16, machine), machine, true);
  ASSERT_EQ(test::run_attention(workload, machine, true).check.mismatches, 0U);
  hw::SparseHead& head = workload.layers[0][1];
  ASSERT_GT(head.dense_keep.size(), 5U);
  head.dense_keep[5] = !head.dense_keep[5];
  const CheckResult check = test::run_attention(workload, machine, true).check;
  EXPECT_GT(check.mismatches, 0U);
  EXPECT_LE(check.mismatches, 16U) << "only one query of one head";
  EXPECT_NE(check.first.find("layer 0, query 5"), std::string::npos) << check.first;
}

TEST_F(AttentionProperties, EveryDecoderIsThatOfItsLayerAndOperand) {
  const hw::Machine machine = hw::find_machine("vitcod");
  const model::AttentionMask mask = test::synthetic_mask({2, 3, 30, 30}, 3);
  AttentionShape shape = test::shape_of(mask, 16);
  shape.latent_heads = 2;
  const AttentionWorkload workload =
      make_attention_workload(shape, test::split_by_cycles(mask, 16, machine), machine, true);
  ASSERT_EQ(workload.program.mixes.size(), 4U);
  ASSERT_EQ(test::run_attention(workload, machine, true).check.mismatches, 0U);
  for (std::size_t mix = 0; mix < 4; ++mix) {
    // The reference has the machine's decoders: only the outputs can tell.
    AttentionWorkload other = workload;
    other.program.mixes[mix].weights[3] =
        static_cast<std::int8_t>(~other.program.mixes[mix].weights[3]);
    EXPECT_EQ(test::run_attention(other, machine, true).check.mismatches, 0U);
    EXPECT_NE(masked_reference(other, mix / 2), masked_reference(workload, mix / 2)) << mix;
    EXPECT_EQ(masked_reference(other, 1 - mix / 2), masked_reference(workload, 1 - mix / 2)) << mix;
  }
}

TEST_F(AttentionProperties, TheCheckNoticesAFlippedBitInAnyOperand) {
  const hw::Machine machine = hw::find_machine("vitcod");
  const model::AttentionMask mask = test::synthetic_mask({1, 2, 30, 30}, 2);
  AttentionWorkload workload = make_attention_workload(
      test::shape_of(mask, 16), test::split_by_cycles(mask, 16, machine), machine, true);
  // The machine reads what lies a row further on; the reference stays.
  for (std::uint64_t AttentionWorkload::Addresses::*operand :
       {&AttentionWorkload::Addresses::query, &AttentionWorkload::Addresses::key,
        &AttentionWorkload::Addresses::value}) {
    AttentionWorkload moved = workload;
    std::uint64_t& address = moved.addresses[0].*operand;
    auto piece = std::find_if(moved.operands.begin(), moved.operands.end(),
                              [&](const auto& p) { return p.address == address; });
    hw::MemoryPiece copy = *piece;
    copy.address = address = std::uint64_t{512} << 20U;  // the reference's copy
    for (std::uint8_t& byte : piece->bytes.edit()) byte ^= 0x10;
    moved.operands.push_back(std::move(copy));
    EXPECT_GT(test::run_attention(moved, machine, true).check.mismatches, 100U);
  }
}

}  // namespace
}  // namespace systole::testbench
