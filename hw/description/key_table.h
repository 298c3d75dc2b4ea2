#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "hw/description/machine_keys.h"

/// How entries of the key table are made from member pointers (hw/description/machine_keys.cpp,
/// hw/description/ring_keys.cpp).
namespace systole::hw::key_table {

using Kind = MachineKey::Kind;
using Text = std::string_view;

/// Reads and writes the field that a chain of member pointers leads to.
template <auto... kMembers>
struct Field {
  template <typename AnyMachine>
  static auto& of(AnyMachine& machine) {
    return (machine.*....*kMembers);
  }

  using Type = std::remove_reference_t<decltype(of(std::declval<Machine&>()))>;
  using Held = std::conditional_t<std::is_integral_v<Type> || std::is_enum_v<Type>, std::int64_t,
                                  Type>;  // the alternative of KeyValue that carries it

  static KeyValue get(const Machine& machine) { return static_cast<Held>(of(machine)); }
  static void set(Machine& machine, const KeyValue& value) {
    of(machine) = static_cast<Type>(std::get<Held>(value));
  }
};

template <auto... kMembers>
MachineKey key(Kind kind, Text path, Text unit, double min, double max, Text meaning, Text source) {
  using Access = Field<kMembers...>;
  return {path, kind, unit, min, max, {}, meaning, source, Access::get, Access::set};
}

template <auto... kMembers>
MachineKey integer(Text path, Text unit, double min, double max, Text meaning, Text source) {
  return key<kMembers...>(Kind::kInteger, path, unit, min, max, meaning, source);
}

template <auto... kMembers>
MachineKey power_of_two(Text path, Text unit, double min, double max, Text meaning, Text source) {
  return key<kMembers...>(Kind::kPowerOfTwo, path, unit, min, max, meaning, source);
}

template <auto... kMembers>
MachineKey number(Text path, Text unit, double min, double max, Text meaning, Text source) {
  return key<kMembers...>(Kind::kNumber, path, unit, min, max, meaning, source);
}

template <auto... kMembers>
MachineKey word(Text path, std::vector<Text> words, Text meaning, Text source) {
  MachineKey entry = key<kMembers...>(Kind::kWord, path, "", 0, 0, meaning, source);
  entry.words = std::move(words);
  return entry;
}

inline constexpr Text kChosen = "chosen";

/// Adds the keys of bus, cache and main memory.
void append_memory_keys(std::vector<MachineKey>& keys);

/// Adds the keys of attention accelerators that find their mask.
void append_dynamic_keys(std::vector<MachineKey>& keys);

/// Adds the keys of energy and area.
void append_cost_keys(std::vector<MachineKey>& keys);

}  // namespace systole::hw::key_table

namespace systole::hw::dfx {

/// Adds the keys of the sections of hw/machine/parameters.h.
void append_keys(std::vector<MachineKey>& keys);

}  // namespace systole::hw::dfx
