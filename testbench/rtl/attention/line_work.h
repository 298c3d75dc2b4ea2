#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "hw/attention/sparse_attention.h"
#include "hw/attention/timing/attention_runs.h"
#include "hw/machine/machine.h"

namespace systole::testbench {

/// MACs of the lines that Makefile.verilator builds.
inline constexpr std::uint32_t kLineMacs = 8;

/// Throws InputError for a number of MACs that no RTL is built for.
inline void require_macs(const std::string& block, std::uint32_t macs) {
  if (macs != kLineMacs) {
    throw hw::InputError(block + " RTL: " + std::to_string(macs) + " MACs, expected " +
                         std::to_string(kLineMacs));
  }
}

/// Throws InputError for a machine without lines.
inline void require_lines(const std::string& block, const hw::Machine::Attention& attention) {
  if (attention.lines == 0) {
    throw hw::InputError(block + " RTL: attention.lines is 0, expected attention engines");
  }
}

/// One phase of one attention line, in the terms of its RTL: items with entries, and the operands
/// that they name.
struct LineWork {
  struct Item {
    std::uint16_t item = 0;   ///< key of a sparse column; else query
    std::uint16_t group = 0;  ///< SpMM
    std::uint32_t begin = 0;  ///< sparser line: cells begin, begin + cell_step, ... below end
    std::uint32_t end = 0;
  };
  struct Step {
    std::uint16_t item = 0;
    std::uint16_t entry = 0;  ///< query, key, or position of a global column
    std::size_t cell = 0;     ///< of the engine's scores or codes
  };
  /// Rows of int8: row r is at data + (order ? order[r] : r) * pitch.
  struct Rows {
    const std::int8_t* data = nullptr;
    std::size_t pitch = 0;
    std::size_t count = 0;
    const std::uint16_t* order = nullptr;
  };

  bool spmm = false;
  std::size_t features = 0;             ///< of a row: of Q and K, or of V
  Rows hold, stream;                    ///< what the line holds (SDDMM), and what meets it
  std::vector<Item> items;              ///< in order
  std::vector<Step> steps;              ///< in order
  const std::uint8_t* codes = nullptr;  ///< SpMM: by cell

  // Sparser line.
  const std::uint16_t* indices = nullptr;  ///< by cell of an item
  std::size_t index_count = 0;
  std::size_t cell_step = 1;

  // Denser line.
  std::size_t columns = 0;    ///< global columns
  std::size_t rows = 0;       ///< queries
  std::size_t item_step = 0;  ///< from an item to the next: lines of the engine

  /// Words of a row for `macs` MACs: groups of its outputs in the SpMM.
  [[nodiscard]] std::size_t words(std::size_t macs) const { return (features + macs - 1) / macs; }
  [[nodiscard]] std::size_t results() const { return spmm ? items.size() : steps.size(); }
};

/// What line `line` of `runs` does in a phase, of the denser engine or of the sparser one. It must
/// have work. The arguments must outlive what is returned.
[[nodiscard]] LineWork score_work(const hw::SparseHead& head, const hw::AttentionOperands& operands,
                                  const hw::LineRuns& runs, std::size_t line);
/// `macs`: MACs of a line.
[[nodiscard]] LineWork sum_work(const hw::SparseHead& head, const hw::SparseRows& rows,
                                const hw::AttentionOperands& operands,
                                const hw::AttentionCodes& codes, const hw::LineRuns& runs,
                                std::size_t line, std::size_t macs);

}  // namespace systole::testbench
