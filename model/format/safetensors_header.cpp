#include "model/format/safetensors_header.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "model/format/safetensors_entries.h"

namespace systole::model {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensor data are used as they are stored");

constexpr std::size_t kLengthBytes = 8;

/// The JSON text of the header.
std::string_view header_text(std::string_view file, const std::string& file_name) {
  const std::string shown = hw::printable(file_name);
  if (file.size() < kLengthBytes) {
    throw hw::InputError(
        fmt::format("{}: byte 0: the file has {} bytes, expected at least the {} "
                    "bytes of the header length",
                    shown, file.size(), kLengthBytes));
  }
  std::uint64_t length = 0;
  file.copy(reinterpret_cast<char*>(&length), kLengthBytes);
  const auto fail = [&](const std::string& what) {
    throw hw::InputError(fmt::format("{}: byte 0: header length {}", shown, what));
  };
  if (length == 0) fail("is 0, expected a header");
  if (length > kMaxHeaderBytes) fail(fmt::format("{} is above {}", length, kMaxHeaderBytes));
  if (length > file.size() - kLengthBytes) {
    fail(fmt::format("{} is more than the {} bytes that follow: truncated, or not safetensors",
                     length, file.size() - kLengthBytes));
  }
  const std::string_view text = file.substr(kLengthBytes, static_cast<std::size_t>(length));
  if (text.front() != '{') {
    throw hw::InputError(shown + ": header byte 1: expected '{', the start of a JSON object");
  }
  // The JSON parser takes a zero byte as the end of its input and would not look further.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    throw hw::InputError(fmt::format("{}: header byte {}: a zero byte", shown, zero + 1));
  }
  return text;
}

/// Checks that the entries, in the order of their data, cover exactly `data_bytes`.
void check_coverage(const std::map<std::string, SafetensorsEntry>& entries, std::size_t data_bytes,
                    const std::string& file_name) {
  std::vector<const SafetensorsEntry*> order;
  order.reserve(entries.size());
  for (const auto& [name, entry] : entries) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const SafetensorsEntry* a, const SafetensorsEntry* b) {
    return std::pair(a->begin(), a->end()) < std::pair(b->begin(), b->end());
  });
  const auto fail = [&](const std::string& where, const std::string& what) {
    throw hw::InputError(fmt::format("{}: {}: {}", hw::printable(file_name), where, what));
  };
  std::size_t covered = 0;
  for (const SafetensorsEntry* entry : order) {
    const std::string where = "tensor " + in_quotes(entry->name);
    if (entry->end() > data_bytes) {
      fail(where, fmt::format("data end at {}, beyond the {} data bytes of the file: truncated?",
                              entry->end(), data_bytes));
    }
    if (entry->begin() < covered) {
      fail(where, fmt::format("data overlap another tensor's: begin {}, expected {}",
                              entry->begin(), covered));
    }
    if (entry->begin() > covered) {
      fail(where, fmt::format("data leave a hole of {} bytes before them: begin {}, expected {}",
                              entry->begin() - covered, entry->begin(), covered));
    }
    covered = entry->end();
  }
  if (covered < data_bytes) {
    fail("data", fmt::format("{} trailing bytes belong to no tensor", data_bytes - covered));
  }
}

}  // namespace

const char* tensor_name_problem(std::string_view name) {
  if (name.empty()) return "the name is empty";
  if (name == kMetadataKey) return "the name is reserved";
  if (hw::printable(name) != name) return "the name contains control characters";
  return nullptr;
}

SafetensorsHeader parse_safetensors(std::string_view file, const std::string& file_name) {
  const std::string_view text = header_text(file, file_name);
  SafetensorsEntries entries = read_safetensors_entries(text, file_name);
  const std::string_view data = file.substr(kLengthBytes + text.size());
  check_coverage(entries.tensors, data.size(), file_name);
  SafetensorsHeader header;
  header.metadata = std::move(entries.metadata);
  const auto* base = reinterpret_cast<const std::byte*>(data.data());
  for (auto& [name, entry] : entries.tensors) {
    header.tensors.emplace(name, TensorView{name, *entry.dtype, std::move(*entry.shape),
                                            base + entry.begin(), entry.end() - entry.begin()});
  }
  return header;
}

}  // namespace systole::model
