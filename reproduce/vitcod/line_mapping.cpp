#include <algorithm>

#include "hw/attention/timing/attention_cycles.h"
#include "model/mask/global_columns.h"
#include "reproduce/vitcod/vitcod.h"
#include "testbench/attention/head_split.h"

namespace systole::testbench {
namespace {

std::uint64_t sum_sddmm(const SplitLayers& layers, std::size_t dim,
                        const hw::Machine::Attention& attention, hw::SparserMapping mapping) {
  hw::Machine::Attention mapped = attention;
  mapped.mapping = mapping;
  std::uint64_t cycles = 0;
  for (const auto& heads : layers) {
    for (const hw::SparseHead& head : heads) cycles += sddmm_cycles(head, dim, mapped).total();
  }
  return cycles;
}

std::uint64_t packed_cycles(const SplitLayers& layers, std::size_t dim,
                            const hw::Machine::Attention& attention) {
  std::uint64_t cycles = 0;
  for (const auto& heads : layers) {
    for (const hw::SparseHead& head : heads) {
      const hw::PhaseCycles phase = sddmm_cycles(head, dim, attention);
      const std::uint64_t lines = std::max<std::uint64_t>(1, phase.split.sparse);
      const std::uint64_t scores = (head.sparse_kept() + lines - 1) / lines;
      cycles += std::max(phase.dense, scores * line_passes(dim, attention));
    }
  }
  return cycles;
}

}  // namespace

LineMappingCycles line_mapping_cycles(const model::AttentionMask& mask, std::size_t dim,
                                      const hw::Machine::Attention& attention) {
  using hw::SparserMapping;
  const HeadSplit published{true, model::default_threshold(mask.shape().queries)};
  const SplitLayers threshold = split_mask(mask, published, dim, attention);
  const SplitLayers whole = split_mask(mask, {false, {}}, dim, attention);
  hw::Machine::Attention per_line = attention;
  per_line.mapping = SparserMapping::kColumnPerLine;
  const SplitLayers best = split_mask(mask, {}, dim, per_line);
  LineMappingCycles cycles;
  cycles.ideal = static_cast<double>(mask.kept_count() * dim) /
                 (static_cast<double>(attention.lines) * attention.macs_per_line);
  cycles.packed = packed_cycles(threshold, dim, attention);
  cycles.per_line = sum_sddmm(threshold, dim, attention, SparserMapping::kColumnPerLine);
  cycles.broadcast = sum_sddmm(threshold, dim, attention, SparserMapping::kBroadcast);
  cycles.best = sum_sddmm(best, dim, attention, SparserMapping::kColumnPerLine);
  cycles.unordered = sum_sddmm(whole, dim, attention, SparserMapping::kColumnPerLine);
  cycles.unordered_broadcast = sum_sddmm(whole, dim, attention, SparserMapping::kBroadcast);
  return cycles;
}

}  // namespace systole::testbench
