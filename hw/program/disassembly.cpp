#include "hw/program/disassembly.h"

#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <variant>

#include "hw/program/command_fields.h"

namespace systole::hw {
namespace {

using layout::Shown;

constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr std::array<std::string_view, 3> kRoundingWords = {"half_up", "half_even", "floor"};
constexpr std::array<std::string_view, 3> kPlaceWords = {"dram", "scratchpad", "ring"};

class Listing {
 public:
  explicit Listing(std::string& out) : out_(out) {}

  Listing& text(std::string_view text) {
    out_ += text;
    return *this;
  }

  template <typename T>
  Listing& number(T value) {
    char digits[32];
    const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
    out_.append(digits, end);
    return *this;
  }

  Listing& address(std::uint64_t value) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, value, 16).ptr;
    out_ += "0x";
    out_.append(digits, end);
    return *this;
  }

  Listing& hexadecimal(const std::vector<std::uint8_t>& bytes) {
    for (const std::uint8_t byte : bytes) {
      out_ += kHexDigits[byte >> 4];
      out_ += kHexDigits[byte & 15];
    }
    return *this;
  }

  Listing& quoted(std::string_view text) {
    out_ += '"';
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\') {
        out_ += '\\';
        out_ += c;
      } else if (byte < 0x20 || byte > 0x7e) {
        out_ += "\\x";
        out_ += kHexDigits[byte >> 4];
        out_ += kHexDigits[byte & 15];
      } else {
        out_ += c;
      }
    }
    out_ += '"';
    return *this;
  }

 private:
  std::string& out_;
};

void write_stage(Listing& out, const Stage& stage) {
  const StageInfo& info = stage_info(stage.op);
  out.text(info.name);
  const Stage usual = default_stage(stage.op);
  if (stage.operand != usual.operand) out.text(" ").text(name_of(stage.operand));
  if (stage.rounding != Rounding::kHalfUp) {
    out.text(" rounding=").text(kRoundingWords.at(static_cast<std::size_t>(stage.rounding)));
  }
  if (stage.operand == Operand::kTensor) {
    out.text(" type=").text(name_of(stage.tensor));
  }
  if (stage.side != Reduction::kNone) out.text(" side=").text(name_of(stage.side));
  for (std::size_t i = 0; i < kStageImmediates && !info.imm[i].empty(); ++i) {
    // Other operands replace a value, and constants of a channel multiplier and shift.
    if (stage.operand != Operand::kImmediate && stage.imm[i] == 0) continue;
    out.text(" ").text(info.imm[i]).text("=").number(stage.imm[i]);
  }
}

void write_chain(Listing& out, std::size_t index, const Chain& chain) {
  out.text("chain ").number(index).text(" ");
  out.text(name_of(chain.out)).text(" {");
  const char* separator = " ";
  for (const Stage& stage : chain.stages) {
    write_stage(out.text(separator), stage);
    separator = "; ";
  }
  out.text(" }\n");
}

void write_operand_tile(Listing& out, std::size_t index, const DramTile& tile) {
  out.text("operand ").number(index).text(" address=").address(tile.address);
  out.text(" pitch=").number(tile.pitch).text("\n");
}

void write_mask(Listing& out, std::size_t index, const LayerMask& mask) {
  out.text("mask ").number(index).text(" address=").address(mask.address).text(" bytes=");
  out.hexadecimal(mask.bytes).text("\n");
}

void write_mix(Listing& out, std::size_t index, const HeadMix& mix) {
  out.text("mix ").number(index);
  out.text(" in_heads=").number(mix.in_heads).text(" out_heads=").number(mix.out_heads);
  if (mix.rounding != Rounding::kHalfUp) {
    out.text(" rounding=").text(kRoundingWords.at(static_cast<std::size_t>(mix.rounding)));
  }
  const auto list = [&](std::string_view name, const auto& items, auto value) {
    if (items.empty()) return;
    const char* separator = "=";
    out.text(" ").text(name);
    for (const auto& item : items) {
      out.text(separator).number(value(item));
      separator = ",";
    }
  };
  list("weights", mix.weights, [](std::int8_t weight) { return int{weight}; });
  list("bias", mix.bias, [](std::int32_t bias) { return bias; });
  list("multipliers", mix.factors, [](Dyadic factor) { return factor.multiplier; });
  list("shifts", mix.factors, [](Dyadic factor) { return int{factor.shift}; });
  out.text("\n");
}

void write_operator(Listing& out, std::size_t index, const Operator& op) {
  out.text("operator ").number(index).text(" ").quoted(op.name);
  out.text(" tensor=").quoted(op.tensor);
  out.text(" place=").text(kPlaceWords.at(static_cast<std::size_t>(op.place)));
  out.text(" type=").text(name_of(op.type));
  out.text(" address=").address(op.address);
  out.text(" pitch=").number(op.pitch);
  out.text(" rows=").number(op.rows);
  out.text(" cols=").number(op.cols);
  if (op.int4) out.text(" int4");
  if (op.section != 0) out.text(" section=").number(op.section);
  out.text(" macs=").number(op.macs).text("\n");
}

void write_function(Listing& out, std::size_t index, const HostFunction& function) {
  out.text("function ").number(index).text(" ").text(name_of(function.op));
  out.text(" in=").text(name_of(function.in)).text(" operand=").text(name_of(function.tensor));
  out.text(" out=").text(name_of(function.out)).text(" in_scale=").number(function.in_scale);
  out.text(" operand_scale=").number(function.tensor_scale);
  out.text(" out_scale=").number(function.out_scale);
  out.text(" lo=").number(function.lo).text(" hi=").number(function.hi);
  if (function.active != 0) out.text(" active=").number(function.active);
  const auto list = [&out](std::string_view name, const std::vector<float>& values) {
    const char* separator = "=";
    if (!values.empty()) out.text(" ").text(name);
    for (const float value : values) {
      out.text(separator).number(value);
      separator = ",";
    }
  };
  list("gamma", function.gamma);
  list("beta", function.beta);
  out.text("\n");
}

/// The fields of a command (hw/program/command_fields.h).
class FieldLister {
 public:
  explicit FieldLister(Listing& out) : out_(out) {}

  template <typename T>
  void number(const char* name, std::size_t /*at*/, T value, Shown shown) {
    if (value == 0 && shown == Shown::kUnlessZero) return;
    out_.text(" ").text(name).text("=").number(value);
  }
  void flag(const char* name, unsigned /*bit*/, bool value) {
    if (value) out_.text(" ").text(name);
  }
  void format(const char* name, WeightFormat value) {
    if (value != WeightFormat::kInt8) out_.text(" ").text(name).text("=").text(name_of(value));
  }
  void type(DType value, Shown shown) {
    if (value == DType::kS8 && shown == Shown::kUnlessZero) return;
    out_.text(" type=").text(name_of(value));
  }
  void tile(const char* name, std::size_t /*at*/, std::size_t /*pitch*/, const DramTile& tile,
            Shown shown) {
    if (tile == DramTile{} && shown == Shown::kUnlessZero) return;
    out_.text(" ").text(name).text("=").address(tile.address).text(":").number(tile.pitch);
  }
  void tile(const char* name, std::size_t /*at*/, std::size_t /*pitch*/, const LocalTile& tile,
            Shown /*shown*/) {
    out_.text(" ").text(name).text("=").number(tile.address).text(":").number(tile.pitch);
  }
  void index(const char* name, std::size_t /*at*/, const std::optional<std::uint16_t>& value) {
    if (value) out_.text(" ").text(name).text("=").number(*value);
  }
  void chain(const char* name, std::size_t /*at*/, const std::optional<ChainUse>& use) {
    if (use) out_.text(" ").text(name).text("=").number(use->chain);
  }
  void window(const char* name, std::size_t /*at*/, const std::optional<WindowTile>& tile) {
    if (tile) out_.text(" ").text(name).text("=").text(name_of(tile->window.gather));
  }

 private:
  Listing& out_;
};

void write_command(Listing& out, const Command& command) {
  out.text(name_of(command.opcode()));
  FieldLister fields(out);
  if (command.opcode() != Opcode::kEnd) {
    fields.number("op", layout::kOp, command.op, Shown::kAlways);
    fields.number("issue", layout::kIssue, static_cast<unsigned>(command.issue),
                  Shown::kUnlessZero);
  }
  std::visit([&](const auto& work) { layout::visit_fields(work, fields); }, command.work);
  out.text("\n");
}

}  // namespace

std::string disassemble(const Program& program) {
  std::string text;
  Listing out(text);
  for (std::size_t i = 0; i < program.chains.size(); ++i) write_chain(out, i, program.chains[i]);
  for (std::size_t i = 0; i < program.operand_tiles.size(); ++i) {
    write_operand_tile(out, i, program.operand_tiles[i]);
  }
  for (std::size_t i = 0; i < program.masks.size(); ++i) write_mask(out, i, program.masks[i]);
  for (std::size_t i = 0; i < program.mixes.size(); ++i) write_mix(out, i, program.mixes[i]);
  for (std::size_t i = 0; i < program.host_functions.size(); ++i) {
    write_function(out, i, program.host_functions[i]);
  }
  for (std::size_t i = 0; i < program.operators.size(); ++i) {
    write_operator(out, i, program.operators[i]);
  }
  for (const Command& command : program.commands) write_command(out, command);
  return text;
}

}  // namespace systole::hw
