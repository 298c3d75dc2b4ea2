#include "testbench/rtl/engine/half_engines.h"

#include <utility>

#include "testbench/rtl/drive/model_view.h"

namespace systole::testbench {
namespace {

std::vector<std::int32_t> words_of(const std::vector<hw::Half>& halves) {
  std::vector<std::int32_t> words;
  for (const hw::Half half : halves) words.push_back(half.bits);
  return words;
}

}  // namespace

MatrixLaneRtlEngine::MatrixLaneRtlEngine(const hw::MatrixUnit& unit, const RtlOptions& options,
                                         RtlCounts& counts)
    : unit_(unit), view_(options.view), rtl_(unit, options), counts_(counts) {}

void MatrixLaneRtlEngine::gemv(const hw::HalfGemv& args) {
  const std::size_t columns = args.slices * args.lanes;
  std::vector<hw::Half> expected(args.rows * columns);
  hw::HalfGemv model = args;
  model.y = expected.data();
  model.y_pitch = columns;
  hw::half_gemv(model);
  for (std::size_t row = 0; row < args.rows; ++row) {
    for (std::size_t lane = 0; lane < args.lanes; ++lane) {
      run_lane(args, row, lane, expected.data() + row * columns);
    }
  }
  if (rtl_.failed() && !std::exchange(failed_, true)) ++counts_.mismatches;
}

void MatrixLaneRtlEngine::run_lane(const hw::HalfGemv& args, std::size_t row, std::size_t lane,
                                   const hw::Half* expected) {
  std::vector<hw::Half> sums;
  for (std::size_t slice = 0; slice < args.slices; ++slice) {
    sums.push_back(expected[slice * args.lanes + lane]);
  }
  const std::vector<std::int32_t> words = words_of(sums);
  const std::uint64_t contract =
      hw::matrix_cycles(unit_, args.k_tiles * args.depth, args.slices * unit_.lanes);
  if (view_) view_->begin(words.data(), contract);
  const RtlCycles cycles = rtl_.run(args, row, lane);
  ++counts_.operations;
  counts_.cycles += cycles.cycles;
  if (cycles.cycles != contract) ++counts_.mismatches;
  for (std::size_t slice = 0; slice < args.slices; ++slice) {
    const hw::Half sum = args.y[row * args.y_pitch + slice * args.lanes + lane];
    if (sum != sums[slice]) ++counts_.mismatches;
  }
}

HalfVectorRtlEngine::HalfVectorRtlEngine(Fp16Block block, const RtlOptions& options,
                                         RtlCounts& counts,
                                         std::unique_ptr<hw::HalfVectorEngine> others)
    : block_(block),
      view_(options.view),
      rtl_(block, options),
      counts_(counts),
      others_(std::move(others)) {}

void HalfVectorRtlEngine::apply(hw::half_vector::Operation operation,
                                const hw::half_vector::Elements& elements) {
  if (block_of(operation) != block_) {
    others_->apply(operation, elements);
    return;
  }
  std::vector<hw::Half> expected(elements.n);
  hw::half_vector::Elements model = elements;
  model.y = expected.data();
  hw::half_vector::apply(operation, model);
  const std::vector<std::int32_t> words = words_of(expected);
  const std::uint64_t contract =
      hw::half_vector::cycles(elements.n, Fp16UnitRtl::kLanes, Fp16UnitRtl::depth(block_));
  if (view_) view_->begin(words.data(), contract);
  const RtlCycles cycles = rtl_.run(operation, elements);
  ++counts_.operations;
  counts_.cycles += cycles.cycles;
  if (cycles.cycles != contract) ++counts_.mismatches;
  for (std::size_t i = 0; i < elements.n; ++i) {
    if (elements.y[i] != expected[i]) ++counts_.mismatches;
  }
  if (rtl_.failed() && !std::exchange(failed_, true)) ++counts_.mismatches;
}

std::unique_ptr<hw::MatrixLaneEngine> make_matrix_lane_engine(const hw::MatrixUnit& unit,
                                                              HalfBackends backends,
                                                              const RtlOptions& options,
                                                              RtlReport& report) {
  if (!backends.mpu_tree) return std::make_unique<hw::MatrixLaneModel>();
  return std::make_unique<MatrixLaneRtlEngine>(unit, options.for_block("mpu_tree", 1),
                                               report["mpu_tree"]);
}

std::unique_ptr<hw::HalfVectorEngine> make_half_vector_engine(HalfBackends backends,
                                                              const RtlOptions& options,
                                                              RtlReport& report) {
  std::unique_ptr<hw::HalfVectorEngine> engine = std::make_unique<hw::HalfVectorModel>();
  for (const auto& [block, wanted] : {std::make_pair(Fp16Block::kMul, backends.fp16_mul),
                                      std::make_pair(Fp16Block::kAdd, backends.fp16_add)}) {
    if (!wanted) continue;
    const std::string name = name_of(block);
    engine = std::make_unique<HalfVectorRtlEngine>(
        block, options.for_block(name, Fp16UnitRtl::kLanes), report[name], std::move(engine));
  }
  return engine;
}

}  // namespace systole::testbench
