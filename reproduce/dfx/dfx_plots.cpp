/// Pictures of `systole reproduce dfx`.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
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

/// Core, unit, phase, begin and end of an instruction, as figures_of() keeps them.
struct Slice {
  std::uint32_t core, unit, phase;
  double begin, end;  ///< us since the pass began
};

std::vector<Slice> slices_of(const DfxRun& run) {
  const double mhz = run.task.make_machine().core.clock_mhz;
  std::vector<Slice> slices;
  double first = std::numeric_limits<double>::infinity();
  for (const auto& one : run.figures.at("timeline")) {
    slices.push_back({one[0], one[1], one[2], one[3].get<double>() / mhz,
                      std::max(one[4].get<double>(), one[3].get<double>() + 1) / mhz});
    first = std::min(first, slices.back().begin);
  }
  for (Slice& slice : slices) {
    slice.begin -= first;
    slice.end -= first;
  }
  return slices;
}

/// When the exchanges of the first core end, in the order of the pass: four a layer.
std::vector<double> exchange_ends(const std::vector<Slice>& slices) {
  std::vector<double> ends;
  for (const Slice& slice : slices) {
    const bool router = slice.unit == static_cast<std::uint32_t>(hw::dfx::Unit::kRouter);
    if (slice.core == 0 && router) ends.push_back(slice.end);
  }
  return ends;
}

}  // namespace

Plot dfx_token_plot(const DfxRun& run) {
  constexpr std::size_t kExchanges = 4;  // of a layer
  const std::vector<Slice> slices = slices_of(run);
  const std::vector<double> ends = exchange_ends(slices);
  std::string data;
  for (std::uint32_t phase = 0; phase < hw::dfx::kPhases; ++phase) {
    std::string rows = "# begin end core unit\n";
    for (const Slice& slice : slices) {
      if (slice.phase != phase) continue;
      rows += fmt::format("{:.3f} {:.3f} {} {}\n", slice.begin, slice.end, slice.core, slice.unit);
    }
    data += data_block(fmt::format("phase{}", phase), rows);
  }
  std::string names;
  for (std::size_t i = 0; i < hw::dfx::kPhases; ++i) {
    names += fmt::format("{}\"{}\"", i == 0 ? "" : " ", name_of(static_cast<hw::dfx::Phase>(i)));
  }
  data += fmt::format("names = '{}'\ncores = {}\nfrom = {:.3f}\nto = {:.3f}\n", names,
                      run.task.cores(), ends.at(kExchanges - 1), ends.at(2 * kExchanges - 1));
  return {"dfx_token.png", 1200, 900, data, "dfx_token"};
}

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
