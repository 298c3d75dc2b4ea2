#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "hw/array/accumulator.h"
#include "hw/array/array.h"
#include "hw/attention/head_mix.h"
#include "hw/attention/sparse_attention.h"
#include "hw/kernel/gemm.h"
#include "hw/postop/chain_kernel.h"
#include "hw/postop/postop.h"
#include "hw/timed_engine.h"

/// The swap points: what an engine does, seen from the machine around it. The C++ models here and
/// the Verilated RTL implement the same interfaces, and the machine cannot tell which it has.
namespace systole::hw {

class ArrayEngine : public TimedEngine {
 public:
  /// One matmul command. `operands.c == nullptr` asks for the cycles alone.
  [[nodiscard]] virtual ArrayCycles matmul(const GemmArgs& operands, bool preloaded) = 0;
};

class PostopEngine : public TimedEngine {
 public:
  /// Computes rows of a tile (see ChainOperands).
  virtual void apply(const Chain& chain, const ChainOperands& operands) = 0;
  [[nodiscard]] virtual ChainCycles cycles(const Chain& chain, std::uint64_t rows,
                                           std::uint64_t cols) = 0;
};

/// The sums of the accumulator, all 0 at first. Timing is modelled elsewhere: where the array and
/// the post-op pipeline meet depends on both of them.
class AccumulatorEngine : public TimedEngine {
 public:
  /// Overwrites the sums of a tile, or adds to them. Rows of `values` are `pitch` elements apart.
  virtual void write(const AccumulatorTile& tile, const std::int32_t* values, std::size_t pitch,
                     bool accumulate) = 0;
  virtual void read(const AccumulatorTile& tile, std::int32_t* values, std::size_t pitch) = 0;
};

/// Values of the attention lines. When a line does what follows from the mask alone
/// (hw/attention/timing/attention_runs.h), so an engine that works line by line knows it too.
class AttentionEngine : public TimedEngine {
 public:
  /// Of the next call: the scores begin in begin_at()'s cycle, softmax and sums in these.
  virtual void begin_rest_at(std::uint64_t /*softmax*/, std::uint64_t /*sums*/) {}
  /// attention_sums() of a head, or of a tile of its queries.
  [[nodiscard]] virtual AttentionSums sums(const SparseHead& head,
                                           const AttentionOperands& operands,
                                           const ScoreFunctions& functions) = 0;
};

/// Values of the auto-encoder's lines.
class HeadMixEngine : public TimedEngine {
 public:
  /// mix_heads() of one token.
  virtual void mix(const HeadMix& mix, const std::int8_t* in, std::size_t features,
                   std::int8_t* out) = 0;
};

class ArrayModel final : public ArrayEngine {
 public:
  explicit ArrayModel(const Machine::Array& array) : array_(array) {}
  [[nodiscard]] bool is_timeless() const noexcept override { return true; }
  [[nodiscard]] ArrayCycles matmul(const GemmArgs& operands, bool preloaded) override {
    if (operands.c != nullptr) gemm(operands);
    return array_cycles(array_, operands.m, operands.n,
                        array_steps(operands.k, {operands.a_int4, operands.b_int4}), preloaded);
  }

 private:
  Machine::Array array_;
};

class PostopModel final : public PostopEngine {
 public:
  explicit PostopModel(std::uint32_t lanes) : lanes_(lanes) {}
  [[nodiscard]] bool is_timeless() const noexcept override { return true; }
  void apply(const Chain& chain, const ChainOperands& operands) override {
    kernel_of(chain).apply(operands);
  }
  [[nodiscard]] ChainCycles cycles(const Chain& chain, std::uint64_t rows,
                                   std::uint64_t cols) override {
    return chain_cycles(chain, rows, cols, lanes_);
  }

 private:
  /// Composes a chain at its first use. A program has few of them, and a tile uses one often.
  const ChainKernel& kernel_of(const Chain& chain) {
    for (std::size_t i = kernels_.size(); i-- > 0;) {
      if (kernels_[i].chain() == chain) {
        std::swap(kernels_[i], kernels_.back());
        return kernels_.back();
      }
    }
    return kernels_.emplace_back(chain);
  }

  std::uint32_t lanes_;
  std::vector<ChainKernel> kernels_;  ///< the one that was used last at the end
};

class AttentionModel final : public AttentionEngine {
 public:
  [[nodiscard]] bool is_timeless() const noexcept override { return true; }
  [[nodiscard]] AttentionSums sums(const SparseHead& head, const AttentionOperands& operands,
                                   const ScoreFunctions& functions) override {
    return attention_sums(head, operands, functions);
  }
};

class MixModel final : public HeadMixEngine {
 public:
  [[nodiscard]] bool is_timeless() const noexcept override { return true; }
  void mix(const HeadMix& mix, const std::int8_t* in, std::size_t features,
           std::int8_t* out) override {
    mix_heads(mix, in, features, out);
  }
};

class AccumulatorModel final : public AccumulatorEngine {
 public:
  /// `size`: in sums. A tile must lie inside.
  explicit AccumulatorModel(std::size_t size) : sums_(size, 0) {}
  void write(const AccumulatorTile& tile, const std::int32_t* values, std::size_t pitch,
             bool accumulate) override {
    for (std::size_t row = 0; row < tile.rows; ++row) {
      write_accumulator_row(sums_.data() + tile.first + row * tile.pitch, values + row * pitch,
                            tile.cols, accumulate);
    }
  }
  void read(const AccumulatorTile& tile, std::int32_t* values, std::size_t pitch) override {
    for (std::size_t row = 0; row < tile.rows; ++row) {
      write_accumulator_row(values + row * pitch, sums_.data() + tile.first + row * tile.pitch,
                            tile.cols, false);
    }
  }

 private:
  std::vector<std::int32_t> sums_;
};

}  // namespace systole::hw
