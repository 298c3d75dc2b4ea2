/// Sections about bytes.

#include <string>

#include "reproduce/vitcod/attention_figures.h"
#include "reproduce/vitcod/score_stationary.h"
#include "reproduce/vitcod/vitcod_published.h"
#include "reproduce/vitcod/vitcod_sections.h"

namespace systole::testbench {

ReproductionSection movement_section(const VitcodSubject& subject, const VitcodRuns& runs) {
  ReproductionSection section{"Bytes of Q, K and V, and their share of the latency", {}, {}};
  const double bytes = number(runs.reordered, "qkv_bytes");
  section.rows.push_back(subject.deit_tiny
                             ? compare("Q, K and V read", bytes, vitcod_published("traffic.plain"))
                             : measured("Q, K and V read", bytes, "B"));
  section.rows.push_back(
      measured("read with 1 KiB buffers", number(runs.small_buffers, "qkv_bytes"), "B"));
  const auto share = [&](const char* name, double ours) {
    section.rows.push_back(compare(name, ours, vitcod_published("movement.plain")));
  };
  share("movement, nothing overlapped", movement_percent(runs.reordered, subject.machine));
  share("movement, 1 KiB buffers", movement_percent(runs.small_buffers, subject.machine));
  share("stalled for memory", stalled_percent(runs.reordered, "memory"));
  share("stalled, 1 KiB buffers", stalled_percent(runs.small_buffers, "memory"));
  section.notes.push_back(
      "Nothing overlapped: bytes read at the peak rate, to that time and the engines' cycles "
      "without "
      "stalls together. Stalled: engine cycles in which a row was late; the others hide movement "
      "behind compute.");
  return section;
}

ReproductionSection roofline_section(const VitcodSubject& subject, const VitcodRuns& runs) {
  ReproductionSection section{"Roofline of pruned attention", {}, {}};
  const auto intensity = [](const VitcodRuns::Json& document) {
    return kept_macs(document) / number(document, "qkv_bytes");
  };
  const hw::Machine& machine = subject.machine;
  const double roof = static_cast<double>(machine.attention.lines) *
                      machine.attention.macs_per_line * machine.core.clock_mhz / 1000.0;
  const double bandwidth = peak_bytes_per_cycle(machine) * machine.core.clock_mhz / 1000.0;
  section.rows = {
      compare("compute roof", roof, vitcod_published("roofline.compute")),
      measured("ridge", roof / bandwidth, "MAC/B"),
      compare("mask, 1 KiB buffers", intensity(runs.small_buffers),
              vitcod_published("roofline.sparse")),
      compare("mask", intensity(runs.reordered), vitcod_published("roofline.vitcod")),
      measured("dense map", intensity(runs.dense), "MAC/B"),
      measured(
          "reached with the mask",
          kept_macs(runs.reordered) / cycles_of(runs.reordered) * machine.core.clock_mhz / 1000.0,
          "GMAC/s"),
  };
  section.notes.push_back(
      "MACs of kept cells, of SDDMM and SpMM, to bytes of Q, K and V read. The paper names 0.6 for "
      "sparse attention as such and 3.9 for ViTCoD; with buffers that hold a layer's Q, K and V "
      "every byte is read once.");
  return section;
}

}  // namespace systole::testbench
