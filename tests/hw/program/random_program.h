#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <variant>

#include "hw/program/command_codec.h"
#include "hw/program/command_fields.h"
#include "hw/program/program.h"
#include "tests/hw/postop/random_chain.h"

/// Programs that have an encoding, whether or not they fit any machine.
namespace systole::hw::test {

inline std::uint64_t any_unsigned(Random& random, std::uint64_t highest) {
  const std::uint64_t value = random() >> pick(random, 0, 63);
  return pick(random, 0, 15) == 0 ? highest
                                  : (highest == ~std::uint64_t{0} ? value : value % (highest + 1));
}

/// Any bytes, mostly letters.
inline std::string any_text(Random& random) {
  std::string text(static_cast<std::size_t>(pick(random, 0, 12)), 'a');
  for (char& c : text) {
    c = static_cast<char>(pick(random, 0, 5) == 0 ? pick(random, -128, 127)
                                                  : pick(random, 'a', 'z'));
  }
  return text;
}

/// Gives every field of a command any value that it can hold.
class Randomiser {
 public:
  explicit Randomiser(Random& random) : random_(random) {}

  template <typename T>
  void number(const char* /*name*/, std::size_t /*at*/, T& value, layout::Shown /*shown*/) {
    value = static_cast<T>(any_unsigned(random_, std::numeric_limits<T>::max()));
  }
  void flag(const char* /*name*/, unsigned /*bit*/, bool& value) {
    value = pick(random_, 0, 1) != 0;
  }
  void format(const char* /*name*/, WeightFormat& value) {
    value = static_cast<WeightFormat>(pick(random_, 0, kWeightFormats - 1));
  }
  void type(DType& value, layout::Shown /*shown*/) {
    value = static_cast<DType>(pick(random_, 0, kDTypes - 1));
  }
  void tile(const char* /*name*/, std::size_t at, std::size_t /*pitch_at*/, DramTile& tile,
            layout::Shown /*shown*/) {
    const bool is_near = layout::address_bytes(at) == 4;
    tile.address = any_unsigned(random_, is_near ? 0xffffffff : ~std::uint64_t{0});
    tile.pitch = static_cast<std::uint32_t>(any_unsigned(random_, 0xffffffff));
  }
  void tile(const char* /*name*/, std::size_t /*at*/, std::size_t /*pitch_at*/, LocalTile& tile,
            layout::Shown /*shown*/) {
    tile.address = static_cast<std::uint32_t>(any_unsigned(random_, 0xffffffff));
    tile.pitch = static_cast<std::uint32_t>(any_unsigned(random_, 0xffffffff));
  }
  void index(const char* /*name*/, std::size_t /*at*/, std::optional<std::uint16_t>& value) {
    if (pick(random_, 0, 1) != 0) value = static_cast<std::uint16_t>(any_unsigned(random_, 0xfffe));
  }
  void chain(const char* name, std::size_t at, std::optional<ChainUse>& use) {
    std::optional<std::uint16_t> chain;
    index(name, at, chain);
    staged_ = chain.has_value();
    if (chain) use.emplace().chain = *chain;
  }
  /// Of a load without stages, whose places it takes.
  void window(const char* /*name*/, std::size_t /*at*/, std::optional<WindowTile>& tile) {
    if (staged_ || pick(random_, 0, 1) == 0) return;
    tile.emplace().window.gather = static_cast<Gather>(pick(random_, 1, 3));
  }

 private:
  Random& random_;
  bool staged_ = false;
};

/// A command of an opcode, all zero: eighty bytes of which the first is the opcode.
inline Command empty_command(Opcode opcode) {
  std::array<std::uint8_t, kCommandBytes> bytes{};
  bytes[layout::kOpcode] = static_cast<std::uint8_t>(opcode);
  return decode_command(bytes.data());
}

inline Command random_command(Random& random) {
  Command command = empty_command(static_cast<Opcode>(pick(random, 0, kOpcodes - 1)));
  if (command.opcode() == Opcode::kEnd) return command;
  Randomiser fields(random);
  std::visit([&](auto& work) { layout::visit_fields(work, fields); }, command.work);
  command.op = static_cast<std::uint32_t>(any_unsigned(random, 0xffffffff));
  command.issue = static_cast<Issue>(pick(random, 0, kIssues - 1));
  return command;
}

inline HeadMix random_mix(Random& random) {
  HeadMix mix;
  mix.in_heads = static_cast<std::uint32_t>(pick(random, 0, 4));
  mix.out_heads = static_cast<std::uint32_t>(pick(random, 0, 4));
  mix.rounding = static_cast<Rounding>(pick(random, 0, 2));
  mix.weights.resize(mix.in_heads * mix.out_heads);
  for (std::int8_t& weight : mix.weights) {
    weight = static_cast<std::int8_t>(pick(random, -128, 127));
  }
  for (std::uint32_t o = 0; o < mix.out_heads; ++o) {
    mix.bias.push_back(static_cast<std::int32_t>(random()));
    mix.factors.push_back(
        {static_cast<std::int32_t>(random()), static_cast<std::int8_t>(pick(random, -128, 127))});
  }
  return mix;
}

inline Program random_program(Random& random) {
  Program program;
  for (std::int64_t i = pick(random, 0, 4); i > 0; --i) {
    program.chains.push_back(random_chain(random, 6));
    for (Stage& stage : program.chains.back().stages) {
      const StageInfo& info = stage_info(stage.op);
      for (std::size_t j = 0; j < kStageImmediates && !info.imm[j].empty(); ++j) {
        if (pick(random, 0, 5) == 0) stage.imm[j] = static_cast<std::int64_t>(random());
      }
      // A file may hold what no machine runs.
      if (pick(random, 0, 5) == 0) {
        stage.side = static_cast<Reduction>(pick(random, 0, kReductions - 1));
      }
    }
  }
  for (std::int64_t i = pick(random, 0, 3); i > 0; --i) {
    program.operand_tiles.push_back({any_unsigned(random, ~std::uint64_t{0}),
                                     static_cast<std::uint32_t>(any_unsigned(random, 0xffffffff))});
  }
  for (std::int64_t i = pick(random, 0, 3); i > 0; --i) {
    const std::string bytes = any_text(random);
    program.masks.push_back(
        {any_unsigned(random, ~std::uint64_t{0}), {bytes.begin(), bytes.end()}});
  }
  for (std::int64_t i = pick(random, 0, 2); i > 0; --i) {
    program.mixes.push_back(random_mix(random));
  }
  for (std::int64_t i = pick(random, 1, 30); i > 0; --i) {
    program.commands.push_back(random_command(random));
  }
  return program;
}

}  // namespace systole::hw::test
