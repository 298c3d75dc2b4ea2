#include "testbench/generation/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <systemc>
#include <utility>

#include "base/error.h"
#include "base/round.h"
#include "hw/ring/ring_map.h"
#include "mapper/ring/image.h"
#include "mapper/ring/pass.h"
#include "model/float/float_gpt.h"
#include "testbench/rtl/engine/engines.h"
#include "testbench/run/rtl_blocks.h"
#include "tlm/ring/ring_system.h"

namespace systole::testbench {
namespace {

using mapper::dfx::Pass;
using mapper::dfx::PassMaker;
using tlm_model::dfx::RingHost;
using tlm_model::dfx::RingPlace;
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

/// Puts what is in the memories before the first token into those of the system.
void fill_memories(const hw::Machine& machine, const GenerationTask& task,
                   const std::vector<std::unique_ptr<PassMaker>>& makers, RingSystem& system) {
  if (task.gpt == nullptr) return;
  const auto put = [](const std::vector<hw::Half>& image, tlm_model::Dram& memory) {
    std::memcpy(&memory.stored(0), image.data(), image.size() * sizeof(hw::Half));
  };
  const bool shared = machine.dfx.lm_head == hw::dfx::Placement::kHbm;
  std::vector<hw::Half> ddr;
  for (std::size_t i = 0; i < makers.size(); ++i) {
    const mapper::dfx::CoreLayout& layout = makers[i]->layout();
    put(mapper::dfx::hbm_image(*task.gpt, machine, layout), system.core(i).hbm);
    if (i == 0 || !shared) ddr = mapper::dfx::ddr_image(*task.gpt, machine, layout);
    put(ddr, system.core(i).ddr);
  }
}

/// The cores' programs, pass after pass, and what comes out of them.
class Controller {
 public:
  Controller(const hw::Machine& machine, const GenerationTask& task,
             const std::vector<std::unique_ptr<PassMaker>>& makers, Generation& result)
      : machine_(machine), task_(task), makers_(makers), result_(result), passes_(makers.size()) {}

  void set_system(RingSystem& system) { system_ = &system; }

  void set_wave(Wave* wave) { wave_ = wave; }

  std::vector<const Pass*> next(RingHost& host) {
    std::vector<const Pass*> next;
    if (wave_ != nullptr && result_.passes != 0) wave_->end_inference();
    if (has_logits_) take_logits(host);
    const Step step = task_.texts.empty() ? generation_step() : text_step();
    if (step.ids.empty()) return next;
    position_ = step.position + static_cast<std::uint32_t>(step.ids.size());
    has_logits_ = step.logits;
    for (std::size_t i = 0; i < makers_.size(); ++i) {
      passes_[i] = makers_[i]->make(step.ids, step.position, step.logits);
      next.push_back(&passes_[i]);
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

  void take_logits(RingHost& host) {
    std::vector<hw::Half> logits;
    if (task_.gpt != nullptr && task_.on_logits) task_.on_logits(position_ - 1, this->logits());
    const bool in_prompt = position_ < task_.prompt.size();
    if (!task_.texts.empty() || in_prompt || result_.tokens.size() == task_.tokens) return;
    std::uint32_t token = 0;
    if (task_.sample) {
      logits = read_logits(host);
      if (task_.gpt != nullptr) token = task_.sample(logits);
    } else if (task_.gpt != nullptr) {
      token = largest();
    }
    if (result_.tokens.empty()) result_.first_token_ps = sc_core::sc_time_stamp().value();
    result_.tokens.push_back(token);
    if (task_.on_token) task_.on_token(token);
  }

  /// Columns of core `core`, up to the end of the vocabulary.
  [[nodiscard]] std::uint32_t columns_of(std::size_t core) const {
    const auto& part = makers_[core]->layout().part.vocabulary;
    const std::uint32_t columns = makers_[core]->sizes().columns;
    const std::uint32_t end = std::min(part.end * columns, task_.shape.vocabulary);
    return end - std::min(part.begin * columns, end);
  }

  /// Over PCIe, out of the cores' register files.
  [[nodiscard]] std::vector<hw::Half> read_logits(RingHost& host) const {
    std::vector<hw::Half> all(task_.shape.vocabulary);
    std::vector<RingHost::Range> ranges;
    std::size_t done = 0;
    for (std::uint32_t i = 0; i < makers_.size(); ++i) {
      const std::uint64_t at = hw::dfx::addresses_of(machine_, i).vectors +
                               makers_[i]->registers().logits * sizeof(hw::Half);
      const std::uint32_t bytes = columns_of(i) * sizeof(hw::Half);
      if (bytes == 0) continue;
      ranges.push_back({at, reinterpret_cast<std::uint8_t*>(all.data() + done), bytes});
      done += columns_of(i);
    }
    host.read(ranges);
    return all;
  }

  /// Without time.
  [[nodiscard]] std::vector<hw::Half> logits() {
    std::vector<hw::Half> all;
    for (std::size_t i = 0; i < makers_.size(); ++i) {
      const hw::Half* const own = system_->core(i).vector_data() + makers_[i]->registers().logits;
      all.insert(all.end(), own, own + columns_of(i));
    }
    return all;
  }

  /// Of all cores' winners, which they have exchanged; of equal ones the first.
  [[nodiscard]] std::uint32_t largest() {
    const PassMaker& maker = *makers_.front();
    const hw::Half* winner = system_->core(0).vector_data() + maker.registers().winners;
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

/// Begin of a core's programs in its DDR: a multiple of it, after the tables.
constexpr std::uint64_t kProgramAlignment = 4096;

std::vector<RingPlace> places_of(const hw::Machine& machine, const GenerationTask& task,
                                 const std::vector<std::unique_ptr<PassMaker>>& makers,
                                 const RtlWaves& waves, RtlReport& report) {
  const auto is_rtl = [](hw::Backend backend) { return backend == hw::Backend::kRtl; };
  HalfBackends backends;
  backends.mpu_tree = is_rtl(machine.backend.mpu_tree);
  backends.fp16_mul = is_rtl(machine.backend.fp16_mul);
  backends.fp16_add = is_rtl(machine.backend.fp16_add);
  std::vector<RingPlace> places;
  for (std::uint32_t i = 0; i < machine.dfx.cores; ++i) {
    RtlOptions options = waves.options(i);
    options.own = task.rtl.own;
    RingPlace& place = places.emplace_back();
    place.register_elements = makers[i]->register_elements();
    place.program = round_up(makers[i]->layout().ddr.bytes, kProgramAlignment);
    place.engines.matrix =
        make_matrix_lane_engine(machine.matrix.unit(), backends, options, report);
    place.engines.vector = make_half_vector_engine(backends, options, report);
    place.engines.router = make_router_engine(is_rtl(machine.backend.ring_router),
                                              machine.ring.router_cycles, options, report);
  }
  return places;
}

Generation run(const hw::Machine& machine, const GenerationTask& task, const RtlWaves& rtl_waves) {
  std::vector<std::unique_ptr<PassMaker>> makers;
  for (std::uint32_t i = 0; i < machine.dfx.cores; ++i) {
    makers.push_back(std::make_unique<PassMaker>(task.shape, machine, i));
  }
  Generation result;
  Controller controller(machine, task, makers, result);
  RingSystem system("system", machine, places_of(machine, task, makers, rtl_waves, result.rtl),
                    task.gpt != nullptr, [&](RingHost& host) { return controller.next(host); });
  fill_memories(machine, task, makers, system);
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
  if (const std::string fault = system.fault(); !fault.empty()) throw hw::InputError(fault);
  if (wave) {
    wave->write();
    result.wave_is_cut_short = wave->is_cut_short();
  }
  result.total_ps = sc_core::sc_time_stamp().value();
  const auto& ends = system.host.ends();
  result.last_pass_ps = ends.back() - ends[ends.size() - 2];
  result.host_ps = system.host.host_ps();
  result.phases = system.core(0).phases();
  result.weight_bytes = makers.front()->layout().hbm.weight_bytes;
  result.hbm_bytes = makers.front()->layout().hbm.bytes;
  result.hbm_read_bytes = system.core(0).timing().hbm_bytes();
  for (std::size_t i = 0; system.cores() > 1 && i < system.cores(); ++i) {
    result.link_bytes.push_back(system.link_bytes(i));
  }
  return result;
}

}  // namespace

Generation generate(const hw::Machine& machine, const GenerationTask& task) {
  check(task);
  RtlWaves rtl_waves(task.wave.path, machine);
  Generation result = run(machine, task, rtl_waves);
  rtl_waves.write();
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
