#include "testbench/generation/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <systemc>
#include <utility>

#include "base/error.h"
#include "mapper/ring/image.h"
#include "mapper/ring/pass.h"
#include "model/float/float_gpt.h"
#include "testbench/rtl/engine/engines.h"
#include "tlm/ring/ring_system.h"

namespace systole::testbench {
namespace {

using mapper::dfx::Pass;
using mapper::dfx::PassMaker;
using tlm_model::dfx::CoreMemory;
using tlm_model::dfx::NextPass;
using tlm_model::dfx::RingSystem;

void check(const GenerationTask& task) {
  if (!task.texts.empty()) return;
  const std::size_t all = task.prompt.size() + task.tokens;
  if (task.prompt.empty() || task.tokens == 0 || all > task.shape.positions) {
    throw hw::InputError(fmt::format(
        "text: found {} tokens of prompt and {} to generate, expected at least one of each and at "
        "most {} together",
        task.prompt.size(), task.tokens, task.shape.positions));
  }
}

/// Memories of all cores.
class Memories {
 public:
  Memories(const hw::Machine& machine, const GenerationTask& task,
           const std::vector<std::unique_ptr<PassMaker>>& makers) {
    if (task.gpt == nullptr) return;
    const bool shared = machine.dfx.lm_head == hw::dfx::Placement::kHbm;
    cores_.resize(makers.size());
    ddr_.reserve(makers.size());
    for (std::size_t i = 0; i < makers.size(); ++i) {
      cores_[i].hbm = mapper::dfx::hbm_image(*task.gpt, machine, makers[i]->layout());
      if (i == 0 || !shared) {
        ddr_.push_back(mapper::dfx::ddr_image(*task.gpt, machine, makers[i]->layout()));
      }
      cores_[i].ddr = &ddr_.back();
    }
  }
  [[nodiscard]] std::vector<CoreMemory*> pointers() {
    std::vector<CoreMemory*> all;
    for (CoreMemory& memory : cores_) all.push_back(&memory);
    return all;
  }

 private:
  std::vector<std::vector<hw::Half>> ddr_;
  std::vector<CoreMemory> cores_;
};

/// The cores' programs, pass after pass, and what comes out of them.
class Controller {
 public:
  Controller(const hw::Machine& machine, const GenerationTask& task,
             const std::vector<std::unique_ptr<PassMaker>>& makers, Generation& result)
      : machine_(machine), task_(task), makers_(makers), result_(result), passes_(makers.size()) {}

  void set_system(RingSystem& system) { system_ = &system; }

  void set_wave(Wave* wave) { wave_ = wave; }

  NextPass next() {
    NextPass next;
    if (wave_ != nullptr && result_.passes != 0) wave_->end_inference();
    if (has_logits_) next.host_bytes = take_logits();
    const Step step = task_.texts.empty() ? generation_step() : text_step();
    if (step.ids.empty()) return next;
    position_ = step.position + static_cast<std::uint32_t>(step.ids.size());
    has_logits_ = step.logits;
    for (std::size_t i = 0; i < makers_.size(); ++i) {
      passes_[i] = makers_[i]->make(step.ids, step.position, step.logits);
      next.passes.push_back(&passes_[i]);
    }
    ++result_.passes;
    if (task_.progress) task_.progress(result_.passes);
    return next;
  }

 private:
  /// What the cores do next; without ids: nothing.
  struct Step {
    std::vector<std::uint32_t> ids;
    std::uint32_t position = 0;
    bool logits = false;
  };

  Step generation_step() {
    const auto prompt = static_cast<std::uint32_t>(task_.prompt.size());
    const std::uint32_t end = prompt + task_.tokens - (machine_.dfx.last_pass ? 0 : 1);
    if (position_ >= end) return {};
    if (position_ >= prompt) return {{result_.tokens.back()}, position_, true};
    const std::uint32_t rows = std::min(prompt - position_, makers_.front()->max_rows());
    const auto first = task_.prompt.begin() + position_;
    return {
        {first, first + rows}, position_, position_ + rows == prompt || machine_.dfx.prompt_logits};
  }

  Step text_step() {
    if (position_ == task_.texts[text_].size()) {
      position_ = 0;
      ++text_;
    }
    if (text_ == task_.texts.size()) return {};
    return {{task_.texts[text_][position_]}, position_, true};
  }

  /// Returns the bytes that host and cores exchange for the next token.
  std::uint64_t take_logits() {
    std::vector<hw::Half> logits;
    if (task_.gpt != nullptr && (task_.sample || task_.on_logits)) logits = this->logits();
    if (task_.on_logits) task_.on_logits(position_ - 1, logits);
    const bool in_prompt = position_ < task_.prompt.size();
    if (!task_.texts.empty() || in_prompt || result_.tokens.size() == task_.tokens) return 0;
    std::uint32_t token = 0;
    if (task_.gpt != nullptr) token = task_.sample ? task_.sample(logits) : largest();
    if (result_.tokens.empty()) result_.first_token_ps = sc_core::sc_time_stamp().value();
    result_.tokens.push_back(token);
    if (task_.on_token) task_.on_token(token);
    return task_.sample ? std::uint64_t{task_.shape.vocabulary} * sizeof(hw::Half) : 0;
  }

  [[nodiscard]] std::vector<hw::Half> logits() {
    std::vector<hw::Half> all;
    for (std::size_t i = 0; i < makers_.size(); ++i) {
      const hw::Half* const own = system_->core(i).registers() + makers_[i]->registers().logits;
      const auto& part = makers_[i]->layout().part.vocabulary;
      all.insert(all.end(), own, own + part.size() * makers_[i]->sizes().columns);
    }
    all.resize(task_.shape.vocabulary);
    return all;
  }

  /// Of all cores' winners, which they have exchanged; of equal ones the first.
  [[nodiscard]] std::uint32_t largest() {
    const PassMaker& maker = *makers_.front();
    const hw::Half* winner = system_->core(0).registers() + maker.registers().winners;
    const hw::Half* best = nullptr;
    for (std::size_t i = 0; i < makers_.size(); ++i, winner += maker.sizes().depth) {
      const bool has_columns = winner[3].bits != 0;
      if (!has_columns) continue;
      if (best == nullptr || hw::to_float(best[0]) < hw::to_float(winner[0])) best = winner;
    }
    return best[1].bits | static_cast<std::uint32_t>(best[2].bits) << 16;
  }

  const hw::Machine& machine_;
  const GenerationTask& task_;
  const std::vector<std::unique_ptr<PassMaker>>& makers_;
  Generation& result_;
  std::vector<Pass> passes_;
  RingSystem* system_ = nullptr;
  Wave* wave_ = nullptr;  ///< of the passes
  std::size_t text_ = 0;
  std::uint32_t position_ = 0;  ///< of the current text: tokens so far
  bool has_logits_ = false;
};

std::vector<tlm_model::dfx::HalfEngines> make_half_engines(const hw::Machine& machine,
                                                           const RtlOptions& options,
                                                           RtlReport& report) {
  const auto is_rtl = [](hw::Backend backend) { return backend == hw::Backend::kRtl; };
  HalfBackends backends;
  backends.mpu_tree = is_rtl(machine.backend.mpu_tree);
  backends.fp16_mul = is_rtl(machine.backend.fp16_mul);
  backends.fp16_add = is_rtl(machine.backend.fp16_add);
  std::vector<tlm_model::dfx::HalfEngines> engines(machine.dfx.cores);
  for (tlm_model::dfx::HalfEngines& core : engines) {
    core.matrix = make_matrix_lane_engine(machine.matrix.unit(), backends, options, report);
    core.vector = make_half_vector_engine(backends, options, report);
    core.router = make_router_engine(is_rtl(machine.backend.ring_router),
                                     machine.ring.router_cycles, options, report);
  }
  return engines;
}

}  // namespace

Generation generate(const hw::Machine& machine, const GenerationTask& task) {
  check(task);
  std::vector<std::unique_ptr<PassMaker>> makers;
  std::vector<std::uint32_t> registers;
  for (std::uint32_t i = 0; i < machine.dfx.cores; ++i) {
    makers.push_back(std::make_unique<PassMaker>(task.shape, machine, i));
    registers.push_back(makers.back()->register_elements());
  }
  Memories memories(machine, task, makers);
  Generation result;
  Controller controller(machine, task, makers, result);
  RingSystem system("system", machine, registers, memories.pointers(),
                    make_half_engines(machine, task.rtl, result.rtl),
                    [&] { return controller.next(); });
  controller.set_system(system);
  for (std::size_t i = 0; i < system.cores(); ++i) system.core(i).observer = task.observer;

  std::unique_ptr<Wave> wave;
  if (!task.wave.path.empty()) {
    std::vector<WaveCore> cores;
    for (std::size_t i = 0; i < system.cores(); ++i) cores.push_back({system.core(i).basename()});
    wave = std::make_unique<Wave>(task.wave, std::move(cores), machine.core.clock_mhz);
    controller.set_wave(wave.get());
  }
  static_cast<MachineRun&>(result) = run_machine(system);
  if (wave) {
    wave->write();
    result.wave_is_cut_short = wave->is_cut_short();
  }
  result.total_ps = sc_core::sc_time_stamp().value();
  const auto& ends = system.ends();
  result.last_pass_ps = ends.back() - ends[ends.size() - 2];
  result.host_ps = system.host_ps();
  result.phases = system.core(0).phases();
  result.weight_bytes = makers.front()->layout().hbm.weight_bytes;
  result.hbm_bytes = makers.front()->layout().hbm.bytes;
  result.hbm_read_bytes = system.core(0).timing().hbm_bytes();
  for (std::size_t i = 0; system.cores() > 1 && i < system.cores(); ++i) {
    result.link_bytes.push_back(system.link_bytes(i));
  }
  return result;
}

bool Evaluation::holds() const {
  return comparison.same_top() >= kSameTop && comparison.max_error() <= kMaxError &&
         comparison.mean_error() <= kMeanError &&
         std::fabs(comparison.bits() - comparison.reference_bits()) <= kBits;
}

Evaluation evaluate(const hw::Machine& machine, const model::Gpt& gpt,
                    const std::vector<std::int32_t>& text, std::size_t tokens,
                    const std::function<void(std::size_t passes)>& progress) {
  // The token after the last one is what its logits are measured by.
  if (tokens == 0 || tokens >= text.size()) {
    throw hw::InputError(fmt::format("--evaluate: found {}, expected 1 to {}, the text's tokens",
                                     tokens, text.size() - 1));
  }
  Evaluation evaluation;
  GenerationTask task;
  task.shape = gpt.shape;
  task.gpt = &gpt;
  task.progress = progress;
  for (std::size_t first = 0; first < tokens; first += gpt.shape.positions) {
    const std::size_t end = std::min<std::size_t>(first + gpt.shape.positions, tokens);
    task.texts.emplace_back(text.begin() + static_cast<std::ptrdiff_t>(first),
                            text.begin() + static_cast<std::ptrdiff_t>(end));
  }
  model::FloatGpt reference(gpt);
  std::size_t place = 0;
  task.on_logits = [&](std::uint32_t position, const std::vector<hw::Half>& logits) {
    if (position == 0) reference.restart();
    const std::vector<float> expected = reference.append({text[place]});
    evaluation.comparison.add(logits, expected.data(), static_cast<std::size_t>(text[++place]));
  };
  evaluation.generation = generate(machine, task);
  return evaluation;
}

}  // namespace systole::testbench
