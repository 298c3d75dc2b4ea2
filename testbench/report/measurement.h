#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/mapped_cost.h"
#include "hw/energy.h"
#include "hw/machine/machine.h"
#include "testbench/network/network_size.h"
#include "testbench/report/report_gates.h"
#include "testbench/rtl/drive/rtl_counts.h"
#include "testbench/run/simulation.h"

namespace systole::testbench {

/// Version of the document that to_json() makes: raised when a name goes or changes its meaning.
inline constexpr int kStatisticsVersion = 3;

/// A finished simulation and what its figures mean. Reports in every form come from here.
struct Measurement {
  hw::Machine machine;
  std::string model;
  bool functional = true;
  bool checked = false;
  std::optional<double> accuracy;     ///< fraction of the images, if they have labels
  std::optional<NetworkSize> size;    ///< of a network with seeded weights
  std::optional<std::uint32_t> past;  ///< of tokens one by one: those cached in front
  std::uint64_t macs = 0;             ///< of one inference
  SimulationResult result;
  RtlReport rtl;                         ///< the blocks that ran as RTL
  std::optional<GatesComparison> gates;  ///< of the core in RTL beside the model
  /// Of the operators of the first inference; empty: of a program file.
  std::vector<analysis::OperatorEstimate> estimates;

  /// Bytes that differ from the reference, and RTL that differs from its model.
  [[nodiscard]] std::uint64_t mismatches() const {
    return result.check.mismatches + total_mismatches(rtl);
  }
  [[nodiscard]] std::size_t images() const { return result.cycles.size(); }
  [[nodiscard]] double mean_cycles() const;
  /// Part of the array's multiply-accumulates that inferences used while they ran, 0 to 1.
  [[nodiscard]] double utilisation() const;
  /// Cycles that no mapping of the network beats on this machine (analysis/bound/lower_bound.h), on
  /// average; 0: the simulation was not of a graph.
  [[nodiscard]] double bound() const;
  /// Joules per inference, the host's time between inferences included.
  [[nodiscard]] hw::EnergyReport energy() const;
  [[nodiscard]] double cycles_per_second() const;

  /// Of one inference.
  [[nodiscard]] tlm_model::System::Traffic traffic() const;
};

/// Takes the result apart; `result` must hold at least one inference.
[[nodiscard]] Measurement measure(hw::Machine machine, std::string model, std::uint64_t macs,
                                  const SimulationOptions& options, SimulationResult result);

/// Every account of a block or a part of it, by name.
[[nodiscard]] nlohmann::ordered_json accounts_json(const std::vector<hw::BlockReport>& blocks);
/// Of blocks that have no account of their own, with those of parts that have none.
[[nodiscard]] nlohmann::ordered_json counters_json(const std::vector<hw::BlockReport>& blocks);
[[nodiscard]] nlohmann::ordered_json to_json(const RtlReport& report);
[[nodiscard]] nlohmann::ordered_json to_json(const NetworkSize& size);

/// The statistics document, see docs/statistics.md.
[[nodiscard]] nlohmann::ordered_json to_json(const Measurement& measurement);

/// "transformer (16 x 16 array, 1000 MHz)".
[[nodiscard]] std::string machine_text(const hw::Machine& machine);
/// "4,096 bytes of 12 operators, 0 mismatches".
[[nodiscard]] std::string check_counts(const CheckResult& check);
/// The same, and where the first mismatch is.
[[nodiscard]] std::string check_text(const CheckResult& check);

/// What a run found, for people: at most kTextWidth columns. `more` are lines of label and value
/// that only this run has, `files` have been written (empty names aside).
[[nodiscard]] std::string report_text(
    const Measurement& measurement, const std::vector<std::string>& files,
    const std::vector<std::pair<std::string, std::string>>& more = {});

/// One line per block that ran as RTL.
[[nodiscard]] std::string rtl_table(const RtlReport& report);

/// One line per account of a block or a part of it: where its time went.
[[nodiscard]] std::string block_table(const std::vector<hw::BlockReport>& blocks);

}  // namespace systole::testbench
