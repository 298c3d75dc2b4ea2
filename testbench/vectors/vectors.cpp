#include "testbench/vectors/vectors.h"

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/error.h"
#include "hw/number/isqrt.h"
#include "testbench/vectors/vector_checks.h"
#include "testbench/vectors/vector_fields.h"

namespace systole::model {
namespace {

using nlohmann::json;

json read_json(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    throw hw::InputError(path + ": not a readable file, expected a vector file in JSON");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) throw hw::InputError(path + ": cannot be opened, expected a vector file in JSON");
  try {
    return json::parse(file);
  } catch (const json::exception& failure) {
    throw hw::InputError(path + ": not JSON: " + failure.what());
  }
}

/// A string of the file as it may appear in a one-line message: escaped and cut.
std::string quoted(const std::string& text) {
  constexpr std::size_t kLongest = 60;
  const std::string escaped = json(text).dump(-1, ' ', true, json::error_handler_t::replace);
  return escaped.size() <= kLongest ? escaped : escaped.substr(0, kLongest) + "...\"";
}

constexpr char kSquareRoot[] = "I-Sqrt (paper Algorithm 4)";
constexpr char kRequantisation[] = "fixedpoint_mul (QuantAct requantisation)";

using CheckCase = std::function<void(const VectorFields&, VectorComparison&)>;

std::vector<VectorResult> check_cases(const VectorFields& file, const std::string& path,
                                      const json& cases, const CheckCase& check) {
  std::vector<VectorResult> results;
  const std::vector<VectorFields> listed = file.objects("cases");
  for (std::size_t i = 0; i < listed.size(); ++i) {
    const std::string name = listed[i].text("name");
    const VectorFields fields(cases[i], path + ": case " + quoted(name));
    VectorComparison comparison(name);
    check(fields, comparison);
    results.push_back(comparison.result());
  }
  return results;
}

/// What a case of square roots is: [n, root, passes], or [n, root] in the default datapath's form.
constexpr std::size_t kWithPasses = 3, kWithoutPasses = 2;

/// The numbers of square root cases, bare arrays of `size` integers.
std::vector<std::uint64_t> radicands(const std::string& path, const json& cases, std::size_t size) {
  std::vector<std::uint64_t> numbers;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string place = path + ": cases[" + std::to_string(i) + "]";
    if (!cases[i].is_array() || cases[i].size() != size) {
      throw hw::InputError(place + (size == kWithPasses ? ": expected an array [n, root, passes]"
                                                        : ": expected an array [n, root]"));
    }
    for (const json& value : cases[i]) {
      // Every non-negative integer literal below 2^64 is read as unsigned.
      if (!value.is_number_unsigned()) {
        throw hw::InputError(place + ": expected integers from 0 to 2^64 - 1");
      }
    }
    numbers.push_back(cases[i][0].get<std::uint64_t>());
  }
  return numbers;
}

std::vector<VectorResult> check_square_roots(const std::string& path, const json& cases,
                                             const std::string& name, std::size_t size,
                                             VectorDatapath* datapath) {
  const std::vector<std::uint64_t> numbers = radicands(path, cases, size);
  std::vector<std::uint32_t> roots;
  if (datapath != nullptr) roots = datapath->square_roots(numbers);
  VectorComparison comparison(name);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const hw::IntSqrt actual = hw::int_sqrt(numbers[i]);
    const std::uint32_t root = datapath != nullptr ? roots[i] : actual.root;
    const std::string what = "cases[" + std::to_string(i) + "]";
    comparison.expect_true(what + " root", root == cases[i][1].get<std::uint64_t>(),
                           "is " + std::to_string(root) + ", expected " + cases[i][1].dump());
    if (size == kWithoutPasses) continue;
    comparison.expect_true(
        what + " passes", actual.passes == cases[i][2].get<std::uint64_t>(),
        "is " + std::to_string(actual.passes) + ", expected " + cases[i][2].dump());
  }
  return {comparison.result()};
}

/// A function of the default datapath, and a field that only its cases have.
struct DefaultFunction {
  const char* name;
  const char* field;
  void (*check)(const VectorFields&, VectorComparison&);
};

constexpr DefaultFunction kDefaultFunctions[] = {
    {"exponential", "q_ln2", check_default_exponential},
    {"GELU", "product", check_default_gelu},
    {"LayerNorm", "gamma", check_default_layernorm},
    {"requantisation", "factor", check_default_requantisation},
    {"softmax", "scores", check_default_softmax}};

/// A file without `op`; none if it is not of the default datapath either.
std::optional<std::vector<VectorResult>> check_default_file(const std::string& path,
                                                            const json& document,
                                                            VectorDatapath* datapath) {
  const auto cases = document.find("cases");
  if (cases == document.end() || !cases->is_array() || cases->empty()) return std::nullopt;
  const json& first = cases->front();
  if (first.is_array()) {
    return check_square_roots(path, *cases, "square root", kWithoutPasses, datapath);
  }
  for (const DefaultFunction& function : kDefaultFunctions) {
    if (!first.is_object() || !first.contains(function.field)) continue;
    if (datapath != nullptr) {
      throw hw::InputError(path + ": " + function.name + " not possible with " + datapath->name() +
                           "; " + datapath->other_checks());
    }
    VectorComparison all(function.name);
    for (std::size_t i = 0; i < cases->size(); ++i) {
      const std::string place = "cases[" + std::to_string(i) + "]";
      VectorComparison one(place);
      function.check({(*cases)[i], path + ": " + place}, one);
      all.add(one.result());
    }
    return std::vector{all.result()};
  }
  return std::nullopt;
}

}  // namespace

std::vector<VectorResult> run_vector_file(const std::string& path, VectorDatapath* datapath) {
  const json document = read_json(path);
  const VectorFields file(document, path);
  if (!document.contains("op")) {
    if (auto results = check_default_file(path, document, datapath)) return *results;
  }
  const std::string op = file.text("op");
  if (auto results = check_stream_file(file, op, datapath)) return *results;
  const auto cases = document.find("cases");
  if (cases == document.end() || !cases->is_array() || cases->empty()) {
    file.fail("cases", "expected an array with at least one case");
  }
  if (op == kSquareRoot) {
    return check_square_roots(path, *cases, kSquareRoot, kWithPasses, datapath);
  }
  if (op == kRequantisation) {
    return check_cases(file, path, *cases, [datapath](const auto& fields, auto& comparison) {
      check_requantisation_case(fields, datapath, comparison);
    });
  }
  const std::string shared = '"' + std::string(kSquareRoot) + "\", \"" + kRequantisation + '"';
  if (datapath != nullptr) {
    file.fail("op", quoted(op) + " not possible with " + datapath->name() + ", expected one of " +
                        shared + ", \"" + kStreamSoftmax + "\"; " + datapath->other_checks());
  }
  const std::pair<const char*, CheckCase> operations[] = {
      {"IntGELU", check_gelu_case},
      {"IntSoftmax(output_bit=8)", check_softmax_case},
      {"IntLayerNorm(output_bit=32)", check_layernorm_case}};
  std::string known = shared;
  for (const auto& [name, check] : operations) {
    if (op == name) return check_cases(file, path, *cases, check);
    known += std::string(", \"") + name + "\"";
  }
  for (const std::string& name : stream_operations()) known += ", \"" + name + "\"";
  file.fail("op", quoted(op) + " unknown, expected one of " + known);
}

}  // namespace systole::model
