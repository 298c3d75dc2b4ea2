#pragma once

#include <nlohmann/json.hpp>

#include "hw/machine/machine.h"

/// Figures of the documents of `systole attention` and `systole run`, which several tables need.
namespace systole::testbench {

[[nodiscard]] double number(const nlohmann::ordered_json& document, const char* name);
/// Cycles from start to interrupt.
[[nodiscard]] double cycles_of(const nlohmann::ordered_json& document);
/// Cycles that the attention engines of a network's run were at work or held up.
[[nodiscard]] double attention_cycles_of(const nlohmann::ordered_json& network);
/// Cycles from start to interrupt, of one to those of the other.
[[nodiscard]] double speed_up(const nlohmann::ordered_json& slow,
                              const nlohmann::ordered_json& fast);
/// Engine cycles held up, of all causes.
[[nodiscard]] double stalled_cycles(const nlohmann::ordered_json& document);
/// MACs of kept cells, of SDDMM and SpMM.
[[nodiscard]] double kept_macs(const nlohmann::ordered_json& document);
/// Percent of the engine cycles that `cause` held up.
[[nodiscard]] double stalled_percent(const nlohmann::ordered_json& document, const char* cause);
/// Percent of the time that movement would take if nothing overlapped: of bytes read at the peak
/// rate, to these, the engine cycles without stalls and those of decoding.
[[nodiscard]] double movement_percent(const nlohmann::ordered_json& document,
                                      const hw::Machine& machine);

}  // namespace systole::testbench
