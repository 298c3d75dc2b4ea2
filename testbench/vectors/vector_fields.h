#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace systole::model {

/// Closed range an integer of a vector file must lie in.
struct IntegerLimits {
  std::int64_t lo = std::numeric_limits<std::int64_t>::min();
  std::int64_t hi = std::numeric_limits<std::int64_t>::max();
};

inline constexpr IntegerLimits kInt32Limits{std::numeric_limits<std::int32_t>::min(),
                                            std::numeric_limits<std::int32_t>::max()};

/// Typed access to one JSON object of a vector file. Every function throws hw::InputError, naming
/// file, case and field, for a field that is missing, of another type or out of range. A field
/// whose value is null counts as absent.
class VectorFields {
 public:
  /// `place` opens every message, as in `file: case "name"`. The object is borrowed.
  VectorFields(const nlohmann::json& object, std::string place);

  bool has(const std::string& key) const;
  /// Elements of an array, 0 if there is none.
  std::size_t elements(const std::string& key) const;
  std::string text(const std::string& key) const;
  std::int64_t integer(const std::string& key, IntegerLimits limits) const;
  /// An array with at least one element, none of them null.
  std::vector<std::int64_t> integers(const std::string& key, IntegerLimits limits) const;
  /// A matrix as an array of rows, row-major: exactly `rows` of exactly `cols` integers.
  std::vector<std::int64_t> matrix(const std::string& key, std::size_t rows, std::size_t cols,
                                   IntegerLimits limits) const;
  /// The same with null elements allowed.
  std::vector<std::optional<std::int64_t>> nullable_integers(const std::string& key,
                                                             IntegerLimits limits) const;
  /// One integer, or one per channel as an array.
  std::vector<std::int64_t> integer_or_integers(const std::string& key, IntegerLimits limits) const;
  /// A finite real number, or an array of them: JSON numbers or C99 hexadecimal strings.
  std::vector<double> reals(const std::string& key) const;
  /// A positive scale (or one per channel): field `<key>_hex` if there is one, field `key` if not.
  std::vector<double> scales(const std::string& key) const;
  /// The same for a field that must hold exactly one scale.
  double scale(const std::string& key) const;

  VectorFields object(const std::string& key) const;
  /// An array with at least one object.
  std::vector<VectorFields> objects(const std::string& key) const;

  /// Throws hw::InputError about `key`.
  [[noreturn]] void fail(const std::string& key, const std::string& message) const;
  /// Fails unless the array `key` has `expected` elements.
  void expect_length(const std::string& key, std::size_t length, std::size_t expected) const;

 private:
  const nlohmann::json& at(const std::string& key) const;
  const nlohmann::json& array(const std::string& key) const;

  const nlohmann::json& object_;
  std::string place_;
};

}  // namespace systole::model
