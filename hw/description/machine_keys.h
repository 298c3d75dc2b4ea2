#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "hw/machine/machine.h"

/// The keys of a machine description: one table that drives parsing, `--set`, checking, printing
/// and documentation. A new field of Machine becomes usable everywhere with one entry here.
namespace systole::hw {

/// A key's value: an integer (for a word: its place in the enumeration), a number, or a name.
using KeyValue = std::variant<std::int64_t, double, std::string>;

struct MachineKey {
  enum class Kind {
    kInteger,
    kPowerOfTwo,
    kNumber,  ///< a finite real number
    kWord,    ///< one of `words`
    kName,    ///< letters, digits, '.', '_' and '-'; min and max bound its length
  };

  std::string_view path;  ///< section and key, "scratchpad.kib"
  Kind kind;
  std::string_view unit;                ///< empty if it has none
  double min, max;                      ///< both included; unused for words
  std::vector<std::string_view> words;  ///< in the order of the enumeration
  std::string_view meaning;             ///< one line
  std::string_view source;              ///< where the default comes from, one line
  KeyValue (*get)(const Machine&);
  void (*set)(Machine&, const KeyValue&);  ///< only with a value that accepts() agrees to
};

/// Every key, grouped by section, in the order in which files and tables show them.
[[nodiscard]] const std::vector<MachineKey>& machine_keys();

/// The key of that path, or null.
[[nodiscard]] const MachineKey* find_machine_key(std::string_view path);

/// Part of a path before the dot ("" for a key outside the sections), and after it.
[[nodiscard]] std::string_view section_of(std::string_view path);
[[nodiscard]] std::string_view key_of(std::string_view path);

/// True if `value` has the key's type and lies in its range.
[[nodiscard]] bool accepts(const MachineKey& key, const KeyValue& value);

}  // namespace systole::hw
