#include "model/text/tokeniser.h"

#include <fmt/format.h>

#include <filesystem>
#include <stdexcept>

#include "base/error.h"
#include "base/printable.h"
#include "model/metadata/config_file.h"
#include "model/text/byte_pairs.h"

namespace systole::model {
namespace {

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

std::unique_ptr<Tokeniser> find_tokeniser(const std::string& checkpoint, std::uint32_t vocabulary) {
  const std::filesystem::path beside(checkpoint);
  const std::string tokens = std::filesystem::path(beside).replace_filename(kTokensFile);
  const std::string merges = std::filesystem::path(beside).replace_filename(kMergesFile);
  std::error_code ignored;  // what cannot be looked at is not there
  if (std::filesystem::exists(tokens, ignored) || std::filesystem::exists(merges, ignored)) {
    return load_byte_pairs(tokens, merges, vocabulary);
  }
  if (vocabulary == kAsciiVocabulary) return make_ascii_tokeniser();
  throw hw::InputError(
      fmt::format("{}: missing, expected the {} tokens of the checkpoint beside it",
                  hw::printable(tokens), vocabulary));
}

}  // namespace systole::model
