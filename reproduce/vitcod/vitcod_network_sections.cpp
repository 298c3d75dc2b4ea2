/// Sections beyond the engines: the whole network, other hardware.

#include "reproduce/vitcod/attention_figures.h"
#include "reproduce/vitcod/vitcod_published.h"
#include "reproduce/vitcod/vitcod_sections.h"

namespace systole::testbench {
namespace {

using Json = nlohmann::ordered_json;

double share(const Json& network) {
  return 100.0 * attention_cycles_of(network) / cycles_of(network);
}

/// Dense attention's part of the MACs of an encoder.
double share_of_macs(const VitcodRuns& runs) {
  const auto attention = runs.deit_dense.at("blocks").at("attention").at("counters").at("macs");
  return 100.0 * attention.get<double>() / runs.deit_dense.at("macs").get<double>();
}

void add_networks(ReproductionSection& section, const std::string& name, const Json& dense,
                  const Json& pruned, const std::string& sparsity) {
  const auto row = [&](const std::string& text, double ours, const char* unit) {
    section.rows.push_back(measured(name + text, ours, unit));
  };
  row(": attention, dense", share(dense), "%");
  row(": attention, " + sparsity, share(pruned), "%");
  row(": attention faster", attention_cycles_of(dense) / attention_cycles_of(pruned), "x");
  row(": network faster", cycles_of(dense) / cycles_of(pruned), "x");
}

}  // namespace

ReproductionSection network_section(const VitcodSubject&, const VitcodRuns& runs) {
  ReproductionSection section{"The whole network: what faster attention is worth", {}, {}};
  section.rows.push_back(
      compare("DeiT-Tiny: attention's MACs", share_of_macs(runs), vitcod_published("share.macs")));
  if (runs.deit_pruned) {
    add_networks(section, "DeiT-Tiny", runs.deit_dense, *runs.deit_pruned, "95 %");
  } else {
    section.rows.push_back(measured("DeiT-Tiny: attention, dense", share(runs.deit_dense), "%"));
  }
  add_networks(section, "vit65", runs.vit_dense, runs.vit_pruned, "90 %");
  section.rows.push_back(measured("vit65: faster, auto-encoder",
                                  speed_up(runs.vit_dense, runs.vit_auto_encoder), "x"));
  section.notes.push_back(
      "Share of the cycles of one inference, simulated with all projections and the MLP on the "
      "same "
      "MACs; DeiT-Tiny: its 12 encoder layers by shape, without patch embedding and classifier.");
  section.notes.push_back(
      "Attention alone is what the other tables are about. No end-to-end figure of the paper was "
      "found to compare with.");
  return section;
}

ReproductionSection quoted_section() {
  ReproductionSection section{"Attention to other hardware: quoted, not claimed", {}, {}};
  const struct {
    const char* name;
    const char* key;
  } rows[] = {{"CPU (Xeon 6230R), 90 %", "speedup.cpu.90"},
              {"edge GPU (Xavier NX), 90 %", "speedup.edge_gpu.90"},
              {"edge GPU, 90 %, in figures", "speedup.edge_gpu.90.figure"},
              {"GPU (RTX 2080Ti), 90 %", "speedup.gpu.90"},
              {"SpAtten, 90 %", "speedup.spatten.90"},
              {"CPU, mean 60-90 %", "speedup.cpu.mean"},
              {"edge GPU, mean 60-90 %", "speedup.edge_gpu.mean"},
              {"GPU, mean 60-90 %", "speedup.gpu.mean"},
              {"SpAtten, mean 60-90 %", "speedup.spatten.mean"}};
  for (const auto& row : rows) {
    section.rows.push_back(compare(row.name, std::nullopt, vitcod_published(row.key)));
  }
  section.notes.push_back("None of this hardware is modelled here.");
  return section;
}

}  // namespace systole::testbench
