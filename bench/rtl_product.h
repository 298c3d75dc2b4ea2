#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "hw/kernel/gemm.h"

namespace systole::bench {

/// Operands of a product, seeded, and room for its result.
struct Product {
  Product(std::size_t m, std::size_t n, std::size_t k, bool b_transposed, bool a_unsigned)
      : a(m * k), b(k * n), c(m * n) {
    std::minstd_rand random(1);
    for (std::int8_t& value : a) value = static_cast<std::int8_t>(random() >> 7);
    for (std::int8_t& value : b) value = static_cast<std::int8_t>(random() >> 7);
    args.a = a.data();
    args.lda = k;
    args.a_unsigned = a_unsigned;
    args.b = b.data();
    args.ldb = b_transposed ? k : n;
    args.b_transposed = b_transposed;
    args.c = c.data();
    args.ldc = n;
    args.m = m;
    args.n = n;
    args.k = k;
  }
  // `args` points into this object.
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  std::vector<std::int8_t> a, b;
  std::vector<std::int32_t> c;
  hw::GemmArgs args;
};

}  // namespace systole::bench
