#include "hw/command_fields.h"

#include <limits>
#include <type_traits>

namespace systole::hw {
namespace {

constexpr unsigned bit(Opcode opcode) { return 1U << static_cast<unsigned>(opcode); }

constexpr unsigned kLoad = bit(Opcode::kLoad);
constexpr unsigned kLoadAccumulator = bit(Opcode::kLoadAccumulator);
constexpr unsigned kMatmul = bit(Opcode::kMatmul);
constexpr unsigned kStore = bit(Opcode::kStore);
constexpr unsigned kMove = bit(Opcode::kMove);
constexpr unsigned kAttention = bit(Opcode::kAttention);
constexpr unsigned kHost = bit(Opcode::kHost);
constexpr unsigned kDram = kLoad | kLoadAccumulator | kStore;
constexpr unsigned kPostop = kStore | kMove;
constexpr unsigned kAll = kDram | kMatmul | kMove | kAttention | kHost;

template <typename T>
constexpr std::uint64_t highest_of() {
  if constexpr (std::is_same_v<T, bool>) {
    return 1;
  } else if constexpr (std::is_same_v<T, DType>) {
    return kDTypes - 1;
  } else if constexpr (std::is_same_v<T, Issue>) {
    return kIssues - 1;
  } else {
    return std::numeric_limits<T>::max();
  }
}

template <auto kMember>
CommandField field(std::string_view name, unsigned opcodes, bool optional = false) {
  using Value = std::remove_reference_t<decltype(std::declval<Command&>().*kMember)>;
  return {
      name,
      opcodes,
      highest_of<Value>(),
      optional,
      [](const Command& command) { return static_cast<std::uint64_t>(command.*kMember); },
      [](Command& command, std::uint64_t value) { command.*kMember = static_cast<Value>(value); }};
}

}  // namespace

const std::vector<CommandField>& command_fields() {
  static const std::vector<CommandField> fields = {
      field<&Command::op>("op", kAll),
      field<&Command::issue>("issue", kAll, true),
      field<&Command::chain>("chain", kPostop | kAttention),
      field<&Command::type>("type", kLoadAccumulator),
      field<&Command::dram>("dram", kDram),
      field<&Command::dram_pitch>("dram_pitch", kDram),
      field<&Command::c>("c", kLoadAccumulator | kMatmul | kPostop),
      field<&Command::c_pitch>("c_pitch", kLoadAccumulator | kMatmul | kPostop),
      field<&Command::a>("a", kLoad | kMatmul),
      field<&Command::a_pitch>("a_pitch", kLoad | kMatmul),
      field<&Command::b>("b", kMatmul | kMove),
      field<&Command::b_pitch>("b_pitch", kMatmul | kMove),
      field<&Command::m>("m", kAll),
      field<&Command::n>("n", kAll),
      field<&Command::k>("k", kMatmul | kAttention),
      field<&Command::accumulate>("accumulate", kMatmul, true),
      field<&Command::a_unsigned>("a_unsigned", kMatmul, true),
      field<&Command::b_transposed>("b_transposed", kMatmul, true),
      field<&Command::parameters>("parameters", kPostop, true),
      field<&Command::statistics>("statistics", kPostop, true),
      field<&Command::tensor>("tensor", kPostop, true),
      field<&Command::tensor_pitch>("tensor_pitch", kPostop, true),
      field<&Command::mix>("encoder", kStore, true),
      field<&Command::k>("kept", kPostop | kHost, true),
      // Names that attention alone gives, behind those that the other opcodes give the members.
      field<&Command::c>("softmax", kAttention),
      field<&Command::parameters>("mask", kAttention),
      field<&Command::statistics>("heads", kAttention),
      field<&Command::c_pitch>("keys", kAttention),
      field<&Command::dram>("query", kAttention),
      field<&Command::dram_pitch>("query_pitch", kAttention),
      field<&Command::a>("key", kAttention),
      field<&Command::a_pitch>("key_pitch", kAttention),
      field<&Command::b>("value", kAttention),
      field<&Command::b_pitch>("value_pitch", kAttention),
      field<&Command::tensor>("out", kAttention),
      field<&Command::tensor_pitch>("out_pitch", kAttention),
      field<&Command::mix>("decoders", kAttention, true),
      field<&Command::chain>("function", kHost),
      field<&Command::dram>("in", kHost),
      field<&Command::dram_pitch>("in_pitch", kHost),
      field<&Command::a>("operand", kHost, true),
      field<&Command::a_pitch>("operand_pitch", kHost, true),
      field<&Command::tensor>("result", kHost),
      field<&Command::tensor_pitch>("result_pitch", kHost),
  };
  return fields;
}

std::string_view misused_field(const Command& command) {
  // Several opcodes use one member under different names.
  Command rest = command;
  for (const CommandField& field : command_fields()) {
    if (field.used_by(command.opcode)) field.set(rest, 0);
  }
  for (const CommandField& field : command_fields()) {
    if (field.get(rest) != 0) return field.name;
  }
  return {};
}

}  // namespace systole::hw
