#include "reproduce/study/fusion_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "base/units.h"

namespace systole::analysis {
namespace {

// BERT-Base.
constexpr std::uint64_t kHeads = 12, kHeadFeatures = 64, kFeatures = 768, kFfnFeatures = 3072;

constexpr double kBytesPerCycle = 16.0 * 64 / 200;
constexpr std::uint64_t kArray = 16, kLanes = 16, kPasses = 3, kSumBytes = 4;
constexpr std::uint64_t kLayerNormBytes = kSumBytes + 1 + kSumBytes;
constexpr std::uint64_t kScratchpadBytes = 256 * hw::kKib;

double utilisation(std::uint64_t accumulator_kib) { return accumulator_kib <= 128 ? 0.88 : 0.90; }

std::uint64_t pieces(std::uint64_t extent, std::uint64_t size) {
  return (extent + size - 1) / size;
}

/// `extent` in whole folds of the array.
std::uint64_t folds(std::uint64_t extent) { return extent / kArray * kArray; }

/// Of one product whose operands are loaded so many times.
double product_cycles(const FusionPair& pair, std::uint64_t a_times, std::uint64_t b_times,
                      std::uint64_t accumulator_kib) {
  const double array = static_cast<double>(pair.m * pair.n * pair.k) / (kArray * kArray) /
                       utilisation(accumulator_kib);
  const std::uint64_t bytes =
      a_times * pair.m * pair.k + b_times * pair.k * pair.n + pair.m * pair.n;
  return std::max(array, static_cast<double>(bytes) / kBytesPerCycle);
}

/// Passes of the row-wise operator over one product's result.
double pass_cycles(const FusionPair& pair) {
  return static_cast<double>(kPasses * pair.m * pair.n) / kLanes;
}

}  // namespace

FusionPair scores_and_softmax(std::uint64_t length) {
  return {"Q.K and softmax", kHeads, length, length, kHeadFeatures, kSumBytes + 1};
}

FusionPair projection_and_layer_norm(std::uint64_t length) {
  return {"W_out and LayerNorm", 1, length, kFeatures, kFeatures, kLayerNormBytes};
}

FusionPair ffn_and_layer_norm(std::uint64_t length) {
  return {"W_2 and LayerNorm", 1, length, kFeatures, kFfnFeatures, kLayerNormBytes};
}

double unfused_cycles(const FusionPair& pair, std::uint64_t accumulator_kib) {
  const auto sums = static_cast<double>(accumulator_kib * hw::kKib / kSumBytes / 2);
  const std::uint64_t side = folds(static_cast<std::uint64_t>(std::sqrt(sums)));
  const double product =
      product_cycles(pair, pieces(pair.n, side), pieces(pair.m, side), accumulator_kib);
  const double moved = static_cast<double>(pair.m * pair.n * pair.moved_bytes) / kBytesPerCycle;
  return static_cast<double>(pair.products) * (product + std::max(moved, pass_cycles(pair)));
}

double fused_cycles(const FusionPair& pair, std::uint64_t accumulator_kib) {
  const std::uint64_t sums = accumulator_kib * hw::kKib / kSumBytes;
  const std::uint64_t double_buffered = folds(sums / 2 / pair.n);
  const std::uint64_t rows = double_buffered > 0 ? double_buffered : folds(sums / pair.n);
  if (rows == 0) {
    throw std::invalid_argument(pair.name + ": 16 rows of the result exceed the accumulator");
  }
  const bool b_stays = pair.k * pair.n <= kScratchpadBytes / 2;
  const double product =
      product_cycles(pair, 1, b_stays ? 1 : pieces(pair.m, rows), accumulator_kib);
  return static_cast<double>(pair.products) * std::max(product, pass_cycles(pair));
}

std::string FusionCase::text() const {
  return fmt::format("{}, {}K, l={}", name, accumulator_kib, length);
}

double FusionCase::change() const {
  double before = 0, after = 0;
  for (const FusionPair& pair : pairs) {
    before += unfused_cycles(pair, accumulator_kib);
    after += fused_cycles(pair, accumulator_kib);
  }
  return 100 * (after / before - 1);
}

std::vector<FusionCase> survey_fusion_cases() {
  const auto scores = scores_and_softmax, projection = projection_and_layer_norm;
  return {{"Q.K and softmax", 128, 512, {scores(512)}},
          {"Q.K and softmax", 256, 512, {scores(512)}},
          {"W_out and LayerNorm", 128, 512, {projection(512)}},
          {"W_out and LayerNorm", 256, 512, {projection(512)}},
          {"both in attention", 128, 512, {scores(512), projection(512)}},
          {"both in attention", 256, 512, {scores(512), projection(512)}},
          {"Q.K and softmax", 256, 4096, {scores(4096)}},
          {"both in attention", 256, 4096, {scores(4096), projection(4096)}},
          {"W_2 and LayerNorm", 256, 512, {ffn_and_layer_norm(512)}},
          {"W_2 and LayerNorm", 256, 4096, {ffn_and_layer_norm(4096)}}};
}

}  // namespace systole::analysis
