#include "hw/program/command_fields.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "hw/program/command_codec.h"
#include "support/input_error.h"
#include "tests/hw/program/random_program.h"

namespace systole::hw {
namespace {

using layout::Shown;

/// Counts for every byte of a command the fields that reside there, and for every flag.
struct Places {
  std::array<int, kCommandBytes> bytes{};
  std::array<int, 8> flags{};

  template <typename T>
  void number(const char* /*name*/, std::size_t at, const T& /*value*/, Shown /*shown*/) {
    add(at, sizeof(T));
  }
  void flag(const char* /*name*/, unsigned bit, bool /*value*/) {
    for (unsigned i = 0; i < 8; ++i) flags[i] += (bit >> i & 1U) != 0 ? 1 : 0;
  }
  void format(const char* /*name*/, WeightFormat /*value*/) {
    flag("", layout::kFormatMask << layout::kFormatAt, true);
  }
  void type(DType /*value*/, Shown /*shown*/) { add(layout::kType, 1); }
  template <typename Tile>
  void tile(const char* /*name*/, std::size_t at, std::size_t pitch_at, const Tile& tile,
            Shown /*shown*/) {
    add(at, std::is_same_v<Tile, DramTile> ? layout::address_bytes(at) : sizeof tile.address);
    add(pitch_at, sizeof tile.pitch);
  }
  void index(const char* /*name*/, std::size_t at, const std::optional<std::uint16_t>& /*value*/) {
    add(at, 2);
  }
  void chain(const char* /*name*/, std::size_t at, const std::optional<ChainUse>& /*use*/) {
    add(at, 2);
  }
  void window(const char* /*name*/, std::size_t at, const std::optional<WindowTile>& /*tile*/) {
    add(at, 2);
  }
  void add(std::size_t at, std::size_t count) {
    for (std::size_t i = at; i < at + count; ++i) ++bytes.at(i);
  }
};

TEST(CommandFields, HaveAPlaceOfTheirOwn) {
  test::Random random(7);
  for (int i = 0; i < 500; ++i) {
    const Command command = test::random_command(random);
    Places places;
    std::visit([&](const auto& work) { layout::visit_fields(work, places); }, command.work);
    for (const std::size_t common : {layout::kOpcode, layout::kFlags, layout::kIssue}) {
      EXPECT_EQ(places.bytes[common], 0);
    }
    for (std::size_t byte = layout::kOp; byte < layout::kOp + 4; ++byte) {
      EXPECT_EQ(places.bytes[byte], 0);
    }
    for (const int fields : places.bytes) EXPECT_LE(fields, 1) << name_of(command.opcode());
    for (const int fields : places.flags) EXPECT_LE(fields, 1) << name_of(command.opcode());
  }
}

TEST(CommandFields, ComeBackFromMemory) {
  test::Random random(8);
  for (int i = 0; i < 5000; ++i) {
    const Command command = test::random_command(random);
    const std::vector<std::uint8_t> bytes = encode_commands({command});
    ASSERT_EQ(bytes.size(), kCommandBytes);
    EXPECT_EQ(decode_command(bytes.data()), command) << name_of(command.opcode());
  }
}

// Every byte of a command is part of a field, or refused unless it is zero.
TEST(CommandFields, AreAllThatACommandMayHold) {
  test::Random random(9);
  for (int i = 0; i < 300; ++i) {
    const Command command = test::random_command(random);
    std::vector<std::uint8_t> bytes = encode_commands({command});
    for (std::size_t byte = 1; byte < kCommandBytes; ++byte) {
      const std::uint8_t before = bytes[byte];
      bytes[byte] = static_cast<std::uint8_t>(before ^ 0x80);
      try {
        const Command other = decode_command(bytes.data());
        EXPECT_FALSE(other == command) << name_of(command.opcode()) << " byte " << byte;
        EXPECT_EQ(encode_commands({other}), bytes);
      } catch (const InputError&) {
      }
      bytes[byte] = before;
    }
  }
}

TEST(CommandFields, AreRefusedUnderTheirPlace) {
  const auto complaint = [](Opcode opcode, std::size_t at, std::uint8_t value) {
    std::vector<std::uint8_t> bytes = encode_commands({test::empty_command(opcode)});
    bytes[at] = value;
    return input_error_of([&] { (void)decode_command(bytes.data()); });
  };
  EXPECT_EQ(complaint(Opcode::kLoad, layout::kC, 1),
            "byte 64 is 1, but its opcode does not use it");
  EXPECT_EQ(complaint(Opcode::kLoad, layout::kFlags, layout::kAUnsigned),
            "byte 2 is 2, but its opcode does not use it");
  EXPECT_EQ(complaint(Opcode::kMove, layout::kMix, 1),
            "byte 6 is 1, but its opcode does not use it");
  EXPECT_EQ(complaint(Opcode::kEnd, layout::kOp, 1), "byte 8 is 1, but its opcode does not use it");
  // Without stages nothing can be said of their operands.
  EXPECT_EQ(complaint(Opcode::kLoad, layout::kParameters, 4),
            "byte 72 is 4, but its opcode does not use it");
  EXPECT_EQ(complaint(Opcode::kEnd, layout::kOpcode, kOpcodes), "opcode 9, expected 0 to 8");
  EXPECT_EQ(complaint(Opcode::kLoad, layout::kType, kDTypes), "element type 5, expected 0 to 4");
  EXPECT_EQ(complaint(Opcode::kLoad, layout::kIssue, kIssues), "issue 3, expected 0 to 2");
}

}  // namespace
}  // namespace systole::hw
