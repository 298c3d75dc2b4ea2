#include "hw/program/program_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/printable.h"
#include "hw/postop/microcode.h"
#include "hw/program/command_codec.h"
#include "hw/program/command_fields.h"
#include "hw/program/field_reader.h"

namespace systole::hw {
namespace {

constexpr std::string_view kMagic = "SYSTOLEP";
constexpr std::uint32_t kSections = 7;

template <typename T>
void put(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i) {
    out.push_back(static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i)));
  }
}

void put_text(std::string& out, const std::string& text) {
  put(out, static_cast<std::uint32_t>(text.size()));
  out += text;
}

std::string encode_chains(const std::vector<Chain>& chains) {
  std::string out;
  for (const Chain& chain : chains) {
    put(out, static_cast<std::uint8_t>(chain.out));
    put(out, std::uint8_t{0});
    put(out, static_cast<std::uint16_t>(chain.stages.size()));
    for (const Stage& stage : chain.stages) {
      for (const std::uint64_t word : encode_stage(stage)) put(out, word);
    }
  }
  return out;
}

std::string encode_operand_tiles(const std::vector<OperandTile>& tiles) {
  std::string out;
  for (const OperandTile& tile : tiles) {
    put(out, tile.address);
    put(out, tile.pitch);
  }
  return out;
}

std::string encode_masks(const std::vector<LayerMask>& masks) {
  std::string out;
  for (const LayerMask& mask : masks) {
    put(out, mask.address);
    put_text(out, std::string(mask.bytes.begin(), mask.bytes.end()));
  }
  return out;
}

std::string encode_mixes(const std::vector<HeadMix>& mixes) {
  std::string out;
  for (const HeadMix& mix : mixes) {
    put(out, static_cast<std::uint16_t>(mix.in_heads));
    put(out, static_cast<std::uint16_t>(mix.out_heads));
    put(out, static_cast<std::uint8_t>(mix.rounding));
    put(out, std::uint8_t{0});
    for (const std::int8_t weight : mix.weights) put(out, weight);
    for (std::size_t o = 0; o < mix.out_heads; ++o) {
      put(out, mix.bias[o]);
      put(out, mix.factors[o].multiplier);
      put(out, mix.factors[o].shift);
    }
  }
  return out;
}

void put_float(std::string& out, float value) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  put(out, bits);
}

std::string encode_functions(const std::vector<HostFunction>& functions) {
  std::string out;
  for (const HostFunction& function : functions) {
    put(out, static_cast<std::uint8_t>(function.op));
    put(out, static_cast<std::uint8_t>(function.in));
    put(out, static_cast<std::uint8_t>(function.tensor));
    put(out, static_cast<std::uint8_t>(function.out));
    put_float(out, function.in_scale);
    put_float(out, function.tensor_scale);
    put_float(out, function.out_scale);
    put(out, function.lo);
    put(out, function.hi);
    put(out, static_cast<std::uint32_t>(function.gamma.size()));
    for (const float value : function.gamma) put_float(out, value);
    for (const float value : function.beta) put_float(out, value);
  }
  return out;
}

std::string encode_operators(const std::vector<Operator>& operators) {
  std::string out;
  for (const Operator& op : operators) {
    put_text(out, op.name);
    put_text(out, op.tensor);
    put(out, static_cast<std::uint8_t>(op.place));
    put(out, static_cast<std::uint8_t>(op.type));
    put(out, std::uint16_t{0});
    put(out, op.pitch);
    put(out, op.rows);
    put(out, op.cols);
    put(out, op.address);
    put(out, op.macs);
  }
  return out;
}

Stage decode_checked_stage(FieldReader& in) {
  Microcode words{};
  const auto below = [&](unsigned byte, unsigned limit, const char* what) {
    const unsigned value = static_cast<unsigned>(words[0] >> (8 * byte) & 0xff);
    if (value >= limit) {
      in.fail("micro-code before has " + std::string(what) + " " + std::to_string(value) +
              ", expected less than " + std::to_string(limit));
    }
  };
  for (std::uint64_t& word : words) word = in.get<std::uint64_t>();
  below(0, kStageOps, "stage opcode");
  below(1, kOperandKinds, "operand");
  below(2, 3, "rounding");
  const bool tensor = (words[0] >> 8 & 0xff) == static_cast<std::uint64_t>(Operand::kTensor);
  below(3, tensor ? kDTypes : 1, "tensor type");
  below(4, kReductions, "side output");
  for (const unsigned byte : {5U, 6U, 7U}) below(byte, 1, "reserved byte");
  const Stage stage = hw::decode_stage(words);
  const StageInfo& info = stage_info(stage.op);
  if (!info.takes(stage.operand)) in.fail("operand of a kind that the stage does not take");
  for (std::size_t i = 0; i < kStageImmediates; ++i) {
    if (info.imm[i].empty() && stage.imm[i] != 0) in.fail("immediate that the stage does not use");
  }
  return stage;
}

Chain decode_chain(FieldReader& in) {
  Chain chain;
  chain.out = static_cast<DType>(in.get_below<std::uint8_t>(kDTypes, "output type"));
  in.get_below<std::uint8_t>(1, "reserved byte");
  // No reservation: a lying count ends at the end of the section, not in memory.
  const auto stages = in.get<std::uint16_t>();
  for (std::uint16_t i = 0; i < stages; ++i) chain.stages.push_back(decode_checked_stage(in));
  return chain;
}

OperandTile decode_operand_tile(FieldReader& in) {
  const auto address = in.get<std::uint64_t>();
  return {address, in.get<std::uint32_t>()};
}

LayerMask decode_layer_mask(FieldReader& in) {
  const auto address = in.get<std::uint64_t>();
  const std::string bytes = in.get_text();
  return {address, {bytes.begin(), bytes.end()}};
}

HeadMix decode_mix(FieldReader& in) {
  HeadMix mix;
  mix.in_heads = in.get<std::uint16_t>();
  mix.out_heads = in.get<std::uint16_t>();
  mix.rounding = static_cast<Rounding>(in.get_below<std::uint8_t>(3, "rounding"));
  in.get_below<std::uint8_t>(1, "reserved byte");
  for (const char weight : in.take(mix_products(mix))) {
    mix.weights.push_back(static_cast<std::int8_t>(weight));
  }
  for (std::uint32_t o = 0; o < mix.out_heads; ++o) {
    mix.bias.push_back(in.get<std::int32_t>());
    const auto multiplier = in.get<std::int32_t>();
    mix.factors.push_back({multiplier, in.get<std::int8_t>()});
  }
  return mix;
}

HostFunction decode_function(FieldReader& in) {
  HostFunction function;
  function.op = static_cast<HostOp>(in.get_below<std::uint8_t>(kHostOps, "host operator"));
  function.in = static_cast<DType>(in.get_below<std::uint8_t>(kDTypes, "input type"));
  function.tensor = static_cast<DType>(in.get_below<std::uint8_t>(kDTypes, "operand type"));
  function.out = static_cast<DType>(in.get_below<std::uint8_t>(kDTypes, "result type"));
  function.in_scale = in.get_float();
  function.tensor_scale = in.get_float();
  function.out_scale = in.get_float();
  function.lo = in.get<std::int32_t>();
  function.hi = in.get<std::int32_t>();
  const auto columns = in.get<std::uint32_t>();
  for (std::vector<float>* values : {&function.gamma, &function.beta}) {
    for (std::uint32_t i = 0; i < columns; ++i) values->push_back(in.get_float());
  }
  return function;
}

Operator decode_operator(FieldReader& in) {
  Operator op;
  op.name = in.get_text();
  op.tensor = in.get_text();
  op.place = static_cast<Operator::Place>(in.get_below<std::uint8_t>(3, "place"));
  op.type = static_cast<DType>(in.get_below<std::uint8_t>(kDTypes, "type"));
  in.get_below<std::uint16_t>(1, "reserved bytes");
  op.pitch = in.get<std::uint32_t>();
  op.rows = in.get<std::uint32_t>();
  op.cols = in.get<std::uint32_t>();
  op.address = in.get<std::uint64_t>();
  op.macs = in.get<std::uint64_t>();
  return op;
}

Command decode_checked_command(FieldReader& in) {
  constexpr std::uint8_t kFlags = 8;
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(in.take(kCommandBytes).data());
  if (bytes[0] >= kOpcodes) in.fail("command before has opcode " + std::to_string(bytes[0]));
  if (bytes[1] >= kDTypes) in.fail("command before has type " + std::to_string(bytes[1]));
  if (bytes[2] >= kFlags || bytes[3] >= kIssues) {
    in.fail("command before has reserved bits set");
  }
  const Command command = decode_command(bytes);
  if (const std::string_view field = misused_field(command); !field.empty()) {
    in.fail("command before gives " + std::string(field) + ", which its opcode does not use");
  }
  return command;
}

struct Section {
  std::uint32_t count;
  std::uint64_t bytes;
};

template <typename Item>
void decode_section(std::string_view file, std::size_t& at, const Section& section,
                    const std::string& place, Item (*decode)(FieldReader& in),
                    std::vector<Item>& items) {
  if (section.bytes > file.size() - at) {
    throw InputError(place + ": " + std::to_string(section.bytes) + " bytes announced, " +
                     std::to_string(file.size() - at) + " left in the file");
  }
  const auto size = static_cast<std::size_t>(section.bytes);
  FieldReader in(file.substr(at, size), at, place);
  for (std::uint32_t i = 0; i < section.count; ++i) items.push_back(decode(in));
  in.finish();
  at += size;
}

}  // namespace

std::string encode_program(const Program& program) {
  const std::vector<std::uint8_t> commands = encode_commands(program.commands);
  const std::string chains = encode_chains(program.chains);
  const std::string tiles = encode_operand_tiles(program.operand_tiles);
  const std::string masks = encode_masks(program.masks);
  const std::string mixes = encode_mixes(program.mixes);
  const std::string functions = encode_functions(program.host_functions);
  const std::string operators = encode_operators(program.operators);
  std::string out(kMagic);
  put(out, kProgramVersion);
  put(out, kSections);
  const auto put_section = [&out](std::size_t count, std::size_t bytes) {
    put(out, static_cast<std::uint32_t>(count));
    put(out, std::uint64_t{bytes});
  };
  put_section(program.chains.size(), chains.size());
  put_section(program.operand_tiles.size(), tiles.size());
  put_section(program.masks.size(), masks.size());
  put_section(program.mixes.size(), mixes.size());
  put_section(program.host_functions.size(), functions.size());
  put_section(program.operators.size(), operators.size());
  put_section(program.commands.size(), commands.size());
  out += chains;
  out += tiles;
  out += masks;
  out += mixes;
  out += functions;
  out += operators;
  out.append(commands.begin(), commands.end());
  return out;
}

Program decode_program(std::string_view bytes, const std::string& source) {
  const std::string name = printable(source);
  FieldReader header(bytes, 0, name + ": header");
  if (bytes.size() < kMagic.size() || header.take(kMagic.size()) != kMagic) {
    throw InputError(name + ": no Systole program: expected it to begin with " +
                     std::string(kMagic));
  }
  if (const auto version = header.get<std::uint32_t>(); version != kProgramVersion) {
    throw InputError(name + ": program version " + std::to_string(version) + ", expected " +
                     std::to_string(kProgramVersion));
  }
  if (const auto sections = header.get<std::uint32_t>(); sections != kSections) {
    header.fail(std::to_string(sections) + " sections, expected " + std::to_string(kSections));
  }
  std::array<Section, kSections> sections{};
  for (Section& section : sections) {
    section.count = header.get<std::uint32_t>();
    section.bytes = header.get<std::uint64_t>();
  }
  Program program;
  std::size_t at = bytes.size() - header.left();
  decode_section(bytes, at, sections[0], name + ": chains", decode_chain, program.chains);
  decode_section(bytes, at, sections[1], name + ": operand tiles", decode_operand_tile,
                 program.operand_tiles);
  decode_section(bytes, at, sections[2], name + ": masks", decode_layer_mask, program.masks);
  decode_section(bytes, at, sections[3], name + ": mixes", decode_mix, program.mixes);
  decode_section(bytes, at, sections[4], name + ": functions", decode_function,
                 program.host_functions);
  decode_section(bytes, at, sections[5], name + ": operators", decode_operator, program.operators);
  decode_section(bytes, at, sections[6], name + ": commands", decode_checked_command,
                 program.commands);
  if (at != bytes.size()) {
    throw InputError(name + ": " + std::to_string(bytes.size() - at) +
                     " bytes follow the last section");
  }
  return program;
}

void write_program(const Program& program, const std::string& path) {
  write_file_atomically(path, encode_program(program));
}

Program read_program(const std::string& path) {
  const std::string name = printable(path);
  std::error_code error;
  // Opening a pipe could wait for ever, and a device never end.
  if (!std::filesystem::is_regular_file(path, error)) {
    throw InputError(name + ": " + (error ? error.message() : "no regular file") +
                     ", expected a program file");
  }
  std::ifstream file(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.is_open() || file.bad()) throw InputError(name + ": cannot be read");
  return decode_program(bytes, path);
}

}  // namespace systole::hw
