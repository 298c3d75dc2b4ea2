/// What if DFX had more cores, other memory, another ring?

#include <fmt/format.h>

#include <functional>
#include <iterator>

#include "reproduce/dfx/dfx.h"

namespace systole::testbench {
namespace {

/// Of prompt, and as many generated: a pass hardly depends on how many there are.
constexpr std::uint32_t kWhatIfTokens = 3;

/// Settings that make exchanges run beside work: vectors are used as they come.
const std::vector<std::string>& overlapped() {
  static const std::vector<std::string> settings = {"ring.sync=overlapped", "dfx.chaining=vector"};
  return settings;
}

DfxTask what_if(const std::string& name, const std::string& machine) {
  return {name, kWhatIfTokens, kWhatIfTokens, machine};
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
      for (const char* size : {"345M", "1.5B"}) {
        sweep.add(fmt::format("{}, {}, {}", size, machine, format),
                  [size, machine, format](double x) {
                    DfxTask task = what_if(fmt::format("{} x{}", size, x), machine);
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
    for (const char* name : {"345M x1", "1.5B x4"}) {
      sweep.add(fmt::format("{}, {}", name, machine), [name, machine](double x) {
        DfxTask task = what_if(name, machine);
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
  for (const char* name : {"345M x4", "1.5B x4"}) {
    for (const bool overlaps : {false, true}) {
      sweep.add(fmt::format("{}, {}", name, overlaps ? "overlapped" : "blocking"),
                [name, overlaps](double x) {
                  DfxTask task = what_if(name, "dfx");
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
  return fmt::format("{:.0f} GB/s", x * dfx_paper().figure("hbm.peak").value);
}

}  // namespace

DfxWhatIf run_dfx_what_if() { return {run_cores(), run_memory(), run_hops()}; }

ReproductionSection dfx_what_if_section(const DfxWhatIf& runs) {
  ReproductionSection section =
      dfx_paper().section("whatif", {}, {{"tokens", std::to_string(kWhatIfTokens)}});
  add_ends(section, runs.cores, [](double x) { return fmt::format("x{}", x); });
  add_ends(section, runs.memory, gbyte_per_s);
  add_ends(section, runs.hops, [](double x) { return fmt::format("{} us", x); });
  return section;
}

}  // namespace systole::testbench
