#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "hw/attention/sparse_head.h"
#include "hw/machine/machine.h"
#include "model/mask/attention_mask.h"

namespace systole::testbench {

/// Whose cycles are counted, and for how many features of Q and K in a head.
struct SparsityMachine {
  std::string name;
  hw::Machine::Attention array;
  std::size_t dim = 0;
};

/// Figures of one head's split, or the sums of several.
struct SparsityFigures {
  std::size_t cells = 0, kept = 0;
  std::size_t global_columns = 0;
  std::size_t dense_cells = 0, dense_kept = 0;
  std::size_t sparser_kept = 0;
  std::size_t csc_bytes = 0;
  std::uint64_t sddmm_cycles = 0;  ///< heads one after the other, before any stall for memory
  std::uint64_t unsplit_sddmm_cycles = 0;  ///< the same without global columns

  void add(const SparsityFigures& other);
};

/// What became of a mask.
struct SparsityReport {
  std::string file;
  model::AttentionShape shape;
  std::vector<double> thetas;         ///< one, or one for each head; none: the mask was given
  std::optional<std::size_t> margin;  ///< entries of a row beyond theta; none: it was given
  bool cls = false;
  std::optional<std::size_t> threshold;  ///< none: columns chosen for the fewest SDDMM cycles
  SparsityMachine machine;
  std::vector<hw::SparseHead> heads;  ///< [layers * heads]
};

/// At most kTextWidth columns for layers of up to 999,999,999 cells. `mask` has been written unless
/// empty.
[[nodiscard]] std::string sparsity_text(const SparsityReport& report, const std::string& mask);
[[nodiscard]] nlohmann::ordered_json sparsity_json(const SparsityReport& report);

}  // namespace systole::testbench
