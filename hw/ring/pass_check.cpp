#include <algorithm>

#include "hw/number/half.h"
#include "hw/ring/pass_image.h"

namespace systole::hw::dfx {
namespace {

/// More tiles, slices or heads than any instruction has: no product of sizes overflows.
constexpr std::uint32_t kMaxCount = 1U << 20;

/// Looks at one instruction; the first thing that is wrong counts.
class InstructionCheck {
 public:
  InstructionCheck(const Instruction& instruction, const Machine& machine, const PassLimits& limits)
      : i_(instruction), machine_(machine), limits_(limits), depth_(machine.matrix.depth) {}

  std::string problem(std::size_t exchanges) {
    if (static_cast<std::size_t>(i_.op) >= kOpcodes) return "found no opcode";
    require(static_cast<std::size_t>(i_.phase) < kPhases, "phase");
    require(i_.second <= Second::kMemory, "kind of second operand");
    require(i_.function <= TableFunction::kSilu, "function");
    if (i_.op == Opcode::kSync) {
      require(i_.exchange < exchanges, "exchange");
    } else if (unit_of(i_.op) == Unit::kMatrix) {
      product();
    } else if (unit_of(i_.op) == Unit::kDma) {
      cache();
    } else if (i_.op == Opcode::kRecip || i_.op == Opcode::kRecipSqrt) {
      require(i_.second == Second::kScalar, "operand, expected a scalar");
      scalars("other", i_.other, 1);
      scalars("result", i_.result, 1);
    } else if (i_.op == Opcode::kRotate) {
      rotation();
    } else {
      vector();
    }
    return problem_;
  }

 private:
  void require(bool holds, const char* what, const char* of = "") {
    if (holds || !problem_.empty()) return;
    problem_ = std::string(name_of(i_.op)) + ": found no such " + what + of;
  }
  void registers(const char* of, std::uint64_t first, std::uint64_t elements) {
    require(first + elements <= limits_.register_elements, "register: ", of);
  }
  void scalars(const char* of, std::uint64_t first, std::uint64_t count) {
    require(first + count <= kScalars, "scalar: ", of);
  }
  void memory(const char* of, std::uint64_t bytes_there, std::uint64_t address,
              std::uint64_t bytes) {
    require(address % kHalfBytes == 0 && address <= bytes_there && bytes <= bytes_there - address,
            "address: ", of);
  }
  void counts(const char* of, std::uint32_t count) {
    require(count <= kMaxCount, "number of ", of);
  }

  void product() {
    const MatrixOperand& weights = i_.weights;
    const std::uint64_t lanes = machine_.matrix.unit(weights.int8).lanes;
    require(i_.rows == 1 || (i_.op != Opcode::kMaskedMm && i_.rows != 0), "number of rows");
    counts("rows", i_.rows);
    counts("K tiles", weights.k_tiles);
    counts("slices", weights.slices);
    require(weights.block != 0 || weights.slices == 0, "number of slices of a block");
    require(weights.slices != 0 || !i_.has_bias, "bias without columns");
    if (!problem_.empty()) return;
    const std::uint64_t last_row = std::uint64_t{i_.rows - 1} * i_.pitch;
    const std::uint64_t columns = weights.slices * lanes;
    require(i_.src % depth_ == 0, "register: source");
    registers("source", i_.src + last_row, std::uint64_t{weights.k_tiles} * depth_);
    registers("destination", i_.dst + last_row, columns);
    const std::uint64_t tile = std::uint64_t{depth_} * lanes * (weights.int8 ? 1 : kHalfBytes);
    memory("weights", weights.in_ddr ? limits_.ddr_bytes : limits_.hbm_bytes, weights.address,
           std::uint64_t{weights.k_tiles} * weights.slices * tile);
    if (i_.has_bias) memory("bias", limits_.ddr_bytes, i_.memory, columns * kHalfBytes);
    if (weights.int8) {
      memory("scales", limits_.ddr_bytes, i_.scales, columns * kHalfBytes);
      scalars("scale", i_.other, i_.rows);
    }
    if (i_.function != TableFunction::kNone) {
      registers("function", i_.dst + last_row, i_.elements);
    }
    if (i_.op == Opcode::kMaskedMm) {
      const std::uint64_t whole = (std::uint64_t{i_.elements} + depth_ - 1) / depth_ * depth_;
      registers("scores", i_.dst, whole);
      scalars("maximum", i_.result, 1);
    }
    if (i_.finds_largest) {
      registers("winner", i_.winner + last_row, depth_);
      require(i_.elements <= columns, "column");
    }
  }

  /// Of whole registers, one after the other.
  void heads() {
    counts("heads", i_.heads);
    counts("elements", i_.elements);
    require(i_.heads != 0 && i_.elements != 0, "number of heads or elements");
    require(i_.elements % depth_ == 0, "head, expected whole registers");
    require(i_.src % depth_ == 0, "register: source");
  }

  void cache() {
    heads();
    if (!problem_.empty()) return;
    const bool keys = i_.op == Opcode::kWriteKeys;
    const std::uint64_t together = keys ? machine_.matrix.lanes : depth_;
    const std::uint64_t block = together * i_.elements * kHalfBytes;
    registers("source", i_.src, std::uint64_t{i_.heads} * i_.elements);
    // Each alone first, so that no sum overflows.
    require(i_.head_bytes <= limits_.hbm_bytes && i_.memory <= limits_.hbm_bytes, "address: cache");
    if (!problem_.empty()) return;
    memory("cache", limits_.hbm_bytes, i_.memory + std::uint64_t{i_.heads - 1} * i_.head_bytes,
           (i_.token / together + 1) * block);
  }

  void rotation() {
    heads();
    require(i_.second == Second::kMemory, "operand, expected cosines and sines in memory");
    require(i_.dst % depth_ == 0, "register: begin");
    if (!problem_.empty()) return;
    registers("source", i_.src, std::uint64_t{i_.heads} * i_.elements);
    registers("destination", i_.dst, std::uint64_t{i_.heads} * i_.elements);
    memory("cosines and sines", limits_.ddr_bytes, i_.memory, 2 * i_.elements * kHalfBytes);
  }

  void vector() {
    const bool has_scalar = i_.op == Opcode::kAccum || i_.op == Opcode::kAbsMax;
    require(i_.elements != 0, "number of elements");
    require(i_.src % depth_ == 0 && i_.dst % depth_ == 0, "register: begin");
    registers("source", i_.src, i_.elements);
    if (has_scalar) {
      scalars("result", i_.result, 1);
    } else {
      registers("destination", i_.dst, i_.elements);
    }
    if (i_.op == Opcode::kLoad) {
      require(i_.second == Second::kVector || i_.second == Second::kMemory, "operand");
    }
    if (i_.second == Second::kVector) {
      require(i_.other % depth_ == 0, "register: begin");
      registers("second operand", i_.other, i_.elements);
    }
    if (i_.second == Second::kScalar) scalars("second operand", i_.other, 1);
    if (i_.second == Second::kMemory) {
      memory("second operand", limits_.ddr_bytes, i_.memory, i_.elements * kHalfBytes);
    }
  }

  const Instruction& i_;
  const Machine& machine_;
  const PassLimits& limits_;
  const std::uint64_t depth_;
  std::string problem_;
};

}  // namespace

std::string problem_of(const Instruction& instruction, const Pass& pass, const Machine& machine,
                       const PassLimits& limits) {
  return InstructionCheck(instruction, machine, limits).problem(pass.exchanges.size());
}

std::string problem_of(const Exchange& exchange, const PassLimits& limits) {
  if (!std::is_sorted(exchange.first.begin(), exchange.first.end())) {
    return "found bounds that decrease";
  }
  if (std::uint64_t{exchange.base} + exchange.first.back() > limits.register_elements) {
    return "found registers that do not exist";
  }
  return {};
}

}  // namespace systole::hw::dfx
