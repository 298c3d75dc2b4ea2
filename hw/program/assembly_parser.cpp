#include <algorithm>
#include <charconv>
#include <limits>

#include "base/error.h"
#include "base/printable.h"
#include "hw/program/assembly.h"
#include "hw/program/assembly_function.h"
#include "hw/program/assembly_lexer.h"
#include "hw/program/assembly_parts.h"
#include "hw/program/assembly_words.h"
#include "hw/program/command_fields.h"

namespace systole::hw {
namespace {

using Tokens = std::vector<AssemblyToken>;

constexpr std::uint64_t kHighest32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kHighest64 = std::numeric_limits<std::uint64_t>::max();

StageOp stage_op(const AssemblyToken& token) {
  for (std::uint8_t op = 0; token.is_word() && op < kStageOps; ++op) {
    if (stage_info(static_cast<StageOp>(op)).name == token.value) return static_cast<StageOp>(op);
  }
  throw InputError("unknown stage " + shown(token));
}

Operand operand_of(const AssemblyToken& token, const StageInfo& info) {
  for (std::uint8_t i = 0; i < kOperandKinds; ++i) {
    const auto operand = static_cast<Operand>(i);
    if (name_of(operand) == token.value && info.takes(operand)) return operand;
  }
  unexpected(token, info.name);
}

Reduction side_of(const AssemblyToken& token) {
  for (std::uint8_t i = 0; i < kReductions; ++i) {
    if (name_of(static_cast<Reduction>(i)) == token.value) return static_cast<Reduction>(i);
  }
  throw InputError("side is " + shown(token.value) + ", expected row_max, row_sum or sum_squares");
}

/// One stage: its name and what is said about it.
Stage parse_stage(const Tokens& tokens, std::size_t first, std::size_t last) {
  if (first == last) throw InputError("stage without a name");
  Stage stage = usual_stage(stage_op(tokens[first]));
  const StageInfo& info = stage_info(stage.op);
  Names names;
  for (std::size_t i = first + 1; i < last; ++i) {
    const AssemblyToken& token = tokens[i];
    names.add(token.is_word() ? token.value : token.key);
    const auto* immediate = std::find(info.imm.begin(), info.imm.end(), token.key);
    if (token.quoted) unexpected(token, info.name);
    if (token.is_word()) {
      stage.operand = operand_of(token, info);
    } else if (immediate != info.imm.end()) {
      stage.imm[static_cast<std::size_t>(immediate - info.imm.begin())] =
          parse_signed(token.key, token.value);
    } else if (token.key == "rounding") {
      stage.rounding = static_cast<Rounding>(word_index(kRoundingWords, token.key, token.value));
    } else if (token.key == kTypeField && stage.operand == Operand::kTensor) {
      stage.tensor = type_of(token.value);
    } else if (token.key == "side") {
      stage.side = side_of(token);
    } else {
      unexpected(token, info.name);
    }
  }
  return stage;
}

/// Checks the running number behind `chain` and `operator`.
void expect_index(const Tokens& tokens, std::size_t expected) {
  const std::string name = tokens[0].value + " number";
  if (tokens.size() < 2 || !tokens[1].is_word()) throw InputError(name + " is missing");
  const std::uint64_t index = parse_unsigned(name, tokens[1].value, kHighest32);
  if (index != expected) {
    throw InputError(name + " is " + std::to_string(index) + ", expected " +
                     std::to_string(expected));
  }
}

Chain parse_chain(const Tokens& tokens) {
  const auto is_mark = [&](std::size_t i, std::string_view mark) {
    return i < tokens.size() && tokens[i].is_word() && tokens[i].value == mark;
  };
  if (tokens.size() < 5 || !tokens[2].is_word() || !is_mark(3, "{") ||
      !is_mark(tokens.size() - 1, "}")) {
    throw InputError("chain, expected: chain NUMBER TYPE { STAGE; STAGE ... }");
  }
  Chain chain;
  chain.out = type_of(tokens[2].value);
  const std::size_t end = tokens.size() - 1;
  if (end == 4) return chain;
  std::size_t first = 4;
  for (std::size_t i = first; i <= end; ++i) {
    if (i != end && !is_mark(i, ";")) continue;
    chain.stages.push_back(parse_stage(tokens, first, i));
    first = i + 1;
  }
  if (chain.stages.size() > std::numeric_limits<std::uint16_t>::max()) {
    throw InputError("chain of more than 65535 stages");
  }
  return chain;
}

std::vector<std::uint8_t> parse_hexadecimal(const std::string& name, std::string_view text) {
  if (text.size() % 2 != 0) throw InputError(name + " has half a byte at its end");
  std::vector<std::uint8_t> bytes;
  bytes.reserve(text.size() / 2);
  for (std::size_t i = 0; i < text.size(); i += 2) {
    std::uint8_t byte = 0;
    const char* const end = text.data() + i + 2;
    if (std::from_chars(text.data() + i, end, byte, 16).ptr != end) {
      throw InputError(name + " has " + shown(text.substr(i, 2)) +
                       ", expected two hexadecimal digits");
    }
    bytes.push_back(byte);
  }
  return bytes;
}

OperandTile parse_operand_tile(const Tokens& tokens) {
  OperandTile tile;
  Names names;
  for (std::size_t i = 2; i < tokens.size(); ++i) {
    const AssemblyToken& token = tokens[i];
    if (token.quoted) unexpected(token, "operand");
    names.add(token.is_word() ? token.value : token.key);
    if (token.key == "address") {
      tile.address = parse_unsigned(token.key, token.value, kHighest64);
    } else if (token.key == "pitch") {
      tile.pitch = static_cast<std::uint32_t>(parse_unsigned(token.key, token.value, kHighest32));
    } else {
      unexpected(token, "operand");
    }
  }
  return tile;
}

LayerMask parse_mask(const Tokens& tokens) {
  LayerMask mask;
  Names names;
  for (std::size_t i = 2; i < tokens.size(); ++i) {
    const AssemblyToken& token = tokens[i];
    if (token.quoted) unexpected(token, "mask");
    names.add(token.is_word() ? token.value : token.key);
    if (token.key == "address") {
      mask.address = parse_unsigned(token.key, token.value, kHighest64);
    } else if (token.key == "bytes") {
      mask.bytes = parse_hexadecimal(token.key, token.value);
    } else {
      unexpected(token, "mask");
    }
  }
  return mask;
}

/// Numbers of type T, separated by commas.
template <typename T>
std::vector<T> parse_list(const std::string& name, std::string_view text) {
  std::vector<T> numbers;
  for (const std::string_view item : split_list(text)) {
    const std::int64_t number = parse_signed(name, item);
    if (number < std::numeric_limits<T>::min() || number > std::numeric_limits<T>::max()) {
      throw InputError(name + " has " + std::to_string(number) + ", expected " +
                       std::to_string(std::numeric_limits<T>::min()) + " to " +
                       std::to_string(std::numeric_limits<T>::max()));
    }
    numbers.push_back(static_cast<T>(number));
  }
  return numbers;
}

void expect_count(const char* name, std::size_t found, std::uint64_t expected) {
  if (found != expected) {
    throw InputError("mix has " + std::to_string(found) + " " + name + ", expected " +
                     std::to_string(expected));
  }
}

HeadMix parse_mix(const Tokens& tokens) {
  HeadMix mix;
  std::vector<std::int32_t> multipliers;
  std::vector<std::int8_t> shifts;
  Names names;
  const auto heads = [](const AssemblyToken& token) {
    constexpr std::uint64_t kHighest16 = std::numeric_limits<std::uint16_t>::max();
    return static_cast<std::uint32_t>(parse_unsigned(token.key, token.value, kHighest16));
  };
  for (std::size_t i = 2; i < tokens.size(); ++i) {
    const AssemblyToken& token = tokens[i];
    if (token.quoted) unexpected(token, "mix");
    names.add(token.is_word() ? token.value : token.key);
    if (token.key == "in_heads") {
      mix.in_heads = heads(token);
    } else if (token.key == "out_heads") {
      mix.out_heads = heads(token);
    } else if (token.key == "rounding") {
      mix.rounding = static_cast<Rounding>(word_index(kRoundingWords, token.key, token.value));
    } else if (token.key == "weights") {
      mix.weights = parse_list<std::int8_t>(token.key, token.value);
    } else if (token.key == "bias") {
      mix.bias = parse_list<std::int32_t>(token.key, token.value);
    } else if (token.key == "multipliers") {
      multipliers = parse_list<std::int32_t>(token.key, token.value);
    } else if (token.key == "shifts") {
      shifts = parse_list<std::int8_t>(token.key, token.value);
    } else {
      unexpected(token, "mix");
    }
  }
  expect_count("weights", mix.weights.size(), mix_products(mix));
  expect_count("biases", mix.bias.size(), mix.out_heads);
  expect_count("multipliers", multipliers.size(), mix.out_heads);
  expect_count("shifts", shifts.size(), mix.out_heads);
  for (std::size_t o = 0; o < shifts.size(); ++o)
    mix.factors.push_back({multipliers[o], shifts[o]});
  return mix;
}

Operator parse_operator(const Tokens& tokens) {
  Operator op;
  if (tokens.size() < 3 || !tokens[2].quoted || !tokens[2].key.empty()) {
    throw InputError("operator, expected: operator NUMBER \"NAME\" ...");
  }
  op.name = tokens[2].value;
  Names names;
  const auto number = [](const AssemblyToken& token) {
    return static_cast<std::uint32_t>(parse_unsigned(token.key, token.value, kHighest32));
  };
  for (std::size_t i = 3; i < tokens.size(); ++i) {
    const AssemblyToken& token = tokens[i];
    if (token.quoted != (token.key == "tensor")) unexpected(token, "operator");
    names.add(token.key);
    if (token.key == "tensor") {
      op.tensor = token.value;
    } else if (token.key == "place") {
      op.place = static_cast<Operator::Place>(word_index(kPlaceWords, token.key, token.value));
    } else if (token.key == kTypeField) {
      op.type = type_of(token.value);
    } else if (token.key == "address") {
      op.address = parse_unsigned(token.key, token.value, kHighest64);
    } else if (token.key == "macs") {
      op.macs = parse_unsigned(token.key, token.value, kHighest64);
    } else if (token.key == "pitch") {
      op.pitch = number(token);
    } else if (token.key == "rows") {
      op.rows = number(token);
    } else if (token.key == "cols") {
      op.cols = number(token);
    } else {
      unexpected(token, "operator");
    }
  }
  return op;
}

Opcode opcode_of(const AssemblyToken& token) {
  for (std::uint8_t code = 0; token.is_word() && code < kOpcodes; ++code) {
    if (name_of(static_cast<Opcode>(code)) == token.value) return static_cast<Opcode>(code);
  }
  throw InputError("unknown command " + shown(token));
}

/// Sets a field from its word, `key=value` or `key=address:pitch`.
void parse_field(const AssemblyToken& token, Command& command) {
  const std::string& name = token.is_word() ? token.value : token.key;
  const std::vector<CommandField>& fields = command_fields();
  const auto field = std::find_if(fields.begin(), fields.end(), [&](const CommandField& f) {
    return f.name == name && f.used_by(command.opcode);
  });
  const bool flag = field != fields.end() && field->highest == 1;
  const bool is_pitch =
      field != fields.end() && field != fields.begin() && is_pitch_of(*field, *(field - 1));
  if (field == fields.end() || is_pitch || token.quoted || flag != token.is_word()) {
    unexpected(token, name_of(command.opcode));
  }
  if (flag) {
    field->set(command, 1);
    return;
  }
  if (field->name == kTypeField) {
    field->set(command, static_cast<std::uint64_t>(type_of(token.value)));
    return;
  }
  std::string_view number = token.value;
  if (const std::size_t colon = number.find(':'); colon != std::string_view::npos) {
    const auto pitch = field + 1;
    if (pitch == fields.end() || !is_pitch_of(*pitch, *field)) {
      throw InputError(name + " has no pitch");
    }
    pitch->set(command, parse_unsigned(name + " pitch", number.substr(colon + 1), pitch->highest));
    number = number.substr(0, colon);
  }
  field->set(command, parse_unsigned(name, number, field->highest));
}

Command parse_command(const Tokens& tokens) {
  Command command;
  command.opcode = opcode_of(tokens[0]);
  Names names;
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    names.add(tokens[i].is_word() ? tokens[i].value : tokens[i].key);
    parse_field(tokens[i], command);
  }
  return command;
}

void parse_line(const Tokens& tokens, Program& program) {
  if (tokens.empty()) return;
  if (tokens[0].is_word() && tokens[0].value == "chain") {
    expect_index(tokens, program.chains.size());
    program.chains.push_back(parse_chain(tokens));
  } else if (tokens[0].is_word() && tokens[0].value == "operand") {
    expect_index(tokens, program.operand_tiles.size());
    program.operand_tiles.push_back(parse_operand_tile(tokens));
  } else if (tokens[0].is_word() && tokens[0].value == "mask") {
    expect_index(tokens, program.masks.size());
    program.masks.push_back(parse_mask(tokens));
  } else if (tokens[0].is_word() && tokens[0].value == "mix") {
    expect_index(tokens, program.mixes.size());
    program.mixes.push_back(parse_mix(tokens));
  } else if (tokens[0].is_word() && tokens[0].value == "function") {
    expect_index(tokens, program.host_functions.size());
    program.host_functions.push_back(parse_function(tokens));
  } else if (tokens[0].is_word() && tokens[0].value == "operator") {
    expect_index(tokens, program.operators.size());
    program.operators.push_back(parse_operator(tokens));
  } else {
    program.commands.push_back(parse_command(tokens));
  }
}

}  // namespace

Program parse_assembly(std::string_view text, const std::string& source) {
  Program program;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    try {
      parse_line(split_assembly_line(text.substr(0, end)), program);
    } catch (const InputError& error) {
      throw InputError(printable(source) + ":" + std::to_string(line) + ": " + error.what());
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return program;
}

}  // namespace systole::hw
