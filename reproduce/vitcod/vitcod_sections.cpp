#include <fmt/format.h>

#include "hw/silicon/area.h"
#include "reproduce/vitcod/rivals.h"
#include "reproduce/vitcod/vitcod.h"
#include "testbench/report/timing_document.h"

namespace systole::testbench {
namespace {

using Json = nlohmann::ordered_json;

/// What follows from the authors' mask is nothing to compare another one with.
ReproductionSection for_mask(const VitcodSubject& subject, ReproductionSection section) {
  for (ResultRow& row : section.rows) {
    if (subject.deit_tiny || row.claim != Claim::kFollows || !row.ours) continue;
    row = measured(row.name, *row.ours, row.unit);
  }
  return section;
}

double microjoules(const Json& document) { return number(document, "energy_joules") * 1e6; }

/// Percent of a network's cycles.
double attention_share(const Json& network) {
  return 100.0 * attention_cycles_of(network) / cycles_of(network);
}

/// Dense attention's part of the MACs of an encoder.
double share_of_macs(const VitcodRuns& runs) {
  const auto attention = runs.deit_dense.at("blocks").at("attention").at("counters").at("macs");
  return 100.0 * attention.get<double>() / runs.deit_dense.at("macs").get<double>();
}

}  // namespace

ReproductionSection line_mapping_section(const VitcodSubject& subject, const VitcodRuns& runs) {
  const LineMappingCycles cycles =
      line_mapping_cycles(subject.mask, subject.mask_dim, subject.machine.attention);
  const auto of = [](std::uint64_t count) { return static_cast<double>(count); };
  ReproductionSection section = for_mask(
      subject,
      vitcod_paper().section("lines", {{"ideal", cycles.ideal},
                                       {"packed", of(cycles.packed)},
                                       {"per line", of(cycles.per_line)},
                                       {"best", of(cycles.best)},
                                       {"broadcast", of(cycles.broadcast)},
                                       {"unordered", of(cycles.unordered)},
                                       {"unordered, broadcast", of(cycles.unordered_broadcast)},
                                       {"engines", number(runs.reordered, "engine_cycles")}}));
  if (!subject.deit_tiny) {
    section.notes.push_back(
        "The figures to compare with are of the authors' mask of DeiT-Tiny: give it with --mask.");
  }
  return section;
}

ReproductionSection pruning_section(const VitcodSubject& subject, const VitcodRuns& runs) {
  Metrics metrics = {{"pruning", speed_up(runs.dense, runs.reordered)},
                     {"reordering", speed_up(runs.unordered, runs.reordered)},
                     {"threshold", speed_up(runs.threshold, runs.reordered)},
                     {"pruning.90", kNoFigure},
                     {"reordering.90", kNoFigure}};
  double pruning = 0.0, reordering = 0.0;
  int points = 0;
  for (std::size_t i = 0; i < subject.sweep.size(); ++i) {
    const int percent = subject.sweep[i].percent;
    if (percent > kLastOfVitcodMean) continue;
    const double pruned = speed_up(runs.sweep_dense, runs.sweep_reordered[i]);
    const double reordered = speed_up(runs.sweep_unordered[i], runs.sweep_reordered[i]);
    ++points;
    pruning += pruned;
    reordering += reordered;
    if (percent != 90) continue;
    metrics["pruning.90"] = pruned;
    metrics["reordering.90"] = reordered;
  }
  metrics["pruning.mean"] = pruning / points;
  metrics["reordering.mean"] = reordering / points;
  return vitcod_paper().section("pruning", metrics);
}

ReproductionSection movement_section(const VitcodSubject& subject, const VitcodRuns& runs) {
  Metrics metrics;
  const auto add = [&](const std::string& suffix, const Json& document) {
    metrics["bytes" + suffix] = number(document, "qkv_bytes");
    metrics["movement" + suffix] = movement_percent(document, subject.machine);
    metrics["stalled" + suffix] = stalled_percent(document, "memory");
  };
  add("", runs.reordered);
  add(", small", runs.small_buffers);
  return for_mask(subject, vitcod_paper().section("movement", metrics));
}

ReproductionSection auto_encoder_section(const VitcodSubject& subject, const VitcodRuns& runs) {
  if (!runs.auto_encoder) return vitcod_paper().section("one-head");
  const Json& with = *runs.auto_encoder;
  const Json& without = runs.reordered;
  const auto part = [](const char* figure) { return vitcod_paper().figure(figure).value / 100.0; };
  const ImpliedBalance implied =
      implied_balance(without, with, {part("movement.without"), part("movement.with")});
  return for_mask(
      subject, vitcod_paper().section("auto-encoder",
                                      {{"bytes", number(with, "qkv_bytes")},
                                       {"bytes, without", number(without, "qkv_bytes")},
                                       {"cycles", cycles_of(with)},
                                       {"cycles, without", cycles_of(without)},
                                       {"faster", speed_up(without, with)},
                                       {"decoding", number(with, "decode_cycles")},
                                       {"movement", movement_percent(with, subject.machine)},
                                       {"stalled", stalled_percent(with, "memory")},
                                       {"stalled, decoding", stalled_percent(with, "decode")},
                                       {"implied rate", implied.bytes_per_cycle},
                                       {"implied decoder", implied.decoder_macs},
                                       {"implied time", implied.slower},
                                       {"energy", microjoules(with)},
                                       {"energy, without", microjoules(without)}},
                                      {{"latent", fmt::format("{}", number(with, "latent_heads"))},
                                       {"heads", fmt::format("{}", number(with, "head_count"))}}));
}

ReproductionSection break_even_section(const VitcodRuns& runs) {
  ReproductionSection section = vitcod_paper().section("break-even");
  for (const LinkBreakEven& point : runs.break_even) {
    const BreakEven& found = point.found;
    const std::string heads = fmt::format("{} {}->{}", point.model, found.auto_encoder.heads,
                                          found.auto_encoder.latent_heads);
    section.rows.push_back(
        point.array
            ? compare(heads + ", array decodes", found.bytes_per_cycle,
                      vitcod_paper().figure("array.bound", found.predicted))
            : compare(fmt::format("{}, {} B/cycle", heads, found.bytes_per_cycle),
                      found.decoder_macs, vitcod_paper().figure("decoder.bound", found.predicted)));
  }
  return section;
}

ReproductionSection roofline_section(const VitcodSubject& subject, const VitcodRuns& runs) {
  const auto intensity = [](const Json& document) {
    return kept_macs(document) / number(document, "qkv_bytes");
  };
  const hw::Machine& machine = subject.machine;
  const double ghz = machine.core.clock_mhz / 1000.0;
  const double roof =
      static_cast<double>(machine.attention.lines) * machine.attention.macs_per_line * ghz;
  return vitcod_paper().section(
      "roofline", {{"roof", roof},
                   {"ridge", roof / (peak_bytes_per_cycle(machine) * ghz)},
                   {"mask, small", intensity(runs.small_buffers)},
                   {"mask", intensity(runs.reordered)},
                   {"dense", intensity(runs.dense)},
                   {"reached", kept_macs(runs.reordered) / cycles_of(runs.reordered) * ghz}});
}

ReproductionSection energy_section(const VitcodSubject& subject, const VitcodRuns& runs) {
  const double microseconds = cycles_of(runs.reordered) / subject.machine.core.clock_mhz;
  const double energy = microjoules(runs.reordered), dense = microjoules(runs.dense);
  const double sanger =
      sanger_joules(sanger_cycles(subject.mask, subject.mask_dim, equal_sanger(subject.machine)),
                    subject.machine);
  return vitcod_paper().section("energy", {{"mask", energy},
                                           {"dense", dense},
                                           {"dense to mask", dense / energy},
                                           {"power", energy / microseconds * 1e3},
                                           {"to sanger", sanger * 1e6 / energy},
                                           {"area", hw::area_of(subject.machine).total()}});
}

ReproductionSection network_section(const VitcodSubject&, const VitcodRuns& runs) {
  Metrics metrics = {{"macs", share_of_macs(runs)},
                     {"auto-encoder", speed_up(runs.vit_dense, runs.vit_auto_encoder)}};
  const auto add = [&](const std::string& name, const Json& dense, const Json* pruned) {
    metrics[name + ".dense"] = attention_share(dense);
    metrics[name + ".pruned"] = pruned == nullptr ? kNoFigure : attention_share(*pruned);
    metrics[name + ".attention"] =
        pruned == nullptr ? kNoFigure : attention_cycles_of(dense) / attention_cycles_of(*pruned);
    metrics[name + ".network"] = pruned == nullptr ? kNoFigure : speed_up(dense, *pruned);
  };
  add("deit", runs.deit_dense, runs.deit_pruned ? &*runs.deit_pruned : nullptr);
  add("vit65", runs.vit_dense, &runs.vit_pruned);
  return vitcod_paper().section("networks", metrics);
}

ReproductionSection counter_section(const VitcodSubject& subject, const VitcodRuns& runs) {
  const bool same = subject.deit_tiny;
  return vitcod_paper().section(
      "counter", {{"with", same ? number(*runs.auto_encoder, "engine_cycles") : kNoFigure},
                  {"without", same ? number(runs.reordered, "engine_cycles") : kNoFigure}});
}

ReproductionSection folder_section(const VitcodSubject& subject, const VitcodRuns& runs) {
  ReproductionSection section = vitcod_paper().section("folder");
  section.figures.columns = {"cycles", "late", "Q, K, V", "mask"};
  for (std::size_t file = 0; file < subject.folder.size(); ++file) {
    const VitcodSubject::FolderMaps& maps = subject.folder[file];
    const VitcodRuns::FolderRuns& found = runs.folder[file];
    const auto line = [&](const std::string& name, const Json& document) {
      section.figures.lines.push_back({name,
                                       {document.at("cycles").get<std::uint64_t>(),
                                        document.at("stalled").at("memory").get<std::uint64_t>(),
                                        document.at("qkv_bytes").get<std::uint64_t>(),
                                        document.at("index_bytes").get<std::uint64_t>()}});
    };
    line(maps.name + ", dense", found.dense);
    for (std::size_t i = 0; i < maps.sweep.size(); ++i) {
      const std::string name = fmt::format("{}, {} %", maps.name, maps.sweep[i].percent);
      line(name, found.pruned[i]);
      section.rows.push_back(
          measured(name + ": dense to it", speed_up(found.dense, found.pruned[i]), "x"));
    }
  }
  return section;
}

ReproductionSection quoted_section() { return vitcod_paper().section("quoted"); }

}  // namespace systole::testbench
