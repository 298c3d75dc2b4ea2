/// Host speed of the post-op chains: nanoseconds per element of apply_chain() on one core, next to
/// plain loops over the scalar functions that define the values.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "hw/function/gelu.h"
#include "hw/function/softmax.h"
#include "hw/kernel/row_plain.h"
#include "hw/postop/postop.h"

namespace systole::hw {
namespace {

constexpr row::Clamp kS8{-127, 127};
constexpr Dyadic kFactor{43690, 26};

struct Tile {
  explicit Tile(std::size_t tile_rows, std::size_t tile_cols, int bits)
      : rows(tile_rows),
        cols(tile_cols),
        accumulator(rows * cols),
        scratch(cols),
        parameters(cols * 3),
        out(rows * cols * 4),
        tensor(rows * cols * 2),
        sums(rows) {
    std::mt19937 random(1);
    for (std::int32_t& x : accumulator) x = static_cast<std::int32_t>(random()) >> (32 - bits);
    for (std::size_t i = 0; i < cols; ++i) {
      parameters[i] = static_cast<std::int32_t>(random() % 65536);
      parameters[cols + i] = static_cast<std::int32_t>(20 + random() % 8);
      parameters[2 * cols + i] = static_cast<std::int32_t>(random()) >> 12;
    }
  }

  [[nodiscard]] ChainOperands operands() {
    ChainOperands result;
    result.accumulator = accumulator.data();
    result.accumulator_pitch = cols;
    result.parameters = parameters.data();
    result.tensors[0] = {tensor.data(), cols * 2};
    result.row_statistics = sums.data();
    result.out = out.data();
    result.out_pitch = cols;
    result.rows = rows;
    result.cols = cols;
    return result;
  }

  std::size_t rows;
  std::size_t cols;
  std::vector<std::int32_t> accumulator;
  std::vector<std::int32_t> scratch;
  std::vector<std::int32_t> parameters;
  std::vector<unsigned char> out;
  std::vector<unsigned char> tensor;
  std::vector<std::uint32_t> sums;
};

using Loop = std::function<void(std::int32_t* x, std::size_t n, const Tile& tile)>;

struct Case {
  std::string name;
  int bits;  ///< of the accumulator values
  Chain chain;
  Loop plain;
};

Stage stage(StageOp op, std::array<std::int64_t, kStageImmediates> imm = {}) {
  Stage result;
  result.op = op;
  result.imm = imm;
  return result;
}

Stage gelu_stage(const GeluConstants& g) {
  return stage(StageOp::kGelu,
               {g.b, g.c, g.one, g.output.multiplier, g.output.shift, kS8.lo, kS8.hi});
}

Stage softmax_stage(const SoftmaxConstants& s) {
  return stage(StageOp::kSoftmax,
               {static_cast<std::int64_t>(s.mode), s.score.multiplier, s.score.shift,
                s.exp.fraction_bits, s.exp_to_code.multiplier, s.exp_to_code.shift, s.output_bits});
}

std::vector<Case> cases() {
  const Stage requantise =
      stage(StageOp::kRequantise, {kFactor.multiplier, kFactor.shift, kS8.lo, kS8.hi});
  Stage channels = requantise;
  channels.operand = Operand::kChannel;
  Stage bias = stage(StageOp::kAdd);
  bias.operand = Operand::kChannel;
  Stage even = requantise;
  even.rounding = Rounding::kHalfEven;
  const GeluConstants coarse = make_gelu_constants(0.04, 0.03);
  const GeluConstants fine = make_gelu_constants(2e-4, 0.03);
  const SoftmaxConstants deferred = make_softmax_constants(1e-4);
  SoftmaxConstants normalised = deferred;
  normalised.mode = SoftmaxMode::kNormalisedRound;
  const Loop plain_requantise = [](std::int32_t* x, std::size_t n, const Tile&) {
    row::plain::requantise_row(x, n, kFactor, Rounding::kHalfUp, kS8);
  };
  const auto plain_softmax = [](const SoftmaxConstants& constants) {
    return [constants](std::int32_t* x, std::size_t n, const Tile&) {
      std::vector<std::uint8_t> codes(n);
      softmax_row(x, nullptr, n, constants, codes.data());
      for (std::size_t i = 0; i < n; ++i) x[i] = codes[i];
    };
  };
  std::vector<Case> list;
  const auto add = [&list](const char* name, int bits, const std::vector<Stage>& stages, DType out,
                           const Loop& plain) {
    list.push_back({name, bits, {stages, out}, plain});
  };
  const Loop plain_channels = [](std::int32_t* x, std::size_t n, const Tile& tile) {
    const std::int32_t* words = tile.parameters.data();
    row::plain::requantise_channels_rows(x, n, 1, words, words + n, Rounding::kHalfUp, kS8);
  };
  add("requantise", 20, {requantise}, DType::kS8, plain_requantise);
  add("requantise half_even", 20, {even}, DType::kS8,
      [](std::int32_t* x, std::size_t n, const Tile&) {
        row::plain::requantise_row(x, n, kFactor, Rounding::kHalfEven, kS8);
      });
  add("requantise per channel", 20, {channels}, DType::kS8, plain_channels);
  add("bias, requantise per channel", 20, {bias, channels}, DType::kS8,
      [=](std::int32_t* x, std::size_t n, const Tile& tile) {
        row::plain::add_rows(x, tile.parameters.data(), n, 1);
        plain_channels(x, n, tile);
      });
  add("requantise, gelu s8", 20, {requantise, gelu_stage(coarse)}, DType::kS8,
      [=](std::int32_t* x, std::size_t n, const Tile& tile) {
        plain_requantise(x, n, tile);
        row::plain::gelu_row(x, n, coarse, kS8);
      });
  add("gelu s16", 16, {gelu_stage(fine)}, DType::kS8,
      [=](std::int32_t* x, std::size_t n, const Tile&) { row::plain::gelu_row(x, n, fine, kS8); });
  add("softmax deferred", 18, {softmax_stage(deferred)}, DType::kU8, plain_softmax(deferred));
  add("softmax normalised", 18, {softmax_stage(normalised)}, DType::kU8, plain_softmax(normalised));
  add("layer_norm", 16, {stage(StageOp::kLayerNorm, {15, 20, kS8.lo, kS8.hi})}, DType::kS8,
      [](std::int32_t* x, std::size_t n, const Tile& tile) {
        const std::int32_t* words = tile.parameters.data();
        row::plain::layer_norm_row(x, n, layernorm_statistics(x, n), {words, words + n, 20, 15},
                                   kS8);
      });
  return list;
}

/// CPU time of this thread, so that a busy machine does not count against the kernel.
double cpu_nanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

/// Median of the nanoseconds that one element takes.
double measure(std::size_t elements, const std::function<void()>& run) {
  std::vector<double> samples;
  const std::size_t repeats = 1 + 2000000 / elements;
  for (int sample = 0; sample < 9; ++sample) {
    const double start = cpu_nanoseconds();
    for (std::size_t i = 0; i < repeats; ++i) run();
    samples.push_back((cpu_nanoseconds() - start) / static_cast<double>(repeats * elements));
  }
  std::nth_element(samples.begin(), samples.begin() + 4, samples.end());
  return samples[4];
}

void report(std::size_t rows, std::size_t cols) {
  std::printf("tile %zu x %zu\n%-30s %10s %10s %8s\n", rows, cols, "chain", "ns/elem", "plain",
              "ratio");
  for (const Case& c : cases()) {
    Tile tile(rows, cols, c.bits);
    const ChainOperands operands = tile.operands();
    const double fast = measure(rows * cols, [&] { apply_chain(c.chain, operands); });
    const double plain = measure(rows * cols, [&] {
      for (std::size_t r = 0; r < rows; ++r) {
        const std::int32_t* row = tile.accumulator.data() + r * cols;
        std::copy(row, row + cols, tile.scratch.data());
        c.plain(tile.scratch.data(), cols, tile);
        row::plain::narrow_as<std::int8_t>(tile.scratch.data(), tile.out.data() + r * cols, cols);
      }
    });
    std::printf("%-30s %10.3f %10.3f %7.1fx\n", c.name.c_str(), fast, plain, plain / fast);
  }
}

}  // namespace
}  // namespace systole::hw

int main() {
  systole::hw::report(128, 768);
  systole::hw::report(16, 16);
}
