#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/operator_cost.h"
#include "hw/machine/machine.h"
#include "reproduce/published.h"
#include "reproduce/reproduction.h"
#include "testbench/network/matmul_graph.h"
#include "testbench/report/plot.h"
#include "testbench/run/class_cycles.h"

/// The survey "Full Stack Optimization of Transformer Inference" (arXiv 2302.14017): its analysis
/// and its case study, beside ours.
namespace systole::testbench {

/// What `systole reproduce survey` can do apart: "analysis" (from shapes alone), "products" (those
/// measured on RTL), "splits" (of the SRAM), "encoder" (BERT-Base), "resnet" (ResNet-50 beside it),
/// "pruning" (of a small network), "mapping" (random mappings, the fusion study).
[[nodiscard]] const std::vector<std::string>& survey_parts();

/// `parts` of survey_parts(); none: all.
[[nodiscard]] Reproduction reproduce_survey(const std::vector<std::string>& parts);

/// traces/published/survey.toml.
[[nodiscard]] const PublishedPaper& survey_paper();

/// The networks of Tab. 1: BERT-Base and BERT-Large as encoders, GPT-2 generating token by token.
inline constexpr std::size_t kSurveyNetworks = 3;
inline constexpr std::array<std::string_view, kSurveyNetworks> kSurveyNetworkNames = {
    "BERT-Base", "BERT-Large", "GPT-2"};
/// Tokens, of the charts' points.
inline constexpr std::array<std::uint32_t, 6> kSurveyLengths = {128, 256, 512, 1024, 2048, 4096};

/// Operators of a network of kSurveyNetworkNames, each operand moved once. `projections`: of the
/// four d x d ones of an encoder, how many are counted.
[[nodiscard]] std::vector<analysis::OperatorCost> survey_ideal_costs(std::size_t network,
                                                                     std::uint32_t length,
                                                                     std::uint32_t projections);
/// As many as the survey's own curves count: three of BERT-Large's.
[[nodiscard]] std::uint32_t survey_projections(std::size_t network);

/// Cycles of the survey's analytical model, in tiles.
[[nodiscard]] double survey_cycles(std::size_t network, std::uint32_t length);

// What is simulated, timing alone.

/// Products of a layer of BERT-Base, and how many of each. Those with weights have biases, and
/// those before a LayerNorm leave int32.
struct LayerProduct {
  MatmulShape shape;
  std::uint32_t count = 0;
  MatmulResult result;
};

/// A product as a separate program on the baseline machine "gemmini".
struct ProductRun {
  LayerProduct product;
  std::uint64_t cycles = 0;  ///< start to interrupt
};

/// The products of a layer, with these sizes of scratchpad and accumulator.
struct SplitRun {
  std::uint32_t scratchpad_kib = 0, accumulator_kib = 0;
  std::vector<ProductRun> products;
  [[nodiscard]] double layer_cycles() const;
  /// Of 256 MACs, all products of the layer together.
  [[nodiscard]] double utilisation() const;
};

/// The products of 128 tokens with the sizes that RTL was measured with, 256 and 64 KiB; products
/// alone, without biases.
[[nodiscard]] SplitRun run_measured_products();
/// The nine machines of Fig. 13 with the products of 512 tokens; the accumulator changes last.
[[nodiscard]] std::vector<SplitRun> run_splits();

/// Encoders of BERT-Base on the survey's optimised machine, "survey", and on its baseline,
/// "gemmini". Documents:
/// | name           | unit    | meaning                                              |
/// |----------------|---------|------------------------------------------------------|
/// | cycles         | cycles  | of an inference, start to interrupt                  |
/// | layers         |         |                                                      |
/// | macs           | MAC     | of an inference                                      |
/// | macs_per_cycle | MAC     | that the array has                                   |
/// | softmax_reads  | vectors | counted by the post-op unit                          |
/// | classes        | cycles  | by class (testbench/run/class_cycles.h)              |
struct EncoderRuns {
  using Json = nlohmann::ordered_json;
  /// In the order of Gemmini's library (in_library_order() in survey_runs.cpp).
  Json at_128, at_256, at_512;
  Json deferred;   ///< the last of them, division after the product with V
  Json unswapped;  ///< 512 tokens, in BERT's own order
  Json fused;      ///< the same, everything fused that can be
  Json baseline;   ///< 512 tokens
};
[[nodiscard]] EncoderRuns run_encoders();

/// ResNet-50 on "gemmini" and "survey", and BERT-Base of 128 tokens on "survey" in the order of
/// Gemmini's library. Documents as of EncoderRuns, without classes.
struct ResNetRuns {
  nlohmann::ordered_json baseline, optimised, bert;
};
[[nodiscard]] ResNetRuns run_resnet();

// Figures of a document of EncoderRuns.

/// Percent of the cycles that go to these classes.
[[nodiscard]] double percent_of(const nlohmann::ordered_json& encoder,
                                const std::vector<TimeClass>& kinds);
/// Of matmuls and GELUs, which the survey's figure has together.
[[nodiscard]] double matmul_percent(const nlohmann::ordered_json& encoder);
/// That figure of a layer.
[[nodiscard]] double per_layer(const nlohmann::ordered_json& encoder, const char* name);
/// Percent of the array's MACs that the whole inference uses.
[[nodiscard]] double array_percent(const nlohmann::ordered_json& encoder);

// The tables, one per published result.

inline constexpr double kGiga = 1e-9;  ///< operations or bytes to the survey's unit

/// Rows "NAME, FLOPs" and so on, as far as that table prints them.
[[nodiscard]] std::vector<ResultRow> cost_rows(const std::string& table, const std::string& name,
                                               const analysis::OperatorCost& ours);

/// Tab. 3 and 10: BERT-Base, and with four heads.
[[nodiscard]] ReproductionSection encoder_cost_section();
[[nodiscard]] ReproductionSection four_heads_section();
/// Tab. 11: GPT-2 token by token.
[[nodiscard]] ReproductionSection decoder_cost_section();
/// Fig. 4 to 6: totals by length, BERT-Large in both ways of counting.
[[nodiscard]] std::vector<ReproductionSection> length_sections();
/// Tab. 5: products in tiles.
[[nodiscard]] ReproductionSection tiled_section();
/// Fig. 32 and Fig. 9: latency by the analytical model, and on a CPU.
[[nodiscard]] ReproductionSection latency_section();
[[nodiscard]] ReproductionSection cpu_section();
/// Tab. 4 and 12: ResNet-50.
[[nodiscard]] ReproductionSection resnet_section();
[[nodiscard]] ReproductionSection convolution_section();
/// Fig. 15: energy per event.
[[nodiscard]] ReproductionSection energy_table_section(const hw::Machine& machine);
/// House models of memories on chip beside published accesses.
[[nodiscard]] ReproductionSection memory_energy_section();
/// House models of area beside Gemmini's at 22 nm.
[[nodiscard]] ReproductionSection area_section(const hw::Machine& gemmini);

/// Cycles of single products, measured on RTL by others.
[[nodiscard]] ReproductionSection measured_products_section(const SplitRun& run);
/// Fig. 13: utilisation by sizes of scratchpad and accumulator.
[[nodiscard]] ReproductionSection split_section(const std::vector<SplitRun>& runs);
/// Fig. 14, left, and the speed-up: the baseline, whose host does what the array does not.
[[nodiscard]] ReproductionSection baseline_section(const EncoderRuns& runs);
/// Fig. 14, right: shares of the optimised machine's time.
[[nodiscard]] ReproductionSection optimised_section(const EncoderRuns& runs);
/// Tab. 4 and its text, simulated.
[[nodiscard]] ReproductionSection simulated_resnet_section(const ResNetRuns& runs);
/// Shares of heads, neurons and tokens that a network for texts can lose.
[[nodiscard]] ReproductionSection pruning_section();
/// Section 5: how far random mappings lie apart, and what fusing gains.
[[nodiscard]] ReproductionSection mapspace_section(const hw::Machine& machine);
[[nodiscard]] ReproductionSection fusion_section();
/// What is not modelled.
[[nodiscard]] ReproductionSection quoted_case_section();

/// "survey_lengths.png" (FLOPs, bytes and their ratio over the length) and "survey_latency.png"
/// (latency by the analytical model): ours as lines, labels of the survey's charts as points.
[[nodiscard]] std::vector<Plot> analysis_plots();

/// "survey_splits.png": Fig. 13, ours beside published.
[[nodiscard]] Plot split_plot(const std::vector<SplitRun>& runs);
/// "survey_shares.png": Fig. 14, ours beside published.
[[nodiscard]] Plot shares_plot(const EncoderRuns& runs);

}  // namespace systole::testbench
