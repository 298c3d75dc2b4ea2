#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace systole::hw {

/// `text` made fit for one line of an error message: control characters (C0, DEL and the UTF-8 form
/// of C1) become `\xNN`, so that a file name or a name found inside a file can neither break the
/// line nor drive the terminal. Text longer than `max_bytes` is cut between two UTF-8 characters
/// and ends in "...".
std::string printable(std::string_view text, std::size_t max_bytes = std::string_view::npos);

}  // namespace systole::hw
