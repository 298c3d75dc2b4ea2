#include "model/network/strict_json.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/error.h"
#include "base/printable.h"

namespace systole::model {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxKeyShown = 80;

/// Builds the document from parser events, and counts as it goes.
class StrictReader : public nlohmann::json_sax<json> {
 public:
  explicit StrictReader(std::string place) : place_(std::move(place)) {}

  json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // JSON text has none

  bool start_object(std::size_t) override { return open(json::object()); }
  bool key(string_t& name) override {
    if (open_.back()->contains(name)) {
      fail(fmt::format("the key '{}' occurs twice", hw::printable(name, kMaxKeyShown)));
    }
    key_ = std::move(name);
    return true;
  }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(json::array()); }
  bool end_array() override { return close(); }

  bool parse_error(std::size_t position, const std::string&,
                   const json::exception& exception) override {
    // The library's text ends with what it has read, which may be long.
    std::string reason = exception.what();
    reason.erase(0, reason.find("] ") + 2);
    reason.erase(std::min(reason.find("; last read"), reason.size()));
    fail(fmt::format("byte {}: not valid JSON: {}", position,
                     hw::printable(reason, 2 * kMaxKeyShown)));
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw hw::InputError(place_ + ": " + what);
  }

  json* put(json value) {
    if (++values_ > kMaxJsonValues) fail(fmt::format("more than {} values", kMaxJsonValues));
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    return &(parent[key_] = std::move(value));
  }

  bool add(json value) {
    put(std::move(value));
    return true;
  }

  bool open(json container) {
    if (open_.size() == kMaxJsonDepth) {
      fail(fmt::format("nested more than {} deep", kMaxJsonDepth));
    }
    // What holds an open array or object does not grow until that is closed: the pointer is valid.
    open_.push_back(put(std::move(container)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  std::string place_;
  json root_;
  std::vector<json*> open_;
  std::string key_;
  std::size_t values_ = 0;
};

}  // namespace

json parse_strict_json(std::string_view text, const std::string& place) {
  StrictReader reader(place);
  json::sax_parse(text.begin(), text.end(), &reader);
  return reader.take();
}

}  // namespace systole::model
