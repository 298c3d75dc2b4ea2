/// Pictures of `systole reproduce dfx`.

#include <fmt/format.h>

#include <string>
#include <vector>

#include "reproduce/dfx/dfx.h"

namespace systole::testbench {
namespace {

/// Milliseconds a pass over x times `unit`, as $curve1, $curve2, ...
std::string curves_of(const std::vector<DfxCurve>& curves, double unit = 1.0) {
  std::string data;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    std::string rows = fmt::format("x \"{}\"\n", curves[i].name);
    for (std::size_t k = 0; k < curves[i].x.size(); ++k) {
      rows += fmt::format("{} {}\n", unit * curves[i].x[k], curves[i].runs[k].pass_milliseconds());
    }
    data += data_block(fmt::format("curve{}", i + 1), rows);
  }
  return data;
}

}  // namespace

std::vector<Plot> dfx_what_if_plots(const DfxWhatIf& runs) {
  std::string published = "cores \"345M, measured on DFX\"\n";
  for (const std::uint32_t cores : kDfxCores) {
    published +=
        fmt::format("{} {}\n", cores, dfx_paper().figure(fmt::format("pass.{}", cores)).value);
  }
  return {{"dfx_cores.png", 1000, 560, curves_of(runs.cores) + data_block("published", published),
           "dfx_cores"},
          {"dfx_memory.png", 1000, 560,
           curves_of(runs.memory, dfx_paper().figure("hbm.peak").value), "dfx_memory"},
          {"dfx_hops.png", 1000, 560, curves_of(runs.hops), "dfx_hops"}};
}

Plot dfx_shares_plot(const std::vector<DfxRun>& runs) {
  std::string rows = "task";
  for (std::size_t i = 0; i < hw::dfx::kPhases; ++i) {
    rows += fmt::format(" \"{}\"", name_of(static_cast<hw::dfx::Phase>(i)));
  }
  for (const DfxRun& run : runs) {
    rows += fmt::format("\n\"{}\"", run.task.name);
    for (std::size_t i = 0; i < hw::dfx::kPhases; ++i) {
      rows += fmt::format(" {:.4f}",
                          run.pass_milliseconds() * run.share(static_cast<hw::dfx::Phase>(i)));
    }
  }
  return {"dfx_shares.png", 1000, 560, data_block("passes", rows + "\n"), "dfx_shares"};
}

}  // namespace systole::testbench
