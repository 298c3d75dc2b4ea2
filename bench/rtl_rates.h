#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bench/cpu_time.h"
#include "bench/rtl_product.h"
#include "hw/array/accumulator.h"
#include "hw/description/machine_file.h"
#include "hw/function/gelu.h"
#include "hw/function/softmax.h"
#include "hw/number/int_exp.h"
#include "testbench/rtl/array/accumulator_sram_rtl.h"
#include "testbench/rtl/array/systolic_array_rtl.h"
#include "testbench/rtl/attention/ae_decoder_rtl.h"
#include "testbench/rtl/attention/attention_line_rtl.h"
#include "testbench/rtl/nonlinear/i_exp_rtl.h"
#include "testbench/rtl/nonlinear/i_gelu_rtl.h"
#include "testbench/rtl/nonlinear/i_sqrt_rtl.h"
#include "testbench/rtl/nonlinear/layernorm_unit_rtl.h"
#include "testbench/rtl/nonlinear/softmax_unit_rtl.h"
#include "testbench/rtl/postop/postop_pipeline_rtl.h"
#include "testbench/rtl/postop/requantizer_rtl.h"
#include "testbench/rtl/ring/fp16_unit_rtl.h"
#include "testbench/rtl/ring/mpu_tree_rtl.h"

/// Clock cycles per second of every Verilated block, in every size that Makefile.verilator builds.
namespace systole::bench {

/// A block in one of its sizes, and an operation that returns how many cycles of its clock it took.
struct Subject {
  std::string block;
  std::string size;
  std::function<std::uint64_t()> operation;
};
using Subjects = std::vector<Subject>;

inline constexpr std::size_t kTileRows = 128;
inline constexpr std::size_t kTileCols = 128;
inline constexpr hw::row::Clamp kS8{-127, 127};

/// Words of `bits` bits, signed and seeded.
[[nodiscard]] inline std::vector<std::int32_t> seeded_words(std::size_t count, int bits) {
  std::mt19937 random(1);
  std::vector<std::int32_t> words(count);
  for (std::int32_t& word : words) word = static_cast<std::int32_t>(random()) >> (32 - bits);
  return words;
}

inline void add_array(Subjects& all, std::uint32_t dim) {
  const auto rtl = std::make_shared<testbench::SystolicArrayRtl>(dim, hw::ArrayOverlap::kFull);
  const auto product = std::make_shared<Product>(kTileRows, 16 * dim, 16 * dim, false, false);
  const std::string side = std::to_string(dim);
  all.push_back({"systolic_array", side + "x" + side,
                 [=] { return rtl->matmul(product->args, true).cycles; }});
}

/// The array accumulates into a tile in one bank while the post-op pipeline reads a tile in the
/// other, as with two output tiles in turns.
class AccumulatorTraffic {
 public:
  AccumulatorTraffic(std::uint32_t cols, std::uint32_t ports)
      : rtl_(cols, {2, ports, kRowsPerBank}),
        sums_(seeded_words(kTileRows * cols, 20)),
        data_(sums_.size()) {
    for (std::uint64_t row = 0; row < kTileRows; ++row) {
      writes_.push_back({row, sums_.data() + row * cols, true});
      reads_.push_back({kRowsPerBank + row, data_.data() + row * cols});
    }
    // The memory has no reset.
    std::vector<testbench::AccumulatorSramRtl::Write> first = writes_;
    for (auto& write : first) write.accumulate = false;
    rtl_.run(first, {});
    for (auto& write : first) write.row += kRowsPerBank;
    rtl_.run(first, {});
  }
  // The streams point into this object.
  AccumulatorTraffic(const AccumulatorTraffic&) = delete;
  AccumulatorTraffic& operator=(const AccumulatorTraffic&) = delete;

  std::uint64_t run() {
    const testbench::AccumulatorSramRtl::Cycles cycles = rtl_.run(writes_, reads_);
    return std::max(cycles.write.cycles, cycles.read.cycles);
  }

 private:
  static constexpr std::uint64_t kRowsPerBank = 2048;

  testbench::AccumulatorSramRtl rtl_;
  std::vector<std::int32_t> sums_;
  std::vector<std::int32_t> data_;
  std::vector<testbench::AccumulatorSramRtl::Write> writes_;
  std::vector<testbench::AccumulatorSramRtl::Read> reads_;
};

inline void add_accumulator(Subjects& all, std::uint32_t cols, std::uint32_t ports) {
  const auto traffic = std::make_shared<AccumulatorTraffic>(cols, ports);
  all.push_back({"accumulator_sram", std::to_string(cols) + "x" + std::to_string(ports),
                 [=] { return traffic->run(); }});
}

inline void add_root(Subjects& all) {
  const auto rtl = std::make_shared<testbench::ISqrtRtl>();
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> numbers(kTileRows);
  for (std::uint64_t& number : numbers) number = random() >> 24;
  all.push_back({"i_sqrt", "64", [=] { return rtl->run(numbers).cycles.cycles; }});
}

/// A unit with lanes over a tile of `words`. `run(unit, x)` replaces the words at `x`.
template <typename Unit, typename Run>
void add_unit(Subjects& all, const char* block, std::uint32_t lanes,
              std::vector<std::int32_t> words, Run run) {
  const auto unit = std::make_shared<Unit>(lanes);
  const auto scratch = std::make_shared<std::vector<std::int32_t>>(words.size());
  all.push_back({block, std::to_string(lanes), [=, words = std::move(words)]() -> std::uint64_t {
                   *scratch = words;
                   return run(*unit, scratch->data()).cycles;
                 }});
}

inline void add_requantizer(Subjects& all, std::uint32_t lanes) {
  const std::vector<std::int32_t> multipliers(kTileCols, 43690);
  const std::vector<std::int32_t> shifts(kTileCols, 26);
  add_unit<testbench::RequantizerRtl>(all, "requantizer", lanes,
                                      seeded_words(kTileRows * kTileCols, 20),
                                      [=](testbench::RequantizerRtl& unit, std::int32_t* x) {
                                        return unit.run(x, kTileCols, kTileRows, multipliers.data(),
                                                        shifts.data(), hw::Rounding::kHalfUp, kS8);
                                      });
}

inline void add_exp(Subjects& all, std::uint32_t lanes) {
  std::vector<std::int32_t> arguments = seeded_words(kTileRows * kTileCols, 12);
  for (std::int32_t& argument : arguments) argument = std::min(argument, -argument);
  add_unit<testbench::IExpRtl>(all, "i_exp", lanes, std::move(arguments),
                               [](testbench::IExpRtl& unit, std::int32_t* x) {
                                 return unit.run(x, kTileCols, kTileRows, hw::kDefaultIntExp);
                               });
}

inline void add_gelu(Subjects& all, std::uint32_t lanes) {
  const hw::GeluConstants constants = hw::make_gelu_constants(0.04, 0.03);
  add_unit<testbench::IGeluRtl>(all, "i_gelu", lanes, seeded_words(kTileRows * kTileCols, 8),
                                [=](testbench::IGeluRtl& unit, std::int32_t* x) {
                                  return unit.run(x, kTileCols, kTileRows, constants, kS8);
                                });
}

inline void add_softmax(Subjects& all, std::uint32_t lanes) {
  const hw::SoftmaxConstants constants = hw::make_softmax_constants(1e-4);
  const auto sums = std::make_shared<std::vector<std::uint32_t>>(kTileRows);
  add_unit<testbench::SoftmaxUnitRtl>(
      all, "softmax_unit", lanes, seeded_words(kTileRows * kTileCols, 18),
      [=](testbench::SoftmaxUnitRtl& unit, std::int32_t* x) {
        return unit.run(x, kTileCols, kTileRows, constants, sums->data());
      });
}

inline void add_layer_norm(Subjects& all, std::uint32_t lanes) {
  const std::vector<std::int32_t> multipliers = seeded_words(kTileCols, 16);
  const std::vector<std::int32_t> addends = seeded_words(kTileCols, 20);
  add_unit<testbench::LayernormUnitRtl>(
      all, "layernorm_unit", lanes, seeded_words(kTileRows * kTileCols, 16),
      [=](testbench::LayernormUnitRtl& unit, std::int32_t* x) {
        const hw::row::LayerNormFactors factors{multipliers.data(), addends.data(), 20, 15};
        return unit.run(x, kTileCols, kTileRows, factors, kS8);
      });
}

/// Bias, requantisation and GELU, as behind the first product of a feed-forward network.
inline void add_pipeline(Subjects& all, std::uint32_t lanes) {
  const hw::GeluConstants gelu = hw::make_gelu_constants(0.04, 0.03);
  hw::Chain chain{std::vector<hw::Stage>(3), hw::DType::kS8};
  chain.stages[0].operand = hw::Operand::kChannel;
  chain.stages[1].op = hw::StageOp::kRequantise;
  chain.stages[1].imm = {43690, 26, kS8.lo, kS8.hi};
  chain.stages[2].op = hw::StageOp::kGelu;
  chain.stages[2].imm = {gelu.b, gelu.c, gelu.one, gelu.output.multiplier, gelu.output.shift,
                         kS8.lo, kS8.hi};
  const std::vector<std::int32_t> biases = seeded_words(kTileCols, 12);
  const auto sums =
      std::make_shared<std::vector<std::int32_t>>(seeded_words(kTileRows * kTileCols, 20));
  add_unit<testbench::PostopPipelineRtl>(all, "postop_pipeline", lanes, *sums,
                                         [=](testbench::PostopPipelineRtl& unit, std::int32_t* x) {
                                           hw::ChainOperands operands;
                                           operands.accumulator = sums->data();
                                           operands.accumulator_pitch = kTileCols;
                                           operands.parameters = biases.data();
                                           operands.rows = kTileRows;
                                           operands.cols = kTileCols;
                                           return unit.run(chain, operands, x);
                                         });
}

/// The attention lines: 16 features, 128 queries and keys, every cell of them.
struct LineTraffic {
  explicit LineTraffic(bool dense) : bytes(kTileRows * kFeatures) {
    head.queries = head.keys = kTileRows;
    head.column_pointers = {0};
    for (std::uint16_t key = 0; key < kTileRows; ++key) {
      (dense ? head.dense_columns : head.sparse_columns).push_back(key);
      for (std::uint16_t query = 0; !dense && query < kTileRows; ++query) {
        head.row_indices.push_back(query);
      }
      if (!dense) {
        head.column_pointers.push_back(static_cast<std::uint32_t>(head.row_indices.size()));
      }
    }
    head.dense_keep.assign(head.dense_cells(), true);
    operands = {bytes.data(), kFeatures, bytes.data(), kFeatures,
                bytes.data(), kFeatures, kFeatures,    kFeatures};
    runs = hw::sddmm_runs(head, kFeatures, lines);
    work = testbench::score_work(head, operands, runs, 0);
  }
  // The work points into this object.
  LineTraffic(const LineTraffic&) = delete;
  LineTraffic& operator=(const LineTraffic&) = delete;

  static constexpr std::size_t kFeatures = 16;
  const hw::Machine::Attention lines = hw::find_machine("vitcod").attention;
  std::vector<std::int8_t> bytes;
  hw::SparseHead head;
  hw::AttentionOperands operands;
  hw::LineRuns runs;
  testbench::LineWork work;
};

inline void add_line(Subjects& all, bool dense) {
  const auto traffic = std::make_shared<LineTraffic>(dense);
  const std::uint32_t macs = traffic->lines.macs_per_line;
  const std::shared_ptr<testbench::AttentionLineRtl> rtl =
      dense ? testbench::make_denser_line(macs) : testbench::make_sparser_line(macs);
  all.push_back({rtl->block(), std::to_string(macs), [=] {
                   testbench::RtlCycles cycles;
                   (void)rtl->run(traffic->work, cycles);
                   return cycles.cycles;
                 }});
}

inline void add_decoder(Subjects& all) {
  const hw::HeadMix mix{
      2, 3, {60, -7, 3, 50, 20, 30}, {1, 2, 3}, {{40000, 22}, {40000, 22}, {40000, 22}}};
  const auto rtl = std::make_shared<testbench::AeDecoderRtl>(8);
  const std::vector<std::int8_t> in(kTileRows * 2 * 64, 5);
  const auto out = std::make_shared<std::vector<std::int8_t>>(kTileRows * 3 * 64);
  all.push_back({"ae_decoder", "8", [=] {
                   return rtl->mix(mix, in.data(), 64, kTileRows, out->data()).total.cycles;
                 }});
}

inline void add_halves(Subjects& all, testbench::Fp16Block block) {
  const auto rtl = std::make_shared<testbench::Fp16UnitRtl>(block);
  const auto y = std::make_shared<std::vector<hw::Half>>(kTileRows * kTileCols, hw::kHalfOne);
  const auto operation = block == testbench::Fp16Block::kMul ? hw::half_vector::Operation::kMultiply
                                                             : hw::half_vector::Operation::kAdd;
  all.push_back(
      {name_of(block), std::to_string(testbench::Fp16UnitRtl::kLanes), [=] {
         return rtl->run(operation, {y->data(), y->data(), false, y->size(), y->data()}).cycles;
       }});
}

/// A lane's part of a product of 1024 inputs and 16 slices of columns.
inline void add_tree(Subjects& all, std::uint32_t depth, std::uint32_t partial_sums) {
  hw::MatrixUnit unit;
  unit.depth = depth;
  unit.partial_sums = partial_sums;
  const auto rtl = std::make_shared<testbench::MpuTreeRtl>(unit);
  const auto operands =
      std::make_shared<std::vector<hw::Half>>(kTileRows * kTileCols, hw::kHalfOne);
  const auto y = std::make_shared<std::vector<hw::Half>>(16);
  hw::HalfGemv args;
  args.x = args.tiles = operands->data();
  args.k_tiles = 1024 / depth;
  args.slices = y->size();
  args.k_stride = 1;
  args.slice_stride = args.k_tiles;
  args.depth = depth;
  args.lanes = 1;
  args.y = y->data();
  all.push_back({"mpu_tree", std::to_string(depth) + "x" + std::to_string(partial_sums),
                 [=, kept = std::make_pair(operands, y)] { return rtl->run(args, 0, 0).cycles; }});
}

[[nodiscard]] inline Subjects subjects() {
  constexpr std::uint32_t kLanes[] = {4, 16};
  Subjects all;
  for (const std::uint32_t dim : {4U, 8U, 16U}) add_array(all, dim);
  add_accumulator(all, 4, 1);
  for (const std::uint32_t cols : {4U, 8U, 16U}) add_accumulator(all, cols, 2);
  add_root(all);
  for (const auto add :
       {add_requantizer, add_exp, add_gelu, add_softmax, add_layer_norm, add_pipeline}) {
    for (const std::uint32_t lanes : kLanes) add(all, lanes);
  }
  for (const bool dense : {false, true}) add_line(all, dense);
  add_decoder(all);
  add_halves(all, testbench::Fp16Block::kMul);
  add_halves(all, testbench::Fp16Block::kAdd);
  add_tree(all, 8, 4);
  add_tree(all, 64, 16);
  return all;
}

/// Cycles per second of CPU time: the best of some samples, because other programs take their share
/// of caches and clock.
[[nodiscard]] inline double rate(const std::function<std::uint64_t()>& operation) {
  constexpr int kSamples = 5;
  constexpr double kSampleSeconds = 0.2;
  double best = 0.0;
  for (int i = 0; i < kSamples; ++i) {
    const double start = cpu_seconds();
    double elapsed = 0.0;
    std::uint64_t cycles = 0;
    while (elapsed < kSampleSeconds) {
      cycles += operation();
      elapsed = cpu_seconds() - start;
    }
    best = std::max(best, static_cast<double>(cycles) / elapsed);
  }
  return best;
}

/// One line per block and size.
[[nodiscard]] inline nlohmann::ordered_json measure_rates() {
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  for (const Subject& subject : subjects()) {
    lines.push_back({{"block", subject.block},
                     {"size", subject.size},
                     {"mcycle_per_s", rate(subject.operation) * 1e-6}});
  }
  return lines;
}

}  // namespace systole::bench
