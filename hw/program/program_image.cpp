#include "hw/program/program_image.h"

#include <algorithm>
#include <string_view>
#include <type_traits>

#include "base/error.h"
#include "base/printable.h"
#include "base/round.h"
#include "hw/postop/microcode.h"
#include "hw/program/command_codec.h"
#include "hw/program/little_endian.h"

namespace systole::hw {
namespace {

constexpr std::string_view kMagic = "SYSTPROG";
constexpr std::size_t kChainHead = 8, kStageBytes = kMicrocodeWords * 8;
constexpr std::size_t kMixHead = 6, kMixHeadBytes = 9;
constexpr std::uint32_t kLeastRecord = 8, kMostRecord = std::uint32_t{1} << 24;
constexpr std::uint32_t kMostRecords = 65536;  // commands have 16 bits for their index

std::uint64_t section_end(std::uint64_t begin, std::uint64_t count, std::uint64_t bytes) {
  return round_up(begin + count * bytes, kProgramAlignment);
}

/// Appends fields, little endian.
class FieldWriter {
 public:
  explicit FieldWriter(std::vector<std::uint8_t>& out) : out_(out) {}

  template <typename T>
  void put(T value) {
    const std::size_t at = out_.size();
    out_.resize(at + sizeof value);
    put_little_endian(value, &out_[at]);
  }
  void pad_to(std::uint64_t size) { out_.resize(size); }

 private:
  std::vector<std::uint8_t>& out_;
};

/// Reads the fields of a record from front to back, little endian. Throws InputError without a
/// place.
class FieldReader {
 public:
  FieldReader(const std::uint8_t* bytes, std::size_t size) : at_(bytes), left_(size) {}

  [[nodiscard]] const std::uint8_t* take(std::size_t count) {
    if (count > left_) {
      throw InputError(std::to_string(count) + " bytes expected, " + std::to_string(left_) +
                       " left");
    }
    const std::uint8_t* const taken = at_;
    at_ += count;
    left_ -= count;
    return taken;
  }

  template <typename T>
  [[nodiscard]] T get() {
    return get_little_endian<T>(take(sizeof(T)));
  }

  /// A number below `limit`; `what` names it in the message.
  template <typename T>
  [[nodiscard]] T get_below(std::uint64_t limit, const char* what) {
    const auto value = static_cast<std::uint64_t>(get<std::make_unsigned_t<T>>());
    if (value >= limit) {
      throw InputError(std::string(what) + " " + std::to_string(value) + ", expected less than " +
                       std::to_string(limit));
    }
    return static_cast<T>(value);
  }

  /// The rest of a record is zero.
  void finish() {
    for (; left_ != 0; --left_, ++at_) {
      if (*at_ != 0) throw InputError("bytes after the last field are not zero");
    }
  }

 private:
  const std::uint8_t* at_;
  std::size_t left_;
};

std::uint32_t bytes_of(const Chain& chain) {
  return static_cast<std::uint32_t>(kChainHead + chain.stages.size() * kStageBytes);
}

std::uint32_t bytes_of(const HeadMix& mix) {
  return static_cast<std::uint32_t>(
      round_up(kMixHead + mix_products(mix) + mix.out_heads * kMixHeadBytes, 8));
}

template <typename Record>
std::uint32_t longest(const std::vector<Record>& records) {
  std::uint32_t bytes = 0;
  for (const Record& record : records) bytes = std::max(bytes, bytes_of(record));
  return bytes;
}

template <typename T>
std::uint32_t count_of(const std::vector<T>& items) {
  return static_cast<std::uint32_t>(items.size());
}

void put_header(FieldWriter& out, const ProgramHeader& header) {
  for (const char c : kMagic) out.put(c);
  for (const std::uint32_t field :
       {kProgramVersion, header.commands, header.operands, header.masks, header.chains,
        header.chain_bytes, header.mixes, header.mix_bytes}) {
    out.put(field);
  }
  out.pad_to(kHeaderBytes);
}

void put_chain(FieldWriter& out, const Chain& chain) {
  out.put(static_cast<std::uint8_t>(chain.out));
  out.put(std::uint8_t{0});
  out.put(static_cast<std::uint16_t>(chain.stages.size()));
  out.put(std::uint32_t{0});
  for (const Stage& stage : chain.stages) {
    for (const std::uint64_t word : encode_stage(stage)) out.put(word);
  }
}

void put_mix(FieldWriter& out, const HeadMix& mix) {
  out.put(static_cast<std::uint16_t>(mix.in_heads));
  out.put(static_cast<std::uint16_t>(mix.out_heads));
  out.put(static_cast<std::uint8_t>(mix.rounding));
  out.put(std::uint8_t{0});
  for (const std::int8_t weight : mix.weights) out.put(weight);
  for (std::size_t o = 0; o < mix.out_heads; ++o) {
    out.put(mix.bias[o]);
    out.put(mix.factors[o].multiplier);
    out.put(mix.factors[o].shift);
  }
}

Stage decode_checked_stage(FieldReader& in) {
  Microcode words{};
  for (std::uint64_t& word : words) word = in.get<std::uint64_t>();
  const auto below = [&](unsigned byte, unsigned limit, const char* what) {
    const unsigned value = static_cast<unsigned>(words[0] >> (8 * byte) & 0xff);
    if (value >= limit) {
      throw InputError(std::string(what) + " " + std::to_string(value) + ", expected less than " +
                       std::to_string(limit));
    }
  };
  below(0, kStageOps, "stage opcode");
  below(1, kOperandKinds, "operand");
  below(2, 3, "rounding");
  const bool tensor = (words[0] >> 8 & 0xff) == static_cast<std::uint64_t>(Operand::kTensor);
  below(3, tensor ? kDTypes : 1, "tensor type");
  below(4, kReductions, "side output");
  for (const unsigned byte : {5U, 6U, 7U}) below(byte, 1, "reserved byte");
  const Stage stage = decode_stage(words);
  const StageInfo& info = stage_info(stage.op);
  if (!info.takes(stage.operand))
    throw InputError("operand of a kind that the stage does not take");
  for (std::size_t i = 0; i < kStageImmediates; ++i) {
    if (info.imm[i].empty() && stage.imm[i] != 0) {
      throw InputError("immediate that the stage does not use");
    }
  }
  return stage;
}

/// Decodes the records of a section and adds the place to messages.
template <typename Item, typename Decode>
void decode_section(const std::string& place, const std::uint8_t* bytes, std::uint32_t count,
                    std::uint64_t stride, std::vector<Item>& items, Decode decode) {
  for (std::uint32_t i = 0; i < count; ++i) {
    try {
      items.push_back(decode(bytes + i * stride));
    } catch (const InputError& error) {
      throw InputError(place + " " + std::to_string(i) + ": " + error.what());
    }
  }
}

}  // namespace

std::uint64_t ProgramHeader::operand(std::uint64_t index) const {
  return section_end(kHeaderBytes, commands, kCommandBytes) + index * kOperandTileBytes;
}
std::uint64_t ProgramHeader::mask(std::uint64_t index) const {
  return section_end(operand(0), operands, kOperandTileBytes) + index * kMaskEntryBytes;
}
std::uint64_t ProgramHeader::chain(std::uint64_t index) const {
  return section_end(mask(0), masks, kMaskEntryBytes) + index * chain_bytes;
}
std::uint64_t ProgramHeader::mix(std::uint64_t index) const {
  return section_end(chain(0), chains, chain_bytes) + index * mix_bytes;
}
std::uint64_t ProgramHeader::bytes() const { return section_end(mix(0), mixes, mix_bytes); }

ProgramHeader header_of(const Program& program) {
  return {count_of(program.commands), count_of(program.operand_tiles), count_of(program.masks),
          count_of(program.chains),   longest(program.chains),         count_of(program.mixes),
          longest(program.mixes)};
}

std::vector<std::uint8_t> encode_program(const Program& program) {
  const ProgramHeader header = header_of(program);
  std::vector<std::uint8_t> image;
  image.reserve(header.bytes());
  FieldWriter out(image);
  put_header(out, header);
  append_commands(program.commands, image);
  out.pad_to(header.operand(0));
  for (const DramTile& tile : program.operand_tiles) {
    out.put(tile.address);
    out.put(tile.pitch);
    out.put(std::uint32_t{0});
  }
  out.pad_to(header.mask(0));
  for (const LayerMask& mask : program.masks) {
    out.put(mask.address);
    out.put(static_cast<std::uint32_t>(mask.bytes.size()));
    out.put(std::uint32_t{0});
  }
  for (std::size_t i = 0; i < program.chains.size(); ++i) {
    out.pad_to(header.chain(i));
    put_chain(out, program.chains[i]);
  }
  for (std::size_t i = 0; i < program.mixes.size(); ++i) {
    out.pad_to(header.mix(i));
    put_mix(out, program.mixes[i]);
  }
  out.pad_to(header.bytes());
  return image;
}

ProgramHeader decode_header(const std::uint8_t* bytes) {
  if (!std::equal(kMagic.begin(), kMagic.end(), bytes)) {
    throw InputError("no Systole program: expected it to begin with " + std::string(kMagic));
  }
  FieldReader in(bytes + kMagic.size(), kHeaderBytes - kMagic.size());
  if (const auto version = in.get<std::uint32_t>(); version != kProgramVersion) {
    throw InputError("program version " + std::to_string(version) + ", expected " +
                     std::to_string(kProgramVersion));
  }
  ProgramHeader header;
  for (std::uint32_t* const field :
       {&header.commands, &header.operands, &header.masks, &header.chains, &header.chain_bytes,
        &header.mixes, &header.mix_bytes}) {
    *field = in.get<std::uint32_t>();
  }
  in.finish();
  if (header.commands == 0) throw InputError("no commands, expected at least end");
  // Whatever the counts, offsets then fit 64 bits, and no record is empty.
  const auto check_stride = [](const char* what, std::uint32_t count, std::uint32_t size) {
    if (count > kMostRecords) {
      throw InputError(std::to_string(count) + " " + what + ", expected at most " +
                       std::to_string(kMostRecords));
    }
    if (count != 0 && (size < kLeastRecord || size > kMostRecord)) {
      throw InputError(std::string(what) + " of " + std::to_string(size) + " bytes, expected " +
                       std::to_string(kLeastRecord) + " to " + std::to_string(kMostRecord));
    }
  };
  check_stride("chains", header.chains, header.chain_bytes);
  check_stride("mixes", header.mixes, header.mix_bytes);
  return header;
}

DramTile decode_operand_tile(const std::uint8_t* bytes) {
  FieldReader in(bytes, kOperandTileBytes);
  DramTile tile;
  tile.address = in.get<std::uint64_t>();
  tile.pitch = in.get<std::uint32_t>();
  in.finish();
  return tile;
}

LayerMask decode_mask_entry(const std::uint8_t* bytes, std::uint64_t memory_bytes) {
  FieldReader in(bytes, kMaskEntryBytes);
  LayerMask mask;
  mask.address = in.get<std::uint64_t>();
  const auto size = in.get<std::uint32_t>();
  in.finish();
  if (mask.address > memory_bytes || size > memory_bytes - mask.address) {
    throw InputError("mask of " + std::to_string(size) + " bytes at " +
                     std::to_string(mask.address) + ", expected it in memory");
  }
  mask.bytes.resize(size);
  return mask;
}

Chain decode_chain(const std::uint8_t* bytes, std::size_t size) {
  FieldReader in(bytes, size);
  Chain chain;
  chain.out = static_cast<DType>(in.get_below<std::uint8_t>(kDTypes, "output type"));
  (void)in.get_below<std::uint8_t>(1, "reserved byte");
  const auto stages = in.get<std::uint16_t>();
  (void)in.get_below<std::uint32_t>(1, "reserved bytes");
  // No reservation: a count that lies ends at the end of the record, not in memory.
  for (std::uint16_t i = 0; i < stages; ++i) chain.stages.push_back(decode_checked_stage(in));
  in.finish();
  return chain;
}

HeadMix decode_mix(const std::uint8_t* bytes, std::size_t size) {
  FieldReader in(bytes, size);
  HeadMix mix;
  mix.in_heads = in.get<std::uint16_t>();
  mix.out_heads = in.get<std::uint16_t>();
  mix.rounding = static_cast<Rounding>(in.get_below<std::uint8_t>(3, "rounding"));
  (void)in.get_below<std::uint8_t>(1, "reserved byte");
  const auto* const weights = reinterpret_cast<const std::int8_t*>(in.take(mix_products(mix)));
  mix.weights.assign(weights, weights + mix_products(mix));
  for (std::uint32_t o = 0; o < mix.out_heads; ++o) {
    mix.bias.push_back(in.get<std::int32_t>());
    const auto multiplier = in.get<std::int32_t>();
    mix.factors.push_back({multiplier, in.get<std::int8_t>()});
  }
  in.finish();
  return mix;
}

Program decode_program(const std::vector<std::uint8_t>& image, const std::string& source,
                       std::uint64_t memory_bytes) {
  const std::string name = printable(source);
  if (image.size() < kHeaderBytes) {
    throw InputError(name + ": " + std::to_string(image.size()) + " bytes, expected a header of " +
                     std::to_string(kHeaderBytes));
  }
  ProgramHeader header;
  try {
    header = decode_header(image.data());
  } catch (const InputError& error) {
    throw InputError(name + ": header: " + error.what());
  }
  if (header.bytes() != image.size()) {
    throw InputError(name + ": " + std::to_string(image.size()) + " bytes, expected the " +
                     std::to_string(header.bytes()) + " of its header");
  }
  Program program;
  const std::uint8_t* const at = image.data();
  decode_section(name + ": command", at + header.command(0), header.commands, kCommandBytes,
                 program.commands, decode_command);
  decode_section(name + ": operand", at + header.operand(0), header.operands, kOperandTileBytes,
                 program.operand_tiles, decode_operand_tile);
  decode_section(name + ": mask", at + header.mask(0), header.masks, kMaskEntryBytes, program.masks,
                 [&](const std::uint8_t* bytes) { return decode_mask_entry(bytes, memory_bytes); });
  decode_section(
      name + ": chain", at + header.chain(0), header.chains, header.chain_bytes, program.chains,
      [&](const std::uint8_t* bytes) { return decode_chain(bytes, header.chain_bytes); });
  decode_section(name + ": mix", at + header.mix(0), header.mixes, header.mix_bytes, program.mixes,
                 [&](const std::uint8_t* bytes) { return decode_mix(bytes, header.mix_bytes); });
  if (encode_program(program) != image) {
    throw InputError(name + ": bytes between its sections are not zero");
  }
  return program;
}

}  // namespace systole::hw
