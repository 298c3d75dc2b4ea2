#pragma once

#include <cstdint>

#include "hw/array.h"
#include "hw/gemm.h"
#include "hw/postop.h"

/// The swap points: what an engine does, seen from the machine around it. The C++ models here and
/// the Verilated RTL implement the same interfaces, and the machine cannot tell which it has.
namespace systole::hw {

class ArrayEngine {
 public:
  virtual ~ArrayEngine() = default;
  /// One matmul command. `operands.c == nullptr` asks for the cycles alone.
  [[nodiscard]] virtual ArrayCycles matmul(const GemmArgs& operands, bool preloaded) = 0;
};

class PostopEngine {
 public:
  virtual ~PostopEngine() = default;
  /// Computes rows of a tile (see ChainOperands).
  virtual void apply(const Chain& chain, const ChainOperands& operands) = 0;
  [[nodiscard]] virtual ChainCycles cycles(const Chain& chain, std::uint64_t rows,
                                           std::uint64_t cols) = 0;
};

class ArrayModel final : public ArrayEngine {
 public:
  explicit ArrayModel(const Machine::Array& array) : array_(array) {}
  [[nodiscard]] ArrayCycles matmul(const GemmArgs& operands, bool preloaded) override {
    if (operands.c != nullptr) gemm(operands);
    return array_cycles(array_, operands.m, operands.n, operands.k, preloaded);
  }

 private:
  Machine::Array array_;
};

class PostopModel final : public PostopEngine {
 public:
  explicit PostopModel(std::uint32_t lanes) : lanes_(lanes) {}
  void apply(const Chain& chain, const ChainOperands& operands) override {
    apply_chain(chain, operands);
  }
  [[nodiscard]] ChainCycles cycles(const Chain& chain, std::uint64_t rows,
                                   std::uint64_t cols) override {
    return chain_cycles(chain, rows, cols, lanes_);
  }

 private:
  std::uint32_t lanes_;
};

}  // namespace systole::hw
