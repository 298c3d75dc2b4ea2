#pragma once

#include <cstdint>

#include "hw/program/program.h"

/// Commands with as little text as a test deserves; pitches as tight as they can be.
namespace systole::test {

inline hw::Command load_command(std::uint32_t to, std::uint64_t from, std::uint32_t bytes,
                                std::uint32_t rows = 1) {
  hw::cmd::Load load;
  load.m = rows;
  load.n = bytes;
  load.from = {from, bytes};
  load.to = {to, bytes};
  return {load};
}
struct MatmulShape {
  std::uint32_t m, n, k;
};
inline hw::Command matmul_command(MatmulShape shape, std::uint32_t a, std::uint32_t b,
                                  std::uint32_t c, bool accumulate = false) {
  hw::cmd::Matmul matmul;
  matmul.accumulate = accumulate;
  matmul.m = shape.m;
  matmul.n = shape.n;
  matmul.k = shape.k;
  matmul.a = {a, shape.k};
  matmul.b = {b, shape.n};
  matmul.c = {c, shape.n};
  return {matmul};
}
inline hw::Command store_command(std::uint32_t c, std::uint64_t to, std::uint32_t rows,
                                 std::uint32_t cols) {
  hw::cmd::Store store;
  store.m = rows;
  store.n = cols;
  store.from = {c, cols};
  store.to = {to, cols};
  return {store};
}
inline hw::Command move_command(std::uint32_t c, std::uint32_t to, std::uint32_t rows,
                                std::uint32_t cols) {
  hw::cmd::Move move;
  move.m = rows;
  move.n = cols;
  move.from = {c, cols};
  move.to = {to, cols};
  return {move};
}

/// A load of sums of the type: `to` is their first element.
inline hw::Command sums_command(std::uint32_t to, std::uint64_t from, std::uint32_t cols,
                                hw::DType type, std::uint32_t rows = 1) {
  hw::cmd::LoadAccumulator load;
  load.m = rows;
  load.n = cols;
  load.type = type;
  load.from = {from, cols * static_cast<std::uint32_t>(hw::bytes_of(type))};
  load.to = {to, cols};
  return {load};
}

}  // namespace systole::test
