#include "model/build/llama_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <vector>

#include "base/error.h"
#include "hw/function/layernorm.h"
#include "hw/function/softmax.h"
#include "hw/number/dyadic.h"
#include "model/graph/describe_model.h"
#include "model/graph/graph_builder.h"
#include "model/graph/reference.h"
#include "model/seeded/seeded_llama.h"
#include "model/seeded/shapes.h"

namespace systole::model {
namespace {

constexpr double kPi = 3.14159265358979323846;
using Rows = std::vector<std::vector<double>>;

LlamaShape small_llama() { return {2, 48, 6, 2, 8, 80, 40, 64, 0, 1e4, true, true}; }

double real(hw::Dyadic factor) { return factor.multiplier * std::exp2(-double(factor.shift)); }

/// The network in double precision, written from its definition: nothing is rounded or clamped.
class PlainLlama {
 public:
  explicit PlainLlama(const IntegerLlama& llama) : llama_(llama), shape_(llama.shape) {}

  std::vector<double> logits(Rows stream) const {
    for (const IntegerLlamaBlock& block : llama_.blocks) {
      add(stream, linear(attention(normed(stream, block.norm1), block), block.proj));
      const Rows in = normed(stream, block.norm2);
      if (block.experts.empty()) add(stream, mlp(in, block, {block.gate, block.up, block.down}));
      const Rows shares = block.experts.empty() ? Rows{} : routed(linear(in, block.router), block);
      for (std::size_t i = 0; i < block.experts.size(); ++i) {
        Rows branch = mlp(in, block, block.experts[i]);
        for (std::size_t r = 0; r < branch.size(); ++r) {
          for (double& x : branch[r]) x *= shares[r][i];
        }
        add(stream, branch);
      }
    }
    return linear({normed(stream, llama_.norm).back()}, llama_.output).front();
  }

 private:
  Rows mlp(const Rows& in, const IntegerLlamaBlock& block, const IntegerExpert& expert) const {
    Rows gate = linear(in, expert.gate);
    const Rows up = linear(in, expert.up);
    for (std::size_t r = 0; r < gate.size(); ++r) {
      for (std::size_t c = 0; c < gate[r].size(); ++c) {
        const double x = gate[r][c] / 8192;
        const double share =
            shape_.gelu ? std::erfc(-x / std::sqrt(2.0)) / 2 : 1 / (1 + std::exp(-x));
        gate[r][c] *= up[r][c] * share * std::exp2(-double(block.product_shift));
      }
    }
    return linear(gate, expert.down);
  }

  /// The softmax of the largest of each row.
  Rows routed(Rows scores, const IntegerLlamaBlock& block) const {
    for (std::vector<double>& row : scores) {
      std::vector<double> sorted = row;
      std::sort(sorted.rbegin(), sorted.rend());
      const double least = sorted.at(shape_.active_experts - 1);
      double sum = 0;
      for (double& score : row) {
        score = score < least ? 0 : std::exp(score * block.router_scale);
        sum += score;
      }
      for (double& score : row) score /= sum;
    }
    return scores;
  }

  static void add(Rows& to, const Rows& from) {
    for (std::size_t r = 0; r < to.size(); ++r) {
      for (std::size_t c = 0; c < to[r].size(); ++c) to[r][c] += from[r][c];
    }
  }

  static Rows normed(Rows rows, const IntegerRmsNorm& norm) {
    for (std::vector<double>& row : rows) {
      double squares = 0;
      for (const double x : row) squares += x * x;
      for (std::size_t c = 0; c < row.size(); ++c) {
        row[c] *= norm.multiplier[c] / std::sqrt(squares) *
                  std::exp2(double(hw::kLayerNormFractionBits) - double(norm.shift));
      }
    }
    return rows;
  }

  /// Heads one after the other, each by itself.
  Rows heads_normed(Rows rows, const IntegerRmsNorm& norm) const {
    if (!shape_.head_norms) return rows;
    for (std::vector<double>& row : rows) {
      for (std::size_t first = 0; first < row.size(); first += shape_.head_width) {
        const auto head = row.begin() + static_cast<std::ptrdiff_t>(first);
        const Rows one = normed({{head, head + shape_.head_width}}, norm);
        std::copy(one[0].begin(), one[0].end(), head);
      }
    }
    return rows;
  }

  static Rows linear(const Rows& in, const IntegerLinear& layer) {
    Rows out(in.size(), std::vector<double>(layer.outputs));
    for (std::size_t r = 0; r < in.size(); ++r) {
      for (std::size_t o = 0; o < layer.outputs; ++o) {
        double sum = layer.bias.empty() ? 0 : layer.bias[o];
        for (std::size_t i = 0; i < layer.inputs; ++i) {
          sum += in[r][i] * layer.weight[o * layer.inputs + i];
        }
        out[r][o] = sum * real(layer.factor[o]);
      }
    }
    return out;
  }

  /// Neighbouring features as complex numbers, turned by the angle of their row.
  Rows turned(Rows rows) const {
    for (std::size_t p = 0; p < rows.size(); ++p) {
      for (std::size_t c = 0; c < rows[p].size(); c += 2) {
        const std::size_t feature = c % shape_.head_width;
        const double angle = static_cast<double>(p) *
                             (shape_.rope_frequencies.empty()
                                  ? std::pow(shape_.rope_base, -double(feature) / shape_.head_width)
                                  : shape_.rope_frequencies[feature / 2]);
        const std::complex<double> x =
            std::complex<double>(rows[p][c], rows[p][c + 1]) * std::polar(1.0, angle);
        rows[p][c] = x.real() / 256;
        rows[p][c + 1] = x.imag() / 256;
      }
    }
    return rows;
  }

  Rows attention(const Rows& in, const IntegerLlamaBlock& block) const {
    const Rows q = turned(heads_normed(linear(in, block.query), block.query_norm));
    const Rows k = turned(heads_normed(linear(in, block.key), block.key_norm));
    const Rows v = linear(in, block.value);
    // The integer context comes in steps of 2^-8 of the codes, or of the divided sum.
    const double to_code = real(block.context) * std::exp2(8);
    Rows out(in.size(), std::vector<double>(shape_.query_width(), 0.0));
    for (std::size_t h = 0; h < shape_.heads; ++h) {
      const std::size_t from = h / (shape_.heads / shape_.kv_heads) * shape_.head_width;
      const std::size_t to = h * shape_.head_width;
      for (std::size_t r = 0; r < in.size(); ++r) {
        const std::size_t first =
            shape_.window == 0 || r + 1 < shape_.window ? 0 : r + 1 - shape_.window;
        double sum = 0;
        for (std::size_t j = first; j <= r; ++j) {
          double score = 0;
          for (std::size_t c = 0; c < shape_.head_width; ++c)
            score += q[r][to + c] * k[j][from + c];
          const double weight =
              std::exp(score * real(block.score) * std::exp2(-double(hw::kScoreFractionBits)));
          sum += weight;
          for (std::size_t c = 0; c < shape_.head_width; ++c) {
            out[r][to + c] += weight * v[j][from + c];
          }
        }
        for (std::size_t c = 0; c < shape_.head_width; ++c) out[r][to + c] *= to_code / sum;
      }
    }
    return out;
  }

  const IntegerLlama& llama_;
  const LlamaShape& shape_;
};

double correlation(const std::vector<double>& a, const std::vector<std::int32_t>& b,
                   std::size_t first) {
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += a[i] * b[first + i];
    aa += a[i] * a[i];
    bb += double(b[first + i]) * b[first + i];
  }
  return ab / std::sqrt(aa * bb);
}

std::vector<std::int32_t> embedding_of(std::uint32_t tokens, std::uint32_t width) {
  EncoderShape shape;
  shape.width = width;
  return seeded_embedding(shape, tokens, 3, {});
}

/// Logits of all sequences, and the least correlation of one with the plain network.
double least_correlation(const LlamaShape& shape, std::uint32_t length, std::uint32_t sequences) {
  const IntegerLlama llama = make_seeded_llama("llama", shape, length, 1, {}, true);
  const Graph graph = make_llama_graph(llama, length, sequences);
  const std::vector<std::int32_t> in = embedding_of(length * sequences, shape.width);
  Reference reference(graph);
  reference.set_input("embedding", in);
  reference.run();
  const std::vector<std::int32_t> logits = reference.values("logits");
  double least = 1;
  auto from = in.begin();
  for (std::uint32_t s = 0; s < sequences; ++s) {
    Rows rows(length);
    for (std::vector<double>& row : rows) {
      row.assign(from, from + shape.width);
      from += shape.width;
    }
    const std::vector<double> plain = PlainLlama(llama).logits(rows);
    least = std::min(least, correlation(plain, logits, s * shape.vocabulary));
  }
  return least;
}

TEST(LlamaGraph, IsTheNetworkThatItsDefinitionSays) {
  for (const std::uint32_t length : {1U, 2U, 13U}) {
    for (const std::uint32_t sequences : {1U, 3U}) {
      EXPECT_GT(least_correlation(small_llama(), length, sequences), 0.95)
          << length << " x " << sequences;
    }
  }
  LlamaShape experts = small_llama();
  experts.experts = 5;
  experts.active_experts = 2;
  for (const std::uint32_t length : {1U, 13U}) {
    EXPECT_GT(least_correlation(experts, length, 2), 0.95) << length;
  }
  LlamaShape windowed = small_llama();
  windowed.window = 4;
  EXPECT_GT(least_correlation(windowed, 13, 2), 0.95);
  LlamaShape normed = small_llama();
  normed.head_norms = true;
  normed.rope_frequencies = {1, 0.5, 0.03, 0.001};
  EXPECT_GT(least_correlation(normed, 13, 2), 0.95);
  LlamaShape gelu = small_llama();
  gelu.gelu = true;
  EXPECT_GT(least_correlation(gelu, 13, 2), 0.95);
}

TEST(LlamaGraph, NoticesAnotherNetwork) {
  // What the correlation is good for: each change of the definition is seen.
  const LlamaShape shape = small_llama();
  const std::uint32_t length = 13;
  const IntegerLlama llama = make_seeded_llama("llama", shape, length, 1, {}, true);
  const std::vector<std::int32_t> in = embedding_of(length, shape.width);
  Rows rows(length);
  for (std::size_t r = 0; r < length; ++r) {
    const auto row = in.begin() + static_cast<std::ptrdiff_t>(r * shape.width);
    rows[r].assign(row, row + shape.width);
  }
  const Graph graph = make_llama_graph(llama, length);
  Reference reference(graph);
  reference.set_input("embedding", in);
  reference.run();
  const std::vector<std::int32_t> logits = reference.values("logits");
  EXPECT_GT(correlation(PlainLlama(llama).logits(rows), logits, 0), 0.99);
  IntegerLlama other = llama;
  other.shape.rope_base = 10;
  EXPECT_LT(correlation(PlainLlama(other).logits(rows), logits, 0), 0.99);
  other = llama;
  other.shape.gelu = true;
  EXPECT_LT(correlation(PlainLlama(other).logits(rows), logits, 0), 0.999);
  other = llama;
  other.shape.rope_frequencies = {1, 0.5, 0.03, 0.001};
  EXPECT_LT(correlation(PlainLlama(other).logits(rows), logits, 0), 0.99);
  other = llama;
  other.shape.head_norms = true;
  other.blocks[0].query_norm.multiplier =
      other.blocks[1].query_norm.multiplier = {1, 9, 1, 1, 1, 1, 1, 1};
  other.blocks[0].key_norm = other.blocks[1].key_norm = other.blocks[0].query_norm;
  EXPECT_LT(correlation(PlainLlama(other).logits(rows), logits, 0), 0.99);
  other = llama;
  other.shape.window = 4;
  EXPECT_LT(correlation(PlainLlama(other).logits(rows), logits, 0), 0.99);
  other = llama;
  std::swap(other.blocks[0].gate, other.blocks[0].up);
  EXPECT_LT(correlation(PlainLlama(other).logits(rows), logits, 0), 0.99);
}

// Shares add up to 1: experts that are all the same give what one MLP gives, but for rounding.
TEST(LlamaGraph, EqualExpertsGiveWhatOneMlpGives) {
  for (const std::uint32_t active : {1U, 2U, 4U}) {
    LlamaShape shape = small_llama();
    shape.experts = 4;
    shape.active_experts = active;
    IntegerLlama llama = make_seeded_llama("llama", shape, 5, 1, {}, true);
    IntegerLlama one = llama;
    one.shape.experts = one.shape.active_experts = 0;
    for (std::size_t i = 0; i < llama.blocks.size(); ++i) {
      const IntegerExpert expert = llama.blocks[i].experts.front();
      for (IntegerExpert& other : llama.blocks[i].experts) other = expert;
      one.blocks[i].gate = expert.gate;
      one.blocks[i].up = expert.up;
      one.blocks[i].down = expert.down;
      one.blocks[i].experts.clear();
    }
    const std::vector<std::int32_t> in = embedding_of(5, shape.width);
    const auto logits = [&](const IntegerLlama& of) {
      const Graph graph = make_llama_graph(of, 5);
      Reference reference(graph);
      reference.set_input("embedding", in);
      reference.run();
      return reference.values("logits");
    };
    const std::vector<std::int32_t> expected = logits(one), found = logits(llama);
    double error = 0, power = 0;
    for (std::size_t i = 0; i < found.size(); ++i) {
      error += std::pow(found[i] - 1.0 * expected[i], 2);
      power += std::pow(1.0 * expected[i], 2);
    }
    // Parts with smaller codes are rounded more; shares of half the size would give 0.22.
    EXPECT_LT(std::sqrt(error / power), active == 1 ? 0.05 : 0.15) << active;
  }
}

TEST(LlamaGraph, StepsGiveWhatAllTokensAtOnceGive) {
  for (const std::uint32_t window : {0U, 5U}) {
    for (const std::uint32_t sequences : {1U, 2U}) {
      LlamaShape shape = small_llama();
      shape.window = window;
      shape.head_norms = window != 0;
      const std::uint32_t length = 9, past = 4;
      const IntegerLlama llama = make_seeded_llama("llama", shape, length, 1, {}, true);
      const std::vector<std::int32_t> in = embedding_of(length * sequences, shape.width);
      const auto tokens = [&](std::uint32_t first, std::uint32_t count) {
        std::vector<std::int32_t> rows;
        for (std::uint32_t s = 0; s < sequences; ++s) {
          const auto from = in.begin() + (s * length + first) * shape.width;
          rows.insert(rows.end(), from, from + count * shape.width);
        }
        return rows;
      };
      Graph step = make_llama_decode_graph(llama, length, sequences);
      fill_llama_caches(step, llama, past, tokens(0, past));
      for (std::uint32_t token = past; token < length; ++token) {
        const Graph prompt = make_llama_graph(llama, token + 1, sequences);
        Reference at_once(prompt);
        at_once.set_input("embedding", tokens(0, token + 1));
        at_once.run();
        move_llama_to_token(step, shape, token);
        Reference one(step);
        one.set_input("embedding", tokens(token, 1));
        one.run();
        EXPECT_EQ(one.values("logits"), at_once.values("logits")) << window << " " << token;
        for (Tensor& tensor : step.tensors) {
          if (tensor.kind == Tensor::Kind::kState) tensor.data = one.bytes(tensor.name);
        }
      }
    }
  }
}

TEST(LlamaShapes, HaveThePublishedNumberOfParameters) {
  // Millions, as published; what a network has once counts once.
  const std::pair<const char*, double> published[] = {
      {"smollm2-135m", 134.515}, {"qwen2.5-0.5b", 494.03}, {"llama-3.2-1b", 1235.8},
      {"llama-3-8b", 8030.3},    {"mistral-7b", 7241.7},   {"qwen3-0.6b", 596.05},
      {"gemma-2b", 2506.17},     {"gpt-oss-20b", 20910}};
  ASSERT_EQ(llama_shapes().size(), std::size(published));
  for (const auto& [name, millions] : published) {
    const LlamaShape& shape = *find_llama_shape(name);
    const double d = shape.width;
    const double layer = 2 * d * shape.query_width() + 2 * d * shape.kv_width() +
                         3 * d * shape.hidden * std::max(1U, shape.experts) + d * shape.experts +
                         2 * d + (shape.head_norms ? 2.0 * shape.head_width : 0.0) +
                         (shape.qkv_bias ? shape.query_width() + 2.0 * shape.kv_width() : 0.0);
    const double words = d * shape.vocabulary * (shape.tied ? 1 : 2);
    EXPECT_NEAR(1e-6 * (shape.layers * layer + d + words), millions, 1e-3 * millions) << name;
  }
}

TEST(LlamaShapes, GraphHasTheWorkOfItsShape) {
  const LlamaShape& shape = *find_llama_shape("smollm2-135m");
  const Graph graph =
      make_llama_decode_graph(make_seeded_llama("smollm2-135m", shape, 101, 1, {}, false), 101);
  const ModelInfo info = describe_graph(graph);
  EXPECT_EQ(info.weight_bytes, 106168320U + 28311552U);
  EXPECT_EQ(info.macs, 106168320U + 28311552U + 101U * 34560U);
}

TEST(SeededLlama, RefusesWhatDoesNotGoTogether) {
  LlamaShape shape = small_llama();
  shape.kv_heads = 4;
  EXPECT_THROW((void)make_seeded_llama("llama", shape, 4, 1, {}, false), hw::InputError);
  shape = small_llama();
  shape.experts = 4;
  EXPECT_THROW((void)make_seeded_llama("llama", shape, 4, 1, {}, false), hw::InputError);
  shape.active_experts = 5;
  EXPECT_THROW((void)make_seeded_llama("llama", shape, 4, 1, {}, false), hw::InputError);
  shape = small_llama();
  shape.head_width = 7;
  EXPECT_THROW((void)make_seeded_llama("llama", shape, 4, 1, {}, false), hw::InputError);
}

}  // namespace
}  // namespace systole::model
