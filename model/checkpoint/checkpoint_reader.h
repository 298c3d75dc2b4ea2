#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "hw/number/half.h"
#include "model/checkpoint/float_layers.h"
#include "model/format/safetensors.h"

namespace systole::model {

/// Reads the tensors of a checkpoint by name and remembers which. Every error is an InputError that
/// names the file, the tensor and the shape that it should have.
class CheckpointReader {
 public:
  using Shape = std::vector<std::size_t>;

  /// `file` outlives this object.
  explicit CheckpointReader(const Safetensors& file) : file_(file) {}

  [[nodiscard]] const Safetensors& file() const { return file_; }

  /// Elements of a floating-point tensor, all finite.
  std::vector<double> read(const std::string& name, const Shape& shape);
  /// Elements of an F16, BF16 or F32 tensor, rounded to nearest even; none of them is infinite.
  std::vector<hw::Half> halves(const std::string& name, const Shape& shape);
  /// "NAME.weight" and "NAME.bias", of `width` elements; or "NAME.gamma" and "NAME.beta", as the
  /// published BERT files still have them.
  FloatNorm norm(const std::string& name, std::size_t width);
  /// "NAME.weight" [outputs, inputs] and "NAME.bias" [outputs].
  FloatLinear linear(const std::string& name, std::uint32_t outputs, std::uint32_t inputs);
  /// The same with "NAME.weight" [inputs, outputs], as GPT-2's Conv1D stores it.
  FloatLinear transposed_linear(const std::string& name, std::uint32_t outputs,
                                std::uint32_t inputs);
  /// Query, key and value as one layer: "PREFIXquery", "PREFIXkey" and "PREFIXvalue".
  FloatLinear query_key_value(const std::string& prefix, std::uint32_t width);
  /// A mask of attention (model/checkpoint/keep_mask.h); empty if the file has no such tensor.
  std::vector<std::uint8_t> mask(const std::string& name, std::size_t heads, std::size_t tokens);

  /// Leaves out a tensor that the network does not need, if the file has it.
  void skip(const std::string& name) { used_.insert(name); }
  /// Throws InputError that names a tensor that was neither read nor skipped.
  void check_all_used() const;

  /// The dimensions of a tensor; throws InputError if it is missing or has another number of them
  /// than `rank`.
  [[nodiscard]] Shape dimensions(const std::string& name, std::size_t rank) const;
  /// A dimension as a number; throws InputError that names the tensor if it is out of range.
  [[nodiscard]] std::uint32_t number(const std::string& name, std::size_t value,
                                     std::uint32_t lowest, std::uint32_t highest) const;

 private:
  /// A tensor of that shape and one of these types, from now on used.
  void use(const std::string& name, const Shape& shape, const std::vector<FileDtype>& dtypes);
  [[noreturn]] void fail(const std::string& name, const std::string& what) const;

  const Safetensors& file_;
  std::set<std::string> used_;
};

}  // namespace systole::model
