#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/operator_cost.h"
#include "reproduce/result_row.h"

/// What the survey "Full Stack Optimization of Transformer Inference" (arXiv 2302.14017) prints, as
/// far as `systole reproduce survey` shows it. Nowhere else does one of its figures stand.
namespace systole::testbench {

/// A number as it stands in a table or beside a curve.
struct Printed {
  double value;
  int decimals;
  /// False: it cannot be, by other numbers of the same table. Shown, and not to be met.
  bool consistent = true;
};

/// The networks of Tab. 1: BERT-Base and BERT-Large as encoders, GPT-2 generating token by token.
inline constexpr std::size_t kSurveyNetworks = 3;
inline constexpr std::array<std::string_view, kSurveyNetworks> kSurveyNetworkNames = {
    "BERT-Base", "BERT-Large", "GPT-2"};

/// FLOPs, memory operations and FLOPs per memory operation of one class of operators.
struct SurveyCost {
  Printed gflops, gmops;
  std::optional<Printed> intensity;
};

/// One network at one length: a block of Tab. 3 (BERT-Base), 10 (with four heads) or 11 (GPT-2).
struct SurveyCosts {
  std::uint32_t length;  ///< tokens
  std::array<SurveyCost, analysis::kOperatorClasses> classes;
  SurveyCost total;
  std::vector<Printed> flops_percent, mops_percent;  ///< by class, or empty
};
[[nodiscard]] const std::vector<SurveyCosts>& survey_table_3();
[[nodiscard]] const std::vector<SurveyCosts>& survey_table_11();

/// A block of Tab. 10, as far as it is known.
struct SurveyFourHeads {
  std::uint32_t length;
  SurveyCost total;
  Printed attention_intensity, other_intensity;
};
[[nodiscard]] const std::vector<SurveyFourHeads>& survey_table_10();

/// Labels of a curve's points by network.
struct SurveyPoint {
  std::uint32_t length;
  std::array<double, kSurveyNetworks> values;
};
/// A chart.
struct SurveyCurves {
  std::string_view source, what, unit;
  int decimals;
  std::vector<SurveyPoint> points;
};
[[nodiscard]] const SurveyCurves& survey_figure_4();   ///< GFLOP
[[nodiscard]] const SurveyCurves& survey_figure_5();   ///< 1e9 memory operations
[[nodiscard]] const SurveyCurves& survey_figure_6();   ///< FLOPs per memory operation
[[nodiscard]] const SurveyCurves& survey_figure_9();   ///< latency on a CPU, BERT-Base of 128: 1
[[nodiscard]] const SurveyCurves& survey_figure_32();  ///< latency by model, BERT-Base of 128: 1

/// A line of Tab. 5: FLOPs per byte of tiled products, in the order of kSurveyTiled, and of all.
inline constexpr std::array<std::string_view, 6> kSurveyTiled = {"query",  "scores", "context",
                                                                 "output", "W1",     "W2"};
struct SurveyTiled {
  std::uint32_t length;
  std::array<double, kSurveyTiled.size()> products;
  double total;
};
[[nodiscard]] const std::vector<SurveyTiled>& survey_table_5();

/// A line of Tab. 12: a convolution of ResNet-50. The survey prints kernel, outputs and size.
struct SurveyConvolution {
  std::uint32_t kernel, inputs, outputs, size;
  std::uint32_t count;  ///< layers that its FLOPs and bytes stand for
  double gflops, gmops, intensity;
};
[[nodiscard]] const std::vector<SurveyConvolution>& survey_table_12();

/// A single figure by key. Throws std::invalid_argument if there is none.
[[nodiscard]] const Published& survey_published(std::string_view key);
[[nodiscard]] const std::vector<Published>& survey_figures();

/// A number out of a table, to be met as printed: within half a unit of its last digit, and
/// `relative` of itself beyond that.
[[nodiscard]] Published printed(const Printed& number, std::string_view unit,
                                std::string_view source, double relative = 0.0);

}  // namespace systole::testbench
