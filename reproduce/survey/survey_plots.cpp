/// Pictures of `systole reproduce survey`.

#include <fmt/format.h>

#include <functional>
#include <string>
#include <vector>

#include "analysis/operator_cost.h"
#include "reproduce/survey/survey.h"

namespace systole::testbench {
namespace {

using analysis::OperatorCost;

/// Value of a network at a length.
using Curve = std::function<double(std::size_t network, std::uint32_t length)>;

/// By length: ours of each network, then as published in `chart`.
std::string lengths_of(const std::string& name, const std::string& chart, const Curve& ours) {
  std::string rows = "tokens";
  for (const auto& network : kSurveyNetworkNames) rows += fmt::format(" \"{}\"", network);
  for (const std::uint32_t length : kSurveyLengths) {
    rows += fmt::format("\n{}", length);
    for (std::size_t i = 0; i < kSurveyNetworks; ++i) rows += fmt::format(" {}", ours(i, length));
    for (const auto& network : kSurveyNetworkNames) {
      rows += fmt::format(" {}",
                          survey_paper().table(chart).value(fmt::format("l={}", length), network));
    }
  }
  return data_block(name, rows + "\n");
}

Curve total(double (*figure)(const OperatorCost&)) {
  return [figure](std::size_t network, std::uint32_t length) {
    return figure(
        analysis::summarise(survey_ideal_costs(network, length, survey_projections(network)))
            .total);
  };
}

/// A class of time in the bars.
struct Part {
  const char* name;
  std::vector<TimeClass> kinds;
  const char *before, *after;  ///< published figures; "": none
};

/// The shares of one machine's time, published and ours, as two rows.
std::string bars_of(const std::vector<Part>& parts, const std::string& machine,
                    const nlohmann::ordered_json& encoder, const char* Part::*figure) {
  std::string published = fmt::format("\"{}, published\"", machine);
  std::string ours = fmt::format("\"{}, simulated\"", machine);
  for (const Part& part : parts) {
    const std::string key = part.*figure;
    published += fmt::format(" {}", key.empty() ? 0.0 : survey_paper().figure(key).value);
    ours += fmt::format(" {:.2f}", percent_of(encoder, part.kinds));
  }
  return published + "\n" + ours + "\n";
}

}  // namespace

std::vector<Plot> analysis_plots() {
  const double unit = survey_cycles(0, 128);
  const std::string lengths =
      lengths_of("flops", "fig4", total([](const OperatorCost& all) { return 1e-9 * all.flops; })) +
      lengths_of("bytes", "fig5", total([](const OperatorCost& all) { return 1e-9 * all.bytes; })) +
      lengths_of("ratio", "fig6", total([](const OperatorCost& all) { return all.intensity(); }));
  const std::string latency =
      lengths_of("latency", "fig32", [unit](std::size_t network, std::uint32_t length) {
        return survey_cycles(network, length) / unit;
      });
  return {{"survey_lengths.png", 1500, 560, lengths, "survey_lengths"},
          {"survey_latency.png", 900, 600, latency, "survey_latency"}};
}

Plot split_plot(const std::vector<SplitRun>& runs) {
  std::string data;
  for (const SplitRun& run : runs) {
    data += fmt::format(
        "\"{} / {}\" {:.2f} {}\n", run.scratchpad_kib, run.accumulator_kib,
        100.0 * run.utilisation(),
        survey_paper().table("splits").value(fmt::format("scratchpad {}", run.scratchpad_kib),
                                             fmt::format("accumulator {}", run.accumulator_kib)));
  }
  return {"survey_splits.png", 1000, 560, data_block("splits", data), "survey_splits"};
}

Plot shares_plot(const EncoderRuns& runs) {
  // GELU runs after a matmul on chip, and by itself on the host.
  std::vector<Part> parts = {
      {"matmul (on chip with GELU)", {TimeClass::kMatmul}, "before.matmul", "after.matmul"},
      {"GELU on the host", {TimeClass::kGelu}, "before.gelu", ""},
      {"softmax", {TimeClass::kSoftmax}, "before.softmax", "after.softmax"},
      {"LayerNorm", {TimeClass::kLayerNorm}, "before.layernorm", "after.layernorm"},
      {"residual add", {TimeClass::kResidual}, "before.residual", "after.residual"},
      {"de/quantisation", {TimeClass::kConvert}, "before.convert", ""},
      {"host waiting for lines", {TimeClass::kHostWait}, "", ""}};
  std::string rows = "machine";
  for (const Part& part : parts) rows += fmt::format(" \"{}\"", part.name);
  rows += "\n" + bars_of(parts, "baseline", runs.baseline, &Part::before);
  parts[0].kinds = {TimeClass::kMatmul, TimeClass::kGelu};
  parts[1].kinds = {};
  rows += bars_of(parts, "optimised", runs.at_512, &Part::after);
  return {"survey_shares.png", 1000, 600, data_block("shares", rows), "survey_shares"};
}

}  // namespace systole::testbench
