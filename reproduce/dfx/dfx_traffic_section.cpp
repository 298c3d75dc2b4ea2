/// What has to be exact of a ring of cores.

#include <fmt/format.h>

#include "reproduce/dfx/dfx_bounds.h"
#include "reproduce/dfx/dfx_published.h"
#include "reproduce/dfx/dfx_sections.h"

namespace systole::testbench {
namespace {

/// Enough: what is counted here is the same for every layer.
constexpr std::uint32_t kRingLayers = 2;

}  // namespace

ReproductionSection dfx_traffic_section() {
  ReproductionSection section{"Exchanges and bytes", {}, {}};
  struct Ring {
    DfxSize size;
    std::uint32_t cores;
  };
  constexpr Ring kRings[] = {{kDfx345M, 1}, {kDfx345M, 2},  {kDfx345M, 4},
                             {kDfx774M, 2}, {kDfx1500M, 4}, {kDfx1500M, 8}};
  std::vector<DfxTask> tasks;
  for (const auto& [size, cores] : kRings) {
    tasks.push_back({std::string(size.shape), cores, 1, 2});
    tasks.back().layers = kRingLayers;
  }
  DfxTask reduce{std::string(kDfx1500M.shape), 4, 1, 2};
  reduce.layers = kRingLayers;
  reduce.settings = {"ring.collective=all-reduce"};
  tasks.push_back(std::move(reduce));
  for (const auto& [size, cores] : {Ring{kDfx345M, 1}, Ring{kDfx1500M, 4}}) {
    tasks.push_back({std::string(size.shape), cores, 1, 1});
  }
  const std::vector<DfxRun> runs = run_dfx(tasks);

  std::size_t i = 0;
  for (const auto& [size, cores] : kRings) {
    const DfxRun& run = runs[i++];
    const std::string name = fmt::format("{} x{}: ", size.name, cores);
    section.rows.push_back(compare(name + "exchanges of a layer", run.layer_syncs(),
                                   dfx_published(cores == 1 ? "syncs.one" : "syncs")));
    const double width = run.task.make_shape().encoder.width;
    section.rows.push_back(compare(name + "over a link", run.layer_link_bytes(),
                                   {"",
                                    14.0 * width * (cores - 1) / cores,
                                    "B",
                                    {"14 widths (N - 1) / N, DFX's four gathers", Claim::kFollows},
                                    kExactly}));
  }
  section.rows.push_back(compare("1.5B x4, all-reduce: over a link", runs[i++].layer_link_bytes(),
                                 dfx_published("reduce")));
  for (; i < runs.size(); ++i) {
    const DfxTask& task = runs[i].task;
    const bool medium = task.shape == kDfx345M.shape;
    section.rows.push_back(
        compare(fmt::format("{} x{}: read of HBM", medium ? "345M" : "1.5B", task.cores),
                runs[i].number("hbm_read_bytes") / runs[i].number("passes") * task.cores / 1e6,
                {"", weight_bytes(task.make_shape(), task.make_machine()) / 1e6, "MB",
                 "weights of layers and LM head", Tolerance{Tolerance::Kind::kRelative, 0.01}, 1}));
  }
  section.notes = {
      "A layer's exchanges in a pass, and what both directions of a link carry of them. Behind the "
      "LM head the cores exchange their best words, which are not counted here. HBM: of all cores, "
      "with the tiles of keys and values at the first two tokens."};
  return section;
}

}  // namespace systole::testbench
