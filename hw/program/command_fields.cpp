#include "hw/program/command_fields.h"

#include <array>
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
constexpr unsigned kByAttention = bit(Opcode::kAttention);
constexpr unsigned kByHost = bit(Opcode::kHost);
constexpr unsigned kByLoop = bit(Opcode::kLoop);
constexpr unsigned kByDma = kLoad | kLoadAccumulator | kStore;
constexpr unsigned kByPostop = kStore | kMove;
constexpr unsigned kByLoads = kLoad | kLoadAccumulator;
constexpr unsigned kByChain = kByPostop | kByLoads;
constexpr unsigned kAll = kByDma | kMatmul | kMove | kByAttention | kByHost | kByLoop;

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
      field<&Command::chain>("chain", kByPostop | kByAttention | kByLoop),
      field<&Command::type>("type", kLoadAccumulator),
      field<&Command::type>("type", kLoad, true),
      field<&Command::dram>("dram", kByDma),
      field<&Command::dram_pitch>("dram_pitch", kByDma),
      field<&Command::c>("c", kLoadAccumulator | kMatmul | kByPostop),
      field<&Command::c_pitch>("c_pitch", kLoadAccumulator | kMatmul | kByPostop),
      field<&Command::a>("a", kLoad | kMatmul),
      field<&Command::a_pitch>("a_pitch", kLoad | kMatmul),
      field<&Command::b>("b", kMatmul | kMove),
      field<&Command::b_pitch>("b_pitch", kMatmul | kMove),
      field<&Command::m>("m", kAll),
      field<&Command::n>("n", kAll),
      field<&Command::k>("k", kMatmul | kByAttention | kByLoop),
      field<&Command::accumulate>("accumulate", kMatmul | kByLoop, true),
      field<&Command::a_unsigned>("a_unsigned", kMatmul, true),
      field<&Command::b_transposed>("b_transposed", kMatmul, true),
      field<&Command::parameters>("parameters", kByChain, true),
      field<&Command::statistics>("statistics", kByChain, true),
      field<&Command::tensor>("tensor", kByChain, true),
      field<&Command::tensor_pitch>("tensor_pitch", kByChain, true),
      field<&Command::a>("operands", kByPostop, true),
      field<&Command::b>("operands", kByLoads, true),
      field<&Command::accumulate>("continues", kByPostop, true),
      field<&Command::mix>("encoder", kStore, true),
      field<&Command::mix>("pre", kByLoads, true),
      field<&Command::k>("kept", kByChain | kByHost, true),
      // Names that attention alone gives, after those that the other opcodes give the members.
      field<&Command::c>("softmax", kByAttention),
      field<&Command::parameters>("mask", kByAttention),
      field<&Command::statistics>("heads", kByAttention),
      field<&Command::c_pitch>("keys", kByAttention),
      field<&Command::dram>("query", kByAttention),
      field<&Command::dram_pitch>("query_pitch", kByAttention),
      field<&Command::a>("key", kByAttention),
      field<&Command::a_pitch>("key_pitch", kByAttention),
      field<&Command::b>("value", kByAttention),
      field<&Command::b_pitch>("value_pitch", kByAttention),
      field<&Command::tensor>("out", kByAttention),
      field<&Command::tensor_pitch>("out_pitch", kByAttention),
      field<&Command::mix>("decoders", kByAttention, true),
      field<&Command::accumulate>("operand_chains", kByAttention, true),
      field<&Command::chain>("function", kByHost),
      field<&Command::dram>("in", kByHost),
      field<&Command::dram_pitch>("in_pitch", kByHost),
      field<&Command::a>("operand", kByHost, true),
      field<&Command::a_pitch>("operand_pitch", kByHost, true),
      field<&Command::tensor>("result", kByHost | kByLoop),
      field<&Command::tensor_pitch>("result_pitch", kByHost | kByLoop),
      field<&Command::dram>("left", kByLoop),
      field<&Command::dram_pitch>("left_pitch", kByLoop),
      field<&Command::a>("right", kByLoop),
      field<&Command::a_pitch>("right_pitch", kByLoop),
      field<&Command::b>("sums", kByLoop, true),
      field<&Command::b_pitch>("sums_pitch", kByLoop, true),
  };
  return fields;
}

namespace {

/// Fields that are not the opcode's under any name, each member once: several opcodes use one
/// member under different names.
std::vector<const CommandField*> unused_fields(Opcode opcode) {
  Command ones, seen;
  for (const CommandField& field : command_fields()) field.set(ones, 1);
  for (const CommandField& field : command_fields()) {
    if (field.used_by(opcode)) field.set(ones, 0);
  }
  std::vector<const CommandField*> unused;
  for (const CommandField& field : command_fields()) {
    if (field.get(ones) == 0 || field.get(seen) != 0) continue;
    field.set(seen, 1);
    unused.push_back(&field);
  }
  return unused;
}

}  // namespace

std::string_view misused_field(const Command& command) {
  static const auto unused = [] {
    std::array<std::vector<const CommandField*>, kOpcodes> fields;
    for (unsigned i = 0; i < kOpcodes; ++i) fields[i] = unused_fields(static_cast<Opcode>(i));
    return fields;
  }();
  for (const CommandField* field : unused[static_cast<std::size_t>(command.opcode)]) {
    if (field->get(command) != 0) return field->name;
  }
  return {};
}

}  // namespace systole::hw
