#include "hw/program/assembly_function.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "hw/program/assembly_parts.h"
#include "hw/program/assembly_words.h"

namespace systole::hw {
namespace {

std::string text_of(float value) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}

std::string text_of(DType type) {
  return std::string(kTypeWords.at(static_cast<std::size_t>(type)));
}

std::string text_of(const std::vector<float>& values) {
  std::string text;
  for (const float value : values) text += (text.empty() ? "" : ",") + text_of(value);
  return text;
}

float parse_float(const std::string& name, std::string_view text) {
  float value = 0.0F;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value)) {
    throw InputError(name + " is " + shown(text) + ", expected a number of 32 bits");
  }
  return value;
}

std::vector<float> parse_floats(const std::string& name, std::string_view text) {
  std::vector<float> values;
  for (const std::string_view item : split_list(text)) values.push_back(parse_float(name, item));
  return values;
}

std::int32_t parse_limit(const std::string& name, std::string_view text) {
  using Limits = std::numeric_limits<std::int32_t>;
  const std::int64_t value = parse_signed(name, text);
  if (value < Limits::min() || value > Limits::max()) {
    throw InputError(name + " is " + shown(text) + ", expected a number of 32 bits");
  }
  return static_cast<std::int32_t>(value);
}

void parse_part(const AssemblyToken& token, HostFunction& function) {
  const std::string& key = token.key;
  if (key == "in") {
    function.in = type_of(token.value);
  } else if (key == "operand") {
    function.tensor = type_of(token.value);
  } else if (key == "out") {
    function.out = type_of(token.value);
  } else if (key == "in_scale") {
    function.in_scale = parse_float(key, token.value);
  } else if (key == "operand_scale") {
    function.tensor_scale = parse_float(key, token.value);
  } else if (key == "out_scale") {
    function.out_scale = parse_float(key, token.value);
  } else if (key == "lo") {
    function.lo = parse_limit(key, token.value);
  } else if (key == "hi") {
    function.hi = parse_limit(key, token.value);
  } else if (key == "gamma") {
    function.gamma = parse_floats(key, token.value);
  } else if (key == "beta") {
    function.beta = parse_floats(key, token.value);
  } else {
    unexpected(token, "function");
  }
}

}  // namespace

std::string function_line(std::size_t index, const HostFunction& function) {
  std::string line = "function " + std::to_string(index) + " " + std::string(name_of(function.op));
  line += " in=" + text_of(function.in) + " operand=" + text_of(function.tensor) +
          " out=" + text_of(function.out) + " in_scale=" + text_of(function.in_scale) +
          " operand_scale=" + text_of(function.tensor_scale) +
          " out_scale=" + text_of(function.out_scale) + " lo=" + std::to_string(function.lo) +
          " hi=" + std::to_string(function.hi);
  if (!function.gamma.empty()) line += " gamma=" + text_of(function.gamma);
  if (!function.beta.empty()) line += " beta=" + text_of(function.beta);
  return line + "\n";
}

HostFunction parse_function(const std::vector<AssemblyToken>& tokens) {
  if (tokens.size() < 3 || !tokens[2].is_word()) {
    throw InputError("function, expected: function NUMBER OPERATOR ...");
  }
  HostFunction function;
  function.op = static_cast<HostOp>(word_index(kHostOpNames, "operator", tokens[2].value));
  Names names;
  for (std::size_t i = 3; i < tokens.size(); ++i) {
    if (tokens[i].quoted || tokens[i].is_word()) unexpected(tokens[i], "function");
    names.add(tokens[i].key);
    parse_part(tokens[i], function);
  }
  if (function.gamma.size() != function.beta.size()) {
    throw InputError("function has " + std::to_string(function.gamma.size()) + " gamma and " +
                     std::to_string(function.beta.size()) + " beta, expected as many");
  }
  return function;
}

}  // namespace systole::hw
