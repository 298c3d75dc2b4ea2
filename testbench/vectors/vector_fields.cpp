#include "testbench/vectors/vector_fields.h"

#include <cmath>
#include <cstdlib>
#include <utility>

#include "base/error.h"

namespace systole::model {
namespace {

using nlohmann::json;

std::string element(const std::string& key, std::size_t i) {
  return key + "[" + std::to_string(i) + "]";
}

double checked_real(const json& value, const std::string& place) {
  double real = std::numeric_limits<double>::quiet_NaN();
  if (value.is_number()) {
    real = value.get<double>();
  } else if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    char* end = nullptr;
    real = std::strtod(text.c_str(), &end);
    if (text.empty() || end != text.c_str() + text.size()) {
      throw hw::InputError(place + ": not a number, expected a C99 hexadecimal or decimal number");
    }
  } else {
    throw hw::InputError(place + ": is " + value.type_name() + ", expected a number");
  }
  if (!std::isfinite(real)) throw hw::InputError(place + ": not finite, expected a real number");
  return real;
}

/// The integer `value` within the limits.
std::int64_t checked_integer(const json& value, IntegerLimits limits, const std::string& place) {
  const std::string expected = ", expected an integer from " + std::to_string(limits.lo) + " to " +
                               std::to_string(limits.hi);
  if (!value.is_number_integer()) {
    throw hw::InputError(place + ": is " +
                         (value.is_number_float() ? "not integer" : value.type_name()) + expected);
  }
  constexpr auto kHighest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const bool too_large = value.is_number_unsigned() && value.get<std::uint64_t>() > kHighest;
  if (too_large || value.get<std::int64_t>() < limits.lo || value.get<std::int64_t>() > limits.hi) {
    throw hw::InputError(place + ": is " + value.dump() + expected);
  }
  return value.get<std::int64_t>();
}

}  // namespace

VectorFields::VectorFields(const json& object, std::string place)
    : object_(object), place_(std::move(place)) {
  if (!object.is_object()) {
    throw hw::InputError(place_ + ": is " + object.type_name() + ", expected an object");
  }
}

void VectorFields::fail(const std::string& key, const std::string& message) const {
  throw hw::InputError(place_ + ": " + key + ": " + message);
}

void VectorFields::expect_length(const std::string& key, std::size_t length,
                                 std::size_t expected) const {
  if (length != expected) {
    fail(key, std::to_string(length) + " elements, expected " + std::to_string(expected));
  }
}

bool VectorFields::has(const std::string& key) const {
  const auto field = object_.find(key);
  return field != object_.end() && !field->is_null();
}

std::size_t VectorFields::elements(const std::string& key) const {
  return has(key) && at(key).is_array() ? at(key).size() : 0;
}

const json& VectorFields::at(const std::string& key) const {
  const auto field = object_.find(key);
  if (field == object_.end()) fail(key, "missing");
  return *field;
}

const json& VectorFields::array(const std::string& key) const {
  const json& value = at(key);
  if (!value.is_array()) fail(key, std::string("is ") + value.type_name() + ", expected an array");
  if (value.empty()) fail(key, "empty, expected at least one element");
  return value;
}

std::string VectorFields::text(const std::string& key) const {
  const json& value = at(key);
  if (!value.is_string()) fail(key, std::string("is ") + value.type_name() + ", expected a string");
  return value.get<std::string>();
}

std::int64_t VectorFields::integer(const std::string& key, IntegerLimits limits) const {
  return checked_integer(at(key), limits, place_ + ": " + key);
}

std::vector<std::int64_t> VectorFields::integers(const std::string& key,
                                                 IntegerLimits limits) const {
  const json& values = array(key);
  std::vector<std::int64_t> result(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    result[i] = checked_integer(values[i], limits, place_ + ": " + element(key, i));
  }
  return result;
}

std::vector<std::int64_t> VectorFields::matrix(const std::string& key, std::size_t rows,
                                               std::size_t cols, IntegerLimits limits) const {
  const json& lines = array(key);
  expect_length(key, lines.size(), rows);
  std::vector<std::int64_t> result;
  result.reserve(rows * cols);
  for (std::size_t row = 0; row < rows; ++row) {
    const std::string name = element(key, row);
    if (!lines[row].is_array()) {
      fail(name, std::string("is ") + lines[row].type_name() + ", expected an array");
    }
    expect_length(name, lines[row].size(), cols);
    for (std::size_t col = 0; col < cols; ++col) {
      result.push_back(
          checked_integer(lines[row][col], limits, place_ + ": " + element(name, col)));
    }
  }
  return result;
}

std::vector<std::optional<std::int64_t>> VectorFields::nullable_integers(
    const std::string& key, IntegerLimits limits) const {
  const json& values = array(key);
  std::vector<std::optional<std::int64_t>> result(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!values[i].is_null()) {
      result[i] = checked_integer(values[i], limits, place_ + ": " + element(key, i));
    }
  }
  return result;
}

std::vector<std::int64_t> VectorFields::integer_or_integers(const std::string& key,
                                                            IntegerLimits limits) const {
  if (at(key).is_array()) return integers(key, limits);
  return {integer(key, limits)};
}

std::vector<double> VectorFields::reals(const std::string& key) const {
  if (!at(key).is_array()) return {checked_real(at(key), place_ + ": " + key)};
  const json& values = array(key);
  std::vector<double> result(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    result[i] = checked_real(values[i], place_ + ": " + element(key, i));
  }
  return result;
}

std::vector<double> VectorFields::scales(const std::string& key) const {
  const std::string source = has(key + "_hex") ? key + "_hex" : key;
  std::vector<double> result = reals(source);
  for (const double value : result) {
    if (!(value > 0)) fail(source, "not above zero, expected a positive scale");
  }
  return result;
}

double VectorFields::scale(const std::string& key) const {
  const std::vector<double> values = scales(key);
  expect_length(key, values.size(), 1);
  return values.front();
}

VectorFields VectorFields::object(const std::string& key) const {
  return {at(key), place_ + ": " + key};
}

std::vector<VectorFields> VectorFields::objects(const std::string& key) const {
  const json& values = array(key);
  std::vector<VectorFields> result;
  result.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    result.emplace_back(values[i], place_ + ": " + element(key, i));
  }
  return result;
}

}  // namespace systole::model
