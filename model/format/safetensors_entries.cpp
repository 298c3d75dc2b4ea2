#include "model/format/safetensors_entries.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "model/format/safetensors_header.h"

namespace systole::model {
namespace {

constexpr std::size_t kMaxNameShown = 80;

/// Builds the entries from parser events. The format has a fixed shape of three levels, so every
/// event is either what the current place expects or an error there; no tree is ever built, and
/// neither depth nor repetition in a hostile header costs more than its bytes.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(const std::string& file_name) : file_name_(hw::printable(file_name)) {}

  SafetensorsEntries take() { return {std::move(entries_), std::move(metadata_)}; }

  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("a boolean"); }
  bool number_integer(number_integer_t) override { unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t&) override {
    unexpected("a number that is fractional or too large");
  }
  bool binary(binary_t&) override { unexpected("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::kShape && place_ != Place::kOffsets) unexpected("a number");
    std::vector<std::size_t>& list = place_ == Place::kShape ? *entry_->shape : *entry_->offsets;
    const std::size_t limit = place_ == Place::kShape ? kMaxDimensions : 2;
    if (list.size() == limit) {
      fail(fmt::format("'{}' has more than {} numbers", field_, limit));
    }
    list.push_back(value);
    return true;
  }

  bool string(string_t& text) override {
    if (place_ == Place::kMetadata) {
      metadata_[key_] = text;
    } else if (place_ == Place::kTensor && field_ == "dtype") {
      entry_->dtype = dtype_from_name(text);
      if (!entry_->dtype) {
        fail("unsupported dtype " + in_quotes(text) + ", expected F32, F16, BF16, I8 or the like");
      }
    } else {
      unexpected("a string");
    }
    return true;
  }

  bool start_object(std::size_t) override {
    if (place_ == Place::kFile) {
      place_ = Place::kRoot;
    } else if (place_ == Place::kRoot) {
      place_ = key_ == kMetadataKey ? Place::kMetadata : Place::kTensor;
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool key(string_t& name) override {
    if (place_ == Place::kRoot) {
      start_entry(name);
    } else if (place_ == Place::kMetadata) {
      key_ = name;
      if (metadata_.count(name) != 0) fail("duplicate key " + in_quotes(name));
    } else {
      start_field(name);
    }
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kTensor) finish_entry();
    place_ = place_ == Place::kRoot ? Place::kFile : Place::kRoot;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ == Place::kTensor && field_ == "shape") {
      place_ = Place::kShape;
      entry_->shape.emplace();
    } else if (place_ == Place::kTensor && field_ == "data_offsets") {
      place_ = Place::kOffsets;
      entry_->offsets.emplace();
    } else {
      unexpected("an array");
    }
    return true;
  }

  bool end_array() override {
    place_ = Place::kTensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception& exception) override {
    std::string reason = exception.what();
    const std::size_t syntax = reason.find("syntax error");
    reason.erase(0, syntax != std::string::npos ? syntax : reason.find("] ") + 2);
    reason.erase(std::min(reason.find("; last read"), reason.size()));
    throw hw::InputError(fmt::format("{}: header byte {}: not valid JSON: {}", file_name_, position,
                                     hw::printable(reason, 2 * kMaxNameShown)));
  }

 private:
  enum class Place { kFile, kRoot, kMetadata, kTensor, kShape, kOffsets };

  [[noreturn]] void fail(const std::string& what) const {
    std::string where = "header";
    if (place_ == Place::kMetadata) {
      where = "header: metadata";
    } else if (entry_ != nullptr) {
      where = "tensor " + in_quotes(entry_->name);
    }
    throw hw::InputError(fmt::format("{}: {}: {}", file_name_, where, what));
  }

  [[noreturn]] void unexpected(const char* found) const {
    switch (place_) {
      case Place::kFile:
        break;  // the text starts with '{', so the first event opened the root
      case Place::kRoot:
        fail(fmt::format("the entry is {}, expected an object", found));
      case Place::kMetadata:
        fail(fmt::format("key {} has {}, expected a string", in_quotes(key_), found));
      case Place::kTensor:
        fail(fmt::format("'{}' is {}, expected {}", field_, found, expected()));
      case Place::kShape:
      case Place::kOffsets:
        fail(fmt::format("'{}' contains {}, expected {}", field_, found, expected()));
    }
    throw std::logic_error("HeaderReader: a value outside of the root object");
  }

  const char* expected() const {
    if (field_ == "dtype") return "a string";
    if (field_ == "shape") return "an array of integers from 0";
    return "an array of two integers from 0";
  }

  void start_entry(const std::string& name) {
    key_ = name;
    entry_ = nullptr;
    if (name == kMetadataKey) {
      if (std::exchange(has_metadata_, true)) fail("duplicate key " + in_quotes(name));
      return;
    }
    if (const char* problem = tensor_name_problem(name)) {
      fail(fmt::format("tensor {}: {}", in_quotes(name), problem));
    }
    const auto [position, inserted] = entries_.try_emplace(name);
    if (!inserted) fail("duplicate key " + in_quotes(name));
    entry_ = &position->second;
    entry_->name = name;
  }

  void start_field(const std::string& name) {
    field_ = name;
    bool repeated = false;
    if (name == "dtype") {
      repeated = entry_->dtype.has_value();
    } else if (name == "shape") {
      repeated = entry_->shape.has_value();
    } else if (name == "data_offsets") {
      repeated = entry_->offsets.has_value();
    } else {
      fail("unknown key " + in_quotes(name) + ", expected dtype, shape and data_offsets");
    }
    if (repeated) fail("duplicate key " + in_quotes(name));
  }

  void finish_entry() const {
    if (!entry_->dtype) fail("'dtype' is missing");
    if (!entry_->shape) fail("'shape' is missing");
    if (!entry_->offsets) fail("'data_offsets' is missing");
    if (entry_->offsets->size() != 2) fail("'data_offsets' must have two numbers, begin and end");
    if (entry_->begin() > entry_->end()) {
      fail(fmt::format("'data_offsets' are reversed: begin {} > end {}", entry_->begin(),
                       entry_->end()));
    }
    const std::optional<std::size_t> bytes = tensor_bytes(*entry_->dtype, *entry_->shape);
    if (!bytes) fail("shape " + shape_text(*entry_->shape) + " is too large");
    if (*bytes != entry_->end() - entry_->begin()) {
      fail(fmt::format("size mismatch: dtype {} and shape {} take {} bytes, 'data_offsets' span {}",
                       dtype_name(*entry_->dtype), shape_text(*entry_->shape), *bytes,
                       entry_->end() - entry_->begin()));
    }
  }

  std::string file_name_;  // already printable
  Place place_ = Place::kFile;
  std::map<std::string, SafetensorsEntry> entries_;
  std::map<std::string, std::string> metadata_;
  bool has_metadata_ = false;
  SafetensorsEntry* entry_ =
      nullptr;         // the tensor being read; null in the metadata and outside of entries
  std::string key_;    // last key of the root or of the metadata
  std::string field_;  // last key of a tensor
};

}  // namespace

std::string in_quotes(std::string_view name) {
  return "'" + hw::printable(name, kMaxNameShown) + "'";
}

SafetensorsEntries read_safetensors_entries(std::string_view text, const std::string& file_name) {
  HeaderReader reader(file_name);
  nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
  return reader.take();
}

}  // namespace systole::model
