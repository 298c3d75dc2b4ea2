#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hw/machine/machine.h"
#include "mapper/group/group.h"
#include "model/graph/graph.h"

namespace systole::mapper {

/// The ends of the scratchpad at which tensors reside. The array reads a word of A in almost every
/// cycle: what is read or written meanwhile should be in other banks, which are those of the other
/// end.
class Sides {
 public:
  Sides(const model::Graph& graph, const std::vector<Group>& groups, const hw::Machine& machine);

  /// A tensor that may reside.
  void add(model::TensorId id) { at_end_[id] = false; }
  /// A tensor that resides at the end if any does.
  void fix_at_end(model::TensorId id) { at_end_[id] = fixed_[id] = true; }
  /// Moves tensors to the other end as long as they meet fewer words there.
  void settle();
  [[nodiscard]] bool at_end(model::TensorId id) const { return at_end_[id].value_or(false); }

 private:
  [[nodiscard]] bool prefers_end(model::TensorId id) const;

  struct Meeting {
    model::TensorId other;
    std::uint64_t words;
  };
  std::vector<std::vector<Meeting>> meetings_;  ///< by tensor
  std::vector<std::optional<bool>> at_end_;     ///< by tensor, of those that may reside
  std::vector<bool> fixed_;                     ///< by tensor
};

}  // namespace systole::mapper
