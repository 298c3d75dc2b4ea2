#pragma once

#include <vector>

#include "hw/machine/machine.h"
#include "reproduce/reproduction.h"
#include "reproduce/survey/survey_runs.h"

/// The tables of `systole reproduce survey`, one per published result.
namespace systole::testbench {

inline constexpr double kGiga = 1e-9;  ///< operations or bytes to the survey's unit

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

/// Cycles of single products, measured on RTL by others.
[[nodiscard]] ReproductionSection measured_products_section(const SplitRun& run);
/// Fig. 13: utilisation by sizes of scratchpad and accumulator.
[[nodiscard]] ReproductionSection split_section(const std::vector<SplitRun>& runs);
/// Fig. 14, left, and the speed-up: the baseline, whose host does what the array does not.
[[nodiscard]] ReproductionSection baseline_section(const EncoderRuns& runs);
/// Fig. 14, right: shares of the optimised machine's time.
[[nodiscard]] ReproductionSection optimised_section(const EncoderRuns& runs);
/// Section 5: how far random mappings lie apart, and what fusing gains.
[[nodiscard]] ReproductionSection mapspace_section(const hw::Machine& machine);
[[nodiscard]] ReproductionSection fusion_section();
/// What is not modelled.
[[nodiscard]] ReproductionSection quoted_case_section();

}  // namespace systole::testbench
