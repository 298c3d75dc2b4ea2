#include "hw/program/command_codec.h"

#include <algorithm>
#include <bitset>
#include <iterator>
#include <string>

#include "base/error.h"
#include "hw/program/command_fields.h"
#include "hw/program/little_endian.h"

namespace systole::hw {
namespace {

using layout::Shown;

class Encoder {
 public:
  explicit Encoder(std::uint8_t* bytes) : bytes_(bytes) {}

  template <typename T>
  void number(const char* /*name*/, std::size_t at, T value, Shown /*shown*/) {
    put_little_endian(value, bytes_ + at);
  }
  void flag(const char* /*name*/, unsigned bit, bool value) {
    if (value) bytes_[layout::kFlags] = static_cast<std::uint8_t>(bytes_[layout::kFlags] | bit);
  }
  void format(const char* /*name*/, WeightFormat value) {
    bytes_[layout::kFlags] = static_cast<std::uint8_t>(
        bytes_[layout::kFlags] | static_cast<unsigned>(value) << layout::kFormatAt);
  }
  void type(DType value, Shown /*shown*/) {
    bytes_[layout::kType] = static_cast<std::uint8_t>(value);
  }
  void tile(const char* name, std::size_t at, std::size_t pitch_at, const DramTile& tile,
            Shown shown) {
    if (layout::address_bytes(at) == sizeof tile.address) {
      number(name, at, tile.address, shown);
    } else {
      number(name, at, static_cast<std::uint32_t>(tile.address), shown);
    }
    number(name, pitch_at, tile.pitch, shown);
  }
  void tile(const char* name, std::size_t at, std::size_t pitch_at, const LocalTile& tile,
            Shown shown) {
    number(name, at, tile.address, shown);
    number(name, pitch_at, tile.pitch, shown);
  }
  void index(const char* name, std::size_t at, const std::optional<std::uint16_t>& value) {
    number(name, at, static_cast<std::uint16_t>(value ? *value + 1U : 0U), Shown::kAlways);
  }
  void chain(const char* name, std::size_t at, const std::optional<ChainUse>& use) {
    index(name, at, use ? std::optional<std::uint16_t>(use->chain) : std::nullopt);
  }
  void window(const char* name, std::size_t at, const std::optional<WindowTile>& tile) {
    number(name, at, static_cast<std::uint16_t>(tile ? tile->window.gather : Gather{}),
           Shown::kAlways);
  }

 private:
  std::uint8_t* bytes_;
};

class Decoder {
 public:
  explicit Decoder(const std::uint8_t* bytes) : bytes_(bytes) {}

  template <typename T>
  void number(const char* /*name*/, std::size_t at, T& value, Shown /*shown*/) {
    value = get_little_endian<T>(bytes_ + at);
    for (std::size_t i = 0; i < sizeof value; ++i) used_.set(at + i);
  }
  void flag(const char* /*name*/, unsigned bit, bool& value) {
    value = (bytes_[layout::kFlags] & bit) != 0;
    flags_ |= bit;
  }
  void format(const char* /*name*/, WeightFormat& value) {
    value = static_cast<WeightFormat>(bytes_[layout::kFlags] >> layout::kFormatAt &
                                      layout::kFormatMask);
    flags_ |= layout::kFormatMask << layout::kFormatAt;
  }
  void type(DType& value, Shown /*shown*/) {
    used_.set(layout::kType);
    if (bytes_[layout::kType] >= kDTypes) {
      throw InputError("element type " + std::to_string(bytes_[layout::kType]) +
                       ", expected 0 to " + std::to_string(kDTypes - 1));
    }
    value = static_cast<DType>(bytes_[layout::kType]);
  }
  void tile(const char* name, std::size_t at, std::size_t pitch_at, DramTile& tile, Shown shown) {
    if (layout::address_bytes(at) == sizeof tile.address) {
      number(name, at, tile.address, shown);
    } else {
      std::uint32_t address = 0;
      number(name, at, address, shown);
      tile.address = address;
    }
    number(name, pitch_at, tile.pitch, shown);
  }
  void tile(const char* name, std::size_t at, std::size_t pitch_at, LocalTile& tile, Shown shown) {
    number(name, at, tile.address, shown);
    number(name, pitch_at, tile.pitch, shown);
  }
  void index(const char* name, std::size_t at, std::optional<std::uint16_t>& value) {
    std::uint16_t after = 0;
    number(name, at, after, Shown::kAlways);
    if (after != 0) value = static_cast<std::uint16_t>(after - 1);
  }
  void chain(const char* name, std::size_t at, std::optional<ChainUse>& use) {
    std::optional<std::uint16_t> chain;
    index(name, at, chain);
    if (chain) use.emplace().chain = *chain;
  }
  void window(const char* name, std::size_t at, std::optional<WindowTile>& tile) {
    std::uint16_t gather = 0;
    number(name, at, gather, Shown::kAlways);
    if (gather > static_cast<std::uint16_t>(Gather::kSum)) {
      throw InputError("gather " + std::to_string(gather) + ", expected 0 to " +
                       std::to_string(static_cast<std::uint16_t>(Gather::kSum)));
    }
    if (gather != 0) tile.emplace().window.gather = static_cast<Gather>(gather);
  }

  void issue(Command& command) {
    used_.set(layout::kIssue);
    if (bytes_[layout::kIssue] >= kIssues) {
      throw InputError("issue " + std::to_string(bytes_[layout::kIssue]) + ", expected 0 to " +
                       std::to_string(kIssues - 1));
    }
    command.issue = static_cast<Issue>(bytes_[layout::kIssue]);
  }
  /// Throws if a byte is not zero that nothing above has read.
  void finish() const {
    for (std::size_t i = layout::kType; i < kCommandBytes; ++i) {
      const bool left = i == layout::kFlags ? (bytes_[i] & ~flags_) != 0 : bytes_[i] != 0;
      if (left && !used_[i]) {
        throw InputError("byte " + std::to_string(i) + " is " + std::to_string(bytes_[i]) +
                         ", but its opcode does not use it");
      }
    }
  }

 private:
  const std::uint8_t* bytes_;
  std::bitset<kCommandBytes> used_;
  unsigned flags_ = 0;
};

/// A command of an opcode, all zero.
template <std::size_t... kIndices>
Command make(std::size_t opcode, std::index_sequence<kIndices...> /*opcodes*/) {
  Command command;
  (void)((opcode == kIndices ? (command.work.emplace<kIndices>(), true) : false) || ...);
  return command;
}

}  // namespace

std::vector<std::uint8_t> encode_commands(const std::vector<Command>& commands) {
  std::vector<std::uint8_t> bytes;
  append_commands(commands, bytes);
  return bytes;
}

void append_commands(const std::vector<Command>& commands, std::vector<std::uint8_t>& bytes) {
  const std::size_t first = bytes.size();
  bytes.resize(first + commands.size() * kCommandBytes);
  for (std::size_t i = 0; i < commands.size(); ++i) {
    const Command& command = commands[i];
    std::uint8_t* const at = &bytes[first + i * kCommandBytes];
    at[layout::kOpcode] = static_cast<std::uint8_t>(command.opcode());
    at[layout::kIssue] = static_cast<std::uint8_t>(command.issue);
    put_little_endian(command.op, at + layout::kOp);
    Encoder encoder(at);
    std::visit([&](const auto& work) { layout::visit_fields(work, encoder); }, command.work);
  }
}

Command decode_command(const std::uint8_t* bytes) {
  const std::uint8_t opcode = bytes[layout::kOpcode];
  if (opcode >= kOpcodes) {
    throw InputError("opcode " + std::to_string(opcode) + ", expected 0 to " +
                     std::to_string(kOpcodes - 1));
  }
  Command command = make(opcode, std::make_index_sequence<kOpcodes>());
  Decoder decoder(bytes);
  if (command.opcode() != Opcode::kEnd) {
    decoder.number("op", layout::kOp, command.op, Shown::kAlways);
    decoder.issue(command);
  }
  std::visit([&](auto& work) { layout::visit_fields(work, decoder); }, command.work);
  decoder.finish();
  return command;
}

}  // namespace systole::hw
