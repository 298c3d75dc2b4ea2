#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "testbench/vectors/vector_fields.h"
#include "testbench/vectors/vectors.h"

namespace systole::model {

/// Counts comparisons of one case and keeps the first mismatch.
class VectorComparison {
 public:
  explicit VectorComparison(std::string name) { result_.name = std::move(name); }

  void expect(const std::string& what, std::int64_t actual, std::int64_t expected);
  /// For real constants: equal to the last bit.
  void expect_same(const std::string& what, double actual, double expected);
  /// Adds the counts of a part; its name comes before its first mismatch.
  void add(const VectorResult& part);
  void expect_true(const std::string& what, bool holds, const std::string& text);

  const VectorResult& result() const { return result_; }

 private:
  VectorResult result_;
};

/// One case of each operation: reads its fields, computes and compares. Throw hw::InputError for a
/// malformed case. `datapath`: as in run_vector_file(), may be null.
void check_gelu_case(const VectorFields& fields, VectorComparison& comparison);
void check_softmax_case(const VectorFields& fields, VectorComparison& comparison);
void check_layernorm_case(const VectorFields& fields, VectorComparison& comparison);
void check_requantisation_case(const VectorFields& fields, VectorDatapath* datapath,
                               VectorComparison& comparison);

inline constexpr char kStreamSoftmax[] = "ITA streaming softmax";
/// All cases of a file of a streaming core's functions or layers (hw/stream/stream_layer.h); none
/// if `op` is not one of them, or not possible with `datapath`. Throws hw::InputError for a
/// malformed case.
std::optional<std::vector<VectorResult>> check_stream_file(const VectorFields& file,
                                                           const std::string& op,
                                                           VectorDatapath* datapath);
/// What `op` may be there.
[[nodiscard]] std::vector<std::string> stream_operations();

/// One case of each operation in the default datapath's form: derives the constants, computes with
/// the functions of hw/ and compares constants, intermediates and outputs. Throw hw::InputError for
/// a malformed case.
void check_default_exponential(const VectorFields& fields, VectorComparison& comparison);
void check_default_gelu(const VectorFields& fields, VectorComparison& comparison);
void check_default_layernorm(const VectorFields& fields, VectorComparison& comparison);
void check_default_requantisation(const VectorFields& fields, VectorComparison& comparison);
void check_default_softmax(const VectorFields& fields, VectorComparison& comparison);

}  // namespace systole::model
