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
#include "hw/kernel/row_kernels.h"
#include "hw/number/int_exp.h"
#include "hw/postop/postop.h"
#include "testbench/rtl/array/accumulator_sram_rtl.h"
#include "testbench/rtl/array/systolic_array_rtl.h"
#include "testbench/rtl/attention/attention_line_rtl.h"
#include "testbench/rtl/attention/attention_softmax_rtl.h"
#include "testbench/rtl/attention/head_mix_line_rtl.h"
#include "testbench/rtl/nonlinear/stream_softmax_rtl.h"
#include "testbench/rtl/postop/chain_rtl.h"
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
  const std::shared_ptr<testbench::SystolicArrayRtl> rtl =
      testbench::make_systolic_array(dim, hw::ArrayOverlap::kFull);
  const auto product = std::make_shared<Product>(kTileRows, 16 * dim, 16 * dim, false, false);
  const std::string side = std::to_string(dim);
  all.push_back({"systolic_array", side + "x" + side,
                 [=] { return rtl->matmul(product->args, true).cycles; }});
}

inline void add_output_array(Subjects& all, std::uint32_t rows, std::uint32_t cols) {
  const std::shared_ptr<testbench::SystolicArrayRtl> rtl =
      testbench::make_output_array(rows, cols, hw::ArrayOverlap::kFull);
  const auto product = std::make_shared<Product>(kTileRows, 16 * cols, kTileRows, false, false);
  all.push_back({"output_array", std::to_string(rows) + "x" + std::to_string(cols),
                 [=] { return rtl->matmul(product->args, true).cycles; }});
}

/// The array accumulates into a tile in one bank while the post-op pipeline reads a tile in the
/// other, as with two output tiles in turns.
class AccumulatorTraffic {
 public:
  AccumulatorTraffic(std::uint32_t cols, std::uint32_t ports)
      : rtl_(testbench::make_accumulator_sram(cols, {2, ports, kRowsPerBank})),
        sums_(seeded_words(kTileRows * cols, 20)),
        data_(sums_.size()) {
    for (std::uint64_t row = 0; row < kTileRows; ++row) {
      writes_.push_back({row, sums_.data() + row * cols, true});
      reads_.push_back({kRowsPerBank + row, data_.data() + row * cols});
    }
    // The memory has no reset.
    std::vector<testbench::AccumulatorSramRtl::Write> first = writes_;
    for (auto& write : first) write.accumulate = false;
    rtl_->run(first, {});
    for (auto& write : first) write.row += kRowsPerBank;
    rtl_->run(first, {});
  }
  // The streams point into this object.
  AccumulatorTraffic(const AccumulatorTraffic&) = delete;
  AccumulatorTraffic& operator=(const AccumulatorTraffic&) = delete;

  std::uint64_t run() {
    const testbench::AccumulatorSramRtl::Cycles cycles = rtl_->run(writes_, reads_);
    return std::max(cycles.write.cycles, cycles.read.cycles);
  }

 private:
  static constexpr std::uint64_t kRowsPerBank = 2048;

  std::unique_ptr<testbench::AccumulatorSramRtl> rtl_;
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
  const std::shared_ptr<testbench::ISqrtRtl> rtl = testbench::make_i_sqrt();
  std::mt19937_64 random(1);
  std::vector<std::uint64_t> numbers(kTileRows);
  for (std::uint64_t& number : numbers) number = random() >> 24;
  all.push_back({"i_sqrt", "64", [=] { return rtl->roots(numbers).cycles.cycles; }});
}

/// A block over a tile of `words` through a chain, with parameters of its channels.
inline void add_chain(Subjects& all, std::shared_ptr<testbench::ChainRtl> rtl, std::uint32_t lanes,
                      hw::Chain chain, std::vector<std::int32_t> words,
                      std::vector<std::int32_t> parameters = {}) {
  const auto out = std::make_shared<std::vector<std::int32_t>>(words.size());
  const auto sums = std::make_shared<std::vector<std::uint32_t>>(kTileRows);
  all.push_back({rtl->block(), std::to_string(lanes),
                 [=, words = std::move(words), parameters = std::move(parameters)] {
                   hw::ChainOperands operands;
                   operands.accumulator = words.data();
                   operands.accumulator_pitch = operands.cols = kTileCols;
                   operands.rows = kTileRows;
                   operands.parameters = parameters.data();
                   operands.row_statistics = sums->data();
                   return rtl->run(chain, operands, out->data()).cycles;
                 }});
}

[[nodiscard]] inline hw::Stage stage_of(hw::StageOp op, std::vector<std::int64_t> immediates) {
  hw::Stage stage;
  stage.op = op;
  std::copy(immediates.begin(), immediates.end(), stage.imm.begin());
  return stage;
}

inline void add_exp(Subjects& all, std::uint32_t lanes) {
  const std::shared_ptr<testbench::IExpRtl> rtl = testbench::make_i_exp(lanes);
  std::vector<std::int32_t> arguments = seeded_words(kTileRows * kTileCols, 12);
  for (std::int32_t& argument : arguments) argument = std::min(argument, -argument);
  all.push_back(
      {rtl->block(), std::to_string(lanes), [=]() -> std::uint64_t {
         std::vector<std::int32_t> x = arguments;
         return rtl->exponentials(x.data(), kTileCols, kTileRows, hw::kDefaultIntExp).cycles;
       }});
}

/// `narrow`: with the units that are not built in as many lanes as vitcod has.
inline void add_units(Subjects& all, std::uint32_t lanes, bool narrow = true) {
  using hw::StageOp;
  const auto words = [](int bits) { return seeded_words(kTileRows * kTileCols, bits); };
  const hw::GeluConstants gelu = hw::make_gelu_constants(0.04, 0.03);
  const hw::SoftmaxConstants softmax = hw::make_softmax_constants(1e-4);
  const hw::Stage requantise = stage_of(StageOp::kRequantise, {43690, 26, kS8.lo, kS8.hi});
  const hw::Stage gelu_stage = stage_of(
      StageOp::kGelu,
      {gelu.b, gelu.c, gelu.one, gelu.output.multiplier, gelu.output.shift, kS8.lo, kS8.hi});
  const hw::Stage softmax_stage =
      stage_of(StageOp::kSoftmax,
               {static_cast<std::int64_t>(softmax.mode), softmax.score.multiplier,
                softmax.score.shift, softmax.exp.fraction_bits, softmax.exp_to_code.multiplier,
                softmax.exp_to_code.shift, softmax.output_bits});
  const hw::Stage norm = stage_of(StageOp::kLayerNorm, {15, 20, kS8.lo, kS8.hi});
  hw::Stage bias;
  bias.operand = hw::Operand::kChannel;
  const auto alone = [](const hw::Stage& stage) { return hw::Chain{{stage}, hw::DType::kS8}; };
  add_chain(all, testbench::make_requantizer(lanes), lanes, alone(requantise), words(20));
  if (narrow) add_exp(all, lanes);
  add_chain(all, testbench::make_i_gelu(lanes), lanes, alone(gelu_stage), words(8));
  if (narrow) {
    add_chain(all, testbench::make_softmax_unit(lanes), lanes, alone(softmax_stage), words(18));
  }
  add_chain(all, testbench::make_layernorm_unit(lanes), lanes, alone(norm), words(16),
            seeded_words(2 * kTileCols, 16));
  if (!narrow) return;
  // As after the first product of a feed-forward network.
  add_chain(all, testbench::make_postop_pipeline(lanes), lanes,
            {{bias, requantise, gelu_stage}, hw::DType::kS8}, words(20),
            seeded_words(kTileCols, 12));
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

/// Rows of kept scores, one after the other.
inline void add_attention_softmax(Subjects& all) {
  const std::shared_ptr<testbench::AttentionSoftmaxRtl> rtl =
      testbench::make_attention_softmax(testbench::kSoftmaxLanes);
  const auto rows = std::make_shared<testbench::ScoreRows>();
  rows->scores = seeded_words(kTileRows * kTileCols, 18);
  for (std::size_t row = 1; row <= kTileRows; ++row) rows->ends.push_back(row * kTileCols);
  const hw::SoftmaxConstants constants = hw::make_softmax_constants(1e-4);
  all.push_back({"attention_softmax", std::to_string(testbench::kSoftmaxLanes), [=] {
                   std::vector<std::uint8_t> codes;
                   std::vector<std::uint32_t> sums;
                   return rtl->run(*rows, constants, codes, sums).cycles;
                 }});
}

/// The softmax of a streaming core, rows of as many scores.
inline void add_stream_softmax(Subjects& all) {
  const std::shared_ptr<testbench::StreamSoftmaxRtl> rtl = testbench::make_stream_softmax();
  std::vector<std::int8_t> scores;
  for (const std::int32_t word : seeded_words(kTileRows * kTileCols, 8)) {
    scores.push_back(static_cast<std::int8_t>(word));
  }
  all.push_back({"stream_softmax", "16", [=] {
                   std::vector<testbench::StreamSoftmaxRtl::Row> rows;
                   std::vector<std::uint8_t> probabilities;
                   return rtl->run(scores, kTileCols, rows, probabilities).cycles;
                 }});
}

inline void add_decoder(Subjects& all) {
  const hw::HeadMix mix{
      2, 3, {60, -7, 3, 50, 20, 30}, {1, 2, 3}, {{40000, 22}, {40000, 22}, {40000, 22}}};
  const std::shared_ptr<testbench::HeadMixLineRtl> rtl = testbench::make_head_mix_line(8);
  const std::vector<std::int8_t> in(kTileRows * 2 * 64, 5);
  const auto out = std::make_shared<std::vector<std::int8_t>>(kTileRows * 3 * 64);
  all.push_back({"head_mix_line", "8", [=] {
                   return rtl->mix(mix, in.data(), 64, kTileRows, out->data()).total.cycles;
                 }});
}

inline void add_halves(Subjects& all, testbench::Fp16Block block) {
  const std::shared_ptr<testbench::Fp16UnitRtl> rtl = testbench::make_fp16_unit(block);
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
  const std::shared_ptr<testbench::MpuTreeRtl> rtl = testbench::make_mpu_tree(unit);
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
  add_output_array(all, 3, 5);
  add_output_array(all, 4, 4);
  add_output_array(all, 64, 8);
  add_accumulator(all, 4, 1);
  for (const std::uint32_t cols : {4U, 8U, 16U}) add_accumulator(all, cols, 2);
  add_root(all);
  for (const std::uint32_t lanes : kLanes) add_units(all, lanes);
  add_units(all, 64, false);
  add_stream_softmax(all);
  for (const bool dense : {false, true}) add_line(all, dense);
  add_attention_softmax(all);
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
