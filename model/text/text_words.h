#pragma once

#include <string_view>
#include <vector>

namespace systole::model {

/// A text in the words of GPT-2, which no token crosses; together they are the text again. At
/// every place it is the first of these that fits:
///
///     's  't  're  've  'm  'll  'd
///     letters, digits, or what is neither (nor white space): as many of one kind as there are,
///       with one blank before it if there is one
///     white space up to the last character of it, which is left for the next word
///     white space
///
/// Letters and digits are Unicode's categories L and N, white space is its property White_Space.
/// A byte that is not part of valid UTF-8 is neither.
[[nodiscard]] std::vector<std::string_view> split_words(std::string_view text);

/// The same after every digit has been cut out as a separate word (SmolLM).
[[nodiscard]] std::vector<std::string_view> split_words_and_digits(std::string_view text);

}  // namespace systole::model
