#include "testbench/generation/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <systemc>
#include <utility>

#include "base/error.h"
#include "model/float/float_gpt.h"
#include "model/float/float_llama.h"
#include "testbench/generation/ring_run.h"
#include "testbench/run/rtl_blocks.h"
#include "tlm/ring/ring_system.h"

namespace systole::testbench {
namespace {

using tlm_model::dfx::RingHost;
using tlm_model::dfx::RingSystem;

/// Rings side by side, to which requests go one after the other.
class RingClusters {
 public:
  RingClusters(const hw::Machine& machine, const GenerationTask& task, const RtlWaves& rtl_waves,
               RtlReport& rtl)
      : task_(task) {
    const auto turns = std::make_shared<tlm_model::dfx::PcieTurns>();
    const std::uint32_t count = machine.dfx.clusters;
    for (std::uint32_t c = 0; c < count; ++c) {
      Cluster& cluster = *clusters_.emplace_back(std::make_unique<Cluster>());
      cluster.name = count == 1 ? "system" : fmt::format("cluster{}", c);
      cluster.task = task;
      if (c != 0) show_nothing(cluster.task);
      if (task.progress) cluster.task.progress = [this](std::size_t) { task_.progress(++passes_); };
      cluster.ring = std::make_unique<RingRun>(machine, cluster.task);
      RingRun& ring = *cluster.ring;
      cluster.system = std::make_unique<RingSystem>(
          cluster.name.c_str(), machine,
          ring.places([&](std::uint32_t core) { return rtl_waves.options(core); }, rtl),
          task.gpt != nullptr, [&ring](RingHost& host) { return ring.next(host); },
          std::vector<std::uint64_t>(),
          tlm_model::dfx::RingCluster{[this, c] { return more(c); }, turns});
      ring.attach(*cluster.system);
    }
  }

  /// Of the first cluster.
  [[nodiscard]] RingRun& ring() { return *clusters_.front()->ring; }
  [[nodiscard]] RingSystem& system() { return *clusters_.front()->system; }

  [[nodiscard]] bool done() const {
    return std::all_of(clusters_.begin(), clusters_.end(),
                       [](const auto& cluster) { return cluster->system->done(); });
  }
  [[nodiscard]] std::vector<hw::BlockReport> reports() {
    std::vector<hw::BlockReport> all;
    for (const auto& cluster : clusters_) {
      for (hw::BlockReport& report : cluster->system->reports()) {
        if (clusters_.size() > 1) report.name.insert(0, cluster->name + ".");
        all.push_back(std::move(report));
      }
    }
    return all;
  }
  [[nodiscard]] std::string fault() {
    for (const auto& cluster : clusters_) {
      if (std::string fault = cluster->system->fault(); !fault.empty()) return fault;
    }
    return {};
  }
  [[nodiscard]] Generation result() {
    Generation result = ring().result();
    result.requests = served_;
    result.tokens = served_.front().texts.front();
    result.others.assign(served_.front().texts.begin() + 1, served_.front().texts.end());
    return result;
  }

 private:
  struct Cluster {
    std::string name;
    GenerationTask task;
    std::unique_ptr<RingRun> ring;
    std::unique_ptr<RingSystem> system;
    std::optional<std::size_t> serves;  ///< among served_
  };

  /// What is shown is the first request's.
  static void show_nothing(GenerationTask& task) {
    task.observer = nullptr;
    task.on_token = nullptr;
    task.on_pass = nullptr;
    task.on_logits = nullptr;
  }

  /// Ends the request that a cluster serves, and begins the next one, if there is one.
  bool more(std::uint32_t c) {
    Cluster& cluster = *clusters_[c];
    const std::uint64_t now = sc_core::sc_time_stamp().value();
    if (cluster.serves) {
      ServedRequest& served = served_[*cluster.serves];
      served.first_token_ps = cluster.ring->first_token_ps();
      served.end_ps = now;
      served.texts = cluster.ring->generated();
      cluster.serves.reset();
      show_nothing(cluster.task);
      cluster.ring->restart();
    }
    if (served_.size() == task_.requests) return false;
    cluster.serves = served_.size();
    served_.emplace_back().cluster = c;
    served_.back().begin_ps = now;
    return true;
  }

  const GenerationTask& task_;
  std::vector<std::unique_ptr<Cluster>> clusters_;
  std::vector<ServedRequest> served_;
  std::size_t passes_ = 0;
};

/// Logits of a text in float32, in windows of the network's context.
class FloatLogits {
 public:
  /// All outlive it. `llama`: nullptr for a GPT-2.
  FloatLogits(const model::Gpt& gpt, const model::LlamaCheckpoint* llama,
              const std::vector<std::int32_t>& text, std::size_t tokens)
      : shape_(gpt.shape), llama_(llama), text_(text), tokens_(tokens) {
    if (llama == nullptr) gpt_.emplace(gpt);
  }

  /// [vocabulary] after the token at `place`; places come in order.
  const float* after(std::size_t place) {
    const std::size_t position = place % shape_.positions;
    if (gpt_) {
      if (position == 0) gpt_->restart();
      logits_ = gpt_->append({text_[place]});
      return logits_.data();
    }
    if (position == 0) {
      const auto first = text_.begin() + static_cast<std::ptrdiff_t>(place);
      const std::size_t end = std::min<std::size_t>(shape_.positions, tokens_ - place);
      logits_ = model::llama_logits(*llama_, {first, first + static_cast<std::ptrdiff_t>(end)});
    }
    return &logits_[position * shape_.vocabulary];
  }

 private:
  const model::GptShape& shape_;
  std::optional<model::FloatGpt> gpt_;
  const model::LlamaCheckpoint* llama_;
  const std::vector<std::int32_t>& text_;
  const std::size_t tokens_;
  std::vector<float> logits_;
};

Generation run(const hw::Machine& machine, const GenerationTask& task, const RtlWaves& rtl_waves) {
  RtlReport rtl;
  RingClusters clusters(machine, task, rtl_waves, rtl);
  std::unique_ptr<Wave> wave;
  if (!task.wave.path.empty()) {
    RingSystem& system = clusters.system();
    std::vector<WaveCore> cores;
    for (std::size_t i = 0; i < system.cores(); ++i) cores.push_back({system.core(i).basename()});
    wave = std::make_unique<Wave>(task.wave, std::move(cores), machine.core.clock_mhz);
    clusters.ring().set_wave(wave.get());
  }
  const MachineRun machine_run = run_machine(clusters);
  if (const std::string fault = clusters.fault(); !fault.empty()) throw hw::InputError(fault);
  Generation result = clusters.result();
  static_cast<MachineRun&>(result) = machine_run;
  if (wave) {
    wave->write();
    result.wave_is_cut_short = wave->is_cut_short();
  }
  result.rtl = rtl;
  result.total_ps = sc_core::sc_time_stamp().value();
  return result;
}

}  // namespace

Generation generate(const hw::Machine& machine, const GenerationTask& task) {
  if (!task.wave.path.empty() && machine.dfx.clusters != 1) {
    throw hw::InputError(
        fmt::format("dfx.clusters: found {}, expected 1 with a waveform, which shows one ring",
                    machine.dfx.clusters));
  }
  RtlWaves rtl_waves(task.wave.path, machine);
  Generation result = run(machine, task, rtl_waves);
  rtl_waves.write();
  return result;
}

std::size_t likeliest_tokens(const model::LlamaCheckpoint& llama,
                             const std::vector<std::uint32_t>& prompt,
                             const std::vector<std::uint32_t>& tokens) {
  std::vector<std::int32_t> text(prompt.begin(), prompt.end());
  text.insert(text.end(), tokens.begin(), tokens.end());
  const std::vector<float> logits = model::llama_logits(llama, text);
  const auto vocabulary = static_cast<std::ptrdiff_t>(llama.shape.vocabulary);
  std::size_t same = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto row =
        logits.begin() + static_cast<std::ptrdiff_t>(prompt.size() + i - 1) * vocabulary;
    const auto likeliest = std::max_element(row, row + vocabulary) - row;
    same += likeliest == static_cast<std::ptrdiff_t>(tokens[i]) ? 1 : 0;
  }
  return same;
}

bool Evaluation::holds() const {
  return comparison.same_top() >= limits.same_top && comparison.max_error() <= limits.max_error &&
         comparison.mean_error() <= limits.mean_error &&
         std::fabs(comparison.bits() - comparison.reference_bits()) <= limits.bits;
}

Evaluation evaluate(const hw::Machine& machine, const model::Gpt& gpt,
                    const model::LlamaCheckpoint* llama, const std::vector<std::int32_t>& text,
                    std::size_t tokens, const std::function<void(std::size_t passes)>& progress) {
  // The token after the last one is what its logits are measured by.
  if (tokens == 0 || tokens >= text.size()) {
    throw hw::InputError(fmt::format("--evaluate: found {}, expected 1 to {}, the text's tokens",
                                     tokens, text.size() - 1));
  }
  Evaluation evaluation;
  if (llama != nullptr) evaluation.limits = Evaluation::kLlama;
  GenerationTask task;
  task.shape = gpt.shape;
  task.gpt = &gpt;
  task.progress = progress;
  for (std::size_t first = 0; first < tokens; first += gpt.shape.positions) {
    const std::size_t end = std::min<std::size_t>(first + gpt.shape.positions, tokens);
    task.texts.emplace_back(text.begin() + static_cast<std::ptrdiff_t>(first),
                            text.begin() + static_cast<std::ptrdiff_t>(end));
  }
  FloatLogits reference(gpt, llama, text, tokens);
  std::size_t place = 0;
  task.on_logits = [&](std::uint32_t, const std::vector<hw::Half>& logits) {
    const float* const expected = reference.after(place);
    evaluation.comparison.add(logits, expected, static_cast<std::size_t>(text[++place]));
  };
  evaluation.generation = generate(machine, task);
  return evaluation;
}

}  // namespace systole::testbench
