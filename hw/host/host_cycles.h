#pragma once

#include <cmath>
#include <cstdint>

#include "hw/host/host_function.h"
#include "hw/machine/machine.h"

namespace systole::hw {

/// Cycle contract of the host, in cycles of its clock, without the time that its data are on the
/// way:
///
///     operation  = round(elements * host.OPERATOR_cycles)
///     conversion = round(elements * (operands + 1) * host.convert_cycles)
///
/// for each block of rows that it works on: every element of every operand becomes a float32, every
/// element of the result an integer.
struct HostCycles {
  std::uint64_t operation = 0, conversion = 0;
  [[nodiscard]] std::uint64_t total() const { return operation + conversion; }
};

/// Cycles of an operator per element of its result.
[[nodiscard]] inline double host_operation_cost(HostOp op, const Machine::Host& host) {
  switch (op) {
    case HostOp::kSoftmax:
      return host.softmax_cycles;
    case HostOp::kGelu:
      return host.gelu_cycles;
    case HostOp::kLayerNorm:
      return host.layernorm_cycles;
    case HostOp::kAdd:
      return host.add_cycles;
    case HostOp::kRoute:
      return host.route_cycles;
  }
  return 0.0;
}

[[nodiscard]] inline HostCycles host_cycles(HostOp op, std::uint64_t elements,
                                            const Machine::Host& host) {
  const auto whole = [](double cycles) { return static_cast<std::uint64_t>(std::llround(cycles)); };
  const auto count = static_cast<double>(elements);
  return {whole(count * host_operation_cost(op, host)),
          whole(count * (operands_of(op) + 1) * host.convert_cycles)};
}

/// Operand bytes of a block of rows that the host reads, computes and writes before the next one
/// (at least a row): an eighth of a first-level data cache of 32 KiB.
inline constexpr std::uint64_t kHostBlockBytes = 4096;

/// Rows of `cols` elements in a block, at least 1.
[[nodiscard]] inline std::uint64_t host_block_rows(const HostFunction& function,
                                                   std::uint64_t cols) {
  std::uint64_t row = cols * bytes_of(function.in);
  if (operands_of(function.op) > 1) row += cols * bytes_of(function.tensor);
  return row == 0 || row > kHostBlockBytes ? 1 : kHostBlockBytes / row;
}

/// Cycles of a function of m rows of n elements, all blocks together.
[[nodiscard]] inline HostCycles host_cycles(const HostFunction& function, std::uint64_t m,
                                            std::uint64_t n, const Machine::Host& host) {
  const std::uint64_t block = host_block_rows(function, n);
  const HostCycles whole = host_cycles(function.op, block * n, host);
  const HostCycles rest = host_cycles(function.op, m % block * n, host);
  return {m / block * whole.operation + rest.operation,
          m / block * whole.conversion + rest.conversion};
}

}  // namespace systole::hw
