#include "testbench/run/class_cycles.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "hw/host/host_cycles.h"

namespace systole::testbench {
namespace {

using tlm_model::CommandTrace;

bool is_store(hw::Opcode opcode) {
  return opcode == hw::Opcode::kStore || opcode == hw::Opcode::kMove;
}

}  // namespace

ClassSharing::ClassSharing(const hw::Program& program, const hw::Machine& machine)
    : program_(program),
      machine_(machine),
      ends_(program.operators.size()),
      has_matmul_(ends_.size(), false),
      classes_(ends_.size(), TimeClass::kMatmul) {}

void ClassSharing::add(const CommandTrace& trace) {
  at_ = std::min(at_, trace.dispatched);
  ends_[trace.op] = std::max(ends_[trace.op], trace.completed);
  TimeClass kind = TimeClass::kMatmul;
  if (trace.unit == hw::Unit::kCompute) has_matmul_[trace.op] = true;
  if (is_store(trace.opcode)) kind = classes_[trace.op] = class_of(chain_of(trace));
  if (trace.unit == hw::Unit::kLoad || trace.released <= trace.started) return;
  if (trace.unit == hw::Unit::kHost) add_host(trace);
  changes_.push_back({trace.started, trace.unit, kind});
  changes_.push_back({trace.released, trace.unit, std::nullopt});
}

ClassCycles ClassSharing::share() {
  for (std::size_t op = 0; op < ends_.size(); ++op) {
    if (has_matmul_[op]) classes_[op] = TimeClass::kMatmul;
    if (op > 0) ends_[op] = std::max(ends_[op], ends_[op - 1]);
  }
  // Of two in one cycle the end of a command comes before the next one's start.
  std::sort(changes_.begin(), changes_.end(), [](const Change& a, const Change& b) {
    return a.cycle != b.cycle ? a.cycle < b.cycle : !a.now && b.now;
  });
  std::optional<TimeClass> array, store;
  for (const Change& change : changes_) {
    if (change.unit == hw::Unit::kHost) {
      // From its end: the array and the store unit were done before it began.
      if (change.now) {
        advance(change.cycle, array, store);
      } else {
        at_ = std::max(at_, change.cycle);
      }
      continue;
    }
    advance(change.cycle, array, store);
    (change.unit == hw::Unit::kCompute ? array : store) = change.now;
  }
  if (!ends_.empty()) advance(ends_.back(), array, store);
  return shared_;
}

void ClassSharing::add_host(const CommandTrace& trace) {
  const auto& call = *program_.commands.at(trace.index).as<hw::cmd::HostCall>();
  const hw::HostFunction& function = program_.host_functions.at(call.function);
  const hw::HostCycles cycles = hw::host_cycles(function, call.m, call.n, machine_.host);
  const double clocks = static_cast<double>(machine_.core.clock_mhz) / machine_.host.clock_mhz;
  const double operation = clocks * static_cast<double>(cycles.operation);
  const double conversion = clocks * static_cast<double>(cycles.conversion);
  add(class_of(function.op), operation);
  add(TimeClass::kConvert, conversion);
  add(TimeClass::kHostWait,
      static_cast<double>(trace.released - trace.started) - operation - conversion);
}

const hw::Chain& ClassSharing::chain_of(const CommandTrace& trace) const {
  return hw::chain_of(*hw::chain_use(program_.commands.at(trace.index)), program_);
}

void ClassSharing::advance(std::uint64_t to, std::optional<TimeClass> array,
                           std::optional<TimeClass> store) {
  if (to <= at_) return;
  const auto cycles = static_cast<double>(to - at_);
  if (array && store) {
    add(*array, cycles / 2);
    add(*store, cycles / 2);
  } else if (array || store) {
    add(array ? *array : *store, cycles);
  } else {
    add_waiting(to);
  }
  at_ = to;
}

void ClassSharing::add_waiting(std::uint64_t to) {
  auto end = std::upper_bound(ends_.begin(), ends_.end(), at_);
  for (std::uint64_t from = at_; from < to && end != ends_.end(); ++end) {
    const std::uint64_t until = std::min(to, *end);
    if (until > from) {
      add(classes_[static_cast<std::size_t>(end - ends_.begin())],
          static_cast<double>(until - from));
    }
    from = std::max(from, until);
  }
}

std::string_view name_of(TimeClass kind) {
  constexpr std::array<std::string_view, kTimeClasses> kNames = {
      "matmul", "GELU", "softmax", "LayerNorm", "residual add", "de/quantisation", "host waits"};
  return kNames.at(static_cast<std::size_t>(kind));
}

TimeClass class_of(hw::HostOp op) {
  switch (op) {
    case hw::HostOp::kSoftmax:
    case hw::HostOp::kRoute:
      return TimeClass::kSoftmax;
    case hw::HostOp::kGelu:
      return TimeClass::kGelu;
    case hw::HostOp::kLayerNorm:
      return TimeClass::kLayerNorm;
    case hw::HostOp::kAdd:
      break;
  }
  return TimeClass::kResidual;
}

TimeClass class_of(const hw::Chain& chain) {
  if (hw::has_stage(chain, hw::StageOp::kSoftmax)) return TimeClass::kSoftmax;
  for (const hw::Stage& stage : chain.stages) {
    if (hw::stage_info(stage.op).unit == hw::StageUnit::kNorm) return TimeClass::kLayerNorm;
  }
  if (hw::tensor_operands(chain) != 0) return TimeClass::kResidual;
  if (hw::has_stage(chain, hw::StageOp::kGelu)) return TimeClass::kGelu;
  return TimeClass::kMatmul;
}

double ClassCycles::total() const { return std::accumulate(cycles.begin(), cycles.end(), 0.0); }

double ClassCycles::share(TimeClass kind) const {
  const double all = total();
  return all > 0 ? of(kind) / all : 0;
}

ClassCycles share_by_class(const hw::Program& program, const std::vector<CommandTrace>& traces,
                           const hw::Machine& machine) {
  ClassSharing sharing(program, machine);
  for (const CommandTrace& trace : traces) sharing.add(trace);
  return sharing.share();
}

}  // namespace systole::testbench
