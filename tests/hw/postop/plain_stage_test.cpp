#include "hw/postop/plain_stage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>

#include "support/paths.h"
#include "tests/hw/postop/stage_sketch.h"

/// The plain stages against tests/golden/stages.json, whose values come from formulas in exact
/// fractions (script/train/make_stage_goldens.py), and the composed kernel against the same.
namespace systole::hw {
namespace {

using nlohmann::json;
using Words = std::vector<std::int32_t>;

/// The number of a name among `count` of a kind.
template <typename NameOf>
std::uint8_t number_of(const std::string& name, std::uint8_t count, NameOf name_of) {
  for (std::uint8_t i = 0; i < count; ++i) {
    if (name == name_of(i)) return i;
  }
  throw std::invalid_argument("no such name: " + name);
}

Stage stage_of(const json& golden) {
  Stage stage;
  stage.op = static_cast<StageOp>(number_of(golden.at("stage"), kStageOps, [](std::uint8_t i) {
    return stage_info(static_cast<StageOp>(i)).name;
  }));
  stage.operand =
      static_cast<Operand>(number_of(golden.at("operand"), kOperandKinds, [](std::uint8_t i) {
        return name_of(static_cast<Operand>(i));
      }));
  stage.rounding = static_cast<Rounding>(number_of(golden.at("rounding"), 3, [](std::uint8_t i) {
    return std::array{"half_up", "half_even", "floor"}.at(i);
  }));
  if (golden.contains("tensor")) {
    stage.tensor = static_cast<DType>(number_of(golden.at("tensor"), kDTypes, [](std::uint8_t i) {
      return name_of(static_cast<DType>(i));
    }));
  }
  stage.side = static_cast<Reduction>(number_of(golden.at("side"), kReductions, [](std::uint8_t i) {
    return name_of(static_cast<Reduction>(i));
  }));
  const auto imm = golden.at("imm").get<std::vector<std::int64_t>>();
  std::copy(imm.begin(), imm.end(), stage.imm.begin());
  return stage;
}

PlainRow row_of(const json& golden, const Chain& chain) {
  PlainRow row;
  row.x = golden.at("in").get<Words>();
  if (golden.contains("parameters")) {
    for (const auto& word : golden.at("parameters").get<std::vector<Words>>()) {
      row.parameters.insert(row.parameters.end(), word.begin(), word.end());
    }
  }
  if (golden.contains("y")) row.tensors = {golden.at("y").get<Words>()};
  row.statistics = golden.value("statistics", std::vector<std::uint32_t>{});
  row.statistics.resize(statistics_words(chain));
  row.accumulate_statistics = golden.at("continues");
  row.valid_cols = golden.at("valid_cols");
  return row;
}

/// The row by the composed kernel.
void apply_kernel(const Chain& chain, PlainRow& row) {
  Words out(row.x.size());
  std::vector<std::uint8_t> tensor(row.x.size() * sizeof(std::int32_t));
  for (const Words& y : row.tensors) {
    const std::size_t bytes = bytes_of(chain.stages[0].tensor);
    for (std::size_t i = 0; i < y.size(); ++i) std::memcpy(&tensor[i * bytes], &y[i], bytes);
  }
  ChainOperands operands;
  operands.accumulator = row.x.data();
  operands.parameters = row.parameters.data();
  operands.tensors[0].data = tensor.data();
  operands.row_statistics = row.statistics.data();
  operands.accumulate_statistics = row.accumulate_statistics;
  operands.out = out.data();
  operands.rows = 1;
  operands.cols = row.x.size();
  operands.valid_cols = row.valid_cols;
  apply_chain(chain, operands);
  row.x = out;
}

TEST(PlainStage, GivesTheGoldenValuesAndSoDoesTheKernel) {
  std::ifstream file(source_path("tests/golden/stages.json"));
  const json vectors = json::parse(file);
  std::set<std::string> stages;
  for (const json& golden : vectors.at("cases")) {
    const Chain chain{{stage_of(golden)}, DType::kS32};
    ASSERT_NO_THROW(check_chain(chain, {})) << golden;
    for (const auto apply : {apply_plain_row, apply_kernel}) {
      PlainRow row = row_of(golden, chain);
      const std::vector<std::uint32_t> before = row.statistics;
      apply(chain, row);
      EXPECT_EQ(row.x, golden.at("out").get<Words>()) << golden;
      EXPECT_EQ(row.statistics, golden.value("left", before)) << golden;
    }
    stages.insert(golden.at("stage"));
  }
  EXPECT_EQ(stages.size(), kStageOps - 1U) << "all but the transposition, which moves rows";
}

TEST(PlainStage, OfAChainReadOperandsInTheirOrder) {
  // ((x + 10) y - z) + the value before the chain, of which eight bits are left.
  Stage sum = test::with_operand(StageOp::kAdd, Operand::kChannel);
  Stage product = test::with_operand(StageOp::kMul, Operand::kTensor);
  product.imm = {0, -1000, 1000};
  Stage factor = test::with_operand(StageOp::kRequantise, Operand::kChannel);
  factor.imm = {0, 0, -1000, 1000};
  const Chain chain{{sum, product, factor, test::with_operand(StageOp::kSub, Operand::kTensor),
                     test::with_operand(StageOp::kAdd, Operand::kSaved)},
                    DType::kS8};
  PlainRow row;
  row.x = {1, 2, 3};
  row.parameters = {10, 20, 30, 1, 3, -1, 0, 1, 0};
  row.tensors = {{3, -5, 4}, {-6, 7, 8}};
  apply_plain_row(chain, row);
  EXPECT_EQ(row.x, (Words{33 + 6 + 1, -128, -128}));
}

TEST(PlainStage, SaturatesToEveryOutputType) {
  const Words in = {std::numeric_limits<std::int32_t>::min(), -1, 0, 200, 40000, 70000};
  const auto out = [&in](DType type) {
    PlainRow row;
    row.x = in;
    apply_plain_row({{}, type}, row);
    return row.x;
  };
  EXPECT_EQ(out(DType::kS8), (Words{-128, -1, 0, 127, 127, 127}));
  EXPECT_EQ(out(DType::kU8), (Words{0, 0, 0, 200, 255, 255}));
  EXPECT_EQ(out(DType::kS16), (Words{-32768, -1, 0, 200, 32767, 32767}));
  EXPECT_EQ(out(DType::kU16), (Words{0, 0, 0, 200, 40000, 65535}));
  EXPECT_EQ(out(DType::kS32), in);
}

TEST(PlainStage, RefusesOperandsThatDoNotFillTheColumns) {
  const auto refuses = [](const Stage& stage, const PlainRow& row) {
    PlainRow copy = row;
    EXPECT_THROW(apply_plain_row({{stage}, DType::kS32}, copy), std::invalid_argument);
  };
  PlainRow row;
  row.x = {1, 2, 3};
  refuses(test::stage(StageOp::kDivideRowSum), row);
  refuses(test::with_operand(StageOp::kAdd, Operand::kChannel), row);
  refuses(test::with_operand(StageOp::kAdd, Operand::kTensor), row);
  row.tensors = {{1, 2}};
  refuses(test::with_operand(StageOp::kAdd, Operand::kTensor), row);
  row.tensors = {{1, 2, 3}};
  refuses(test::stage(StageOp::kRope), row);
  row = {};
  row.x.resize(65537);
  refuses(test::stage(StageOp::kSoftmax), row);
}

}  // namespace
}  // namespace systole::hw
