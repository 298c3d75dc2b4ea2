#include "reproduce/vitcod/host_attention.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <random>
#include <vector>

#include "base/printable.h"
#include "model/float/float_functions.h"
#include "model/float/float_matrix.h"

namespace systole::testbench {
namespace {

/// Measured for at least so long and so often.
constexpr double kLeastSeconds = 0.4;
constexpr int kLeastRuns = 5;
constexpr unsigned kOperandSeed = 1;

/// A head's rows of keys that queries keep, one query after the other.
struct KeptRows {
  std::vector<std::size_t> begin;  ///< [queries + 1]
  std::vector<std::uint32_t> keys;
};

/// Operands of one head, and where its outputs go.
struct HostHead {
  std::vector<float> query, key, value, scores, out;
  std::vector<std::uint8_t> mask;  ///< [queries][keys]
  KeptRows rows;
};

HostHead make_head(const model::AttentionMask& mask, std::size_t layer, std::size_t head,
                   std::size_t dim, std::mt19937& random) {
  const model::AttentionShape& shape = mask.shape();
  std::normal_distribution<float> normal;
  const auto numbers = [&](std::size_t count) {
    std::vector<float> values(count);
    for (float& value : values) value = normal(random);
    return values;
  };
  HostHead made{numbers(shape.queries * dim),
                numbers(shape.keys * dim),
                numbers(shape.keys * dim),
                std::vector<float>(shape.head_cells()),
                std::vector<float>(shape.queries * dim),
                {},
                {}};
  made.rows.begin.push_back(0);
  for (std::size_t query = 0; query < shape.queries; ++query) {
    for (std::size_t key = 0; key < shape.keys; ++key) {
      const bool kept = mask.kept(layer, head, query, key);
      made.mask.push_back(kept ? 1 : 0);
      if (kept) made.rows.keys.push_back(static_cast<std::uint32_t>(key));
    }
    made.rows.begin.push_back(made.rows.keys.size());
  }
  return made;
}

/// All cells, and those that are pruned masked after the product.
void dense_attention(HostHead& head, std::size_t queries, std::size_t keys, std::size_t dim) {
  const model::PackedMatrix<float> key(head.key.data(), dim, keys, 1, dim);
  const model::PackedMatrix<float> value(head.value.data(), keys, dim, dim, 1);
  const float scale = 1.0F / std::sqrt(static_cast<float>(dim));
  key.multiply(head.query.data(), dim, queries, head.scores.data(), keys);
  for (std::size_t query = 0; query < queries; ++query) {
    if (head.rows.begin[query] == head.rows.begin[query + 1]) {
      std::fill_n(head.scores.begin() + static_cast<std::ptrdiff_t>(query * keys), keys, 0.0F);
      continue;
    }
    model::softmax_row(&head.scores[query * keys], keys, scale, &head.mask[query * keys]);
  }
  value.multiply(head.scores.data(), keys, queries, head.out.data(), dim);
}

void kept_attention(HostHead& head, std::size_t queries, std::size_t dim) {
  const float scale = 1.0F / std::sqrt(static_cast<float>(dim));
  for (std::size_t query = 0; query < queries; ++query) {
    const std::size_t begin = head.rows.begin[query], count = head.rows.begin[query + 1] - begin;
    const float* const q = &head.query[query * dim];
    float* const scores = head.scores.data();
    for (std::size_t i = 0; i < count; ++i) {
      const float* const k = &head.key[head.rows.keys[begin + i] * dim];
      float sum = 0.0F;
      for (std::size_t f = 0; f < dim; ++f) sum += q[f] * k[f];
      scores[i] = sum;
    }
    float* const out = &head.out[query * dim];
    std::fill(out, out + dim, 0.0F);
    if (count == 0) continue;
    model::softmax_row(scores, count, scale);
    for (std::size_t i = 0; i < count; ++i) {
      const float* const v = &head.value[head.rows.keys[begin + i] * dim];
      for (std::size_t f = 0; f < dim; ++f) out[f] += scores[i] * v[f];
    }
  }
}

template <typename Work>
double fastest(const Work& work) {
  using Clock = std::chrono::steady_clock;
  double least = std::numeric_limits<double>::infinity(), total = 0.0;
  for (int run = 0; run < kLeastRuns || total < kLeastSeconds; ++run) {
    const Clock::time_point begin = Clock::now();
    work();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    least = std::min(least, seconds);
    total += seconds;
  }
  return least;
}

}  // namespace

HostAttention measure_host_attention(const model::AttentionMask& mask, std::size_t dim) {
  const model::AttentionShape& shape = mask.shape();
  std::mt19937 random(kOperandSeed);
  std::vector<HostHead> heads;
  for (std::size_t i = 0; i < shape.layers * shape.heads; ++i) {
    heads.push_back(make_head(mask, i / shape.heads, i % shape.heads, dim, random));
  }
  HostAttention found;
  found.dense = fastest([&] {
    for (HostHead& head : heads) dense_attention(head, shape.queries, shape.keys, dim);
  });
  found.kept = fastest([&] {
    for (HostHead& head : heads) kept_attention(head, shape.queries, dim);
  });
  return found;
}

HostOutputs host_outputs(const model::AttentionMask& mask, std::size_t layer, std::size_t head,
                         std::size_t dim) {
  const model::AttentionShape& shape = mask.shape();
  std::mt19937 random(kOperandSeed);
  HostHead made = make_head(mask, layer, head, dim, random);
  HostOutputs outputs;
  dense_attention(made, shape.queries, shape.keys, dim);
  outputs.dense = made.out;
  kept_attention(made, shape.queries, dim);
  outputs.kept = made.out;
  return outputs;
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return hw::printable(line.substr(colon + 2));
  }
  return "unknown CPU";
}

}  // namespace systole::testbench
