#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "hw/machine/machine.h"
#include "testbench/inject/campaign.h"

namespace systole::testbench {

/// A share of `total` and its interval of 95 % confidence: Wilson, J. Am. Stat. Assoc. 22 (1927).
struct Share {
  std::uint64_t count = 0, total = 0;
  [[nodiscard]] double value() const;
  [[nodiscard]] double low() const;
  [[nodiscard]] double high() const;
};

/// Outcomes of injections into the same kind of bit.
struct OutcomeCounts {
  std::uint64_t total = 0;
  std::array<std::uint64_t, kFaultOutcomes.size()> by_outcome{};

  void add(FaultOutcome outcome);
  [[nodiscard]] Share of(FaultOutcome outcome) const;
  /// Architectural vulnerability factor: what is neither masked nor corrected.
  [[nodiscard]] Share vulnerable() const;
  /// Of these, what nothing reports: silent data corruption, other outputs.
  [[nodiscard]] Share silent() const;
};

/// By target of the request, then by bit of its words.
struct TargetCounts {
  FaultTarget target;
  std::uint64_t size = 0;  ///< in bits
  OutcomeCounts all;
  std::vector<OutcomeCounts> bits;
};
[[nodiscard]] std::vector<TargetCounts> count_outcomes(const CampaignRequest& request,
                                                       const CampaignResult& result);

struct InjectReport {
  std::string model;
  std::string machine;
  CampaignRequest request;
  CampaignResult result;
  std::size_t pictures = 0;
};

[[nodiscard]] std::string inject_text(const InjectReport& report);
[[nodiscard]] nlohmann::ordered_json inject_json(const InjectReport& report);
/// A line per injection, with a title.
void write_inject_csv(std::ostream& out, const InjectReport& report);

}  // namespace systole::testbench
