#include "reproduce/dfx/dfx_whatif.h"

#include <fmt/format.h>

#include <functional>
#include <iterator>

#include "reproduce/dfx/dfx_bounds.h"
#include "reproduce/dfx/dfx_published.h"

namespace systole::testbench {
namespace {

/// Of prompt, and as many generated: a pass hardly depends on how many there are.
constexpr std::uint32_t kWhatIfTokens = 3;

/// Settings that make exchanges run beside work: vectors are used as they come.
const std::vector<std::string>& overlapped() {
  static const std::vector<std::string> settings = {"ring.sync=overlapped", "dfx.chaining=vector"};
  return settings;
}

DfxTask task_of(const DfxSize& size, std::uint32_t cores, const std::string& machine) {
  return {std::string(size.shape), cores, kWhatIfTokens, kWhatIfTokens, machine};
}

using MakeTask = std::function<DfxTask(double x)>;

/// Curves whose points are all simulated together.
class Sweep {
 public:
  explicit Sweep(std::vector<double> x) : x_(std::move(x)) {}
  void add(const std::string& name, const MakeTask& make) {
    curves_.push_back({name, x_, {}});
    for (const double x : x_) tasks_.push_back(make(x));
  }
  [[nodiscard]] std::vector<DfxCurve> run() {
    std::vector<DfxRun> runs = run_dfx(tasks_);
    auto next = runs.begin();
    for (DfxCurve& curve : curves_) {
      const auto end = next + static_cast<std::ptrdiff_t>(x_.size());
      curve.runs.assign(std::make_move_iterator(next), std::make_move_iterator(end));
      next = end;
    }
    return curves_;
  }

 private:
  std::vector<double> x_;
  std::vector<DfxTask> tasks_;
  std::vector<DfxCurve> curves_;
};

std::vector<DfxCurve> run_cores() {
  Sweep sweep({1, 2, 4, 8, 16});
  for (const char* machine : {"dfx", "dfx-ideal"}) {
    for (const char* format : {"fp16", "int8"}) {
      for (const DfxSize& size : {kDfx345M, kDfx1500M}) {
        sweep.add(fmt::format("{}, {}, {}", size.name, machine, format),
                  [&size, machine, format](double x) {
                    DfxTask task = task_of(size, static_cast<std::uint32_t>(x), machine);
                    task.settings = {fmt::format("matrix.format={}", format)};
                    return task;
                  });
      }
    }
  }
  return sweep.run();
}

std::vector<DfxCurve> run_memory() {
  // Times 460 GB/s: the rate of the data buses, and what the core takes in a cycle.
  Sweep sweep({0.5, 1, 2, 4});
  for (const char* machine : {"dfx", "dfx-ideal"}) {
    for (const auto& [size, cores] : {std::pair{kDfx345M, 1U}, std::pair{kDfx1500M, 4U}}) {
      sweep.add(fmt::format("{} x{}, {}", size.name, cores, machine),
                [size = size, cores = cores, machine](double x) {
                  DfxTask task = task_of(size, cores, machine);
                  const hw::dfx::Hbm hbm = task.make_machine().hbm;
                  task.settings = {fmt::format("hbm.mega_transfers={:.0f}", x * hbm.mega_transfers),
                                   fmt::format("hbm.port_bytes={:.0f}", x * hbm.port_bytes)};
                  return task;
                });
    }
  }
  return sweep.run();
}

std::vector<DfxCurve> run_hops() {
  Sweep sweep({0.1, 0.3, 0.5, 1.0, 2.0});
  for (const DfxSize& size : {kDfx345M, kDfx1500M}) {
    for (const bool overlaps : {false, true}) {
      sweep.add(fmt::format("{} x4, {}", size.name, overlaps ? "overlapped" : "blocking"),
                [&size, overlaps](double x) {
                  DfxTask task = task_of(size, 4, "dfx");
                  if (overlaps) task.settings = overlapped();
                  task.settings.push_back(fmt::format("ring.hop_ns={}", 1e3 * x));
                  return task;
                });
    }
  }
  return sweep.run();
}

void add_ends(ReproductionSection& section, const std::vector<DfxCurve>& curves,
              const std::function<std::string(double x)>& name) {
  for (const DfxCurve& curve : curves) {
    for (const std::size_t i : {std::size_t{0}, curve.x.size() - 1}) {
      section.rows.push_back(measured(fmt::format("{}, {}", curve.name, name(curve.x[i])),
                                      curve.runs[i].pass_milliseconds(), "ms"));
    }
  }
}

std::string gbyte_per_s(double x) {
  return fmt::format("{:.0f} GB/s", x * dfx_published("hbm.peak").value);
}

}  // namespace

DfxWhatIf run_dfx_what_if() { return {run_cores(), run_memory(), run_hops()}; }

ReproductionSection dfx_what_if_section(const DfxWhatIf& runs) {
  ReproductionSection section{"What if: a pass with other cores, memory, hops", {}, {}};
  add_ends(section, runs.cores, [](double x) { return fmt::format("x{}", x); });
  add_ends(section, runs.memory, gbyte_per_s);
  add_ends(section, runs.hops, [](double x) { return fmt::format("{} us", x); });
  section.notes = {
      fmt::format("Simulated: [{0}:{0}]. Ends of the curves that --plots draws.", kWhatIfTokens),
      "Memory: hbm.mega_transfers and hbm.port_bytes together, so that the core can take what "
      "the buses carry. The matrix unit uses 2048 bytes of weights a cycle, 409.6 GB/s, whatever "
      "the memory brings.",
      "int8: matrix.format, 8-bit weights, two products in the place of one. What each core has "
      "to do for the whole vector, and making integers of vectors, does not become less.",
      "Overlapped: ring.sync, and dfx.chaining by vector, without which an instruction waits for "
      "the "
      "whole vector anyway. So the curve is lower even where hops take no time."};
  return section;
}

}  // namespace systole::testbench
