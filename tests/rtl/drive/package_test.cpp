#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>

#include "hw/function/layernorm.h"
#include "hw/function/softmax.h"
#include "hw/machine/machine.h"
#include "hw/machine/matrix_unit.h"
#include "hw/number/dyadic.h"
#include "hw/number/half.h"
#include "hw/number/int_exp.h"
#include "hw/number/softmax_mode.h"
#include "hw/number/unit_depths.h"
#include "hw/postop/stage.h"
#include "hw/postop/stage_constants.h"
#include "hw/program/program.h"
#include "hw/stream/stream_functions.h"
#include "support/paths.h"
#include "testbench/rtl/attention/head_mix_line_rtl.h"

namespace systole::testbench {
namespace {

using Constants = std::map<std::string, std::uint64_t>;

/// A number of SystemVerilog (5, 8'd5, 'h7c00), or a constant that `known` has.
std::uint64_t term(const std::string& text, const Constants& known) {
  if (std::isalpha(static_cast<unsigned char>(text.at(0))) != 0) return known.at(text);
  const std::size_t tick = text.find('\'');
  std::size_t used = 0;
  const std::string digits = tick == std::string::npos ? text : text.substr(tick + 2);
  const bool hex = tick != std::string::npos && text.at(tick + 1) == 'h';
  const std::uint64_t value = std::stoull(digits, &used, hex ? 16 : 10);
  if (used != digits.size()) throw std::invalid_argument(text);
  return value;
}

/// Reads "Name = a + b" into `constants`.
void read_constant(std::string text, Constants& constants) {
  const auto blank = [](unsigned char c) { return std::isspace(c) != 0; };
  text.erase(std::remove_if(text.begin(), text.end(), blank), text.end());
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) throw std::invalid_argument(text);
  std::istringstream sum(text.substr(equals + 1));
  std::uint64_t value = 0;
  for (std::string part; std::getline(sum, part, '+');) value += term(part, constants);
  const bool is_new = constants.emplace(text.substr(0, equals), value).second;
  if (!is_new) throw std::invalid_argument(text + ": twice");
}

/// Localparams and members of enumerations of a package. Throws std::exception for anything else.
Constants read_package(std::istream& in) {
  std::string text;
  for (std::string line; std::getline(in, line);) text += line.substr(0, line.find("//")) + ' ';
  const std::size_t begin = text.find(';') + 1;  // of the package's name
  const std::string localparam = "localparam int unsigned ", enumeration = "typedef enum logic ";
  Constants constants;
  std::istringstream statements(text.substr(begin, text.find("endpackage") - begin));
  for (std::string statement; std::getline(statements, statement, ';');) {
    statement.erase(0, std::min(statement.find_first_not_of(' '), statement.size()));
    if (statement.rfind(localparam, 0) == 0) {
      read_constant(statement.substr(localparam.size()), constants);
    } else if (statement.rfind(enumeration, 0) == 0) {
      const std::size_t open = statement.find('{') + 1;
      std::istringstream members(statement.substr(open, statement.find('}') - open));
      for (std::string member; std::getline(members, member, ',');) {
        read_constant(member, constants);
      }
    } else if (!statement.empty()) {
      throw std::invalid_argument("neither a localparam nor an enumeration: " + statement);
    }
  }
  return constants;
}

template <typename Enum>
std::uint64_t code(Enum member) {
  return static_cast<std::uint64_t>(member);
}

std::uint64_t latency(hw::StageOp op) { return hw::stage_info(op).latency; }

Constants counterparts() {
  using hw::ArrayOverlap, hw::Operand, hw::Rounding, hw::SoftmaxMode, hw::StageOp;
  hw::Stage softmax;
  softmax.op = StageOp::kSoftmax;
  softmax.imm[3] = hw::kDefaultExpFractionBits;
  return {
      {"MultiplyDepth", hw::unit_depth::kMultiply},
      {"ShiftDepth", hw::unit_depth::kShift},
      {"ClampDepth", hw::unit_depth::kClamp},
      {"AddDepth", hw::unit_depth::kAdd},
      {"RequantiseDepth", hw::unit_depth::kRequantise},
      {"MacDepth", hw::unit_depth::kMac},
      {"ExpDepth", hw::kIntExpLatency},
      {"GeluDepth", latency(StageOp::kGelu)},
      {"SoftmaxDepth", latency(StageOp::kSoftmax)},
      {"LayerNormDepth", latency(StageOp::kLayerNorm)},
      {"DivideDepth", latency(StageOp::kDivide)},
      {"HalfMultiplyDepth", hw::MatrixUnit{}.multiply},
      {"HalfAddDepth", hw::MatrixUnit{}.add},
      {"ReciprocalBits", hw::kIntExpReciprocalBits},
      {"HalfInfinity", hw::kHalfInfinity.bits},
      {"HalfNan", hw::kHalfNan.bits},
      {"MaxCols", hw::kLayerNormMaxLength},
      {"SoftmaxFactorBits", hw::softmax_constants(softmax).factor_bits},
      {"DeferredReciprocalBits", hw::kDeferredReciprocalBits},
      {"DeferredFractionBits", hw::kDeferredFractionBits},
      {"LayerNormInputBits", hw::kLayerNormMaxInputBits},
      {"LayerNormFactorBits", hw::kLayerNormFactorBits},
      {"StreamSumBits", hw::stream::kRowSumBits},
      {"StreamScale", hw::stream::SoftmaxRow::kSoftmaxScale},
      {"HalfUp", code(Rounding::kHalfUp)},
      {"HalfEven", code(Rounding::kHalfEven)},
      {"Floor", code(Rounding::kFloor)},
      {"Deferred", code(SoftmaxMode::kDeferred)},
      {"NormalisedFloor", code(SoftmaxMode::kNormalisedFloor)},
      {"NormalisedRound", code(SoftmaxMode::kNormalisedRound)},
      {"OverlapNone", code(ArrayOverlap::kNone)},
      {"OverlapPreload", code(ArrayOverlap::kPreload)},
      {"OverlapFull", code(ArrayOverlap::kFull)},
      {"Add", code(StageOp::kAdd)},
      {"Requantise", code(StageOp::kRequantise)},
      {"Sub", code(StageOp::kSub)},
      {"Clamp", code(StageOp::kClamp)},
      {"Relu", code(StageOp::kRelu)},
      {"Gelu", code(StageOp::kGelu)},
      {"Softmax", code(StageOp::kSoftmax)},
      {"DivideRowSum", code(StageOp::kDivideRowSum)},
      {"LayerNorm", code(StageOp::kLayerNorm)},
      {"Mul", code(StageOp::kMul)},
      {"Mask", code(StageOp::kMask)},
      {"LayerNormApply", code(StageOp::kLayerNormApply)},
      {"RmsNormApply", code(StageOp::kRmsNormApply)},
      {"Transpose", code(StageOp::kTranspose)},
      {"ReduceNone", code(hw::Reduction::kNone)},
      {"ReduceRowMax", code(hw::Reduction::kRowMax)},
      {"ReduceRowSum", code(hw::Reduction::kRowSum)},
      {"ReduceSumSquares", code(hw::Reduction::kSumSquares)},
      {"ReduceRowPeak", code(hw::Reduction::kRowPeak)},
      {"TypeS8", code(hw::DType::kS8)},
      {"TypeU8", code(hw::DType::kU8)},
      {"TypeS16", code(hw::DType::kS16)},
      {"TypeS32", code(hw::DType::kS32)},
      {"TypeU16", code(hw::DType::kU16)},
      {"OpEnd", code(hw::Opcode::kEnd)},
      {"OpLoad", code(hw::Opcode::kLoad)},
      {"OpLoadAccumulator", code(hw::Opcode::kLoadAccumulator)},
      {"OpMatmul", code(hw::Opcode::kMatmul)},
      {"OpStore", code(hw::Opcode::kStore)},
      {"OpMove", code(hw::Opcode::kMove)},
      {"OpHost", code(hw::Opcode::kHost)},
      {"Immediate", code(Operand::kImmediate)},
      {"Channel", code(Operand::kChannel)},
      {"Row", code(Operand::kRow)},
      {"Tensor", code(Operand::kTensor)},
      {"Saved", code(Operand::kSaved)},
      {"LoadUnit", code(hw::Unit::kLoad)},
      {"ComputeUnit", code(hw::Unit::kCompute)},
      {"StoreUnit", code(hw::Unit::kStore)},
      {"MixWeight", code(MixField::kWeight)},
      {"MixBias", code(MixField::kBias)},
      {"MixMultiplier", code(MixField::kMultiplier)},
      {"MixShift", code(MixField::kShift)},
  };
}

TEST(RtlPackage, HasTheConstantsOfTheModel) {
  std::ifstream file(source_path("rtl/common/systole_pkg.sv"));
  ASSERT_TRUE(file);
  EXPECT_EQ(read_package(file), counterparts());
}

TEST(RtlPackage, IsReadInFull) {
  std::istringstream sums(
      "package p;\n localparam int unsigned A = 2;  // two\n"
      " localparam int unsigned B =\n A + 'h10 + 8'd1;\n"
      " typedef enum logic [1:0] {\n C = 2'd0,\n D = 2'd3\n } e;\nendpackage\n");
  EXPECT_EQ(read_package(sums), (Constants{{"A", 2}, {"B", 19}, {"C", 0}, {"D", 3}}));
  for (const char* const text :
       {"parameter int A = 2;", "localparam int unsigned A = B;",
        "localparam int unsigned A = 2; localparam int unsigned A = 2;",
        "typedef enum logic {A} e;", "localparam int unsigned A = 2 * 3;"}) {
    std::istringstream other("package p; " + std::string(text) + " endpackage");
    EXPECT_ANY_THROW(static_cast<void>(read_package(other))) << text;
  }
}

}  // namespace
}  // namespace systole::testbench
