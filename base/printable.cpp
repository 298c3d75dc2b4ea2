#include "base/printable.h"

namespace systole::hw {
namespace {

void append_escaped(std::string& out, unsigned byte) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += "\\x";
  out += kDigits[byte >> 4];
  out += kDigits[byte & 15];
}

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

}  // namespace

std::string printable(std::string_view text, std::size_t max_bytes) {
  const bool cut = text.size() > max_bytes;
  if (cut) {
    std::size_t length = max_bytes;
    while (length > 0 && is_continuation(text[length])) --length;
    text = text.substr(0, length);
  }
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const unsigned byte = static_cast<unsigned char>(text[i]);
    const unsigned next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0U;
    if (byte < 0x20 || byte == 0x7F) {
      append_escaped(out, byte);
    } else if (byte == 0xC2 && next >= 0x80 && next < 0xA0) {
      append_escaped(out, byte);
      append_escaped(out, next);
      ++i;
    } else {
      out += text[i];
    }
  }
  if (cut) out += "...";
  return out;
}

}  // namespace systole::hw
