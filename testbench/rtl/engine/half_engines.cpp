#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "testbench/rtl/drive/rtl_check.h"
#include "testbench/rtl/drive/system_time.h"
#include "testbench/rtl/engine/engines.h"
#include "testbench/rtl/engine/own_block.h"
#include "testbench/rtl/ring/fp16_unit_rtl.h"
#include "testbench/rtl/ring/mpu_tree_rtl.h"

namespace systole::testbench {
namespace {

std::vector<std::int32_t> words_of(const std::vector<hw::Half>& halves) {
  std::vector<std::int32_t> words;
  for (const hw::Half half : halves) words.push_back(half.bits);
  return words;
}

class MatrixLaneRtlEngine final : public TimedRtl<hw::MatrixLaneEngine> {
 public:
  MatrixLaneRtlEngine(const hw::MatrixUnit& unit, std::unique_ptr<MpuTreeRtl> rtl,
                      const RtlOptions& options, RtlCounts& counts)
      : TimedRtl(options.time), unit_(unit), rtl_(std::move(rtl)), check_(counts, options) {}

  void gemv(const hw::HalfGemv& args) override {
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
    check_.assertions(rtl_->failed());
  }

 private:
  void run_lane(const hw::HalfGemv& args, std::size_t row, std::size_t lane,
                const hw::Half* expected) {
    std::vector<hw::Half> sums;
    for (std::size_t slice = 0; slice < args.slices; ++slice) {
      sums.push_back(expected[slice * args.lanes + lane]);
    }
    const std::vector<std::int32_t> words = words_of(sums);
    check_.operation();
    check_.begin(hw::matrix_cycles(unit_, args.k_tiles * args.depth, args.slices * unit_.lanes),
                 words.data());
    check_.end(check_.run([&] { return rtl_->run(args, row, lane); }).cycles);
    for (std::size_t slice = 0; slice < args.slices; ++slice) {
      check_.values(args.y + row * args.y_pitch + slice * args.lanes + lane, &sums[slice], 1);
    }
  }

  hw::MatrixUnit unit_;
  std::unique_ptr<MpuTreeRtl> rtl_;
  RtlCheck check_;
};

class HalfVectorRtlEngine final : public TimedRtl<hw::HalfVectorEngine> {
 public:
  /// What is not `block`'s goes to `others`.
  HalfVectorRtlEngine(Fp16Block block, std::unique_ptr<Fp16UnitRtl> rtl, const RtlOptions& options,
                      RtlCounts& counts, std::unique_ptr<hw::HalfVectorEngine> others)
      : TimedRtl(options.time),
        block_(block),
        rtl_(std::move(rtl)),
        check_(counts, options),
        others_(std::move(others)) {}

  void apply(hw::half_vector::Operation operation,
             const hw::half_vector::Elements& elements) override {
    if (block_of(operation) != block_) {
      others_->apply(operation, elements);
      return;
    }
    std::vector<hw::Half> expected(elements.n);
    hw::half_vector::Elements model = elements;
    model.y = expected.data();
    hw::half_vector::apply(operation, model);
    const std::vector<std::int32_t> words = words_of(expected);
    check_.operation();
    check_.begin(
        hw::half_vector::cycles(elements.n, Fp16UnitRtl::kLanes, Fp16UnitRtl::depth(block_)),
        words.data());
    check_.end(check_.run([&] { return rtl_->run(operation, elements); }).cycles);
    check_.values(elements.y, expected.data(), elements.n);
    check_.assertions(rtl_->failed());
  }

 private:
  Fp16Block block_;
  std::unique_ptr<Fp16UnitRtl> rtl_;
  RtlCheck check_;
  std::unique_ptr<hw::HalfVectorEngine> others_;
};

}  // namespace

std::unique_ptr<hw::MatrixLaneEngine> make_matrix_lane_engine(const hw::MatrixUnit& unit,
                                                              HalfBackends backends,
                                                              const RtlOptions& options,
                                                              RtlReport& report) {
  if (!backends.mpu_tree) return std::make_unique<hw::MatrixLaneModel>();
  const RtlOptions its = options.for_block("mpu_tree", 1);
  RtlCounts& counts = report["mpu_tree"];
  const OwnBlock* const own = find_own(options, "mpu_tree", "mpu_tree",
                                       {{"depth", "matrix.depth", unit.depth},
                                        {"partial_sums", "matrix.partial_sums", unit.partial_sums}},
                                       counts);
  OwnArguments arguments;
  arguments.matrix = unit;
  return std::make_unique<MatrixLaneRtlEngine>(
      unit, own == nullptr ? make_mpu_tree(unit, its) : make_own<MpuTreeRtl>(*own, arguments, its),
      its, counts);
}

std::unique_ptr<hw::HalfVectorEngine> make_half_vector_engine(HalfBackends backends,
                                                              const RtlOptions& options,
                                                              RtlReport& report) {
  std::unique_ptr<hw::HalfVectorEngine> engine = std::make_unique<hw::HalfVectorModel>();
  for (const auto& [block, wanted] : {std::make_pair(Fp16Block::kMul, backends.fp16_mul),
                                      std::make_pair(Fp16Block::kAdd, backends.fp16_add)}) {
    if (!wanted) continue;
    const std::string name = name_of(block);
    const RtlOptions its = options.for_block(name, Fp16UnitRtl::kLanes);
    RtlCounts& counts = report[name];
    const OwnBlock* const own = find_own(options, name, name, {}, counts);
    engine = std::make_unique<HalfVectorRtlEngine>(
        block, own == nullptr ? make_fp16_unit(block, its) : make_own<Fp16UnitRtl>(*own, {}, its),
        its, counts, std::move(engine));
  }
  return engine;
}

}  // namespace systole::testbench
