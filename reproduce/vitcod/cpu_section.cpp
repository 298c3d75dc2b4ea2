
#include "reproduce/vitcod/host_attention.h"
#include "reproduce/vitcod/vitcod.h"

namespace systole::testbench {

ReproductionSection cpu_section(const VitcodSubject& subject, const VitcodRuns& runs) {
  const double clock = subject.machine.core.clock_mhz * 1e6;
  Metrics metrics = {{"dense", kNoFigure},    {"kept", kNoFigure},    {"ours", kNoFigure},
                     {"dense.90", kNoFigure}, {"kept.90", kNoFigure}, {"dense.mean", kNoFigure},
                     {"mask", kNoFigure}};
  double sum = 0.0;
  int points = 0;
  for (std::size_t i = 0; i < subject.sweep.size(); ++i) {
    if (subject.sweep[i].percent > kLastOfVitcodMean) continue;
    const HostAttention host = measure_host_attention(subject.sweep[i].mask, subject.maps_dim);
    const double ours = cycles_of(runs.sweep_reordered[i]) / clock;
    sum += host.dense / ours;
    metrics["dense.mean"] = sum / ++points;
    if (subject.sweep[i].percent != kLastOfVitcodMean) continue;
    metrics["dense"] = host.dense * 1e6;
    metrics["kept"] = host.kept * 1e6;
    metrics["ours"] = ours * 1e6;
    metrics["dense.90"] = host.dense / ours;
    metrics["kept.90"] = host.kept / ours;
  }
  metrics["mask"] = measure_host_attention(subject.mask, subject.mask_dim).dense * clock /
                    cycles_of(runs.reordered);
  return vitcod_paper().section("cpu", metrics, {{"cpu", cpu_name()}});
}

}  // namespace systole::testbench
