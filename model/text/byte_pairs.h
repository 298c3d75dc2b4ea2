#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "model/text/tokeniser.h"

namespace systole::model {

/// GPT-2's byte pair encoding from its two files.
///
/// `vocab_path`: a JSON object from token to id, 0 without a gap. Tokens are bytes, written in an
/// alphabet of 256 printable characters: Latin-1's printable ones stand for themselves, the k-th
/// of the other bytes is U+0100 + k.
///
/// `merges_path`: pairs of tokens, one a line with a blank between, behind a line "#version: ..."
/// that may be missing. A text is split into words (model/text/text_words.h), the bytes of a word
/// are its first tokens, and of all pairs side by side the one that stands first in the file
/// becomes one token, wherever it occurs and from left to right, until there is none.
///
/// Throws InputError that names the file and the place if one is missing or malformed, a pair has
/// no token or comes twice, or there are not `vocabulary` tokens, as the checkpoint has.
[[nodiscard]] std::unique_ptr<Tokeniser> load_byte_pairs(const std::string& vocab_path,
                                                         const std::string& merges_path,
                                                         std::uint32_t vocabulary);

}  // namespace systole::model
