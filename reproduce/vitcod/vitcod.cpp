#include "reproduce/vitcod/vitcod.h"

#include <fmt/format.h>

#include "testbench/attention/report_attention.h"
#include "testbench/common/text.h"

namespace systole::testbench {

const PublishedPaper& vitcod_paper() { return PublishedPaper::load("vitcod"); }

Reproduction reproduce_vitcod(const VitcodOptions& options, const hw::Machine& machine) {
  const VitcodSubject subject = load_vitcod_subject(options, machine);
  const VitcodRuns runs = run_vitcod(subject);
  Reproduction reproduction = vitcod_paper().reproduction();
  reproduction.inputs = {
      {"machine",
       fmt::format("{} ({} lines x {} MACs, {} MHz)", machine.name, machine.attention.lines,
                   machine.attention.macs_per_line, machine.core.clock_mhz)},
      {"mask", subject.mask_name + ": " +
                   attention_shape_text(subject.mask.shape(), subject.mask_dim, subject.mask_dim)},
      {"maps", subject.maps_name + ": " +
                   attention_shape_text(subject.maps_shape, subject.maps_dim, subject.maps_dim)}};
  for (ReproductionSection (*const section)(const VitcodSubject&, const VitcodRuns&) :
       {line_mapping_section, pruning_section, movement_section, auto_encoder_section}) {
    reproduction.add(section(subject, runs));
  }
  reproduction.add(break_even_section(runs));
  for (ReproductionSection (*const section)(const VitcodSubject&, const VitcodRuns&) :
       {baseline_section, rival_section, published_rival_section, roofline_section, energy_section,
        network_section, counter_section}) {
    reproduction.add(section(subject, runs));
  }
  if (!subject.folder.empty()) reproduction.add(folder_section(subject, runs));
  if (options.cpu) reproduction.add(cpu_section(subject, runs));
  reproduction.add(quoted_section());
  reproduction.plots = vitcod_plots(subject, runs);
  return reproduction;
}

}  // namespace systole::testbench
