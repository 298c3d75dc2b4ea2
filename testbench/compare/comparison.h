#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace systole::testbench {

/// A figure of two runs; nothing where a run has none.
using Pair = std::array<std::optional<double>, 2>;

/// Two statistics documents (docs/statistics.md) of the same network, figure by figure.
struct Comparison {
  struct Key {
    std::string name;                                   ///< "array.rows"
    std::array<nlohmann::ordered_json, 2> values = {};  ///< null: not a key of that machine
  };
  struct Figure {
    std::string name, unit;
    Pair values;
  };
  struct Operator {
    std::string name;  ///< `*` for layers and heads
    Pair cycles, bytes, joules;
  };
  struct Stall {
    std::string block, cause, unit;  ///< cause: also "busy" and "idle"
    Pair times;                      ///< per inference
  };
  std::string model;
  std::array<std::string, 2> paths, machines;
  std::vector<Key> keys;  ///< those that differ
  std::vector<Figure> totals;
  std::vector<Operator> operators;  ///< in the order of the first, then what only the second has
  std::vector<Figure> energy;       ///< joules by cause
  std::vector<Stall> stalls;
};

/// Reads two files of `systole run` or `systole matmul --stats`. Throws InputError, one line, if
/// one cannot be read, is no such document, has another version than this program writes, or is of
/// another network than the other one.
[[nodiscard]] Comparison compare_statistics(const std::array<std::string, 2>& paths);

/// At most kTextWidth columns; figures that are the same or nothing in both runs have no line.
[[nodiscard]] std::string comparison_text(const Comparison& comparison);
/// Names are those of docs/report.md.
[[nodiscard]] nlohmann::ordered_json comparison_json(const Comparison& comparison);

}  // namespace systole::testbench
