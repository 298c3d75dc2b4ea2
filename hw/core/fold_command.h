#pragma once

#include <cstdint>

#include "hw/array/fold_stream.h"
#include "hw/program/program.h"

namespace systole::hw {

/// What the array's contract in gates knows of a matmul that the unit takes in cycle `started`.
[[nodiscard]] inline FoldCommand fold_command(const cmd::Matmul& matmul, std::uint64_t started) {
  FoldCommand command;
  command.started = started;
  command.m = matmul.m;
  command.n = matmul.n;
  command.k = matmul.k;
  command.a = matmul.a.address;
  command.a_pitch = matmul.a.pitch;
  command.b = matmul.b.address;
  command.b_pitch = matmul.b.pitch;
  command.c = matmul.c.address;
  command.c_pitch = matmul.c.pitch;
  command.accumulate = matmul.accumulate;
  command.b_transposed = matmul.b_transposed;
  return command;
}

}  // namespace systole::hw
