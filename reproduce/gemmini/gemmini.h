#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reproduce/published.h"
#include "reproduce/reproduction.h"
#include "testbench/network/matmul_graph.h"

/// Gemmini's RTL, run by run, beside the machine gemmini-bare.
namespace systole::testbench {

/// A product that was run on RTL, and what was counted there.
struct RtlRun {
  MatmulShape shape;
  MatmulResult result;
  std::uint32_t latency = 0;      ///< of the memory, cycles
  std::uint32_t beat_cycles = 0;  ///< between beats of its answers
  std::uint32_t gap = 0;          ///< cycles between commands of the host
  /// What is compared.
  struct Counts {
    std::uint64_t cycles = 0;
    std::uint64_t reads = 0, read_bytes = 0, writes = 0, written_bytes = 0;
    [[nodiscard]] bool moves_as(const Counts& other) const {
      return reads == other.reads && read_bytes == other.read_bytes && writes == other.writes &&
             written_bytes == other.written_bytes;
    }
  };
  Counts rtl, ours;
  std::uint64_t mismatches = 0;  ///< bytes of ours that differ from the product

  [[nodiscard]] std::string name() const;
  /// Ours over the RTL's cycles, less 1.
  [[nodiscard]] double error() const;
};

/// Reads measured runs from a file with comma-separated values: a line with the names of the
/// columns, which are MxNxK, output (int8 or int32), bias (bias or none), latency, beat_cycles,
/// gap, cycles, read_requests, read_bytes, write_requests, write_bytes and others; a line for each
/// run. Throws hw::InputError that names file, line and column.
[[nodiscard]] std::vector<RtlRun> read_rtl_runs(const std::string& path);

/// Runs ours, each in a separate process.
void run_ours(std::vector<RtlRun>& runs);

/// `points`: files for read_rtl_runs(), at least one.
[[nodiscard]] Reproduction reproduce_gemmini(const std::vector<std::string>& points);

}  // namespace systole::testbench
