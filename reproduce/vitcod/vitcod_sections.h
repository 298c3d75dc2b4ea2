#pragma once

#include "reproduce/reproduction.h"
#include "reproduce/vitcod/vitcod_runs.h"
#include "reproduce/vitcod/vitcod_subject.h"

/// The tables of `systole reproduce vitcod`, one per published result.
namespace systole::testbench {

/// SDDMM cycles before stalls by how the lines share the columns of keys.
[[nodiscard]] ReproductionSection line_mapping_section(const VitcodSubject& subject,
                                                       const VitcodRuns& runs);
/// How much faster pruning and reordering make attention.
[[nodiscard]] ReproductionSection pruning_section(const VitcodSubject& subject,
                                                  const VitcodRuns& runs);
/// Bytes of Q, K and V, and how much of the latency they are.
[[nodiscard]] ReproductionSection movement_section(const VitcodSubject& subject,
                                                   const VitcodRuns& runs);
/// Bytes, cycles and energy with an auto-encoder of Q and K.
[[nodiscard]] ReproductionSection auto_encoder_section(const VitcodSubject& subject,
                                                       const VitcodRuns& runs);
/// How many MACs, or how slow a memory, it needs to be worth it.
[[nodiscard]] ReproductionSection break_even_section(const VitcodRuns& runs);
/// Beside a dense map, and a score-stationary array with a dynamic mask, on as many MACs.
[[nodiscard]] ReproductionSection baseline_section(const VitcodSubject& subject,
                                                   const VitcodRuns& runs);
[[nodiscard]] ReproductionSection roofline_section(const VitcodSubject& subject,
                                                   const VitcodRuns& runs);
[[nodiscard]] ReproductionSection energy_section(const VitcodSubject& subject,
                                                 const VitcodRuns& runs);
/// What faster attention is worth for the whole network.
[[nodiscard]] ReproductionSection network_section(const VitcodSubject& subject,
                                                  const VitcodRuns& runs);
/// Beside the authors' closed-form counter.
[[nodiscard]] ReproductionSection counter_section(const VitcodSubject& subject,
                                                  const VitcodRuns& runs);
/// Published comparisons with hardware that is not modelled here.
[[nodiscard]] ReproductionSection quoted_section();

}  // namespace systole::testbench
