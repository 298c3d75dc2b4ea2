#include "testbench/generation/generation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "hw/description/machine_file.h"
#include "hw/function/half_gelu.h"
#include "hw/ring/half_gemv.h"
#include "support/tlm/fresh_kernel.h"
#include "tests/testbench/generation/odd_gpt.h"

namespace systole::testbench {
namespace {

using hw::Half;
using hw::half_add;
using hw::half_mul;
using test::machine_with;
using test::odd_gpt;
using Vector = std::vector<Half>;

/// GPT-2 in FP16 with the roundings of such a core, from its definition alone: no tiles, no
/// registers, no parts. Heads are a register each, and so are the sums that go through the trees.
class Oracle {
 public:
  explicit Oracle(const model::Gpt& gpt) : gpt_(gpt), layers_(gpt.layers.size()) {}

  Vector logits(std::uint32_t token) {
    const std::size_t d = gpt_.shape.encoder.width;
    Vector x(d);
    for (std::size_t i = 0; i < d; ++i) {
      x[i] = half_add(gpt_.word[token * d + i], gpt_.position[position_ * d + i]);
    }
    for (std::size_t l = 0; l < gpt_.layers.size(); ++l) {
      const model::GptLayer& layer = gpt_.layers[l];
      const Vector n = norm(x, layer.norm1);
      layers_[l].keys.push_back(linear(n, layer.key));
      layers_[l].values.push_back(linear(n, layer.value));
      x = sum(x, linear_of_heads(attention(linear(n, layer.query), layers_[l]), layer.proj));
      Vector hidden = linear(norm(x, layer.norm2), layer.fc1);
      for (Half& h : hidden) h = hw::half_gelu(h);
      x = sum(x, linear(hidden, layer.fc2));
    }
    ++position_;
    const Vector n = norm(x, gpt_.norm);
    Vector logits(gpt_.shape.vocabulary);
    for (std::size_t v = 0; v < logits.size(); ++v) {
      logits[v] = column(
          n, [&](std::size_t k) { return gpt_.head()[v * d + k]; }, hw::kHalfZero);
    }
    return logits;
  }

 private:
  struct Cache {
    std::vector<Vector> keys, values;
  };

  static Half tree(Vector products) {
    products.resize(64, hw::kHalfZero);
    return hw::half_tree(products.data(), 64);
  }
  template <typename Weight>
  static Half column(const Vector& x, Weight weight, Half start) {
    Half sum = start;
    for (std::size_t k = 0; k < x.size(); k += 64) {
      Vector products;
      for (std::size_t i = k; i < std::min(k + 64, x.size()); ++i) {
        products.push_back(half_mul(x[i], weight(i)));
      }
      sum = half_add(sum, tree(products));
    }
    return sum;
  }
  static Vector linear(const Vector& x, const model::HalfLinear& linear) {
    Vector y(linear.outputs);
    for (std::size_t n = 0; n < y.size(); ++n) {
      y[n] = column(
          x, [&](std::size_t k) { return linear.weight[k * linear.outputs + n]; }, linear.bias[n]);
    }
    return y;
  }
  /// The inputs of each head fill a register of their own.
  [[nodiscard]] Vector linear_of_heads(const Vector& x, const model::HalfLinear& linear) const {
    const std::size_t heads = gpt_.shape.encoder.heads, head = x.size() / heads;
    Vector padded(heads * 64, hw::kHalfZero);
    for (std::size_t i = 0; i < x.size(); ++i) padded[i / head * 64 + i % head] = x[i];
    Vector y(linear.outputs);
    for (std::size_t n = 0; n < y.size(); ++n) {
      const auto weight = [&](std::size_t k) {
        if (k % 64 >= head) return hw::kHalfZero;
        return linear.weight[(k / 64 * head + k % 64) * linear.outputs + n];
      };
      y[n] = column(padded, weight, linear.bias[n]);
    }
    return y;
  }
  static Vector sum(const Vector& a, const Vector& b) {
    Vector y(a.size());
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = half_add(a[i], b[i]);
    return y;
  }
  static Half total(Vector x) {
    while (true) {
      Vector sums;
      for (std::size_t i = 0; i < x.size(); i += 64) {
        sums.push_back(tree({x.begin() + static_cast<std::ptrdiff_t>(i),
                             x.begin() + static_cast<std::ptrdiff_t>(std::min(i + 64, x.size()))}));
      }
      if (sums.size() == 1) return sums.front();
      x = sums;
    }
  }
  static Vector norm(const Vector& x, const model::HalfNorm& parameters) {
    const double n = static_cast<double>(x.size());
    const Half mean = half_mul(total(x), hw::to_half(1 / n));
    const double scale = std::exp2(-std::round(std::log2(n) / 2));
    Vector centred, squares;
    for (const Half value : x) {
      centred.push_back(hw::half_sub(value, mean));
      const Half small = half_mul(centred.back(), hw::to_half(scale));
      squares.push_back(half_mul(small, small));
    }
    const Half variance = half_mul(total(squares), hw::to_half(1 / (n * scale * scale)));
    const Half inverse = hw::half_recip_sqrt(half_add(variance, hw::to_half(1e-5)));
    for (std::size_t i = 0; i < x.size(); ++i) {
      centred[i] = half_add(half_mul(half_mul(centred[i], inverse), parameters.weight[i]),
                            parameters.bias[i]);
    }
    return centred;
  }
  [[nodiscard]] Vector attention(const Vector& query, const Cache& cache) const {
    const std::size_t heads = gpt_.shape.encoder.heads, head = query.size() / heads;
    const Half scale = hw::to_half(1 / std::sqrt(static_cast<double>(head)));
    Vector out(query.size());
    for (std::size_t h = 0; h < heads; ++h) {
      Vector scores;
      for (const Vector& key : cache.keys) {
        Vector products;
        for (std::size_t i = 0; i < head; ++i) {
          products.push_back(half_mul(query[h * head + i], key[h * head + i]));
        }
        scores.push_back(half_mul(tree(products), scale));
      }
      Half largest = scores[0];
      for (const Half s : scores) largest = hw::half_max(largest, s);
      for (Half& s : scores) s = hw::half_exp(hw::half_sub(s, largest));
      const Half inverse = hw::half_recip(total(scores));
      for (Half& s : scores) s = half_mul(s, inverse);
      for (std::size_t i = 0; i < head; ++i) {
        out[h * head + i] = column(
            scores, [&](std::size_t t) { return cache.values[t][h * head + i]; }, hw::kHalfZero);
      }
    }
    return out;
  }

  const model::Gpt& gpt_;
  std::vector<Cache> layers_;
  std::size_t position_ = 0;
};

struct Outcome {
  Generation generation;
  std::vector<Vector> logits;
};

/// And nothing of the simulation left behind.
Generation generate_once(const hw::Machine& machine, const GenerationTask& task) {
  Generation generation = generate(machine, task);
  test::fresh_kernel();
  return generation;
}

Outcome run_on(hw::Machine machine, const model::Gpt& gpt, std::uint32_t tokens) {
  Outcome outcome;
  GenerationTask task;
  task.shape = gpt.shape;
  task.gpt = &gpt;
  task.prompt = {3, 1, 4, 1, 5, 9, 2, 6, 5, 35, 8, 9};
  task.tokens = tokens;
  task.on_logits = [&](std::uint32_t, const Vector& logits) { outcome.logits.push_back(logits); };
  outcome.generation = generate_once(machine, task);
  return outcome;
}

std::uint32_t largest(const Vector& logits) {
  return static_cast<std::uint32_t>(
      std::max_element(logits.begin(), logits.end(),
                       [](Half a, Half b) { return hw::to_float(a) < hw::to_float(b); }) -
      logits.begin());
}

// Across the border of a tile of tokens: 12 + 60 of them.
TEST(Generation, HasTheBitsOfItsDefinitionOnAnyNumberOfCores) {
  const model::Gpt gpt = odd_gpt();
  constexpr std::uint32_t kTokens = 60;
  const Outcome alone = run_on(machine_with(1), gpt, kTokens);
  ASSERT_EQ(alone.generation.tokens.size(), kTokens);
  Oracle oracle(gpt);
  std::uint32_t token = 0;
  const std::vector<std::uint32_t> prompt = {3, 1, 4, 1, 5, 9, 2, 6, 5, 35, 8, 9};
  for (std::size_t i = 0; i < prompt.size() + kTokens; ++i) {
    const Vector logits = oracle.logits(i < prompt.size() ? prompt[i] : token);
    ASSERT_EQ(alone.logits[i], logits) << "token " << i;
    token = largest(logits);
    if (i + 1 >= prompt.size() && i + 1 < prompt.size() + kTokens) {
      ASSERT_EQ(alone.generation.tokens[i + 1 - prompt.size()], token);
    }
  }
  for (const std::uint32_t cores : {2U, 3U, 4U, 8U}) {
    const Outcome shared = run_on(machine_with(cores), gpt, kTokens);
    EXPECT_EQ(shared.logits, alone.logits) << cores;
    EXPECT_EQ(shared.generation.tokens, alone.generation.tokens) << cores;
  }
}

// More cores than heads, than slices of the width and of the hidden layer, and than words.
TEST(Generation, CoresWithoutAPartHaveNothingToDo) {
  const model::Gpt gpt = odd_gpt();
  for (const auto format : {hw::dfx::Format::kFp16, hw::dfx::Format::kInt8}) {
    hw::Machine machine = machine_with(1);
    machine.matrix.format = format;
    const Outcome alone = run_on(machine, gpt, 3);
    const float scale = std::fabs(hw::to_float(alone.logits.back()[largest(alone.logits.back())]));
    for (const std::uint32_t cores : {5U, 9U, 13U, 40U}) {
      machine.dfx.cores = cores;
      machine.ring.collective = hw::dfx::Collective::kAllGather;
      const Outcome gathered = run_on(machine, gpt, 3);
      EXPECT_EQ(gathered.logits, alone.logits) << cores;
      EXPECT_EQ(gathered.generation.tokens, alone.generation.tokens) << cores;
      machine.ring.collective = hw::dfx::Collective::kAllReduce;
      const Outcome reduced = run_on(machine, gpt, 3);
      ASSERT_EQ(reduced.logits.size(), alone.logits.size()) << cores;
      for (std::size_t i = 0; i < gpt.shape.vocabulary; ++i) {
        // Of the last position of the prompt: tokens may differ after it.
        EXPECT_NEAR(hw::to_float(reduced.logits[11][i]), hw::to_float(alone.logits[11][i]),
                    0.1F * scale)
            << cores << ' ' << i;
      }
    }
  }
}

TEST(Generation, HasTheSameBitsWhateverTheMachineDoesForTime) {
  const model::Gpt gpt = odd_gpt();
  const Outcome plain = run_on(machine_with(1), gpt, 8);
  const auto same = [&](hw::Machine machine, const char* what) {
    const Outcome other = run_on(machine, gpt, 8);
    EXPECT_EQ(other.generation.tokens, plain.generation.tokens) << what;
    EXPECT_EQ(other.logits.back(),
              plain.logits[plain.logits.size() - 1 - (machine.dfx.last_pass ? 0 : 1)])
        << what;
  };
  same(machine_with(1, "dfx-ideal"), "ideal");
  hw::Machine machine = machine_with(2);
  machine.dfx.prefill = hw::dfx::Prefill::kBatched;
  same(machine, "batched prompt");
  machine = machine_with(3);
  machine.dfx.lm_head = hw::dfx::Placement::kDdr;
  same(machine, "LM head in DDR");
  machine = machine_with(4);
  machine.dfx.projections = hw::dfx::ProjectionOrder::kQueryFirst;
  machine.ring.directions = 1;
  machine.ring.sync = hw::dfx::Sync::kOverlapped;
  same(machine, "order, direction, overlap");
}

TEST(Generation, TakesTheSameTimeWithoutValues) {
  const model::Gpt gpt = odd_gpt();
  const hw::Machine machine = machine_with(2);
  const Outcome with = run_on(machine, gpt, 5);
  GenerationTask task;
  task.shape = gpt.shape;
  task.prompt.assign(12, 0);
  task.tokens = 5;
  const Generation without = generate_once(machine, task);
  EXPECT_EQ(without.total_ps, with.generation.total_ps);
  EXPECT_EQ(without.phases, with.generation.phases);
}

TEST(Generation, ReducesToNearlyTheSameLogits) {
  const model::Gpt gpt = odd_gpt();
  const Outcome gathered = run_on(machine_with(1), gpt, 1);
  hw::Machine machine = machine_with(4);
  machine.ring.collective = hw::dfx::Collective::kAllReduce;
  const Outcome reduced = run_on(machine, gpt, 1);
  float difference = 0, scale = 0;
  for (std::size_t i = 0; i < gathered.logits.back().size(); ++i) {
    const float a = hw::to_float(gathered.logits[11][i]), b = hw::to_float(reduced.logits[11][i]);
    difference = std::max(difference, std::fabs(a - b));
    scale = std::max(scale, std::fabs(a));
  }
  EXPECT_LT(difference, 0.02F * scale);
  EXPECT_GT(difference, 0.0F) << "the order of sums differs";
}

// Facts on DFX: 14 emb (N - 1) / N bytes per link and layer; the largest logits besides.
TEST(Generation, MovesTheBytesOfFourGathers) {
  GenerationTask task;
  task.shape = model::gpt_shape("gpt2-medium");
  task.prompt.assign(3, 0);
  task.tokens = 1;
  const Generation result = generate_once(machine_with(4), task);
  ASSERT_EQ(result.passes, 4U);
  const std::uint64_t winners = 128 * 3;
  for (const std::uint64_t bytes : result.link_bytes) {
    EXPECT_EQ(bytes, 4 * (24 * 14 * 1024 / 4 * 3 + winners));
  }
  EXPECT_NEAR(static_cast<double>(result.hbm_read_bytes) / 4, 706.9e6 / 4, 0.01 * 706.9e6 / 4);
}

TEST(Generation, TheTransposeHidesBehindKeyAndQuery) {
  const auto time_of = [](hw::dfx::ProjectionOrder order) {
    hw::Machine machine = machine_with(1, "dfx-ideal");
    machine.dfx.projections = order;
    GenerationTask task;
    task.shape = model::gpt_shape("gpt2-medium");
    task.prompt.assign(2, 0);
    return generate_once(machine, task).total_ps;
  };
  const std::uint64_t hidden = time_of(hw::dfx::ProjectionOrder::kValueFirst);
  const std::uint64_t exposed = time_of(hw::dfx::ProjectionOrder::kQueryFirst);
  // 16 heads of 64 elements, one a cycle, after less than 300 cycles of scores: 24 layers, twice.
  EXPECT_GT(exposed, hidden + std::uint64_t{24} * 2 * 500 * 5000);
}

// A host that draws tokens reads the register files of all cores at once: one latency, all bytes.
TEST(Generation, TheHostReadsLogitsOverPcie) {
  const model::Gpt gpt = odd_gpt();
  for (const std::uint32_t cores : {1U, 2U, 3U, 8U}) {
    const hw::Machine machine = machine_with(cores);
    const auto run = [&](std::uint32_t tokens) {
      GenerationTask task;
      task.shape = gpt.shape;
      task.gpt = &gpt;
      task.prompt = {3, 1, 4};
      task.tokens = tokens;
      Vector there;
      task.on_logits = [&](std::uint32_t, const Vector& logits) { there = logits; };
      task.sample = [&](const Vector& logits) {
        EXPECT_EQ(logits, there);
        return largest(logits);
      };
      return generate_once(machine, task);
    };
    const Generation five = run(5), one = run(1);
    const double transfer_ns =
        machine.pcie.latency_ns + gpt.shape.vocabulary * 2.0 / machine.pcie.gbyte_per_s;
    const double all_ns = 2 * machine.pcie.latency_ns + 5 * transfer_ns;
    EXPECT_NEAR(static_cast<double>(five.host_ps), 1e3 * all_ns, 5.0) << cores;
    EXPECT_EQ(five.first_token_ps, one.first_token_ps) << cores;
    EXPECT_LT(five.first_token_ps, five.total_ps / 2) << cores;
  }
}

TEST(Generation, RefusesTextsThatAreTooLong) {
  GenerationTask task;
  task.shape = model::gpt_shape("kjv");
  task.prompt.assign(200, 0);
  task.tokens = 57;
  EXPECT_THROW(static_cast<void>(generate(machine_with(1), task)), hw::InputError);
}

}  // namespace
}  // namespace systole::testbench
