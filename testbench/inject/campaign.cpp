#include "testbench/inject/campaign.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <systemc>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "hw/memory/word_code.h"
#include "testbench/common/child_process.h"
#include "testbench/common/progress.h"
#include "testbench/common/shared_array.h"
#include "testbench/inject/fault_regions.h"
#include "testbench/inject/injector.h"
#include "testbench/inject/use_log.h"
#include "testbench/network/tensors.h"
#include "testbench/run/run_checks.h"
#include "tlm/core/core.h"
#include "tlm/system.h"

namespace systole::testbench {
namespace {

/// Host seconds after which a run that makes no simulated time is a defect of this program.
constexpr rlim_t kHostSeconds = 120;

/// A number that depends on its arguments alone: the finaliser of SplitMix64 (Steele et al.,
/// OOPSLA 2014), twice.
std::uint64_t draw(std::uint64_t seed, std::uint64_t index, std::uint64_t what) {
  std::uint64_t x = seed * 0x9e3779b97f4a7c15ULL + index;
  for (const std::uint64_t add : {what, std::uint64_t{1}}) {
    x += (add + 1) * 0x9e3779b97f4a7c15ULL;
    x = (x ^ x >> 30U) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ x >> 27U) * 0x94d049bb133111ebULL;
    x ^= x >> 31U;
  }
  return x;
}
/// Below `limit`, which is far below 2^64: the bias is below limit / 2^64.
std::uint64_t draw_below(std::uint64_t limit, std::uint64_t seed, std::uint64_t index,
                         std::uint64_t what) {
  return draw(seed, index, what) % limit;
}

/// In a copy: what the core says of its program is an outcome, and so is an error of the bus.
void on_report(const sc_core::sc_report& report, const sc_core::sc_actions& /*actions*/) {
  if (report.get_severity() >= sc_core::SC_ERROR) throw sc_core::sc_report(report);
}

hw::WordCode code_of(hw::Space space, const hw::Machine& machine) {
  if (space == hw::Space::kScratchpad) return hw::scratchpad_code(machine);
  return space == hw::Space::kAccumulator ? hw::accumulator_code(machine) : hw::WordCode{};
}

/// Of processes that have ended.
double cpu_seconds_of_copies() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// What copies tell each other.
struct Golden {
  std::uint64_t started = 0, cycles = 0;
  std::uint64_t ended = 0;  ///< the host has read the outputs
};

void require_fit(const FaultSubject& subject, const CampaignRequest& request) {
  const hw::Machine& machine = subject.machine;
  if (machine.attention.lines != 0 || machine.unroller.loops != 0 ||
      machine.host.operators != hw::HostOperators::kNone) {
    throw hw::InputError(
        "inject: attention engines, loop unrollers and operators of the host are not observed, "
        "expected a machine without");
  }
  if (machine.tlb.entries != 0) {
    throw hw::InputError("inject: translation is not observed, expected tlb.entries = 0");
  }
  const bool array =
      std::any_of(request.targets.begin(), request.targets.end(),
                  [](FaultTarget target) { return array_register(target).has_value(); });
  if (array && machine.array.dataflow != hw::Dataflow::kWeightStationary) {
    throw hw::InputError(
        "--where: registers of an output-stationary array are not modelled, expected a "
        "weight-stationary one, or memories");
  }
  if (array && request.flips != 1) {
    throw hw::InputError("--flips 2: of words in memories, expected no registers of the array");
  }
  if (subject.inputs.empty()) throw hw::InputError("inject: no inputs, expected at least one");
}

/// A machine, and one run of it in every copy of this process.
class FaultRun {
 public:
  explicit FaultRun(const FaultSubject& subject)
      : subject_(subject),
        input_(mapper::place_of(subject.graph, subject.mapping, input_tensor(subject.graph))),
        output_(mapper::place_of(subject.graph, subject.mapping, output_tensor(subject.graph))),
        clock_(subject.machine.core.clock_mhz),
        system("system", subject.machine, tlm_model::make_models(subject.machine),
               subject.mapping.program_address, subject.mapping.image,
               subject.mapping.program.host_functions, true) {}

  [[nodiscard]] std::size_t output_bytes() const { return output_.bytes(); }

  /// Runs on an input, up to a cycle of the core at most (0: any). Returns whether it ended.
  bool run(std::size_t picture, tlm_model::UseObserver& observer, std::uint64_t last_cycle) {
    system.dram.observe(observer, clock_);
    system.core.memory.observer = &observer;
    bool begun = false;
    system.host.set_work(
        [&](tlm_model::Host::Job& job) {
          if (begun) return false;
          begun = true;
          job.inputs = host_buffers(input_, &subject_.inputs[picture]);
          job.outputs = host_buffers(output_, nullptr);
          return true;
        },
        [&](const tlm_model::Host::Job& job) {
          outputs = bytes_of(job.outputs);
          cycles = job.cycles;
        });
    if (last_cycle == 0) {
      sc_core::sc_start();
    } else {
      sc_core::sc_start(clock_.edge(last_cycle));
    }
    return system.done();
  }

 private:
  const FaultSubject& subject_;
  const mapper::TensorPlace input_, output_;
  const tlm_model::Clock clock_;

 public:
  tlm_model::System system;
  std::vector<std::uint8_t> outputs;
  std::uint64_t cycles = 0;
};

class Campaign {
 public:
  Campaign(const FaultSubject& subject, const CampaignRequest& request)
      : subject_(subject),
        request_(request),
        run_(subject),
        golden_(1),
        golden_outputs_(subject.inputs.size() * run_.output_bytes()),
        results_(request.one ? 1 : request.targets.size() * request.injections),
        done_(1) {
    for (const FaultTarget target : request.targets) {
      regions_.push_back(fault_region(target, subject.mapping, subject.machine));
      if (regions_.back().size() == 0) {
        throw hw::InputError(fmt::format("--where: {} has no {}, expected a target that it has",
                                         subject.graph.name, name_of(target)));
      }
    }
  }

  CampaignResult run() {
    const auto begin = std::chrono::steady_clock::now();
    const double cpu_before = cpu_seconds_of_copies();
    for (std::size_t picture = 0; picture < subject_.inputs.size(); ++picture) {
      static_cast<void>(run_in_child([&] { return record(picture); }));
      expected_.push_back(expected_of(picture));
    }
    run_in_workers();
    CampaignResult result;
    result.cycles = golden_[0].cycles;
    for (std::size_t i = 0; i < regions_.size(); ++i) {
      result.bits.push_back(regions_[i].size() * bits_per_address(request_.targets[i]));
    }
    result.injections.assign(results_.begin(), results_.end());
    for (const InjectionResult& each : result.injections) {
      if (each.ended_early) {
        const Injection& injection = each.injection;
        throw std::runtime_error(fmt::format(
            "an injection ended its process: --where {} --at {} --address {} --bit {} --flips {} "
            "--picture {}",
            name_of(injection.target), injection.cycle, injection.address, injection.bit,
            injection.flips, injection.picture));
      }
      result.simulated += each.simulated ? 1 : 0;
    }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    result.seconds = seconds.count();
    result.cpu_seconds = cpu_seconds_of_copies() - cpu_before;
    return result;
  }

 private:
  /// In a copy: the run without errors of an input. The first decides on the injections.
  Bytes record(std::size_t picture) {
    UseLog log;
    if (!run_.run(picture, log, 0)) throw std::logic_error("the run without errors does not end");
    if (!run_.system.core.processor.fault().empty()) {
      throw hw::InputError("program: " + run_.system.core.processor.fault());
    }
    std::memcpy(golden_outputs_.data() + picture * run_.output_bytes(), run_.outputs.data(),
                run_.output_bytes());
    if (picture != 0) return {};
    golden_[0] = {run_.system.core.processor.start_cycle(), run_.cycles,
                  run_.system.core.processor.cycle()};
    for (std::size_t i = 0; i < results_.size(); ++i) {
      results_[i] = {};
      Injection& injection = results_[i].injection;
      injection = request_.one ? *request_.one : random_injection(i);
      check(injection);
      results_[i].plan = plan(log, injection);
    }
    return {};
  }

  [[nodiscard]] FlipPlan plan(const UseLog& log, const Injection& injection) const {
    const std::uint64_t cycle = golden_[0].started + injection.cycle;
    if (const auto which = array_register(injection.target)) {
      const std::uint32_t cols = subject_.machine.array.cols;
      const auto element = static_cast<std::uint32_t>(injection.address);
      return log.resolve({*which, element / cols, element % cols, injection.bit, 0, 0}, cycle);
    }
    return log.resolve(injection.space(), injection.address, cycle,
                       code_of(injection.space(), subject_.machine), injection.flips);
  }

  [[nodiscard]] Injection random_injection(std::size_t index) const {
    const std::size_t target = index / request_.injections;
    Injection injection;
    injection.target = request_.targets[target];
    // By what it is, not by its place in the request.
    const std::uint64_t number =
        index % request_.injections + (static_cast<std::uint64_t>(injection.target) << 48U);
    const auto below = [&](std::uint64_t limit, std::uint64_t what) {
      return draw_below(limit, request_.seed, number, what);
    };
    injection.picture = static_cast<std::uint32_t>(below(subject_.inputs.size(), 0));
    injection.cycle = below(golden_[0].cycles, 1);
    injection.address = regions_[target].address(below(regions_[target].size(), 2));
    injection.bit = static_cast<std::uint32_t>(below(bits_per_address(injection.target), 3));
    injection.flips = request_.flips;
    return injection;
  }

  void check(const Injection& injection) {
    if (injection.cycle >= golden_[0].cycles) {
      throw hw::InputError(fmt::format("--at: found cycle {}, expected 0 to {}", injection.cycle,
                                       golden_[0].cycles - 1));
    }
    if (const FaultRegion& region = regions_.front();
        request_.one && !region.contains(injection.address)) {
      throw hw::InputError(fmt::format("--address: found {}, expected one of the {} in {} to {}",
                                       injection.address, name_of(injection.target), region.begin(),
                                       region.end() - 1));
    }
  }

  /// Slices of the injections that have to be simulated, as many processes at once as workers.
  void run_in_workers() {
    struct Slice {
      std::size_t picture;
      std::vector<std::size_t> positions;
    };
    std::vector<Slice> slices;
    std::vector<std::vector<std::size_t>> of_picture(subject_.inputs.size());
    for (std::size_t i = 0; i < results_.size(); ++i) {
      decide(results_[i]);
      if (results_[i].simulated) of_picture[results_[i].injection.picture].push_back(i);
    }
    for (std::size_t picture = 0; picture < of_picture.size(); ++picture) {
      const std::vector<std::size_t>& all = of_picture[picture];
      for (std::size_t worker = 0; worker < std::min(request_.workers, all.size()); ++worker) {
        Slice slice{picture, {}};
        for (std::size_t i = worker; i < all.size(); i += request_.workers) {
          slice.positions.push_back(all[i]);
        }
        slices.push_back(std::move(slice));
      }
    }
    std::size_t total = 0;
    for (const auto& all : of_picture) total += all.size();
    Progress progress(total);
    std::vector<pid_t> running;
    std::fflush(nullptr);
    for (std::size_t next = 0; next < slices.size() || !running.empty();) {
      if (next < slices.size() && running.size() < request_.workers) {
        const pid_t worker = fork_child();
        if (worker == 0) work(slices[next].picture, slices[next].positions);
        if (worker < 0) throw std::runtime_error("cannot start a process");
        running.push_back(worker);
        ++next;
        continue;
      }
      int status = 0;
      const pid_t ended = ::waitpid(-1, &status, WNOHANG);
      if (ended > 0) {
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
          for (const pid_t worker : running) {
            if (worker != ended) ::kill(worker, SIGKILL);
          }
          throw std::runtime_error("a worker ended early");
        }
        running.erase(std::find(running.begin(), running.end(), ended));
        continue;
      }
      progress.update(__atomic_load_n(done_.data(), __ATOMIC_RELAXED));
      ::usleep(kPollMicroseconds);
    }
  }

  /// Processes count together, which std::atomic does not promise.
  void count() { __atomic_fetch_add(done_.data(), std::uint64_t{1}, __ATOMIC_RELAXED); }

  /// What the plan alone says.
  void decide(InjectionResult& result) const {
    switch (result.plan.fate) {
      case FlipPlan::Fate::kDetected:
        result.outcome = FaultOutcome::kDetected;
        return;
      case FlipPlan::Fate::kCorrected:
        result.outcome = FaultOutcome::kCorrected;
        return;
      case FlipPlan::Fate::kRead:
        result.simulated = true;
        return;
      case FlipPlan::Fate::kOverwritten:
      case FlipPlan::Fate::kUnused:
        break;
    }
    result.outcome = FaultOutcome::kMasked;
    result.simulated = request_.full;
    if (result.simulated) return;
    const Expected& expected = expected_[result.injection.picture];
    result.hash = expected.hash;
    result.label = expected.label;
  }

  /// What the run without errors of an input gave.
  struct Expected {
    std::vector<std::uint8_t> outputs;
    std::uint64_t hash = 0;
    std::int32_t label = -1;  ///< as InjectionResult::label
  };
  [[nodiscard]] Expected expected_of(std::size_t picture) const {
    const std::uint8_t* const from = golden_outputs_.data() + picture * run_.output_bytes();
    Expected expected{{from, from + run_.output_bytes()}, 0, -1};
    expected.hash = hw::hash_of(expected.outputs.data(), expected.outputs.size());
    if (subject_.label) expected.label = subject_.label(expected.outputs);
    return expected;
  }

  /// In a copy: simulates injections into the run of an input.
  [[noreturn]] void work(std::size_t picture, const std::vector<std::size_t>& positions) {
    if (!request_.full) {
      Injector injector(run_.system, results_.data());
      injector.inject_in_copies(positions, [this] { count(); });
      std::_Exit(finish(picture, injector));
    }
    for (const std::size_t position : positions) {
      const pid_t copy = fork_child();
      if (copy == 0) {
        Injector injector(run_.system, results_.data());
        injector.inject(position, true);
        std::_Exit(finish(picture, injector));
      }
      if (copy < 0 || wait_for_child(copy) != 0) results_[position].ended_early = true;
      count();
    }
    std::_Exit(0);
  }

  /// Simulates, in this process or its copies, to the end. The exit code.
  int finish(std::size_t picture, Injector& injector) {
    const rlimit limit{kHostSeconds, kHostSeconds};
    ::setrlimit(RLIMIT_CPU, &limit);
    sc_core::sc_report_handler::set_handler(&on_report);
    const auto cycles = static_cast<double>(golden_[0].cycles);
    // What the host needs after the core comes on top.
    const auto last =
        golden_[0].ended + static_cast<std::uint64_t>(cycles * (request_.watchdog - 1)) + 1;
    FaultOutcome outcome = FaultOutcome::kHang;
    try {
      if (run_.run(picture, injector, last)) outcome = FaultOutcome::kMasked;
    } catch (const sc_core::sc_report& report) {
      // The bus answered a request with an error.
      if (std::strncmp(report.get_msg_type(), "/systole/", 9) != 0) {
        if (request_.one) std::fprintf(stderr, "%s\n", report.what());
        return 1;
      }
      outcome = FaultOutcome::kDetected;
    } catch (const std::exception& error) {
      if (request_.one) std::fprintf(stderr, "%s\n", error.what());
      return 1;
    }
    if (!injector.own()) return outcome == FaultOutcome::kMasked ? 0 : 1;
    InjectionResult& result = results_[*injector.own()];
    if (!run_.system.core.processor.fault().empty()) outcome = FaultOutcome::kDetected;
    if (outcome == FaultOutcome::kMasked) {
      const Expected& expected = expected_[picture];
      for (std::size_t i = 0; i < expected.outputs.size(); ++i) {
        if (run_.outputs[i] != expected.outputs[i]) ++result.changed;
      }
      result.hash = hw::hash_of(run_.outputs.data(), run_.outputs.size());
      if (subject_.label) result.label = subject_.label(run_.outputs);
      if (result.changed != 0) {
        outcome = result.label == expected.label ? FaultOutcome::kLogits : FaultOutcome::kClass;
      }
    }
    result.outcome = outcome;
    return 0;
  }

  static constexpr unsigned kPollMicroseconds = 20000;

  const FaultSubject& subject_;
  const CampaignRequest& request_;
  FaultRun run_;
  SharedArray<Golden> golden_;
  SharedArray<std::uint8_t> golden_outputs_;  ///< by picture
  SharedArray<InjectionResult> results_;
  SharedArray<std::uint64_t> done_;  ///< injections simulated, by all workers
  std::vector<FaultRegion> regions_;
  std::vector<Expected> expected_;  ///< by picture
};

}  // namespace

CampaignResult run_campaign(const FaultSubject& subject, const CampaignRequest& request) {
  require_fit(subject, request);
  return Campaign(subject, request).run();
}

}  // namespace systole::testbench
