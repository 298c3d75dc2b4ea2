#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/bound/lower_bound.h"
#include "hw/machine/machine.h"
#include "mapper/mapping.h"
#include "model/graph/graph.h"
#include "testbench/report/plot.h"

namespace systole::testbench {

/// The least that a network takes on a machine, and what its mapping moves.
struct BoundReport {
  hw::Machine machine;
  std::string model;
  analysis::LowerBound bound;
  double mapped_bytes = 0;  ///< from and to memory, commands included, of the mapping

  /// Least bytes by capacity.
  struct Point {
    std::uint32_t scratchpad_kib, accumulator_kib;
    double bytes;
  };
  std::vector<Point> curve;  ///< memories of the machine's ratio, each twice the last
};

[[nodiscard]] BoundReport bound_report(const model::Graph& graph, const mapper::Mapping& mapping,
                                       const hw::Machine& machine);

/// At most kTextWidth columns; operators that differ in layer and head alone are one line.
[[nodiscard]] std::string bound_text(const BoundReport& report);
/// Names are those of docs/analyse.md.
[[nodiscard]] nlohmann::ordered_json bound_json(const BoundReport& report);
/// Least bytes over capacity, with the machine and what its mapper moves: bound.png.
[[nodiscard]] Plot bound_plot(const BoundReport& report);

}  // namespace systole::testbench
