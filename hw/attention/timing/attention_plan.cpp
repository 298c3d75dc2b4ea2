#include "hw/attention/timing/attention_plan.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/units.h"
#include "hw/attention/timing/row_buffer.h"
#include "hw/postop/postop.h"

namespace systole::hw {
namespace {

constexpr std::size_t kOperands = 3;
/// All accesses of the layer to one operand.
struct OperandUses {
  std::uint32_t bundle = 1;                                 ///< rows that come together
  std::vector<std::uint32_t> rows;                          ///< names: head and row
  std::vector<std::pair<std::size_t, std::size_t>> places;  ///< step and access
};

std::size_t index(AttentionOperand operand) { return static_cast<std::size_t>(operand); }

std::size_t row_of(const AttentionStep& step, const RowAccess& access) {
  return access.row + (access.operand == AttentionOperand::kQuery ? step.part.tile.first : 0);
}

/// Heads of a token beside each other: as a bundle, if all of them come together.
std::uint32_t name_of(const AttentionStep& step, const RowAccess& access, std::size_t heads) {
  return static_cast<std::uint32_t>(row_of(step, access) * heads + step.part.head);
}

std::array<OperandUses, kOperands> streams_of(const std::vector<AttentionStep>& steps,
                                              std::size_t heads, BufferedRow brought) {
  std::array<OperandUses, kOperands> streams;
  if (brought == BufferedRow::kToken) {
    for (const AttentionOperand operand : {AttentionOperand::kQuery, AttentionOperand::kKey}) {
      streams[index(operand)].bundle = static_cast<std::uint32_t>(heads);
    }
  }
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const std::vector<RowAccess>& accesses = steps[s].phase.accesses;
    for (std::size_t i = 0; i < accesses.size(); ++i) {
      OperandUses& stream = streams[index(accesses[i].operand)];
      stream.rows.push_back(name_of(steps[s], accesses[i], heads));
      stream.places.emplace_back(s, i);
    }
  }
  return streams;
}

std::array<std::uint64_t, kOperands> capacities(std::size_t dim, std::size_t value_dim,
                                                const Machine::Attention& attention) {
  return {attention.query_kib * kKib / dim, attention.key_kib * kKib / dim,
          attention.value_kib * kKib / value_dim};
}

std::vector<std::uint64_t> codes_ready(const SparseHead& tile, const AttentionPhase& spmm,
                                       const Machine::Attention& attention) {
  const std::vector<std::uint32_t> kept = row_kept(tile);
  std::vector<std::uint64_t> ready;
  std::uint64_t cycle = stage_info(StageOp::kSoftmax).latency;
  for (const CodesNeed& need : spmm.codes) {
    cycle += (kept[need.query] + attention.softmax_lanes - 1) / attention.softmax_lanes;
    ready.push_back(cycle);
  }
  return ready;
}

void add_batch(const std::vector<HeadTile>& batch, const std::vector<SparseHead>& heads,
               std::size_t dim, std::size_t value_dim, const Machine::Attention& attention,
               AttentionPlan& plan) {
  std::vector<AttentionStep> spmms;
  for (const HeadTile& tile : batch) {
    const SparseHead part = query_tile(heads[tile.head], tile.tile.first, tile.tile.count);
    plan.steps.push_back({tile, false, part.kept(), schedule_sddmm(part, dim, attention), {}});
    AttentionPhase spmm = schedule_spmm(part, dim, value_dim, attention);
    std::vector<std::uint64_t> ready = codes_ready(part, spmm, attention);
    spmms.push_back({tile, true, part.kept(), std::move(spmm), std::move(ready)});
  }
  std::move(spmms.begin(), spmms.end(), std::back_inserter(plan.steps));
}

/// Q rows that the denser engine brought in and the sparser engine finds there.
std::uint64_t forwarded_rows(const OperandUses& stream, const std::vector<RowFetch>& fetches,
                             const std::vector<AttentionStep>& steps) {
  std::unordered_map<std::uint32_t, bool> brought_by_sparse;
  std::uint64_t count = 0;
  auto fetch = fetches.begin();
  for (std::size_t i = 0; i < stream.rows.size(); ++i) {
    const auto [step, access] = stream.places[i];
    const bool sparse = steps[step].phase.accesses[access].sparse;
    const std::uint32_t bundle = stream.rows[i] / stream.bundle;
    if (fetch != fetches.end() && fetch->access == i) {
      brought_by_sparse[bundle] = sparse;
      ++fetch;
    } else if (sparse && !brought_by_sparse[bundle]) {
      ++count;
    }
  }
  return count;
}

void add_fetches(const OperandUses& stream, AttentionOperand operand, std::uint64_t capacity,
                 AttentionPlan& plan) {
  const std::vector<RowFetch> fetches = plan_fetches(stream.rows, capacity, stream.bundle);
  if (operand == AttentionOperand::kQuery) {
    plan.forwarded = forwarded_rows(stream, fetches, plan.steps);
  }
  for (const RowFetch& fetch : fetches) {
    const auto [step, access] = stream.places[fetch.access];
    const AttentionStep& needed = plan.steps[step];
    plan.fetches.push_back({operand, needed.part.head,
                            row_of(needed, needed.phase.accesses[access]), step, access,
                            fetch.free_after, fetch.kept});
  }
}

}  // namespace

AttentionPlan plan_attention(const std::vector<SparseHead>& heads, std::size_t dim,
                             std::size_t value_dim, const Machine& machine, BufferedRow row) {
  AttentionPlan plan;
  for (const std::vector<HeadTile>& batch : plan_batches(heads, value_dim, machine)) {
    add_batch(batch, heads, dim, value_dim, machine.attention, plan);
  }
  if (plan.steps.empty()) return plan;
  const std::array<OperandUses, kOperands> streams = streams_of(plan.steps, heads.size(), row);
  const std::array<std::uint64_t, kOperands> rows = capacities(dim, value_dim, machine.attention);
  for (const AttentionOperand operand :
       {AttentionOperand::kQuery, AttentionOperand::kKey, AttentionOperand::kValue}) {
    add_fetches(streams[index(operand)], operand, rows[index(operand)], plan);
  }
  std::stable_sort(plan.fetches.begin(), plan.fetches.end(),
                   [](const AttentionFetch& a, const AttentionFetch& b) {
                     return std::tie(a.step, a.access) < std::tie(b.step, b.access);
                   });
  return plan;
}

}  // namespace systole::hw
