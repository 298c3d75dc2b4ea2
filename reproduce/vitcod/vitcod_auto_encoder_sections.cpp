/// Sections about the auto-encoder of Q and K.

#include <fmt/format.h>

#include <string>

#include "reproduce/vitcod/attention_figures.h"
#include "reproduce/vitcod/vitcod_published.h"
#include "reproduce/vitcod/vitcod_sections.h"

namespace systole::testbench {

ReproductionSection auto_encoder_section(const VitcodSubject& subject, const VitcodRuns& runs) {
  ReproductionSection section{"The auto-encoder of Q and K", {}, {}};
  if (!runs.auto_encoder) {
    section.notes.push_back("One head cannot be compressed.");
    return section;
  }
  const VitcodRuns::Json& with = *runs.auto_encoder;
  const VitcodRuns::Json& without = runs.reordered;
  section.title += fmt::format(": {} heads of {} in memory", number(with, "latent_heads"),
                               number(with, "head_count"));
  const double bytes = number(with, "qkv_bytes");
  section.rows = {
      subject.deit_tiny
          ? compare("Q, K and V read", bytes, vitcod_published("traffic.auto_encoder"))
          : measured("Q, K and V read", bytes, "B"),
      measured("Q, K and V read, without", number(without, "qkv_bytes"), "B"),
      measured("attention", cycles_of(with), "cycles"),
      measured("attention, without", cycles_of(without), "cycles"),
      measured("times faster", speed_up(without, with), "x"),
      measured("decoder lines at work", number(with, "decode_cycles"), "cycles"),
      compare("movement, nothing overlapped", movement_percent(with, subject.machine),
              vitcod_published("movement.auto_encoder")),
      compare("stalled for memory", stalled_percent(with, "memory"),
              vitcod_published("movement.auto_encoder")),
      measured("stalled for decoding", stalled_percent(with, "decode"), "%"),
      measured("energy", number(with, "energy_joules") * 1e6, "uJ"),
      measured("energy, without", number(without, "energy_joules") * 1e6, "uJ"),
  };
  section.notes.push_back(
      "With half of the heads in memory, rounded up, as the authors have it. Movement as above; "
      "time "
      "of decoding counts as work.");
  return section;
}

ReproductionSection break_even_section(const VitcodRuns& runs) {
  ReproductionSection section{"Where the auto-encoder begins to pay", {}, {}};
  for (const LinkBreakEven& point : runs.break_even) {
    const BreakEven& found = point.found;
    const std::string heads = fmt::format("{} {}->{}", point.model, found.auto_encoder.heads,
                                          found.auto_encoder.latent_heads);
    section.rows.push_back(
        point.array ? compare(heads + ", array decodes", found.bytes_per_cycle,
                              break_even_prediction(found.predicted, "B/cycle"))
                    : compare(fmt::format("{}, {} B/cycle", heads, found.bytes_per_cycle),
                              found.decoder_macs, break_even_prediction(found.predicted, "MACs")));
  }
  section.notes.push_back(
      "The link alone, simulated: the number of decoder MACs beyond which a layer's Q and K are "
      "there sooner with the auto-encoder than without; or, if the array's own lines decode, the "
      "bytes per cycle below which they are.");
  return section;
}

}  // namespace systole::testbench
