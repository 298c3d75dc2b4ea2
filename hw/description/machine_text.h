#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hw/description/machine_keys.h"

/// Keys and values of a machine as text: for files, for error messages and for the documentation.
namespace systole::hw {

/// Bytes of a foreign text that a message repeats; enough for every valid name.
inline constexpr std::size_t kShownBytes = 64;

/// `text` in quotes, fit for one line of a message and cut to kShownBytes.
[[nodiscard]] std::string quoted_text(std::string_view text);

/// Shortest decimal text that reads back as the same number, whatever the locale: "10", "14.16".
[[nodiscard]] std::string number_text(double value);

/// The same as TOML writes a number that is no integer: "10.0".
[[nodiscard]] std::string real_text(double value);

/// The value as a machine file writes it: `64`, `14.16`, `"full"`. A number reads back bit by bit.
[[nodiscard]] std::string value_text(const MachineKey& key, const KeyValue& value);

/// The key's value in `machine`, as a machine file writes it.
[[nodiscard]] std::string value_text(const MachineKey& key, const Machine& machine);

/// The value of a word of the key, none if it has no such word.
[[nodiscard]] std::optional<KeyValue> word_value(const MachineKey& key, std::string_view word);

/// How a message ends that finds a memory too small: `; --set dram.mib=1024`, with the next power
/// of two from `needed`, which holds whole rows and banks, or the most that the key accepts if that
/// is less than `needed`.
[[nodiscard]] std::string memory_advice(std::string_view path, std::uint64_t needed);

/// What the key accepts: `an integer (MHz, 1 to 10000)`, `"model" or "rtl"`.
[[nodiscard]] std::string expected(const MachineKey& key);

/// The candidate nearest to `name` by edit distance, empty if none is near enough to be what a
/// typing error meant.
[[nodiscard]] std::string_view nearest(std::string_view name,
                                       const std::vector<std::string_view>& candidates);

/// The key's path that `path` probably meant: nearest as a whole, or to what follows the dot.
/// Empty if none is near.
[[nodiscard]] std::string_view nearest_machine_key(std::string_view path);

/// A machine file that sets every key, with unit, range and meaning in comments. parse_machine() of
/// it gives `machine` again.
[[nodiscard]] std::string to_toml(const Machine& machine);

/// Markdown for the documentation: the table of all keys with unit, range, default, meaning and the
/// source of the default, and the list of the rules that join several keys.
[[nodiscard]] std::string describe_machine_keys();

}  // namespace systole::hw
