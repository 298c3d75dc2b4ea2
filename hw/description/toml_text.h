#pragma once

#include <toml++/toml.h>

#include <cstddef>
#include <string>
#include <string_view>

/// Files in TOML that a user may supply: machines, and figures that others published. Every error
/// is an InputError.
namespace systole::hw {

/// The bytes of a regular file of at most `max_bytes`, or one more: the file is too long then.
/// `expected` says what it was to be: "a machine file".
[[nodiscard]] std::string read_toml(const std::string& path, std::size_t max_bytes,
                                    const std::string& expected);

/// The tree of a text of at most `max_bytes`. Errors begin with `source`, fit for one line.
[[nodiscard]] toml::table parse_toml(std::string_view text, const std::string& source,
                                     std::size_t max_bytes, const std::string& expected);

/// How a message begins: "source:line:column: ".
[[nodiscard]] std::string toml_place(const std::string& source, toml::source_position place);

/// What a value is, for "found ...".
[[nodiscard]] std::string found_text(const toml::node& node);

}  // namespace systole::hw
