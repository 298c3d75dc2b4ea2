#include "hw/dynamic/spatten_core.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "base/round.h"

namespace systole::hw::dynamic {
namespace {

constexpr std::uint64_t kRoundCycles = 3;  ///< comparators, zero eliminator, FIFO

/// The `count` of `candidates` with the largest weights, of equal ones the first, ascending.
std::vector<std::uint32_t> largest_of(std::vector<std::uint32_t> candidates, std::size_t count,
                                      const std::vector<double>& weights) {
  std::stable_sort(candidates.begin(), candidates.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return weights[a] > weights[b]; });
  candidates.resize(count);
  std::sort(candidates.begin(), candidates.end());
  return candidates;
}

std::vector<double> values_of(const std::vector<std::uint32_t>& places,
                              const std::vector<double>& weights) {
  std::vector<double> values;
  for (const std::uint32_t place : places) values.push_back(weights[place]);
  return values;
}

void check_counts(const std::vector<std::size_t>& counts, std::size_t layers, std::size_t most) {
  if (counts.size() != layers) throw std::invalid_argument("SpAtten: a count for each layer");
  for (const std::size_t count : counts) {
    if (count == 0 || count > most) throw std::invalid_argument("SpAtten: keeps none, or too many");
    most = count;
  }
}

class SpattenTimeline {
 public:
  SpattenTimeline(const AttentionProbabilities& network, std::size_t dim,
                  const SpattenSchedule& schedule, const SpattenArray& array,
                  const OperandStream& stream)
      : network_(network),
        dim_(dim),
        schedule_(schedule),
        array_(array),
        stream_(stream),
        token_importance_(network.tokens),
        head_importance_(network.heads) {
    tokens_.resize(network.tokens);
    std::iota(tokens_.begin(), tokens_.end(), 0U);
    heads_.resize(network.heads);
    std::iota(heads_.begin(), heads_.end(), 0U);
  }

  SpattenCycles run() {
    select(0, false);
    for (std::size_t layer = 0; layer < network_.layers; ++layer) {
      if (layer != 0) select(layer, true);
      cycles_.tokens.push_back(tokens_);
      cycles_.heads.push_back(heads_);
      run_layer(layer);
    }
    cycles_.total = static_cast<std::uint64_t>(std::ceil(std::max(now_, memory_)));
    cycles_.memory = static_cast<std::uint64_t>(std::ceil(moving_));
    return cycles_;
  }

 private:
  /// Tokens and heads of a layer; the first layer knows no importance and keeps the first ones.
  void select(std::size_t layer, bool timed) {
    const auto shrink = [&](std::vector<std::uint32_t>& kept, std::size_t count,
                            const std::vector<double>& importance) {
      if (count == kept.size()) return;
      if (timed) {
        const std::uint64_t cycles =
            quick_select_cycles(values_of(kept, importance), count, array_.top_k_lanes);
        cycles_.selection += cycles;
        now_ += static_cast<double>(cycles);
      }
      kept = largest_of(std::move(kept), count, importance);
    };
    shrink(tokens_, schedule_.tokens[layer], token_importance_);
    shrink(heads_, schedule_.heads[layer], head_importance_);
  }

  double moved(std::size_t rows) {
    const double cycles =
        static_cast<double>(rows * dim_) * stream_.element_bytes / stream_.bytes_per_cycle;
    moving_ += cycles;
    return cycles;
  }

  void run_layer(std::size_t layer) {
    const double begin = now_;
    std::vector<double> ends;
    for (const std::uint32_t head : heads_) {
      // Which rows to fetch is known when the layer begins.
      const double room = ends.size() < 2 ? begin : ends[ends.size() - 2];
      memory_ = std::max(memory_, room) + moved(3 * tokens_.size());
      now_ = std::max(now_, memory_);
      run_head(layer, head);
      ends.push_back(now_);
      memory_ += moved(tokens_.size());
      if (!network_.magnitudes.empty()) {
        head_importance_[head] += network_.magnitudes[layer * network_.heads + head];
      }
    }
    now_ += static_cast<double>(kSpattenDrain);
  }

  void run_head(std::size_t layer, std::uint32_t head) {
    const std::size_t tokens = tokens_.size();
    const auto kept_values = static_cast<std::size_t>(
        std::max<double>(1.0, std::round(schedule_.values * static_cast<double>(tokens))));
    const std::uint64_t score_cycles = ceil_div(tokens, array_.key_macs / dim_);
    const std::uint64_t value_cycles = ceil_div(kept_values, array_.value_macs / dim_);
    std::array<double, 4> free{now_, now_, now_, now_};
    for (const std::uint32_t query : tokens_) {
      const std::vector<double> attention = attention_of(layer, head, query);
      for (std::size_t i = 0; i < tokens; ++i) token_importance_[tokens_[i]] += attention[i];
      const std::uint64_t top_k =
          kept_values == tokens ? 0
                                : quick_select_cycles(attention, kept_values, array_.top_k_lanes);
      const std::uint64_t stages[4] = {score_cycles, score_cycles, top_k, value_cycles};
      double done = now_;
      for (std::size_t s = 0; s < free.size(); ++s) {
        done = free[s] = std::max(done, free[s]) + static_cast<double>(stages[s]);
      }
      cycles_.scores += score_cycles;
      cycles_.softmax += score_cycles;
      cycles_.top_k += top_k;
      cycles_.values += value_cycles;
    }
    cycles_.cells += tokens * tokens;
    cycles_.value_cells += tokens * kept_values;
    now_ = free.back();
  }

  /// Over the tokens that are left, whose attention sums to 1 again.
  [[nodiscard]] std::vector<double> attention_of(std::size_t layer, std::uint32_t head,
                                                 std::uint32_t query) const {
    const std::size_t row =
        ((layer * network_.heads + head) * network_.tokens + query) * network_.tokens;
    std::vector<double> attention;
    double sum = 0.0;
    for (const std::uint32_t token : tokens_) {
      attention.push_back(network_.attention[row + token]);
      sum += attention.back();
    }
    for (double& share : attention) {
      share = sum > 0.0 ? share / sum : 1.0 / static_cast<double>(attention.size());
    }
    return attention;
  }

  const AttentionProbabilities& network_;
  const std::size_t dim_;
  const SpattenSchedule& schedule_;
  const SpattenArray& array_;
  const OperandStream& stream_;
  SpattenCycles cycles_;
  std::vector<double> token_importance_, head_importance_;
  std::vector<std::uint32_t> tokens_, heads_;  ///< kept
  double now_ = 0.0, memory_ = 0.0, moving_ = 0.0;
};

}  // namespace

std::uint64_t quick_select_cycles(std::vector<double> values, std::size_t k, std::uint32_t lanes) {
  if (lanes == 0 || k == 0 || k > values.size()) {
    throw std::invalid_argument("quick select: no lanes, or not that many values");
  }
  std::uint64_t cycles = ceil_div(values.size(), lanes) + ceil_div(k, lanes);
  std::uint64_t random = values.size();
  while (!values.empty()) {
    cycles += ceil_div(values.size(), lanes) + kRoundCycles;
    // Knuth's generator, The Art of Computer Programming 2, 3.3.4.
    random = random * 6364136223846793005U + 1442695040888963407U;
    const double pivot = values[(random >> 33U) % values.size()];
    std::vector<double> larger, smaller;
    for (const double value : values) {
      if (value > pivot) larger.push_back(value);
      if (value < pivot) smaller.push_back(value);
    }
    if (larger.size() >= k) {
      if (larger.size() == k) break;
      values = std::move(larger);
      continue;
    }
    const std::size_t equal = values.size() - larger.size() - smaller.size();
    if (larger.size() + equal >= k) break;
    k -= larger.size() + equal;
    values = std::move(smaller);
  }
  return cycles;
}

SpattenCycles run_spatten(const AttentionProbabilities& network, std::size_t dim,
                          const SpattenSchedule& schedule, const SpattenArray& array,
                          const OperandStream& stream) {
  const std::size_t maps = network.layers * network.heads;
  if (maps == 0 || network.attention.size() != maps * network.tokens * network.tokens ||
      (!network.magnitudes.empty() && network.magnitudes.size() != maps)) {
    throw std::invalid_argument("SpAtten: probabilities of another shape");
  }
  if (dim == 0 || array.key_macs < dim || array.value_macs < dim || array.top_k_lanes == 0) {
    throw std::invalid_argument("SpAtten: fewer MACs than features, or no lanes");
  }
  if (!stream.moves()) throw std::invalid_argument("SpAtten: memory without a rate");
  if (!(schedule.values > 0.0 && schedule.values <= 1.0)) {
    throw std::invalid_argument("SpAtten: a share of values that is none");
  }
  check_counts(schedule.tokens, network.layers, network.tokens);
  check_counts(schedule.heads, network.layers, network.heads);
  return SpattenTimeline(network, dim, schedule, array, stream).run();
}

}  // namespace systole::hw::dynamic
