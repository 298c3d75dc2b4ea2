#include "testbench/cores/ring_beside.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "base/hash.h"
#include "testbench/cores/alone_run.h"
#include "tlm/common/time.h"

namespace systole::testbench {
namespace {

/// The task of a run without values: nothing reports any.
GenerationTask task_of(const RingPart& part, bool functional) {
  GenerationTask task = part.task;
  if (functional) return task;
  task.gpt = nullptr;
  task.observer = {};
  task.on_logits = {};
  task.on_token = {};
  task.progress = {};
  return task;
}

std::string line_of(std::uint32_t position, const std::vector<hw::Half>& logits) {
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(logits.data());
  const std::uint64_t hash = hw::hash_of(bytes, logits.size() * sizeof(hw::Half));
  return std::to_string(position) + ' ' + std::to_string(hash) + '\n';
}

}  // namespace

RingBeside::RingBeside(const RingPart& part, bool functional)
    : part_(part),
      task_(task_of(part, functional)),
      run_(part_.site->machine, task_),
      image_(run_.ddr_image(part.ddr)) {}

tlm_model::RingSite RingBeside::site() {
  tlm_model::RingSite site;
  site.name = part_.site->name;
  site.machine = part_.site->machine;
  site.window = part_.site->registers;
  site.ddr = part_.ddr;
  site.places = run_.places(
      [this](std::uint32_t core) { return part_.rtl ? part_.rtl(core) : RtlOptions{}; }, rtl_);
  site.next = [this](tlm_model::dfx::RingHost& host) { return next(host); };
  return site;
}

void RingBeside::attach(tlm_model::MixedSystem& system) {
  system_ = &system;
  run_.attach(system.ring);
}

std::vector<const hw::dfx::Pass*> RingBeside::next(tlm_model::dfx::RingHost& host) {
  if (!runs_) return {};
  return run_.next(host);
}

std::vector<WaveCore> RingBeside::wave_cores() const {
  std::vector<WaveCore> cores;
  for (std::size_t i = 0; i < system_->ring.cores(); ++i) {
    cores.push_back({part_.site->name + "." + system_->ring.core(i).basename(), nullptr});
  }
  return cores;
}

Generation RingBeside::result() const {
  if (const std::string fault = system_->ring.fault(); !fault.empty()) {
    throw hw::InputError(part_.site->name + ": " + fault);
  }
  Generation result = run_.result();
  result.rtl = rtl_;
  const auto& ends = system_->ring.host.ends();
  result.total_ps = ends.back() - ends.front() + result.host_ps;
  result.requests = {{0, 0, result.first_token_ps, result.total_ps, run_.generated()}};
  return result;
}

RequestTimes RingBeside::requests() const {
  RequestTimes sum;
  for (const unsigned id : system_->ddr_initiators()) {
    sum.add(system_->bus.core().initiators().at(id));
  }
  return sum;
}

CoreShare RingBeside::share() const {
  CoreShare share;
  share.name = part_.site->name;
  const tlm_model::Clock clock(part_.site->machine.core.clock_mhz);
  const auto& ends = system_->ring.host.ends();
  const std::uint64_t begin = clock.cycle_from_ps(ends.front());
  const std::uint64_t end = clock.cycle_from_ps(ends.back());
  // The host writes before the first pass, and reads after the last.
  const std::uint64_t host_done =
      clock.cycle_from_ps(ends.back() + system_->ring.host.host_ps() - ends.front());
  share.tasks = ends.size() - 1;
  share.running = share.alone = end - begin;
  share.total = std::max(clock.cycle_from(sc_core::sc_time_stamp()), host_done);
  share.host = begin + (host_done - end);
  share.done = share.total - host_done;
  std::uint64_t first_core = 0;
  const auto add = [&](std::string cause, const char* meaning, std::uint64_t cycles) {
    std::replace(cause.begin(), cause.end(), ' ', '_');  // one word, as causes are
    share.path.push_back({share.name, cause, meaning, cycles, cycles});
  };
  const auto& phases = system_->ring.core(0).phases();
  for (std::size_t i = 0; i < phases.size(); ++i) {
    first_core += phases[i];
    add(std::string(hw::dfx::name_of(static_cast<hw::dfx::Phase>(i))), "phase of a token",
        phases[i]);
  }
  add("others", "cores of the ring that end after the first", share.running - first_core);
  share.together_requests = share.alone_requests = requests();
  for (const unsigned id : system_->ddr_initiators()) {
    const tlm_model::BusCore::Initiator& of = system_->bus.core().initiators().at(id);
    share.traffic.read_bytes += of.read_bytes;
    share.traffic.written_bytes += of.written_bytes;
  }
  return share;
}

struct LogitsAlone::Alone {
  explicit Alone(const RingPart& part)
      : run([&part](const std::string&) {
          GenerationTask task = task_of(part, false);
          task.gpt = part.task.gpt;
          std::string rows = "rows\n";
          task.on_logits = [&rows](std::uint32_t position, const std::vector<hw::Half>& logits) {
            rows += line_of(position, logits);
          };
          static_cast<void>(generate(part.site->machine, task));
          return rows;
        }) {}
  AloneRun run;
};

LogitsAlone::LogitsAlone(const RingPart& part) : alone_(std::make_unique<Alone>(part)) {}
LogitsAlone::~LogitsAlone() = default;

void LogitsAlone::add(std::uint32_t position, const std::vector<hw::Half>& logits) {
  found_ += line_of(position, logits);
  ++result_.operators;
  result_.bytes += logits.size() * sizeof(hw::Half);
}

CheckResult LogitsAlone::compare() {
  alone_->run.start("all");
  std::istringstream expected(alone_->run.result()), found(found_);
  std::string a, b;
  std::getline(expected, a);  // the head
  for (;;) {
    const bool more = static_cast<bool>(std::getline(expected, a));
    const bool had = static_cast<bool>(std::getline(found, b));
    if (!more && !had) return result_;
    if (more && had && a == b) continue;
    ++result_.mismatches;
    if (result_.first.empty()) {
      result_.first = "logits after position " + (had ? b : a).substr(0, (had ? b : a).find(' '));
    }
    if (!more) a.clear();
    if (!had) b.clear();
  }
}

}  // namespace systole::testbench
