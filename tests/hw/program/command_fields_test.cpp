#include "hw/program/command_fields.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

namespace systole::hw {
namespace {

/// The fields of one member of Command under its names.
std::vector<std::string_view> names_of_same_member(const CommandField& field) {
  Command command;
  field.set(command, 1);
  std::vector<std::string_view> names;
  for (const CommandField& other : command_fields()) {
    if (other.get(command) != 0) names.push_back(other.name);
  }
  return names;
}

TEST(CommandFields, EveryOpcodeUsesAMemberUnderOneName) {
  for (std::uint8_t opcode = 0; opcode < kOpcodes; ++opcode) {
    std::size_t used = 0;
    for (const CommandField& field : command_fields()) {
      if (!field.used_by(static_cast<Opcode>(opcode))) continue;
      ++used;
      Command command;
      field.set(command, field.highest);
      std::size_t set = 0;
      for (const CommandField& other : command_fields()) {
        const bool own = other.used_by(static_cast<Opcode>(opcode));
        set += own && other.get(command) != 0 ? 1 : 0;
      }
      EXPECT_EQ(set, 1U) << int{opcode} << " " << field.name;
    }
    EXPECT_EQ(used == 0, static_cast<Opcode>(opcode) == Opcode::kEnd);
  }
}

TEST(CommandFields, AreMisusedUnlessTheOpcodeUsesTheMemberUnderAnyName) {
  for (std::uint8_t opcode = 0; opcode < kOpcodes; ++opcode) {
    Command all;
    all.opcode = static_cast<Opcode>(opcode);
    for (const CommandField& field : command_fields()) {
      const std::vector<std::string_view> names = names_of_same_member(field);
      Command one;
      one.opcode = all.opcode;
      field.set(one, 1);
      const bool used = std::any_of(
          command_fields().begin(), command_fields().end(),
          [&](const auto& other) { return other.used_by(all.opcode) && other.get(one) != 0; });
      const std::string_view misused = misused_field(one);
      EXPECT_EQ(misused.empty(), used) << int{opcode} << " " << field.name;
      EXPECT_TRUE(used || std::find(names.begin(), names.end(), misused) != names.end()) << misused;
      if (used) field.set(all, 1);
    }
    EXPECT_TRUE(misused_field(all).empty()) << int{opcode};
  }
}

TEST(CommandFields, AreNamedAsOtherOpcodesNameThem) {
  Command load;
  load.opcode = Opcode::kLoad;
  load.c = 1;
  EXPECT_EQ(misused_field(load), "c");
  load.c = 0;
  load.a_unsigned = true;
  EXPECT_EQ(misused_field(load), "a_unsigned");
  Command move;
  move.opcode = Opcode::kMove;
  move.mix = 1;
  EXPECT_EQ(misused_field(move), "encoder");
  Command end;
  end.a_pitch = 1;
  EXPECT_EQ(misused_field(end), "a_pitch");
}

}  // namespace
}  // namespace systole::hw
