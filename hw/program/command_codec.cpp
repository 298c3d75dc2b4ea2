#include "hw/program/command_codec.h"

#include "hw/program/little_endian.h"

namespace systole::hw {
namespace {

constexpr std::uint8_t kAccumulate = 1, kAUnsigned = 2, kBTransposed = 4;

class Encoder {
 public:
  explicit Encoder(std::uint8_t* at) : at_(at) {}
  template <typename Value>
  void operator()(Value& value) {
    put_little_endian(value, at_);
    at_ += sizeof value;
  }

 private:
  std::uint8_t* at_;
};

class Decoder {
 public:
  explicit Decoder(const std::uint8_t* at) : at_(at) {}
  template <typename Value>
  void operator()(Value& value) {
    value = get_little_endian<Value>(at_);
    at_ += sizeof value;
  }

 private:
  const std::uint8_t* at_;
};

/// These are single bytes.
struct Head {
  std::uint8_t opcode, type, flags, issue;
};

/// The one description of the layout, for both directions.
template <typename Codec, typename Fields>
void transfer(Codec& codec, Head& head, Fields& c) {
  codec(head.opcode);
  codec(head.type);
  codec(head.flags);
  codec(head.issue);
  codec(c.chain);
  codec(c.mix);
  codec(c.op);
  codec(c.dram_pitch);
  codec(c.dram);
  codec(c.tensor);
  codec(c.tensor_pitch);
  for (auto* field : {&c.m, &c.n, &c.k, &c.a, &c.a_pitch, &c.b, &c.b_pitch, &c.c, &c.c_pitch,
                      &c.parameters, &c.statistics}) {
    codec(*field);
  }
}

}  // namespace

std::vector<std::uint8_t> encode_commands(const std::vector<Command>& commands) {
  std::vector<std::uint8_t> bytes(commands.size() * kCommandBytes);
  for (std::size_t i = 0; i < commands.size(); ++i) {
    Command command = commands[i];
    Head head{static_cast<std::uint8_t>(command.opcode), static_cast<std::uint8_t>(command.type),
              static_cast<std::uint8_t>((command.accumulate ? kAccumulate : 0) |
                                        (command.a_unsigned ? kAUnsigned : 0) |
                                        (command.b_transposed ? kBTransposed : 0)),
              static_cast<std::uint8_t>(command.issue)};
    Encoder encoder(&bytes[i * kCommandBytes]);
    transfer(encoder, head, command);
  }
  return bytes;
}

Command decode_command(const std::uint8_t* bytes) {
  Command command;
  Head head{};
  Decoder decoder(bytes);
  transfer(decoder, head, command);
  command.opcode = static_cast<Opcode>(head.opcode);
  command.type = static_cast<DType>(head.type);
  command.issue = static_cast<Issue>(head.issue);
  command.accumulate = (head.flags & kAccumulate) != 0;
  command.a_unsigned = (head.flags & kAUnsigned) != 0;
  command.b_transposed = (head.flags & kBTransposed) != 0;
  return command;
}

}  // namespace systole::hw
