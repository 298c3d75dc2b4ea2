#include "hw/ring/instruction.h"

#include <array>

namespace systole::hw::dfx {
namespace {

constexpr std::array<std::string_view, kOpcodes> kOpcodeNames = {
    "conv1d", "masked_mm",  "mm",         "load",         "add",      "sub",
    "mul",    "exp",        "accum",      "abs_max",      "quantise", "rotate",
    "recip",  "recip_sqrt", "write_keys", "write_values", "sync"};

constexpr std::array<std::string_view, kPhases> kPhaseNames = {
    "embedding", "LayerNorm", "self-attention", "feed-forward", "residual", "sync", "LM head"};

constexpr std::array<std::string_view, kUnits> kUnitNames = {"matrix", "vector", "dma", "router"};

constexpr std::array<std::string_view, kTableFunctions> kFunctionNames = {"none", "gelu", "silu"};

}  // namespace

std::string_view name_of(Opcode op) { return kOpcodeNames[static_cast<std::size_t>(op)]; }
std::string_view name_of(TableFunction function) {
  return kFunctionNames[static_cast<std::size_t>(function)];
}
std::string_view name_of(Unit unit) { return kUnitNames[static_cast<std::size_t>(unit)]; }
std::string_view name_of(Phase phase) { return kPhaseNames[static_cast<std::size_t>(phase)]; }

}  // namespace systole::hw::dfx
