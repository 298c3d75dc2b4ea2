#include "reproduce/dfx/dfx.h"

#include <fmt/format.h>

#include <utility>

#include "reproduce/reproduction_parts.h"

namespace systole::testbench {
namespace {

void add_bounds(Reproduction& reproduction) {
  for (ReproductionSection (*const section)() :
       {dfx_operations_section, dfx_roofline_section, dfx_matrix_section, dfx_ring_section}) {
    reproduction.add(section());
  }
}

void add_latency(Reproduction& reproduction) {
  const std::vector<DfxRun> by_cores =
      run_dfx({{"345M x1", 64, 64}, {"345M x2", 64, 64}, {"345M x4", 64, 64}});
  reproduction.add(dfx_cores_section(by_cores));
  reproduction.add(dfx_lengths_section(by_cores.front()));
  reproduction.add(dfx_efficiency_section(by_cores.front()));
  reproduction.add(dfx_prompt_section());
}

void add_sizes(Reproduction& reproduction) { reproduction.add(dfx_sizes_section()); }

void add_shares(Reproduction& reproduction) {
  std::vector<DfxTask> tasks;
  for (const char* size : {"345M", "1.5B"}) {
    for (const std::uint32_t cores : kDfxCores)
      tasks.push_back({fmt::format("{} x{}", size, cores)});
  }
  const std::vector<DfxRun> runs = run_dfx(tasks);
  reproduction.add(dfx_time_section(runs));
  reproduction.add(dfx_order_section());
  reproduction.plots.push_back(dfx_shares_plot(runs));
  DfxTask token{"345M x4", 4, 2};
  token.timeline = true;
  reproduction.plots.push_back(dfx_token_plot(run_dfx({token}).front()));
}

void add_ideal(Reproduction& reproduction) { reproduction.add(dfx_ideal_section()); }

void add_energy(Reproduction& reproduction) { reproduction.add(dfx_energy_section()); }

void add_batch(Reproduction& reproduction) {
  reproduction.add(dfx_batch_section());
  reproduction.add(dfx_cluster_section());
}

void add_checks(Reproduction& reproduction) {
  reproduction.add(dfx_traffic_section());
  reproduction.add(dfx_sync_section());
}

void add_what_if(Reproduction& reproduction) {
  const DfxWhatIf runs = run_dfx_what_if();
  reproduction.add(dfx_what_if_section(runs));
  for (Plot& plot : dfx_what_if_plots(runs)) reproduction.plots.push_back(std::move(plot));
}

const std::vector<ReproductionPart> kDfxParts = {
    {"latency", add_latency}, {"sizes", add_sizes},   {"shares", add_shares},
    {"bounds", add_bounds},   {"ideal", add_ideal},   {"energy", add_energy},
    {"batch", add_batch},     {"checks", add_checks}, {"whatif", add_what_if}};

}  // namespace

const std::vector<std::string>& dfx_parts() {
  static const std::vector<std::string> names = part_names(kDfxParts);
  return names;
}

const PublishedPaper& dfx_paper() { return PublishedPaper::load("dfx"); }

Reproduction reproduce_dfx(const std::vector<std::string>& parts) {
  Reproduction reproduction = dfx_paper().reproduction();
  add_parts(reproduction, kDfxParts, parts);
  return reproduction;
}

}  // namespace systole::testbench
