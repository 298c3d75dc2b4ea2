#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "model/format/tensor_view.h"

/// The operators of a network file: the one list of them, for reading, for checking, for counting
/// and for the page docs/network-format.md.
namespace systole::model {

/// One operand of an operator.
struct OpInput {
  enum class Kind : std::uint8_t {
    kActivation,  ///< of a graph input or of another node
    kReal,        ///< constant: F16, BF16, F32 or F64, or I8 codes with a scale
    kCodes,       ///< constant: I8
    kWords,       ///< constant: I32
    kBytes,       ///< constant: U8
    kMask,        ///< constant: U8, a bit for each cell (model/checkpoint/keep_mask.h)
  };
  std::string_view name;
  Kind kind = Kind::kActivation;
  bool optional = false;  ///< may be left out; only the last ones
};

/// An attribute of an operator, besides its operands.
struct OpAttribute {
  enum class Kind : std::uint8_t {
    kCount,    ///< whole number from `low` to `high`
    kInteger,  ///< whole number of 64 bits
    kReal,     ///< finite number from `low` to `high`
    kReals,    ///< list of such numbers
    kSides,    ///< whole number from `low` to `high`, or [top, left, bottom, right] of them
    kFlag,     ///< true or false
    kWord,     ///< one of `words`
    kFactor,   ///< [multiplier, shift]: times multiplier / 2^shift (hw/number/dyadic.h)
  };
  std::string_view name;
  Kind kind = Kind::kCount;
  double low = 0, high = 0;
  bool optional = false;
  std::vector<std::string_view> words = {};
};

/// What an operator takes in a network of real numbers, or in one of integers.
struct OpForm {
  std::vector<OpInput> inputs;
  std::vector<OpAttribute> attributes;
};

struct NetworkOp {
  std::string_view name;
  std::string_view meaning;  ///< one line, for people
  std::string_view shapes;   ///< of operands and result, for people
  OpForm real, integer;      ///< without inputs: not in such a network
};

[[nodiscard]] const std::vector<NetworkOp>& network_ops();
/// Null for an unknown name.
[[nodiscard]] const NetworkOp* find_network_op(std::string_view name);
/// Whether an operator works on pictures, and only convolutional networks have it.
[[nodiscard]] bool is_picture_op(std::string_view name);

/// Of the constants that an operand takes; none for an activation.
[[nodiscard]] std::vector<FileDtype> dtypes_of(OpInput::Kind kind);

/// The JSON schema of the document in a network file, from this list.
[[nodiscard]] nlohmann::ordered_json network_schema();

}  // namespace systole::model
