#pragma once

#include <array>
#include <string_view>

#include "hw/number/dyadic.h"
#include "hw/program/program.h"

/// Words that the writer and the parser of assembly share; enumerations in declaration order.
namespace systole::hw {

inline constexpr std::array<std::string_view, 3> kRoundingWords = {"half_up", "half_even", "floor"};
inline constexpr std::array<std::string_view, 3> kPlaceWords = {"dram", "scratchpad", "ring"};
inline constexpr std::array<std::string_view, kDTypes> kTypeWords = {"s8", "u8", "s16", "s32",
                                                                     "u16"};

/// A command field written as one word rather than as a number.
inline constexpr std::string_view kTypeField = "type";

}  // namespace systole::hw
