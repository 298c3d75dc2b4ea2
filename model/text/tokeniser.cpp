#include "model/text/tokeniser.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <queue>
#include <stdexcept>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/printable.h"
#include "model/metadata/config_file.h"
#include "model/text/text_words.h"

namespace systole::model {
namespace {

constexpr std::int32_t kNone = -1;
constexpr const char* kEndOfText = "<|endoftext|>";

[[noreturn]] void fail(const std::string& path, const std::string& what) {
  throw hw::InputError(hw::printable(path) + ": " + what);
}

/// Whether Latin-1 prints that byte, other than as a blank or a soft hyphen.
bool is_printable(unsigned byte) {
  return (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
}

/// The byte of each letter of the alphabet; kNone between them.
std::array<std::int32_t, 0x144> make_alphabet() {
  std::array<std::int32_t, 0x144> bytes{};
  bytes.fill(kNone);
  std::size_t next = 0x100;
  for (unsigned byte = 0; byte < 0x100; ++byte) {
    bytes.at(is_printable(byte) ? byte : next++) = static_cast<std::int32_t>(byte);
  }
  return bytes;
}

/// The bytes of a token; nothing if a character is not of the alphabet.
std::optional<std::string> bytes_of(std::string_view token) {
  static const auto alphabet = make_alphabet();
  std::string bytes;
  while (!token.empty()) {
    std::int32_t letter = 0;
    const auto size = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(token.data()),
                                       static_cast<utf8proc_ssize_t>(token.size()), &letter);
    if (size <= 0 || letter < 0 || static_cast<std::size_t>(letter) >= alphabet.size()) return {};
    const std::int32_t byte = alphabet.at(static_cast<std::size_t>(letter));
    if (byte == kNone) return {};
    bytes += static_cast<char>(byte);
    token.remove_prefix(static_cast<std::size_t>(size));
  }
  return bytes;
}

/// What becomes of two tokens side by side.
struct Merge {
  std::int32_t left, right, merged;
};

std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(left) << 32U | static_cast<std::uint32_t>(right);
}

std::uint64_t pair_of(const Merge& merge) { return pair_key(merge.left, merge.right); }

/// GPT-2's byte pair encoding, from its two files or from the metadata of a network file, which has
/// tokens and merges as lists. There tokens may be control tokens: they are what they are written
/// as, and a text is cut at them first, the longest one where several begin.
///
/// Vocabulary: a JSON object from token to id, 0 without a gap. Tokens are bytes, written in an
/// alphabet of 256 printable characters: Latin-1's printable ones mean themselves, the k-th
/// of the other bytes is U+0100 + k.
///
/// Merges: pairs of tokens, one a line with a blank between, after a line "#version: ..." that may
/// be missing. A text is split into words (model/text/text_words.h), the bytes of a word are its
/// first tokens, and of all adjacent pairs the one that comes first in the file becomes one token,
/// wherever it occurs and from left to right, until no pair of the file is left.
class BytePairs : public Tokeniser {
 public:
  /// Throws InputError that names the file and the place if one is missing or malformed, a pair has
  /// no token or comes twice, or there are not `vocabulary` tokens, as the checkpoint has.
  BytePairs(const std::string& vocab_path, const std::string& merges_path,
            std::uint32_t vocabulary) {
    read_tokens(vocab_path, vocabulary);
    read_merges(merges_path);
    pack();
  }
  /// From metadata, in the same way.
  BytePairs(const std::string& place, const nlohmann::json& metadata, std::uint32_t vocabulary);

  [[nodiscard]] std::uint32_t vocabulary() const override {
    return static_cast<std::uint32_t>(ends_.size());
  }

  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<std::int32_t> ids;
    std::size_t piece = 0;
    for (std::size_t at = 0; at < text.size();) {
      const auto control = control_at(text.substr(at));
      if (control == kNone) {
        ++at;
        continue;
      }
      encode_words(text, piece, at, ids);
      ids.push_back(control);
      piece = at += token(control).size();
    }
    encode_words(text, piece, text.size(), ids);
    return ids;
  }

  [[nodiscard]] std::string decode(const std::vector<std::int32_t>& ids) const override {
    std::string text;
    for (const std::int32_t id : ids) {
      if (id < 0 || static_cast<std::size_t>(id) >= ends_.size()) {
        throw std::out_of_range("decode: id " + std::to_string(id));
      }
      text += token(id);
    }
    return text;
  }

  [[nodiscard]] std::optional<std::int32_t> end_of_text() const override {
    return end_ == kNone ? std::nullopt : std::optional(end_);
  }

 private:
  void read_tokens(const std::string& path, std::uint32_t vocabulary);
  void read_merges(const std::string& path);
  void add_token(const std::string& path, const std::string& token, std::uint32_t id);
  void add_merge(const std::string& path, std::size_t line_number, std::string_view line);
  /// What is read is not needed any more once all merges are known.
  void pack();
  /// The bytes of a token.
  [[nodiscard]] std::string_view token(std::int32_t id) const {
    const auto index = static_cast<std::size_t>(id);
    const std::uint32_t begin = index == 0 ? 0 : ends_[index - 1];
    return std::string_view(bytes_).substr(begin, ends_[index] - begin);
  }
  /// The place in `merges_` of what becomes of two tokens, if anything does.
  [[nodiscard]] std::optional<std::uint32_t> rank_of(std::int32_t left, std::int32_t right) const;
  /// The control token that a text begins with, or kNone.
  [[nodiscard]] std::int32_t control_at(std::string_view text) const;
  /// The bytes of `text` from `begin` to `end`.
  void encode_words(std::string_view text, std::size_t begin, std::size_t end,
                    std::vector<std::int32_t>& ids) const;
  void encode_word(std::string_view word, std::size_t place, std::vector<std::int32_t>& ids) const;
  /// The tokens of a word made of single bytes; a token is at the place of its first byte, and
  /// kNone at those of the others.
  void merge(std::vector<std::int32_t>& tokens) const;

  /// What a file is read to.
  struct Reading {
    std::vector<std::string> bytes;                     ///< of every token
    std::unordered_map<std::string, std::int32_t> ids;  ///< of tokens as written
    std::unordered_set<std::uint64_t> pairs;            ///< of merges
  };
  Reading reading_;
  std::string bytes_;                           ///< of all tokens, one after the other
  std::vector<std::uint32_t> ends_;             ///< of each token, in `bytes_`
  std::array<std::int32_t, 0x100> byte_ids_{};  ///< of tokens of one byte, or kNone
  std::vector<std::int32_t> controls_;          ///< the longest first
  bool digits_alone_ = false;
  std::int32_t end_ = kNone;
  std::vector<Merge> merges_;           ///< the earlier the first
  std::vector<std::uint32_t> by_pair_;  ///< places in `merges_` in the order of their pairs
};

void BytePairs::read_tokens(const std::string& path, std::uint32_t vocabulary) {
  const hw::MappedFile file(path);
  const auto tokens = nlohmann::json::parse(file.bytes(), nullptr, false);
  if (!tokens.is_object()) fail(path, "no JSON object, expected ids by token");
  if (tokens.size() != vocabulary) {
    fail(path, fmt::format("{} tokens, expected the {} of the checkpoint's table of words",
                           tokens.size(), vocabulary));
  }
  reading_.bytes.resize(vocabulary);
  byte_ids_.fill(kNone);
  for (const auto& item : tokens.items()) {
    const std::string& token = item.key();
    const nlohmann::json& id = item.value();
    const auto named = [&] { return "token '" + hw::printable(token, 40) + "': "; };
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() >= vocabulary) {
      fail(path, fmt::format("{}expected an id from 0 to {}", named(), vocabulary - 1));
    }
    add_token(path, token, id.get<std::uint32_t>());
  }
}

void BytePairs::add_token(const std::string& path, const std::string& token, std::uint32_t id) {
  const auto named = [&] { return "token '" + hw::printable(token, 40) + "': "; };
  const auto bytes = bytes_of(token);
  if (!bytes || bytes->empty()) {
    fail(path, named() + "expected letters of the alphabet of bytes");
  }
  std::string& written = reading_.bytes[id];
  if (!written.empty()) fail(path, fmt::format("{}its id {} comes twice", named(), id));
  written = *bytes;
  reading_.ids[token] = static_cast<std::int32_t>(id);
  if (bytes->size() == 1) {
    byte_ids_.at(static_cast<unsigned char>(bytes->front())) = static_cast<std::int32_t>(id);
  }
}

BytePairs::BytePairs(const std::string& place, const nlohmann::json& metadata,
                     std::uint32_t vocabulary) {
  const auto list = [&](const char* key, auto is_kind, const char* what) -> const nlohmann::json& {
    const auto found = metadata.find(key);
    if (found == metadata.end() || !found->is_array() ||
        !std::all_of(found->begin(), found->end(), is_kind)) {
      fail(place, fmt::format("'{}': expected a list of {}", key, what));
    }
    return *found;
  };
  const auto is_text = [](const nlohmann::json& value) { return value.is_string(); };
  const auto is_id = [&](const nlohmann::json& value) {
    return value.is_number_unsigned() && value.get<std::uint64_t>() < vocabulary;
  };
  const auto kind = metadata.find("kind");
  if (!metadata.is_object() || kind == metadata.end() || *kind != "byte_pairs") {
    fail(place, "expected an object of 'kind' \"byte_pairs\"");
  }
  const auto digits = metadata.find("digits_alone");
  if (digits == metadata.end() || !digits->is_boolean()) {
    fail(place, "'digits_alone': expected true or false");
  }
  digits_alone_ = digits->get<bool>();
  const nlohmann::json& tokens = list("tokens", is_text, "texts");
  if (tokens.size() != vocabulary) {
    fail(place, fmt::format("{} tokens, expected the {} of the network's table of words",
                            tokens.size(), vocabulary));
  }
  reading_.bytes.resize(vocabulary);
  byte_ids_.fill(kNone);
  for (const nlohmann::json& id : list("control", is_id, "ids")) {
    const auto index = id.get<std::uint32_t>();
    std::string& written = reading_.bytes[index];
    written = tokens[index].get<std::string>();
    if (written.empty()) fail(place, fmt::format("control token {} is empty", index));
    controls_.push_back(static_cast<std::int32_t>(index));
  }
  for (std::uint32_t id = 0; id < vocabulary; ++id) {
    if (reading_.bytes[id].empty()) add_token(place, tokens[id].get<std::string>(), id);
  }
  if (const auto end = metadata.find("end"); end != metadata.end()) {
    if (!is_id(*end)) fail(place, "'end': expected the id of a token");
    end_ = end->get<std::int32_t>();
  }
  std::size_t number = 0;
  for (const nlohmann::json& merge : list("merges", is_text, "texts")) {
    add_merge(place + ": merges", ++number, merge.get<std::string>());
  }
  pack();
  std::sort(controls_.begin(), controls_.end(),
            [this](std::int32_t a, std::int32_t b) { return token(a).size() > token(b).size(); });
}

void BytePairs::pack() {
  const auto found = reading_.ids.find(kEndOfText);
  if (end_ == kNone && found != reading_.ids.end()) end_ = found->second;
  std::size_t size = 0;
  for (const std::string& bytes : reading_.bytes) size += bytes.size();
  bytes_.reserve(size);
  ends_.reserve(reading_.bytes.size());
  for (const std::string& bytes : reading_.bytes) {
    bytes_ += bytes;
    ends_.push_back(static_cast<std::uint32_t>(bytes_.size()));
  }
  merges_.shrink_to_fit();
  by_pair_.resize(merges_.size());
  std::iota(by_pair_.begin(), by_pair_.end(), 0U);
  std::sort(by_pair_.begin(), by_pair_.end(), [this](std::uint32_t a, std::uint32_t b) {
    return pair_of(merges_[a]) < pair_of(merges_[b]);
  });
  reading_ = {};
}

std::optional<std::uint32_t> BytePairs::rank_of(std::int32_t left, std::int32_t right) const {
  const std::uint64_t pair = pair_key(left, right);
  const auto found = std::lower_bound(
      by_pair_.begin(), by_pair_.end(), pair,
      [this](std::uint32_t of, std::uint64_t wanted) { return pair_of(merges_[of]) < wanted; });
  if (found == by_pair_.end() || pair_of(merges_[*found]) != pair) return std::nullopt;
  return *found;
}

std::int32_t BytePairs::control_at(std::string_view text) const {
  for (const std::int32_t id : controls_) {
    const std::string_view written = token(id);
    if (text.substr(0, written.size()) == written) return id;
  }
  return kNone;
}

void BytePairs::encode_words(std::string_view text, std::size_t begin, std::size_t end,
                             std::vector<std::int32_t>& ids) const {
  const std::string_view piece = text.substr(begin, end - begin);
  for (const std::string_view word :
       digits_alone_ ? split_words_and_digits(piece) : split_words(piece)) {
    encode_word(word, static_cast<std::size_t>(word.data() - text.data()), ids);
  }
}

void BytePairs::read_merges(const std::string& path) {
  const hw::MappedFile file(path);
  std::string_view rest = file.bytes();
  for (std::size_t number = 1; !rest.empty(); ++number) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    const bool is_header = number == 1 && line.substr(0, 8) == "#version";
    if (!line.empty() && !is_header) add_merge(path, number, line);
  }
}

void BytePairs::add_merge(const std::string& path, std::size_t line_number, std::string_view line) {
  const auto error = [&](const std::string& what) {
    fail(path, fmt::format("line {}: {}", line_number, what));
  };
  const std::size_t blank = line.find(' ');
  if (blank == std::string_view::npos || line.find(' ', blank + 1) != std::string_view::npos) {
    error("expected two tokens with a blank between");
  }
  const std::string left(line.substr(0, blank)), right(line.substr(blank + 1));
  const auto id_of = [&](const std::string& token) {
    const auto found = reading_.ids.find(token);
    if (found == reading_.ids.end()) {
      error("'" + hw::printable(token, 40) + "' is no token of the vocabulary");
    }
    return found->second;
  };
  const Merge merge{id_of(left), id_of(right), id_of(left + right)};
  if (!reading_.pairs.insert(pair_of(merge)).second) {
    error("a pair that has come before");
  }
  merges_.push_back(merge);
}

void BytePairs::encode_word(std::string_view word, std::size_t place,
                            std::vector<std::int32_t>& ids) const {
  std::vector<std::int32_t> tokens;
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte_ids_.at(byte) == kNone) {
      throw hw::InputError(
          fmt::format("text: byte {} is 0x{:02x}, expected one that is a token "
                      "of the vocabulary",
                      place + tokens.size() + 1, byte));
    }
    tokens.push_back(byte_ids_.at(byte));
  }
  merge(tokens);
  std::copy_if(tokens.begin(), tokens.end(), std::back_inserter(ids),
               [](std::int32_t id) { return id != kNone; });
}

void BytePairs::merge(std::vector<std::int32_t>& tokens) const {
  const std::size_t end = tokens.size();
  std::vector<std::size_t> before(end), after(end);
  for (std::size_t at = 0; at < end; ++at) {
    before[at] = at - 1;  // of the first: never looked at
    after[at] = at + 1;
  }
  // The pairs that can become one, the first in the file first, then from left to right. Whether
  // one is still there shows when its turn comes.
  using Candidate = std::pair<std::uint32_t, std::size_t>;  // rank, place
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
  const auto add = [&](std::size_t at) {
    if (after[at] == end) return;
    const auto rank = rank_of(tokens[at], tokens[after[at]]);
    if (rank) queue.emplace(*rank, at);
  };
  for (std::size_t at = 0; at < end; ++at) add(at);
  std::vector<std::size_t> changed;
  while (!queue.empty()) {
    // One pair wherever it occurs, and only then what that makes possible.
    const std::uint32_t rank = queue.top().first;
    const Merge& rule = merges_[rank];
    changed.clear();
    for (; !queue.empty() && queue.top().first == rank; queue.pop()) {
      const std::size_t at = queue.top().second, next = after[at];
      if (tokens[at] != rule.left || next == end || tokens[next] != rule.right) continue;
      tokens[at] = rule.merged;
      tokens[next] = kNone;
      after[at] = after[next];
      if (after[at] != end) before[after[at]] = at;
      changed.push_back(at);
    }
    for (const std::size_t at : changed) {
      add(at);
      if (at != 0) add(before[at]);
    }
  }
}

class AsciiTokeniser : public Tokeniser {
 public:
  [[nodiscard]] std::uint32_t vocabulary() const override { return kAsciiVocabulary; }

  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text) const override {
    std::vector<std::int32_t> ids;
    for (const char c : text) {
      const auto code = static_cast<unsigned char>(c);
      if (code >= kAsciiVocabulary) {
        throw hw::InputError(
            fmt::format("text: byte {} is 0x{:02x}, expected ASCII: this "
                        "vocabulary has no other characters",
                        ids.size() + 1, code));
      }
      ids.push_back(code);
    }
    return ids;
  }

  [[nodiscard]] std::string decode(const std::vector<std::int32_t>& ids) const override {
    std::string text;
    for (const std::int32_t id : ids) {
      if (id < 0 || id >= static_cast<std::int32_t>(kAsciiVocabulary)) {
        throw std::out_of_range("decode: id " + std::to_string(id));
      }
      text += static_cast<char>(id);
    }
    return text;
  }
};

}  // namespace

std::unique_ptr<Tokeniser> make_ascii_tokeniser() { return std::make_unique<AsciiTokeniser>(); }

std::unique_ptr<Tokeniser> read_tokeniser(const std::string& place, const std::string& text,
                                          std::uint32_t vocabulary) {
  const auto metadata = nlohmann::json::parse(text, nullptr, false);
  if (metadata.is_discarded()) fail(place, "no JSON");
  return std::make_unique<BytePairs>(place, metadata, vocabulary);
}

std::unique_ptr<Tokeniser> find_tokeniser(const std::string& checkpoint, std::uint32_t vocabulary) {
  const std::filesystem::path beside(checkpoint);
  const std::string tokens = std::filesystem::path(beside).replace_filename(kTokensFile);
  const std::string merges = std::filesystem::path(beside).replace_filename(kMergesFile);
  std::error_code ignored;  // what cannot be looked at is not there
  if (std::filesystem::exists(tokens, ignored) || std::filesystem::exists(merges, ignored)) {
    return std::make_unique<BytePairs>(tokens, merges, vocabulary);
  }
  if (vocabulary == kAsciiVocabulary) return make_ascii_tokeniser();
  throw hw::InputError(
      fmt::format("{}: missing, expected the {} tokens of the checkpoint beside it",
                  hw::printable(tokens), vocabulary));
}

}  // namespace systole::model
