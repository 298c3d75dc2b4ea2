#include "testbench/generation/llama_generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <numeric>
#include <optional>
#include <utility>

#include "analysis/bound/lower_bound.h"
#include "base/error.h"
#include "hw/kernel/gemm.h"
#include "model/build/llama_graph.h"
#include "model/float/float_llama.h"
#include "model/graph/reference.h"
#include "testbench/common/text.h"
#include "testbench/generation/speculative_generation.h"
#include "testbench/network/llama_run.h"
#include "testbench/network/networks.h"
#include "testbench/network/tensors.h"
#include "testbench/run/operator_timing.h"
#include "testbench/run/tensor_file.h"

namespace systole::testbench {
namespace {

/// Of this process on its processors: others may share them.
double seconds_since(std::clock_t begin) {
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

double cycles_between(const LlamaGeneration& generation, std::size_t first, std::size_t end) {
  const auto& cycles = generation.measurement.result.cycles;
  const auto from = cycles.begin() + static_cast<std::ptrdiff_t>(first);
  const auto to = cycles.begin() + static_cast<std::ptrdiff_t>(std::min(end, cycles.size()));
  return static_cast<double>(std::accumulate(from, to, std::uint64_t{0}));
}

double seconds_of(const LlamaGeneration& generation, double cycles) {
  return cycles / (generation.measurement.machine.core.clock_mhz * 1e6);
}

std::int32_t likeliest(const std::vector<std::int32_t>& logits) {
  return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

/// Host time of the products of one token alone: the layers' weights and the vocabulary.
double product_seconds(const model::IntegerLlama& llama) {
  std::vector<std::int32_t> sums(llama.shape.vocabulary);
  std::vector<std::int8_t> row(std::max(llama.shape.hidden, llama.shape.width), 1);
  const auto multiply = [&](const model::IntegerLinear& layer) {
    hw::GemmArgs args;
    args.a = row.data();
    args.lda = layer.inputs;
    args.b = layer.weight.data();
    args.ldb = layer.inputs;
    args.b_transposed = true;
    sums.assign(layer.outputs, 0);
    args.c = sums.data();
    args.ldc = layer.outputs;
    args.m = 1;
    args.n = layer.outputs;
    args.k = layer.inputs;
    hw::gemm(args);
    layer.weight.let_go();
  };
  const std::clock_t begin = std::clock();
  for (const model::IntegerLlamaBlock& block : llama.blocks) {
    for (const model::IntegerLinear* const layer :
         {&block.query, &block.key, &block.value, &block.proj, &block.gate, &block.up,
          &block.down}) {
      multiply(*layer);
    }
  }
  multiply(llama.output);
  return seconds_since(begin);
}

/// -log2 of the share that softmax gives the token `next`; sets the likeliest.
template <typename T>
double bits_of(const T* logits, std::size_t count, double scale, std::size_t next,
               std::size_t& best) {
  best = static_cast<std::size_t>(std::max_element(logits, logits + count) - logits);
  const double largest = static_cast<double>(logits[best]);
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) {
    sum += std::exp((static_cast<double>(logits[i]) - largest) * scale);
  }
  return std::log2(sum) - (static_cast<double>(logits[next]) - largest) * scale / std::log(2.0);
}

}  // namespace

std::string_view name_of(LlamaPhase phase) {
  constexpr std::array<std::string_view, kLlamaPhases> kNames = {"projections", "attention", "MLP",
                                                                 "norms", "vocabulary"};
  return kNames.at(static_cast<std::size_t>(phase));
}

LlamaPhase phase_of(const std::string& name) {
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  if (has(".mlp.")) return LlamaPhase::kMlp;
  if (has(".attn.seq")) return LlamaPhase::kAttention;
  if (has(".attn.")) return LlamaPhase::kProjections;
  return has("output") ? LlamaPhase::kVocabulary : LlamaPhase::kNorms;
}

double LlamaGeneration::prompt_seconds() const {
  return seconds_of(*this, cycles_between(*this, 0, prompts));
}
double LlamaGeneration::generation_seconds() const {
  if (!speculation) return seconds_of(*this, cycles_between(*this, prompts, SIZE_MAX));
  return seconds_of(*this,
                    static_cast<double>(speculation->draft_cycles + speculation->verify_cycles));
}
double LlamaGeneration::tokens_per_second() const {
  // The first one comes with the prompt.
  return tokens.size() < 2 ? 0.0 : static_cast<double>(tokens.size() - 1) / generation_seconds();
}
double LlamaGeneration::prompt_joules() const {
  return hw::energy_of(measurement.result.first_events, measurement.machine).total();
}
double LlamaGeneration::joules_per_token() const {
  if (tokens.size() < 2) return 0.0;
  const double all = hw::energy_of(measurement.result.events, measurement.machine).total();
  return (all - prompt_joules()) / static_cast<double>(tokens.size() - 1);
}

LlamaGeneration generate(const hw::Machine& machine, const model::IntegerLlama& llama,
                         const LlamaTask& task) {
  const std::clock_t begin = std::clock();
  const std::size_t steps = task.prompt.size() + task.tokens - 1;
  if (steps > llama.shape.positions) {
    throw hw::InputError(
        fmt::format("--output-tokens: {} tokens with the prompt, but {} has {} "
                    "positions, expected fewer",
                    steps + 1, llama.name, llama.shape.positions));
  }
  if (task.draft != nullptr) return speculate(machine, llama, task);
  LlamaRun run(llama,
               {static_cast<std::uint32_t>(task.prompt.size()), static_cast<std::uint32_t>(steps),
                task.tensors.empty() ? task.chunk : 1},
               machine);
  const hw::DType input = run.graph().tensors[input_tensor(run.graph())].type;
  const hw::DType output = run.graph().tensors[output_tensor(run.graph())].type;
  LlamaGeneration generation;
  generation.prompt = task.prompt.size();
  generation.chunk = run.chunk();
  generation.prompts = run.prompts();
  const auto take = [&](const std::vector<std::uint8_t>& bytes) {
    const std::vector<std::int32_t> logits = widen(bytes, output);
    generation.tokens.push_back(task.sample ? task.sample(logits) : likeliest(logits));
  };
  SimulationOptions options;
  options.wave = task.wave;
  options.check = task.check;
  options.threads = task.threads;
  options.keep_outputs = task.keep_logits;
  if (!task.tensors.empty()) options.tensors = find_tensors(task.tensors, run.graph(), run.first());
  const std::vector<model::TensorId> kept = options.tensors;
  options.bounds = options.keep_traces = false;
  options.progress = task.progress;
  options.first_inferences = run.prompts();
  options.next_step = [&](std::size_t step) -> const mapper::Mapping& { return run.step(step); };
  options.unread = [&](std::size_t step) { return run.unread(step); };
  options.take_image = [&] { return run.take_image(); };
  OperatorEnds last;  // of the last inference
  options.observer = [&](const tlm_model::CommandTrace& trace) { last.add(trace); };
  const auto add_phases = [&](std::array<std::uint64_t, kLlamaPhases>& phases) {
    const std::vector<hw::Operator>& operators = run.latest().program.operators;
    const std::vector<std::uint64_t> ends = last.ends(operators.size());
    std::uint64_t before = last.begin();
    for (std::size_t i = 0; i < ends.size(); ++i) {
      phases.at(static_cast<std::size_t>(phase_of(operators[i].name))) += ends[i] - before;
      before = ends[i];
    }
  };
  options.next_input =
      [&, next = std::size_t{0}](const std::vector<std::vector<std::uint8_t>>& outputs) mutable
      -> std::optional<std::vector<std::uint8_t>> {
    if (next != 0 && next <= run.prompts()) add_phases(generation.prompt_phases);
    if (next >= run.prompts()) {
      take(outputs.back());
      if (generation.tokens.back() == task.end) return std::nullopt;
    }
    last = {};
    const TokenRange range = run.tokens(next);
    std::vector<std::int32_t> ids = {next < run.prompts() ? task.prompt[range.first]
                                                          : generation.tokens.back()};
    for (std::uint32_t i = 1; i < range.count; ++i) ids.push_back(task.prompt[range.first + i]);
    generation.positions.push_back(static_cast<std::int32_t>(range.first + range.count - 1));
    std::vector<std::int32_t> rows = model::embed_tokens(llama, ids);
    rows.resize(std::size_t{run.input_rows(next)} * llama.shape.width, 0);
    ++next;
    return embedding_bytes(rows, input);
  };
  SimulationResult result =
      simulate(run.graph(), run.first(), machine, tlm_model::make_models(machine),
               std::vector<std::vector<std::uint8_t>>(run.inferences()), options);
  if (result.cycles.size() == run.inferences()) take(result.outputs.back());
  add_phases(generation.phases);
  if (result.cycles.size() == run.prompts()) add_phases(generation.prompt_phases);
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const model::Tensor& tensor = run.graph().tensors[kept[i]];
    generation.tensors.push_back(tensor_of_inferences(tensor.name, tensor.type, tensor.rows,
                                                      tensor.cols, result.tensors[i]));
  }
  generation.measurement =
      measure(machine, llama.name, run.macs() / run.inferences(), options, std::move(result));
  generation.host_seconds = seconds_since(begin);
  generation.bound = analysis::lower_bound(run.graph(), machine).cycles();
  generation.product_seconds = product_seconds(llama);
  return generation;
}

double LlamaEvaluation::perplexity() const { return std::exp2(bits); }
double LlamaEvaluation::reference_perplexity() const { return std::exp2(reference_bits); }

LlamaEvaluation evaluate(const model::IntegerLlama& llama, const model::LlamaCheckpoint* checkpoint,
                         const std::vector<std::int32_t>& text, std::size_t tokens,
                         std::size_t window,
                         const std::function<void(std::size_t done)>& progress) {
  LlamaEvaluation evaluation;
  evaluation.model = llama.name;
  const std::size_t end = std::min(tokens, text.size()), vocabulary = llama.shape.vocabulary;
  for (std::size_t first = 0; first + 1 < end; first += window) {
    const std::size_t count = std::min(window, end - first);
    if (count < 2) break;
    const auto begin = text.begin() + static_cast<std::ptrdiff_t>(first);
    const std::vector<std::int32_t> ids(begin, begin + static_cast<std::ptrdiff_t>(count));
    const model::Graph graph =
        model::make_llama_text_graph(llama, static_cast<std::uint32_t>(count));
    model::Reference reference(graph, {true, true});
    reference.set_input("embedding", model::embed_tokens(llama, ids));
    reference.run();
    const std::vector<std::int32_t> logits = reference.values("logits");
    const std::vector<float> real =
        checkpoint == nullptr ? std::vector<float>{} : model::llama_logits(*checkpoint, ids);
    for (std::size_t t = 0; t + 1 < count; ++t) {
      const auto next = static_cast<std::size_t>(ids[t + 1]);
      std::size_t best = 0, real_best = 0;
      evaluation.bits +=
          bits_of(&logits[t * vocabulary], vocabulary, llama.logit_scale, next, best);
      evaluation.likeliest += best == next ? 1 : 0;
      if (checkpoint != nullptr) {
        evaluation.reference_bits +=
            bits_of(&real[t * vocabulary], vocabulary, 1.0, next, real_best);
        evaluation.reference_likeliest += real_best == next ? 1 : 0;
        evaluation.same += real_best == best ? 1 : 0;
      }
      ++evaluation.tokens;
    }
    if (progress) progress(first + count);
  }
  if (evaluation.tokens == 0) throw hw::InputError("--evaluate: expected two tokens at the least");
  evaluation.bits /= static_cast<double>(evaluation.tokens);
  evaluation.reference_bits /= static_cast<double>(evaluation.tokens);
  return evaluation;
}

}  // namespace systole::testbench
